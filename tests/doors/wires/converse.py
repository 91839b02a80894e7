"""Amazon Bedrock's Converse API, whole and as an event stream."""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator

from flowise_dev_agent.devkit.standin.protocol import (
    Body,
    RecordedRequest,
    Reply,
    StandInMessage,
    StandInToolCall,
    ToolSpec,
    estimate_tokens,
    pieces,
)


def parse_chat(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse a `converse` body; the model comes from the path."""
    config = body.get("toolConfig") or {}
    tools = [tool["toolSpec"] for tool in config.get("tools") or [] if "toolSpec" in tool]
    choice = config.get("toolChoice") or {}
    form = ((body.get("outputConfig") or {}).get("textFormat") or {}).get("structure") or {}
    told = (form.get("jsonSchema") or {}).get("schema")
    system = "\n\n".join(part["text"] for part in body.get("system") or [] if "text" in part)
    return RecordedRequest(
        provider="anthropic",
        kind="chat",
        path=path,
        model=str(body.get("model", "")),
        body=body,
        api_key=api_key,
        messages=(
            *([StandInMessage("system", system)] if system else []),
            *(turn for item in body.get("messages") or [] for turn in _turns(item)),
        ),
        tools=tuple(ToolSpec(one["name"], one.get("description", ""), one["inputSchema"]["json"]) for one in tools),
        forced_tool=choice["tool"]["name"] if "tool" in choice else "*" if "any" in choice else "",
        json_schema=json.loads(told) if isinstance(told, str) else told,
        stream=bool(body.get("stream")),
    )


def _turns(item: Body) -> Iterator[StandInMessage]:
    content = item.get("content") or []
    for part in content:
        if told := part.get("toolResult"):
            yield StandInMessage("tool", json.dumps(told.get("content")))
    text = "\n".join(part["text"] for part in content if "text" in part)
    calls = tuple(
        StandInToolCall(use["name"], use.get("input") or {}, use["toolUseId"])
        for part in content
        if (use := part.get("toolUse"))
    )
    if text or calls:
        yield StandInMessage("assistant" if item.get("role") == "assistant" else "user", text, calls)


def _usage(request: RecordedRequest, reply: Reply) -> Body:
    before, after = reply.tokens or (estimate_tokens(json.dumps(request.body)), estimate_tokens(reply.text))
    return {"inputTokens": before, "outputTokens": after, "totalTokens": before + after}


def _stop(reply: Reply) -> str:
    return reply.stop_reason or ("tool_use" if reply.tool_calls else "end_turn")


def _uses(reply: Reply) -> list[Body]:
    return [{"toolUseId": call.id, "name": call.name, "input": call.arguments} for call in reply.tool_calls]


def render_chat(request: RecordedRequest, reply: Reply) -> Body:
    """The whole answer."""
    text = [{"text": reply.text}] if reply.text or not reply.tool_calls else []
    content = [*text, *({"toolUse": use} for use in _uses(reply))]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _stop(reply),
        "usage": _usage(request, reply),
        "metrics": {"latencyMs": 1},
    }


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The events of a stream, each as its name and its JSON."""
    yield _event("messageStart", {"role": "assistant"})
    index = 0
    if reply.text or not reply.tool_calls:
        for piece in pieces(reply.text):
            yield _event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})
        yield _event("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    for use in _uses(reply):
        start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
        yield _event("contentBlockStart", {"contentBlockIndex": index, "start": start})
        delta = {"toolUse": {"input": json.dumps(use["input"])}}
        yield _event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        yield _event("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    yield _event("messageStop", {"stopReason": _stop(reply)})
    yield _event("metadata", {"usage": _usage(request, reply), "metrics": {"latencyMs": 1}})


def _event(name: str, data: Body) -> str:
    return f"{name}\n{json.dumps(data)}"


def frames(events: Iterable[str]) -> bytes:
    """The events in Amazon's binary format: each with its name in a header."""
    found: list[bytes] = []
    for event in events:
        name, _, data = event.partition("\n")
        fields = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
        headers = b"".join(
            bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
            for key, value in fields.items()
        )
        payload = data.encode()
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
        found.append(frame + struct.pack(">I", zlib.crc32(frame)))
    return b"".join(found)
