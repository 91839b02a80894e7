"""Learns what a clause of a wish is about from the labelled clauses of `scripts/train/senses.tsv`.

    python scripts/train/senses.py [--check]          (needs numpy: pip install numpy)

Writes `flowise_dev_agent/reasoning/rules/language/senses.bin`. `--check` holds every sixth wish out, learns from the
others and prints what becomes of it: of each sense (rows) how many clauses get which (columns), and the parts.

A line is `n or c, labels, clause`: for a new flow or a change. Labels: t tells the bot something, p:PART asks for a part
or a setting of the flow (p:-PART: it is not wanted, or is to go), k says what stays, a is an aside, c a complaint, o an
order to whoever builds. p alone asks for some part, i is one of a, c and o: which is not learned from such lines.
Lines without an empty one between them are one wish.
"""

import argparse
import hashlib
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.reasoning.rules.language.senses import BUCKETS, CONCEPTS, LABELS, SENSES, UNIT, buckets

_DATA = Path(__file__).with_name("senses.tsv")
_OUT = Path(__file__).resolve().parents[2] / "flowise_dev_agent/reasoning/rules/language/senses.bin"
_SHORT = {"t": "told", "p": "part", "k": "keep", "a": "aside", "c": "complaint", "o": "order", "i": "idle"}
_ROUNDS, _RATE, _START, _SEED, _SMALL = 14, 0.1, 0.01, 1, 1.5
#: Parts that are words of a prompt: what asks for them tells the bot something, too.
_TEXTS = {"prompt_replace", "prompt_delete"}
_Sample = tuple[set[str], Any]
_IDLE = ("aside", "complaint", "order")


def samples(path: Path = _DATA) -> list[list[_Sample]]:
    """The clauses of each wish with their labels."""
    wishes = (wish.split("\n") for wish in path.read_text("utf-8").strip().split("\n\n"))
    return [[_sample(*line.split("\t")) for line in wish if line] for wish in wishes]


def _sample(kind: str, said: str, clause: str) -> _Sample:
    labels = set[str]()
    for label in said.split(","):
        sense, _, part = label.partition(":")
        labels |= {"told" if part in _TEXTS else _SHORT[sense], *([part.lstrip("-")] if part else [])}
        labels |= {"off"} if part[:1] == "-" else set()
    labels |= {"idle"} if labels & {*_IDLE} else set()
    if unknown := labels - {*LABELS}:
        raise SystemExit(f"{clause!r}: unknown labels {', '.join(unknown)}")
    return labels, np.array(sorted(buckets(clause, change=kind == "c")), dtype=np.int64)


def _known(labels: set[str]) -> list[bool]:
    """Which labels a clause says something of."""
    some_part, idle = "part" in labels and not labels & {*CONCEPTS}, "idle" in labels and not labels & {*_IDLE}
    return [not ((some_part and name in ("off", *CONCEPTS)) or (idle and name in _IDLE)) for name in LABELS]


def learned(data: Sequence[_Sample]) -> Any:
    """Weights of one logistic regression for each label, by AdaGrad."""
    weights = np.zeros((BUCKETS, len(LABELS)), dtype=np.float32)
    past = np.full_like(weights, _START)
    wanted = np.array([[label in mine for label in LABELS] for mine, _ in data], dtype=np.float32)
    known = np.array([_known(mine) for mine, _ in data], dtype=np.float32)
    order = np.random.RandomState(_SEED)
    for _ in range(_ROUNDS):
        for row in order.permutation(len(data)):
            at = data[row][1]
            error = (1 / (1 + np.exp(-weights[at].sum(0))) - wanted[row]) * known[row]
            past[at] += error**2
            weights[at] -= _RATE * error / np.sqrt(past[at])
    found = np.clip(np.rint(weights * UNIT), -127, 127).astype(np.int8)
    # What hardly matters costs room and no more.
    found[np.abs(found) < _SMALL] = 0
    return found


def _check(wishes: list[list[_Sample]]) -> None:
    held = [one for wish in wishes[::6] for one in wish]
    weights = learned([one for n, wish in enumerate(wishes) if n % 6 for one in wish])
    shares = [1 / (1 + np.exp(-weights[at].astype(np.int32).sum(0) / UNIT)) for _, at in held]
    names = SENSES[:4]
    print(" " * 10 + "".join(f"{name:>10}" for name in names))
    for name in names:
        best = [names[int(np.argmax(one[: len(names)]))] for (mine, _), one in zip(held, shares, strict=True)
                if mine & {*names} == {name}]  # fmt: skip
        print(f"{name:>10}" + "".join(f"{best.count(other):>10}" for other in names))
    for least in (0.3, 0.5, 0.7):
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
        data = learned([one for wish in samples() for one in wish])
        digest = hashlib.sha256(_DATA.read_bytes()).digest()
        _OUT.write_bytes(digest + zlib.compress(data.tobytes(), 9))
