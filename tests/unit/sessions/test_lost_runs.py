"""Which of several runs may have ended the worker that had them all."""

from dataclasses import replace
from uuid import UUID

import pytest
from procrastinate.jobs import Job

from flowise_dev_agent.persistence.runs import Lost


def lost(number: int, *, worker: int | None = 7, isolated: bool = False, claimed: bool = True) -> Lost:
    lock = f"lock-{number}" if isolated else None
    job = Job(id=number, queue="runs", lock=lock, queueing_lock=None, task_name="run", worker_id=worker)
    return Lost(UUID(int=number), UUID(int=100 + number), "default", number, 1, claimed=claimed, job=job)


ONE, OTHER = lost(1), lost(2)


def test_a_neighbour_on_the_same_worker_may_have_ended_it_and_the_run_itself_is_no_excuse() -> None:
    assert ONE.may_excuse(OTHER)
    assert not ONE.may_excuse(ONE)


@pytest.mark.parametrize(
    "neighbour",
    [
        pytest.param(lost(1, claimed=False), id="it had not begun"),
        pytest.param(lost(1, worker=8), id="another worker had it"),
    ],
)
def test_a_run_that_cannot_have_ended_the_worker_is_no_excuse(neighbour: Lost) -> None:
    assert not neighbour.may_excuse(OTHER)


def test_an_isolated_run_is_excused_by_a_suspect_only() -> None:
    isolated = lost(2, isolated=True)
    assert not ONE.may_excuse(isolated)
    assert replace(ONE, lost_before=True).may_excuse(isolated)
