"""Things that only the person can do: placeholders to fill, files and variables to supply, credentials to choose."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from flowise_dev_agent.patch import GraphIR, Schemas
from flowise_dev_agent.patch.model.labels import credential_name, in_words, titled
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.planning.passes.custom_tools import is_to_write
from flowise_dev_agent.planning.passes.feasibility import VARIABLE_TO_CREATE
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.testing.checks import settings_in
from flowise_dev_agent.texts import listed, text

#: Most things that are listed, and most characters of each.
_MOST, _SHOWN = 30, 200
_FILL, _FILE = "to_do.fill", "to_do.file"
_SHORTEST: Final = 4
_WORD: Final = re.compile(r"\w+")
_PLACEHOLDER: Final = re.compile(re.escape(MARK) + r":?\s*([^\]]{0,500})")


def to_do(
    plan: Plan, graph: GraphIR, titles: Mapping[str, str], schemas: Schemas, credentials: Iterable[str]
) -> list[str]:
    """A sentence for each thing, with its places. `credentials` are the types that are still to be chosen."""
    places: dict[tuple[str, str], list[str]] = {}
    words: dict[tuple[str, str], str] = {}
    to_fill = {node.id for node in graph.nodes if any(_is_open(value) for _, value in settings_in(node.inputs))}
    open_places = {
        one
        for node in graph.nodes
        for name, value in settings_in(node.inputs)
        if _is_open(value)
        for title in [titles.get(node.id, node.label)]
        # A title of one word may mean anything.
        for one in (node.id, f"({name})", title if " " in title else f'"{title}"')
    }
    for code, what, where in _to_fill(graph, titles, schemas):
        key = (code, _plain(what))
        words.setdefault(key, what)
        if where not in places.setdefault(key, []):
            places[key].append(where)
    found: list[str] = [
        text(code, places=listed(where), **({"what": words[code, what]} if code == _FILL else {}))
        for (code, what), where in places.items()
    ]
    told = [_telling(what) for _, what in places]
    # A file in the flow says nothing of the file that is to come.
    told += [_telling(str(one.value)) for one in plan.values if one.node_id in to_fill and stands_in(one.value)]
    for tool in filter(is_to_write, plan.new_tools):
        found.append(text("to_do.tool", tool=tool.name, what=tool.description))
        told.append(_telling(tool.description))
    for promised in plan.placeholders:
        place, _, what = promised.rpartition(": ")
        what = what.removeprefix(f"{MARK}: ").rstrip("]")
        named = _telling(what)
        if any(named <= one or (one and one <= named) for one in told):
            continue
        told.append(named)
        node_id, _, param = place.partition(".")
        known = node_id in titles and param
        if not known and _names_a_place(promised, open_places):
            continue
        found.append(
            text(_FILL, places=text("to_do.place", node=titles[node_id], field=in_words(param)), what=what)
            if known
            else text("to_do.give", what=titled(promised.rstrip("."), titles))
        )
    for type_ in credentials:
        nodes = ", ".join(
            titles.get(node.id, node.label)
            for node in graph.nodes
            if (schema := schemas.get(node.name)) and type_ in schema.credential_names and not node.credential
        )
        name = credential_name(type_)
        found.append(
            text("to_do.credential_for", type=name, nodes=nodes) if nodes else text("to_do.credential", type=name)
        )
    readers: dict[str, list[str]] = {}
    for finding in plan.findings:
        if finding.code == VARIABLE_TO_CREATE:
            readers.setdefault(str(finding.params["name"]), []).append(titles.get(finding.where, finding.where))
    found += [
        text("to_do.variable", name=name, nodes=", ".join(dict.fromkeys(nodes))) for name, nodes in readers.items()
    ]
    return list(dict.fromkeys(found))[:_MOST]


def _names_a_place(promised: str, places: Iterable[str]) -> bool:
    """True if a thing to supply names a node or a field that is listed as open."""
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", promised, re.IGNORECASE) for one in places if one)


def _is_open(value: object) -> bool:
    """True for a text that is still to be filled in; what is inside of JSON texts comes by itself."""
    as_json = isinstance(value, str) and value[:1] in ("[", "{") and not value.startswith(MARK)
    return isinstance(value, str) and not as_json and (MARK in value or stands_in(value))


def _plain(what: str) -> str:
    """Words of a thing to supply, by which it is known again."""
    return " ".join(_WORD.findall(what.casefold()))


def _telling(what: str) -> set[str]:
    """The longer words of a thing, by which another wording of it is known."""
    words = _plain(what).split()
    return {word for word in words if len(word) >= _SHORTEST} or set(words)


def _to_fill(graph: GraphIR, titles: Mapping[str, str], schemas: Schemas) -> Iterator[tuple[str, str, str]]:
    """Code of the sentence, thing to supply, and place."""
    for node in graph.nodes:
        schema = schemas.get(node.name)
        labels = {entry["name"]: str(entry.get("label") or "") for entry in schema.input_definitions} if schema else {}
        for name, value in settings_in(node.inputs):
            if not isinstance(value, str) or not _is_open(value):
                continue
            title, field = titles.get(node.id, node.label), labels.get(name) or in_words(name)
            where = title if title == field else text("to_do.place", node=title, field=field)
            if value.startswith("data:"):
                yield _FILE, value, where
            else:
                for what in _PLACEHOLDER.findall(value):
                    yield _FILL, shortened(what.strip(), _SHOWN), where
