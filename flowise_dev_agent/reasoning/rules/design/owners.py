"""Which nodes and steps of a flow that is there a wish means by their names, and by what it says of them."""

import json
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from functools import reduce
from typing import Any, TypeVar

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build, wording
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.details import in_ascii
from flowise_dev_agent.reasoning.rules.design.providers import model_ids
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, concept, pattern, words
from flowise_dev_agent.reasoning.rules.language.senses import HALF
from flowise_dev_agent.reasoning.rules.language.text import Span, mentions

DIGITS, _WORD = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\w)"), re.compile(r"[^\W\d_]{3,}")
_STEP, _NO = concept("steps", "step"), pattern("text", "no")
#: What everybody calls such a step names none of several.
_PLAIN = frozenset({"Start", "Agent", "LLM", "Reply", "Direct Reply", "Human Input", "HTTP request", "HTTP", "Model"})
_MODELS = "Chat Models"
_Key = TypeVar("_Key", bound=Hashable)
#: What people call a node of a kind; the title alone names none of several.
_ANY = frozenset({"", "agent", "llm", "model", "start"})


def titled(request: PlanRequest, said: str, among: Collection[str] = ()) -> list[str]:
    """The steps (`among` these ids, else all) whose titles a stretch names: as they are, else by their words in other
    forms, "the step that writes the reply" for the Reply writer."""
    titles = _titles(request, among)
    whole = [id_ for id_, name in titles.items() if wording.whole(name).search(said)]
    # "Send money draft" is not the Money draft.
    longer = {id_: [other for other in whole if len(titles[other]) > len(titles[id_])] for id_ in whole}
    rest = {
        id_: reduce(lambda text, one: wording.whole(titles[one]).sub(" ", text), longer[id_], said) for id_ in whole
    }
    whole = [id_ for id_ in whole if wording.whole(titles[id_]).search(rest[id_])]
    return whole or [id_ for id_, name in titles.items() if _stems(name) and _stems(name) <= _stems(said)]


def called(request: PlanRequest, said: str, among: Collection[str] = ()) -> list[str]:
    """The steps that a stretch names (`titled`), else those of whose title it has a word that is in no other title:
    "the technical answers" for Technical help; beside a title, too, where it calls them steps."""
    named, titles = titled(request, said, among), _titles(request, among)
    rest = reduce(lambda text, id_: wording.whole(titles[id_]).sub(" ", text), named, said)
    if named and not _STEP.search(rest):
        return named
    own = apart({id_: stems_of(name) for id_, name in titles.items()})
    return [*named, *(id_ for id_, words_ in own.items() if id_ not in named and words_ & stems_of(rest))]


def alike(request: PlanRequest, said: str, among: Collection[str]) -> list[str]:
    """The several of these steps whose titles share a word that a stretch has: "the drafts"; none where all do."""
    titles = {id_: stems_of(name) for id_, name in _titles(request, among).items()}
    shared = ([id_ for id_, own in titles.items() if word in own] for word in stems_of(said))
    return next((some for some in shared if 1 < len(some) < len(among)), [])


def meant(request: PlanRequest, said: str, among: Collection[str] = ()) -> list[str]:
    """The steps that a stretch calls by their names (`called`), else the one whose texts speak of what it says, far
    more than all others do ("the Team plan is 55"). `among` are the steps with a prompt."""
    nodes = [node for node in (request.base.nodes if request.base else ()) if not among or node.id in among]
    held = {node.id: stems_of(json.dumps(dict(node.inputs), ensure_ascii=False, default=str)) for node in nodes}
    words_ = {one for one in stems_of(said) if not one[0].isdigit()}
    first, second = [*Counter({id_: len(own & words_) for id_, own in apart(held).items()}).most_common(2), ("", 0)][:2]
    return called(request, said, among) or ([first[0]] if first[1] > max(1, 2 * second[1]) else [])


def _titles(request: PlanRequest, among: Collection[str]) -> dict[str, str]:
    return {id_: name for id_ in request.existing if (not among or id_ in among)
            and (name := request.labels.get(id_, "")) and name not in _PLAIN}  # fmt: skip


def apart(said: Mapping[_Key, Set[str]]) -> dict[_Key, Set[str]]:
    """Of each the words that no other one has."""
    counted = Counter(word for own in said.values() for word in own)
    return {id_: {word for word in own if counted[word] == 1} for id_, own in said.items()}


def stems_of(text: str) -> set[str]:
    """The stems of the words that say something, and the numbers."""
    said = in_ascii(text).casefold()
    return _stems(" ".join(one for one in _WORD.findall(said) if one not in FUNCTIONS)) | {*DIGITS.findall(said)}


def _stems(text: str) -> set[str]:
    return {(word.rstrip("aeiouyrs") or word)[:5] for word in _WORD.findall(text.casefold())}


def in_named(
    request: PlanRequest, places: Mapping[str, NodeSchema], wish: str, world: World
) -> Mapping[str, NodeSchema]:
    """The places (`node id` or `node id.path`) that a wish means: in nodes that it names, else all. Raises
    DeclinedError where a number says which."""
    said = "\n".join([wish, build.asked(request.requirement, request.clarifications).details])
    owners = {place: place.partition(".")[0] for place in places}
    names = {id_: [wording.whole(name) for name in own_names(request, id_)] for id_ in owners.values()}
    here = [id_ for id_ in names if any(name.search(said) for name in names[id_])]
    named = [id_ for id_ in here if any(any(mentions(said, name)) for name in names[id_])]
    # A title may be an everyday word, too: as it is written it is the title.
    exact = [id_ for id_ in named if request.labels.get(id_, "") in wish]
    chosen = exact or named or [id_ for id_ in names if id_ not in here]
    if here:
        return {place: schema for place, schema in places.items() if owners[place] in chosen}
    models = [place for place, schema in places.items() if schema.category in (_MODELS, "LLMs")]
    if len(models) > 1 and any(mentions(wish, pattern("inside", "ordinal"))):
        # How they are counted only the person knows.
        which = dict.fromkeys(request.labels.get(owners[place]) or owners[place] for place in models)
        raise world.decline("declined_which", nodes=", ".join(which))
    return places


def set_in(
    request: PlanRequest, places: Mapping[str, NodeSchema], wish: str, spans: Sequence[Span]
) -> dict[str, list[Span]]:
    """In which places of an AgentFlow which value is set: in the steps that its clause names, or the clause before it
    in its sentence; without a name in the only one, or in all where it says so."""
    ids, said = list(dict.fromkeys(place.partition(".")[0] for place in places)), [*clauses(wish, change=True)]
    if len(ids) < 2:
        return {place: list(spans) for place in places}
    answered = called(request, build.asked(request.requirement, request.clarifications).details)
    wholes, former, found = {one.start: one for one in said if one.whole}, list[str](), dict[str, list[Span]]()
    waiting, last = list[str](), list[Span]()
    for one in leaves(said):
        if whole := wholes.get(one.start):
            former, waiting, last = named if len(named := called(request, whole.said)) == 1 else [], [], []
        if one.sense.keep > HALF:
            # Of what stays nothing is set, and what comes behind it is of others.
            former, waiting, last = [], [], []
            continue
        here = [span for span in spans if one.meets([span])]
        own = called(request, one.said) or alike(request, one.said, ids)
        # "The complaint step": of those that have a model.
        own = own or (called(request, one.said, ids) if _STEP.search(one.said) else [])
        # "Gpt-4.1 for the Sorter and the Writer", or "run the Sorter and the Writer on gpt-4.1".
        names = (wording.whole(request.labels.get(id_, "")) for id_ in own)
        bare = not (
            _NO.search(one.said) or wording.says(reduce(lambda text, name: name.sub(" ", text), names, one.said))
        )
        for id_ in own if last and bare and not here else ():
            found.setdefault(id_, []).extend(last)
        former = [*waiting, *own] if own else former or answered
        # "Billing should mention refunds, and General gets 0.2": that one is done.
        titles = (wording.whole(request.labels.get(id_, "")) for id_ in own)
        ends = any(not wording.says(one.said[at.end() :]) for title in titles for at in title.finditer(one.said))
        waiting = [*waiting, *own] if ends and not (here or last) else []
        every = _having(request, places, one.said) or ids
        for id_ in every if all_of(one.said, ids) and not former else former:
            found.setdefault(id_, []).extend(here)
        last = here or last
    return {place: own for place in places if (own := found.get(place.partition(".")[0]))}


def _having(request: PlanRequest, places: Mapping[str, NodeSchema], said: str) -> list[str]:
    """The steps with a model that a stretch names: "all gpt-4o steps to gpt-4.1"."""
    held: dict[str, Any] = {place: request.stored(*place.split(".", 1)) for place in places}
    having = (place for place, one in held.items() if isinstance(one, dict) and one.get("modelName") in model_ids(said))
    return list(dict.fromkeys(place.partition(".")[0] for place in having))


def all_of(said: str, ids: Collection[str]) -> bool:
    """Whether a stretch says something of all of these; "both" says it of two."""
    return words("all_of_them").search(said) is not None and (
        len(ids) == 2 or not pattern("inside", "both").search(said)
    )


def own_names(request: PlanRequest, node_id: str) -> list[str]:
    """The id of a node and the title that the person gave it."""
    label, schema = request.labels.get(node_id, ""), request.nodes.get(request.existing.get(node_id, ""))
    return [node_id, *([label] if label.casefold() not in {*_ANY, schema.label.casefold() if schema else ""} else [])]
