"""Spans of a session: a trace from each request to Flowise and the models, with nobody's words in it."""

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.requests import Request
from starlette.responses import Response

from flowise_dev_agent.api import create_app
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.observability import sending_spans
from flowise_dev_agent.observability.logs import ContextFilter
from flowise_dev_agent.settings import ServerSettings, TracingSettings, load_settings
from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.model import Script
from tests.doors.peer import Peer
from tests.doors.peers import DOORS
from tests.doors.sessions import FLOWISE_KEY, own_variables, service
from tests.e2e.scripted import REQUIREMENT, SUPPORT
from tests.fixtures.metrics import value_of
from tests.runtime_world import until

CANARY = "canary-5d41402abc4b"
KEY = f"sk-doors-{CANARY}"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PLACE = f"00-{TRACE}-00f067aa0ba902b7-01"
WORDS = f"{REQUIREMENT}, called {CANARY}"
#: What the model says has the word, too: in the plan, and so in the flow.
SCRIPT = Script({REQUIREMENT: json.loads(json.dumps(SUPPORT).replace("Support bot", f"Support {CANARY}"))})


class WatchedFlowise(FakeFlowise):
    """Flowise that keeps the `traceparent` of each request; '' without one."""

    places: list[str]

    def app(self) -> Any:
        app, self.places = super().app(), []

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.places.append(dict(scope["headers"]).get(b"traceparent", b"").decode())
            await app(scope, receive, send)

        return watched


class WatchedPeer(Peer):
    """Provider of a model that keeps the `traceparent` of each request; '' without one."""

    places: list[str]

    async def _handle(self, http: Request) -> Response:
        answer, asked = await super()._handle(http), len(self.log)
        self.places += [http.headers.get("traceparent", "")] * (asked - len(self.places))
        return answer


@pytest.fixture(autouse=True)
def _no_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in own_variables():
        monkeypatch.delenv(variable)


@pytest.fixture
def flowise() -> Iterator[WatchedFlowise]:
    with WatchedFlowise(api_key=FLOWISE_KEY, latency=0) as server:
        yield server


@asynccontextmanager
async def sessions(
    dsn: str, flowise: FakeFlowise, door: str, **changes: str
) -> AsyncIterator[tuple[httpx2.AsyncClient, WatchedPeer]]:
    """A service over HTTP, whose models come through a door."""
    peer = WatchedPeer(DOORS[door], SCRIPT)
    peer.places = []
    with peer:
        server = ServerSettings(rate_limit_sessions_per_min=0, wait_secs=25, api_key=None)
        async with service(dsn, flowise, {**DOORS[door].settings(peer.endpoint), **changes}) as runtime:
            app = create_app(load_settings(server=server), runtime)
            async with app.router.lifespan_context(app):
                transport = StreamingASGITransport(app)
                async with httpx2.AsyncClient(base_url="http://localhost", transport=transport, timeout=60) as http:
                    yield http, peer


async def accepted(http: httpx2.AsyncClient, place: str = PLACE) -> dict[str, Any]:
    """A session from its requirement to the end."""
    headers = {"traceparent": place}
    view = (await http.post("/sessions", json={"requirement": WORDS}, headers=headers)).json()
    for action in ("approve", "accept"):
        body = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": action}}
        view = (await http.post(f"/sessions/{view['thread_id']}/resume", json=body, headers=headers)).json()
    return view


def told(span: ReadableSpan) -> str:
    """All that is sent of a span."""
    return span.to_json() + json.dumps({**span.resource.attributes}, default=str)


async def test_p102_a_session_is_traced_from_the_request_to_flowise_and_the_models_without_a_word_of_anybody(
    database_dsn: str, flowise: WatchedFlowise
) -> None:
    exporter = InMemorySpanExporter()
    async with sending_spans(TracingSettings(), exporter), sessions(database_dsn, flowise, "openai") as (http, peer):
        view = await accepted(http)
        assert view["outcome"] == "accepted"
        seen = len(flowise.places), len(peer.places)
    spans = [span for span in exporter.get_finished_spans() if span.context.trace_id == int(TRACE, 16)]
    by_id = {span.context.span_id: span for span in spans}

    def above(span: ReadableSpan) -> list[str]:
        found: list[str] = []
        while span.parent and span.parent.span_id in by_id:
            span = by_id[span.parent.span_id]
            found.append(span.name)
        return found

    runs = [span for span in spans if span.name.startswith("run ")]
    assert [span.attributes["fda.run.end"] for span in runs] == ["waiting", "waiting", "completed"]
    assert {span.attributes["session.id"] for span in runs} == {view["thread_id"]}
    paths = {span.name: above(span) for span in spans}
    assert paths["step plan_v2"] == ["run start", "POST /sessions"]
    model = f"chat {DOORS['openai'].model}"
    assert paths[model][:1] == ["step evaluate"]
    assert paths["execute_tool flowise.get_node"] == ["step plan_v2", "run start", "POST /sessions"]
    assert paths["POST /chatflows"][:2] == ["step apply_patch", "run resume"]
    chat = next(span for span in spans if span.name == model)
    assert {name: chat.attributes[name] for name in ("gen_ai.operation.name", "gen_ai.provider.name", "fda.phase")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "fda.phase": "classify",
    }
    assert chat.attributes["gen_ai.usage.input_tokens"] > 0

    words = (CANARY, KEY, FLOWISE_KEY, "customer support", "What can you do?", "bufferMemory")
    assert [word for word in words for span in exporter.get_finished_spans() if word in told(span)] == []
    assert not any(span.events for span in spans)

    sent = {place[36:52] for place in (*flowise.places[: seen[0]], *peer.places[: seen[1]]) if TRACE in place}
    assert sent
    assert sent <= {f"{span.context.span_id:016x}" for span in spans if span.kind.name == "CLIENT"}
    assert all(TRACE in place for place in peer.places)


async def test_without_a_collector_nothing_is_traced_and_the_trace_of_the_caller_goes_on(
    database_dsn: str, flowise: WatchedFlowise
) -> None:
    async with sessions(database_dsn, flowise, "anthropic") as (http, peer):
        assert (await accepted(http))["outcome"] == "accepted"
    assert all(place.startswith(f"00-{TRACE}-") for place in peer.places)
    assert any(place.startswith(f"00-{TRACE}-") for place in flowise.places)


async def test_what_fails_is_told_by_the_code_of_its_error(database_dsn: str, flowise: WatchedFlowise) -> None:
    def counted() -> list[float]:
        return [
            value_of("fda_model_call_duration_seconds_count", provider="openai", phase="classify", result="model_auth"),
            value_of("fda_run_failures_total", code="model_auth", end="failed"),
            value_of("fda_flowise_call_duration_seconds_count", route="GET /chatflows/:id", result="flowise_not_found"),
        ]

    exporter, before = InMemorySpanExporter(), counted()
    async with (
        sending_spans(TracingSettings(), exporter),
        sessions(database_dsn, flowise, "openai", OPENAI_API_KEY=KEY) as (http, _),
    ):
        view = (await http.post("/sessions", json={"requirement": WORDS}, headers={"traceparent": PLACE})).json()
        await http.get(f"/flows/{uuid4()}/export")
    assert view["error"]["code"] == "model_auth"
    spans = exporter.get_finished_spans()
    failed = {span.name: span.attributes["error.type"] for span in spans if span.status.status_code.name == "ERROR"}
    names = (f"chat {DOORS['openai'].model}", "step classify_intent", "run start")
    assert [failed[name] for name in names] == ["model_auth"] * 3
    assert failed["GET /chatflows/:id"] == "flowise_not_found"
    assert [span.name for span in spans if CANARY in told(span)] == []
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, 1, 1]


async def test_the_log_tells_the_story_of_a_session_in_few_lines(
    database_dsn: str, flowise: WatchedFlowise, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(ContextFilter())

    def told_lines() -> list[dict[str, Any]]:
        records = [record for record in caplog.records if record.name.startswith("flowise_dev_agent")]
        return [record.fields for record in records]  # type: ignore[attr-defined]

    async def ended() -> bool:
        return any(line.get("code") == "accepted" for line in told_lines())

    async with sessions(database_dsn, flowise, "openai") as (http, _):
        with caplog.at_level(logging.INFO):
            view = await accepted(http)
            # The session is told to have ended a moment before its run is.
            await until(ended, "the last run is told")
    lines = told_lines()
    assert len(lines) <= 8
    assert [(line["step"], line["code"]) for line in lines if "ms" in line] == [
        ("hitl_plan_v2", "plan_approval"),
        ("hitl_review_v2", "result_review"),
        ("apply_patch", "accepted"),
    ]
    assert {(str(line["session"]), line["trace"]) for line in lines} == {(view["thread_id"], TRACE)}
    assert CANARY not in caplog.text
