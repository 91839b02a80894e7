"""Parse a model's text into a typed value, or list its problems in sentences."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from flowise_dev_agent.sanitize import clean_json
from flowise_dev_agent.schemas.base import JsonObject

_MAX_PROBLEMS = 12
M = TypeVar("M", bound=BaseModel)
#: Thinking that a server left in the text, before the answer. Without an end all of it is thinking.
_THINKING: Final = re.compile(r"\s*<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
#: The end of thinking whose beginning the server's template has swallowed, and an answer behind it.
_END_OF_THINKING: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>\s*(?=[{\[`]|\Z)", re.IGNORECASE)
_BEGIN_OF_THINKING: Final = re.compile(r"<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
#: Line breaks before the rest mean nothing, since JSON has none inside texts; spaces may belong to one.
_FENCE: Final = re.compile(r"^(?:\s*```\w*[ \t]*(?=\n))?\n*")
#: Characters that show that an answer was begun again, and that its end and the rest have in common.
_SAME_BEGINNING, _MIN_OVERLAP, _MAX_OVERLAP = 12, 4, 400
_JSON_BEGINS: Final = ("{", "[", "`")


class UnusableOutputError(Exception):
    """Unusable answer of a model; `problems` are written for the model's next try."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class IncompleteOutputError(UnusableOutputError):
    """Usable but incomplete answer. `value` is kept; the model is asked once more if a try is left."""

    def __init__(self, problems: list[str], value: object) -> None:
        super().__init__(problems)
        self.value = value


def without_comments(text: str) -> str:
    """Remove comments from the JSON in a model's text."""
    if "//" not in text and "/*" not in text:
        return text
    try:
        json.loads(text)
    except ValueError:
        return "".join(_uncommented(text))
    return text


def parse_object(text: str) -> JsonObject:
    """Parse the first JSON object in `text`. Accepts code fences, surrounding prose, trailing commas and single quotes.

    Does not accept truncation: closing the brackets of half an answer would make it another answer.

    Raises:
        UnusableOutputError: no object, or one that is cut off.
    """
    return next(_objects(text))


def parse_model(text: str, model: type[M]) -> M:
    """Parse the first object that fits `model`; unknown keys are ignored.

    A null where the field takes none counts as left out.

    Raises:
        UnusableOutputError: with one sentence per field that is missing or wrong.
    """
    problems: list[str] = []
    try:
        for value in _objects(text):
            try:
                return _validated(value, model)
            except ValidationError as error:
                problems = problems or [
                    f"{'.'.join(str(part) for part in item['loc']) or 'the object'}: {item['msg']}"
                    for item in error.errors(include_input=False, include_url=False)
                ]
    except UnusableOutputError:
        # Behind an object that does not fit there may be prose with a brace.
        if not problems:
            raise
    raise UnusableOutputError(problems[:_MAX_PROBLEMS])


def is_object(text: str) -> bool:
    """True if `text` holds a whole JSON object, or the beginning of one."""
    try:
        return bool(parse_object(without_comments(text)))
    except UnusableOutputError:
        return is_cut(text)


def is_cut(text: str) -> bool:
    """True if `text` begins a JSON object and ends before it is closed."""
    start = text.find("{")
    return start >= 0 and _end_of_object(text, start) is None


def continued(beginning: str, rest: str) -> str | None:
    """Join a cut answer (`is_cut`) and its continuation, as far as that goes.

    A rest that repeats the last words, or gives the whole answer again, is understood. None when both together cannot
    be the answer: that it is whole must be beyond doubt.
    """
    rest = _FENCE.sub("", rest, count=1)
    start = beginning.find("{")
    if rest.lstrip().startswith(beginning[start : start + _SAME_BEGINNING]):
        return rest
    longest = min(len(beginning), len(rest), _MAX_OVERLAP)
    sizes = (size for size in range(longest, _MIN_OVERLAP - 1, -1) if beginning.endswith(rest[:size]))
    repeated = next(sizes, 0)
    if not re.search(r"\w", rest[:repeated]):
        repeated = 0
    whole = beginning + rest[repeated:]
    end = _end_of_object(whole, start)
    if end is None:
        return whole
    try:
        json.loads(without_comments(whole[start:end]))
    except ValueError:
        return None
    return whole


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the objects of `text`, at least one. Raises UnusableOutputError if there is none or one is cut off."""
    start = text.find("{")
    if start < 0:
        raise UnusableOutputError(["The answer holds no JSON object. Give one JSON object and nothing else."])
    found = False
    while start >= 0:
        end = _end_of_object(text, start)
        if end is None:
            raise UnusableOutputError(["The JSON is cut off before its end. Give the whole object again, shorter."])
        value = _load(text[start:end])
        # Prose can contain braces, too.
        if isinstance(value, dict) and value:
            found = True
            yield clean_json(value)
        start = text.find("{", end)
    if not found:
        raise UnusableOutputError(["The answer is not valid JSON. Give one JSON object and nothing else."])


def _validated(value: JsonObject, model: type[M]) -> M:
    try:
        return model.model_validate(value, extra="ignore")
    except ValidationError as error:
        nulls = [item["loc"] for item in error.errors(include_url=False) if item["input"] is None]
        if not nulls:
            raise
    for path in nulls:
        _leave_out(value, path)
    return model.model_validate(value, extra="ignore")


def _leave_out(value: Any, path: tuple[int | str, ...]) -> None:
    try:
        for part in path[:-1]:
            value = value[part]
        del value[path[-1]]
    except (LookupError, TypeError):
        # The path of an error names the members of unions, too.
        return


def without_thinking(text: str) -> str:
    """Remove thinking from a model's text."""
    while match := _THINKING.match(text):
        text = text[match.end() :]
    if text.lstrip().startswith(_JSON_BEGINS) or _BEGIN_OF_THINKING.search(text):
        return text
    match = _END_OF_THINKING.search(text)
    return text[match.end() :] if match else text


def _uncommented(text: str) -> Iterator[str]:
    """Yield the characters of `text`, without comments inside a JSON value."""
    depth, quote, position = 0, "", 0
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                yield char
                position += 1
                char = text[position : position + 1]
            elif char == quote:
                quote = ""
        elif depth and text.startswith(("//", "/*"), position):
            line = text[position + 1] == "/"
            end = text.find("\n" if line else "*/", position + 2)
            position = len(text) if end < 0 else end if line else end + 2
            continue
        elif char in "\"'" and depth:
            quote = char
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth = max(0, depth - 1)
        yield char
        position += 1


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        from json_repair import repair_json  # lazy: most models write JSON

        return repair_json(text, return_objects=True)


def _end_of_object(text: str, start: int) -> int | None:
    """End of the object that opens at `start`, None if it is not closed; brackets in strings do not count."""
    depth, in_string, escaped = 0, False, False
    for position in range(start, len(text)):
        char = text[position]
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None
