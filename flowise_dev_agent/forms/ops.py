"""Ops of a plan, from the plan and the flow that it changes, without a model."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from flowise_dev_agent import patch
from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.forms.defaults import parameters
from flowise_dev_agent.forms.wiring import replacements, wire, wire_plan
from flowise_dev_agent.knowledge.credential_requirements import credential_type
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import text


def to_ops(
    plan: Plan,
    nodes: NodeStore,
    *,
    existing: Mapping[str, str],
    occupied: frozenset[str] = frozenset(),
    inside: Collection[tuple[str, str]] = (),
    outdated: Sequence[str] = (),
    seeded: bool = False,
    max_ops: int = 60,
) -> list[patch.PatchOp]:
    """Build the ops that change a flow according to its plan.

    `existing` is node id -> type of what the flow holds, `occupied` its connected inputs ("id.input"), `inside` the
    models and tools within its agentflow nodes as (node id, type). `outdated` nodes lack a field that the plan sets.
    `seeded`: the flow was taken over from a pattern, which has no credentials.

    Raises:
        ModelOutputError: the plan leaves open how its nodes are connected, or asks for something that is not there.
    """
    there = _schemas(existing, nodes)
    planned = {node.node_id: node for node in plan.nodes}
    new_names = {id_: node.node_name for id_, node in planned.items() if id_ not in existing}
    added = _schemas(new_names, nodes)
    if missing := [name for id_, name in new_names.items() if id_ not in added]:
        raise ModelOutputError(text("error.plan_unknown_nodes", names=missing))
    pairs = replacements(plan, there, added)
    new = {id_: schema for id_, schema in added.items() if id_ not in pairs.values()}
    # Appended text needs the existing text, so code applies it later.
    set_ = [value for value in plan.values if value.mode == "set"]
    values = {id_: {one.param: one.value for one in set_ if one.node_id == id_} for id_ in (v.node_id for v in set_)}
    # A field that the stored version of a node lacks comes with the node's upgrade.
    ops: list[patch.PatchOp] = [patch.UpgradeNode(node_id=id_) for id_ in dict.fromkeys(outdated) if id_ in there]
    for id_, schema in new.items():
        mine = values.pop(id_, {})
        paths = {name: value for name, value in mine.items() if "." in name or "[" in name}
        plain = {name: value for name, value in mine.items() if name not in paths}
        # A model's plan may leave out required values of a new node.
        params = plain if schema.is_agentflow else {**parameters(schema, plain), **plain}
        ops.append(patch.AddNode(node_name=schema.name, node_id=id_, label=planned[id_].label or None, params=params))
        ops += [patch.SetParam(node_id=id_, param_name=name, value=value) for name, value in paths.items()]
        ops += _bind_nested(plan, nodes, inside, schema, id_, params)
    ops += [patch.RemoveNode(node_id=id_) for id_ in plan.removals if id_ in existing and id_ not in pairs]
    ops += [patch.ReplaceNode(node_id=old, node_name=added[id_].name, new_node_id=id_) for old, id_ in pairs.items()]
    ops += [
        patch.SetLabel(node_id=id_, label=node.label) for id_, node in planned.items() if node.label and id_ not in new
    ]
    for id_, mine in values.items():
        ops += [patch.SetParam(node_id=id_, param_name=name, value=value) for name, value in mine.items()]
        schema = there.get(id_)
        ops += _bind_nested(plan, nodes, inside, schema, id_, mine) if schema else []
        if seeded and schema and (needed_type := credential_type(schema, plan.credential_requirements)):
            ops.append(patch.BindCredential(node_id=id_, credential_type=needed_type))
    wiring = wire_plan(plan, there, added, pairs, occupied)
    if problem := [*(f"{node}.{anchor}" for node, anchor in (*wiring.unmet, *wiring.open)), *wiring.loose]:
        raise ModelOutputError(
            text("error.plan_connections", names=problem),
            hint=text("error.plan_connections_hint"),
        )
    ops += wiring.ops
    if not ops and seeded:
        # A pattern that is the whole flow: repeating an existing connection is harmless.
        ops += wire(there).connections
    if not (ops or plan.values or plan.new_name):
        raise ModelOutputError(text("error.plan_nothing"))
    if len(ops) > max_ops:
        raise ModelOutputError(text("error.plan_too_many_ops", number=len(ops), limit=max_ops))
    return ops


def _schemas(names: Mapping[str, str], nodes: NodeStore) -> dict[str, patch.NodeSchema]:
    """Map node ids to schemas; types unknown to the server are left out."""
    return {id_: schema for id_, name in names.items() if (schema := nodes.get(name))}


def _bind_nested(
    plan: Plan,
    nodes: NodeStore,
    inside: Collection[tuple[str, str]],
    schema: patch.NodeSchema,
    node_id: str,
    values: Mapping[str, Any],
) -> list[patch.PatchOp]:
    """BindCredential ops for the models and tools that these values put inside an agentflow node."""
    found: list[patch.PatchOp] = []
    for nested in nested_components(schema.input_definitions, values) if schema.is_agentflow else ():
        inner, index = nodes.get(nested.component), nested.path.partition("[")[2].partition("]")[0]
        new = inner if not (index.isdigit() and (node_id, nested.component) in inside) else None
        if new and (needed := credential_type(new, plan.credential_requirements)):
            found.append(patch.BindCredential(node_id=node_id, credential_type=needed, path=nested.path))
    return found
