"""Which credential types a plan needs and which nodes they go to. Types only: ids are filled in elsewhere."""

from collections.abc import Iterable, Mapping, Sequence

from flowise_dev_agent.patch.ops import AddNode, BindCredential, PatchOp, ReplaceNode
from flowise_dev_agent.patch.schema import NodeSchema, Schemas


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


def with_bindings(ops: Sequence[PatchOp], schemas: Schemas, requirements: Sequence[str]) -> list[PatchOp]:
    """`ops` with an empty binding for each added node that needs one, and without any id that a model made up."""
    clean: list[PatchOp] = [
        op.model_copy(update={"credential_id": ""}) if isinstance(op, BindCredential) else op for op in ops
    ]
    bound = {op.node_id for op in clean if isinstance(op, BindCredential)}
    for op in ops:
        if not isinstance(op, AddNode | ReplaceNode):
            continue
        schema = schemas.get(op.node_name)
        node_id = op.node_id if isinstance(op, AddNode) else op.new_node_id or op.node_id
        needed = credential_type(schema, requirements) if schema and node_id not in bound else None
        if needed:
            clean.append(BindCredential(node_id=node_id, credential_type=needed))
    return clean
