"""Finds flows by words. A server's list is cached for a few seconds: people type, and each letter is a query."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.errors import FlowiseTimeoutError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_list import FlowList
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import FlowNode
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.publish.tags import PREFIX, is_draft
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.runtime.flows.views import FlowFacts, FlowPage
from flowise_dev_agent.runtime.sessions.views import ChatflowLink

MAX_SEARCHED: Final = 2_000
_KEPT_SECS: Final = 10.0
_READ_SECS: Final = 30.0
#: Of one field, and of all fields of a flow.
_TEXT_CHARS: Final = 4_000
_TEXTS_CHARS: Final = 100_000
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Searchable:
    """A flow's facts, and its words by what they say about it: name first, then node types, then prompts."""

    facts: FlowFacts
    words: tuple[str, str, str]

    def score(self, wanted: list[str]) -> int:
        """0 unless each wanted word begins a word of the flow; words of the name count most."""
        total = 0
        for word in wanted:
            ranks = [10 ** (2 - rank) for rank, text in enumerate(self.words) if f" {word}" in text]
            if not ranks:
                return 0
            total += ranks[0]
        return total


class FlowSearch:
    """Lists and searches the flows of instances."""

    def __init__(self, link: ChatflowLink) -> None:
        self._link = link
        self._lists: dict[str, FlowList[Searchable]] = {}
        self._kept: dict[str, tuple[float, Sequence[Searchable]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def find(self, instance_id: str, client: FlowiseClient, query: str, *, limit: int, drafts: bool) -> FlowPage:
        """Flows that fit all words of `query`, or all of them, last changed first. Raises FlowiseError."""
        everything = await self._read(instance_id, client)
        rows = [row for row in everything if drafts or not row.facts.draft]
        wanted = _words(query)
        if wanted:
            scored = [(row.score(wanted), row) for row in rows]
            rows = [row for score, row in sorted(scored, key=lambda item: -item[0]) if score]
        return FlowPage(flows=[row.facts for row in rows[:limit]], total=len(rows), searched=len(everything))

    async def _read(self, instance_id: str, client: FlowiseClient) -> Sequence[Searchable]:
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            kept = self._kept.get(instance_id)
            if kept is not None and time.monotonic() - kept[0] < _KEPT_SECS:
                return kept[1]
            flows = self._lists.setdefault(
                instance_id, FlowList(lambda row: searchable(row, instance_id, self._link), MAX_SEARCHED)
            )
            try:
                async with asyncio.timeout(_READ_SECS):
                    found = await flows.read(client)
            except TimeoutError:
                raise FlowiseTimeoutError(
                    f"Flowise at {client.endpoint} did not list its flows within {_READ_SECS:.0f} s."
                ) from None
            self._kept[instance_id] = time.monotonic(), found
            return found


def searchable(row: Chatflow, instance_id: str, link: ChatflowLink) -> Searchable:
    """What is cached of a flow."""
    nodes = _nodes(row)
    types = Counter(node.name for node in nodes)
    kinds = " ".join(f"{node.name} {_spaced(node.name)} {node.label}" for node in nodes)
    texts = " ".join(value[:_TEXT_CHARS] for node in nodes for value in node.inputs.values() if isinstance(value, str))
    facts = FlowFacts(
        id=row.id,
        name=masked(row.name),
        type=row.type or "CHATFLOW",
        instance=instance_id,
        url=link(instance_id, row.id),
        nodes=len(nodes),
        node_types=[name for name, _ in types.most_common(8)],
        categories=[masked(tag) for tag in row.tags if not tag.startswith(PREFIX)],
        updated=row.updated_date,
        deployed=bool(row.deployed),
        public=bool(row.is_public),
        draft=is_draft(row.category),
    )
    named = " ".join((row.name, row.id, *facts.categories))
    return Searchable(facts, (_spread(named), _spread(kinds), _spread(texts[:_TEXTS_CHARS])))


def _nodes(row: Chatflow) -> list[FlowNode]:
    document, _ = parse_document(row.flow_data)
    found = [FlowNode(raw) for raw in document["nodes"]] if document else []
    return [node for node in found if not node.is_note]


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _spread(text: str) -> str:
    """Each word once, with a blank before it, so that a beginning is found by looking for blank and beginning."""
    return " " + " ".join(dict.fromkeys(_words(text)))


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
