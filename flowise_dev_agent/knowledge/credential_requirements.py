"""Credential types that a plan needs. Types only: the compiler binds the ids."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowise_dev_agent.patch import (
    AddNode,
    InputEntry,
    NodeSchema,
    PatchOp,
    Schemas,
    SetParam,
)
from flowise_dev_agent.patch.model.nested import BOUND, CREDENTIAL_KEY, Nested, nested_components
from flowise_dev_agent.patch.model.schema import CREDENTIALS_FOR_ANY_ADDRESS


def credential_type(schema: NodeSchema, available: Iterable[str]) -> str | None:
    """The credential type for such a node: an available one, else the first accepted; None if it needs none.

    An optional credential is used only if it is available, and never one that is valid for any address.
    """
    held = CREDENTIALS_FOR_ANY_ADDRESS if schema.credential_optional else frozenset[str]()
    at_hand = [name for name in schema.credential_names if name in set(available) and name not in held]
    if at_hand:
        return at_hand[0]
    return None if schema.credential_optional else schema.credential_names[0]


def required_types(schemas: Iterable[NodeSchema], available: Mapping[str, int]) -> list[str]:
    """The distinct credential types that these nodes need, in the order of the nodes."""
    types = (credential_type(schema, [name for name, count in available.items() if count]) for schema in schemas)
    return list(dict.fromkeys(name for name in types if name))


def nested_types(ops: Iterable[PatchOp], schemas: Schemas, available: Mapping[str, int]) -> list[str]:
    """The distinct credential types that models and tools inside the agentflow nodes of ``ops`` need."""
    found = (schemas[nested.component] for op in ops for nested in _inside(op, schemas))
    return required_types(found, available)


def _choice(name: str) -> InputEntry:
    return {"name": name, "type": "asyncOptions", "loadConfig": True}


def _keeps_its_own(row: Mapping[str, Any]) -> bool:
    """True if a row came back with the placeholder of its bound credential."""
    return any(isinstance(one, Mapping) and one.get(CREDENTIAL_KEY) == BOUND for one in row.values())


def _inside(op: PatchOp, schemas: Schemas) -> list[Nested]:
    """Models and tools that an op puts inside a node, if their types are known."""
    entries: Sequence[InputEntry] = ()
    if isinstance(op, AddNode):
        schema = schemas.get(op.node_name)
        entries, values = schema.input_definitions if schema and schema.is_agentflow else (), op.params
    elif isinstance(op, SetParam) and isinstance(op.value, str) and op.value in schemas:
        entries, values = [_choice(op.param_name)], {op.param_name: op.value}
    elif isinstance(op, SetParam) and isinstance(op.value, list):
        rows = [row for row in op.value if isinstance(row, Mapping) and not _keeps_its_own(row)]
        choices = {key for row in rows for key, name in row.items() if isinstance(name, str) and name in schemas}
        listed: InputEntry = {
            "name": op.param_name,
            "type": "array",
            "array": [_choice(key) for key in sorted(choices)],
        }
        entries, values = [listed], {op.param_name: rows}
    else:
        return []
    return [nested for nested in nested_components(entries, values) if nested.component in schemas]
