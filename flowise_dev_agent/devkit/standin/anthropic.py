"""Anthropic's wire format: messages, plain and streamed."""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from flowise_dev_agent.devkit.standin.openai import text_of
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

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def parse_chat(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse a `/v1/messages` body."""
    system = text_of(body.get("system"))
    turns = [turn for item in body.get("messages", []) for turn in _turns(item)]
    choice = body.get("tool_choice") or {}
    forced = {"tool": choice.get("name", ""), "any": "*"}.get(choice.get("type", ""), "")
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return RecordedRequest(
        provider="anthropic",
        kind="chat",
        path=path,
        model=str(body.get("model", "")),
        body=body,
        api_key=api_key,
        messages=tuple([StandInMessage("system", system)] if system else []) + tuple(turns),
        tools=tuple(
            ToolSpec(item["name"], item.get("description", ""), item["input_schema"])
            for item in body.get("tools") or []
            if "input_schema" in item
        ),
        forced_tool=forced,
        json_schema=form.get("schema", {}) if form.get("type") == "json_schema" else None,
        stream=bool(body.get("stream")),
    )


def _turns(item: Body) -> list[StandInMessage]:
    role: Role = "assistant" if item.get("role") == "assistant" else "user"
    content = item.get("content")
    if not isinstance(content, list):
        return [StandInMessage(role, text_of(content))]
    calls = tuple(
        StandInToolCall(block["name"], block.get("input") or {}, block.get("id", ""))
        for block in content
        if block.get("type") == "tool_use"
    )
    results = [
        StandInMessage("tool", text_of(block.get("content"))) for block in content if block.get("type") == "tool_result"
    ]
    text = text_of([block for block in content if block.get("type") == "text"])
    return [*results, *([StandInMessage(role, text, calls)] if text or calls or not results else [])]


def render_chat(request: RecordedRequest, reply: Reply) -> Body:
    """The whole reply as one JSON object."""
    return {
        **_head(request),
        "content": _blocks(reply),
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": _usage(request, reply),
    }


def parse_reply(body: Body) -> Reply:
    """Parse a provider's whole answer."""
    blocks = body["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    calls = tuple(StandInToolCall(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    stop = body.get("stop_reason")
    return Reply(text, calls, stop_reason=None if stop in ("end_turn", "tool_use") else stop)


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The reply as Anthropic's server-sent events; input tokens come first, output tokens last."""
    usage = _usage(request, reply)
    opening = {**_head(request), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**opening, "usage": {**usage, "output_tokens": 1}})
    calls = iter(reply.tool_calls)
    for index, block in enumerate(_blocks(reply)):
        if block["type"] == "thinking":
            yield _event("content_block_start", index=index, content_block={**block, "thinking": "", "signature": ""})
            for piece in pieces(block["thinking"]):
                yield _event("content_block_delta", index=index, delta={"type": "thinking_delta", "thinking": piece})
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield _event("content_block_delta", index=index, delta=delta)
        elif block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for piece in pieces(block["text"]):
                yield _event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        else:
            yield _event("content_block_start", index=index, content_block={**block, "input": {}})
            whole = next(calls).text
            for start in range(0, len(whole), 16):
                delta = {"type": "input_json_delta", "partial_json": whole[start : start + 16]}
                yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def event_stream(events: Iterable[str]) -> bytes:
    """The events in Bedrock's format: binary frames, each with one event as base64 in a chunk."""
    frames: list[bytes] = []
    headers = b"".join(
        bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
        for name, value in (
            (b":event-type", b"chunk"),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    for event in events:
        data = event.partition("data: ")[2].strip().encode()
        payload = json.dumps({"bytes": base64.b64encode(data).decode()}).encode()
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
        frames.append(frame + struct.pack(">I", zlib.crc32(frame)))
    return b"".join(frames)


def render_error(failure: StandInFailure) -> Body:
    """Anthropic's error body."""
    kind = _ERROR_TYPES.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}}


def _head(request: RecordedRequest) -> Body:
    return {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant", "model": request.model}


def _blocks(reply: Reply) -> list[Body]:
    text = json.dumps(reply.json, ensure_ascii=False) if reply.json is not None else reply.text
    blocks: list[Body] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": f"signed:{len(reply.thinking)}"})
    if text or not reply.tool_calls:
        blocks.append({"type": "text", "text": text})
    for call in reply.tool_calls:
        identity = call.id or f"toolu_{uuid.uuid4().hex[:24]}"
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": call.arguments})
    return blocks


def _stop_reason(reply: Reply) -> str:
    return reply.stop_reason or ("tool_use" if reply.tool_calls else "end_turn")


def _usage(request: RecordedRequest, reply: Reply) -> Body:
    before, after = reply.tokens or (estimate_tokens(json.dumps(request.body)), estimate_tokens(str(_blocks(reply))))
    return {
        "input_tokens": before,
        "output_tokens": after,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n"
