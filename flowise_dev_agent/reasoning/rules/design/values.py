"""The values of a node: what the text asks for, what a new node needs besides, and stand-ins for what is missing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.patch.model.placeholders import MARK, placeholder_file
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.clauses import clauses
from flowise_dev_agent.reasoning.rules.design.providers import BY_CHAT, MODEL_PARAMS, belongs, embedding_model
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, constants, pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import Span, first_group, is_negated, quoted, to_number

#: Fields for what the model is told, by how well they fit.
_PROMPT_FIELDS = ("systemMessagePrompt", "systemMessage", "responsePrompt", "template")
_TOLD_BEFORE = pattern("values", "told")
_TOLD = ("approval", "placeholder", "good_for", "expert_in", "retriever_tool")
_ADDRESS = re.compile(r"url|uri|host|endpoint|link|webpath|address", re.IGNORECASE)
_NAME = re.compile(r"index|collection|table|database|bucket|namespace|store|key$", re.IGNORECASE)
_DIMENSION = re.compile(r"[dD]imension$")
_WORD, _CAMEL = re.compile(r"[A-Za-z0-9]+"), re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LINK, _ON, _OFF, _EMPTIED, _GONE, _IS_ON, _IS_OFF = (
    f"(?:{pattern('titles', name).pattern})" for name in ("link", "on", "off", "emptied", "gone", "is_on", "is_off")
)
_QUOTED = r"(?:\"(?P<a>[^\"]*)\"|“(?P<b>[^”]*)”|„(?P<c>[^“”]*)[“”]|«\s*(?P<d>[^»]*?)\s*»|'(?P<e>[^'\n]{1,80})')"
_SKIPPED = frozenset({"modelName", "model", "systemMessagePrompt", "systemMessage"})
_MOVES = (
    words("change"),
    pattern("values", "counted"),
    *(pattern("exchange", name) for name in ("swaps", "rises", "now")),
)
_CLAUSE_ENDS = re.compile(r"[,;:.!?]\s|\n")
#: Words beside a number that only one field can mean.
_ELSEWHERE = pattern("by_place", "elsewhere")
_BY_PLACE = {name: patterns("by_place", name) for name in constants("kinds")["by_place"]}
_SECRET, _DEFAULT_OVERLAP = ("key", "token", "secret", "password"), 200
_NEVER = pattern("values", "never")
#: What a tool does only where a clause asks for it.
_IF_ASKED = [(pattern("values", "writes"), re.compile(r"(?!list|get|read|search|query|batchGet|download)")),
             (pattern("values", "sends"), re.compile(r"send|reply|forward"))]  # fmt: skip
_TAKES_AWAY, _PATH = (re.compile(one, re.I) for one in (r"delete|clear|remove|trash", r"path|folder|directory"))


@dataclass(frozen=True)
class Said:
    """What a node of a flow is to hold: the reading, the words for the model, and what is its own among several."""

    reading: Reading
    prompt: str = ""
    topic: str | None = None
    url: str | None = None


def parameters(schema: NodeSchema, said: Said, *, language: str, asked_only: bool = False) -> dict[str, Any]:
    """Field name -> value for a node of this type; only fields that differ from what a fresh node has.

    With `asked_only` just what the text asks for, without what a new node needs besides (placeholders, templates).
    """
    names = {param.name for param in schema.params}
    asked = _asked(schema, said) | {name: value for name, (value, _, _) in named_fields(schema, said.reading).items()}
    values = asked if asked_only else _needed(schema, said, language) | _texts(schema, said, language) | asked
    values = {name: value for name, value in values.items() if name in names}
    return values if asked_only else values | _filled(schema, values, said.reading)


def topic_of(said: Said, language: str) -> str:
    """What the documents are called, with an article where the language needs one."""
    topic = said.topic or next(iter(said.reading.topics), None)
    return say("topic", language) if not topic else f"the {topic}" if language == "en" else topic


def prompt_field(schema: NodeSchema) -> str | None:
    """The field that holds what the model is told, None when the type has none."""
    names = {param.name for param in schema.params}
    found = (name for name in _PROMPT_FIELDS if name in names)
    return next((name for name in found if name != "template" or schema.name == "promptTemplate"), None)


def without_braces(text: str) -> str:
    """The text with other brackets: braces are variables in Flowise's templates."""
    return text.replace("{", "(").replace("}", ")")


def _texts(schema: NodeSchema, said: Said, language: str) -> dict[str, Any]:
    """The words for the model, in the field that the type has for them."""
    text = without_braces(said.reading.system_text or said.prompt)
    field = prompt_field(schema)
    if not text or field is None or schema.category not in ("Chains", "Agents"):
        return {}
    # The default of a response prompt says what to answer where the documents do not; so may the person's words.
    return {field: f"{text}\n\n{say('from_documents', language)}\n{{context}}" if field == "responsePrompt" else text}


def _asked(schema: NodeSchema, said: Said) -> dict[str, Any]:
    """What the text gives for fields of this category."""
    reading = said.reading
    rows = [{"property": f.name, "type": f.kind, "description": f.description} for f in reading.fields]
    given: dict[str, Any] = {
        **reading.numbers,
        "model": reading.model if reading.model and belongs(reading.model, schema.name) else None,
        "model_url": reading.model_url, "embedding_model": embedding_model(reading.text),
        "denied": "\n".join(reading.denied_words), "rows": rows, "text": reading.inline_text,
        "refusal": next((quote for quote in quoted(reading.text) if quote not in reading.denied_words
                         and _TOLD_BEFORE.search(reading.text[: reading.text.index(quote) - 1])), None),
        "page": said.url or next(iter(reading.urls), None), "sources": reading.sources,
        "window_type": "windowSize" if "memory_window" in reading.numbers else None,
        "remembers": False if reading.no_memory else None,
    }  # fmt: skip
    size = given.get("chunk_size")
    if size is not None and size <= _DEFAULT_OVERLAP:
        # The default overlap would not be smaller than the chunk, which the splitter refuses.
        given.setdefault("chunk_overlap", size // 10)
    fields: dict[str, str] = constants("asked").get(schema.category, {})
    if reading.provider and reading.provider.embeddings == schema.name:
        # The server that all nodes of a provider share.
        fields = {**fields, "baseUrl": "model_url"}
    return _places(schema, reading) | {
        field: given[name] for field, name in fields.items() if given.get(name) not in (None, "", [])}  # fmt: skip


def _places(schema: NodeSchema, reading: Reading) -> dict[str, Any]:
    """What the text names by its kind: "namespace tomato"."""
    kinds = [(kind, name) for said, name in reading.places for kind, forms in constants("places").items()
             if said.startswith(tuple(forms))]  # fmt: skip
    page = reading.address and texts.PAGE_URL.match(reading.address)
    kinds += [("url", reading.address)] if reading.address and not page and schema.category == "Vector Stores" else []
    return {param.name: name for kind, name in kinds for param in schema.params
            if kind in param.name.casefold() and param.type == "string"}  # fmt: skip


def _needed(schema: NodeSchema, said: Said, language: str) -> dict[str, Any]:
    about = topic_of(said, language)
    topic = said.topic or next(iter(said.reading.topics), "text")
    slug = re.sub(r"[^a-z0-9]+", "_", topic.lower()).strip("_")[:40] or "text"
    told = {key: say(key, language, topic=about) for key in _TOLD}
    told |= {"slug": slug, "task": without_braces(said.prompt) or say("plain", language)}
    told["template"] = said.reading.prompt_text or f"{told['task']}\n\n{{text}}"
    if needed := constants("needed").get(schema.name):
        return {name: text.format(**told) for name, text in needed.items()}
    # A model for nodes that come without one and would not run.
    lacking = (p for p in schema.params if p.name in MODEL_PARAMS and not p.optional and p.default in (None, ""))
    provider = BY_CHAT.get(schema.name)
    return {param.name: provider.model for param in lacking} if provider else {}


# --- What only the person can know --------------------------------------------------------------------------------


def dimensions(values: Sequence[PlannedValue], nodes: Mapping[str, NodeSchema]) -> list[PlannedValue]:
    """How long the vectors of embeddings that are set are, for a vector store that has to be told and was not: with
    another length nothing is stored."""
    sizes = [constants("dimensions").get(one.value) for one in values if one.param == "modelName"
             and one.node_id in nodes and nodes[one.node_id].category == "Embeddings"]  # fmt: skip
    fields = [(id_, param.name) for id_, schema in nodes.items() if schema.category == "Vector Stores"
              for param in schema.params if _DIMENSION.search(param.name)]  # fmt: skip
    set_ = {(one.node_id, one.param) for one in values}
    return [PlannedValue(node_id=id_, param=name, value=sizes[0]) for id_, name in fields
            if len(sizes) == 1 and sizes[0] and (id_, name) not in set_]  # fmt: skip


def open_params(schema: NodeSchema, values: Mapping[str, Any] | None = None) -> list[InputParam]:
    """Required fields that are shown and that neither `values` nor a default fills."""
    given = {**{param.name: param.default for param in schema.params}, **(values or {})}
    needed = (one for one in schema.params if not one.optional and one.type not in ("boolean", "tabs"))
    empty = (one for one in needed if given.get(one.name) in (None, ""))
    return [one for one in empty if is_visible({"show": one.show, "hide": one.hide}, given)]


def _filled(schema: NodeSchema, values: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Values for the open fields of a new node; those that only the person can know get a stand-in that says so.

    What cannot be stood in for (a choice that only the running server knows, a number) stays open.
    """
    found: dict[str, Any] = {}
    # A value may bring further fields into view.
    while param := next(iter(open_params(schema, {**values, **found})), None):
        if (value := _fill(schema, param, reading, {**values, **found})) is None:
            break
        found[param.name] = value
    return found


def _fill(schema: NodeSchema, param: InputParam, reading: Reading, found: Mapping[str, Any]) -> Any:
    # A file that the person names is the one to put there.
    file = next((name for kind, name in reading.files if kind == schema.name), "") if param.type == "file" else ""
    marked = texts.squeeze(f"{MARK}: {schema.label}: {file or param.label}]")
    if param.type == "file":
        raw = next(entry for entry in schema.input_definitions if entry["name"] == param.name)
        # The compiler makes a file of the text, where it can make one of the type.
        return marked if placeholder_file(str(raw.get("fileType") or ""), marked) else None
    if param.name == "mcpActions" and (actions := constants("mcp_actions").get(schema.name)):
        return list(actions)
    if param.type == "options":
        # The first is what the editor offers first.
        return param.options[0] if param.options else None
    if param.type == "multiOptions":
        # A tool reads. It writes and sends where words ask for it, and never takes something away; a form names it.
        wishes = [_NEVER.sub(" ", one.said) for one in clauses(reading.text, change=False) if one.whole]
        banned = [_TAKES_AWAY, *(does for asks, does in _IF_ASKED if wishes and not any(map(asks.search, wishes)))]
        return [option for option in param.options if not any(does.match(option) for does in banned)] or None
    if (param.type not in ("string", "folder") and param.name != "selectedStore") or schema.category == "Prompts":
        return None
    name = next((name for _, name in reading.places[:1] if name not in found.values()), None)
    own = ((_ADDRESS, reading.address), (_PATH, reading.path), (_NAME, name))
    return next((value for kind, value in own if value and kind.search(param.name)), marked)


# --- Fields that a text names by their titles: "set the frequency penalty to 0.5" ----------------------------------


def named_fields(schema: NodeSchema, reading: Reading) -> dict[str, tuple[Any, int, int]]:
    """Field name -> (value, start, end) for the fields of this type that the text names with a value that fits."""
    found, text = dict[str, tuple[Any, int, int]](), reading.text
    # "Top K" is said of what is looked up.
    own = (one for one in _patterns(schema) if (schema.category, one[0].name) != ("Chat Models", "topK"))
    for param, forms in own:
        # "Limit 500 tokens" is no limit of pages.
        others = [one for one in reading.spans if one.params and not one.names and param.name not in one.params]
        for looked_for, value in forms:
            match = next((one for one in looked_for.finditer(text) if _fits(one, others, reading.numbers)), None)
            taken = None if match is None else _said_value(param, match) if value is None else value
            if match and taken is not None:
                found[param.name] = (taken, *match.span())
                break
    return found


def _fits(match: re.Match[str], others: Sequence[Span], numbers: Iterable[str]) -> bool:
    text, start = match.string, match.start()
    # It was read where it is said for certain.
    known = any(match.re in _BY_PLACE[name] for name in numbers if name in _BY_PLACE)
    known = known or (match.re in _BY_PLACE["max_tokens"] and _ELSEWHERE.search(text[:start]))
    return not (known or is_negated(text, start, start) or any(one.meets(*match.span()) for one in others))


def exchanged(reading: Reading, nodes: Iterable[tuple[NodeSchema, Mapping[str, Any]]]) -> Reading:
    """With numbers that take the place of others: "from 4 to 8" is about the one quantity of the flow that is 4."""
    fields = [(name, field, inputs.get(field) or next((one.get("placeholder") for one in schema.input_definitions
              if one["name"] == field), "")) for schema, inputs in nodes
              for field, name in constants("asked").get(schema.category, {}).items()]  # fmt: skip
    plain = re.compile(r"\d+(?:\.\d+)?")
    held = [(name, field, to_number(str(old))) for name, field, old in fields if plain.fullmatch(str(old))]
    ranges = (one for one in pattern("values", "range").finditer(reading.text) if _says_which(reading, one))
    exchanges = (one for looked_for in patterns("values", "exchange") for one in looked_for.finditer(reading.text))
    for match in (*exchanges, *ranges):
        meant = [(name, field) for name, field, number in held if number == to_number(match["old"])]
        near, new = [one for one in reading.spans if one.meets(*match.span())], to_number(match["new"])
        # Of several that are 4 the one that is named in front of it.
        meant = [one for one in meant if any(one[1] in span.params for span in near)] or meant
        if len({name for name, _ in meant}) == 1:
            span = Span(min([match.start(), *(one.start for one in near)]), match.end(),
                        params=frozenset(field for _, field in meant))  # fmt: skip
            numbers = {**reading.numbers, meant[0][0]: int(new) if new == int(new) else new}
            reading = replace(reading, numbers=numbers, spans=(*(o for o in reading.spans if o not in near), span))
    return reading


def _says_which(reading: Reading, match: re.Match[str]) -> bool:
    """Whether the clause of a range names its quantity or says that it is another one, and not when one is open."""
    text = reading.text
    start = max((one.end() for one in _CLAUSE_ENDS.finditer(text, 0, match.start())), default=0)
    end = min((one.start() for one in _CLAUSE_ENDS.finditer(text, match.end())), default=len(text))
    named = texts.concepts(text[start:end], "parts", "own") or any(one.search(text, start, end) for one in _MOVES)
    return bool(named or any(one.params and not one.task and one.meets(start, end) for one in reading.spans))


@lru_cache(maxsize=512)
def _patterns(schema: NodeSchema) -> list[tuple[InputParam, list[tuple[re.Pattern[str], bool | str | None]]]]:
    """For each field the ways to name it with a value, and the value where the words alone give it."""
    asked = constants("asked").get(schema.category, {})
    by_place = {param.name: _BY_PLACE.get(asked.get(param.name, ""), ()) for param in schema.params}
    found = ((param, [*_forms(param), *((one, None) for one in by_place[param.name])]) for param in schema.params)
    return [(param, forms) for param, forms in found if param.name not in _SKIPPED and forms]


def _forms(param: InputParam) -> list[tuple[re.Pattern[str], bool | str | None]]:
    titles = {" ".join(_WORD.findall(text)).casefold() for text in (param.label, _CAMEL.sub(" ", param.name))}
    titles = {title for title in titles if len(title) > 3 and title not in wordset("bare_titles")}
    if not titles:
        return []
    choices = "|".join(title.replace(" ", r"[\s_-]*") for title in sorted(titles, key=len, reverse=True))
    name = rf"\b(?:{choices})\b"
    match param.type:
        case "number":
            set_ = (re.compile(name + _LINK + NUMBER + r"(?!\w|[.,]\d|\s?(?:→|->|=>))", re.I), None)
            emptied = rf"\b{_EMPTIED}{name}(?!\s*\d)|{name}{_GONE}"
            return [set_, (re.compile(emptied, re.I), "")] if param.optional else [set_]
        case "boolean":
            on = rf"\b{_ON}{name}|{name}{_LINK}{_IS_ON}"
            return [(re.compile(rf"\b{_OFF}{name}|{name}{_LINK}{_IS_OFF}", re.I), False),
                    (re.compile(on, re.I), True)]  # fmt: skip
        case "options" if param.options:
            choice = "|".join(re.escape(option) for option in sorted(param.options, key=len, reverse=True))
            return [(re.compile(rf"{name}{_LINK}[\"'“„]?(?P<option>{choice})(?!\w)", re.I), None)]
        case "string" | "asyncOptions" if not param.name.lower().endswith(_SECRET):
            return [(re.compile(name + _LINK + _QUOTED, re.I), None)]
        case _:
            return []


def _said_value(param: InputParam, match: re.Match[str]) -> Any:
    if param.type == "options":
        return next(option for option in param.options if option.casefold() == match["option"].casefold())
    if param.type == "number":
        number = to_number(first_group(match))
        # Flowise counts in milliseconds.
        number *= 1000 if param.name == "timeout" and re.match(r"(?i)\s?se[cgk]", match.string[match.end() :]) else 1
        return int(number) if number == int(number) else number
    return next((text for text in match.groupdict().values() if text is not None), None)
