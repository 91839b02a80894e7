"""Peers of a session, as a process of their own: `python scripts/bench/outside.py`.

A Flowise in memory, and a model that answers what was recorded for one requirement. Prints
`{"flowise": address, "model": address}` when both listen. Of each, `GET /counts` answers how often each route was
called and in how many seconds anything was being answered, and begins again at zero. `POST /delay` of the model with
`secs` makes each answer take so long.
"""

import asyncio
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import anthropic, openai
from flowise_dev_agent.devkit.standin.protocol import Reply
from scripts.bench.cassette import RecordedCase, phase_of
from tests.chaos.fake_flowise import FakeFlowise

_RECORDED: Final = Path(__file__).with_name("cassettes") / "chat-memory.json"
#: Of the criteria in the recorded plan, quoting what every answer of the Flowise in memory begins with.
_SHOWN: Final = [
    {"id": id_, "state": "shown", "evidence": [{"trial": 1, "quote": "An answer to"}]} for id_ in ("c1", "c2")
]
_JUDGEMENT: Final = json.dumps({"done": True, "criteria": _SHOWN})


class _Counted:
    """Middleware: notes what is asked and when it has its whole answer, and tells it at `/counts`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._calls: Counter[str] = Counter()
        self._secs = 0.0
        self._open = 0
        self._since = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the server's life."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/counts":
            taken: dict[str, Any] = {"calls": dict(self._calls), "secs": self._secs}
            self._calls, self._secs = Counter(), 0.0
            await JSONResponse(taken)(scope, receive, send)
        else:
            self._calls[f"{scope['method']} {scope['path'].split('/')[:4][-1]}"] += 1
            self._since = self._since if self._open else time.perf_counter()
            self._open += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._open -= 1
                self._secs += 0 if self._open else time.perf_counter() - self._since


class CountedFlowise(FakeFlowise):
    """The Flowise of tests, with its counts."""

    def app(self) -> Starlette:
        """Its routes and its counts."""
        app = super().app()
        app.add_middleware(_Counted)
        return app


class ModelStub(BackgroundServer):
    """Both providers' APIs; each phase of each session gets what was recorded for the phase."""

    def __init__(self) -> None:
        super().__init__("model stub")
        self._delay = 0.0
        case = RecordedCase.model_validate_json(_RECORDED.read_text("utf-8"))
        self._answers = {answer.phase: answer.reply() for answer in case.answers} | {"judge": Reply(_JUDGEMENT)}

    def app(self) -> Starlette:
        """All paths of both providers in one handler, and the counts."""
        routes = [
            Route("/delay", self._set_delay, methods=["POST"]),
            Route("/{provider}/{path:path}", self._handle, methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        app.add_middleware(_Counted)
        return app

    async def _set_delay(self, http: Request) -> Response:
        self._delay = (await http.json())["secs"]
        return JSONResponse({})

    async def _handle(self, http: Request) -> Response:
        dialect = anthropic if http.path_params["provider"] == "anthropic" else openai
        request = dialect.parse_chat(f"/{http.path_params['path']}", await http.json(), "")
        await asyncio.sleep(self._delay)
        reply = self._answers.get(phase_of(request), Reply("OK"))
        if request.stream:
            return StreamingResponse(dialect.stream_chat(request, reply), media_type="text/event-stream")
        return JSONResponse(dialect.render_chat(request, reply))


def main() -> None:
    """Serve until SIGTERM."""
    with CountedFlowise(api_key="bench", latency=0) as flowise, ModelStub() as model:
        print(json.dumps({"flowise": flowise.endpoint, "model": model.endpoint}), flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
