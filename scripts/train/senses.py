"""Learns what a clause of a wish is about from the labelled clauses of `scripts/train/senses.tsv`.

    python scripts/train/senses.py [--check]          (needs scikit-learn: pip install scikit-learn)

Writes `flowise_dev_agent/reasoning/rules/language/senses.bin`. `--check` holds every sixth wish out, learns from the
others and prints what becomes of it: of each sense (rows) how many clauses get which (columns), and the parts.

A line is `n or c, labels, clause`: for a new flow or a change. Labels: t tells the bot something, p:PART asks for a
part or a setting of the flow (p:-PART: it is not wanted, or is to go), k says what stays, a is an aside, c a complaint,
o an order to whoever builds. p alone asks for some part, i is one of a, c and o: which is not learned from such lines.
Lines without an empty one between them are one wish.
"""

import argparse
import hashlib
import importlib
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.reasoning.rules.language.senses import BUCKETS, CONCEPTS, LABELS, SENSES, UNIT, Around, buckets

# Not among the locked packages: nothing but this script needs them.
np: Any = importlib.import_module("numpy")
csr_matrix: Any = importlib.import_module("scipy.sparse").csr_matrix
LogisticRegression: Any = importlib.import_module("sklearn.linear_model").LogisticRegression
normalize: Any = importlib.import_module("sklearn.preprocessing").normalize

_DATA = Path(__file__).with_name("senses.tsv")
_OUT = Path(__file__).resolve().parents[2] / "flowise_dev_agent/reasoning/rules/language/senses.bin"
_SHORT = {"t": "told", "p": "part", "k": "keep", "a": "aside", "c": "complaint", "o": "order", "i": "idle"}
#: How closely the regression follows the clauses: of the parts, which are rarer, more.
_TRUST_SENSES, _TRUST_PARTS = 15, 60
#: How often the clause of a whole wish counts: it was written to be read, and not to be learned from.
_WHOLE_WISH = 3
#: Parts that are words of a prompt: what asks for them tells the bot something, too.
_TEXTS = {"prompt_replace", "prompt_delete"}
_Sample = tuple[set[str], Any]
_IDLE = ("aside", "complaint", "order")


def samples(path: Path = _DATA) -> list[list[_Sample]]:
    """The clauses of each wish with their labels; of a whole wish each on its own, and between those around it."""
    wishes = (wish.split("\n") for wish in path.read_text("utf-8").strip().split("\n\n"))
    return [_wish([line.split("\t") for line in wish if line]) for wish in wishes]


def _wish(rows: list[list[str]]) -> list[_Sample]:
    said = ["", *(clause for *_, clause in rows), ""]
    alone = [_sample(kind, labels, clause) for kind, labels, clause in rows]
    between = [_sample(kind, labels, clause, (said[n], said[n + 2])) for n, (kind, labels, clause) in enumerate(rows)]
    return alone + between if len(rows) > 1 else alone


def _sample(kind: str, said: str, clause: str, around: Around | None = None) -> _Sample:
    labels = set[str]()
    for label in said.split(","):
        sense, _, part = label.partition(":")
        labels |= {"told" if part in _TEXTS else _SHORT[sense], *([part.lstrip("-")] if part else [])}
        labels |= {"off"} if part[:1] == "-" else set()
    labels |= {"idle"} if labels & {*_IDLE} else set()
    if unknown := labels - {*LABELS}:
        raise SystemExit(f"{clause!r}: unknown labels {', '.join(unknown)}")
    return labels, np.array(sorted(buckets(clause, change=kind == "c", around=around)), dtype=np.int64)


def _known(labels: set[str]) -> list[bool]:
    """Which labels a clause says something of."""
    some_part, idle = "part" in labels and not labels & {*CONCEPTS}, "idle" in labels and not labels & {*_IDLE}
    return [not ((some_part and name in ("off", *CONCEPTS)) or (idle and name in _IDLE)) for name in LABELS]


def _matrix(data: Sequence[_Sample]) -> Any:
    ends = np.cumsum([0, *(len(at) for _, at in data)])
    ones, at = np.ones(ends[-1], dtype=np.float32), np.concatenate([at for _, at in data])
    return csr_matrix((ones, at, ends), shape=(len(data), BUCKETS))


def learned(wishes: Sequence[Sequence[_Sample]]) -> tuple[Any, Any]:
    """Biases, and a row for each bucket (how much it counts, and its weights) of a logistic regression for each label
    over rows of length 1, in which a feature counts the more the rarer it is."""
    data = [one for wish in wishes for one in wish]
    share = np.array([_WHOLE_WISH if len(wish) > 1 else 1 for wish in wishes for _ in wish])
    plain, known = _matrix(data), np.array([_known(labels) for labels, _ in data])
    counts = 1 + np.log((1 + len(data)) / (1 + np.asarray(plain.sum(0)).ravel()))
    rows = normalize(plain.multiply(counts).tocsr())
    biases, weights = np.zeros(len(LABELS), dtype=np.float32), np.zeros((BUCKETS, len(LABELS)), dtype=np.float32)
    for n, label in enumerate(LABELS):
        wanted, mine = np.array([label in labels for labels, _ in data]), known[:, n]
        trust = _TRUST_PARTS if label in CONCEPTS else _TRUST_SENSES
        model = LogisticRegression(C=trust, solver="liblinear").fit(rows[mine], wanted[mine], share[mine])
        biases[n], weights[:, n] = model.intercept_[0], model.coef_[0] * counts
    # In a bucket that no clause has nothing was learned.
    table = np.column_stack([counts**2, weights / UNIT]) * (counts < counts.max())[:, None]
    return biases, np.clip(np.rint(table), -127, 127).astype(np.int8)


def _check(wishes: list[list[_Sample]]) -> None:
    held = [one for wish in wishes[::6] for one in wish if len(wish) > 1]
    biases, table = learned([wish for n, wish in enumerate(wishes) if n % 6 or len(wish) == 1])
    sums = [table[at].astype(np.int32).sum(0) for _, at in held]
    shares = [1 / (1 + np.exp(-biases - row[1:] * UNIT / max(row[0], 1) ** 0.5)) for row in sums]
    names = SENSES[:4]
    print(" " * 10 + "".join(f"{name:>10}" for name in names))
    for name in names:
        best = [names[int(np.argmax(one[: len(names)]))] for (mine, _), one in zip(held, shares, strict=True)
                if mine & {*names} == {name}]  # fmt: skip
        print(f"{name:>10}" + "".join(f"{best.count(other):>10}" for other in names))
    for least in (0.2, 0.3, 0.5, 0.7):
        pairs = [(name in mine, one[LABELS.index(name)] > least)
                 for (mine, _), one in zip(held, shares, strict=True) for name in CONCEPTS]  # fmt: skip
        right, said, there = sum(a and b for a, b in pairs), sum(b for _, b in pairs), sum(a for a, _ in pairs)
        print(f"parts above {least}: {right} of {said} are right, {right} of {there} are found")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        _check(samples())
    else:
        biases, table = learned(samples())
        digest = hashlib.sha256(_DATA.read_bytes()).digest()
        _OUT.write_bytes(digest + zlib.compress(biases.tobytes() + table.tobytes(), 9))
