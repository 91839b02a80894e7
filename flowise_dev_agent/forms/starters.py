"""Starters: prepared forms for a requirement if no model reads it.

The sentence is matched and not read: the keywords of `starters.yaml` choose a starter, names that the Flowise server
knows fill in its form, and the sentence is quoted in its prompts.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any, Final, Literal, TypeVar, get_args

from pydantic import Field

from flowise_dev_agent.forms.defaults import without_braces
from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.forms.providers import BY_CHAT, PART, PROVIDERS, named_model
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.model.placeholders import MARK
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.texts import say_in

Language = Literal["en", "de", "fr", "es"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
#: A kind of name that a server knows; `house` is a model provider. Addresses and attached files count as names too.
Kind = Literal["house", "model", "tool", "file", "attached", "store", "web"]
#: Kinds of form sources that are files, with the node types that read them.
FILES: Final[Mapping[str, str]] = {"pdf": "pdfFile", "csv": "csvFile", "docx": "docxFile", "txt": "textFile"}
#: Kind of an attached file -> kind of its source, where they differ.
_SOURCES: Final[Mapping[str, str]] = {"text": "txt", "markdown": "txt"}
#: Placeholder of the sentence, and limits of a form: length of a text and of an address, number of tools or sources.
_QUOTED, _LONGEST, _LONGEST_ADDRESS, _MOST = "{requirement}", 32_000, 2_000, 10
#: Weight of a name, in keywords.
_WEIGHTS: Final[Mapping[Kind, int]] = {"tool": 2, "store": 2, "web": 1, "attached": 1}
_WORD: Final = re.compile(r"\w+")
#: Pattern of the (beginning of a) model id in lower case, and signs that end a sentence.
_MODEL, _SIGNS = re.compile(r"([a-z]+)(?:[-\d][\w.:-]*)?"), ".,;:!?\"'“”„«»()[]"
_ADDRESS: Final = re.compile(r"https?://[^\s/?#\\@{}<>\"'|^`“”„«»]+(?:[/?#][^\s\\{}<>\"'|^`“”„«»]*)?", re.IGNORECASE)


class Starter(Contract):
    """A flow to start from, with texts in all languages."""

    id: str
    title: dict[Language, str]
    keywords: dict[Language, list[str]]
    named: Kind | None = Field(default=None, description="Names of this kind choose it, too.")
    needs: list[str] = Field(default_factory=list[str], description="Parts that its form could do without.")
    form: JsonObject = Field(description="A `DesignForm`; a mapping of all languages is one text.")
    messages: dict[Language, list[str]] = Field(
        default_factory=dict[Language, list[str]], description="A visitor's message for each branch of its form."
    )


class _Catalogue(Contract):
    languages: dict[Language, list[str]]
    starters: list[Starter]


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
    """All starters. If several fit a sentence equally, the first one is chosen."""
    return tuple(_catalogue().starters)


def choose(
    requirement: str,
    nodes: NodeStore,
    *,
    stores: Sequence[DocumentStoreView] = (),
    attached: Sequence[str] = (),
    language: str = "en",
) -> StarterChoice:
    """Choose the starter for a sentence, and fill in its form with names from it that the server knows.

    Args:
        stores: the document stores of the server.
        attached: kinds of the files that go with the session, as `AttachmentFacts.kind`.
        language: of the person, where no keyword tells the sentence's.
    """
    whole = unicodedata.normalize("NFC", requirement)
    text = _ADDRESS.sub(" ", whole)
    words = _words(text)
    hits = [*_match_phrases(words, _keywords())]
    names = _names_in(text, words, nodes, stores)
    addresses = dict.fromkeys(one.rstrip(_SIGNS) for one in _ADDRESS.findall(whole))
    names["web"] = [one for one in addresses if len(one) <= _LONGEST_ADDRESS]
    names["attached"] = [kind for one in attached if (kind := _SOURCES.get(one, one)) in FILES]
    starter, chosen = _choose_starter(hits, names), _language(hits, language)
    form, used = _fill_form(starter, chosen, requirement, names)
    matched = tuple(dict.fromkeys(said for said, meant in hits if starter.id in dict(meant)))
    needs = needs_of(starter.id, form, attached=bool(names["attached"]))
    return StarterChoice(starter.id, starter.title[chosen], chosen, form, used, matched, needs)


@cache
def branch_messages(language: str) -> Mapping[str, str]:
    """A visitor's message for each branch of a starter, by the branch's name in this language."""
    known: Language = language if language in LANGUAGES else "en"
    return {
        branch: message
        for one in starters()
        for branch, message in zip(_branches(one, known), one.messages.get(known, ()), strict=True)
    }


def _branches(starter: Starter, language: Language) -> list[str]:
    form: Any = _localise(starter.form, language, "")
    return [branch for step in form.get("steps", ()) for branch in step.get("branches", ())]


def language_of(requirement: str) -> Language:
    """Tell the language of a sentence by the keywords in it; English where none tells."""
    return _language([*_match_phrases(_words(unicodedata.normalize("NFC", requirement)), _keywords())], "en")


def needs_of(starter: str, form: DesignForm, *, attached: bool = False) -> tuple[str, ...]:
    """Names of the parts still missing in a form that began as this starter."""
    own = next(one.needs for one in starters() if one.id == starter)
    reads = not attached and any(source.kind in FILES for source in form.sources)
    return (*form.needs, *["attachments"] * reads, *(one for one in own if not getattr(form, one)))


def with_placeholders(form: DesignForm, needs: Sequence[str], language: str) -> DesignForm:
    """Form whose missing texts, pages and stores are a marked text, and whose answer has one field. An address that a
    step calls stays open: nothing can stand in for it.
    """
    made = form.model_dump(mode="json")
    for path in needs:
        if path == "fields":
            made["fields"] = [{"name": "answer"}]
        elif path.startswith("sources."):
            number = int(path.split(".")[1])
            about = made["sources"][number].get("about") or ""
            marked = f"{MARK}: {say_in(language, 'plan.placeholder.source')}]"
            made["sources"][number] = {"kind": "text", "text": marked, "about": about}
    return DesignForm.model_validate(made)


# --- Which starter, and which language ----------------------------------------------------------------------------

_T = TypeVar("_T")
#: Words in original and folded form, and phrases of them.
_Words = Sequence[tuple[str, str]]
_Phrase = tuple[str, ...]
#: Starters and languages of a keyword; a keyword that tells only the language belongs to the starter "".
_Meant = frozenset[tuple[str, Language]]
_Hits = Sequence[tuple[str, _Meant]]
_Named = dict[Kind, list[str]]


@cache
def _catalogue() -> _Catalogue:
    # Lazy: commands that plan nothing do not pay for the import.
    import yaml

    text = files(__package__ or "").joinpath("starters.yaml").read_text("utf-8")
    # libyaml reads it in a tenth of the time; not every build of the package has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _Catalogue.model_validate(yaml.load(text, loader))  # noqa: S506 - both loaders are safe


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


def _fold(text: str) -> str:
    """Fold a text for comparison: without case and accents."""
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))


def _words(text: str) -> _Words:
    return [(one[0], _fold(one[0])) for one in _WORD.finditer(text)]


def _phrase(text: str) -> _Phrase:
    return tuple(map(_fold, _WORD.findall(unicodedata.normalize("NFC", text))))


def _match_phrases(words: _Words, phrases: Mapping[_Phrase, _T]) -> Iterator[tuple[str, _T]]:
    """The longest phrase at each position as written, with its meaning."""
    longest, place = max(map(len, phrases), default=0), 0
    while place < len(words):
        for size in range(min(longest, len(words) - place), 0, -1):
            said = words[place : place + size]
            if (meant := phrases.get(tuple(folded for _, folded in said))) is not None:
                yield " ".join(word for word, _ in said), meant
                place += size - 1
                break
        place += 1


def _choose_starter(hits: _Hits, names: _Named) -> Starter:
    """The starter with the most keywords, each counted once, and names; the last one if none has any."""
    said = {_fold(words): dict(meant) for words, meant in hits}
    *others, plain = starters()

    def score(one: Starter) -> int:
        named = _WEIGHTS[one.named] * len(names[one.named]) if one.named else 0
        return named + sum(one.id in meant for meant in said.values())

    best = max(others, key=score)
    return best if score(best) else plain


def _language(hits: _Hits, given: str) -> Language:
    """The language with the most keywords; in a tie the given one, else the first."""
    said = {_fold(words): {language for _, language in meant} for words, meant in hits}
    return max(LANGUAGES, key=lambda one: (sum(one in meant for meant in said.values()), one == given))


# --- Names that the server knows ----------------------------------------------------------------------------------


def _names(nodes: NodeStore, stores: Sequence[DocumentStoreView]) -> Mapping[_Phrase, tuple[Kind, str]]:
    """Map names to their kind and their value in a form."""
    found: dict[_Phrase, tuple[Kind, str]] = {}

    def note(kind: Kind, value: str, *said: str) -> None:
        for phrase in filter(None, map(_phrase, said)):
            found.setdefault(phrase, (kind, value))

    for schema in nodes.schemas.values():
        if provider := BY_CHAT.get(schema.name):
            # "Claude" is short for "Anthropic Claude".
            families = (one for one in provider.families if one in _fold(schema.label))
            note("house", schema.label, schema.label, schema.name, *families)
        elif schema.category in ("Tools", "Tools (MCP)") and "Tool" in schema.base_classes:
            note("tool", schema.name, schema.label, schema.name)
    for kind, loader in FILES.items():
        note("file", kind, kind, loader, *([schema.label] if (schema := nodes.get(loader)) else []))
    for store in stores:
        note("store", store.name, store.name, store.id)
    return found


def _models_in(text: str) -> Iterator[str]:
    """Models that a text names: a word that begins like a model id, and numbers and suffixes after it."""
    families, words = {family for one in PROVIDERS for family in one.families}, text.casefold().split()
    for place, word in enumerate(words):
        begin = _MODEL.fullmatch(word.strip(_SIGNS))
        if begin and begin[1] in families:
            behind = words[place + 1 : place + 4] if word[-1] not in _SIGNS else []
            said = [begin[0], *takewhile(PART.fullmatch, (one.rstrip(_SIGNS) for one in behind))]
            if len(said) > 1 or re.search(r"\d", begin[0]):
                yield "-".join(said)


def _names_in(text: str, words: _Words, nodes: NodeStore, stores: Sequence[DocumentStoreView]) -> _Named:
    """Values for a form from the names in a text, by kind and in order; at most one model."""
    found: _Named = {kind: [] for kind in get_args(Kind)}
    for _, (kind, value) in _match_phrases(words, _names(nodes, stores)):
        found[kind].append(value)
    found["model"] = [model] if (model := _model([*_models_in(text)], found["house"], nodes)) else []
    return {kind: [*dict.fromkeys(values)] for kind, values in found.items()}


def _model(models: Sequence[str], houses: Sequence[str], nodes: NodeStore) -> str:
    """The first model, together with the named provider if that hosts models of others."""
    house = next(iter(houses), "")
    try:
        model = named_model(next(iter(models), None), Offer(nodes))[1] or ""
    except DeclinedError:
        return house
    hosts = {schema.label for one in PROVIDERS if not one.families and (schema := nodes.get(one.chat))}
    return f"{house} {model}".strip() if house in hosts or not model else model


# --- The form -----------------------------------------------------------------------------------------------------


def _fill_form(
    starter: Starter, language: Language, requirement: str, names: _Named
) -> tuple[DesignForm, tuple[str, ...]]:
    """Fill in a starter's form; returns it with the names that were used."""
    said = without_braces(requirement) if starter.form["kind"] == "steps" else requirement
    form: dict[str, Any] = {"name": starter.title[language], **_localise(starter.form, language, said)}
    steps: list[dict[str, Any]] = form.get("steps", [])
    used = [*names["model"]]
    form["model"] = [*used, None][0]
    asks = form if form["kind"] == "chat" else next((one for one in steps if one["kind"] == "answer"), None)
    if asks is not None and names["tool"]:
        # The starter's own tools are kept only if none is named.
        own = [] if starter.named == "tool" else asks.get("tools", [])
        asks["tools"] = [*dict.fromkeys([*own, *names["tool"]])][:_MOST]
        used += names["tool"]
    for call, address in zip((one for one in steps if one["kind"] == "call"), names["web"], strict=False):
        call["url"] = address
        used.append(address)
    if form["kind"] == "chat":
        own: list[dict[str, str]] = form.get("sources", [])
        kinds = {one["kind"] for one in own}
        said = [*(names["file"] if kinds & {*FILES} else []), *names["attached"]]
        # A form names one document store.
        named = [("store", "store", one) for one in names["store"][:1]]
        named += [("web", "url", one) for one in names["web"] if "web" in kinds]
        named += [(one, "kind", one) for one in dict.fromkeys(said)]
        # An existing file replaces a text still to be given.
        taken = {kind for kind, _, _ in named} | ({*FILES} if said else set()) | {"text" for _ in names["attached"]}
        form["sources"] = [one for one in own if one["kind"] not in taken]
        form["sources"] += [{"kind": kind, field: value} for kind, field, value in named[:_MOST]]
        used += [value for _, _, value in named[:_MOST]]
    return DesignForm.model_validate(form), tuple(used)


def _localise(value: Any, language: Language, requirement: str) -> Any:
    """A part of a starter in one language, with the sentence inserted and cut to the limit of a prompt."""
    if isinstance(value, list):
        return [_localise(one, language, requirement) for one in value]
    if isinstance(value, dict):
        if {*value} == {*LANGUAGES}:
            return _localise(value[language], language, requirement)
        return {key: _localise(one, language, requirement) for key, one in value.items()}
    if not isinstance(value, str) or _QUOTED not in value:
        return value
    room = _LONGEST - len(value) + len(_QUOTED)
    said = requirement if len(requirement) <= room else f"{requirement[: room - 1]}…"
    return value.replace(_QUOTED, said, 1)
