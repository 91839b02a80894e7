"""Ops of a chatflow by code, where a plan leaves nothing open: its nodes connect in one way, and its values are all."""

from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.forms.ops import to_ops
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
from flowise_dev_agent.planning.passes.feasibility import is_settled
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import Plan

#: Credentials are bound by the compiler, after the person has chosen them.
_CREDENTIALS = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})


def ops_by_code(request: PatchRequest) -> list[PatchOp] | None:
    """Ops that carry out the plan; None where a choice is left: a connection, a value, code, an approach, a finding.

    An agentflow is left to the model: its plan does not say where branches lead.
    """
    plan, base, schemas = request.plan, request.flow.graph, request.nodes.schemas
    if plan.flow_kind != "CHATFLOW" or plan.operation not in ("create", "update") or plan.removals:
        return None
    if request.findings or request.seed or plan.approaches or request.verdict or not plan.new_nodes:
        return None
    if any(base.node(node_id) for node_id in plan.new_nodes):
        return None
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


def _problems(graph: GraphIR, plan: Plan, schemas: Schemas) -> set[str]:
    if not graph.nodes:
        return set()
    found: list[Finding] = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind="CHATFLOW")
    return {one.key for one in found if one.code not in _CREDENTIALS and not is_settled(one, plan, schemas)}
