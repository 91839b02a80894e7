"""Which existing flows a text may mean: by id, by name, by what they are made of and by what their prompts say."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.state import TargetSearch
from flowise_dev_agent.contracts.interrupts import TargetCandidate
from flowise_dev_agent.flowise.flow_list import FlowList
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import NodeData
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.patch.views.essence import prompts_in
from flowise_dev_agent.publish import is_draft
from flowise_dev_agent.reasoning.contracts import FlowKind
from flowise_dev_agent.redaction import guarded, masked
from flowise_dev_agent.sanitize import shortened

#: Flows that are searched at most, last updated first.
MAX_SCANNED = 2_000
MAX_CANDIDATES = 10
KINDS: Final[tuple[FlowKind, ...]] = ("CHATFLOW", "AGENTFLOW")
_ID = 1_000
_NAME = 200
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_WORD = re.compile(r"\w{3,}")
_STEM = 5
#: What a word counts in the name, in the types and titles of nodes, in prompts; and from which sum on a flow fits.
_WEIGHTS: Final = (1.0, 0.7, 0.6)
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
_TEXT_FIELDS = 4_000
_ABOUT: Final = 160


@dataclass(frozen=True)
class Sketch:
    """What is searched of a flow. `made_of` and `texts` are stems, each with a blank on both sides."""

    id: str
    name: str
    kind: FlowKind | None
    draft: bool
    made_of: str
    texts: str
    shown: TargetCandidate


@dataclass(frozen=True)
class FoundTargets:
    """Flows that fit, best first, or the flows changed last when none fits.

    `exact` is the id when the request leaves no choice.
    """

    candidates: list[TargetCandidate]
    search: TargetSearch
    exact: str | None


def find_targets(flows: Sequence[Sketch], *, target: str | None, hint: str | None, text: str) -> FoundTargets:
    """Search the flows of an instance, last updated first; drafts of sessions are left out.

    `target` is the request's own id or name, `hint` what the intent found, `text` the requirement.
    """
    usable = [flow for flow in flows if flow.kind and not flow.draft]
    likeness = _Likeness(usable, target or hint or text)
    scored = sorted(
        ((_score(flow, target, hint, text), likeness.of(flow), -index, flow) for index, flow in enumerate(usable)),
        key=lambda item: item[:3],
        reverse=True,
    )
    fitting = [flow for score, alike, _, flow in scored if score or alike >= _ALIKE]
    shown = fitting or [flow for _, _, _, flow in scored]
    named = bool(scored) and scored[0][0] >= _NAME
    return FoundTargets(
        candidates=[flow.shown for flow in shown[:MAX_CANDIDATES]],
        search=TargetSearch(fits=bool(fitting), named=named, total=len(usable), wanted=target or hint),
        exact=_exact(usable, target, hint, text),
    )


def sketched(row: Chatflow) -> Sketch:
    """What is kept of a flow for the search."""
    nodes = _nodes(row)
    return Sketch(
        id=row.id,
        name=row.name,
        kind=kind_of(row),
        draft=is_draft(row.category),
        made_of=_spread(_made_of(nodes)),
        texts=_spread(_texts(nodes)),
        shown=_candidate(row, nodes),
    )


def flow_sketches() -> FlowList[Sketch]:
    """The sketches of an instance's flows, none read yet."""
    return FlowList(sketched, MAX_SCANNED)


def _spread(texts: Iterable[str]) -> str:
    return f" {' '.join(sorted(_stems(texts)))} "


def kind_of(row: Chatflow) -> FlowKind | None:
    """The kind of a flow that can be edited here, None for any other. Old flows have no type and are chatflows."""
    type_ = row.type or "CHATFLOW"
    return next((kind for kind in KINDS if kind == type_), None)


def _candidate(row: Chatflow, nodes: list[NodeData]) -> TargetCandidate:
    names = Counter(str(node.get("name") or "?") for node in nodes)
    return TargetCandidate(
        id=row.id,
        name=masked(row.name),
        type=row.type or "CHATFLOW",
        nodes=len(nodes),
        node_types=[name for name, _ in names.most_common(8)],
        about=_about(nodes),
        updated=row.updated_date,
        deployed=bool(row.deployed),
    )


def _exact(rows: list[Sketch], target: str | None, hint: str | None, text: str) -> str | None:
    """The one flow that an id means, or the request's `target` as a whole name, or the words for the flow by its name.

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
    named = [row for row in rows if _says_name(row, hint or "")]
    longest = max(named, key=lambda row: len(row.name), default=None)
    if longest is None or not all(row is longest or _says_name(row, longest.name) for row in named):
        return None
    return longest.id if sum(row.name == longest.name for row in named) == 1 else None


def _score(row: Sketch, target: str | None, hint: str | None, text: str) -> int:
    """How surely the words name the flow; 0 when they do not."""
    if row.id in " ".join(filter(None, (target, hint, text))):
        return _ID
    name = row.name.casefold().strip()
    if name and any(name == part.casefold().strip() for part in (target, hint) if part):
        return _NAME * 2
    return _NAME if any(_says_name(row, part) for part in (target, hint, text) if part) else 0


def _says_name(row: Sketch, words: str) -> bool:
    name = row.name.casefold().strip()
    return len(name) >= 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words.casefold()) is not None


class _Likeness:
    """How much of what the words say is in a flow: its name, what it is made of, what its prompts say.

    Rare words count more than those that most flows have, and a word in the name more than one in a prompt.
    """

    def __init__(self, flows: list[Sketch], words: str) -> None:
        self._wanted = _stems((words,))
        self._found = {flow.id: self._weighed(flow) for flow in flows}
        counts = Counter(stem for found in self._found.values() for stem in found)
        self._rarity = {stem: math.log(1 + (len(flows) + 1) / (1 + counts[stem])) for stem in self._wanted}

    def of(self, flow: Sketch) -> float:
        """0 (nothing) to 1 (all of it is in the name)."""
        total = sum(self._rarity.values())
        return (
            sum(self._rarity[stem] * weight for stem, weight in self._found[flow.id].items()) / total if total else 0.0
        )

    def _weighed(self, flow: Sketch) -> dict[str, float]:
        """The wanted stems that the flow has, each with what it counts in the best place."""
        fields = (_spread((flow.name,)), flow.made_of, flow.texts)
        best: dict[str, float] = {}
        for stem in self._wanted:
            weights = [weight for weight, field in zip(_WEIGHTS, fields, strict=True) if f" {stem} " in field]
            if weights:
                best[stem] = max(weights)
        return best


def _stems(texts: Iterable[str]) -> set[str]:
    """Words by their beginning, which endings do not change in most languages."""
    return {word[:_STEM] for text in texts for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _made_of(nodes: list[NodeData]) -> list[str]:
    return [f"{node.get('name', '')} {_spaced(str(node.get('name', '')))} {node.get('label', '')}" for node in nodes]


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


def _about(nodes: list[NodeData]) -> str:
    """The beginning of the first prompt."""
    prompts = (text[:_TEXT_FIELDS] for node in nodes for text in prompts_in(node.get("inputs")))
    return guarded(shortened(" ".join(next(prompts, "").split()), _ABOUT))
