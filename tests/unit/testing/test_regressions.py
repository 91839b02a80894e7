"""A week of a guard in simulated time: flaky answers give no alarm, planted regressions do within one interval."""

import random

import pytest

from flowise_dev_agent.testing.regressions import ONE_FALSE_IN, REPEATED, failures_needed


def alarms(rates: list[float], accepted: float, chance: random.Random) -> bool:
    """One run of a guard, as `ops/guards.py` holds it: all tests once, those that failed again."""
    needed = failures_needed(len(rates), accepted)
    failed = [rate for rate in rates if chance.random() < rate]
    return any(1 + sum(chance.random() < rate for _ in range(REPEATED)) >= needed for rate in failed)


@pytest.mark.parametrize("flaky", [0.02, 0.05])
@pytest.mark.parametrize("tests", [1, 10, 50])
def test_flaky_answers_give_at_most_one_false_alarm_in_a_thousand_runs(flaky: float, tests: int) -> None:
    chance, runs = random.Random(7), 20_000 // max(1, tests // 10)  # noqa: S311 - a simulation
    false = sum(alarms([flaky] * tests, 0.05, chance) for _ in range(runs))
    assert false <= runs / ONE_FALSE_IN


@pytest.mark.parametrize("fails", [1.0, 0.97])
def test_planted_regressions_are_told_within_one_interval(fails: float) -> None:
    chance, weeks = random.Random(11), 500  # noqa: S311 - a simulation
    told = 0
    for _ in range(weeks):
        rates = [chance.uniform(0.02, 0.05) for _ in range(10)]
        rates[chance.randrange(10)] = fails
        told += alarms(rates, 0.05, chance)
    assert told >= weeks * (1.0 if fails == 1 else 0.95)


def test_more_failures_are_needed_of_more_tests_and_of_answers_that_fail_more() -> None:
    assert failures_needed(1, 0.05) < failures_needed(50, 0.2) <= REPEATED + 1
    assert failures_needed(1, 0.0) == 2
