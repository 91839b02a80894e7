"""Settings that the planner chose by itself and that never reach the planned model: they are no part of the plan."""

import re
from collections.abc import Iterable
from typing import Any, Final

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.model.nested import parse_path, value_at, without_value
from flowise_dev_agent.patch.validate.providers import SETTING_IGNORED, ignored_settings
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.feasibility import flow_after
from flowise_dev_agent.schemas.plan import Criterion, Part, PlannedValue

#: Letters of a field's name by which people name it in their language: Temperatur, température.
_STEM: Final = 4


def idle_settings(context: PlanContext) -> PlanContext:
    """Take out settings without effect that nobody asked for, with what parts and criteria say of them."""
    plan = context.plan
    if context.by_form or not context.is_open:
        return context
    try:
        graph = flow_after(plan, context.base, context.schemas)
    except PatchError:
        return context
    ignored = ignored_settings(graph) if graph else frozenset[str]()
    idle = {path for path in ignored if not _is_asked_for(path, plan.parts, context.words)}
    if not idle:
        return context
    gone = {f"{one.node_id}.{one.param}" for one in plan.values} & idle
    return context.changed(
        values=[kept for one in plan.values if (kept := _without(one, idle))],
        parts=[one.model_copy(update={"values": _left(one.values, gone)}) for one in plan.parts],
        criteria=[
            one.model_copy(update={"settings": _left(one.settings, gone)})
            for one in plan.criteria
            if not _is_only_about(one, gone)
        ],
        findings=[
            one for one in plan.findings if one.code != SETTING_IGNORED or f"{one.where}.{one.field}" not in idle
        ],
    )


def _is_asked_for(path: str, parts: Iterable[Part], words: Iterable[str]) -> bool:
    """True for a field that the person names, or that is all that a part of theirs has."""
    stem = path.rpartition(".")[2].casefold()[:_STEM]
    named = any(re.search(rf"\b{re.escape(stem)}", one.casefold()) for one in words)
    return named or any(one.values == [path] and {*one.nodes} <= {path.partition(".")[0]} for one in parts)


def _without(value: PlannedValue, idle: Iterable[str]) -> PlannedValue | None:
    """The value without idle settings inside; None for one that is such a setting."""
    around, kept = parse_path(value.param) or (), value.value
    for path in idle:
        node_id, _, param = path.partition(".")
        steps = parse_path(param) or ()
        if node_id != value.node_id or steps[: len(around)] != around:
            continue
        if steps == around:
            return None
        holder: Any = {"": kept}
        inside = ("", *steps[len(around) :])
        if value_at(holder, inside) is not None:
            kept = without_value(holder, inside)[""]
    return value.model_copy(update={"value": kept})


def _is_only_about(criterion: Criterion, gone: set[str]) -> bool:
    return bool(criterion.settings) and gone.issuperset(criterion.settings) and not criterion.tests


def _left(paths: Iterable[str], gone: set[str]) -> list[str]:
    return [path for path in paths if path not in gone]
