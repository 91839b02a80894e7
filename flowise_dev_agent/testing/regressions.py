"""Tell a regression from a flaky answer: a failed test is repeated, and has to fail more often than chance allows."""

import math
from typing import Final

#: Runs of a guard without a regression in which an alarm may come, one in so many.
ONE_FALSE_IN: Final = 1_000
#: Repetitions of a test that failed, at once.
REPEATED: Final = 6


def failures_needed(tests: int, accepted: float) -> int:
    """Failures of a test in its first conversation and the repetitions, from which it counts as a regression.

    `accepted` is the rate at which answers of a good flow fail. With `tests` of them, the chance that any one reaches
    the number is below one in `ONE_FALSE_IN`.
    """
    held = REPEATED + 1
    allowed = 1 / (ONE_FALSE_IN * max(1, tests))
    return next((number for number in range(2, held) if _at_least(number, held, accepted) <= allowed), held)


def _at_least(number: int, held: int, rate: float) -> float:
    """Chance of at least `number` failures in `held` conversations."""
    return sum(math.comb(held, k) * rate**k * (1 - rate) ** (held - k) for k in range(number, held + 1))
