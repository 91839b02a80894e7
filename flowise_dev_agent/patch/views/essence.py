"""What a node is about, in a word each: the model that it asks and what it tells it."""

import re
from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.redaction import guarded

_PROMPT: Final = re.compile(r"(?:prompt|messages?|instructions?|template|content)$", re.IGNORECASE)
_MODEL_FIELDS: Final = ("modelName", "model", "customModel", "modelId")
_OF_MODELS: Final = frozenset({"Chat Models", "LLMs", "Embeddings"})
_DEEPEST: Final = 4
_MODEL_CHARS: Final = 200


def prompts_in(value: object, name: str = "", depth: int = 0) -> Iterator[str]:
    """The texts in the inputs of a node that tell a model what to do, in the order of the fields."""
    if isinstance(value, str):
        if _PROMPT.search(name) and len(value.split()) > 2:
            yield value
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in value.items():
            yield from prompts_in(item, str(key), depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for item in value:
            yield from prompts_in(item, name, depth + 1)


def prompt_of(node: FlowNode, schemas: Schemas, longest: int) -> str:
    """The node's first prompt that is not its type's default, else the first; '' for none. Secrets are masked."""
    schema = schemas.get(node.name)
    usual = {value for value in schema.defaults.values() if isinstance(value, str)} if schema else set[str]()
    texts = list(prompts_in(node.inputs))
    text = guarded(next((text for text in texts if text not in usual), texts[0] if texts else ""))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def model_of(node: FlowNode, schemas: Schemas) -> str:
    """The model of a model node, or the type and the model inside of an agentflow node; '' for none."""
    if node.category in _OF_MODELS:
        return _named(node.inputs)
    for nested in nested_components(node.params, node.inputs):
        if nested.param.casefold().endswith("model"):
            schema = schemas.get(nested.component)
            title = schema.label if schema else nested.component
            return f"{title} {_named(as_dict(nested.config))}".strip()[:_MODEL_CHARS]
    return ""


def _named(inputs: dict[str, object]) -> str:
    found = (inputs.get(name) for name in _MODEL_FIELDS)
    return guarded(next((value for value in found if isinstance(value, str) and value), ""))[:_MODEL_CHARS]
