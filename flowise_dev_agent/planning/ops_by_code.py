"""Ops by code, where a plan leaves nothing open: its nodes connect, replace and go in one way, its values are all."""

from itertools import pairwise
from typing import Final

from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.forms.ops import to_ops
from flowise_dev_agent.forms.wiring import replacements
from flowise_dev_agent.patch import (
    AddNode,
    Finding,
    GraphIR,
    PatchOp,
    Schemas,
    compile_ops,
    is_same_node,
    validate_flow,
)
from flowise_dev_agent.patch.model.agentflow import START
from flowise_dev_agent.planning.passes.feasibility import is_settled
from flowise_dev_agent.planning.prompt_writing import steps_without_instructions
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import NamedConnection, Plan

REPLY: Final = "directReplyAgentflow"
#: Steps with one way on.
_IN_A_ROW: Final = frozenset(
    {"llmAgentflow", "agentAgentflow", "httpAgentflow", "toolAgentflow", "retrieverAgentflow", REPLY}
)
#: Credentials are bound by the compiler, after the person has chosen them.
_CREDENTIALS = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})


def ops_by_code(request: PatchRequest) -> list[PatchOp] | None:
    """Ops that carry out the plan; None where a choice is left: a connection, a value, code, an approach, a finding, or
    what takes the place of a node.

    An agentflow with branches is left to the model: its plan does not say where they lead.
    """
    plan, base, schemas = request.plan, request.flow.graph, request.nodes.schemas
    if plan.operation not in ("create", "update") or not _go_one_way(plan, base, schemas):
        return None
    if request.findings or request.seed or plan.approaches or request.verdict or not (plan.new_nodes or plan.removals):
        return None
    if any(base.node(node_id) for node_id in plan.new_nodes):
        return None
    if plan.flow_kind == "AGENTFLOW":
        if not _is_row(plan, base):
            return None
        plan = plan.model_copy(update={"connections": _row(plan)})
    try:
        ops = to_ops(
            plan,
            request.nodes,
            existing=request.flow.existing,
            occupied=request.flow.connected_inputs,
            max_ops=request.max_ops,
        )
        graph = compile_ops(base, with_planned_values(ops, plan, base), schemas).graph
    except (ModelOutputError, PatchError):
        return None
    planned = {(value.node_id, value.param) for value in plan.values}
    chosen = {(op.node_id, name) for op in ops if isinstance(op, AddNode) for name in op.params}
    untouched = any(node.existing and is_same_node(node.node_id, base, graph) for node in plan.nodes)
    if untouched or not chosen <= planned or not _problems(graph, plan, schemas) <= _problems(base, plan, schemas):
        return None
    return ops


def _go_one_way(plan: Plan, base: GraphIR, schemas: Schemas) -> bool:
    """True if at most one node of a chatflow can take the place of each that goes, and of no other."""
    there = {node_id: schemas.get(node.name) if (node := base.node(node_id)) else None for node_id in plan.removals}
    gone = {node_id: schema for node_id, schema in there.items() if schema and not schema.is_agentflow}
    new = {one.node_id: schema for one in plan.nodes if not one.existing and (schema := schemas.get(one.node_name))}
    taken = [[id_ for id_ in new if replacements(plan, {old: gone[old]}, {id_: new[id_]})] for old in gone]
    places = [id_ for ids in taken for id_ in ids]
    return len(gone) == len(there) and len({*places}) == len(places) == sum(map(bool, taken))


def _row(plan: Plan) -> list[NamedConnection]:
    """Lines from each step to the next one."""
    return [NamedConnection(source=one.node_id, target=two.node_id) for one, two in pairwise(plan.nodes)]


def _is_row(plan: Plan, base: GraphIR) -> bool:
    """True for a new agentflow whose steps run one after the other, as the person saw them, each with title and
    instructions.

    Code of a step is tried on samples, which only a model gives.
    """
    first, *steps = plan.nodes
    return (
        not base.nodes
        and plan.connections in ([], _row(plan))
        and first.node_name == START
        and bool(steps)
        and all(one.node_name in _IN_A_ROW and one.label for one in steps)
        and all(one.node_name != REPLY for one in steps[:-1])
        and not steps_without_instructions(plan)
    )


def _problems(graph: GraphIR, plan: Plan, schemas: Schemas) -> set[str]:
    if not graph.nodes:
        return set()
    found: list[Finding] = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind=plan.flow_kind)
    return {one.key for one in found if one.code not in _CREDENTIALS and not is_settled(one, plan, schemas)}
