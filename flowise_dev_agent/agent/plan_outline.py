"""Outline of a plan as stages with tasks; changes are stored by append, replace or update."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.node_artifacts import (
    OperationCounts,
    StoredPlan,
    StoredStage,
    StoredTask,
    StoreMode,
    TaskStatus,
)

T = TypeVar("T", StoredStage, StoredTask)
_TITLE_CHARS: Final = 200


@dataclass
class StoreResult:
    """Result of storing a patch. If there are `errors`, the plan is unchanged."""

    plan: StoredPlan
    counts: OperationCounts = field(default_factory=OperationCounts)
    touched: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])


def outline(state: AgentState, plan_id: str) -> StoredPlan | None:
    """Outline of the session's plan with the status of each task; None before there is a plan."""
    plan = state.plan.contract
    if plan is None:
        return None
    status: TaskStatus = "written" if state.tests.results or state.outcome == "accepted" else "planned"
    if status == "planned" and state.plan.approved:
        status = "approved"
    shown: dict[str, TaskStatus] = {}
    for trial in state.tests.results:
        if trial.test and shown.get(trial.test) != "failed":
            shown[trial.test] = "passed" if trial.passed else "failed"
    nodes = [
        StoredTask(task_id=node.node_id, task_key=node.node_name, title=_title(node.purpose), status=status)
        for node in plan.nodes
    ]
    values = [
        StoredTask(
            task_id=f"{one.node_id}.{one.param}", task_key=one.param, title=_title(str(one.value)), status=status
        )
        for one in plan.values
    ]
    tests = [
        StoredTask(
            task_id=test.id,
            task_key=_title(test.turns[0]),
            title=_title(test.turns[0]),
            status=shown.get(test.id, "planned" if status == "planned" else "approved"),
        )
        for test in plan.tests
    ]
    stages = {"nodes": nodes, "values": values, "tests": tests}
    return StoredPlan(
        plan_id=plan_id,
        title=plan.flow_name,
        stages=[StoredStage(stage_id=name, stage_key=name, tasks=_once(tasks)) for name, tasks in stages.items()],
    )


def change_of(before: StoredPlan | None, after: StoredPlan) -> tuple[StoreMode, list[StoredStage]]:
    """Mode and patch that turn one plan into the other."""
    if before is None:
        return "replace", after.stages
    known, now = dict(_tasks(before)), dict(_tasks(after))
    if known.keys() == now.keys() and all(now[key].title == task.title for key, task in known.items()):
        return "update", _only(after, {key for key, task in now.items() if task != known[key]})
    if all(now.get(key) == task for key, task in known.items()):
        return "append", _only(after, now.keys() - known.keys())
    return "replace", after.stages


def store(plan: StoredPlan, stages: Sequence[StoredStage], mode: StoreMode) -> StoreResult:
    """Apply a patch to a plan. `append` adds items, `replace` takes the patch as the plan, `update` changes items found
    by id, else by key. An ambiguous key is an error, and nothing is stored.
    """
    match mode:
        case "replace":
            return _replaced(plan, stages)
        case "append":
            return _appended(plan, stages)
        case "update":
            return _updated(plan, stages)


def _replaced(plan: StoredPlan, stages: Sequence[StoredStage]) -> StoreResult:
    known = {*dict(_tasks(plan)), *((stage.stage_id, "") for stage in plan.stages)}
    now = [
        place
        for stage in stages
        for place in ((stage.stage_id, ""), *((stage.stage_id, t.task_id) for t in stage.tasks))
    ]
    replaced = sum(place in known for place in now)
    return StoreResult(
        plan.model_copy(update={"stages": list(stages)}),
        OperationCounts(created=len(now) - replaced, replaced=replaced),
        [_name(*place) for place in now],
    )


def _appended(plan: StoredPlan, stages: Sequence[StoredStage]) -> StoreResult:
    result = StoreResult(plan)
    kept = {stage.stage_id: stage for stage in plan.stages}
    created = 0
    for stage in stages:
        there = kept.get(stage.stage_id)
        if there is None:
            kept[stage.stage_id] = there = StoredStage(stage_id=stage.stage_id, stage_key=stage.stage_key)
            created += 1
            result.touched.append(stage.stage_id)
        tasks = {task.task_id: task for task in there.tasks}
        for task in stage.tasks:
            place = _name(stage.stage_id, task.task_id)
            if task.task_id in tasks:
                result.warnings.append(f"{place} is there already and stays as it is.")
                continue
            tasks[task.task_id] = task
            created += 1
            result.touched.append(place)
        kept[stage.stage_id] = there.model_copy(update={"tasks": list(tasks.values())})
    result.plan = plan.model_copy(update={"stages": list(kept.values())})
    result.counts = OperationCounts(created=created)
    return result


def _updated(plan: StoredPlan, stages: Sequence[StoredStage]) -> StoreResult:
    result = StoreResult(plan)
    kept = {stage.stage_id: stage for stage in plan.stages}
    updated = missing = 0
    for stage in stages:
        found = _found(list(kept.values()), stage.stage_id, stage.stage_key, StoredStage, result)
        if found is None:
            missing += 1
            continue
        tasks = {task.task_id: task for task in found.tasks}
        for task in stage.tasks:
            there = _found(list(tasks.values()), task.task_id, task.task_key, StoredTask, result)
            if there is None:
                missing += 1
                continue
            tasks[there.task_id] = task.model_copy(update={"task_id": there.task_id})
            updated += 1
            result.touched.append(_name(found.stage_id, there.task_id))
        kept[found.stage_id] = found.model_copy(update={"tasks": list(tasks.values())})
    if result.errors:
        return StoreResult(plan, errors=result.errors, warnings=result.warnings)
    result.plan = plan.model_copy(update={"stages": list(kept.values())})
    result.counts = OperationCounts(updated=updated, skipped_missing=missing)
    return result


def _found(items: Sequence[T], id_: str, key: str, kind: type[T], result: StoreResult) -> T | None:
    """Item with the id, else the item with the key; a missing or ambiguous item adds an error or a warning."""
    name = "stage" if kind is StoredStage else "task"
    for item in items:
        if id_ and _id(item) == id_:
            return item
    fitting = [] if id_ or not key else [item for item in items if _key(item) == key]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        result.errors.append(f"The {name} key {key!r} fits {len(fitting)} {name}s; give the id.")
    else:
        result.warnings.append(f"There is no {name} {id_ or key!r}; it is skipped.")
    return None


def _id(item: StoredStage | StoredTask) -> str:
    return item.stage_id if isinstance(item, StoredStage) else item.task_id


def _key(item: StoredStage | StoredTask) -> str:
    return item.stage_key if isinstance(item, StoredStage) else item.task_key


def _tasks(plan: StoredPlan) -> Iterator[tuple[tuple[str, str], StoredTask]]:
    return (((stage.stage_id, task.task_id), task) for stage in plan.stages for task in stage.tasks)


def _only(plan: StoredPlan, places: set[tuple[str, str]]) -> list[StoredStage]:
    shown = [
        stage.model_copy(update={"tasks": [task for task in stage.tasks if (stage.stage_id, task.task_id) in places]})
        for stage in plan.stages
    ]
    return [stage for stage in shown if stage.tasks]


def _once(tasks: Sequence[StoredTask]) -> list[StoredTask]:
    return list({task.task_id: task for task in tasks}.values())


def _name(stage_id: str, task_id: str) -> str:
    return f"{stage_id}/{task_id}" if task_id else stage_id


def _title(text: str) -> str:
    return shortened(" ".join(text.split()), _TITLE_CHARS)
