"""Learns what a clause of a wish is about from the labelled clauses of `scripts/train/senses.tsv`.

    python scripts/train/senses.py [--check]

Writes `flowise_dev_agent/reasoning/rules/language/senses.bin`. `--check` holds every fifth clause out, learns from the
others and prints what becomes of it: of each label (rows) how many clauses get which (columns).

A line is `label, n or c, clause`: for a new flow or a change. Labels: t tells the bot something, p asks for a part or a
setting of the flow, k says what stays, a asks for nothing; b is t and p.
"""

import argparse
import math
import random
import sys
from array import array
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.reasoning.rules.language.senses import BUCKETS, UNIT, buckets

_DATA = Path(__file__).with_name("senses.tsv")
_OUT = Path(__file__).resolve().parents[2] / "flowise_dev_agent/reasoning/rules/language/senses.bin"
_LABELS = "tpka"
_ROUNDS, _RATE, _DECAY, _SEED = 20, 0.02, 0.002, 1
_Sample = tuple[str, list[int]]


def samples(path: Path = _DATA) -> list[_Sample]:
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [(label, sorted(buckets(clause, change=kind == "c"))) for label, kind, clause in rows]


def learned(data: list[_Sample]) -> "array[int]":
    """Weights of a logistic regression, by stochastic gradients with a rate that falls to nothing."""
    count = len(_LABELS)
    weights = [0.0] * (BUCKETS * count)
    wanted = {label: [float(one == label) for one in _LABELS] for label in _LABELS} | {"b": [0.5, 0.5, 0.0, 0.0]}
    order = random.Random(_SEED)  # noqa: S311 - the order of learning, the same each time
    for past in range(_ROUNDS):
        rate = _RATE * (1 - past / _ROUNDS)
        for label, mine in order.sample(data, len(data)):
            scores = [sum(weights[bucket * count + n] for bucket in mine) for n in range(count)]
            shares = [math.exp(score - max(scores)) for score in scores]
            for n in range(count):
                error = shares[n] / sum(shares) - wanted[label][n]
                for at in (bucket * count + n for bucket in mine):
                    weights[at] -= rate * (error + _DECAY * weights[at])
    return array("b", (max(-128, min(127, round(one * UNIT))) for one in weights))


def _check(data: list[_Sample]) -> None:
    held = data[::5]
    weights = learned([one for n, one in enumerate(data) if n % 5])
    print("     " + "".join(f"{label:>6}" for label in _LABELS))
    for label in (*_LABELS, "b"):
        mine = [sums(weights, sample) for own, sample in held if own == label]
        best = [max(range(len(_LABELS)), key=scores.__getitem__) for scores in mine]
        print(f"{label:>5}" + "".join(f"{best.count(n):>6}" for n in range(len(_LABELS))))


def sums(weights: "array[int]", sample: list[int]) -> list[int]:
    return [sum(weights[bucket * len(_LABELS) + n] for bucket in sample) for n in range(len(_LABELS))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        _check(samples())
    else:
        _OUT.write_bytes(learned(samples()).tobytes())
