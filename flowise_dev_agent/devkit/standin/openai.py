"""OpenAI's wire format: chat completions (plain and streamed) and embeddings. Groq uses it too."""

import base64
import json
import struct
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from flowise_dev_agent.devkit.standin.embeddings import embed
from flowise_dev_agent.devkit.standin.protocol import (
    Body,
    RecordedRequest,
    Reply,
    Role,
    StandInFailure,
    StandInMessage,
    StandInToolCall,
    ToolSpec,
    estimate_tokens,
    pieces,
)
from flowise_dev_agent.schemas.base import JsonObject

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_DIMENSIONS = 1536


def parse_chat(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse a `/chat/completions` body."""
    choice = body.get("tool_choice")
    forced = choice["function"]["name"] if isinstance(choice, dict) else "*" if choice == "required" else ""
    form = body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema", {}) if form.get("type") == "json_schema" else None
    return RecordedRequest(
        provider="openai",
        kind="chat",
        path=path,
        model=str(body.get("model", "")),
        body=body,
        api_key=api_key,
        messages=tuple(_message(item) for item in body.get("messages", [])),
        tools=tuple(
            ToolSpec(
                item["function"]["name"],
                item["function"].get("description", ""),
                item["function"].get("parameters") or {},
            )
            for item in body.get("tools") or []
            if item.get("type") == "function"
        ),
        forced_tool=forced,
        json_schema={} if form.get("type") == "json_object" else schema,
        stream=bool(body.get("stream")),
    )


def parse_embeddings(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse an `/embeddings` body; the texts become user messages."""
    return RecordedRequest(
        provider="openai",
        kind="embeddings",
        path=path,
        model=str(body.get("model", "")),
        body=body,
        api_key=api_key,
        messages=tuple(StandInMessage("user", text) for text in _inputs(body.get("input", ""))),
    )


def _message(item: Body) -> StandInMessage:
    calls = tuple(
        StandInToolCall(call["function"]["name"], _arguments(call["function"].get("arguments")), call.get("id", ""))
        for call in item.get("tool_calls") or []
    )
    return StandInMessage(_ROLES.get(item.get("role", ""), "user"), text_of(item.get("content")), calls)


def text_of(content: Any) -> str:
    """The text of a content field: a string, or a list of parts. Images are given by type and size."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part.get("text") or _image(part) for part in content if isinstance(part, dict))
    return ""


def _image(part: Body) -> str:
    """Type and size of an image in a data URL."""
    image = part.get("image_url")
    url = str(image.get("url") if isinstance(image, dict) else image or "")
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return f"[{kind}, {len(base64.b64decode(data))} bytes]" if kind.startswith("image/") and data else ""


def _arguments(text: Any) -> JsonObject:
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _inputs(value: Any) -> list[str]:
    # Some clients send token numbers instead of text; they are treated as words.
    if isinstance(value, str):
        return [value]
    if all(isinstance(item, int) for item in value):
        return [" ".join(map(str, value))]
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in value]


def render_chat(request: RecordedRequest, reply: Reply) -> Body:
    """The whole reply as one JSON object."""
    message: Body = {"role": "assistant", "content": _content(reply), "refusal": reply.refusal or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = _tool_calls(reply.tool_calls)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish_reason(reply), "logprobs": None}],
        "usage": _usage(request, reply),
    }


def parse_reply(body: Body) -> Reply:
    """Parse a provider's whole answer."""
    choice = body["choices"][0]
    message = choice["message"]
    calls = tuple(
        StandInToolCall(call["function"]["name"], _arguments(call["function"].get("arguments")))
        for call in message.get("tool_calls") or []
    )
    stop = choice.get("finish_reason")
    return Reply(text_of(message.get("content")), calls, stop_reason=None if stop in ("stop", "tool_calls") else stop)


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The reply as server-sent events, with a usage chunk at the end if the client asked for it."""
    head = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": request.model,
    }

    def chunk(delta: Body, finish: str | None = None) -> str:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    if reply.refusal:
        yield chunk({"refusal": reply.refusal})
    for piece in pieces(_content(reply) or ""):
        if piece:
            yield chunk({"content": piece})
    for index, call in enumerate(_tool_calls(reply.tool_calls)):
        whole = call["function"]["arguments"]
        opening = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for start in range(0, len(whole), 16):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": whole[start : start + 16]}}]})
    yield chunk({}, _finish_reason(reply))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _usage(request, reply)})
    yield "data: [DONE]\n\n"


def render_embeddings(request: RecordedRequest) -> Body:
    """Deterministic vectors, as lists or base64 as requested."""
    size = int(request.body.get("dimensions") or _DIMENSIONS)
    as_base64 = request.body.get("encoding_format") == "base64"
    vectors = [embed(message.text, size) for message in request.messages]
    tokens = estimate_tokens(request.prompt)
    return {
        "object": "list",
        "model": request.model,
        "data": [
            {"object": "embedding", "index": index, "embedding": _pack_vector(vector) if as_base64 else vector}
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def render_moderation(body: Body) -> Body:
    """No text is harmful here."""
    texts = _inputs(body.get("input", ""))
    result: Body = {"flagged": False, "categories": {}, "category_scores": {}}
    return {"id": f"modr-{uuid.uuid4().hex}", "model": "omni-moderation-latest", "results": [result for _ in texts]}


def render_error(failure: StandInFailure) -> Body:
    """OpenAI's error body."""
    return {"error": {"message": failure.message, "type": "stand_in_failure", "param": None, "code": None}}


def _pack_vector(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _content(reply: Reply) -> str | None:
    if reply.json is not None:
        return json.dumps(reply.json, ensure_ascii=False)
    return reply.text or (None if reply.tool_calls else "")


def _tool_calls(calls: Sequence[StandInToolCall]) -> list[Body]:
    return [
        {
            "id": call.id or f"call_{uuid.uuid4().hex[:24]}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.text},
        }
        for call in calls
    ]


def _finish_reason(reply: Reply) -> str:
    return reply.stop_reason or ("tool_calls" if reply.tool_calls else "stop")


def _usage(request: RecordedRequest, reply: Reply) -> JsonObject:
    spoken = (_content(reply) or "") + "".join(json.dumps(call.arguments) for call in reply.tool_calls)
    before, after = reply.tokens or (estimate_tokens(json.dumps(request.body)), estimate_tokens(spoken))
    return {
        "prompt_tokens": before,
        "completion_tokens": after,
        "total_tokens": before + after,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _event(data: Body) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
