"""The publisher under every fault that is simulated: no twin, no orphan, no text of a person lost that was read.

A failure names its seed; `trial(seed)` repeats it. What was found becomes a named test.
"""

from collections import Counter
from collections.abc import Iterable
from random import SystemRandom

import pytest

from tests.unit.publish.simulation import trial

TRIALS = 4_000
NIGHTLY_TRIALS = 50_000


def run(seeds: Iterable[int]) -> None:
    ended: Counter[str] = Counter()
    unread = 0
    for seed in seeds:
        world = trial(seed)
        ended[f"{world.name}{': stale' if world.state.stale else ''}"] += 1
        unread += world.server.unread
    print(dict(ended), f"saves of people in the last instant before a write: {unread}")
    assert sum(ended.values()) > 0


def test_p02_p03_p88_p90_nothing_is_doubled_or_lost_whatever_breaks() -> None:
    run(range(TRIALS))


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_p02_p03_p88_p90_nothing_is_doubled_or_lost_with_other_seeds_each_night() -> None:
    first = SystemRandom().randrange(2**32)
    print(f"seeds from {first}")
    run(range(first, first + NIGHTLY_TRIALS))
