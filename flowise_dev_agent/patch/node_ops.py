"""AddNode, SetParam and BindCredential: what ops do to single nodes."""

from typing import Any

from flowise_dev_agent.patch.batch import Batch, connect_example, next_id, such_as
from flowise_dev_agent.patch.graph import FlowNode, dump_json
from flowise_dev_agent.patch.node_data import STICKY_NOTE, init_node_data
from flowise_dev_agent.patch.ops import AddNode, BindCredential, SetParam
from flowise_dev_agent.patch.references import NODE_ID
from flowise_dev_agent.patch.schema import NodeSchema
from flowise_dev_agent.patch.suggest import closest, resolve_case
from flowise_dev_agent.patch.uuids import is_uuid
from flowise_dev_agent.patch.values import normalize

# --- AddNode -----------------------------------------------------------------------------------------------------


def add_node(batch: Batch, op: AddNode) -> None:
    if not NODE_ID.fullmatch(op.node_id):
        batch.failed.add(op.node_id)
        batch.fail(
            "BAD_NODE_ID",
            f"{op.node_id!r} cannot be a node id: only letters, digits and _ are allowed.",
            name="node_id",
            hint=f"For example {op.node_name}_0.",
        )
        return
    if op.node_id in batch.nodes:
        batch.fail(
            "NODE_EXISTS",
            f"A node {op.node_id!r} exists already.",
            where=op.node_id,
            name="node_id",
            hint=f"Use SetParam and Connect on it, or add another node as {next_id(op.node_id, batch.nodes)!r}.",
        )
        return
    schema = _schema(batch, op)
    if schema is None:
        batch.failed.add(op.node_id)
        return
    data = init_node_data(schema, op.node_id)
    if op.label:
        data["label"] = op.label
    raw: dict[str, Any] = {
        "id": op.node_id,
        "type": STICKY_NOTE if schema.name == STICKY_NOTE else "customNode",
        "data": data,
    }
    batch.nodes[op.node_id] = FlowNode(raw)
    batch.changed.add(op.node_id)
    batch.summary.add_node(op.node_id, schema.name, data["label"])
    for name, value in op.params.items():
        _set_value(batch, op.node_id, name, value)


def _schema(batch: Batch, op: AddNode) -> NodeSchema | None:
    if schema := batch.schemas.get(op.node_name):
        return schema
    if name := resolve_case(op.node_name, batch.schemas):
        return batch.schemas[name]
    near = closest(op.node_name, batch.schemas)
    batch.fail(
        "UNKNOWN_NODE_NAME",
        f"There is no node type {op.node_name!r}.",
        where=op.node_id,
        name="node_name",
        allowed=near,
        hint=f"Use a type of the catalogue{such_as(near)}.",
    )
    return None


# --- SetParam ----------------------------------------------------------------------------------------------------


def set_param(batch: Batch, op: SetParam) -> None:
    if batch.node(op.node_id, "node_id"):
        _set_value(batch, op.node_id, op.param_name, op.value)


def _set_value(batch: Batch, node_id: str, wanted: str, value: Any) -> None:
    node = batch.nodes[node_id]
    names = [entry["name"] for entry in node.params]
    name = resolve_case(wanted, names)
    if name is None:
        _no_such_param(batch, node, wanted, names)
        return
    if value is None:
        batch.fail("NOT_A_VALUE", f"`{name}` cannot be null.", where=node_id, name=name, hint="Leave the op out.")
        return
    definitions = [entry for entry in node.params if entry["name"] == name]
    stored, problem = value, None
    for definition in definitions:
        stored, problem = normalize(definition, value)
        if problem is None:
            break
    if problem:
        example = dump_json({"op_type": "SetParam", "node_id": node_id, "param_name": name, "value": problem.example})
        batch.fail(
            problem.code,
            f"`{name}` of {node_id}: {problem.message}",
            where=node_id,
            name=name,
            allowed=problem.allowed,
            hint=f"For example {example}",
        )
        return
    secret = any(entry.get("type") == "password" for entry in definitions)
    batch.summary.set_param(node_id, name, "(hidden)" if secret else stored)
    batch.change(node, inputs={**node.inputs, name: stored})


def _no_such_param(batch: Batch, node: FlowNode, wanted: str, names: list[str]) -> None:
    anchors = [entry["name"] for entry in node.anchors]
    if anchor := resolve_case(wanted, anchors):
        batch.fail(
            "PARAM_IS_ANCHOR",
            f"`{anchor}` of {node.id} takes a connection, not a value.",
            where=node.id,
            name=anchor,
            hint=f"Use {connect_example('<source node id>', node.id, anchor)}",
        )
    elif node.credential_param and resolve_case(wanted, ["credential", "FLOWISE_CREDENTIAL_ID", "credentialId"]):
        batch.fail(
            "PARAM_IS_CREDENTIAL",
            f"The credential of {node.id} is bound, not set.",
            where=node.id,
            name="credential",
            hint=f'Use {{"op_type":"BindCredential","node_id":"{node.id}","credential_id":"<uuid>"}}',
        )
    else:
        near = closest(wanted, names)
        batch.fail(
            "UNKNOWN_PARAM",
            f"{node.name} has no field {wanted!r}.",
            where=node.id,
            name=wanted,
            allowed=near,
            hint=f"Use one of its fields{such_as(near)}." if names else "It has no fields at all.",
        )


# --- BindCredential ----------------------------------------------------------------------------------------------


def bind_credential(batch: Batch, op: BindCredential) -> None:
    node = batch.node(op.node_id, "node_id")
    if node is None:
        return
    param = node.credential_param
    if param is None:
        batch.fail(
            "NO_CREDENTIAL_FIELD",
            f"{node.name} takes no credential.",
            where=node.id,
            name="credential_id",
            hint="Leave this op out.",
        )
        return
    accepted: list[str] = param.get("credentialNames") or []
    if op.credential_type and accepted and op.credential_type not in accepted:
        batch.fail(
            "CREDENTIAL_TYPE_MISMATCH",
            f"{node.name} does not take a credential of type {op.credential_type!r}.",
            where=node.id,
            name="credential_type",
            allowed=accepted[:3],
            hint=f"It takes {' or '.join(accepted)}.",
        )
        return
    if op.credential_id and not is_uuid(op.credential_id):
        batch.fail(
            "CREDENTIAL_NOT_UUID",
            f"The credential of {node.id} must be given by its id (a uuid), not by name or value.",
            where=node.id,
            name="credential_id",
            hint="Take the id from the list of credentials, or leave credential_id empty to have it chosen.",
        )
        return
    # An empty id leaves what is bound; the validator reports a node that ends up without one.
    if op.credential_id:
        batch.change(node, credential=op.credential_id)
        batch.summary.bind(node.id, op.credential_id, op.credential_type)
