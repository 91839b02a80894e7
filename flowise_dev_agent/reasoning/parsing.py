"""From a model's text to a typed value, or to sentences that say what is wrong with it."""

import json
from typing import Any, TypeVar

from json_repair import repair_json
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.reasoning.text import clean_json

_MAX_PROBLEMS = 12
M = TypeVar("M", bound=BaseModel)


class UnusableOutputError(Exception):
    """A model's answer that cannot be used; `problems` are written for the model's next try."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object in `text`: tolerant of fences, prose around it, trailing commas and single quotes.

    Not of truncation: closing the brackets of half an answer would turn it into another answer.

    Raises:
        UnusableOutputError: no object, or one that is cut off.
    """
    start = text.find("{")
    if start < 0:
        raise UnusableOutputError(["The answer holds no JSON object. Give one JSON object and nothing else."])
    while start >= 0:
        end = _end_of_object(text, start)
        if end is None:
            raise UnusableOutputError(["The JSON is cut off before its end. Give the whole object again, shorter."])
        value = _load(text[start:end])
        if isinstance(value, dict) and value:
            return clean_json(value)
        # Prose has braces, too.
        start = text.find("{", end)
    raise UnusableOutputError(["The answer is not valid JSON. Give one JSON object and nothing else."])


def parse_model(text: str, model: type[M]) -> M:
    """`parse_object` read into `model`; keys that the model does not have are ignored.

    Raises:
        UnusableOutputError: with one sentence per field that is missing or wrong.
    """
    value = parse_object(text)
    try:
        return model.model_validate(value, extra="ignore")
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in item['loc']) or 'the object'}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False)
        ]
        raise UnusableOutputError(problems[:_MAX_PROBLEMS]) from None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return repair_json(text, return_objects=True)


def _end_of_object(text: str, start: int) -> int | None:
    """Where the object that opens at `start` has closed, None when it never does; brackets in strings do not count."""
    depth, inside, escaped = 0, False, False
    for position in range(start, len(text)):
        char = text[position]
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None
