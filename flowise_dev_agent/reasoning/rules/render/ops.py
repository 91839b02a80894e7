"""A plan as ops, from nothing but the plan and the flow that it is for."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent import patch
from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.reasoning.contracts import PatchRequest
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.wiring import replacements, wire, wire_plan


def to_ops(request: PatchRequest) -> list[patch.PatchOp]:
    """The ops that make the flow of `request` into what its plan says. Raises ModelOutputError where they cannot."""
    plan, world = request.plan, World(request.nodes, {}, "en")
    there = world.schemas(request.existing)
    planned = {node.node_id: node for node in plan.nodes}
    new_names = {id_: node.node_name for id_, node in planned.items() if id_ not in request.existing}
    added = world.schemas(new_names)
    if missing := [name for id_, name in new_names.items() if id_ not in added]:
        raise ModelOutputError(f"The plan names nodes that this Flowise does not have: {', '.join(missing)}.")
    pairs = replacements(plan, there, added)
    new = {id_: schema for id_, schema in added.items() if id_ not in pairs.values()}
    # Text that is added to what is there needs the whole of it: code does that later.
    set_ = [value for value in plan.values if value.mode == "set"]
    values = {id_: {one.param: one.value for one in set_ if one.node_id == id_} for id_ in (v.node_id for v in set_)}
    # A field that the stored version of a node does not have yet comes with its upgrade.
    old = [f.where for f in request.findings if f.code == "UNKNOWN_PARAM" and f.where in there]
    ops: list[patch.PatchOp] = [patch.UpgradeNode(node_id=node_id) for node_id in dict.fromkeys(old)]
    for id_, schema in new.items():
        mine = values.pop(id_, {})
        paths = {name: value for name, value in mine.items() if "." in name or "[" in name}
        # The plan of a model may leave out what a new node cannot do without.
        needed = {} if schema.is_agentflow else parameters(schema, Said(Reading("", "en")), language="en")
        params = {**needed, **{name: value for name, value in mine.items() if name not in paths}}
        ops.append(patch.AddNode(node_name=schema.name, node_id=id_, label=planned[id_].label or None, params=params))
        ops += [patch.SetParam(node_id=id_, param_name=name, value=value) for name, value in paths.items()]
        ops += _bound(request, schema, id_, params)
    ops += [patch.RemoveNode(node_id=id_) for id_ in plan.removals if id_ in request.existing and id_ not in pairs]
    ops += [patch.ReplaceNode(node_id=old, node_name=added[id_].name, new_node_id=id_) for old, id_ in pairs.items()]
    ops += [
        patch.SetLabel(node_id=id_, label=node.label) for id_, node in planned.items() if node.label and id_ not in new
    ]
    for id_, mine in values.items():
        ops += [patch.SetParam(node_id=id_, param_name=name, value=value) for name, value in mine.items()]
        schema = there.get(id_)
        ops += _bound(request, schema, id_, mine) if schema else []
        if request.seed and schema and (needed_type := credential_type(schema, plan.credential_requirements)):
            ops.append(patch.BindCredential(node_id=id_, credential_type=needed_type))
    wiring = wire_plan(plan, there, added, pairs, request.occupied)
    if problem := [*(f"{node}.{anchor}" for node, anchor in wiring.unmet), *wiring.loose]:
        raise ModelOutputError(f"The rules cannot connect every node of this plan: {', '.join(problem)}.")
    ops += wiring.ops
    if not ops and request.seed:
        # A pattern that is the whole flow: a connection that is there may be made again.
        ops += wire(there).connections
    if not (ops or plan.values or plan.new_name):
        raise ModelOutputError("The rules find nothing to change for this plan.")
    if len(ops) > request.max_ops:
        raise ModelOutputError(f"The plan takes {len(ops)} ops, at most {request.max_ops} are allowed.")
    return ops


def _bound(
    request: PatchRequest, schema: patch.NodeSchema, node_id: str, values: Mapping[str, Any]
) -> list[patch.PatchOp]:
    """Credentials for the models and tools that these values put inside an agentflow node."""
    before = {name for place, name in request.inside.items() if place.startswith(f"{node_id}.")}
    found: list[patch.PatchOp] = []
    for nested in nested_components(schema.input_definitions, values) if schema.is_agentflow else ():
        inner, index = request.nodes.get(nested.component), nested.path.partition("[")[2].partition("]")[0]
        new = inner if not (index.isdigit() and nested.component in before) else None
        if new and (needed := credential_type(new, request.plan.credential_requirements)):
            found.append(patch.BindCredential(node_id=node_id, credential_type=needed, path=nested.path))
    return found
