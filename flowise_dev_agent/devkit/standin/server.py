"""The stand-in's HTTP server."""

import asyncio
import json
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import anthropic, openai, responses
from flowise_dev_agent.devkit.standin.anthropic import event_stream
from flowise_dev_agent.devkit.standin.behaviour import default_reply
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInFailure
from flowise_dev_agent.devkit.standin.refusals import refusal

LABEL = "model stand-in"
#: `/model/<model>/invoke...` of Bedrock, `.../models/<model>:rawPredict` of Vertex.
_ON_PLATFORM = re.compile(
    r"/models?/(?P<model>[^/]+)[/:](?P<way>invoke|invoke-with-response-stream|rawPredict|streamRawPredict)$"
)
_HEADERS = {"x-model-stand-in": "1"}
OFFERED_MODELS = ("gpt-5.4", "gpt-5.4-mini", "claude-sonnet-5-5", "text-embedding-3-small")
_MAX_REQUESTS = 1000
#: Limit for a response that a finished test left open.
_GATE_SECS = 60

Match = Callable[[RecordedRequest], bool] | str
Answer = Reply | StandInFailure | str | Callable[[RecordedRequest], Reply | StandInFailure | str]


@dataclass
class Script:
    """A rule of a test; `calls` counts its answers."""

    match: Match
    answer: Answer
    times: int | None = None
    calls: int = 0

    def takes(self, request: RecordedRequest) -> bool:
        """True if this rule answers `request`."""
        if self.times is not None and self.calls >= self.times:
            return False
        return self.match in request.prompt if isinstance(self.match, str) else self.match(request)


class ModelStandIn(BackgroundServer):
    """Anthropic's and OpenAI's APIs on `http://127.0.0.1:port` (0 takes a free port).

    Requests that match no script are answered by `behaviour.default_reply`; `requests` holds the last 1000.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__("model stand-in", port)
        self._scripts: list[Script] = []
        self._requests: deque[RecordedRequest] = deque(maxlen=_MAX_REQUESTS)
        self._lock = threading.Lock()

    # --- addresses ----------------------------------------------------------------------------------------------

    @property
    def base_url_openai(self) -> str:
        """Base URL for OpenAI SDKs."""
        return f"{self.endpoint}/v1"

    @property
    def base_url_anthropic(self) -> str:
        """Base URL for Anthropic SDKs."""
        return self.endpoint

    def flowise_env(self) -> dict[str, str]:
        """Environment variables that point the OpenAI, Anthropic and Groq nodes of a Flowise to this stand-in."""
        return {
            "OPENAI_BASE_URL": self.base_url_openai,
            "ANTHROPIC_BASE_URL": self.base_url_anthropic,
            "GROQ_BASE_URL": self.endpoint,
        }

    # --- scripting ----------------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[RecordedRequest]:
        """Requests received so far, oldest first."""
        with self._lock:
            return list(self._requests)

    def script(self, match: Match, reply: Answer, *, times: int | None = None) -> Script:
        """Answer requests that `match` (a predicate, or a text in the prompt) with `reply`, `times` times or always.

        The first rule that matches answers, in the order in which they were given. `reply` may be a function of the
        request; a plain string is a text reply.
        """
        rule = Script(match, reply, times)
        with self._lock:
            self._scripts.append(rule)
        return rule

    def reset(self) -> None:
        """Forget all scripts and requests."""
        with self._lock:
            self._scripts.clear()
            self._requests.clear()

    # --- requests -----------------------------------------------------------------------------------------------

    def app(self) -> Starlette:
        """App with all paths in one handler."""
        return Starlette(routes=[Route("/{path:path}", self._handle, methods=["GET", "POST"])])

    async def _handle(self, http: Request) -> Response:
        response = await self._post(http) if http.method == "POST" else self._get(http.url.path)
        response.headers.update(_HEADERS)
        return response

    def _get(self, path: str) -> Response:
        if path == "/":
            return JSONResponse({"service": LABEL, "model": False, "openai": "/v1", "anthropic": "/"})
        if path.endswith("/models"):
            return JSONResponse(
                {"object": "list", "data": [{"id": name, "object": "model"} for name in OFFERED_MODELS]}
            )
        return _unknown(path)

    async def _post(self, http: Request) -> Response:
        path = http.url.path
        headers = http.headers
        key = headers.get("x-api-key") or headers.get("api-key") or headers.get("authorization", "")
        key = key.removeprefix("Bearer ")
        try:
            body = json.loads(await http.body())
        except ValueError:
            return JSONResponse({"error": {"message": "The body is not JSON."}}, 400)
        on_bedrock = False
        if found := _ON_PLATFORM.search(path):
            # Bedrock and Vertex name the model in the path; Bedrock also puts streaming there.
            model, way = unquote(found["model"]), found["way"]
            on_bedrock = way.startswith("invoke")
            body = {**body, "model": model, "stream": "stream" in way}
            path = f"{path}/messages"
        if path.endswith("/chat/completions"):
            request = openai.parse_chat(path, body, key)
        elif path.endswith("/responses"):
            request = responses.parse_chat(path, body, key)
        elif path.endswith("/messages"):
            request = anthropic.parse_chat(path, body, key)
        elif path.endswith("/embeddings"):
            request = openai.parse_embeddings(path, body, key)
        elif path.endswith("/moderations"):
            return JSONResponse(openai.render_moderation(body))
        else:
            return _unknown(path)
        answer = self._answer(request)
        if said := refusal(request):
            answer = StandInFailure.http(400, said)
        if isinstance(answer, StandInFailure):
            return _render_failure(request, answer)
        if request.kind == "embeddings":
            return JSONResponse(openai.render_embeddings(request))
        await asyncio.sleep(answer.delay)
        dialect = _dialect(request)
        if request.stream and on_bedrock:
            frames = event_stream(anthropic.stream_chat(request, answer))
            return Response(frames, media_type="application/vnd.amazon.eventstream")
        if request.stream:
            events = _pace_events(list(dialect.stream_chat(request, answer)), answer)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(dialect.render_chat(request, answer))

    def _answer(self, request: RecordedRequest) -> Reply | StandInFailure:
        with self._lock:
            self._requests.append(request)
            rule = next((rule for rule in self._scripts if rule.takes(request)), None)
            if rule is not None:
                rule.calls += 1
        if rule is None:
            return default_reply(request) if request.kind == "chat" else Reply()
        answer = rule.answer(request) if callable(rule.answer) else rule.answer
        return Reply(answer) if isinstance(answer, str) else answer


async def _pace_events(events: Sequence[str], answer: Reply) -> AsyncIterator[str]:
    for number, event in enumerate(events):
        if answer.gate and number == len(events) // 2:
            await asyncio.to_thread(answer.gate.wait, _GATE_SECS)
        yield event
        if answer.chunk_delay:
            await asyncio.sleep(answer.chunk_delay)


def _dialect(request: RecordedRequest) -> ModuleType:
    if request.provider == "anthropic":
        return anthropic
    return responses if request.path.endswith("/responses") else openai


def _unknown(path: str) -> Response:
    return JSONResponse({"error": {"message": f"The {LABEL} has no {path}.", "type": "not_found_error"}}, 404)


def _render_failure(request: RecordedRequest, failure: StandInFailure) -> Response:
    dialect = _dialect(request)
    if failure.mode == "hang":
        return _Hang()
    if failure.mode == "drop":
        events = dialect.stream_chat(request, Reply("cut off here")) if request.stream else iter("{")
        return _Drop(next(events), "text/event-stream" if request.stream else "application/json")
    if failure.mode == "malformed":
        content = 'data: {"id": "x", "cho\n\n' if request.stream else '{"id": "x", "cho'
        return Response(content, media_type="text/event-stream" if request.stream else "application/json")
    headers = {} if failure.retry_after is None else {"retry-after": f"{failure.retry_after:g}"}
    said = (anthropic if request.provider == "anthropic" else openai).render_error(failure)
    return JSONResponse(said, failure.status, headers=headers)


class _Hang(Response):
    """A response that never comes; ends when the client disconnects or the server stops."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


class _Drop(Response):
    """A response cut after headers and a first piece: the server closes the connection."""

    def __init__(self, first: str, media_type: str) -> None:
        super().__init__(media_type=media_type)
        self._first = first.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", str(self.media_type).encode()), (b"content-length", b"1000000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
