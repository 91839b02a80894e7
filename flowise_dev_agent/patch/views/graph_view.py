"""A flow by its parts, for whoever plans a change to it or writes the ops."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.nested import nested_components, parse_path, value_at
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.redaction import looks_secret

#: Of document loaders only the text that somebody typed into the flow is shown.
_LOADERS, _TYPED = "Document Loaders", "text"
_TEXT_SHOWN, _TEXTS_TOTAL, _LONG_TEXT = 4_000, 12_000, 40


@dataclass(frozen=True)
class GraphView:
    """A flow read by name; `scope` names the nodes whose texts are needed, else those of all nodes are."""

    graph: GraphIR = field(default_factory=GraphIR.empty)
    scope: tuple[str, ...] = ()

    @cached_property
    def existing(self) -> Mapping[str, str]:
        """Node id -> node type."""
        return {node.id: node.name for node in self.graph.nodes}

    @cached_property
    def connected_inputs(self) -> frozenset[str]:
        """The inputs that a connection leads to, as `node id.input`."""
        return frozenset(f"{edge.target}.{edge.input_name}" for edge in self.graph.edges)

    @cached_property
    def components(self) -> Mapping[str, str]:
        """`node id.path` -> the model or tool configured there, for the agentflow nodes of the flow."""
        return {
            f"{node.id}.{nested.path}": nested.component
            for node in self.graph.nodes
            if node.is_agentflow
            for nested in nested_components(node.params, node.inputs)
        }

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """`node id.field` -> the longer texts (prompts, templates) of the nodes in scope.

        For rows and values inside a node the field is a path as in `SetParam`, `agentMessages[0].content`. Each text
        is cut to 4 000 characters, all together to 12 000. Files and secrets are left out.
        """
        chosen = {node_id for node_id in self.scope if self.graph.node(node_id)} or {*self.existing}
        found: dict[str, str] = {}
        room = _TEXTS_TOTAL
        for node in self.graph.nodes:
            if node.id not in chosen or node.is_note:
                continue
            for path, value in _texts(node.inputs):
                if node.category == _LOADERS and path != _TYPED:
                    continue
                shown = value if len(value) <= _TEXT_SHOWN else f"{value[: _TEXT_SHOWN - 1]}…"
                if len(shown) > room:
                    return found
                room -= len(shown)
                found[f"{node.id}.{path}"] = shown
        return found

    def value(self, node_id: str, param: str) -> object:
        """The value of a field, given by name or path; None where there is none."""
        node, steps = self.graph.node(node_id), parse_path(param)
        return value_at(node.inputs, steps) if node and steps else None


def _texts(inputs: Mapping[str, Any], around: str = "") -> Iterator[tuple[str, str]]:
    for name, value in inputs.items():
        path = f"{around}{name}"
        if isinstance(value, list):
            for index, row in enumerate(value):
                if isinstance(row, dict):
                    yield from _texts(row, f"{path}[{index}].")
        elif isinstance(value, dict):
            yield from _texts(value, f"{path}.")
        elif (
            isinstance(value, str)
            and len(value) >= _LONG_TEXT
            and not looks_secret(name, value)
            and not referenced(value)
        ):
            yield path, value
