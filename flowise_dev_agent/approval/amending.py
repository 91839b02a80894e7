"""Amend an approved plan: add what the op writer lacks, drop the new nodes that it gives up."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from flowise_dev_agent.approval.agreed_values import field_of, steps_of
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.patch.model.nested import Steps, value_at, with_value
from flowise_dev_agent.schemas.plan import (
    BESIDE_NODES,
    AmendAnswer,
    NamedConnection,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
)


def amended(
    plan: Plan, answer: AmendAnswer, more_credentials: Iterable[str], schemas: Schemas, *, reason: str = ""
) -> Plan:
    """Apply an amendment of the op writer to the plan: add what it lacks, drop the new nodes that it gives up, for the
    reason given or the amendment's own. The capability is not updated.
    """
    dropped = plan.new_nodes & {*answer.removals}
    if dropped:
        plan = _without_nodes(plan, dropped, reason or answer.reason, schemas)
        answer = answer.model_copy(update={"removals": [id_ for id_ in answer.removals if id_ not in dropped]})
    touched = {*answer.removals, *(node.node_id for node in answer.nodes), *(value.node_id for value in answer.values)}
    known = {node.node_id for node in plan.nodes}
    drawn = [one for one in plan.connections if not any(cut.takes(one) for cut in answer.disconnections)]
    return plan.model_copy(
        update={
            "nodes": [*plan.nodes, *(node for node in answer.nodes if node.node_id not in known)],
            "removals": [*dict.fromkeys([*plan.removals, *answer.removals])],
            "kept": [id_ for id_ in plan.kept if id_ not in touched],
            "connections": [*drawn, *(one for one in answer.connections if one not in drawn)],
            # A line of the plan that is taken back was never in the flow.
            "disconnections": [
                *plan.disconnections,
                *(
                    one
                    for one in answer.disconnections
                    if one not in plan.disconnections and not any(one.takes(line) for line in plan.connections)
                ),
            ],
            "values": _with_values(plan.values, answer.values),
            "new_tools": [*{one.name: one for one in (*plan.new_tools, *answer.new_tools)}.values()],
            "credential_requirements": [*dict.fromkeys([*plan.credential_requirements, *more_credentials])],
        }
    )


def _with_values(planned: Sequence[PlannedValue], more: Sequence[PlannedValue]) -> list[PlannedValue]:
    """Planned values with newer ones, so that each field has one value.

    A newer value of a whole field replaces those of its rows; a newer value of a row goes into the planned whole. Null
    takes back what the plan has.
    """
    values = dict(enumerate(planned))
    numbers: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    for number, one in values.items():
        numbers[field_of(one)].append(number)
    for number, new in enumerate(more, len(planned)):
        steps, near = steps_of(new), [one for one in numbers[field_of(new)] if one in values]
        at = None if new.value is None else next((one for one in near if _holds(values[one], new, steps)), None)
        if at is not None:
            inside = steps[len(steps_of(values[at])) :]
            values[at] = values[at].model_copy(update={"value": with_value(values[at].value, inside, new.value)})
            continue
        for one in near:
            if steps_of(values[one])[: len(steps)] == steps:
                del values[one]
        if new.value is not None:
            values[number] = new
            numbers[field_of(new)].append(number)
    return [*values.values()]


def _holds(one: PlannedValue, new: PlannedValue, steps: Steps) -> bool:
    """True if a planned value is a list or an object that has the place of the newer one."""
    around = steps_of(one)
    if {one.mode, new.mode} != {"set"} or steps[: len(around)] != around:
        return False
    *path, _ = steps[len(around) :] or ("",)
    return len(steps) > len(around) and isinstance(value_at({"": one.value}, ("", *path)), Mapping)


def _without_nodes(plan: Plan, dropped: Collection[str], reason: str, schemas: Schemas) -> Plan:
    """Remove nodes from the plan, with the values, credentials and parts that only they needed. Its lines close over
    them, and one of the flow that made room for them stays.
    """
    lines = _closed(plan.connections, dropped)
    back = {one.ends for one in lines if one not in plan.connections} & {one.ends for one in plan.disconnections}
    nodes = [node for node in plan.nodes if node.node_id not in dropped]
    values = [value for value in plan.values if value.node_id not in dropped]
    gone = _taken_by([node for node in plan.nodes if node not in nodes], plan.values, schemas)
    stays = _taken_by(nodes, values, schemas)
    fields = {*(f"{value.node_id}.{value.param}" for value in values), *BESIDE_NODES}
    parts: list[Part] = []
    for part in plan.parts:
        left = {
            "nodes": [id_ for id_ in part.nodes if id_ not in dropped],
            "values": [field for field in part.values if field in fields],
        }
        if part.state == "covered" and (part.nodes or part.values) and not any(left.values()):
            left |= {"state": "not_possible", "reason": reason}
        parts.append(part.model_copy(update=left))
    tests = [
        test.model_copy(
            update={
                "expect": test.expect.model_copy(
                    update={
                        "tools": [id_ for id_ in test.expect.tools if id_ not in dropped],
                        "branch": [id_ for id_ in test.expect.branch if id_ not in dropped],
                    }
                )
            }
        )
        for test in plan.tests
    ]
    return plan.model_copy(
        update={
            "nodes": nodes,
            "values": values,
            "credential_requirements": [
                type_ for type_ in plan.credential_requirements if type_ in stays or type_ not in gone
            ],
            "connections": [one for one in lines if one.ends not in back],
            "disconnections": [one for one in plan.disconnections if one.ends not in back],
            "parts": parts,
            "tests": tests,
        }
    )


def _closed(lines: Sequence[NamedConnection], dropped: Collection[str]) -> list[NamedConnection]:
    """Lines with what leads to a dropped node leading to the one node behind it; none where there are several."""
    behind: defaultdict[str, set[str]] = defaultdict(set)
    for one in lines:
        behind[one.source].add(one.target)
    closed: list[NamedConnection] = []
    for one in lines:
        target, seen = one.target, set[str]()
        while target in dropped and target not in seen and len(behind[target]) == 1:
            seen.add(target)
            (target,) = behind[target]
        if one.source not in dropped and target not in dropped:
            closed.append(one.model_copy(update={"target": target}) if seen else one)
    return closed


def _taken_by(nodes: Sequence[PlannedNode], values: Iterable[PlannedValue], schemas: Schemas) -> set[str]:
    """Credential types of the nodes, and of the models and tools named in their values."""
    ids = {node.node_id for node in nodes}
    names = {node.node_name for node in nodes}
    names |= {text for value in values if value.node_id in ids for text in _words(value.value)}
    return {type_ for name in names if (schema := schemas.get(name)) for type_ in schema.credential_names}


def _words(value: JsonValue) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)
