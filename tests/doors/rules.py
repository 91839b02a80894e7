"""Rules that several doors share: each makes one for a door, in its words."""

import json
from collections.abc import Callable
from typing import Any

from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from flowise_dev_agent.devkit.standin.refusals import refusal as refusal_of
from tests.doors.model import is_look_up
from tests.doors.peer import KEY, Refusal, Rule, prompt_tokens

Words = Callable[..., str]


def named(name: str, rule: Rule) -> Rule:
    """The rule under the name that the log has."""
    rule.__name__ = name
    return rule


def as_the_stand_in(request: RecordedRequest) -> Refusal | None:
    """Refuse what the stand-in of the devkit refuses for this provider."""
    said = refusal_of(request)
    return Refusal(said) if said else None


def wrong_key(refusal: Refusal) -> Rule:
    """Refuse every key but `KEY`."""
    return named("wrong_key", lambda request: refusal if request.api_key != KEY else None)


def option(name: str, refusal: Refusal, unless: Callable[[Any], bool] = lambda value: False) -> Rule:
    """Refuse a request with this field."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        value = request.body.get(name)
        return refusal if value is not None and not unless(value) else None

    return named(f"option_{name}", refuses)


def tools_with_schema(refusal: Refusal) -> Rule:
    """Refuse tools beside a response format."""
    return named(
        "tools_with_schema", lambda request: refusal if request.tools and request.json_schema is not None else None
    )


def no_tools(refusal: Refusal) -> Rule:
    """Refuse every tool."""
    return named("no_tools", lambda request: refusal if request.tools else None)


def no_forced_tool(refusal: Refusal) -> Rule:
    """Refuse a `tool_choice` that demands a call."""
    return named("no_forced_tool", lambda request: refusal if request.forced_tool else None)


def response_types(refusal: Refusal, *allowed: str) -> Rule:
    """Refuse a response format of another type."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        form = request.body.get("response_format")
        return refusal if form and form.get("type") not in allowed else None

    return named("response_types", refuses)


def window(tokens: int, words: Words, *, with_answer: bool, **fields: Any) -> Rule:
    """Refuse a prompt, with the answer's limit where the door counts it, that is longer than the model reads."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        prompt = prompt_tokens(request)
        answer = answer_limit(request) if with_answer else 0
        if prompt + answer <= tokens:
            return None
        return Refusal(words(tokens=tokens, prompt=prompt, answer=answer), **fields)

    return named("window", refuses)


def longest_answer(tokens: int, words: Words, **fields: Any) -> Rule:
    """Refuse an output limit above what the model writes."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        asked = answer_limit(request)
        return Refusal(words(tokens=tokens, asked=asked), **fields) if asked > tokens else None

    return named("longest_answer", refuses)


def answer_limit(request: RecordedRequest) -> int:
    """The output limit of a request."""
    body = request.body
    nested = body.get("generationConfig") or body.get("inferenceConfig") or {}
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens")
    return next((found[name] for found in (body, nested) for name in names if found.get(name)), 0)


def reasoning_returned(refusal: Refusal, has_it: Callable[[dict[str, Any]], bool]) -> Rule:
    """Refuse a turn of chat completions with calls that lacks the reasoning which the door sent with it."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        turns = [turn for turn in request.body.get("messages", []) if turn.get("tool_calls")]
        return None if all(has_it(turn) for turn in turns) else refusal

    return named("reasoning_returned", refuses)


def empty_turn(refusal: Refusal) -> Rule:
    """Refuse an assistant's turn with neither text nor calls."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        blank = (
            turn.get("role") == "assistant" and not turn.get("content") and not turn.get("tool_calls")
            for turn in request.body.get("messages", [])
        )
        return refusal if any(blank) else None

    return named("empty_turn", refuses)


def strict_format(violations: Callable[[Any], list[str]], words: Words, **fields: Any) -> Rule:
    """Refuse a strict `response_format` whose schema is outside of the subset."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        form = (request.body.get("response_format") or {}).get("json_schema") or {}
        if not form.get("strict"):
            return None
        found = violations(form.get("schema", {}))
        return Refusal(words(name=form.get("name"), said=found[0]), **fields) if found else None

    return named("strict_format", refuses)


def strict_tools(violations: Callable[[Any], list[str]], words: Words, **fields: Any) -> Rule:
    """Refuse a strict tool whose schema is outside of the subset."""

    def refuses(request: RecordedRequest) -> Refusal | None:
        for tool in request.body.get("tools") or []:
            told = tool.get("function") or tool
            if told.get("strict"):
                schema = told.get("parameters") or told.get("input_schema") or {}
                if found := violations(schema):
                    return Refusal(words(name=told.get("name"), said=found[0]), **fields)
        return None

    return named("strict_tools", refuses)


def calls_tools_only(request: RecordedRequest) -> bool:
    """True if a response format takes the place of the tools."""
    return request.json_schema is not None and any(is_look_up(tool.name) for tool in request.tools)


def strictly(request: RecordedRequest) -> bool:
    """True if the answer is held to a schema: a strict format, or a strict tool."""
    form = (request.body.get("response_format") or {}).get("json_schema") or (request.body.get("text") or {}).get(
        "format", {}
    )
    tools = [tool.get("function") or tool for tool in request.body.get("tools") or []]
    return bool(form.get("strict")) or any(tool.get("strict") and not is_look_up(tool["name"]) for tool in tools)


def says_json(request: RecordedRequest) -> bool:
    """True if the word is somewhere in the conversation."""
    return "json" in json.dumps(request.body.get("messages", [])).lower()
