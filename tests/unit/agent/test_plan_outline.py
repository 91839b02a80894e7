"""How a change of the plan is stored: append, replace, update."""

import pytest

from flowise_dev_agent.agent.plan_outline import change_of, store
from flowise_dev_agent.schemas.node_artifacts import OperationCounts, StoredPlan, StoredStage, StoredTask, TaskStatus


def task(id_: str, key: str = "", status: TaskStatus = "planned", title: str = "") -> StoredTask:
    return StoredTask(task_id=id_, task_key=key or id_, status=status, title=title)


def stage(*tasks: StoredTask, id_: str = "nodes", key: str = "nodes") -> StoredStage:
    return StoredStage(stage_id=id_, stage_key=key, tasks=list(tasks))


def plan(*stages: StoredStage) -> StoredPlan:
    return StoredPlan(plan_id="s", stages=list(stages))


STORED = plan(stage(task("chat_0", "chatOpenAI"), task("memory_0", "bufferMemory"), task("chat_1", "chatOpenAI")))


def test_append_adds_and_leaves_what_is_there_with_a_warning() -> None:
    result = store(STORED, [stage(task("chat_0", status="approved"), task("tool_0"))], "append")

    assert [one.task_id for one in result.plan.stages[0].tasks] == ["chat_0", "memory_0", "chat_1", "tool_0"]
    assert result.plan.stages[0].tasks[0].status == "planned"
    assert result.counts == OperationCounts(created=1)
    assert (result.touched, len(result.warnings)) == (["nodes/tool_0"], 1)


def test_append_makes_a_stage_that_is_not_there() -> None:
    result = store(STORED, [stage(task("t1"), id_="tests")], "append")

    assert [one.stage_id for one in result.plan.stages] == ["nodes", "tests"]
    assert (result.counts.created, result.touched) == (2, ["tests", "tests/t1"])


def test_replace_takes_the_patch_as_the_plan() -> None:
    result = store(STORED, [stage(task("chat_0"), task("new_0"))], "replace")

    assert result.plan.stages == [stage(task("chat_0"), task("new_0"))]
    assert result.counts == OperationCounts(created=1, replaced=2)


def test_update_finds_by_id_first_and_then_by_key() -> None:
    by_id = store(STORED, [stage(task("chat_1", "chatOpenAI", "approved"))], "update")
    by_key = store(STORED, [stage(task("", "bufferMemory", "approved"), id_="")], "update")

    assert [one.status for one in by_id.plan.stages[0].tasks] == ["planned", "planned", "approved"]
    assert [one.status for one in by_key.plan.stages[0].tasks] == ["planned", "approved", "planned"]
    assert by_key.plan.stages[0].tasks[1].task_id == "memory_0"
    assert by_id.counts == by_key.counts == OperationCounts(updated=1)


def test_a_key_that_fits_several_is_an_error_and_nothing_is_stored() -> None:
    result = store(STORED, [stage(task("memory_0", status="approved"), task("", "chatOpenAI", "approved"))], "update")

    assert result.plan == STORED
    assert result.errors == ["The task key 'chatOpenAI' fits 2 tasks; give the id."]
    assert (result.counts, result.touched) == (OperationCounts(), [])


def test_a_target_that_is_missing_is_skipped_with_a_warning_and_counted() -> None:
    result = store(STORED, [stage(task("gone_0"), task("chat_0", "chatOpenAI", "written")), stage(id_="x")], "update")

    assert result.counts == OperationCounts(updated=1, skipped_missing=2)
    assert result.warnings == ["There is no task 'gone_0'; it is skipped.", "There is no stage 'x'; it is skipped."]


@pytest.mark.parametrize(
    ("after", "mode", "tasks"),
    [
        (plan(stage(task("a", status="approved"), task("b"))), "update", ["a"]),
        (plan(stage(task("a"), task("b"), task("c"))), "append", ["c"]),
        (plan(stage(task("a"))), "replace", ["a"]),
        (plan(stage(task("a", title="another"), task("b"))), "replace", ["a", "b"]),
        (plan(stage(task("a", status="approved"), task("b"), task("c"))), "replace", ["a", "b", "c"]),
    ],
)
def test_the_mode_follows_from_what_changed_and_leads_to_the_new_plan(
    after: StoredPlan, mode: str, tasks: list[str]
) -> None:
    before = plan(stage(task("a"), task("b")))

    found, patch = change_of(before, after)

    assert (found, [one.task_id for stage in patch for one in stage.tasks]) == (mode, tasks)
    assert store(before, patch, found).plan == after
