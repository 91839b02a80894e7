"""Which existing flows a text may mean: by id, by name, by what they are made of and by what their prompts say."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.state import TargetSearch
from flowise_dev_agent.contracts.interrupts import TargetCandidate
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import NodeData
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.publish import is_draft
from flowise_dev_agent.reasoning.contracts import FlowKind

#: Flows that are searched at most, last updated first.
MAX_SCANNED = 2_000
MAX_CANDIDATES = 10
KINDS: Final[tuple[FlowKind, ...]] = ("CHATFLOW", "AGENTFLOW")
_ID = 1_000
_NAME = 200
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_WORD = re.compile(r"\w{3,}")
#: Words that say nothing about which flow is meant.
_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "that",
        "with",
        "this",
        "from",
        "have",
        "has",
        "use",
        "uses",
        "using",
        "flow",
        "flows",
        "chatflow",
        "chatflows",
        "agentflow",
        "agent",
        "bot",
        "chatbot",
        "change",
        "update",
        "edit",
        "copy",
        "make",
        "add",
        "remove",
        "replace",
        "switch",
        "set",
        "give",
        "keep",
        "everything",
        "else",
        "please",
        "our",
        "its",
        "into",
        "one",
        "der",
        "die",
        "das",
        "und",
        "mit",
        "den",
        "dem",
        "ein",
        "eine",
        "el",
        "la",
        "los",
        "las",
        "con",
        "para",
        "una",
        "les",
        "des",
        "une",
        "avec",
        "pour",
        "que",
    ]
)
_TEXT_FIELDS = 4_000


@dataclass(frozen=True)
class FoundTargets:
    """Flows that fit, best first, or the flows changed last when none fits.

    `exact` is the id when the request leaves no choice.
    """

    candidates: list[TargetCandidate]
    search: TargetSearch
    exact: str | None


async def find_targets(
    rows: AsyncIterator[Chatflow], *, target: str | None, hint: str | None, text: str
) -> FoundTargets:
    """Search the flows of an instance; drafts of sessions are left out.

    `target` is the request's own id or name, `hint` what the intent found, `text` the requirement.
    """
    flows: list[Chatflow] = []
    async for row in rows:
        if not is_draft(row.category):
            flows.append(row)
        if len(flows) >= MAX_SCANNED:
            break
    usable = [row for row in flows if kind_of(row)]
    scored = sorted(
        ((score, index, row) for index, row in enumerate(usable) if (score := _score(row, target, hint, text))),
        key=lambda item: (-item[0], item[1]),
    )
    shown = [row for _, _, row in scored] or usable
    named = bool(scored) and scored[0][0] >= _NAME
    return FoundTargets(
        candidates=[_candidate(row) for row in shown[:MAX_CANDIDATES]],
        search=TargetSearch(fits=bool(scored), named=named, total=len(usable), wanted=target or hint),
        exact=_exact(usable, target, f"{hint or ''} {text}"),
    )


def kind_of(row: Chatflow) -> FlowKind | None:
    """The kind of a flow that can be edited here, None for any other. Old flows have no type and are chatflows."""
    type_ = row.type or "CHATFLOW"
    return next((kind for kind in KINDS if kind == type_), None)


def _candidate(row: Chatflow) -> TargetCandidate:
    nodes = _nodes(row)
    names = Counter(str(node.get("name") or "?") for node in nodes)
    return TargetCandidate(
        id=row.id,
        name=row.name,
        type=row.type or "CHATFLOW",
        nodes=len(nodes),
        node_types=[name for name, _ in names.most_common(8)],
        updated=row.updated_date,
        deployed=bool(row.deployed),
    )


def _exact(rows: list[Chatflow], target: str | None, text: str) -> str | None:
    """The one flow that an id, or the request's `target` as a whole name, means."""
    ids = {row.id for row in rows}
    if target:
        if target in ids:
            return target
        same = [row.id for row in rows if row.name.casefold().strip() == target.casefold().strip()]
        return same[0] if len(same) == 1 else None
    named = {match.casefold() for match in _UUID.findall(text)} & ids
    return named.pop() if len(named) == 1 else None


def _score(row: Chatflow, target: str | None, hint: str | None, text: str) -> int:
    wanted = " ".join(filter(None, (target, hint, text)))
    if row.id in wanted:
        return _ID
    name = row.name.casefold().strip()
    if name and any(name == part.casefold().strip() for part in (target, hint) if part):
        return _NAME * 2
    if len(name) >= 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", wanted.casefold()):
        return _NAME
    words = _words((target or hint or text,))
    if not words:
        return 0
    nodes = _nodes(row)
    in_name = words & _words((row.name,))
    in_nodes = words & _words(
        f"{node.get('name', '')} {_spaced(str(node.get('name', '')))} {node.get('label', '')}" for node in nodes
    )
    in_texts = words & _words(_texts(nodes))
    score = 10 * len(in_name) + 4 * len(in_nodes - in_name) + 2 * len(in_texts - in_nodes - in_name)
    # One word mentioned in passing is not enough; of several words a good part must match.
    return score if in_name or score >= 4 + len(words) // 2 else 0


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def _nodes(row: Chatflow) -> list[NodeData]:
    document, _ = parse_document(row.flow_data)
    if document is None:
        return []
    return [node["data"] for node in document["nodes"] if node.get("type") != "stickyNote"]


def _texts(nodes: list[NodeData]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        inputs = node.get("inputs")
        for value in inputs.values() if isinstance(inputs, dict) else ():
            if isinstance(value, str) and len(value) > 12:
                found.append(value[:_TEXT_FIELDS])
            elif isinstance(value, list) and value:
                found.append(json.dumps(value, ensure_ascii=False)[:_TEXT_FIELDS])
    return found
