"""Whole sessions under every fault that is simulated: nothing is written without approval, doubled, or lost.

A failure names its seed and what happened; `trial(seed)` repeats it. What was found becomes a named test.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from random import SystemRandom

import pytest

from tests.unit.sessions.simulation.world import trial

TRIALS = 40
NIGHTLY_TRIALS = 1_000


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of lines of faults that are wanted."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seeds: Iterable[int]) -> None:
    ended: Counter[str] = Counter()
    processes = runs = 0
    for seed in seeds:
        world = trial(seed)
        ended[f"{world.operation} {world.mode or ''} {world.tables.session.outcome}"] += 1
        processes += len(world.processes)
        runs += sum(item.epoch for item in world.tables.runs)
    print(f"{dict(ended)}; {processes} processes, {runs} attempts")
    assert sum(ended.values()) > 0


@pytest.mark.timeout(300)
def test_p02_p03_p40_p88_p90_whole_sessions_lose_and_double_nothing_whatever_breaks() -> None:
    run(range(TRIALS))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_p02_p03_p40_p88_p90_whole_sessions_with_other_seeds_each_night() -> None:
    first = SystemRandom().randrange(2**32)
    print(f"seeds from {first}")
    run(range(first, first + NIGHTLY_TRIALS))


def test_the_same_seed_is_the_same_session() -> None:
    first, again = trial(5), trial(5)
    assert first.happened == again.happened
    assert [event.type for event in first.tables.events] == [event.type for event in again.tables.events]
