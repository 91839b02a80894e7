"""Details of a plan for its approval: the plan compared with the current flow."""

from pydantic import JsonValue

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.planning.added_text import with_added_text
from flowise_dev_agent.planning.equal_values import same_value
from flowise_dev_agent.planning.plan_findings import replaced_text
from flowise_dev_agent.redaction import MASK, looks_secret
from flowise_dev_agent.schemas.plan import Plan, PlannedValue
from flowise_dev_agent.schemas.plan_text import NamedNode, ShownPlan, ShownValue, capability_words


def plan_details(plan: Plan, base: GraphIR, language: str = "en") -> ShownPlan:
    """Planned values next to the current ones, and names of nodes; possible secrets are not shown."""
    types = {node.node_id: node.node_name for node in plan.nodes}
    return ShownPlan(
        values=[_shown(value, types, base) for value in plan.values],
        removed=_named(plan.removals, base),
        kept=_named(plan.kept, base),
        allows=capability_words(plan.capability, language),
    )


def _shown(value: PlannedValue, types: dict[str, str], base: GraphIR) -> ShownValue:
    node, steps = base.node(value.node_id), parse_path(value.param)
    stored: JsonValue = value_at(node.inputs, steps) if node and steps else None
    new = with_added_text(stored, [str(value.value)]) if value.mode == "append" else value.value
    old = None if stored in (None, "") or same_value(stored, new) else stored
    return ShownValue(
        node_id=value.node_id,
        node=node.label if node else types.get(value.node_id, value.node_id),
        param=value.param,
        old=_safe(value.param, old),
        new=_safe(value.param, new),
        loses_text=old is not None and replaced_text(value, base) is not None,
    )


def _safe(param: str, value: JsonValue) -> JsonValue:
    return MASK if value is not None and looks_secret(param.rpartition(".")[2], value) else value


def _named(ids: list[str], base: GraphIR) -> list[NamedNode]:
    return [
        NamedNode(node_id=id_, node_name=node.name if node else "", label=node.label if node else "")
        for id_ in ids
        for node in [base.node(id_)]
    ]
