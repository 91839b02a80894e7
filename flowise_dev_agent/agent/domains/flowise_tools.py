"""The tools that read: node types, options, templates, flows, credentials, patterns. None of them writes or runs code.

`NodeTools` need an instance only and answer REST and MCP as well; `FlowiseTools` belong to a session.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field

from flowise_dev_agent.agent.credentials import by_type
from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.targets import find_targets
from flowise_dev_agent.agent.tools import ToolResult, shorten
from flowise_dev_agent.errors import DatabaseUnavailableError, InvalidInputError, NodeTypeNotFoundError, PatchError
from flowise_dev_agent.knowledge.model_ends import announced_end, ending
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.pattern_library import Match
from flowise_dev_agent.patch import (
    KIND_OF_CATEGORY,
    FlowNode,
    GraphIR,
    InputEntry,
    NodeSchema,
    OptionEntry,
    compile_ops,
    decompile,
    summarize,
)
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.cards import schema_card
from flowise_dev_agent.planning.prompt_context import ops_text
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.interrupts import TargetCandidate

#: Characters of a summary.
CARD_CHARS: Final = 6_000
LIST_CHARS: Final = 3_000
#: Node types that one search may give; a server has about 300.
MAX_NODES: Final = 500
_DESCRIPTION_CHARS: Final = 110
_OPTIONS_SHOWN: Final = 120
#: Characters of one prompt, and of a flow's node types in a list.
_PROMPT_CHARS: Final = 1_000
_TYPES_SHOWN: Final = 4
#: Entries that a node lists when it cannot reach its service.
_NO_OPTIONS: Final = "error"

Name = Annotated[str, Field(min_length=1, max_length=120)]
Limit = Annotated[int, Field(ge=1, le=MAX_NODES)]
NodeId = Annotated[str, Field(max_length=120)]
Words = Annotated[str, Field(max_length=400)]


@dataclass(frozen=True)
class Options:
    """Allowed values of a field. `source` says who lists them: the node type, or the server."""

    node: str
    param: str
    source: str
    options: Sequence[OptionEntry]
    #: Credential types that the server needs to list the options and was not given.
    lacks: Sequence[str] = ()


class NodeTools:
    """Node types of an instance and the options of their fields."""

    def __init__(self, scope: ToolScope) -> None:
        self._scope = scope

    async def search_nodes(self, query: Words, category: Words = "", limit: Limit = 20) -> ToolResult:
        """Find node types by words."""
        store = await self._scope.knowledge.nodes()
        found = store.search(query, limit, category=category or None)
        lines = [_node_line(schema) for schema in found] or ["No node type fits. Use other words."]
        return ToolResult(True, "\n".join(lines), data=found)

    async def get_node(self, name: Name) -> ToolResult:
        """Show a node type: inputs, params, rows, options, outputs."""
        schema = _known(await self._scope.knowledge.nodes(), name)
        return ToolResult(True, schema_card(schema), data=schema)

    async def list_options(
        self, node: Name, param: Name, node_id: Annotated[str, Field(max_length=120)] = ""
    ) -> ToolResult:
        """List the server's options of a param: models, tools, stores, flows. node_id: a node of the flow, for its
        settings."""
        schema = _known(await self._scope.knowledge.nodes(), node)
        entry = _field(schema, param)
        lacks: Sequence[str] = ()
        if known := entry.get("options"):
            options, source = list(known), "node type"
        elif method := entry.get("loadMethod"):
            stored = self._stored(schema, node_id)
            credential = await self._credential(schema, stored)
            lacks = () if credential else schema.credential_names
            options = await self._scope.flowise.node_options(
                schema.name,
                method,
                credential_id=credential,
                inputs=stored.inputs if stored else None,
            )
            source = "server"
        else:
            raise InvalidInputError(
                f"`{param}` of {schema.name} is of type {entry['type']} and has no list of options."
            )
        listed = Options(schema.name, entry["name"], source, options, lacks)
        return ToolResult(True, _options_text(listed), data=listed)

    def _stored(self, schema: NodeSchema, node_id: str) -> FlowNode | None:
        """Node of the person's flow whose values are sent; values written by a model are never sent."""
        if not node_id or self._scope.stored is None:
            return None
        node = self._scope.stored.node(node_id)
        if node is None or node.name != schema.name:
            raise InvalidInputError(f"The flow has no {schema.name} with the id {shorten(node_id, 60)!r}.")
        return node

    async def _credential(self, schema: NodeSchema, stored: FlowNode | None) -> str | None:
        """Credential id: the node's own, else the one chosen for the type, else the only one of the type."""
        if stored and (own := stored.credential or stored.inputs.get(CREDENTIAL_KEY)):
            return str(own)
        credentials = (await self._scope.knowledge.credentials()).all()
        for type_ in schema.credential_names:
            ids = [one.id for one in credentials if one.type == type_]
            if (chosen := self._scope.chosen.get(type_)) in ids:
                return chosen
            if len(ids) == 1:
                return ids[0]
        return None


class FlowiseTools(NodeTools):
    """Tools of a session besides the node types."""

    def __init__(self, scope: ToolScope) -> None:
        super().__init__(scope)
        self._matches: dict[int, Match] = {}

    async def search_templates(self, query: Words) -> ToolResult:
        """Find marketplace flows by words."""
        found = (await self._scope.knowledge.templates()).find(query, 5)
        lines = [f"- {one.for_prompt()}" for one in found] or ["No template fits."]
        return ToolResult(True, "\n".join(lines), data=found)

    async def get_template(self, name: Name) -> ToolResult:
        """Show a marketplace flow as ops."""
        template = (await self._scope.knowledge.templates()).get(name)
        content = await self._scope.knowledge.template_flow(template)
        store = await self._scope.knowledge.nodes()
        try:
            ops = decompile(content, store.schemas)
        except PatchError as error:
            raise InvalidInputError(f"The template {name!r} is not a flow, but a tool.") from error
        return ToolResult(True, ops_text(ops), data=ops)

    async def read_flow(self, chatflow_id: Annotated[str, Field(max_length=80)] = "") -> ToolResult:
        """Describe a flow; by default the session's."""
        if not chatflow_id:
            graph, title = self._scope.base, "The session's flow"
        else:
            row = await self._scope.flowise.get_chatflow(chatflow_id)
            graph, title = GraphIR.from_flow_data(row.flow_data), f"{row.name} ({row.type or 'CHATFLOW'})"
        return ToolResult(True, f"{title}:\n{_described(graph)}")

    async def list_flows(self, query: Words = "") -> ToolResult:
        """Find flows of the server by words: id, name, kind."""
        found = await find_targets(self._scope.flows, self._scope.flowise, target=None, hint=None, text=query)
        lines = [_flow_line(one) for one in found.candidates]
        fits = found.search.fits or not query
        head = [] if fits or not lines else ["No flow fits. These were changed last:"]
        return ToolResult(True, "\n".join([*head, *lines]) or "The server has no flows.", data=found.candidates)

    async def list_credentials(self) -> ToolResult:
        """List credential types of the server with counts."""
        store = await self._scope.knowledge.credentials()
        counts: JsonObject = {type_: len(items) for type_, items in sorted(by_type(store).items())}
        text = ", ".join(f"{type_} ({count})" for type_, count in counts.items()) or "none"
        return ToolResult(True, f"Credential types of the instance: {text}.", facts={"credentials": counts}, data=store)

    async def search_patterns(self, query: Words) -> ToolResult:
        """Find accepted flows for similar requirements."""
        for match in await self._find_patterns(query):
            self._matches[match.id] = match
        lines = [
            f"- pattern {match.id} ({match.flow_kind}): {shorten(match.requirement, 160)}"
            + (f" (cannot be used: {match.refused})" if match.refused else "")
            for match in self._matches.values()
        ]
        return ToolResult(True, "\n".join(lines) or "No pattern fits.")

    async def use_pattern(self, pattern_id: int) -> ToolResult:
        """Start from a found pattern; plan its nodes under the same ids."""
        match = self._matches.get(pattern_id)
        if match is None:
            raise InvalidInputError(f"search_patterns has not found a pattern {pattern_id}.")
        if match.refused or not self._scope.is_new:
            why = match.refused or "only a new flow can start from a pattern"
            raise InvalidInputError(f"Pattern {pattern_id} cannot be used: {why}.")
        schemas = (await self._scope.knowledge.nodes()).schemas
        graph = compile_ops(GraphIR.empty(), match.ops, schemas).graph
        return ToolResult(True, summarize(graph, CARD_CHARS), data=match, artifacts={"pattern_id": match.id})

    async def _find_patterns(self, query: str) -> list[Match]:
        if self._scope.patterns is None or not self._scope.is_new:
            return []
        try:
            return await self._scope.patterns.find(query, await self._scope.knowledge.nodes())
        except DatabaseUnavailableError as error:
            raise InvalidInputError("The patterns cannot be read now.") from error


def _described(graph: GraphIR) -> str:
    """Text of a flow: its lines, then its prompts, cut to the limit."""
    text = summarize(graph, CARD_CHARS // 2)
    for place, prompt in GraphView(graph).texts.items():
        shown = f"\n\n{place}:\n{shorten(masked(prompt), _PROMPT_CHARS)}"
        if len(text) + len(shown) > CARD_CHARS - 400:
            break
        text += shown
    return text


def _flow_line(flow: TargetCandidate) -> str:
    line = f"- {flow.id} {flow.name} ({flow.type}): {', '.join(flow.node_types[:_TYPES_SHOWN])}"
    return f"{line}; {flow.about!r}" if flow.about else line


def _node_line(schema: NodeSchema) -> str:
    kind = KIND_OF_CATEGORY.get(schema.category)
    mark = f", only {kind}" if kind else ""
    old = ", deprecated" if schema.deprecated else ""
    text = shorten(schema.description, _DESCRIPTION_CHARS)
    return f"- {schema.name} ({schema.category}{mark}{old}){': ' if text else ''}{text}"


def _known(store: NodeStore, name: str) -> NodeSchema:
    schema = store.get(name)
    if schema is None:
        close = list(store.suggest(name))
        raise NodeTypeNotFoundError(
            f"There is no node type {shorten(name, 60)!r}.",
            hint=f"Close names: {', '.join(close)}." if close else "Search for it.",
            details={"close": close},
        )
    return schema


def _field(schema: NodeSchema, param: str) -> InputEntry:
    """Definition of a param by name or path; only the last name of a path counts, also in rows."""
    name = param.rpartition(".")[2].partition("[")[0]
    fields = list(_fields(schema.input_definitions))
    entry = next((one for one in fields if one["name"] == name and (one.get("loadMethod") or one.get("options"))), None)
    entry = entry or next((one for one in fields if one["name"] == name), None)
    if entry is None:
        listed = sorted({one["name"] for one in fields if one.get("loadMethod")})
        hint = f"Params with options of the server: {', '.join(listed)}." if listed else None
        if "Config" in param:
            hint = "Ask for the options of the component inside: its node type and its param."
        raise InvalidInputError(f"{schema.name} has no param {shorten(param, 60)!r}.", hint=hint)
    return entry


def _fields(entries: Sequence[InputEntry]) -> Iterator[InputEntry]:
    for entry in entries:
        yield entry
        yield from _fields(entry.get("array") or ())
        yield from _fields(entry.get("tabs") or ())


def _options_text(listed: Options) -> str:
    if listed.lacks and all(option.get("name") == _NO_OPTIONS for option in listed.options):
        types = " or ".join(listed.lacks)
        return (
            f"The server lists no options for `{listed.param}` without a credential of the type {types}, and none is "
            "chosen: plan the credential, and leave the field out. It can be filled once the credential is there."
        )
    if not listed.options:
        return f"The server lists no options for `{listed.param}`. A credential may be missing, or there are none yet."
    names = [str(option.get("name", "")) for option in listed.options]
    shown = [_option_text(listed.node, option, names) for option in listed.options[:_OPTIONS_SHOWN]]
    more = len(listed.options) - len(shown)
    return f"{listed.param}: {'; '.join(shown)}" + (f"; … {more} more" if more else "")


def _option_text(node_name: str, option: Mapping[str, object], options: Sequence[str]) -> str:
    """Value and label of an option; of a model that its provider ends, the day and what takes its place as well."""
    name, label = str(option.get("name", "")), str(option.get("label") or "")
    known = announced_end(node_name, name)
    end = ending(node_name, name, datetime.now(UTC).date(), options)
    ends = f", {'ended' if end and end.ended else 'ends'} on {known.date}" if known else ""
    ends += f", in its place {end.replacement}" if end and end.replacement else ""
    return shorten(f"{name} ({label})" if label and label != name else name, 120) + ends
