"""Google's own API: `generateContent` and `streamGenerateContent`."""

import json
from collections.abc import Iterator
from typing import Any

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

SIGNATURE = "c2lnbmVkIGJ5IHRoZSBwZWVy"


def parse_chat(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse a `generateContent` body; the model comes from the path."""
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema is None and config.get("responseMimeType") == "application/json":
        schema = {}
    declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    system = _text(body.get("systemInstruction") or {})
    return RecordedRequest(
        provider="openai",
        kind="chat",
        path=path,
        model=str(body.get("model", "")),
        body={**body, "tool_choice": "none"} if calling.get("mode") == "NONE" else body,
        api_key=api_key,
        messages=(
            *([StandInMessage("system", system)] if system else []),
            *(turn for item in body.get("contents") or [] for turn in _turns(item)),
        ),
        tools=tuple(
            ToolSpec(
                one["name"], one.get("description", ""), one.get("parametersJsonSchema") or one.get("parameters") or {}
            )
            for one in declared
        ),
        forced_tool="*" if calling.get("mode") == "ANY" else "",
        json_schema=schema,
        stream=bool(body.get("stream")),
    )


def _turns(item: Body) -> Iterator[StandInMessage]:
    calls = tuple(
        StandInToolCall(call["name"], call.get("args") or {}, call.get("id") or "")
        for part in item.get("parts") or []
        if (call := part.get("functionCall"))
    )
    for part in item.get("parts") or []:
        if told := part.get("functionResponse"):
            yield StandInMessage("tool", json.dumps(told.get("response")))
    text = _text(item)
    if text or calls:
        yield StandInMessage("assistant" if item.get("role") == "model" else "user", text, calls)


def _text(content: Body) -> str:
    return "\n".join(
        part["text"] for part in content.get("parts") or [] if part.get("text") and not part.get("thought")
    )


def _parts(reply: Reply) -> list[Body]:
    parts: list[Body] = []
    if reply.text or not reply.tool_calls:
        parts.append({"text": reply.text})
    for number, call in enumerate(reply.tool_calls):
        called: Body = {"functionCall": {"name": call.name, "args": call.arguments, "id": call.id}}
        # Of parallel calls the first one is signed.
        parts.append(called | ({"thoughtSignature": SIGNATURE} if number == 0 and reply.thinking else {}))
    return parts


def _chunk(request: RecordedRequest, reply: Reply, parts: list[Body], *, last: bool) -> Body:
    before, after = reply.tokens or (estimate_tokens(json.dumps(request.body)), estimate_tokens(json.dumps(parts)))
    candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = reply.stop_reason or "STOP"
    return {
        "candidates": [candidate],
        "modelVersion": request.model,
        "responseId": "resp-1",
        "usageMetadata": {"promptTokenCount": before, "candidatesTokenCount": after, "totalTokenCount": before + after},
    }


def render_chat(request: RecordedRequest, reply: Reply) -> Body:
    """The whole answer."""
    return _chunk(request, reply, _parts(reply), last=True)


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The answer in chunks of text, then the calls."""
    parts: list[Body] = []
    for part in _parts(reply):
        parts += [{"text": piece} for piece in pieces(part["text"])] if "text" in part else [part]
    for number, part in enumerate(parts, start=1):
        body: Any = _chunk(request, reply, [part], last=number == len(parts))
        yield f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def error(code: int, message: str, status: str, **more: Any) -> Body:
    """Google's error body."""
    return {"error": {"code": code, "message": message, "status": status, **more}}
