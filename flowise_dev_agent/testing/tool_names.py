"""Runtime names of a flow's tools: an expectation names a tool by node id or by node type."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.nested import nested_components

#: Normalised node id or type (see `spelt`) -> normalised names in traces.
RuntimeNames = Mapping[str, frozenset[str]]
#: Types whose tool has a runtime name unlike the type.
_CALLED: Final[Mapping[str, str]] = {
    "serpAPI": "search",
    "searchAPI": "search",
    "serper": "search",
    "tavilyAPI": "tavily_search",
}
#: Field with the id of a custom tool, which Flowise calls by its name on the server.
_BY_ID: Final = "selectedTool"
#: Fields with tool names: one tool, or the selected actions of a toolkit.
_NAMING: Final = re.compile(r"(?:name|actions?)$", re.IGNORECASE)


def spelt(name: str) -> str:
    """Normalise a name to its lower-case letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def without_number(name: str) -> str:
    """Normalise a node id without its number, so that it names the type."""
    return spelt(re.sub(r"_\d+$", "", name))


async def custom_tools(client: FlowiseClient, flow_data: str) -> Mapping[str, str]:
    """Names of the server's custom tools by id, if the flow has one; empty where the API key may not read them."""
    if f'"{_BY_ID}"' in flow_data:
        with suppress(FlowiseError):
            return {str(row.get("id")): row.get("name") or "" for row in await client.list_tools()}
    return {}


def runtime_names(graph: GraphIR, custom: Mapping[str, str]) -> RuntimeNames:
    """Map the nodes of a flow, and the tools inside its agents, to the names used in traces; `custom` are the names of
    the server's custom tools by id.
    """
    found: dict[str, set[str]] = {}
    for aliases, type_, inputs in _tools(graph):
        by_id = custom.get(str(inputs.get(_BY_ID)), "")
        names = {spelt(name) for name in [_CALLED.get(type_, ""), by_id, *_named_in(inputs)] if spelt(name)}
        for alias in aliases:
            found.setdefault(spelt(alias), set()).update(names)
    return {alias: frozenset(names) for alias, names in found.items() if names}


def _tools(graph: GraphIR) -> Iterator[tuple[tuple[str, ...], str, Mapping[str, Any]]]:
    for node in graph.nodes:
        if node.is_agentflow:
            for nested in nested_components(node.params, node.inputs):
                config = nested.config if isinstance(nested.config, Mapping) else {}
                yield (nested.component,), nested.component, config
        else:
            yield (node.id, node.name, node.label), node.name, node.inputs


def _named_in(inputs: Mapping[str, Any]) -> Iterator[str]:
    for field, value in inputs.items():
        if not _NAMING.search(field):
            continue
        listed = value
        if isinstance(value, str) and value.startswith("["):
            with suppress(ValueError):
                listed = json.loads(value)
        yield from (str(one) for one in (listed if isinstance(listed, list) else [listed]) if isinstance(one, str))
