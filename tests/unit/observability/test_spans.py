"""Spans: their destination by the variables of OpenTelemetry, and their words about errors."""

import logging
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.observability import sending_spans, tracing
from flowise_dev_agent.observability.tracing import next_traceparent, span, trace_headers, traceparent
from flowise_dev_agent.settings import TracingSettings

PLACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector(ThreadingHTTPServer):
    """Collector of spans; it answers when `open` is set."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str | None]] = []
        self.open = Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        self.rfile.read(int(self.headers["content-length"]))
        server.got.append((self.path, self.headers.get("x-team")))
        server.open.wait(10)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.open.set()
        server.shutdown()


def settings(**variables: Any) -> TracingSettings:
    return TracingSettings(_env_file=None, **variables)


async def test_spans_are_sent_to_the_collector_that_otel_names(collector: Collector) -> None:
    collector.open.set()
    headers = "x-team=flows%20of%20ours, other=1"
    async with sending_spans(
        settings(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_EXPORTER_OTLP_HEADERS=headers)
    ):
        with span("one"):
            pass
    assert collector.got == [("/v1/traces", "flows of ours")]
    assert traceparent() is None


async def test_a_collector_that_hangs_does_not_hold_up_the_end(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_FLUSH_SECS", 0.2)
    async with sending_spans(settings(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)):
        with span("one"):
            pass
        began = time.monotonic()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "otlp"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
    ],
)
async def test_nothing_is_traced_without_a_collector(variables: dict[str, str]) -> None:
    async with sending_spans(settings(**variables)):
        with span("one", parent=PLACE) as current:
            assert not current.is_recording()
            assert trace_headers() == {}


async def test_a_missing_package_is_named_and_the_service_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name, name=name)

    monkeypatch.setattr(tracing, "import_module", missing)
    with caplog.at_level(logging.WARNING):
        async with sending_spans(settings(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")):
            with span("one") as current:
                assert not current.is_recording()
    assert "pip install 'flowise-dev-agent[tracing]'" in caplog.text


async def test_p102_an_error_is_told_by_its_code_and_never_by_its_words() -> None:
    exporter = InMemorySpanExporter()
    async with sending_spans(settings(), exporter):
        for error, expected in (
            (DatabaseUnavailableError("of Merry's secret"), ()),
            (ValueError("of Merry's secret"), ()),
            (KeyError("of Merry's secret"), KeyError),
        ):
            with pytest.raises(type(error)), span("one", expected=expected):
                raise error
    spans = exporter.get_finished_spans()
    codes = [(one.attributes or {}).get("error.type") for one in spans]
    assert codes == ["database_unavailable", "internal_error", None]
    assert not any("Merry" in one.to_json() or one.events for one in spans)


async def test_a_span_goes_on_with_the_trace_of_its_caller_and_gives_its_own_place() -> None:
    async with sending_spans(settings(), InMemorySpanExporter()):
        with span("one", parent=PLACE) as current:
            own = traceparent(current)
            assert own
            assert (own[:36], own == PLACE, own[-2:]) == (PLACE[:36], False, "01")
            assert trace_headers() == {"traceparent": own}
            assert next_traceparent(own)[:36] == PLACE[:36]
