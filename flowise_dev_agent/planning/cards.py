"""Node types as short text for a prompt."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from flowise_dev_agent.knowledge.model_ends import LIST_METHOD
from flowise_dev_agent.patch import InputAnchor, InputEntry, NodeSchema, Values
from flowise_dev_agent.patch.model.agentflow import BRANCHES_FROM, CONDITION, HUMAN_INPUT
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.patch.validate.prompts import needed_placeholders
from flowise_dev_agent.sanitize import shortened

#: Up to this many options are listed in full; of longer lists some show their kind.
_ALL_OPTIONS: Final = 30
_SOME_OPTIONS: Final = 12
_MAX_CARD_CHARS: Final = 6_000
_NOTE_CHARS: Final = 140
_DEFAULT_CHARS: Final = 60
#: Characters of a default that shows the form of a value.
_STRUCTURE_CHARS: Final = 240
#: Types whose form a description explains better than their name.
_UNUSUAL: Final = frozenset({"array", "json", "code", "datagrid", "tabs", "conditionFunction"})
_FIELDS_CHARS: Final = 1_500
_FEW_OPTIONS: Final = 6
#: What people notice of the fields behind "Additional Parameters".
_NOTICED: Final = re.compile(
    r"prompt|message|temperature|maxtokens|topk|^k$|size|url|basepath|iterations|limit|tables|filter|ttl", re.I
)
#: What the schemas of these types do not say, measured on Flowise 3.1.4.
_NOTES_ON: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("azureChatOpenAI", "azureOpenAIEmbeddings"),
        "the credential has the deployment: chat and embeddings need one each",
    ),
    "gmail": "to send takes the inputs to, subject and body; the body is sent as HTML, so lines break at <br> only; "
    "the subject is not encoded, so ASCII",
    "customFunction": "at the end of a flow, as EndingNode, it returns { text } or { json }; a text that is JSON is "
    "parsed, and an object of other fields is no answer",
    "faiss": "only where it is asked for: many servers lack its package; basePath inside the server's folder .flowise, "
    "so a relative one; an upsert replaces all that is there",
    **dict.fromkeys(
        ("conversationalAgent", "xmlAgent"), "sends stop sequences, which models that always reason refuse"
    ),
    "RedisBackedChatMemory": "windowSize keeps the oldest messages: leave it empty",
    "conversationSummaryMemory": "sums up the last exchange only: conversationSummaryBufferMemory keeps all",
    "conversationSummaryBufferMemory": "on chatAnthropic and Gemini only with a chatAnthropic as its own model",
    **dict.fromkeys(
        ("retrievalQAChain", "vectorDBQAChain", "multiRetrievalQAChain"), "no memory; fails on memoryVectorStore"
    ),
    "inputModerationSimple": "refuses what contains a line of denyList, inside of words too; one text on each line; a "
    "`model` compares by meaning instead, with a call for each line; the refused message stays in the history",
    "fewShotPromptTemplate": "no output parser, no values: one placeholder in prefix and suffix, for the question",
    **dict.fromkeys(
        ("structuredOutputParser", "customListOutputParser"),
        "an answer in another form is an error; autofixParser asks once more",
    ),
    "advancedStructuredOutputParser": "an answer in another form, also a null, is an error; .optional() for what may "
    "be missing, .nullable() is lost; no dot in a text",
    "chainTool": "gives the agent's input to no placeholder of an llmChain",
    "ChatflowTool": "an error of the other flow is an empty answer; useQuestionFromChat drops the agent's own input",
    "currentDateTime": "the server's time, as a rule UTC",
    **dict.fromkeys(("requestsGet", "requestsDelete"), 'each query parameter needs "in": "query" or "path"'),
    "similarityThresholdRetriever": "minSimilarityScore in percent; maxK counts, not the topK of the store",
    "multiQueryRetriever": "4 documents for each question whatever topK says; a question with { } fails",
    "jsonFile": "pointersName splits at all but letters and digits: first_name is read as first and name",
    "cheerioWebScraper": "a page that cannot be read is left out without an error",
    "sqlDatabaseChain": "url of sqlite: a file inside the server's folder .flowise, so a relative path",
}
_MARKUP: Final = re.compile(r"</?\w[^<>]*>")


def schema_card(schema: NodeSchema, chosen: Values | None = None) -> str:
    """Describe a node type for the op writer: inputs with accepted types, params, outputs, credential.

    `*` marks required params. Params behind the editor's "Additional Parameters" have type and default only. Params
    that depend on another param say so, and are left out if the values `chosen` hide them. At most 6 000 characters.
    """
    lines = [f"### {schema.name} ({schema.category}): {shortened(_first_sentence(schema.description), 120)}"]
    if schema.anchors:
        lines.append("inputs: " + "; ".join(_anchor(anchor) for anchor in schema.anchors))
    params = [entry for entry in _params(schema) if not _ruled_out(entry, chosen or {})]
    lines += [line for entry in params if not _is_plain_extra(entry) for line in _param(entry, schema)]
    if more := [entry for entry in params if _is_plain_extra(entry)]:
        lines.append("more params: " + "; ".join(_short_param(entry) + _contains(entry, schema) for entry in more))
    lines.append(_outputs(schema))
    if schema.credential_names:
        optional = " (optional)" if schema.credential_optional else ""
        lines.append("credential: " + " or ".join(schema.credential_names) + optional)
    lines += [f"NOTE {note}"] if (note := _NOTES_ON.get(schema.name)) else []
    return shortened("\n".join(lines), _MAX_CARD_CHARS)


def connection_card(schema: NodeSchema, *, keeps_values: bool = True) -> str:
    """Describe the inputs and outputs of a node type; a node that keeps its values needs no more."""
    lines = [f"### {schema.name} ({schema.category}){', connections only' if keeps_values else ''}"]
    if schema.anchors:
        lines.append("inputs: " + "; ".join(_anchor(anchor) for anchor in schema.anchors))
    return "\n".join([*lines, _outputs(schema)])


def brief_card(schema: NodeSchema) -> str:
    """Describe a node type in short: its connections, the names of its usual fields, its credential."""
    lines = [connection_card(schema, keeps_values=False)]
    if names := dict.fromkeys(entry["name"] for entry in _params(schema) if _is_usual(entry, schema)):
        lines.append(f"fields: {', '.join(names)}")
    if schema.credential_names:
        lines.append(f"credential: {' or '.join(schema.credential_names)}")
    return "\n".join(lines)


def fields_line(schema: NodeSchema, *, whole: bool = False) -> str:
    """List the field names that a planner needs: `<-` inputs for connections, fields with short defaults, rows and
    choices. `*` marks required fields, unless another field hides them at first; rarely used ones are left out, or with
    `whole` follow by name. At most 1 500 characters.
    """
    inputs = [f"{anchor.name}{'' if anchor.optional else '*'}" for anchor in schema.anchors]
    fields = _fields(schema)
    parts = [f"<- {', '.join(inputs)}"] if inputs else []
    parts += [fields] if fields else []
    more = dict.fromkeys(entry["name"] for entry in _params(schema) if whole and not _is_usual(entry, schema))
    parts += [f"more: {', '.join(more)}"] if more else []
    parts += [f"NOTE {note}"] if (note := _NOTES_ON.get(schema.name)) else []
    return shortened(f"{schema.name}: {'; '.join(parts) or 'no fields'}", _FIELDS_CHARS)


def _fields(schema: NodeSchema) -> str:
    usual = (entry for entry in _params(schema) if _is_usual(entry, schema))
    return ", ".join(dict.fromkeys(_brief(entry, schema) + _contains(entry, schema) for entry in usual))


def _params(schema: NodeSchema) -> list[InputEntry]:
    """Fields that a person can set, without inputs for connections."""
    return [one for one in schema.input_definitions if one["type"] in PARAM_TYPES and not one.get("hidden")]


def _is_usual(entry: InputEntry, schema: NodeSchema) -> bool:
    """True for fields that are shown at once or required from the start, and for those that people notice."""
    return not entry.get("additionalParams") or _is_needed(entry, schema) or bool(_NOTICED.search(entry["name"]))


def _is_needed(entry: InputEntry, schema: NodeSchema) -> bool:
    """True for a required field that no other field hides at first."""
    return not entry.get("optional") and is_visible(entry, schema.defaults)


def _default(entry: InputEntry) -> Any:
    """Default of a field; None without one, and for the name of a model, which may have ended long ago."""
    default = entry.get("default")
    return None if default == "" or entry.get("loadMethod") == LIST_METHOD else default


def _switch(entry: InputEntry, schema: NodeSchema) -> str:
    """Name of the switch that is off at first and shows the entry; '' without one."""
    shown_by = entry.get("show") or {}
    off = [name for name, wanted in shown_by.items() if wanted is True and not schema.defaults.get(name)]
    return f" with {off[0]}" if off else ""


def _brief(entry: InputEntry, schema: NodeSchema) -> str:
    needed = "*" if _is_needed(entry, schema) else ""
    return f"{entry['name']}{needed}{_brief_form(entry)}{_switch(entry, schema)}"


def _brief_form(entry: InputEntry) -> str:
    text = ""
    options = [str(option["name"]) for option in entry.get("options") or ()]
    default = _default(entry)
    if rows := entry.get("array"):
        return f" [{{{', '.join(_brief_row(rows))}}}]"
    if config := _config_of(entry):
        return config
    if options and len(options) <= _FEW_OPTIONS:
        text += f" {'|'.join(options)}"
    if default is not None and entry["type"] not in _UNUSUAL and len(_value(default)) <= _DEFAULT_CHARS:
        text += f" = {_value(default)}"
    return text


def _brief_row(rows: Sequence[InputEntry]) -> Iterator[str]:
    """Yield the fields of a row, with their choices if these are few; of alternatives only those that differ."""
    for name in dict.fromkeys(row["name"] for row in rows):
        entries = [row for row in rows if row["name"] == name]
        choices: dict[str, list[str]] = {}
        for entry in entries:
            options = [str(option["name"]) for option in entry.get("options") or ()]
            if 0 < len(options) <= _SOME_OPTIONS:
                choices.setdefault("|".join(options), []).append(_row_condition(entry))
        alternatives = [f" {options}{'' if len(choices) == 1 else when[0]}" for options, when in choices.items()]
        yield f"{name}{_config_of(entries[0])}{' or'.join(alternatives)}"


def _config_of(entry: InputEntry) -> str:
    """Name of the settings field of a model or tool."""
    return f" + {entry['name']}Config" if entry.get("loadConfig") else ""


def _is_plain_extra(entry: InputEntry) -> bool:
    """True if a param is behind "Additional Parameters" and clear from its name and type."""
    return bool(entry.get("additionalParams")) and entry["type"] not in _UNUSUAL


def _anchor(anchor: InputAnchor) -> str:
    return (
        f"{anchor.name}{'' if anchor.optional else '*'}"
        f" <- {' | '.join(anchor.types)}{' (several)' if anchor.is_list else ''}"
    )


def _contains(entry: InputEntry, schema: NodeSchema) -> str:
    """Note on the placeholders that a prompt must contain."""
    needed = needed_placeholders(schema.name, entry["name"])
    return f" (must contain {' and '.join(f'{{{name}}}' for name in needed)})" if needed else ""


def _param(entry: InputEntry, schema: NodeSchema) -> Iterator[str]:
    """Yield the line of a param; for a param with rows, a second line with their fields."""
    connection = bool(entry.get("acceptVariable")) and not schema.is_agentflow
    notes = _contains(entry, schema) + _notes(entry, accepts_connection=connection)
    yield f"param {entry['name']}{'' if entry.get('optional') else '*'}: {_form(entry)}{notes}"
    if rows := entry.get("array"):
        yield f"  row of {entry['name']}: {{{_row(rows)}}}"


def _form(entry: InputEntry) -> str:
    """Type, choices and default of a param."""
    text = str(entry["type"])
    options = [str(option["name"]) for option in entry.get("options") or ()]
    if options:
        shown = options if len(options) <= _ALL_OPTIONS else options[:_SOME_OPTIONS]
        text += f" of {', '.join(shown)}"
        text += "" if len(shown) == len(options) else f", … ({len(options)} in all)"
    elif entry.get("loadConfig"):
        text = f"name of a component, its settings in {entry['name']}Config"
    elif entry.get("loadMethod"):
        text += " (choices of the server)"
    default = _default(entry)
    shown = _DEFAULT_CHARS if entry["type"] not in _UNUSUAL else _STRUCTURE_CHARS
    return text + (f" = {shortened(_value(default), shown)}" if default is not None else "")


def _notes(entry: InputEntry, *, accepts_connection: bool) -> str:
    """Condition under which a param applies, and Flowise's description if needed."""
    notes = [f"{word} {_value(dict(when))}" for word, when in _conditions(entry) if when]
    if accepts_connection:
        notes.append("takes a connection, too")
    if warning := _text(entry, "warning"):
        notes.append(f"warning: {warning}")
    if not entry.get("optional") or entry["type"] in _UNUSUAL or entry.get("loadMethod"):
        notes += [said] if (said := _text(entry, "description")) else []
    return f" ({'; '.join(notes)})" if notes else ""


def _ruled_out(entry: InputEntry, chosen: Values) -> bool:
    """True if a chosen value hides the field."""
    return not all(
        is_visible({"show": {path: wanted}}, chosen)
        for path, wanted in (entry.get("show") or {}).items()
        if path in chosen
    )


def _conditions(entry: InputEntry) -> tuple[tuple[str, Values | None], ...]:
    return ("only with", entry.get("show")), ("not with", entry.get("hide"))


def _rows_inside(entry: InputEntry) -> str:
    return f" of {{{', '.join(one['name'] for one in rows)}}}" if (rows := entry.get("array")) else ""


def _row(rows: Sequence[InputEntry]) -> str:
    """Fields of a row; fields with the same name and different conditions are alternatives."""
    ordered = sorted(rows, key=lambda entry: [one["name"] for one in rows].index(entry["name"]))
    fields: list[str] = []
    for name, entries in groupby(ordered, lambda entry: entry["name"]):
        forms = [f"{_form(one)}{_rows_inside(one)}{_row_condition(one)}" for one in entries]
        fields.append(f"{name}: {' or '.join(forms)}")
    return "; ".join(fields)


def _row_condition(entry: InputEntry) -> str:
    show: Mapping[str, Any] = entry.get("show") or {}
    named = {path.rpartition(".")[2]: value for path, value in show.items()}
    return f" with {', '.join(f'{name} {_value(value)}' for name, value in named.items())}" if named else ""


def _short_param(entry: InputEntry) -> str:
    options = [str(option["name"]) for option in entry.get("options") or ()]
    of = f" of {'/'.join(options[:5])}" if options else ""
    default = _default(entry)
    return f"{entry['name']}: {entry['type']}{of}" + (
        f"={shortened(_value(default), 20)}" if default is not None else ""
    )


def _outputs(schema: NodeSchema) -> str:
    """Outputs of a node type; for an agentflow node its branches, by the number that `Connect` uses."""
    if not schema.is_agentflow:
        return "outputs: " + "; ".join(_output(schema, index) for index in range(len(schema.outputs)))
    if schema.raw.get("hideOutput"):
        return "outputs: none"
    if schema.name == HUMAN_INPUT:
        return "branches: 0 is proceed, 1 is reject"
    if rows := BRANCHES_FROM.get(schema.name):
        last = ", then one for else" if schema.name == CONDITION else ""
        return f"branches: 0, 1, … in the order of `{rows}`{last}"
    return "outputs: one, without a name"


def _output(schema: NodeSchema, index: int) -> str:
    output = schema.outputs[index]
    classes = "|".join(output.base_classes)
    return f"{output.name} -> {classes}" if schema.multi_output else classes


def _text(entry: Mapping[str, Any], key: str) -> str:
    """Flowise's description of an input, on one line; committed snapshots have none."""
    return shortened(" ".join(str(entry.get(key) or "").split()), _NOTE_CHARS)


def _value(value: Any) -> str:
    """Value as text, without the editor's markup in defaults."""
    return (
        _MARKUP.sub("", value).strip()
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0]
