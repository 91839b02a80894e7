"""Replace the source of a single-source input by a planned node."""

from typing import NamedTuple

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR
from flowise_dev_agent.patch.model.definitions import type_set
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.schemas.plan import Plan, PlannedNode


class _Place(NamedTuple):
    """Single-source input, and the node connected to it."""

    source: FlowNode
    target: FlowNode
    name: str


def replaced_sources(context: PlanContext) -> PlanContext:
    """Remove nodes that a new node replaces at a single-source input."""
    plan, findings = with_replaced_sources(context.plan, context.request)
    return context.having(plan).found(findings)


def with_replaced_sources(plan: Plan, request: PlanRequest) -> tuple[Plan, list[Finding]]:
    """Add the removals that follow from new nodes, and a finding for each ambiguous one.

    A node is removed if it has the new node's category and feeds only the input that both fit.
    """
    base = request.flow.graph
    if plan.declined:
        return plan, []
    removals, findings = [*plan.removals], list[Finding]()
    used = {*plan.kept, *(node.node_id for node in plan.nodes)}
    for node in plan.nodes:
        if node.existing or not (places := _taken_places(node, plan, removals, base, request.nodes)):
            continue
        first = places[0]
        feeds = {(edge.target, edge.target_handle) for edge in base.edges if edge.source == first.source.id}
        if len(places) == 1 and len(feeds) == 1 and first.source.id not in used:
            removals.append(first.source.id)
            continue
        taken = ", ".join(f"{place.source.id} at {place.target.id}.{place.name}" for place in places)
        findings.append(
            Finding(
                code="ONE_SOURCE",
                severity="warning",
                detail=f"{node.node_id} belongs at an input that takes one source and has one: {taken}.",
                where=node.node_id,
                hint="Name in `removals` what it replaces, or plan the node that takes it.",
            )
        )
    return plan.model_copy(update={"removals": removals}), findings


def _taken_places(node: PlannedNode, plan: Plan, removals: list[str], base: GraphIR, store: NodeStore) -> list[_Place]:
    """Occupied inputs that a new node fits; empty if it fits a free input."""
    schema = store.get(node.node_name)
    types = {name for output in schema.outputs for name in output.base_classes} if schema else set[str]()
    others = [store.get(other.node_name) for other in plan.nodes if not other.existing and other is not node]
    if schema is None or any(types & set(anchor.types) for other in others if other for anchor in other.anchors):
        return []
    stays = {one.id: one for one in base.nodes if one.id not in removals and not one.is_agentflow}
    for target in stays.values():
        for entry in target.anchors:
            is_free = entry.get("list") or is_empty(target.inputs.get(entry["name"]))
            if is_free and types & type_set(entry["type"]):
                return []
    places: list[_Place] = []
    for edge in base.edges:
        source, target = base.node(edge.source), stays.get(edge.target)
        entry = target.input_at(edge.target_handle) if target else None
        if source is None or target is None or entry is None or source.category != schema.category:
            continue
        if source.id in removals:
            return []
        if entry in target.anchors and types & type_set(entry["type"]):
            places.append(_Place(source, target, entry["name"]))
    return places
