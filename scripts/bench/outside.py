"""What a session talks to, as a process of its own: `python scripts/bench/outside.py`.

A Flowise in memory, and a model that answers what was recorded for one requirement. Prints
`{"flowise": address, "model": address}` when both listen. Of each, `GET /counts` answers how often each route was
called and in how many seconds anything was being answered, and begins again at zero. `POST /delay` of the model with
`secs` makes each answer take so long.
"""

import asyncio
import itertools
import json
import signal
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import anthropic, openai
from flowise_dev_agent.devkit.standin.protocol import Reply
from flowise_dev_agent.knowledge.snapshot import SNAPSHOT_FILE, schemas_dir
from scripts.bench.cassette import RecordedCase, phase_of

_RECORDED: Final = Path(__file__).with_name("cassettes") / "chat-memory.json"
#: Of the criteria in the recorded plan, quoting what every answer of the Flowise double begins with.
_SHOWN: Final = [
    {"id": id_, "state": "shown", "evidence": [{"trial": 1, "quote": "An answer to"}]} for id_ in ("c1", "c2")
]
_JUDGEMENT: Final = json.dumps({"done": True, "criteria": _SHOWN})
_API: Final = "/api/v1"
_CREDENTIALS: Final = [{"id": str(uuid4()), "name": "OpenAI", "credentialName": "openAIApi"}]

Row = dict[str, Any]


class _Usage:
    """What was asked of a server since it was last looked at."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._secs = 0.0
        self._open = 0
        self._since = 0.0

    def begin(self) -> None:
        """A request has come."""
        if not self._open:
            self._since = time.perf_counter()
        self._open += 1

    def end(self) -> None:
        """A request has its whole answer."""
        self._open -= 1
        if not self._open:
            self._secs += time.perf_counter() - self._since

    def take(self) -> Row:
        """Calls by route, and the seconds in which there was any; begins again at zero."""
        taken: Row = {"calls": dict(self.calls), "secs": self._secs}
        self.calls, self._secs = Counter(), 0.0
        return taken


class _Timed:
    """Middleware: notes when a request begins and ends."""

    def __init__(self, app: ASGIApp, usage: _Usage) -> None:
        self._app = app
        self._usage = usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the server's life."""
        if scope["type"] != "http" or scope["path"] == "/counts":
            await self._app(scope, receive, send)
            return
        self._usage.begin()
        try:
            await self._app(scope, receive, send)
        finally:
            self._usage.end()


class _Double(BackgroundServer):
    """A server that says how it was used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._usage = _Usage()

    @abstractmethod
    def routes(self) -> Sequence[BaseRoute]:
        """What it answers, beside its counts."""

    def app(self) -> Starlette:
        """Its routes and its counts."""
        counts = Route("/counts", self._counts)
        return Starlette(routes=[counts, *self.routes()], middleware=[Middleware(_Timed, usage=self._usage)])

    async def _counts(self, _: Request) -> Response:
        return JSONResponse(self._usage.take())

    def _count(self, call: str) -> None:
        self._usage.calls[call] += 1


class FlowiseDouble(_Double):
    """The part of Flowise that sessions use, with the committed node schemas."""

    def __init__(self) -> None:
        super().__init__("Flowise double")
        self._ticks = itertools.count()
        self._nodes = (schemas_dir() / SNAPSHOT_FILE).read_bytes()
        self._rows: dict[str, Row] = {}

    def routes(self) -> Sequence[BaseRoute]:
        """Those under /api/v1."""
        flow = f"{_API}/chatflows/{{id}}"
        return [
            Route(f"{_API}/ping", self._ping),
            Route(f"{_API}/version", self._version),
            Route(f"{_API}/nodes", self._list_nodes),
            Route(f"{_API}/credentials", self._credentials),
            Route(f"{_API}/node-load-method/{{name}}", self._nothing, methods=["POST"]),
            Route(f"{_API}/chatflows", self._list, methods=["GET"]),
            Route(f"{_API}/chatflows", self._create, methods=["POST"]),
            Route(flow, self._get, methods=["GET"]),
            Route(flow, self._put, methods=["PUT"]),
            Route(flow, self._delete, methods=["DELETE"]),
            Route(f"{_API}/prediction/{{id}}", self._predict, methods=["POST"]),
            Route(f"{_API}/chatmessage/{{id}}", self._nothing, methods=["DELETE"]),
            Route(f"{_API}/{{path:path}}", self._unknown, methods=["GET", "POST"]),
        ]

    async def _ping(self, _: Request) -> Response:
        return PlainTextResponse("pong")

    async def _version(self, _: Request) -> Response:
        self._count("GET version")
        return JSONResponse({"version": "3.1.4"})

    async def _list_nodes(self, request: Request) -> Response:
        self._count("GET nodes")
        if request.headers.get("if-none-match") == '"nodes"':
            return Response(status_code=304)
        return Response(self._nodes, media_type="application/json", headers={"ETag": '"nodes"'})

    async def _credentials(self, _: Request) -> Response:
        self._count("GET credentials")
        return JSONResponse(_CREDENTIALS)

    async def _nothing(self, request: Request) -> Response:
        self._count(f"{request.method} {request.url.path.split('/')[3]}")
        return JSONResponse([] if request.method == "POST" else {"affected": 0})

    async def _unknown(self, request: Request) -> Response:
        self._count(f"{request.method} {request.path_params['path']}")
        return JSONResponse({"statusCode": 404, "success": False, "message": "Not found"}, 404)

    async def _list(self, request: Request) -> Response:
        self._count("LIST chatflows")
        page, limit = int(request.query_params["page"]), int(request.query_params["limit"])
        rows = sorted(self._rows.values(), key=lambda row: row["updatedDate"], reverse=True)
        return JSONResponse({"data": rows[(page - 1) * limit : page * limit], "total": len(rows)})

    async def _create(self, request: Request) -> Response:
        self._count("POST chatflow")
        return JSONResponse(self._add(await request.json()))

    async def _get(self, request: Request) -> Response:
        self._count("GET chatflow")
        row = self._rows.get(request.path_params["id"])
        return JSONResponse(row) if row else _missing()

    async def _put(self, request: Request) -> Response:
        self._count("PUT chatflow")
        row = self._rows.get(request.path_params["id"])
        if row is None:
            return _missing()
        row |= await request.json()
        row["updatedDate"] = self._now()
        return JSONResponse(row)

    async def _delete(self, request: Request) -> Response:
        self._count("DELETE chatflow")
        row = self._rows.pop(request.path_params["id"], None)
        return JSONResponse({"affected": 1}) if row else _missing()

    async def _predict(self, request: Request) -> Response:
        self._count("POST prediction")
        body = await request.json()
        return JSONResponse({"text": f"An answer to: {body['question']}", "chatId": body["chatId"]})

    def _add(self, columns: Row) -> Row:
        row: Row = {"deployed": False, "isPublic": False, **columns, "id": str(uuid4())}
        row["createdDate"] = row["updatedDate"] = self._now()
        self._rows[row["id"]] = row
        return row

    def _now(self) -> str:
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=next(self._ticks))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ModelStub(_Double):
    """Both providers' APIs; each phase of each session gets what was recorded for the phase."""

    def __init__(self) -> None:
        super().__init__("model stub")
        self._delay = 0.0
        case = RecordedCase.model_validate_json(_RECORDED.read_text("utf-8"))
        self._answers = {answer.phase: answer.reply() for answer in case.answers} | {"judge": Reply(_JUDGEMENT)}

    def routes(self) -> Sequence[BaseRoute]:
        """All paths of both providers in one handler."""
        return [
            Route("/delay", self._set_delay, methods=["POST"]),
            Route("/{provider}/{path:path}", self._handle, methods=["POST"]),
        ]

    async def _set_delay(self, http: Request) -> Response:
        self._delay = (await http.json())["secs"]
        return JSONResponse({})

    async def _handle(self, http: Request) -> Response:
        dialect = anthropic if http.path_params["provider"] == "anthropic" else openai
        request = dialect.parse_chat(f"/{http.path_params['path']}", await http.json(), "")
        phase = phase_of(request)
        self._count(phase)
        await asyncio.sleep(self._delay)
        reply = self._answers[phase]
        if request.stream:
            return StreamingResponse(dialect.stream_chat(request, reply), media_type="text/event-stream")
        return JSONResponse(dialect.render_chat(request, reply))


def _missing() -> Response:
    return JSONResponse({"statusCode": 404, "success": False, "message": "Chatflow not found"}, 404)


def main() -> None:
    """Serve until SIGTERM."""
    with FlowiseDouble() as flowise, ModelStub() as model:
        print(json.dumps({"flowise": flowise.endpoint, "model": model.endpoint}), flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
