"""Puts ids of credentials into ops: models write types only, and every node that needs a credential gets one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, BindCredential, PatchOp, ReplaceNode, SetParam
from flowise_dev_agent.patch.model.nested import is_path, nested_components
from flowise_dev_agent.patch.model.values import normalize

#: Where a credential goes: node id, and the path of a model or tool inside it ('' is the node itself).
_Place = tuple[str, str]


def bind_credentials(
    ops: Sequence[PatchOp],
    nodes: NodeStore,
    credentials: Mapping[str, str],
    *,
    seed: Sequence[PatchOp] = (),
    existing: Mapping[str, str] | None = None,
) -> list[PatchOp]:
    """The ops with the ids of `credentials` (type -> id) filled in, and with a binding for each place that lacks one.

    `seed` are ops that made the base and bound nothing, `existing` the nodes of the base (id -> type). An op that
    names an id keeps it; a type without a chosen id stays unresolved, which validation refuses.
    """
    places = _places([*seed, *ops], nodes, existing or {})
    result: list[PatchOp] = []
    bound: set[_Place] = set()
    for op in ops:
        if not isinstance(op, BindCredential):
            result.append(op)
            continue
        for path in _meant(op, places):
            bound.add((op.node_id, path))
            wanted = (op.credential_type,) if op.credential_type else places.get((op.node_id, path), ())
            chosen = op.credential_id or next((credentials[name] for name in wanted if name in credentials), "")
            result.append(op.model_copy(update={"credential_id": chosen, "path": path}))
    for (node_id, path), names in places.items():
        found = next((name for name in names if name in credentials), None)
        if found and (node_id, path) not in bound:
            result.append(
                BindCredential(node_id=node_id, credential_id=credentials[found], credential_type=found, path=path)
            )
    return result


def _meant(op: BindCredential, places: Mapping[_Place, Sequence[str]]) -> list[str]:
    """The paths that an op speaks of; one without a path means each model or tool of the node that takes its type."""
    own = [path for node_id, path in places if node_id == op.node_id]
    if op.path or not own or "" in own:
        return [op.path]
    fitting = [path for path in own if op.credential_type in (None, *places[op.node_id, path])]
    return fitting or [op.path]


def _places(ops: Iterable[PatchOp], nodes: NodeStore, existing: Mapping[str, str]) -> dict[_Place, tuple[str, ...]]:
    """What the ops make or choose that takes a credential, with the types that it takes."""
    types = dict(existing)
    inputs: dict[str, dict[str, Any]] = {}
    made: list[str] = []
    for op in ops:
        if isinstance(op, AddNode | ReplaceNode):
            node_id = op.node_id if isinstance(op, AddNode) else op.new_node_id or op.node_id
            types[node_id] = op.node_name
            made.append(node_id)
        if isinstance(op, AddNode):
            inputs.setdefault(op.node_id, {}).update(op.params)
        elif isinstance(op, SetParam) and not is_path(op.param_name):
            inputs.setdefault(op.node_id, {})[op.param_name] = op.value
    places: dict[_Place, tuple[str, ...]] = {}
    for node_id in dict.fromkeys([*made, *inputs]):
        schema = nodes.get(types.get(node_id, ""))
        if schema is None:
            continue
        if node_id in made and schema.credential_names:
            places[node_id, ""] = schema.credential_names
        given = inputs.get(node_id, {})
        for entry in schema.input_definitions:
            # Models write rows as JSON text, too.
            if entry["type"] == "array" and entry["name"] in given:
                given = {**given, entry["name"]: normalize(entry, given[entry["name"]])[0]}
        for nested in nested_components(schema.input_definitions, given):
            component = nodes.get(nested.component)
            if component is not None and component.credential_names:
                places[node_id, nested.path] = component.credential_names
    return places
