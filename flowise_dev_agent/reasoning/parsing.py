"""Reads a model's text into a typed value, or says in sentences what is wrong with it."""

import json
from typing import Any, TypeVar

from json_repair import repair_json
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.contracts.base import JsonObject
from flowise_dev_agent.sanitize import clean_json

_MAX_PROBLEMS = 12
M = TypeVar("M", bound=BaseModel)


class UnusableOutputError(Exception):
    """A model's answer that cannot be used; `problems` are written for the model's next try."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_object(text: str) -> JsonObject:
    """The JSON object in `text`. Accepts code fences, prose around it, trailing commas and single quotes.

    Does not accept truncation: closing the brackets of half an answer would make it another answer.

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
        # Prose can contain braces, too.
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
    """The end of the object that opens at `start`, None when it is not closed; brackets in strings do not count."""
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
