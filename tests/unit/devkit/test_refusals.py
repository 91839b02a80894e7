"""Requests that the stand-in refuses as the providers do, and those beside them that it takes."""

from typing import Any

import pytest

from flowise_dev_agent.devkit.standin import anthropic, openai, responses
from flowise_dev_agent.devkit.standin.behaviour import default_reply
from flowise_dev_agent.devkit.standin.refusals import refusal

ASK: dict[str, Any] = {"role": "user", "content": "Hi"}
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLED: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
FOUND: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "12"}
USE: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]}
RESULT: dict[str, Any] = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12"}]}


def tool(name: str = "look", **schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}


def claude_tool(name: str = "look") -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}}


def image(kind: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,QQ=="}}]}


def picture(kind: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": f"image/{kind}", "data": "QQ=="}
    return {"role": "user", "content": [{"type": "image", "source": source}]}


@pytest.mark.parametrize(
    ("model", "taken", "refused"),
    [
        ("gpt-4o", {"messages": [ASK]}, {"messages": []}),
        ("gpt-4o", {"messages": [{**ASK, "role": "developer"}]}, {"messages": [{**ASK, "role": "human"}]}),
        ("gpt-4o", {"messages": [{**ASK, "content": ""}]}, {"messages": [{**ASK, "content": None}]}),
        ("gpt-4o", {"messages": [ASK, CALLED, FOUND]}, {"messages": [ASK, FOUND]}),
        ("gpt-4o", {"messages": [ASK, CALLED, FOUND, ASK]}, {"messages": [ASK, CALLED, ASK]}),
        ("gpt-4o", {"messages": [ASK, CALLED, FOUND]}, {"messages": [ASK, {**CALLED, "tool_calls": []}]}),
        ("gpt-4o", {"messages": [image("png")]}, {"messages": [image("svg+xml")]}),
        ("gpt-4o", {"tools": [tool()]}, {"tools": []}),
        ("gpt-4o", {"tools": [tool("look-up_2")]}, {"tools": [tool("look up")]}),
        ("gpt-4o", {"tools": [tool()]}, {"tools": [tool(type="string")]}),
        (
            "gpt-4o",
            {"tools": [tool(properties={"a": {"type": "array", "items": {}}})]},
            {"tools": [tool(properties={"a": {"type": "array"}})]},
        ),
        ("gpt-4o", {"stop": ["a"] * 4}, {"stop": ["a"] * 5}),
        (
            "gpt-4o",
            {"response_format": {"type": "json_object"}, "messages": [{**ASK, "content": "As JSON"}]},
            {"response_format": {"type": "json_object"}},
        ),
        ("gpt-5-mini", {"max_completion_tokens": 9}, {"max_tokens": 9}),
        ("gpt-5-mini", {"temperature": 1}, {"temperature": 0.2}),
        ("gpt-5.4", {"temperature": 0.2}, {"temperature": 0.2, "reasoning_effort": "low"}),
        ("gpt-5-mini", {"tools": [tool()]}, {"stop": ["\nObservation"]}),
        ("gpt-5-chat-latest", {"top_p": 0.5}, {"messages": []}),
        ("o4-mini", {}, {"presence_penalty": 1}),
        ("gpt-5.4", {"tools": [tool()]}, {"tools": [tool()], "reasoning_effort": "low"}),
        ("gpt-5.6-terra", {"tools": [tool()], "reasoning_effort": "none"}, {"tools": [tool()]}),
    ],
)
def test_openai_refuses(model: str, taken: dict[str, Any], refused: dict[str, Any]) -> None:
    for body, said in ((taken, False), (refused, True)):
        request = openai.parse_chat("/v1/chat/completions", {"model": model, "messages": [ASK], **body}, "key")
        assert bool(refusal(request)) is said, refusal(request)


def test_openai_s_responses_refuse_results_without_calls() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "12"}
    for items, said in (([ASK, call, result], False), ([ASK, result], True), ([], True)):
        request = responses.parse_chat("/v1/responses", {"model": "gpt-5.4", "input": items}, "key")
        assert bool(refusal(request)) is said


@pytest.mark.parametrize(
    ("model", "taken", "refused"),
    [
        ("claude-sonnet-4-5", {"max_tokens": 9}, {"max_tokens": None}),
        ("claude-sonnet-4-5", {"messages": [ASK]}, {"messages": []}),
        ("claude-sonnet-4-5", {"system": "Be kind"}, {"messages": [{**ASK, "role": "system"}, ASK]}),
        ("claude-sonnet-4-5", {"system": ""}, {"system": [{"type": "text", "text": ""}]}),
        ("claude-sonnet-4-5", {}, {"messages": [{**ASK, "content": ""}]}),
        ("claude-sonnet-4-5", {}, {"messages": [{**ASK, "content": " "}]}),
        ("claude-sonnet-4-5", {}, {"messages": [{**ASK, "content": [{"type": "text", "text": ""}]}]}),
        ("claude-sonnet-4-5", {"messages": [ASK, USE, RESULT]}, {"messages": [ASK, RESULT]}),
        ("claude-sonnet-4-5", {"messages": [ASK, USE, RESULT]}, {"messages": [ASK, USE, ASK]}),
        ("claude-sonnet-4-5", {"messages": [picture("png")]}, {"messages": [picture("bmp")]}),
        (
            "claude-sonnet-4-5",
            {"messages": [ASK, {"role": "assistant", "content": "{"}]},
            {"messages": [ASK, {"role": "assistant", "content": "{ "}]},
        ),
        ("claude-sonnet-4-6", {"messages": [ASK]}, {"messages": [ASK, {"role": "assistant", "content": "{"}]}),
        ("claude-sonnet-4-5", {"tools": [claude_tool()]}, {"tools": [claude_tool("look up")]}),
        ("claude-sonnet-4-5", {"tools": [claude_tool()]}, {"tools": [claude_tool(), claude_tool()]}),
        ("claude-sonnet-4-5", {"temperature": 1}, {"temperature": 1.2}),
        ("claude-sonnet-4-5", {"top_p": 0.5}, {"temperature": 0.5, "top_p": 0.5}),
        ("claude-3-haiku-20240307", {"temperature": 0.5, "top_p": 0.5}, {"messages": []}),
        ("claude-opus-4-7", {}, {"temperature": 0.5}),
        ("claude-sonnet-4-5", {"stop_sequences": ["\nObservation"]}, {"stop_sequences": ["\n"]}),
        (
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 2000},
        ),
    ],
)
def test_anthropic_refuses(model: str, taken: dict[str, Any], refused: dict[str, Any]) -> None:
    for body, said in ((taken, False), (refused, True)):
        whole = {"model": model, "max_tokens": 9, "messages": [ASK], **body}
        request = anthropic.parse_chat("/v1/messages", whole, "key")
        assert bool(refusal(request)) is said, refusal(request)


def test_a_moderation_by_a_model_refuses_what_holds_the_refused_text() -> None:
    for message, said in (("I want to bet on it", "Yes"), ("Which alphabet?", "No")):
        asked = (
            "Are these two sentences similar to each other? Only return Yes or No.\n"
            f"First sentence: {message}\nSecond sentence: bet"
        )
        request = openai.parse_chat("/v1/chat/completions", {"messages": [{**ASK, "content": asked}]}, "key")
        assert default_reply(request).text == said
