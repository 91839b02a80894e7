"""Starters: what a sentence becomes where no model reads it.

The sentence is matched and not read: the keywords of `starters.yaml` choose a starter, names that the Flowise server
knows fill in its form, and the sentence is quoted in its prompts.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, Protocol, TypeVar

from pydantic import Field

from flowise_dev_agent.contracts.base import Contract, JsonObject
from flowise_dev_agent.contracts.designs import DesignForm
from flowise_dev_agent.knowledge.nodes import NodeStore

Language = Literal["en", "de", "fr", "es"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "de", "fr", "es")
#: A kind of name that a server knows; a house serves models. An address is a name, too.
Kind = Literal["house", "model", "tool", "file", "store", "web"]
#: Sources of a form that are files, with the node types that read them.
FILES: Final[Mapping[str, str]] = {"pdf": "pdfFile", "csv": "csvFile", "docx": "docxFile"}
#: Where the sentence is quoted, and the most characters of a text with it.
_QUOTED, _LONGEST, _LONGEST_ADDRESS = "{requirement}", 32_000, 2_000
#: A form has at most so many tools and sources.
_MOST: Final = 10
#: How many keywords a name counts for. "PDF" is one itself.
_WEIGHTS: Final[Mapping[str, int]] = {"tool": 2, "store": 2, "web": 1}
_WORD: Final = re.compile(r"\w+")
#: What may be the id of a model: letters, and a digit behind them. Lower case.
_MODEL: Final = re.compile(r"(?<![\w/@.:-])([a-z]{2,30})(?=[-\d])[\w.:-]*")
_ADDRESS: Final = re.compile(r"https?://[^\s/?#\\@{}<>\"'|^`“”„«»]+(?:[/?#][^\s\\{}<>\"'|^`“”„«»]*)?", re.IGNORECASE)
_MODEL_PARAMS: Final = frozenset({"modelName", "model"})
_BRACES: Final = str.maketrans("{}", "()")


class Starter(Contract):
    """A flow to start from, in the languages that it is written in."""

    id: str
    title: dict[Language, str]
    keywords: dict[Language, list[str]]
    named: Kind | None = Field(default=None, description="Names of this kind choose it, too.")
    needs: list[str] = Field(default_factory=list[str], description="Parts that its form could do without.")
    form: JsonObject = Field(description="A `DesignForm`; a mapping of all languages is one text.")


class _Catalogue(Contract):
    languages: dict[Language, list[str]]
    starters: list[Starter]


class NamedStore(Protocol):
    """A document store of the server."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class StarterChoice:
    """A starter for a sentence.

    `matched` are the words of the sentence for which it was chosen, and `recognised` the names that filled in the form.
    `needs` are the parts of the form that the person has to fill in before it can be approved: paths such as
    `sources.0.text`, and `attachments` for a file that goes with the session. Ask `needs_of` again whenever the form
    was changed; a form with open `DesignForm.needs` must not be planned.
    """

    starter: str
    title: str
    language: Language
    form: DesignForm
    recognised: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def starters() -> tuple[Starter, ...]:
    """All starters; of those that fit a sentence equally the first one is chosen."""
    return tuple(_catalogue().starters)


def choose(
    requirement: str,
    nodes: NodeStore,
    *,
    stores: Sequence[NamedStore] = (),
    models: Iterable[str] = (),
    attached: Sequence[str] = (),
    language: str = "en",
) -> StarterChoice:
    """Choose the starter for a sentence and fill in its form with the names in it that the server knows.

    Args:
        stores: the document stores of the server.
        models: ids of models that the server lists; without them those are known that begin as a default of a type.
        attached: kinds of the files that go with the session (`pdf`, `csv`, `docx`).
        language: of the person, where no keyword tells the sentence's.
    """
    text = unicodedata.normalize("NFC", requirement)
    words = [(one[0], _folded(one[0])) for one in _WORD.finditer(text)]
    hits = [*_found(words, _keywords())]
    names = _names_in(text, words, nodes, stores, models)
    given = [kind for kind in attached if kind in FILES]
    chosen = _language(hits, language)
    starter = _chosen(hits, {**names, "file": given})
    names["file"] = [*dict.fromkeys([*names["file"], *given])]
    form, used = _filled(starter, chosen, requirement, names, nodes)
    return StarterChoice(
        starter=starter.id,
        title=starter.title[chosen],
        language=chosen,
        form=form,
        recognised=used,
        matched=tuple(dict.fromkeys(said for said, meant in hits if starter.id in dict(meant))),
        needs=needs_of(starter.id, form, attached=bool(attached)),
    )


def needs_of(starter: str, form: DesignForm, *, attached: bool = False) -> tuple[str, ...]:
    """Name the parts that are still to be filled in of a form that began as this starter."""
    own = next(one.needs for one in starters() if one.id == starter)
    reads = any(source.kind in FILES for source in form.sources)
    return (*form.needs, *["attachments"] * (reads and not attached), *(one for one in own if not getattr(form, one)))


# --- Which starter, and which language ----------------------------------------------------------------------------

_T = TypeVar("_T")
#: Words as they are said and as they are compared, and phrases of them.
_Words = Sequence[tuple[str, str]]
_Phrase = tuple[str, ...]
#: The starters and languages that a keyword belongs to; one that only tells a language is of the starter "".
_Meant = frozenset[tuple[str, Language]]
_Hits = Sequence[tuple[str, _Meant]]
_Named = dict[Kind, list[str]]


@cache
def _catalogue() -> _Catalogue:
    # A command that plans nothing does not wait for it.
    import yaml

    text = files(__package__ or "").joinpath("starters.yaml").read_text("utf-8")
    return _Catalogue.model_validate(yaml.safe_load(text))


@cache
def _keywords() -> Mapping[_Phrase, _Meant]:
    found: dict[_Phrase, set[tuple[str, Language]]] = {}
    for language in LANGUAGES:
        said = {"": _catalogue().languages[language]}
        said |= {one.id: [*one.keywords[language], one.title[language]] for one in starters()}
        for starter, phrases in said.items():
            for phrase in map(_phrase, phrases):
                found.setdefault(phrase, set()).add((starter, language))
    return {phrase: frozenset(meant) for phrase, meant in found.items()}


def _folded(text: str) -> str:
    """A text as it is compared: without case and accents."""
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))


def _phrase(text: str) -> _Phrase:
    return tuple(map(_folded, _WORD.findall(unicodedata.normalize("NFC", text))))


def _found(words: _Words, phrases: Mapping[_Phrase, _T]) -> Iterator[tuple[str, _T]]:
    """The longest phrase at each place as it is said, with what it means."""
    longest, place = max(map(len, phrases), default=0), 0
    while place < len(words):
        for size in range(min(longest, len(words) - place), 0, -1):
            said = words[place : place + size]
            if (meant := phrases.get(tuple(folded for _, folded in said))) is not None:
                yield " ".join(word for word, _ in said), meant
                place += size - 1
                break
        place += 1


def _chosen(hits: _Hits, names: _Named) -> Starter:
    """The starter with the most keywords, each counted once, and names; the last one where none has any."""
    said = {_folded(words): dict(meant) for words, meant in hits}
    *others, plain = starters()

    def score(one: Starter) -> int:
        named = len(names[one.named]) * _WEIGHTS.get(one.named, 1) if one.named else 0
        return named + sum(one.id in meant for meant in said.values())

    best = max(others, key=score)
    return best if score(best) else plain


def _language(hits: _Hits, given: str) -> Language:
    """The language with the most keywords; of equals the given one, else the first."""
    said = {_folded(words): {language for _, language in meant} for words, meant in hits}
    return max(LANGUAGES, key=lambda one: (sum(one in meant for meant in said.values()), one == given))


# --- Names that the server knows ----------------------------------------------------------------------------------


def _names(
    nodes: NodeStore, stores: Sequence[NamedStore], models: Iterable[str], families: Mapping[str, set[str]]
) -> Mapping[_Phrase, tuple[Kind, str]]:
    """What each name stands for: its kind, and what a form says for it."""
    found: dict[_Phrase, tuple[Kind, str]] = {}

    def note(kind: Kind, value: str, *said: str) -> None:
        for phrase in map(_phrase, said):
            if phrase:
                found.setdefault(phrase, (kind, value))

    for schema in nodes.schemas.values():
        if schema.category == "Chat Models" and not schema.deprecated:
            # "Claude" is said for "Anthropic Claude".
            note("house", schema.label, schema.label, schema.name, *({*families} & {*_phrase(schema.label)}))
        elif schema.category in ("Tools", "Tools (MCP)") and "Tool" in schema.base_classes:
            note("tool", schema.name, schema.label, schema.name)
    for kind, loader in FILES.items():
        note("file", kind, kind, loader, *([schema.label] if (schema := nodes.get(loader)) else []))
    for store in stores:
        note("store", store.id, store.name, store.id)
    for model in (*models, *(model for model, _ in _defaults(nodes))):
        note("model", model, model)
    return found


def _defaults(nodes: NodeStore) -> list[tuple[str, str]]:
    """The models that types begin with, and the labels of the types."""
    return [(str(param.default), schema.label) for schema in nodes.schemas.values()
            if schema.category == "Chat Models" and not schema.deprecated
            for param in schema.params if param.name in _MODEL_PARAMS and param.default]  # fmt: skip


def _families(nodes: NodeStore) -> Mapping[str, set[str]]:
    """How ids of models begin ("gpt"), with the labels of the types that have such a model."""
    found: dict[str, set[str]] = {}
    for model, label in _defaults(nodes):
        if begin := re.match(r"[a-z]+(?=[-\d][^/]*$)", model):
            found.setdefault(begin[0], set()).add(label)
    return found


def _names_in(
    text: str, words: _Words, nodes: NodeStore, stores: Sequence[NamedStore], models: Iterable[str]
) -> _Named:
    """What a form is to say for the names in a text, by kind and in order."""
    families = _families(nodes)
    named: _Named = {"house": [], "model": [], "tool": [], "file": [], "store": [], "web": []}
    named["web"] = [one.rstrip(".,;:!?)]") for one in _ADDRESS.findall(text) if len(one) <= _LONGEST_ADDRESS]
    ids = [one for one in _MODEL.finditer(text.casefold()) if one[1] in families and re.search(r"\d", one[0])]
    named["model"] = [one[0].rstrip(".:-") for one in ids]
    for _, (kind, value) in _found(words, _names(nodes, stores, models, families)):
        named[kind].append(value)
    return {kind: [*dict.fromkeys(values)] for kind, values in named.items()}


def _model(names: _Named, nodes: NodeStore) -> str:
    """The model that a form names: the first one, of its house where it is said to be of another than its own."""
    # "GPT-4o mini" is not GPT-4o.
    phrases = [_phrase(one) for one in names["model"]]
    whole = [name for name, phrase in zip(names["model"], phrases, strict=True) if not any(
             len(phrase) < len(other) and other[: len(phrase)] == phrase for other in phrases)]  # fmt: skip
    model, house = ([*values, ""][0] for values in (whole, names["house"]))
    own = [family for family, labels in _families(nodes).items() if house in labels]
    if model and house and ((own and not any(model.startswith(one) for one in own)) or {*own} & {*_phrase(house)}):
        return model
    return f"{house} {model}".strip()


# --- The form -----------------------------------------------------------------------------------------------------


def _filled(
    starter: Starter, language: Language, requirement: str, names: _Named, nodes: NodeStore
) -> tuple[DesignForm, tuple[str, ...]]:
    """The form of a starter, and the names that it was filled in with."""
    form: dict[str, Any] = {"name": starter.title[language], **_said(starter.form, language)}
    steps: list[dict[str, Any]] = form.get("steps", [])
    used, chat = list[str](), form["kind"] == "chat"
    if model := _model(names, nodes):
        form["model"] = model
        used.append(model)
    asks = form if chat else next((one for one in steps if one["kind"] == "answer"), None)
    if asks is not None and (tools := names["tool"][:_MOST]):
        asks["tools"] = tools
        used += tools
    calls = next((one for one in steps if one["kind"] == "call"), None)
    if calls is not None and names["web"]:
        calls["url"] = names["web"][0]
        used.append(names["web"][0])
    if chat:
        # A form names one document store.
        known = [{"kind": "store", "store": one} for one in names["store"][:1]]
        known += [{"kind": "web", "url": one} for one in names["web"]]
        known += [{"kind": one} for one in names["file"]]
        kinds = {one["kind"] for one in known} | ({*FILES} if names["file"] else set())
        own = [one for one in form.get("sources", []) if one["kind"] not in kinds]
        form["sources"] = [*own, *known][:_MOST]
        used += [*names["store"][:1], *names["web"], *names["file"]]
    return DesignForm.model_validate(
        _quoted(form, requirement if not steps else requirement.translate(_BRACES))
    ), tuple(used)


def _said(value: Any, language: Language) -> Any:
    """A part of a starter in one language."""
    if isinstance(value, dict):
        if {*value} == {*LANGUAGES}:
            return value[language]
        return {key: _said(one, language) for key, one in value.items()}
    return [_said(one, language) for one in value] if isinstance(value, list) else value


def _quoted(value: Any, requirement: str) -> Any:
    """A form with the sentence in its prompts, cut where it is too long for one."""
    if isinstance(value, dict):
        return {key: _quoted(one, requirement) for key, one in value.items()}
    if isinstance(value, list):
        return [_quoted(one, requirement) for one in value]
    if isinstance(value, str) and _QUOTED in value:
        room = _LONGEST - len(value) + len(_QUOTED)
        said = requirement if len(requirement) <= room else f"{requirement[: room - 1]}…"
        return value.replace(_QUOTED, said, 1)
    return value
