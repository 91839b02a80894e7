"""Mistral's chat completions: OpenAI's, but a streamed call comes in one piece, with its name and all its arguments."""

import json
from collections.abc import Iterator

from flowise_dev_agent.devkit.standin import openai
from flowise_dev_agent.devkit.standin.openai import parse_chat, render_chat
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply

__all__ = ["parse_chat", "render_chat", "stream_chat"]


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The reply as server-sent events; the last chunk has the usage, whether it was asked for or not."""
    whole = openai.render_chat(request, reply)
    calls = [{**call, "index": n} for n, call in enumerate(whole["choices"][0]["message"].get("tool_calls") or [])]
    for event in openai.stream_chat(request, reply):
        if not event.startswith("data: {"):
            yield event
            continue
        body = json.loads(event.removeprefix("data: "))
        for choice in body["choices"]:
            if "tool_calls" in choice["delta"]:
                choice["delta"] = {"tool_calls": calls} if calls else {}
                calls = []
            if choice["finish_reason"]:
                body["usage"] = whole["usage"]
        if body["choices"]:
            yield f"data: {json.dumps(body)}\n\n"
