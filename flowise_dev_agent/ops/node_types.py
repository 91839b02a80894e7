"""Node types of an instance for clients, read with the lookup tools that the model uses."""

import asyncio
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from flowise_dev_agent.cursors import decode_key, encode_key, foreign_cursor
from flowise_dev_agent.errors import AgentError, FlowiseError, FlowiseServerError, InvalidInputError
from flowise_dev_agent.knowledge.templates import TemplateStore
from flowise_dev_agent.ops.node_form import node_form
from flowise_dev_agent.patch import KIND_OF_CATEGORY, InputEntry, NodeSchema
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.nodes import (
    NodeIcons,
    NodeInputView,
    NodeOptions,
    NodeTypeDetails,
    NodeTypePage,
    NodeTypeView,
    OptionView,
    VariableList,
    VariableView,
)
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.texts import text

_MOST: Final = 500
_DESCRIPTION_CHARS: Final = 300
_NAME_CHARS: Final = 200
#: Most fields that are looked up together, most options of a field, and seconds for all of them.
_MOST_LISTS: Final = 8
_MOST_OPTIONS: Final = 300
_LISTS_SECS: Final = 8.0
#: Icons that are read at the same time, that are kept, and bytes of one.
_PARALLEL_ICONS: Final = 6
_MOST_ICONS: Final = 1_000
_ICON_BYTES: Final = 32_000
_ICON_TYPES: Final = frozenset({"image/svg+xml", "image/png", "image/jpeg"})
_MARKUP: Final = re.compile(r"<[^>]+>")


@dataclass(frozen=True)
class _After:
    """Cursor content: the last node type of a page."""

    name: str


@cache
def _uses() -> Counter[str]:
    """Number of marketplace flows that have a node type."""
    return Counter(name for template in TemplateStore.from_snapshot().all() for name in {*template.nodes})


class NodeTypes:
    """Node types through the lookup tools.

    An unknown instance or param raises InvalidInputError, an unknown node type NodeTypeNotFoundError, a server
    FlowiseError.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        #: By server and node type.
        self._icons: dict[tuple[str, str], str] = {}

    async def list(
        self, instance: str | None, *, query: str, category: str | None, limit: int, cursor: str | None
    ) -> NodeTypePage:
        """A page of the node types that match `query` and `category`."""
        after = decode_key(_After, cursor).name if cursor else None
        found: list[NodeSchema]
        _, found = await self._call(
            instance, "search_nodes", {"query": query, "category": category or "", "limit": _MOST}
        )
        names = [schema.name for schema in found]
        if after is not None and after not in names:
            raise foreign_cursor()
        begin = names.index(after) + 1 if after is not None else 0
        page = found[begin : begin + limit]
        more = begin + limit < len(found)
        return NodeTypePage(
            nodes=[node_type_view(schema) for schema in page],
            total=len(found),
            next_cursor=encode_key(_After(page[-1].name)) if more else None,
        )

    async def fitting(self, instance: str | None, classes: str, *, query: str, limit: int) -> NodeTypePage:
        """The node types with an output of one of the classes (separated by `|`), the most used ones first."""
        found: list[NodeSchema]
        _, found = await self._call(instance, "search_nodes", {"query": query, "category": "", "limit": _MOST})
        wanted = {one.strip() for one in classes.split("|")}
        fits = [one for one in found if any(wanted & {*output.base_classes} for output in one.outputs)]
        # By the flows of the marketplace; the order of the search holds among equals.
        fits.sort(key=lambda one: (one.deprecated, -_uses()[one.name]))
        return NodeTypePage(nodes=[node_type_view(one) for one in fits[:limit]], total=len(fits), next_cursor=None)

    async def details(self, instance: str | None, name: str, *, with_options: bool = False) -> NodeTypeDetails:
        """One node type with its form; with `with_options`, the form includes the options that the server lists."""
        schema: NodeSchema
        card, schema = await self._call(instance, "get_node", {"name": name})
        listed = await self._listed(instance, schema) if with_options else {}
        return NodeTypeDetails(
            node=node_type_view(schema),
            inputs=[_input(entry) for entry in schema.input_definitions],
            outputs=[output.name for output in schema.outputs],
            card=card,
            form=node_form(schema, listed),
        )

    async def _listed(self, instance: str | None, schema: NodeSchema) -> dict[str, Sequence[OptionView]]:
        """Options that the server lists for the fields of a type. Slow lists are left out (after 8 s)."""
        names = [entry["name"] for entry in schema.input_definitions if entry.get("loadMethod")][:_MOST_LISTS]
        found: dict[str, Sequence[OptionView]] = {}

        async def ask(name: str) -> None:
            with suppress(AgentError):
                options = (await self.options(instance, schema.name, name)).options
                found[name] = options[:_MOST_OPTIONS]

        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTS_SECS), asyncio.TaskGroup() as group:
                for name in dict.fromkeys(names):
                    group.create_task(ask(name))
        return found

    async def options(
        self, instance: str | None, name: str, param: str, *, credential_id: str | None = None
    ) -> NodeOptions:
        """Options of a param, from the node type or from the server."""
        chosen: dict[str, str] = {}
        if credential_id is not None:
            _, credentials = await self._call(instance, "list_credentials", {})
            chosen = {one.type: one.id for one in credentials.all() if one.id == credential_id}
            if not chosen:
                raise InvalidInputError(text("error.no_such_credential"))
        _, listed = await self._call(instance, "list_options", {"node": name, "param": param}, chosen)
        return NodeOptions(
            node=listed.node,
            param=listed.param,
            source=listed.source,
            options=[
                OptionView(name=str(option["name"]), label=str(option.get("label") or option["name"]))
                for option in listed.options
            ],
        )

    async def variables(self, instance: str | None) -> VariableList:
        """Variables of a server by name, without values."""
        known = self._agent.instances.resolve(instance)
        rows = (await self._agent.instances.client(known).list_variables())[:_MOST]
        named = {
            str(row["name"])[:_NAME_CHARS]: str(row.get("type") or "")[:_NAME_CHARS] for row in rows if "name" in row
        }
        return VariableList(
            instance=known, variables=[VariableView(name=name, type=named[name]) for name in sorted(named)]
        )

    async def icons(self, instance: str | None, names: Sequence[str]) -> NodeIcons:
        """Icons of node types, read from the server once. Unknown types, types without an icon, and icons of more than
        32 kB have none.
        """
        known = self._agent.instances.resolve(instance)
        client, schemas = self._agent.instances.client(known), await self._agent.lookups.schemas(known)
        gate = asyncio.Semaphore(_PARALLEL_ICONS)

        async def read(name: str) -> str:
            kept = (client.endpoint, name)
            if kept not in self._icons:
                async with gate:
                    try:
                        icon = _as_data(*await client.node_icon(name))
                    except FlowiseServerError:
                        icon = ""  # a type without one
                    except FlowiseError:
                        return ""
                if len(self._icons) >= _MOST_ICONS:
                    self._icons.clear()
                self._icons[kept] = icon
            return self._icons[kept]

        wanted = [name for name in dict.fromkeys(names) if name in schemas and schemas[name].category != "Agent Flows"]
        return NodeIcons(icons=dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True)))

    async def _call(
        self, instance: str | None, tool: str, arguments: JsonMapping, chosen: Mapping[str, str] | None = None
    ) -> tuple[str, Any]:
        known = self._agent.instances.resolve(instance)
        result = await self._agent.lookups.tools(known, chosen or {}).call(f"flowise.{tool}", arguments)
        if isinstance(result.data, AgentError):
            raise result.data
        if not result.ok:
            raise InvalidInputError(result.summary)
        return result.summary, result.data


def node_type_view(schema: NodeSchema) -> NodeTypeView:
    """The view of a node type for clients."""
    return NodeTypeView(
        name=schema.name,
        label=schema.label,
        category=schema.category,
        kind=KIND_OF_CATEGORY.get(schema.category, "CHATFLOW"),
        version=schema.version,
        description=_plain(schema.description),
        credentials=list(schema.credential_names),
        deprecated=schema.deprecated,
    )


def _as_data(media_type: str, content: bytes) -> str:
    """The `data:` address of an image; '' for anything else. A page shows it as an image, in which no script runs."""
    if media_type not in _ICON_TYPES or len(content) > _ICON_BYTES:
        return ""
    return f"data:{media_type};base64,{b64encode(content).decode()}"


def _plain(text: str) -> str:
    return shortened(_MARKUP.sub(" ", text), _DESCRIPTION_CHARS)


def _input(entry: InputEntry) -> NodeInputView:
    is_param = entry["type"] in PARAM_TYPES
    return NodeInputView(
        name=entry["name"],
        label=entry.get("label") or entry["name"],
        description=_plain(str(entry.get("description") or "")),
        type=entry["type"] if is_param else entry["type"].replace(" ", ""),
        required=not entry.get("optional") and not entry.get("show"),
        default=entry.get("default"),
        options=[str(option["name"]) for option in entry.get("options") or ()],
        lists_options=bool(entry.get("loadMethod")),
    )
