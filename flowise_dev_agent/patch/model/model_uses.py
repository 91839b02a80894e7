"""Models that a flow names: in nodes of models and embeddings, and in the components inside agentflow nodes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import urlsplit

from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.visibility import is_visible

#: Fields that hold the id of a model.
MODEL_FIELDS: Final = ("modelName", "model")
EMBEDDINGS: Final = "Embeddings"
_CATEGORIES: Final = frozenset({"Chat Models", "LLMs", EMBEDDINGS})
#: A model id in this field replaces the chosen one.
_CUSTOM: Final = "customModel"
#: Addresses of another server, which has models of its own.
_ADDRESSES: Final = ("basepath", "basePath", "baseUrl")


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A model in a flow: node id, path of the field on it, node type that has the field, and model id."""

    where: str
    field: str
    component: str
    model: str


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """Announced end of a model: the day, whether it has come, and the model to use instead ('' if none is known)."""

    day: date
    ended: bool
    replacement: str


#: Ends by node type and model id.
ModelEnds = Mapping[tuple[str, str], ModelEnd]


def model_uses(graph: GraphIR, schemas: Schemas) -> Iterator[ModelUse]:
    """The models of a flow, defaults included; without those that a variable or a server of its own names."""
    for node in graph.nodes:
        if (schema := schemas.get(node.name)) is None:
            continue
        yield from _uses(schema, node.inputs, node.id, "")
        if not schema.is_agentflow:
            continue
        shown = [entry for entry in schema.definitions.params if is_visible(entry, node.inputs)]
        for nested in nested_components(shown, node.inputs):
            config = nested.config if isinstance(nested.config, Mapping) else {}
            if inner := schemas.get(nested.component):
                yield from _uses(inner, config, node.id, f"{nested.path}.")


def _uses(schema: NodeSchema, inputs: Values, where: str, around: str) -> Iterator[ModelUse]:
    if schema.category not in _CATEGORIES:
        return
    if any(_is_elsewhere(inputs.get(name), schema.defaults.get(name)) for name in _ADDRESSES):
        return
    field = next((entry["name"] for entry in schema.definitions.params if entry["name"] in MODEL_FIELDS), None)
    if field is None:
        return
    field = _CUSTOM if inputs.get(_CUSTOM) else field
    value = inputs.get(field) or schema.defaults.get(field)
    if isinstance(value, str) and value and not has_variable(value):
        yield ModelUse(where, f"{around}{field}", schema.name, value.strip())


def _is_elsewhere(address: Any, default: Any) -> bool:
    """True for the address of a server that is not the provider's own."""
    if not isinstance(address, str) or not address.strip() or address == default:
        return False
    try:
        host = urlsplit(address.strip()).hostname or ""
    except ValueError:
        return True
    return not host.endswith((".openai.com", ".anthropic.com", ".googleapis.com"))
