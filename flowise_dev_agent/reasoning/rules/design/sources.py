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
from flowise_dev_agent.reasoning.rules.design.owners import titled
from flowise_dev_agent.reasoning.rules.design.providers import MODEL_SERVER
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, table, words
from flowise_dev_agent.reasoning.rules.language.senses import MOSTLY, sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, NUL, Span, concepts, masked

_URL = re.compile(r"https?://[^\s\"'<>)\]”“»]+(?<![.,;:!?])")
_SENT_TO, _MORE, _OUT = pattern("words", "sent_to"), pattern("change", "more"), pattern("change", "out")
_BESIDE, _SENDS = pattern("change", "beside"), pattern("rewiring", "sends")
_PAGE, _PAGES, _FILE, _NOW, _SAID = (pattern("change", name) for name in ("page", "pages", "file", "now", "said"))
_CALLS, _SWAPS, _BY = pattern("change", "calls"), pattern("exchange", "swaps"), pattern("exchange", "by")
_BARE = re.compile(r"^https?://(?:www\.)?|/$")
_DESCRIBES = "description"
#: Fields that say where a model is served.
_SERVERS = frozenset({"basepath", "basePath", "baseUrl"})


@dataclass(frozen=True)
class Made:
    """`text` is the wish with NULs for addresses; `spans` are where what is done here is said. `swaps` is old -> new,
    wherever the flow names it; `added` is id -> type, and `links` are connections that come."""

    text: str
    spans: tuple[Span, ...] = ()
    values: tuple[PlannedValue, ...] = ()
    swaps: Mapping[str, str] = field(default_factory=dict[str, str])
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    removed: tuple[str, ...] = ()
    links: tuple[DesignConnection, ...] = ()


def find_sources(request: PlanRequest, text: str, existing: Mapping[str, NodeSchema]) -> Made:
    """What a wish says of addresses and documents; something to answer from always stays."""
    found, last, once, named = Made(text), list[str](), ("", ""), False
    #: By the sentence: the files that loaders get, and where others come.
    files, grown = list[tuple[str, PlannedValue]](), set[str]()
    loaders = {id_: schema for id_, schema in existing.items() if schema.category == "Document Loaders"}
    pages = [id_ for id_, one in loaders.items() if any(param.name == "url" for param in one.params)]
    web = next((loaders[id_].name for id_ in pages), "cheerioWebScraper")
    titles = {id_: wording.whole(in_ascii(request.labels.get(id_) or NUL)) for id_, one in existing.items()
              if one.category in ("Document Loaders", "Tools")}  # fmt: skip
    for start, end in _clauses(text) if titles else ():
        said, plain = text[start:end], wording.unquoted(text[start:end])
        if sense(said.strip(), change=True).told > MOSTLY and not _is_source(said, plain):
            continue
        kinds = [names[0] for looked_for, names in table("loaders") if loaders and looked_for.search(plain)]
        kinds += [web] if loaders and (_PAGE.search(plain) or _URL.search(said)) else []
        file, refers = _FILE.search(said), wording.refers(plain)
        spoken = [id_ for id_, title in titles.items() if title.search(in_ascii(said))]
        mine = [id_ for id_, one in loaders.items() if one.name in kinds or id_ in spoken
                or (file and file[0] in request.labels.get(id_, ""))]  # fmt: skip
        instead = words("instead_of").search(plain) or (_SWAPS.search(plain) and _BY.search(plain))
        # "Replace the PDF by these pages": the address was said before.
        only = [*_URL.finditer(text)] if instead and {*mine} - {*found.removed} and _PAGES.search(plain) else []
        address = _URL.search(said) or (only[0] if len(only) == 1 else None)
        out = not instead and (words("remove").search(plain) or _OUT.search(plain))
        # "Add the new manual, too, it's a PDF (new.pdf)".
        adds = words("add").search(re.split(r"[.!?]\s|\n", text[:start])[-1])
        sentence = _sentence_at(text, start)
        beside = (file and (adds or not mine or _BESIDE.search(wording.unquoted(sentence)))) or (
            _is_source(said, plain) and not _SWAPS.search(plain))  # fmt: skip
        more = not instead and ((_MORE.search(plain) and not _SAID.search(plain)) or beside)
        stays = len(loaders) > len({*mine, *found.removed}) and not address
        comes, goes, values = "", list[str](), list[PlannedValue]()
        if more and not out and (kinds or (last and refers)):
            comes = web if address else next((one for one in kinds or last if one != web), "")
        elif mine and address and not pages and (instead or words("change").search(plain)):
            comes, goes = web, mine
        elif out and not (words("all_of_them").search(plain) and len({*mine}) < len(loaders)):
            goes = [id_ for id_ in spoken if id_ not in loaders] or (mine if stays else [])
        elif file and not address and len(mine) == 1 and file[0] not in request.labels.get(mine[0], ""):
            fields = [one["name"] for one in loaders[mine[0]].input_definitions if one["type"] == "file"]
            marked = f"{MARK}: {loaders[mine[0]].label}: {file[0]}]"
            values = [PlannedValue(node_id=mine[0], param=name, value=marked) for name in fields[:1]]
            files += [(sentence, one) for one in values]
        # "One more PDF, the price list (prices.pdf), it is to come, too" is one.
        if comes and (sentence, comes) == once and not (named and (file or address)):
            comes, named = "", named or bool(file)
        elif comes:
            once, named = (sentence, comes), bool(file or address)
            grown.add(sentence)
        # "It is to go": said of what went.
        follows = (instead and mine and {*mine} <= {*found.removed}) or (found.spans and not kinds and out and refers)
        if comes or goes or values or follows:
            # What ends the sentence stays: the next one is another.
            last_ = start + len(text[start:end].rstrip(" .!?\n"))
            text_ = masked(found.text, start, last_) if {*goes} - {*loaders} else found.text
            more = {"spans": (*found.spans, Span(start, end, frozenset({DONE}))), "removed": (*found.removed, *goes)}
            found = replace(found, text=text_, values=(*found.values, *values), **more)
            found = _with(found, comes, address[0] if address else "", existing) if comes else found
            found = _described(request, found, said, existing) if comes else found
        last = kinds or last
    # "One more PDF, the price list (prices.pdf)": the name is that of the new one.
    dropped = [one for where, one in files if where in grown]
    values = (one for one in found.values if one not in dropped)
    return _exchanged(request, replace(found, values=tuple(values)), existing)


def _clauses(text: str) -> list[tuple[int, int]]:
    """The clauses of a wish; an address that stands alone between commas belongs to what is in front of it."""
    found = list[tuple[int, int]]()
    for start, end in wording.clauses(text):
        alone = found and _URL.search(text, start, end) and not re.search(r"\w", _URL.sub("", text[start:end]))
        found.append((found.pop()[0] if alone else start, end))
    return found


def _sentence_at(text: str, place: int) -> str:
    return next(text[start:end] for start, end, _ in wording.sentences(text, []) if start <= place < end)


def _is_source(said: str, plain: str) -> bool:
    """Whether a clause names one more page, and not one that people are sent to: "let it read the page ..., too"."""
    address = _URL.search(said)
    more = any(one.search(plain) for one in (_MORE, _BESIDE)) and concepts(plain, "sources")
    return bool(address and more and not _SENT_TO.search(said[: address.start()]))


def _with(found: Made, name: str, address: str, existing: Mapping[str, NodeSchema]) -> Made:
    """With one more loader, whose texts are cut like those of the others."""
    (id_,) = build.fresh_ids((name,), {**existing, **found.added})
    values = [PlannedValue(node_id=id_, param="url", value=address)] if address else []
    splitters = [one for one, schema in existing.items() if schema.category == "Text Splitters"][:1]
    links = [DesignConnection(source=one, target=id_, input="textSplitter") for one in splitters]
    text = found.text.replace(address, NUL * len(address)) if address else found.text
    more = {"values": (*found.values, *values), "links": (*found.links, *links)}
    return replace(found, text=text, added={**found.added, id_: name}, **more)


def _described(request: PlanRequest, found: Made, said: str, existing: Mapping[str, NodeSchema]) -> Made:
    """With the words for a new source in the description of the tool that finds it: an agent calls it by that."""
    tools = [id_ for id_, one in existing.items() if one.name == "retrieverTool"]
    if len(tools) != 1:
        return found
    # What was read already, as a name of the flow, is a NUL.
    line = wording.line_of(said.replace(NUL, " "))
    values = {(one.node_id, one.param): one for one in found.values}
    former = values.get((tools[0], _DESCRIBES))
    told = f"{(former.value if former else request.stored(tools[0], _DESCRIBES)) or ''}\n{line}".strip()
    values[tools[0], _DESCRIBES] = PlannedValue(node_id=tools[0], param=_DESCRIBES, value=told)
    return replace(found, values=tuple(values.values()))


def _exchanged(request: PlanRequest, found: Made, existing: Mapping[str, NodeSchema]) -> Made:
    """With the one address that takes the place of another: of the one that is named, else of the only one. The one of
    a store leads to no page."""
    loaders = {id_ for id_, one in existing.items() if one.category == "Document Loaders"}
    inside = any(one.is_agentflow for one in existing.values())
    text, nodes = found.text, [node for node in (request.base.nodes if request.base else ()) if node.id in existing
                               and existing[node.id].category != "Vector Stores"]  # fmt: skip
    held = {(node.id, name): str(value).strip() for node in nodes for name, value in node.inputs.items()
            if name not in _SERVERS and _URL.fullmatch(str(value).strip())}  # fmt: skip
    named = {place: [*_spelled(value).finditer(text)] for place, value in held.items()}
    olds = [one.start() for spelled in named.values() for one in spelled]
    new = [one for one in _URL.finditer(text) if one.start() not in olds and not MODEL_SERVER.match(one[0])
           and (_CALLS.search(text) or not _SENT_TO.search(text[: one.start()]))]  # fmt: skip
    places = [place for place, spelled in named.items() if spelled] or [*held]
    if len(new) != 1 or len(places) != 1:
        return found
    (address,), (place,) = new, places
    said = _sentence_at(text, address.start())
    meant = place[0] in loaders or not inside or place[0] in titled(request, said) or _CALLS.search(said)
    if not olds and not (_NOW.search(said) and meant):
        # "For complaints it goes to ..." is one more, and of steps one has to be named.
        return found
    ((start, end),) = [(a, b) for a, b in _clauses(text) if a <= address.start() < b]
    if not olds and any(one.search(text, start, end) for one in (words("add"), _BESIDE, _SENDS)):
        # One more is not another one.
        return found
    for one in [address, *named[place]]:
        text = masked(text, *one.span())
    bare = _BARE.sub("", held[place])
    value = PlannedValue(node_id=place[0], param=place[1], value=address[0])
    swaps = dict.fromkeys((held[place], *((f"www.{bare}", bare) if bare not in address[0] else ())), address[0])
    spans = (*found.spans, Span(start, end, frozenset({DONE})))
    return replace(found, text=text, spans=spans, values=(*found.values, value), swaps=swaps)


def _spelled(address: str) -> re.Pattern[str]:
    """An address as people write it: with or without what is in front of its name."""
    return re.compile(rf"(?i)(?<![\w/.-])(?:https?://)?(?:www\.)?{re.escape(_BARE.sub('', address))}/?(?![\w/?=-])")
