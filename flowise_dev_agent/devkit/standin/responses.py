"""OpenAI's Responses API: items in, items out, and a stream of typed events."""

import itertools
import json
import uuid
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

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}


def parse_chat(path: str, body: Body, api_key: str) -> RecordedRequest:
    """Parse a `/responses` body."""
    form = (body.get("text") or {}).get("format") or {}
    schema = form.get("schema", {}) if form.get("type") == "json_schema" else None
    choice = body.get("tool_choice")
    given = body.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [StandInMessage("system", body["instructions"])] if body.get("instructions") else []
    return RecordedRequest(
        provider="openai",
        kind="chat",
        path=path,
        model=str(body.get("model", "")),
        body=body,
        api_key=api_key,
        messages=(*system, *(turn for item in items for turn in _turns(item))),
        tools=tuple(
            ToolSpec(item["name"], item.get("description") or "", item.get("parameters") or {})
            for item in body.get("tools") or []
            if item.get("type") == "function"
        ),
        forced_tool=choice["name"]
        if isinstance(choice, dict) and "name" in choice
        else "*"
        if choice == "required"
        else "",
        json_schema={} if form.get("type") == "json_object" else schema,
        stream=bool(body.get("stream")),
    )


def _turns(item: Body) -> Iterator[StandInMessage]:
    match item.get("type", "message"):
        case "message":
            yield StandInMessage(_ROLES.get(item.get("role", ""), "user"), _text(item.get("content")))  # pyright: ignore[reportArgumentType]
        case "function_call":
            call = StandInToolCall(item["name"], json.loads(item["arguments"] or "{}"), item["call_id"])
            yield StandInMessage("assistant", "", (call,))
        case "function_call_output":
            yield StandInMessage("tool", _text(item["output"]))
        case _:
            return


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


def render_chat(request: RecordedRequest, reply: Reply) -> Body:
    """The whole response."""
    return _response(request, reply, _items(reply), "incomplete" if reply.stop_reason else "completed")


def _response(request: RecordedRequest, reply: Reply, items: list[Body], status: str) -> Body:
    spoken = json.dumps(items)
    before, after = reply.tokens or (estimate_tokens(json.dumps(request.body)), estimate_tokens(spoken))
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reply.stop_reason} if reply.stop_reason else None,
        "instructions": None,
        "metadata": {},
        "model": request.model,
        "output": items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": before,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": after,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": before + after,
        },
    }


def _items(reply: Reply) -> list[Body]:
    items: list[Body] = []
    if reply.thinking:
        items.append(
            {
                "id": f"rs_{uuid.uuid4().hex[:24]}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": reply.thinking}],
                "encrypted_content": "c2lnbmVk",
                "status": "completed",
            }
        )
    if reply.text or not reply.tool_calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": f"msg_{uuid.uuid4().hex[:24]}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "id": f"fc_{uuid.uuid4().hex[:24]}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id or f"call_{uuid.uuid4().hex[:24]}",
            "name": call.name,
            "arguments": call.text,
        }
        for call in reply.tool_calls
    ]
    return items


def stream_chat(request: RecordedRequest, reply: Reply) -> Iterator[str]:
    """The response as its typed events."""
    numbers = itertools.count()

    def event(kind: str, **data: Any) -> str:
        body = {"type": kind, "sequence_number": next(numbers), **data}
        return f"event: {kind}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n"

    items = _items(reply)
    opening = {**_response(request, reply, [], "in_progress"), "usage": None}
    yield event("response.created", response=opening)
    yield event("response.in_progress", response=opening)
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        bare = (
            {"content": []}
            if item["type"] == "message"
            else {"arguments": ""}
            if "arguments" in item
            else {"summary": []}
        )
        yield event("response.output_item.added", output_index=index, item={**item, **bare, "status": "in_progress"})
        match item["type"]:
            case "message":
                text = item["content"][0]["text"]
                blank = {**item["content"][0], "text": ""}
                yield event("response.content_part.added", content_index=0, part=blank, **at)
                for piece in pieces(text):
                    yield event("response.output_text.delta", content_index=0, delta=piece, logprobs=[], **at)
                yield event("response.output_text.done", content_index=0, text=text, logprobs=[], **at)
                yield event("response.content_part.done", content_index=0, part=item["content"][0], **at)
            case "function_call":
                whole = item["arguments"]
                for start in range(0, len(whole), 16):
                    delta = whole[start : start + 16]
                    yield event("response.function_call_arguments.delta", delta=delta, **at)
                yield event("response.function_call_arguments.done", arguments=whole, name=item["name"], **at)
            case _:
                part = item["summary"][0]
                blank = {**part, "text": ""}
                yield event("response.reasoning_summary_part.added", summary_index=0, part=blank, **at)
                yield event("response.reasoning_summary_text.delta", summary_index=0, delta=part["text"], **at)
                yield event("response.reasoning_summary_text.done", summary_index=0, text=part["text"], **at)
                yield event("response.reasoning_summary_part.done", summary_index=0, part=part, **at)
        yield event("response.output_item.done", output_index=index, item=item)
    status = "incomplete" if reply.stop_reason else "completed"
    yield event(f"response.{status}", response=_response(request, reply, items, status))
