"""The marketplace of a Flowise server: a short entry per template; the flows themselves on demand."""

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import TemplateRow
from flowise_dev_agent.knowledge.search import Query, TextIndex
from flowise_dev_agent.knowledge.snapshot import lines_text, schemas_dir, sha256_of, text_of, write_text
from flowise_dev_agent.patch import GraphIR, Schemas, outline
from flowise_dev_agent.patch.model.agentflow import NOTE_NAMES
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.patch.model.suggest import closest, fold
from flowise_dev_agent.persistence import InstanceTemplates
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.texts import text

TEMPLATES_FILE: Final = "flowise_templates.snapshot.json"
TEMPLATES_META_FILE: Final = "flowise_templates.meta.json"

_log = logging.getLogger(__name__)

#: Search weights of name, uses, categories and description, node types.
_WEIGHTS = (6.0, 4.0, 1.5, 1.0)
_DESCRIPTION_CHARS = 120
#: Least share of common node types of a flow that is similar to a plan.
_ALIKE = 0.5
#: Maximum length of one template in a prompt.
_PROMPT_CHARS = 600
#: Keys that are not part of a tool itself: its place in the marketplace, and an id that changes with every call.
_LISTING_KEYS = frozenset({"id", "templateName", "type", "categories", "usecases", "framework", "badge", "description"})


class Template(BaseModel):
    """One template. ``nodes`` are its node types, ``graph`` its connections, ``sha256`` the hash of its content.

    The description is Flowise's own text, cut to 120 characters; committed entries have none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(validation_alias="templateName", serialization_alias="templateName")
    type: str
    categories: tuple[str, ...] = ()
    usecases: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    graph: tuple[str, ...] = ()
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    description: str = ""

    @classmethod
    def from_raw(cls, raw: TemplateRow) -> "Template":
        """Convert an entry of `GET /marketplaces/templates`."""
        return cls(
            name=str(raw["templateName"]),
            type=str(raw["type"]),
            categories=_texts(raw.get("categories")),
            usecases=_texts(raw.get("usecases")),
            framework=_texts(raw.get("framework")),
            nodes=_node_types(raw.get("flowData")),
            graph=_outline(raw.get("flowData")),
            sha256=sha256_of(content_of(raw)),
            description=" ".join(str(raw.get("description") or "").split())[:_DESCRIPTION_CHARS],
        )

    def for_prompt(self) -> str:
        """Name, uses and graph in one line of at most 600 characters."""
        uses = f" ({', '.join(self.usecases)})" if self.usecases else ""
        line = f"{self.name}{uses}: {'; '.join(self.graph or self.nodes)}"
        return line if len(line) <= _PROMPT_CHARS else f"{line[: _PROMPT_CHARS - 1]}…"

    def slim(self) -> JsonObject:
        """The committed form."""
        return self.model_dump(mode="json", by_alias=True, exclude={"description"})


class TemplatesMeta(BaseModel):
    """Origin of the template snapshot; ``sha256`` is the hash of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flowise_version: str
    template_count: int
    sha256: str
    generated_at: datetime
    source: str


class TemplateStore:
    """The templates of one server at one point in time."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self._templates = tuple(sorted(templates, key=lambda one: (one.type, one.name)))

    @classmethod
    def from_snapshot(cls, folder: Path | None = None) -> "TemplateStore":
        """Read the committed templates."""
        raw = json.loads(((folder or schemas_dir()) / TEMPLATES_FILE).read_bytes())
        return cls(Template.model_validate(entry) for entry in raw)

    def __len__(self) -> int:
        return len(self._templates)

    def all(self) -> tuple[Template, ...]:
        """All templates by type and name."""
        return self._templates

    def find(self, text: str, limit: int = 3, *, type_: str | None = None) -> list[Template]:
        """Templates for a prompt that match a description, best first; ``type_`` is Chatflow, AgentflowV2 or Tool."""
        scores = self._index.scores(Query.of(text))
        fitting = [number for number in scores if type_ is None or self._templates[number].type == type_]
        fitting.sort(key=lambda number: (-scores[number], number))
        return [self._templates[number] for number in fitting[:limit]]

    def made_of(self, node_types: Iterable[str], schemas: Schemas, limit: int = 2) -> list[Template]:
        """Flows with similar node types that can be built with these schemas, best first.

        At least half of all node types of either must be common.
        """
        wanted = set(node_types)
        alike = {
            number: len(wanted & set(one.nodes) - NOTE_NAMES) / len(wanted | set(one.nodes) - NOTE_NAMES)
            for number, one in enumerate(self._templates)
            if wanted & set(one.nodes)
        }
        close = sorted((number for number in alike if alike[number] >= _ALIKE), key=lambda one: (-alike[one], one))
        return list(islice(_buildable((self._templates[number] for number in close), schemas), limit))

    def get(self, name: str, type_: str | None = None) -> Template:
        """Find a template by name, ignoring case and separators. Raises InvalidInputError with close names."""
        for template in self._templates:
            if fold(template.name) == fold(name) and type_ in (None, template.type):
                return template
        near = ", ".join(closest(name, (one.name for one in self._templates)))
        raise InvalidInputError(
            text("error.no_template", name=repr(name[:64])), hint=f"Close names: {near}." if near else None
        )

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex(
            _WEIGHTS,
            (
                (
                    one.name,
                    " ".join(one.usecases),
                    " ".join((*one.categories, *one.framework, one.description)),
                    " ".join(one.nodes),
                )
                for one in self._templates
            ),
        )


class TemplateKnowledge:
    """The templates of each instance. Listing never asks a server; reading a content that is not cached reads all.

    Templates older than ``ttl_secs`` are stale: a list stays in use, with a line in the debug log (DD-063), and the
    next content is read from the server again.
    """

    def __init__(self, ttl_secs: float, cache: InstanceTemplates) -> None:
        self._ttl = ttl_secs
        self._cache = cache
        self._locks: dict[str, asyncio.Lock] = {}
        #: By instance and endpoint: the time of the read, and the store.
        self._stores: dict[tuple[str, str], tuple[datetime, TemplateStore]] = {}

    async def store(self, instance_id: str, endpoint: str) -> TemplateStore:
        """The templates last read from the instance, else the committed ones."""
        read = await self._cache.read_at(instance_id, endpoint)
        if read is None:
            store, age_secs = self._committed, (datetime.now(UTC) - self._committed_at).total_seconds()
        else:
            read_at, age_secs = read
            known = self._stores.get((instance_id, endpoint))
            if known is None or known[0] != read_at:
                # Parsing the entries and indexing their words takes longer than all other work on them.
                entries, _ = await self._cache.listed(instance_id, endpoint) or ([], 0.0)
                known = read_at, TemplateStore(Template.model_validate(entry) for entry in entries)
                self._stores[instance_id, endpoint] = known
            store = known[1]
        if age_secs >= self._ttl:
            _log.debug("templates of instance %s are stale: %d seconds old", instance_id, age_secs)
        return store

    async def refresh(self, instance_id: str, client: FlowiseClient) -> TemplateStore:
        """Read the marketplace (1.7 MB) and store it; raises FlowiseError."""
        raw = await client.list_templates()
        templates = [Template.from_raw(entry) for entry in raw]
        contents = {template.sha256: content_of(entry) for template, entry in zip(templates, raw, strict=True)}
        entries = [template.model_dump(mode="json", by_alias=True) for template in templates]
        await self._cache.save(instance_id, client.endpoint, entries, contents)
        return TemplateStore(templates)

    async def content(self, instance_id: str, client: FlowiseClient, name: str, type_: str | None = None) -> str:
        """The template's `flowData`, byte for byte; for a tool its definition as JSON.

        Raises InvalidInputError if the server has no such template, FlowiseError if the server is needed and cannot be
        asked.
        """
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            listed = await self._cache.listed(instance_id, client.endpoint)
            if listed is not None and listed[1] < self._ttl:
                store = TemplateStore(Template.model_validate(entry) for entry in listed[0])
            else:
                store = await self.refresh(instance_id, client)
            content = await self._cache.content(store.get(name, type_).sha256)
            if content is None:
                store = await self.refresh(instance_id, client)
                content = await self._cache.content(store.get(name, type_).sha256)
        if content is None:
            raise InvalidInputError(text("error.template_gone", name=repr(name[:64])))
        return content

    @cached_property
    def _committed(self) -> TemplateStore:
        return TemplateStore.from_snapshot()

    @cached_property
    def _committed_at(self) -> datetime:
        return TemplatesMeta.model_validate_json((schemas_dir() / TEMPLATES_META_FILE).read_bytes()).generated_at


def _buildable(templates: Iterable[Template], schemas: Schemas) -> Iterator[Template]:
    """Flows without removed or deprecated node types."""
    current = {name for name, schema in schemas.items() if not schema.deprecated}
    return (one for one in templates if one.graph and current.issuperset(one.nodes))


def snapshot_text(templates: Sequence[Template]) -> str:
    """The committed form: one entry per line, by type and name."""
    return lines_text(one.slim() for one in TemplateStore(templates).all())


def content_of(raw: TemplateRow) -> str:
    """The content of a template: the text of its flow, or a tool's definition."""
    flow = raw.get("flowData")
    if isinstance(flow, str):
        return flow
    return text_of({key: value for key, value in raw.items() if key not in _LISTING_KEYS})


def write_templates(templates: Sequence[Template], meta: TemplatesMeta, folder: Path) -> None:
    """Write both files."""
    write_text(folder / TEMPLATES_FILE, snapshot_text(templates))
    write_text(folder / TEMPLATES_META_FILE, meta.model_dump_json(indent=2) + "\n")


def _outline(flow_data: Any) -> tuple[str, ...]:
    document = parse_document(flow_data)[0] if isinstance(flow_data, str) else None
    return outline(GraphIR(document)) if document else ()


def _texts(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value or ()
    return tuple(text for item in items if (text := str(item).strip()))


def _node_types(flow_data: Any) -> tuple[str, ...]:
    if not isinstance(flow_data, str):
        return ()
    nodes = json.loads(flow_data).get("nodes") or []
    return tuple(sorted({str(node["data"]["name"]) for node in nodes if node.get("data", {}).get("name")}))
