"""Values that a person approved: a repair that changes one of them has to ask, and shows what it changed."""

from collections.abc import Sequence
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
    return [
        new
        for new in plan.values
        if not stands(new, base) and any(_differs(one, new) for one in agreed if _same_place(one, new))
    ]


def with_agreed_values(plan: Plan, agreed: Sequence[PlannedValue], base: GraphIR) -> Plan:
    """Plan that also holds the approved values that it leaves out and the flow so far has, so that no op changes
    them.
    """
    kept = [
        one
        for one in agreed
        if one.mode == "set" and one.node_id not in plan.removals and stands(one, base)
        if not any(_same_place(one, new) for new in plan.values)
    ]
    return plan.model_copy(update={"values": [*plan.values, *kept]}) if kept else plan


def _same_place(one: PlannedValue, other: PlannedValue) -> bool:
    """True if both set the same field, or one sets a part of the other."""
    at, other_at = _steps(one), _steps(other)
    depth = min(len(at), len(other_at))
    return one.node_id == other.node_id and at[:depth] == other_at[:depth]


def _differs(agreed: PlannedValue, new: PlannedValue) -> bool:
    """True if a value changes what was approved for its place; what it adds to rows and settings changes nothing."""
    at, new_at = _steps(agreed), _steps(new)
    old: Any = value_at({"": agreed.value}, ("", *new_at[len(at) :]))
    now: Any = value_at({"": new.value}, ("", *at[len(new_at) :]))
    return old is not None and not held(now, old)


def _steps(value: PlannedValue) -> Steps:
    return parse_path(value.param) or (value.param,)
