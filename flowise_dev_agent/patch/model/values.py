"""Field values: convert a value to the form that Flowise stores, or explain why it is invalid."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from flowise_dev_agent.patch.model.flow_data import InputEntry, OptionEntry, Values
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.placeholders import MARK, placeholder_file
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.suggest import closest, fold
from flowise_dev_agent.patch.model.visibility import is_visible

_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
#: How the server tells HTML of its editor from a text, also from one with tags in it such as `<rules>`.
_EDITOR_TEXT = re.compile(r"\s*<(?:p|div|h[1-6]|ul|ol|blockquote|pre|table)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_BLOCK_END = re.compile(r"</(?:p|div|h[1-6]|blockquote|pre|table)>\s*", re.IGNORECASE)
#: Deeper lists are indented no more.
_DEEPEST = 8
_LIST = re.compile(r"<(/?)(ol|ul|li)\b([^<>]*)>", re.IGNORECASE)
_START = re.compile(r'\bstart="(\d{1,6})"', re.IGNORECASE)
#: Tags and what stands for them in Markdown.
_SIGNS = tuple(
    (re.compile(pattern, re.IGNORECASE), sign)
    for pattern, sign in (
        (r"</?(?:strong|b)>", "**"),
        (r"</?(?:em|i)>", "_"),
        (r"</?code>", "`"),
        (r"<br\b[^<>]*>", "\n"),
    )
)
_BLANK_LINES = re.compile(r"\n\s*\n")
_SHOWN_LENGTH = 60
#: Options are listed in full up to this number.
_LISTED_OPTIONS = 30
#: Types with a syntax of their own, which is checked even if they contain variables.
_CHECKED_WITH_VARIABLES = frozenset({"json", "array", "config"})


@dataclass(frozen=True, slots=True)
class ValueProblem:
    """A reason why a value does not fit its field. ``example`` is a valid value."""

    code: str
    message: str
    allowed: tuple[str, ...] = ()
    example: Any = None


def is_empty(value: Any) -> bool:
    """True for the value of an untouched or cleared field."""
    return value is None or (isinstance(value, str) and not value.strip()) or value == []


def without_markup(text: str) -> str:
    """The text as the server reads it: HTML of its editor without tags and entities, other texts as they are.

    >>> without_markup('<p>Be &lt;kind&gt;.</p><p>Ask <span data-type="mention">{{ question }}</span> </p>')
    'Be <kind>.\\n\\nAsk {{ question }}'
    """
    if not _EDITOR_TEXT.match(text):
        return text.strip()
    lists: list[int] = []

    def listed(tag: re.Match[str]) -> str:
        """The sign of an item; `lists` holds the number of the next one for each open list, 0 where they have none."""
        if tag[2].lower() != "li":
            if not tag[1]:
                start = _START.search(tag[3])
                lists.append(int(start[1] if start else 1) if tag[2].lower() == "ol" else 0)
            elif lists:
                lists.pop()
            return "" if lists or not tag[1] else "\n\n"
        following = lists.pop() if lists else 0
        lists.append(following + 1 if following and not tag[1] else following)
        if tag[1]:
            return "\n"
        return "  " * min(len(lists) - 1, _DEEPEST) + (f"{following}. " if following else "- ")

    text = _LIST.sub(listed, _BLOCK_END.sub("\n\n", text))
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return _BLANK_LINES.sub("\n\n", unescape(_MARKUP.sub("", text))).strip()


def on_one_line(text: str) -> str:
    """The text with single blanks and a sign at each line break, so that a list of words does not read as a sentence.

    >>> on_one_line(" casino\\n\\n  poker  club")
    'casino ⏎ poker club'
    """
    return " ⏎ ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def shown(value: Any) -> str:
    """The value as text, short enough for a message."""
    text = on_one_line(value if isinstance(value, str) else dump_json(value))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"


def normalize(definition: InputEntry, value: Any, inputs: Values | None = None) -> tuple[Any, ValueProblem | None]:
    """The value as stored, and the problem if there is one (then the value is unchanged).

    Text with ``{{...}}`` is filled in at run time and accepted unchanged. ``inputs`` are the node's other values: with
    them, only the options that the editor offers in that state are allowed.
    """
    kind = str(definition.get("type") or "")
    if is_empty(value) or (has_variable(value) and kind not in _CHECKED_WITH_VARIABLES):
        return value, None
    match kind:
        case "number":
            return _number(definition, value)
        case "boolean":
            return _boolean(value)
        case "options" | "multiOptions":
            return _options(definition, value, inputs, several=kind == "multiOptions")
        case "json":
            return _json(value)
        case "file" if isinstance(value, str) and value.startswith(MARK):
            # A text is no file: Flowise would fail on it with every question.
            return placeholder_file(str(definition.get("fileType") or ""), value) or value, None
        case "string" | "code" | "password" | "asyncOptions" | "date" | "file" | "folder":
            return _text(value)
        case "array":
            return _array(definition, value)
        case "config":
            return _config(value)
        case "asyncMultiOptions" | "datagrid":
            return (dump_json(value) if isinstance(value, (list, dict)) else value), None
        case _:
            return value, None


def _number(definition: InputEntry, value: Any) -> tuple[Any, ValueProblem | None]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Flowise takes 0 for an empty field, and reads it in the text that its editor writes.
        return value or "0", None
    if isinstance(value, str):
        try:
            number = float(without_markup(value) if definition.get("acceptVariable") else value)
        except ValueError:
            number = float("nan")
        if number == number and abs(number) != float("inf"):
            return value, None
    return value, ValueProblem("NOT_A_NUMBER", f"{shown(value)!r} is not a number.", example=1)


def _boolean(value: Any) -> tuple[Any, ValueProblem | None]:
    if isinstance(value, bool):
        return value, None
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true", None
    return value, ValueProblem("NOT_A_BOOLEAN", f"{shown(value)!r} is neither true nor false.", example=True)


def _options(
    definition: InputEntry, value: Any, inputs: Values | None, *, several: bool
) -> tuple[Any, ValueProblem | None]:
    options = definition.get("options") or ()
    if inputs is not None:
        options = [option for option in options if is_visible(option, inputs)]
    names = [str(option["name"]) for option in options]
    if not names or definition.get("freeSolo"):
        return value, None
    if several:
        wanted = _listed(value)
    elif isinstance(value, (list, dict)):
        return value, ValueProblem("BAD_OPTION", "One option is needed, not a list.", tuple(names[:3]), names[0])
    else:
        wanted = [value]
    chosen: list[str] = []
    for one in wanted:
        text = str(one).lower() if isinstance(one, bool) else str(one)
        if text in names:
            chosen.append(text)
        elif name := _folded(options).get(fold(text)):
            chosen.append(name)
        else:
            near = closest(text, names) or tuple(names[:3])
            example = [near[0]] if several else near[0]
            listed = f": {', '.join(names)}" if len(names) <= _LISTED_OPTIONS else f", such as {', '.join(near)}"
            return value, ValueProblem(
                "BAD_OPTION", f"{shown(one)!r} is not one of its options{listed}.", near, example
            )
    return (dump_json(chosen) if several else chosen[0]), None


def _folded(options: Sequence[OptionEntry]) -> dict[str, str]:
    """Map the labels and names of options to their names, ignoring case and separators."""
    by_label = {fold(str(option.get("label") or "")): str(option["name"]) for option in options}
    return by_label | {fold(str(option["name"])): str(option["name"]) for option in options}


def _listed(value: Any) -> list[Any]:
    """Several options as a list; the editor stores them as JSON text."""
    value = _parsed(value)
    return value if isinstance(value, list) else [value]


def _json(value: Any) -> tuple[Any, ValueProblem | None]:
    if isinstance(value, (list, dict)):
        return dump_json(value), None
    if isinstance(value, str) and (_is_json(value) or _is_json(_VARIABLE.sub("null", value))):
        return value, None
    return value, ValueProblem("BAD_JSON", "The value is not valid JSON.", example={"key": "value"})


def row_example(definition: InputEntry) -> dict[str, Any]:
    """Example row of an array field: its required fields, with a default, an option or a description as value."""
    row: dict[str, Any] = {}
    for part in definition.get("array") or ():
        if part.get("optional") or part.get("show") or part["name"] in row:
            continue
        options = part.get("options") or ()
        row[part["name"]] = part.get("default") or (str(options[0]["name"]) if options else f"<{part.get('label')}>")
        if part.get("loadConfig"):
            row[f"{part['name']}Config"] = {}
    return row or {"key": "value"}


def _array(definition: InputEntry, value: Any) -> tuple[Any, ValueProblem | None]:
    """Rows of an agentflow node. The server needs a list; models often write it as text, and rows of one field as
    texts.
    """
    rows = _parsed(value)
    names = {part["name"] for part in definition.get("array") or ()}
    if isinstance(rows, list) and len(names) == 1:
        rows = [{name: row} if isinstance(row, str) else row for row in rows for name in names]
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return rows, None
    return value, ValueProblem("NOT_A_LIST", "A list of objects is needed.", example=[row_example(definition)])


def _config(value: Any) -> tuple[Any, ValueProblem | None]:
    """Inputs of a model or tool inside a node, as an object; the server fails on text."""
    inputs = _parsed(value)
    if isinstance(inputs, dict):
        return inputs, None
    return value, ValueProblem(
        "NOT_AN_OBJECT", "An object of field values is needed.", example={"modelName": "gpt-5.4"}
    )


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(value: Any) -> tuple[Any, ValueProblem | None]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, (list, dict)):
        return value, ValueProblem("NOT_A_TEXT", "The value must be a text.", example="text")
    return (str(value).lower() if isinstance(value, bool) else str(value)), None
