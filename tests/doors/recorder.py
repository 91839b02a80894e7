"""A server in front of a real model server that passes everything on and keeps what was said."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import openai
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply
from tests.doors.model import Script, phase_of

_SECONDS = 120


@dataclass(frozen=True)
class Recording:
    """A request for a completion, its status, and the answer, empty if there was none."""

    asked: RecordedRequest
    phase: str
    status: int
    reply: Reply
    said: str


class Recorder(BackgroundServer):
    """Passes requests on to `upstream`; `log` has those for completions, in the order of their ends.

    A phase that `script` has is answered by it: after a plan that makes sense there are ops to write.
    """

    def __init__(self, upstream: str, script: Script | None = None) -> None:
        super().__init__("recorder")
        self._upstream = upstream
        self._script = script
        self.log: list[Recording] = []

    def app(self) -> Starlette:
        """App with all paths in one handler."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with httpx2.AsyncClient(base_url=self._upstream, timeout=_SECONDS, trust_env=False) as client:
                app.state.client = client
                yield

        route = Route("/{path:path}", self._handle, methods=["GET", "POST"])
        return Starlette(routes=[route], lifespan=lifespan)

    async def _handle(self, http: Request) -> Response:
        client: httpx2.AsyncClient = http.app.state.client
        body = await http.body()
        if self._script and http.url.path.endswith("/chat/completions"):
            asked = openai.parse_chat(http.url.path, json.loads(body), "")
            phase = phase_of(asked)
            if self._script.has(phase):
                return _scripted(self._script, asked, phase)
        kept = {name: value for name, value in http.headers.items() if name in ("authorization", "content-type")}
        sent = client.build_request(http.method, http.url.path, content=body, headers=kept)
        response = await client.send(sent, stream=True)
        media = response.headers.get("content-type", "")
        return StreamingResponse(self._passed_on(http, body, response), response.status_code, media_type=media)

    async def _passed_on(self, http: Request, body: bytes, response: httpx2.Response) -> AsyncIterator[bytes]:
        pieces: list[bytes] = []
        try:
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                yield piece
        finally:
            await response.aclose()
            if http.url.path.endswith("/chat/completions"):
                said = b"".join(pieces).decode("utf-8", "replace")
                asked = openai.parse_chat(http.url.path, json.loads(body), "")
                reply = _reply(said) if response.status_code == 200 else Reply()
                self.log.append(Recording(asked, phase_of(asked), response.status_code, reply, said))


def _scripted(script: Script, asked: RecordedRequest, phase: str) -> Response:
    by_schema = bool(asked.json_schema)
    reply = script.reply(asked, phase, tools=not by_schema, held=by_schema, closed=True)
    if asked.stream:
        return StreamingResponse(openai.stream_chat(asked, reply), media_type="text/event-stream")
    return JSONResponse(openai.render_chat(asked, reply))


def _reply(said: str) -> Reply:
    """The whole answer of a body or a stream."""
    if not said.startswith("data:"):
        return openai.parse_reply(json.loads(said))
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    for line in said.splitlines():
        data = line.removeprefix("data: ")
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(data).get("choices") or ():
            delta = choice.get("delta") or {}
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                while len(message["tool_calls"]) <= call["index"]:
                    message["tool_calls"].append({"function": {"name": "", "arguments": ""}})
                function = message["tool_calls"][call["index"]]["function"]
                for part in ("name", "arguments"):
                    function[part] += call.get("function", {}).get(part) or ""
    return openai.parse_reply({"choices": [{"message": message}]})
