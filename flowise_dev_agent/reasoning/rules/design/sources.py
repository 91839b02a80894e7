"""Addresses and documents of a flow that is there: what a wish exchanges, adds and takes out. Read before all else, and
hidden from it: the words of an address ask for nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from flowise_dev_agent.contracts.plan import DesignConnection, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.placeholders import MARK
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build, wording
from flowise_dev_agent.reasoning.rules.design.details import in_ascii
from flowise_dev_agent.reasoning.rules.design.providers import MODEL_SERVER
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, table, words
from flowise_dev_agent.reasoning.rules.language.text import DONE, NUL, PAGE_URL, Span, masked

_URL = re.compile(r"https?://[^\s\"'<>)\]”“»]+(?<![.,;:!?])")
_SENT_TO, _MORE, _OUT = pattern("words", "sent_to"), pattern("change", "more"), pattern("change", "out")
_BESIDE = pattern("change", "beside")
_PAGE, _PAGES, _FILE, _NOW, _SAID = (pattern("change", name) for name in ("page", "pages", "file", "now", "said"))
_CALLS, _SWAPS, _BY = pattern("change", "calls"), pattern("exchange", "swaps"), pattern("exchange", "by")
_BARE = re.compile(r"^https?://(?:www\.)?|/$")
#: "The docs moved. Swap it."
_FEW = 5
#: Fields that say where a model is served.
_SERVERS = frozenset({"basepath", "basePath", "baseUrl"})


@dataclass(frozen=True)
class Made:
    """`text` is the wish with NULs for addresses; `spans` are where what is done here is said, `undone` what is not.
    `swaps` is old -> new, wherever the flow names it; `added` is id -> type, `links` and `cuts` connections that come
    and go, `labels` titles, `steps` tell of what values do not show, and `named` is what
    is called by its name."""

    text: str
    spans: tuple[Span, ...] = ()
    values: tuple[PlannedValue, ...] = ()
    swaps: Mapping[str, str] = field(default_factory=dict[str, str])
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    removed: tuple[str, ...] = ()
    links: tuple[DesignConnection, ...] = ()
    cuts: tuple[DesignConnection, ...] = ()
    undone: tuple[Span, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    steps: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def find_sources(request: PlanRequest, text: str, existing: Mapping[str, NodeSchema]) -> Made:
    """What a wish says of addresses and documents; something to answer from always stays."""
    found, last = Made(text), list[str]()
    loaders = {id_: schema for id_, schema in existing.items() if schema.category == "Document Loaders"}
    pages = [id_ for id_, one in loaders.items() if any(param.name == "url" for param in one.params)]
    titles = {id_: wording.whole(in_ascii(request.labels.get(id_) or NUL)) for id_, one in existing.items()
              if one.category in ("Document Loaders", "Tools")}  # fmt: skip
    for start, end in wording.clauses(text) if titles else ():
        said, plain = text[start:end], wording.unquoted(text[start:end])
        kinds = [names[0] for looked_for, names in table("loaders") if loaders and looked_for.search(plain)]
        web = next((loaders[id_].name for id_ in pages), "cheerioWebScraper")
        kinds += [web] if loaders and (_PAGE.search(plain) or _URL.search(said)) else []
        file = _FILE.search(said)
        spoken = [id_ for id_, title in titles.items() if title.search(in_ascii(said))]
        mine = [id_ for id_, one in loaders.items() if one.name in kinds or id_ in spoken
                or (file and file[0] in request.labels.get(id_, ""))]  # fmt: skip
        swaps = _SWAPS.search(plain) and _BY.search(plain)
        instead, done = words("instead_of").search(plain) or swaps, (*found.spans, Span(start, end, frozenset({DONE})))
        # "Replace the PDF by these pages": the address was said before.
        only = [*_URL.finditer(text)] if instead and {*mine} - {*found.removed} and _PAGES.search(plain) else []
        address = _URL.search(said) or (only[0] if len(only) == 1 else None)
        out = words("remove").search(plain) or _OUT.search(plain)
        more = (_MORE.search(plain) and not _SAID.search(plain)) or (file and _BESIDE.search(plain))
        if more and not instead and (kinds or (last and wording.refers(plain))):
            name = web if address else next((one for one in kinds or last if one != web), "")
            found = replace(_with(found, name, address[0] if address else "", existing), spans=done) if name else found
        elif out and not instead and (named := [id_ for id_ in spoken if id_ not in loaders]):
            found = replace(found, text=masked(found.text, start, end), spans=done, removed=(*found.removed, *named))
        elif mine and address and not pages and (instead or words("change").search(plain)):
            found = replace(_with(found, web, address[0], existing), spans=done, removed=(*found.removed, *mine))
        elif instead and mine and {*mine} <= {*found.removed}:
            found = replace(found, spans=done)
        elif file and not address and len(mine) == 1 and file[0] not in request.labels.get(mine[0], ""):
            param = next((one["name"] for one in loaders[mine[0]].input_definitions if one["type"] == "file"), "")
            value = PlannedValue(node_id=mine[0], param=param, value=f"{MARK}: {loaders[mine[0]].label}: {file[0]}]")
            found = replace(found, spans=done, values=(*found.values, value)) if param else found
        elif out and mine and len(loaders) > len({*mine, *found.removed}) and not (address or instead):
            found = replace(found, spans=done, removed=(*found.removed, *mine))
        elif found.spans and not kinds and _OUT.search(plain) and wording.refers(plain):
            found = replace(found, spans=done)
        last = kinds or last
    return _exchanged(request, found, existing)


def _with(found: Made, name: str, address: str, existing: Mapping[str, NodeSchema]) -> Made:
    """With one more loader, whose texts are cut like those of the others."""
    (id_,) = build.fresh_ids((name,), {**existing, **found.added})
    values = [PlannedValue(node_id=id_, param="url", value=address)] if address else []
    splitters = [one for one, schema in existing.items() if schema.category == "Text Splitters"][:1]
    links = [DesignConnection(source=one, target=id_, input="textSplitter") for one in splitters]
    text = found.text.replace(address, NUL * len(address)) if address else found.text
    more = {"values": (*found.values, *values), "links": (*found.links, *links)}
    return replace(found, text=text, added={**found.added, id_: name}, **more)


def _exchanged(request: PlanRequest, found: Made, existing: Mapping[str, NodeSchema]) -> Made:
    """With the one address that takes the place of another: of the one that is named, else of the only one."""
    held = {(node.id, name): value.strip() for node in (request.base.nodes if request.base else ())
            if node.id in existing for name, value in node.inputs.items() if isinstance(value, str)
            and _URL.fullmatch(value.strip()) and name not in _SERVERS}  # fmt: skip
    named = {place: [*_spelled(value).finditer(found.text)] for place, value in held.items()}
    olds = [one.start() for spelled in named.values() for one in spelled]
    new = [one for one in _URL.finditer(found.text) if one.start() not in olds and not MODEL_SERVER.match(one[0])
           and (_CALLS.search(found.text) or not _SENT_TO.search(found.text[: one.start()]))]  # fmt: skip
    # The page of a website takes the place of no store.
    open_ = [
        place for place in held if existing[place[0]].category != "Vector Stores" or not PAGE_URL.search(found.text)
    ]
    places = [place for place, spelled in named.items() if spelled] or open_
    if len(new) != 1 or len(places) != 1 or not (olds or _NOW.search(found.text)):
        return found
    place, address, text = places[0], new[0][0], found.text
    if not olds and any(words("add").search(text[a:b]) for a, b in wording.clauses(text) if a <= new[0].start() < b):
        # One more is not another one.
        return found
    spans = [Span(_from(text, a, new[0].start()), b, frozenset({DONE})) for a, b in wording.clauses(text)
             if a <= new[0].start() < b or (wording.alters(text[a:b]) and len(text[a:b].split()) < _FEW)]  # fmt: skip
    for one in [*new, *named[place]]:
        text = masked(text, *one.span())
    bare, value = _BARE.sub("", held[place]), PlannedValue(node_id=place[0], param=place[1], value=address)
    swaps = dict.fromkeys((held[place], *((f"www.{bare}", bare) if bare not in address else ())), address)
    return replace(found, text=text, spans=(*found.spans, *spans), values=(*found.values, value), swaps=swaps)


def _from(text: str, start: int, end: int) -> int:
    """Where what is said of an address begins: behind what says how to behave."""
    before = [one.end() for one in re.finditer(r",\s", text[:end]) if one.start() > start]
    return max([start, *(at for at in before if wording.tells(text[start:at]))])


def _spelled(address: str) -> re.Pattern[str]:
    """An address as people write it: with or without what is in front of its name."""
    return re.compile(rf"(?i)(?<![\w/.-])(?:https?://)?(?:www\.)?{re.escape(_BARE.sub('', address))}/?(?![\w/?=-])")
