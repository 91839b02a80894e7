"""Ops by code, where a plan leaves nothing open: its nodes connect, replace and go in one way, its values are all."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.forms.ops import to_ops
from flowise_dev_agent.forms.step_plans import HTTP
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
from flowise_dev_agent.patch.model.agentflow import BRANCHES_FROM, START
from flowise_dev_agent.planning.made_with_flow import stand_ins, with_ids
from flowise_dev_agent.planning.passes.feasibility import is_settled
from flowise_dev_agent.planning.planned_lines import without_way
from flowise_dev_agent.planning.prompt_writing import steps_without_instructions
from flowise_dev_agent.planning.remarks import CREDENTIAL_CODES, is_remark
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import Plan, PlannedNode

_WITHOUT_BODY: Final = ("GET", "DELETE")


def ops_by_code(request: PatchRequest) -> list[PatchOp] | None:
    """Ops that carry out the plan; None where a choice is left: a connection, a value, an approach, a finding, or what
    takes the place of a node.
    """
    plan, base, schemas = request.plan, request.flow.graph, request.nodes.schemas
    if plan.operation not in ("create", "update") or not _go_one_way(plan, base, schemas):
        return None
    if request.findings or request.seed or plan.approaches or request.verdict:
        return None
    if not (plan.new_nodes or plan.removals or plan.connections or plan.disconnections or plan.new_tools):
        return None
    if any(base.node(node_id) for node_id in plan.new_nodes):
        return None
    if plan.flow_kind == "MULTIAGENT" and plan.new_nodes:
        return None
    if plan.flow_kind == "AGENTFLOW" and (not _is_settled(plan) or without_way(plan, base, schemas)):
        return None
    try:
        ops = to_ops(
            plan,
            request.nodes,
            existing=request.flow.existing,
            occupied=request.flow.connected_inputs,
            max_ops=request.max_ops,
        )
        ids = stand_ins(plan)
        made = [with_ids(op, ids) for op in with_planned_values(ops, plan, base)]
        graph = compile_ops(base, made, schemas).graph
    except (ModelOutputError, PatchError):
        return None
    planned = {(value.node_id, value.param) for value in plan.values}
    chosen = {(op.node_id, name) for op in ops if isinstance(op, AddNode) for name in op.params}
    untouched = any(node.existing and is_same_node(node.node_id, base, graph) for node in plan.nodes)
    if untouched or not chosen <= planned or not _problems(graph, plan, schemas) <= _problems(base, plan, schemas):
        return None
    return ops


def _go_one_way(plan: Plan, base: GraphIR, schemas: Schemas) -> bool:
    """True if at most one node of a chatflow can take the place of each that goes, and of no other; steps of an
    agentflow go where none comes.
    """
    there = {node_id: schemas.get(node.name) if (node := base.node(node_id)) else None for node_id in plan.removals}
    if plan.flow_kind == "AGENTFLOW":
        return not (there and plan.new_nodes)
    new = {one.node_id: schema for one in plan.nodes if not one.existing and (schema := schemas.get(one.node_name))}
    gone = {node_id: schema for node_id, schema in there.items() if schema}
    taken = [[id_ for id_ in new if replacements(plan, {old: gone[old]}, {id_: new[id_]})] for old in gone]
    places = [id_ for ids in taken for id_ in ids]
    return len(gone) == len(there) and len({*places}) == len(places) == sum(map(bool, taken))


def _is_settled(plan: Plan) -> bool:
    """True for new steps that the person saw with title, instructions and branches."""
    given = {(value.node_id, value.param): value.value for value in plan.values}
    new = [one for one in plan.nodes if not one.existing and one.node_name != START]
    return all(one.label and _is_decided(one, given) for one in new) and not steps_without_instructions(plan)


def _is_decided(step: PlannedNode, given: Mapping[tuple[str, str], JsonValue]) -> bool:
    """True if the plan says what the default of a field does not: the branches of a step, what an HTTP step does."""
    rows = BRANCHES_FROM.get(step.node_name)
    if step.node_name == HTTP:
        method = given.get((step.node_id, "method"))
        return method in _WITHOUT_BODY or (method is not None and (step.node_id, "body") in given)
    return rows is None or any(id_ == step.node_id and param.partition("[")[0] == rows for id_, param in given)


def _problems(graph: GraphIR, plan: Plan, schemas: Schemas) -> set[str]:
    """Keys of the findings that ops could answer. Credentials are bound by the compiler, after the person has chosen
    them.
    """
    if not graph.nodes:
        return set()
    found: list[Finding] = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind=plan.flow_kind)
    return {
        one.key
        for one in found
        if (one.severity == "error" or is_remark(one))
        and one.code not in CREDENTIAL_CODES
        and not is_settled(one, plan, schemas)
    }
