"""Short text summary of a flow for prompts: ids, labels, non-default fields and connections."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.patch.model.sequential import is_condition
from flowise_dev_agent.patch.model.values import is_empty, shown
from flowise_dev_agent.patch.model.visibility import js_truthy
from flowise_dev_agent.redaction import looks_secret, masked, named_items, redacted

_LONGEST_TEXT = 120
#: No line takes more than this part (a quarter) of a summary.
_SHARE = 4
_MODEL_NAME: Final = re.compile(r"model(?:Name|Id)?")


def summarize(graph: GraphIR, limit: int = 4000) -> str:
    """Nodes with their models and non-default fields, then connections by name; at most ``limit`` characters.

    Texts over 120 characters appear as their length, credentials and other secrets only as set or not set.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> params = {"modelName": "gpt-5.4-mini", "temperature": 0.2}
    >>> ops = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params=params)]
    >>> print(summarize(compile_ops(GraphIR.empty(), ops, schemas).graph))
    1 nodes:
    - chatOpenAI_0 (chatOpenAI) 'OpenAI': modelName='gpt-5.4-mini', temperature=0.2, no credential
    0 connections:
    """
    nodes = [_node_line(node) for node in graph.nodes if not node.is_note]
    edges = [_edge_line(graph, edge) for edge in graph.edges]
    notes = sum(1 for node in graph.nodes if node.is_note)
    lines = [f"{len(nodes)} nodes:", *nodes, f"{len(edges)} connections:", *edges]
    if notes:
        lines.append(f"{notes} sticky note{'s' if notes > 1 else ''}")
    return _bounded(lines, limit)


def outline(graph: GraphIR) -> tuple[str, ...]:
    """The structure of a flow by node types: connections, containment, and the models and tools in use.

    For example ``chatOpenAI -> toolAgent.model`` and ``agentAgentflow uses chatOpenAI, calculator``. A type that occurs
    more than once appears by the ids of its nodes.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, Connect, compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> ops = [
    ...     AddNode(node_name="calculator", node_id="calculator_0"),
    ...     AddNode(node_name="toolAgent", node_id="toolAgent_0"),
    ...     Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ... ]
    >>> outline(compile_ops(GraphIR.empty(), ops, schemas).graph)
    ('calculator -> toolAgent.tools',)
    """
    nodes = [node for node in graph.nodes if not node.is_note]
    count = Counter(node.name for node in nodes)
    names = {node.id: node.name if count[node.name] == 1 else node.id for node in nodes}
    lines: list[str] = []
    for node in nodes:
        if node.parent in names:
            lines.append(f"{names[node.id]} inside {names[node.parent]}")
        if used := dict.fromkeys(nested.component for nested in nested_components(node.params, node.inputs)):
            lines.append(f"{names[node.id]} uses {', '.join(used)}")
    for edge in graph.edges:
        source, target = graph.node(edge.source), graph.node(edge.target)
        if source is None or target is None or not {source.id, target.id} <= names.keys():
            continue
        output = f".{edge.output_name}" if source.names_outputs and edge.output_name else ""
        anchor = f".{edge.input_name}" if edge.input_name else ""
        lines.append(f"{names[source.id]}{output} -> {names[target.id]}{anchor}")
    return tuple(dict.fromkeys(lines))


def _node_line(node: FlowNode) -> str:
    title = f" {shown(masked(node.label))!r}" if node.label != node.name else ""
    anchors = node.definitions.anchor_names
    settings = [
        f"{name}={_value(node, name, value)}"
        for name, value in node.inputs.items()
        if name not in anchors and _is_set(node, name, value)
    ]
    if node.credential_param is not None:
        settings.append("credential bound" if node.credential else "no credential")
    if node.multi_output and node.selected_output and not is_condition(node):
        settings.append(f"gives {node.selected_output}")
    if (node.is_agentflow or is_condition(node)) and len(node.outputs) > 1:
        settings.append(f"branches {', '.join(f'{output.name} ({masked(output.label)})' for output in node.outputs)}")
    inside = f" inside {node.parent}" if node.parent else ""
    return f"- {node.id} ({node.name}){title}{inside}: {', '.join(settings) or 'defaults'}"


def _is_set(node: FlowNode, name: str, value: Any) -> bool:
    """True for a field that is neither empty nor at its default.

    The name of a model is always told: defaults of a stored node are older than those of its type.
    """
    if is_empty(value):
        return False
    if _MODEL_NAME.fullmatch(name):
        return True
    defaults = [entry.get("default") for entry in node.params_by_name.get(name, ())]
    return value not in defaults and (js_truthy(value) or any(js_truthy(default) for default in defaults))


def _value(node: FlowNode, name: str, value: Any) -> str:
    kinds = {entry.get("type") for entry in node.params_by_name.get(name, ())}
    if "password" in kinds or looks_secret(name, value):
        return "(hidden)"
    if isinstance(value, (dict, list)):
        return _structure(value)
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return shown(value)
    if len(value) > _LONGEST_TEXT and not referenced(value):
        return f"(text of {len(value)} characters)"
    return repr(shown(redacted(value)))


def _structure(value: Any) -> str:
    """Rows, and inputs of models and tools: their non-empty values, by the same rules."""
    if isinstance(value, list):
        return f"[{', '.join(_structure(item) for item in value)}]"
    if not isinstance(value, dict):
        return _text(value)
    parts: list[str] = []
    for key, name, item in named_items(value):
        if key == CREDENTIAL_KEY:
            parts.append("credential bound" if item else "no credential")
        elif not is_empty(item):
            parts.append(f"{key}={'(hidden)' if looks_secret(name, item) else _structure(item)}")
    return f"{{{', '.join(parts)}}}"


def _edge_line(graph: GraphIR, edge: FlowEdge) -> str:
    source = graph.node(edge.source)
    target = graph.node(edge.target)
    output = f".{edge.output_name}" if source and source.names_outputs and edge.output_name else ""
    name = "" if target and target.is_agentflow else f".{edge.input_name or '?'}"
    return f"- {edge.source}{output} -> {edge.target}{name}"


def _bounded(lines: list[str], limit: int) -> str:
    kept: list[str] = []
    size = 0
    for index, line in enumerate(lines):
        if len(line) > limit // _SHARE:  # one node must not push out all others
            line = f"{line[: limit // _SHARE - 1]}…"
        rest = f"... {len(lines) - index} more lines"
        if size + len(line) + 1 + (len(rest) if index < len(lines) - 1 else 0) > limit:
            return "\n".join([*kept, rest])[:limit]
        kept.append(line)
        size += len(line) + 1
    return "\n".join(kept)


_PROMPT: Final = re.compile(r"(?:prompt|messages?|instructions?|template|content)$", re.IGNORECASE)


_MODEL_FIELDS: Final = ("modelName", "model", "customModel", "modelId")


_OF_MODELS: Final = frozenset({"Chat Models", "LLMs", "Embeddings"})


_DEEPEST: Final = 4


_MODEL_CHARS: Final = 200


def prompts_in(value: object, name: str = "", depth: int = 0) -> Iterator[str]:
    """The texts in a node's inputs that instruct a model, in the order of the fields."""
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
    """The node's first prompt that is not its type's default, else the first; '' if there is none.

    Secrets are masked.
    """
    schema = schemas.get(node.name)
    usual = {value for value in schema.defaults.values() if isinstance(value, str)} if schema else set[str]()
    texts = list(prompts_in(node.inputs))
    text = masked(next((text for text in texts if text not in usual), texts[0] if texts else ""))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def model_of(node: FlowNode, schemas: Schemas) -> str:
    """The model of a model node, or type and model of the first model inside an agentflow node; '' if there is none."""
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
    return masked(next((value for value in found if isinstance(value, str) and value), ""))[:_MODEL_CHARS]
