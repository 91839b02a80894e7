"""Values that a person approved: a repair that changes one of them has to ask, and shows what it changed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.nested import Steps, parse_path, value_at
from flowise_dev_agent.planning.plan_checks import stands
from flowise_dev_agent.schemas.plan import Plan, PlannedValue


def changed_values(plan: Plan, agreed: Sequence[PlannedValue], base: GraphIR) -> list[PlannedValue]:
    """Values of a plan that the flow so far (`base`) does not hold, and that differ from the approved ones of the same
    fields.
    """
    near = _by_field(agreed)
    return [
        new
        for new in plan.values
        if not stands(new, base) and any(_differs(one, new) for one in near[field_of(new)] if _same_place(one, new))
    ]


def with_agreed_values(plan: Plan, agreed: Sequence[PlannedValue], base: GraphIR) -> Plan:
    """Plan that also holds the approved values that it leaves out and the flow so far has, so that no op changes
    them.
    """
    near, removed = _by_field(plan.values), {*plan.removals}
    kept = [
        one
        for one in agreed
        if one.mode == "set" and one.node_id not in removed and stands(one, base)
        if not any(_same_place(one, new) for new in near[field_of(one)])
    ]
    return plan.model_copy(update={"values": [*plan.values, *kept]}) if kept else plan


def field_of(value: PlannedValue) -> tuple[str, object]:
    """The field of a node that a value is for, or is a part of."""
    return value.node_id, steps_of(value)[0]


def _by_field(values: Sequence[PlannedValue]) -> Mapping[tuple[str, object], list[PlannedValue]]:
    found: defaultdict[tuple[str, object], list[PlannedValue]] = defaultdict(list)
    for one in values:
        found[field_of(one)].append(one)
    return found


def _same_place(one: PlannedValue, other: PlannedValue) -> bool:
    """True if both set the same field, or one sets a part of the other."""
    at, other_at = steps_of(one), steps_of(other)
    depth = min(len(at), len(other_at))
    return one.node_id == other.node_id and at[:depth] == other_at[:depth]


def _differs(agreed: PlannedValue, new: PlannedValue) -> bool:
    """True if a value changes what was approved for its place; what it adds to rows and settings changes nothing."""
    at, new_at = steps_of(agreed), steps_of(new)
    old: Any = value_at({"": agreed.value}, ("", *new_at[len(at) :]))
    now: Any = value_at({"": new.value}, ("", *at[len(new_at) :]))
    return old is not None and not held(now, old)


def steps_of(value: PlannedValue) -> Steps:
    """The steps from the node to the place that a value is for."""
    return parse_path(value.param) or (value.param,)
