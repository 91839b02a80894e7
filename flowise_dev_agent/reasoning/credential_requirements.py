"""Which credential types a plan needs and which nodes they go to. Types only: ids are filled in elsewhere."""

from collections.abc import Iterable, Mapping, Sequence

from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    InputEntry,
    NodeSchema,
    PatchOp,
    ReplaceNode,
    Schemas,
    SetParam,
)
from flowise_dev_agent.patch.model.nested import Nested, nested_components


def credential_type(schema: NodeSchema, available: Iterable[str]) -> str | None:
    """The type to bind to such a node: one that is at hand, else the first it takes; None when it needs none.

    An optional credential is used when it is at hand and not asked for otherwise.
    """
    at_hand = [name for name in schema.credential_names if name in set(available)]
    if at_hand:
        return at_hand[0]
    return None if schema.credential_optional else schema.credential_names[0]


def required_types(schemas: Iterable[NodeSchema], available: Mapping[str, int]) -> list[str]:
    """The credential types that these nodes need, each once, in the order of the nodes."""
    types = (credential_type(schema, [name for name, count in available.items() if count]) for schema in schemas)
    return list(dict.fromkeys(name for name in types if name))


def nested_types(ops: Iterable[PatchOp], schemas: Schemas, available: Mapping[str, int]) -> list[str]:
    """The credential types that models and tools inside the agentflow nodes of `ops` need, each once."""
    found = (schemas[nested.component] for op in ops for _, nested in _inside(op, schemas))
    return required_types(found, available)


def _inside(op: PatchOp, schemas: Schemas) -> list[tuple[str, Nested]]:
    """(node id, component) of what an op puts inside a node, as far as the types are known."""
    entries: Sequence[InputEntry] = ()
    if isinstance(op, AddNode):
        schema = schemas.get(op.node_name)
        entries, values = schema.input_definitions if schema and schema.is_agentflow else (), op.params
    elif isinstance(op, SetParam) and isinstance(op.value, str) and op.value in schemas:
        entry: InputEntry = {"name": op.param_name, "type": "asyncOptions", "loadConfig": True}
        entries, values = [entry], {op.param_name: op.value}
    else:
        return []
    return [(op.node_id, nested) for nested in nested_components(entries, values) if nested.component in schemas]


def with_bindings(ops: Sequence[PatchOp], schemas: Schemas, requirements: Sequence[str]) -> list[PatchOp]:
    """`ops` with an empty binding for each added node that needs one, and without any id that a model made up."""
    clean: list[PatchOp] = [
        op.model_copy(update={"credential_id": ""}) if isinstance(op, BindCredential) else op for op in ops
    ]
    bound = {op.node_id for op in clean if isinstance(op, BindCredential) and not op.path}
    paths = {(op.node_id, op.path) for op in clean if isinstance(op, BindCredential)}
    for op in ops:
        for node_id, nested in _inside(op, schemas):
            needed = credential_type(schemas[nested.component], requirements)
            if needed and (node_id, nested.path) not in paths:
                clean.append(BindCredential(node_id=node_id, credential_type=needed, path=nested.path))
        if not isinstance(op, AddNode | ReplaceNode):
            continue
        schema = schemas.get(op.node_name)
        node_id = op.node_id if isinstance(op, AddNode) else op.new_node_id or op.node_id
        needed = credential_type(schema, requirements) if schema and node_id not in bound else None
        if needed:
            clean.append(BindCredential(node_id=node_id, credential_type=needed))
    return clean
