"""From a model's text to a typed value, or to sentences that say what is wrong with it."""

import json
import re
from typing import Any, TypeVar

from json_repair import repair_json
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.reasoning.text import clean_json

_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
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
    for candidate in _candidates(text):
        try:
            value: Any = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return clean_json(value)
    body = _outermost(text)
    if body is None:
        raise UnusableOutputError(["The answer holds no JSON object. Give one JSON object and nothing else."])
    if not _is_closed(body):
        raise UnusableOutputError(["The JSON is cut off before its end. Give the whole object again, shorter."])
    repaired: Any = repair_json(body, return_objects=True)
    if not isinstance(repaired, dict) or not repaired:
        raise UnusableOutputError(["The answer is not valid JSON. Give one JSON object and nothing else."])
    return clean_json(repaired)


def parse_model(text: str, model: type[M]) -> M:
    """`parse_object` read into `model`.

    Raises:
        UnusableOutputError: with one sentence per field that is missing, superfluous or wrong.
    """
    value = parse_object(text)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in item['loc']) or 'the object'}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False)
        ]
        raise UnusableOutputError(problems[:_MAX_PROBLEMS]) from None


def _candidates(text: str) -> list[str]:
    found = [text.strip(), *(match.strip() for match in _FENCE.findall(text))]
    body = _outermost(text)
    return [*found, body] if body else found


def _outermost(text: str) -> str | None:
    start = text.find("{")
    if start < 0:
        return None
    end = text.rfind("}")
    return text[start : end + 1] if end > start and _is_closed(text[start : end + 1]) else text[start:]


def _is_closed(text: str) -> bool:
    """Whether every bracket that opens also closes; brackets inside strings do not count."""
    depth, inside, escaped = 0, False, False
    for char in text:
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
    return depth <= 0 and not inside
