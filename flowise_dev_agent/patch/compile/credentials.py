"""Binding of credentials: by the op BindCredential, and automatically for new nodes that need one."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.nested import (
    CREDENTIAL_KEY,
    Nested,
    Steps,
    nested_components,
    parse_path,
    with_value,
)
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import AddNode, BindCredential, PatchOp, ReplaceNode, SetParam
from flowise_dev_agent.patch.model.schema import CREDENTIALS_FOR_ANY_ADDRESS


@dataclass(frozen=True)
class _Place:
    """A node that takes a credential, or (``nested``) a model or tool inside it. ``types`` are the accepted types."""

    taker: str
    types: Sequence[str]
    nested: Nested | None = None

    @property
    def steps(self) -> Steps:
        return self.nested.steps if self.nested else ()


def bind_credential(batch: Batch, op: BindCredential) -> None:
    """Bind the credential of the op: the given id, else the chosen credential of the type.

    Without a path the target is the node itself, or all models and tools inside it that take the type.
    """
    node = batch.node(op.node_id, "node_id")
    if node is None:
        return
    places = _find_places(batch, op, node)
    if not places:
        _takes_no_credential(batch, op, node)
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
    for place in places:
        if op.credential_type and place.types and op.credential_type not in place.types:
            batch.fail(
                "CREDENTIAL_TYPE_MISMATCH",
                f"{place.taker} does not take a credential of type {op.credential_type!r}.",
                where=node.id,
                name="credential_type",
                allowed=place.types[:3],
                hint=f"It takes {' or '.join(place.types)}.",
            )
            return
        types = [op.credential_type] if op.credential_type else place.types
        _bind(batch, node.id, place, op.credential_id or _chosen(batch, types))


def bind_chosen(batch: Batch, ops: Sequence[PatchOp], unbound: Collection[str]) -> None:
    """Bind the chosen credentials to new nodes, models and tools that no op of the batch has bound.

    ``unbound`` names nodes of the base that count as new. Other nodes of the base keep their credentials. Without a
    chosen credential of a fitting type the place stays empty, and validation reports it. A credential for any address
    (such as httpBearerToken) is bound only if a single node can take it: with several an op must say which one sends
    it.
    """
    replaced = {op.new_node_id or op.node_id for op in ops if isinstance(op, ReplaceNode)}
    added = {op.node_id for op in ops if isinstance(op, AddNode)} | set(unbound)
    fields: defaultdict[str, list[Steps]] = defaultdict(list)
    for op in ops:
        if isinstance(op, SetParam) and (steps := parse_path(op.param_name)):
            fields[op.node_id].append(steps)
    touched = {*added, *replaced, *fields}
    for node_id in [node_id for node_id in batch.nodes if node_id in touched]:
        node, is_new = batch.nodes[node_id], node_id in added or node_id in replaced
        own = _own_place(node)
        if own and (node_id in replaced or (node_id in added and not node.credential)) and not _for_one_of(batch, own):
            _bind_if_free(batch, node_id, own)
        for place in _nested_places(batch, node):
            is_chosen = is_new or any(_chooses(steps, place.nested) for steps in fields[node_id])
            if is_chosen and not _config(place).get(CREDENTIAL_KEY):
                _bind_if_free(batch, node_id, place)


def _for_one_of(batch: Batch, place: _Place) -> bool:
    takers = [node for node in batch.nodes.values() if (own := _own_place(node)) and own.types == place.types]
    return CREDENTIALS_FOR_ANY_ADDRESS.issuperset(place.types) and len(takers) > 1


def _find_places(batch: Batch, op: BindCredential, node: FlowNode) -> list[_Place]:
    own, inside = _own_place(node), _nested_places(batch, node)
    if op.path:
        steps = parse_path(op.path)
        return [place for place in inside if place.steps == steps]
    if own:
        return [own]
    fitting = [place for place in inside if not op.credential_type or op.credential_type in place.types]
    if len(inside) == 1:
        return inside
    # One id for several places would be a guess.
    return [] if op.credential_id and len(fitting) > 1 else fitting


def _own_place(node: FlowNode) -> _Place | None:
    param = node.credential_param
    return None if param is None else _Place(node.name, tuple(param.get("credentialNames") or ()))


def _nested_places(batch: Batch, node: FlowNode) -> list[_Place]:
    found: list[_Place] = []
    if not node.is_agentflow:
        return found
    for nested in nested_components(node.params, node.inputs):
        schema = batch.schemas.get(nested.component)
        if schema is not None and schema.credential_names and isinstance(nested.config, dict):
            found.append(_Place(nested.component, schema.credential_names, nested))
    return found


def _chooses(steps: Steps, nested: Nested | None) -> bool:
    """True if the field at ``steps`` chooses this component."""
    return nested is not None and (*nested.steps[:-1], nested.param)[: len(steps)] == steps


def _config(place: _Place) -> Values:
    return place.nested.config if place.nested else {}


def _chosen(batch: Batch, types: Iterable[str]) -> str:
    """Id of the chosen credential of the first of these types that has one, else ''."""
    return next((batch.credentials[type_] for type_ in types if type_ in batch.credentials), "")


def _bind_if_free(batch: Batch, node_id: str, place: _Place) -> None:
    if (node_id, place.steps) not in batch.bound:
        _bind(batch, node_id, place, _chosen(batch, place.types))


def _bind(batch: Batch, node_id: str, place: _Place, credential_id: str) -> None:
    # An empty id keeps the bound credential; validation reports a node without one.
    if not credential_id:
        return
    batch.bound.add((node_id, place.steps))
    node = batch.edit(node_id)
    if place.nested is None:
        node.data["credential"] = credential_id
    else:
        node.set_inputs(with_value(node.inputs, (*place.steps, CREDENTIAL_KEY), credential_id))


def _takes_no_credential(batch: Batch, op: BindCredential, node: FlowNode) -> None:
    paths = tuple(place.nested.path for place in _nested_places(batch, node) if place.nested)
    if paths:
        message = f"Say which part of {node.id} the credential is for."
        hint = f"Put one of these into `path`: {', '.join(paths)}."
    else:
        message, hint = f"{node.name} takes no credential{' there' if op.path else ''}.", "Leave this op out."
    batch.fail(
        "NO_CREDENTIAL_FIELD",
        message,
        where=node.id,
        name="path" if op.path or paths else "credential_id",
        allowed=paths[:3],
        hint=hint,
    )
