"""Search index of the flows of an instance, and its updates."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseTimeoutError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_list import refresh
from flowise_dev_agent.flowise.flow_settings import settings_of
from flowise_dev_agent.flowise.flow_tags import PREFIX, is_draft
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.uploads import kept_settings
from flowise_dev_agent.patch import NodeData, payload_sha256
from flowise_dev_agent.patch.model.flow_data import FlowData
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.patch.views.picture import picture_of
from flowise_dev_agent.patch.views.summary import prompts_in
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.instance_flows import (
    STEM,
    Candidates,
    FlowRow,
    FoundFlow,
    IndexedFlow,
    InstanceFlows,
    Place,
    Wanted,
    words_of,
)
from flowise_dev_agent.persistence.watched_versions import SeenFlow, WatchedVersions
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text, shortened
from flowise_dev_agent.schemas.flow_writes import MAX_FLOW_CHARS
from flowise_dev_agent.texts import text

_ABOUT: Final = 160
#: Of one field, and of all fields of a flow.
_TEXT_CHARS: Final = 4_000
_TEXTS_CHARS: Final = 100_000
_READ_SECS: Final = 30.0
#: Page size of a search without an index.
_PAGE: Final = 50
_MOST_PAGES: Final = 40
#: Flows found to be gone in one refresh, each of which is asked for.
_MOST_GONE: Final = 50
#: How Flowise names uploaded files in a flow.
_FILES: Final = "FILE-STORAGE::"
#: Number of new rows from which updated statistics are worth their time.
_MANY: Final = 500


class FlowSource(Protocol):
    """Source of the flows of an instance, for look-ups."""

    async def candidates(self, client: FlowiseClient, wanted: Wanted, /) -> Candidates:
        """Flows that the requirement may refer to, in their current state. Raises FlowiseError."""
        ...


class AllFlows:
    """Source that reads all flows at each search: for tools without a database."""

    async def candidates(self, client: FlowiseClient, wanted: Wanted, /) -> Candidates:
        """All flows, as candidates."""
        flows: list[IndexedFlow] = []
        for page in range(1, _MOST_PAGES + 1):
            listed = await client.list_chatflows(page, _PAGE)
            flows += [indexed(row) for row in listed.data]
            if page * _PAGE >= listed.total:
                break
        found = [
            FoundFlow(flow.row, _places(flow.words, wanted.stems))
            for flow in flows
            if flow.row.type in wanted.kinds and not flow.row.draft
        ]
        return Candidates(found, len(found), Counter(stem for flow in found for stem in flow.places))


class FlowIndex:
    """Index of the instances' flows in the database, for people to choose from; a write reads the flow itself."""

    def __init__(self, database: Database, *, watched: WatchedVersions | None = None) -> None:
        """`watched` records each state that is read, whoever has the flows read."""
        self._database = database
        self._watched = watched
        self._locks: dict[str, asyncio.Lock] = {}
        self._read_at: dict[str, float] = {}
        #: Endpoints whose last refresh found nothing new.
        self._quiet: set[str] = set()

    async def current(self, instance_id: str, client: FlowiseClient, *, fresh_secs: float = 0.0) -> InstanceFlows:
        """The rows of an instance, at most `fresh_secs` old.

        Raises FlowiseError; the rows read until then are stored, so that a retry goes on from there.
        """
        rows = InstanceFlows(self._database, instance_id, client.endpoint)
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            if time.monotonic() - self._read_at.get(instance_id, float("-inf")) < fresh_secs:
                return rows
            if instance_id not in self._read_at:
                await rows.forget_other_server()
            # The age counts from here: flows created while the list is read may be missing.
            began = time.monotonic()
            try:
                async with asyncio.timeout(_READ_SECS):
                    keeping = _Keeping(instance_id, client, rows, self._watched)
                    quiet = client.endpoint in self._quiet
                    self._quiet.discard(client.endpoint)
                    await refresh(client, keeping, quiet=quiet)
                    if not keeping.changes:
                        self._quiet.add(client.endpoint)
                    if keeping.changes > _MANY:
                        await rows.learn()
            except TimeoutError:
                raise FlowiseTimeoutError(
                    text("error.flows_not_listed", endpoint=client.endpoint, seconds=f"{_READ_SECS:.0f}"),
                    hint=text("error.flows_not_listed_hint"),
                ) from None
            self._read_at[instance_id] = began
        return rows

    def of(self, instance_id: str) -> FlowSource:
        """The flows of one instance."""
        return _OfInstance(self, instance_id)


@dataclass(frozen=True)
class _OfInstance:
    index: FlowIndex
    instance_id: str

    async def candidates(self, client: FlowiseClient, wanted: Wanted, /) -> Candidates:
        return await (await self.index.current(self.instance_id, client)).candidates(wanted)


class _Keeping:
    """Adapter for `flow_list.KnownFlows`: converts each flow to its index entry, and records it for the watch.

    What is recorded comes before what is known, so that a process that dies between them has it read again.
    """

    def __init__(
        self, instance_id: str, client: FlowiseClient, rows: InstanceFlows, watched: WatchedVersions | None
    ) -> None:
        self.count, self.order = rows.count, rows.order
        self.changes = 0
        self._instance_id = instance_id
        self._client = client
        self._rows = rows
        self._watched = watched

    async def dates(self, ids: Sequence[str], /) -> Mapping[str, str]:
        return await self._rows.dates(ids, watched=self._watched is not None)

    async def keep(self, rows: Sequence[Chatflow], /) -> None:
        self.changes += len(rows)
        seen = {row.id: _seen(row) for row in rows} if self._watched else {}
        if self._watched:
            await self._watched.record(self._instance_id, [flow for flow in seen.values() if flow])
        hashes = {id_: flow.sha256 if flow else "" for id_, flow in seen.items()}
        await self._rows.keep([replace(indexed(row), sha256=hashes.get(row.id)) for row in rows])

    async def forget(self, ids: Sequence[str], /) -> None:
        self.changes += len(ids)
        if self._watched:
            ids = ids[:_MOST_GONE]  # the others are found to be gone at the next refresh
            gone = [id_ for id_ in ids if await self._is_gone(id_)]
            await self._watched.deleted(self._instance_id, self._client.endpoint, gone)
        await self._rows.forget(ids)

    async def _is_gone(self, chatflow_id: str) -> bool:
        """True if the server says so itself: the list may have changed between its pages."""
        try:
            await self._client.get_chatflow(chatflow_id)
        except FlowiseNotFoundError:
            return True
        return False


def _seen(row: Chatflow) -> SeenFlow | None:
    """The flow for the watch; None for drafts and for texts that cannot be stored."""
    if is_draft(row.category) or len(row.flow_data) > MAX_FLOW_CHARS:
        return None
    try:
        sha256 = payload_sha256(row.flow_data)
    except UnicodeEncodeError:
        return None
    return SeenFlow(
        id=row.id,
        name=clean_text(row.name),
        type=clean_text(row.type or "CHATFLOW"),
        flow_data=row.flow_data,
        sha256=sha256,
        updated_date=row.updated_date,
        settings=kept_settings(row.chatbot_config),
        beside=settings_of(row).columns,
        tags=[clean_text(tag) for tag in row.tags],
        files=_FILES in row.flow_data,
    )


def indexed(row: Chatflow) -> IndexedFlow:
    """The index entry of a flow."""
    document, _ = parse_document(row.flow_data)
    nodes = _nodes(document)
    types = Counter(str(node.get("name") or "?") for node in nodes)
    short = FlowRow(
        id=row.id,
        updated_date=row.updated_date,
        name=clean_text(masked(row.name)),
        type=clean_text(row.type or "CHATFLOW"),
        tags=[clean_text(masked(tag)) for tag in row.tags if not tag.startswith(PREFIX)],
        draft=is_draft(row.category),
        deployed=bool(row.deployed),
        public=bool(row.is_public),
        nodes=len(nodes),
        node_types=[clean_text(name) for name, _ in types.most_common(8)],
        about=clean_text(_about(nodes)),
    )
    said: dict[Place, str] = {
        "name": " ".join((short.name, row.id, *short.tags)),
        "nodes": " ".join(_called(node) for node in nodes),
        "texts": " ".join(_texts(nodes))[:_TEXTS_CHARS],
    }
    words: dict[str, Place] = {}
    for place, found in said.items():
        for word in words_of(masked(found)):
            words.setdefault(word, place)
    return IndexedFlow(short, words, picture_of(document))


def _places(words: Mapping[str, Place], stems: Sequence[str]) -> dict[str, Place]:
    """Places of the words that begin with a stem; a short one is a whole word. Best places come first in ``words``."""
    found: dict[str, Place] = {}
    for word, place in words.items():
        if word[:STEM] in stems:
            found.setdefault(word[:STEM], place)
    return found


def _called(node: NodeData) -> str:
    """The type of a node, also as single words, and its title."""
    name = str(node.get("name", ""))
    return f"{name} {re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', name)} {node.get('label', '')}"


def _nodes(document: FlowData | None) -> list[NodeData]:
    if document is None:
        return []
    return [node["data"] for node in document["nodes"] if node.get("type") != "stickyNote"]


def _texts(nodes: list[NodeData]) -> Iterator[str]:
    for node in nodes:
        inputs = node.get("inputs")
        for value in inputs.values() if isinstance(inputs, dict) else ():
            if isinstance(value, str):
                yield value[:_TEXT_CHARS]
            elif isinstance(value, list) and value:
                yield json.dumps(value, ensure_ascii=False)[:_TEXT_CHARS]


def _about(nodes: list[NodeData]) -> str:
    """The beginning of the flow's first prompt."""
    prompts = (text[:_TEXT_CHARS] for node in nodes for text in prompts_in(node.get("inputs")))
    return shortened(masked(" ".join(next(prompts, "").split())), _ABOUT)
