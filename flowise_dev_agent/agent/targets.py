"""Search for existing flows: by id, by name, by node types and by prompt texts."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.state import TargetSearch
from flowise_dev_agent.errors import FlowiseNotFoundError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_tags import is_draft
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.flow_index import FlowSource, indexed
from flowise_dev_agent.persistence.instance_flows import (
    STEM,
    Candidates,
    FlowRow,
    FoundFlow,
    Place,
    Wanted,
    words_of,
)
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.interrupts import TargetCandidate
from flowise_dev_agent.schemas.plan import FlowKind

MAX_CANDIDATES = 10
#: Kinds of flows that can be edited here.
KINDS: Final[tuple[FlowKind, ...]] = ("CHATFLOW", "AGENTFLOW", "MULTIAGENT")
_ID = 1_000
_NAME = 200
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_NAME_CHARS: Final = 120
_SHORTEST: Final = 3
_QUOTED: Final = re.compile(r"[\"'“”„«»‘’]\s*([^\"'“”„«»‘’]{1,200}?)\s*[\"'“”„«»‘’]")
#: Most words of a text that are searched for names, and most words of one name.
_NAMING_WORDS: Final = 1_000
_NAME_WORDS: Final = 10
#: Most stems of a text that are searched for.
_MOST_STEMS: Final = 60
#: Weight of a word by place (name, node types and titles, prompts), and the score from which a flow fits.
_WEIGHTS: Final[dict[Place, float]] = {"name": 1.0, "nodes": 0.7, "texts": 0.6}
_ALIKE: Final = 0.3
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


@dataclass(frozen=True)
class FoundTargets:
    """Matching flows, best first, or the last changed flows if none matches.

    `exact` is the id when the request leaves no choice.
    """

    candidates: list[TargetCandidate]
    search: TargetSearch
    exact: str | None


async def find_targets(
    flows: FlowSource, client: FlowiseClient, *, target: str | None, hint: str | None, text: str
) -> FoundTargets:
    """Search the flows of an instance, without session drafts. Raises FlowiseError.

    `target` is the request's own id or name, `hint` what the intent found, `text` the requirement.
    """
    wanted = _wanted(target, hint, text)
    found = await flows.candidates(client, wanted)
    likeness = _Likeness(found, wanted.stems)
    scored = sorted(
        (
            (_score(flow.row, target, hint, text), likeness.of(flow), -index, flow.row)
            for index, flow in enumerate(found.flows)
        ),
        key=lambda item: item[:3],
        reverse=True,
    )
    fitting = [flow for score, alike, _, flow in scored if score or alike >= _ALIKE]
    shown = fitting or [flow for _, _, _, flow in scored]
    named = bool(scored) and scored[0][0] >= _NAME
    exact = _exact([flow.row for flow in found.flows], target, hint, text)
    unchangeable = "" if exact or not target else await _of_another_type(client, target)
    return FoundTargets(
        candidates=[_candidate(flow) for flow in shown[:MAX_CANDIDATES]],
        search=TargetSearch(
            fits=bool(fitting), named=named, total=found.total, wanted=target or hint, unchangeable=unchangeable
        ),
        exact=exact,
    )


async def _of_another_type(client: FlowiseClient, target: str) -> str:
    """Name of the flow with this id if it is of a type that sessions do not change, else ''."""
    if flow_id(target) is None:
        return ""
    try:
        row = await client.get_chatflow(target)
    except FlowiseNotFoundError:
        return ""
    return shortened(masked(row.name), _NAME_CHARS) if kind_of(row) is None else ""


def flow_id(target: str | None) -> str | None:
    """The id that a request's target is, if it is one."""
    return target if target and _UUID.fullmatch(target) else None


def of_id(row: Chatflow) -> FoundTargets | None:
    """The flow that a request names by its id; None for drafts and for types that sessions do not change."""
    if kind_of(row) is None or is_draft(row.category):
        return None
    search = TargetSearch(fits=True, named=True, total=1, wanted=row.id)
    return FoundTargets([_candidate(indexed(row).row)], search, row.id)


def _wanted(target: str | None, hint: str | None, text: str) -> Wanted:
    """Search terms for the flow, from the request's texts."""
    said = [part for part in (target, hint, text) if part]
    ids = {match.casefold() for part in said for match in _UUID.findall(part)}
    phrases = dict.fromkeys(phrase for part in said for phrase in _phrases(part))
    return Wanted(
        kinds=KINDS,
        ids=sorted({*ids, *([target] if target else [])}),
        phrases=list(phrases),
        stems=_stems(target or hint or text),
    )


def _phrases(text: str) -> list[str]:
    words = words_of(text)[:_NAMING_WORDS]
    return [
        " ".join(words[begin:end])
        for begin in range(len(words))
        for end in range(begin + 1, min(begin + _NAME_WORDS, len(words)) + 1)
    ]


def kind_of(row: Chatflow) -> FlowKind | None:
    """Kind of a flow that can be edited here; None for any other. Old flows without a type are chatflows."""
    type_ = row.type or "CHATFLOW"
    return next((kind for kind in KINDS if kind == type_), None)


def _candidate(row: FlowRow) -> TargetCandidate:
    return TargetCandidate(
        id=row.id,
        name=row.name,
        type=row.type,
        nodes=row.nodes,
        node_types=list(row.node_types),
        about=row.about,
        updated=row.updated_date,
        deployed=row.deployed,
    )


def _exact(rows: list[FlowRow], target: str | None, hint: str | None, text: str) -> str | None:
    """Id of the one flow that an id, the request's `target` (as a whole name) or the texts name; else None.

    A longer name wins over those inside it: "Billing bot 003" is not "Billing bot".
    """
    ids = {row.id for row in rows}
    if target:
        if target in ids:
            return target
        same = [row.id for row in rows if row.name.casefold().strip() == target.casefold().strip()]
        return same[0] if len(same) == 1 else None
    by_id = {match.casefold() for match in _UUID.findall(f"{hint or ''} {text}")} & ids
    if by_id:
        return by_id.pop() if len(by_id) == 1 else None
    named = [row for row in rows if _says_name(row, hint or "")] or [row for row in rows if _is_called(row, text)]
    longest = max(named, key=lambda row: len(row.name), default=None)
    if longest is None or not all(row is longest or _says_name(row, longest.name) for row in named):
        return None
    return longest.id if sum(row.name == longest.name for row in named) == 1 else None


def _score(row: FlowRow, target: str | None, hint: str | None, text: str) -> int:
    """Score of how clearly the texts name the flow; 0 if they do not."""
    if row.id in " ".join(filter(None, (target, hint, text))):
        return _ID
    name = row.name.casefold().strip()
    if name and any(name == part.casefold().strip() for part in (target, hint) if part):
        return _NAME * 2
    return _NAME if any(_says_name(row, part) for part in (target, hint, text) if part) else 0


def names_a_flow(found: "FoundTargets", text: str) -> str | None:
    """Name of the best of the found flows, if a text calls it by its exact name."""
    return next((one.name for one in found.candidates if _is_called(one, text)), None)


def _is_called(row: FlowRow | TargetCandidate, text: str) -> bool:
    """True if a text has the exact name; one of a single word has to be quoted, as it may be any word."""
    if len(row.name.split()) > 1:
        return _says_name(row, text)
    return len(row.name) >= _SHORTEST and any(
        said.casefold().strip() == row.name.casefold().strip() for said in _QUOTED.findall(text)
    )


def _says_name(row: FlowRow | TargetCandidate, words: str) -> bool:
    name = row.name.casefold().strip()
    return len(name) >= 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words.casefold()) is not None


class _Likeness:
    """Similarity of flows to the search words, by name, node types and prompt texts.

    Rare words count more than common ones, and words in the name more than words in a prompt.
    """

    def __init__(self, found: Candidates, stems: Sequence[str]) -> None:
        self._rarity = {stem: math.log(1 + (found.total + 1) / (1 + found.counts.get(stem, 0))) for stem in stems}

    def of(self, flow: FoundFlow) -> float:
        """Score from 0 (no match) to 1 (all words are in the name)."""
        total = sum(self._rarity.values())
        found = sum(self._rarity[stem] * _WEIGHTS[place] for stem, place in flow.places.items())
        return found / total if total else 0.0


def _stems(text: str) -> list[str]:
    """Stems of the words: their first letters, which endings do not change in most languages."""
    words = [word for word in words_of(text) if len(word) >= _SHORTEST and word not in _COMMON]
    return list(dict.fromkeys(word[:STEM] for word in words))[:_MOST_STEMS]
