"""Rules on conditions: types of compared values, patterns, and texts that the server strips of Markdown."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule

#: A text that consists of exactly one field of a step's structured answer.
_FIELD = re.compile(r"\{\{\s*([A-Za-z0-9_]{1,100})\.output\.([A-Za-z0-9_]{1,100})\s*\}\}")
#: A text that consists of exactly one value of a step's output: it keeps its type. All others arrive as texts.
_TYPED: Final = re.compile(r"\{\{[^{}]{1,200}\.output\.[^{}]{1,200}\}\}")
#: Type of a condition for each type of a structured field. On a mismatch, text conditions fail and others never hold.
_STRUCTURED: Final[Mapping[str, str]] = {"number": "number", "boolean": "boolean", "string": "string", "enum": "string"}
#: A text that consists of one value that a form, a request or an answer may lack.
_MAY_BE_MISSING: Final = re.compile(
    r"\{\{\s*((?:\$form\.|\$webhook\.|[A-Za-z0-9_]{1,100}\.output\.http\.data[.\[])[^{}\s]{1,200})\s*\}\}"
)
#: Longer texts are not checked: nobody compares with them, and some of the patterns below take quadratic time.
_COMPARED_CHARS: Final = 300
#: Patterns that the server removes from both sides of a text comparison, in its order (remove-markdown).
_MARKDOWN: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, flags), kept)
    for pattern, kept, flags in (
        (r"^ {0,3}((?:-[\t ]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})(?:\n+|\Z)", "", re.MULTILINE),
        (r"^(\s*)([*+-]|\d+\.)\s+", r"\1", re.MULTILINE),
        (r"\n={2,}", "\n", 0),
        (r"~{3}.*\n", "", 0),
        (r"~~", "", 0),
        (r"<[^>]*>", "", 0),
        (r"\A[=-]{2,}\s*\Z", "", 0),
        (r"\[\^.+?\](: .*?\Z)?", "", 0),
        (r"\s{0,2}\[.*?\]: .*?\Z", "", 0),
        (r"!\[(.*?)\][\[(].*?[\])]", r"\1", 0),
        (r"\[([\s\S]*?)\]\s*[(\[](.*?)[)\]]", r"\1", 0),
        (r"^(\n)?\s{0,3}>\s?", r"\1", re.MULTILINE),
        (r"^(\n)?\s*#{1,6}\s*( (.+))?$", r"\1\3", re.MULTILINE),
        (r"(\*+)(\S)(.*?\S)??\1", r"\2\3", 0),
        (r"(\A|\W)(_+)(\S)(.*?\S)??\2(\Z|\W)", r"\1\3\4\5", 0),
        (r"`(.+?)`", r"\1", 0),
        (r"~(.*?)~", r"\1", 0),
    )
)
_WITHOUT_TEXT: Final = frozenset({"isEmpty", "notEmpty"})
#: Operations that look for a text in another one: an empty one is in each.
_WITH_TEXT: Final = frozenset({"contains", "notContains", "startsWith", "endsWith", "regex"})
_BY_FUNCTION: Final = (
    "Let a custom function step look at the text and return a plain word, such as urgent or other, and compare that."
)


@rule(
    "CONDITION_TYPE_MISMATCH",
    "BAD_REGULAR_EXPRESSION",
    "CONDITION_TEXT_CHANGED",
    "MISSING_IS_NOT_EMPTY",
    "REQUIRED_PARAM_MISSING",
    kinds=(AGENTFLOW,),
)
def conditions(flow: FlowContext) -> Iterator[Finding]:
    """Conditions use the type of the value, valid patterns, and texts that survive Markdown removal.

    A number compared as a text fails at every question. Texts are compared without their Markdown.
    """
    for node in flow.nodes:
        rows = node.inputs.get("conditions")
        if node.name != v2.CONDITION or not isinstance(rows, list):
            continue
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                continue
            field = f"conditions[{number}]"
            compared = row.get("type")
            for name in ("value1", "value2"):
                type_ = _type_of_field(flow, row.get(name))
                if type_ is None or compared not in _STRUCTURED or type_ == compared:
                    continue
                if compared == "number" and type_ == "string":
                    continue  # the server parses a number from the beginning of a text
                result = "the server fails on it" if compared == "string" else "it never holds"
                yield error(
                    "CONDITION_TYPE_MISMATCH",
                    f"`{field}.{name}` is a {type_} and is compared as a {compared}: {result}.",
                    where=node.id,
                    field=field,
                    hint=f'Set `{field}.type` to "{type_}" and choose one of its operations.'
                    + (' A switch is the text "true" or "false".' if compared == "boolean" else ""),
                )
            yield from _emptiness(node.id, field, row)
            pattern = row.get("value2")
            if not isinstance(pattern, str) or has_variable(pattern):
                continue
            text = without_markup(pattern)
            if compared in (None, "", "string") and (change := _changed_by_markdown(text, row.get("operation"))):
                make, message, hint = change
                where = f"{field}.value2"
                yield make("CONDITION_TEXT_CHANGED", f"`{where}`: {message}", where=node.id, field=where, hint=hint)
            if row.get("operation") in _WITH_TEXT and compared == "string" and not without_markup(pattern):
                yield warning(
                    "REQUIRED_PARAM_MISSING",
                    f"`{field}.value2` is empty: every text {row['operation']} nothing, so one branch is always taken.",
                    where=node.id,
                    field=f"{field}.value2",
                    hint=f"Use SetParam on `{field}.value2` of {node.id}, or compare with isEmpty.",
                )
            if row.get("operation") != "regex":
                continue
            if why := broken_pattern(without_markup(pattern)):
                yield error(
                    "BAD_REGULAR_EXPRESSION",
                    f"The regular expression in `{field}.value2` cannot be read: {why}; it never matches.",
                    where=node.id,
                    field=f"{field}.value2",
                    hint=r"Write \ before a character that is meant as it is, and close each bracket.",
                )


def _emptiness(where: str, field: str, row: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on a row that asks for an empty value: a number is never empty, and a missing value is its variable."""
    if row.get("operation") not in _WITHOUT_TEXT:
        return
    if row.get("type") == "number":
        text = f"`{field}`: a number is never empty, a missing one is 0."
        hint = f'Set `{field}.type` to "string".'
        yield error("CONDITION_TYPE_MISMATCH", text, where=where, field=field, hint=hint)
    elif found := _MAY_BE_MISSING.fullmatch(without_markup(str(row.get("value1") or ""))):
        yield warning(
            "MISSING_IS_NOT_EMPTY",
            f"`{field}`: if {found[1]} is missing, the text is {{{{ {found[1]} }}}}, which is not empty.",
            where=where,
            field=field,
            hint=f'Ask for a missing one with operation contains and value2 "{found[1]}" (without braces).',
        )


def _type_of_field(flow: FlowContext, value: Any) -> str | None:
    """The type that a value with variables has when the server compares it; None if that is not known."""
    if not isinstance(value, str) or not has_variable(value):
        return None
    text = without_markup(value)
    if not _TYPED.fullmatch(text):
        return "string"
    match = _FIELD.fullmatch(text)
    source = flow.graph.node(match[1]) if match else None
    if match is None or source is None:
        return None
    rows = [
        rows for name, rows in source.inputs.items() if name.endswith("StructuredOutput") and isinstance(rows, list)
    ]
    for row in (row for one in rows for row in one):
        if isinstance(row, dict) and row.get("key") == match[2]:
            return _STRUCTURED.get(str(row.get("type")))
    return None


def broken_pattern(pattern: str) -> str:
    """A reason why JavaScript rejects a regular expression; '' if brackets and repetitions are valid.

    Nothing is executed.
    """
    depth, in_class, repeatable = 0, False, False
    position = 0
    while position < len(pattern):
        one = pattern[position]
        if one == "\\":
            if position + 1 == len(pattern):
                return "it ends in a single \\"
            position, repeatable = position + 2, True
            continue
        if in_class:
            in_class, repeatable = one != "]", True
        elif one == "[":
            in_class = True
        elif one == "(":
            depth, repeatable = depth + 1, False
            if pattern.startswith("(?", position):
                position += 1
        elif one == ")":
            depth -= 1
            if depth < 0:
                return "a ) has no ("
            repeatable = True
        elif one in "*+?":
            if not repeatable:
                return f"nothing comes before {one}"
            if one == "?" or not pattern.startswith("?", position + 1):
                repeatable = False
        else:
            repeatable = one not in "|^"
        position += 1
    return "a [ is not closed" if in_class else "a ( is not closed" if depth else ""


def without_markdown(text: str) -> str:
    """The text as the server compares it, without Markdown.

    >>> without_markdown("[A-Z][0-9]+"), without_markdown(".*error.*"), without_markdown("[urgent]")
    ('A-Z+', '.error.', '[urgent]')
    """
    for pattern, kept in _MARKDOWN:
        text = pattern.sub(kept, text)
    return text


def _changed_by_markdown(text: str, operation: Any) -> tuple[Callable[..., Finding], str, str] | None:
    """(finding constructor, problem, remedy) for a text that the server changes before comparing; else None."""
    if operation in _WITHOUT_TEXT or not text.strip() or len(text) > _COMPARED_CHARS:
        return None
    left = without_markdown(text)
    if operation == "regex":
        if left == text:
            return None
        hint = (
            "Write {1} between ] and a bracket that follows, {0,} instead of *, and no pairs of _, ` or ~: "
            "[A-Z]{1}[0-9]+, .{0,}error.{0,}."
        )
        return error, f"the server removes Markdown first, and the pattern becomes {left!r}.", hint
    if not left.strip():
        return error, "the server removes all of it as Markdown, and an empty text is in every text.", _BY_FUNCTION
    if "[" in text and left != text:
        return error, f"the server removes Markdown first, and compares with {left!r}.", _BY_FUNCTION
    if "[" in text:
        why = "the server removes Markdown first: in a message, [word] is gone where a colon or a bracket follows."
        return warning, why, _BY_FUNCTION
    return None
