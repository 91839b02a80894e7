"""Compare a compiled flow with its plan: nothing in the plan is left out."""

from typing import Any, Final

from flowise_dev_agent.approval.lines import lines_named, places
from flowise_dev_agent.patch import (
    Finding,
    FlowNode,
    GraphIR,
    is_same_node,
)
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.nested import parse_path, value_at, with_bound
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.values import on_one_line
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import (
    Plan,
    PlannedValue,
)

#: Characters of a value in a finding.
_SHOWN: Final = 80


def not_met(plan: Plan, before: GraphIR, after: GraphIR) -> list[Finding]:
    """Findings for promises of the approved plan that the compiled flow does not keep."""
    nodes, existed = {node.id: node for node in after.nodes}, {node.id: node for node in before.nodes}
    there, after_ends = places(plan, before, after), {edge.ends for edge in after.edges}
    problems: list[tuple[str, str, str]] = [
        (node.node_id, f"the plan adds {node.node_name} as '{node.node_id}', and it is not in the flow", "Add it.")
        for node in plan.nodes
        if node.node_id not in existed and node.node_id not in there
    ]
    problems += [
        (node_id, f"the plan removes or replaces '{node_id}', and it is still in the flow", "Remove or replace it.")
        for node_id in plan.removals
        if node_id in nodes and node_id in existed and nodes[node_id].name == existed[node_id].name
    ]
    problems += [
        (
            one.target,
            f"the plan takes the line from '{one.source}' to '{one.target}' away, and it is there",
            "Disconnect.",
        )
        for one in plan.disconnections
        if not after_ends.isdisjoint(edge.ends for edge in lines_named(one, before))
    ]
    problems += [
        (node_id, f"the plan keeps '{node_id}' unchanged, and it is not", "Leave it as it is.")
        for node_id in plan.kept
        if node_id in existed and (node_id not in nodes or _differ(existed[node_id], nodes[node_id]))
    ]
    for value in plan.values:
        node = there.get(value.node_id) or nodes.get(value.node_id)
        if node and (text := _unmet_value(value, node, existed.get(value.node_id))):
            problems.append((value.node_id, text, "Set it as the plan says."))
    return [
        Finding(code="PLAN_NOT_MET", severity="error", detail=f"{text[0].upper()}{text[1:]}.", where=where, hint=hint)
        for where, text, hint in problems
    ]


def untouched(plan: Plan, original: GraphIR, after: GraphIR) -> list[Finding]:
    """Warnings for nodes that a plan says it changes and that are as they were, with the same connections."""
    return [
        Finding(
            code="PLANNED_NODE_UNCHANGED",
            severity="warning",
            detail=f"The plan changes '{node.node_id}', and nothing about it or its connections changes.",
            where=node.node_id,
            hint="Change or connect it as the plan says, with all ops of the last answer. If it is right as it is, "
            "give the same ops again.",
        )
        for node in (plan.nodes if plan.operation == "update" else ())
        if node.existing and is_same_node(node.node_id, original, after)
    ]


def _differ(one: FlowNode, other: FlowNode) -> bool:
    """True if the settings of two states of a node differ; the neighbours of a kept node may change."""
    fields = {*one.inputs, *other.inputs} - {
        name for node in (one, other) for name, value in node.inputs.items() if referenced(value)
    }
    return any(one.inputs.get(name) != other.inputs.get(name) for name in fields)


def _unmet_value(value: PlannedValue, node: FlowNode, former: FlowNode | None) -> str | None:
    steps = parse_path(value.param)
    if steps is None:
        return None
    stored = value_at(node.inputs, steps)
    wanted = value.value
    what = f"`{value.param}` of '{value.node_id}'"
    if value.mode == "append":
        if str(wanted).strip() not in str(stored):
            return f"{what} does not have the text that the plan adds"
        old = value_at(former.inputs, steps) if former else None
        return None if str(old or "").strip() in str(stored) else f"{what} loses the text that was there"
    if node.name == v2.LOOP and value.param == v2.LOOP_TARGET:
        # Code appends the title to the id.
        same = v2.loop_target_id(str(stored)) == v2.loop_target_id(str(wanted))
    else:
        same = held(stored, with_bound(wanted, stored))
    if same:
        return None
    return f"{what} is {in_short(stored)}, and the plan says {in_short(wanted)}"


def in_short(value: Any) -> str:
    """A value on one line, quoted, as it stands in a finding."""
    return f"'{shortened(on_one_line(str(value)), _SHOWN)}'"
