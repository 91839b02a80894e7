"""Traces: spans by OpenTelemetry, and LangSmith. Both are off until the settings turn them on.

A span has names, ids, codes and numbers: never what a person, a model or a flow says, never the words of an error. The
provider of spans is our own, not the global one of the process: SDKs of models would write prompts into that.
"""

import logging
import os
import threading
from asyncio import to_thread
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from secrets import token_hex
from typing import Any, Final

from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from flowise_dev_agent import __version__
from flowise_dev_agent.caller import current_request
from flowise_dev_agent.errors import code_of
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.settings import TracingSettings

logger = logging.getLogger(__name__)

Attributes = Mapping[str, str | int | float | bool]

#: Time that the last spans get when the process stops.
_FLUSH_SECS: Final = 2.0
_PROPAGATOR: Final = TraceContextTextMapPropagator()
#: Switches of a former tracer: LangGraph fails where they are set and LangSmith is off.
_FORMER_SWITCHES: Final = ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER")
_tracer: Tracer | None = None


@asynccontextmanager
async def sending_spans(settings: TracingSettings, exporter: Any = None) -> AsyncGenerator[None]:
    """Send the spans of the block to where OTEL_* says, or to an `exporter` of the SDK; none where it says nothing."""
    global _tracer
    provider = _provider(settings, exporter) if exporter is not None or settings.spans_endpoint else None
    if provider is None:
        yield
        return
    before, _tracer = _tracer, provider.get_tracer("flowise_dev_agent", __version__)
    try:
        yield
    finally:
        _tracer = before
        # A collector that does not answer would hold the process up.
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        await to_thread(ending.join, _FLUSH_SECS)


def _provider(settings: TracingSettings, exporter: Any) -> Any:
    """A provider of spans; None without the packages, which the log tells."""
    try:
        sdk, batches = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
        exporter = exporter or import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter(
            endpoint=settings.spans_endpoint, headers=settings.spans_headers
        )
    except ModuleNotFoundError as error:
        logger.warning(
            "OTEL_* asks for traces, but a package for them is not installed (%s): none are sent. "
            "Install it: pip install 'flowise-dev-agent[tracing]'",
            error.name,
        )
        return None
    about = {"service.name": settings.otel_service_name, "service.version": __version__}
    provider = sdk.TracerProvider(resource=resources.Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(batches.BatchSpanProcessor(exporter))
    return provider


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: str | None = None,
    expected: type[Exception] | tuple[type[Exception], ...] = (),
) -> Generator[Span]:
    """Span of the block, below the current one or a `traceparent`. An error in it is told by its code, unless it is
    `expected`."""
    if _tracer is None:
        yield INVALID_SPAN
        return
    context = _PROPAGATOR.extract({"traceparent": parent}) if parent else None
    with _tracer.start_as_current_span(
        name, context, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except expected:
            raise
        except Exception as error:
            failed(current, code_of(error))
            raise


def failed(current: Span, code: str) -> None:
    """Mark a span as failed."""
    current.set_attribute("error.type", code)
    current.set_status(StatusCode.ERROR)


def traceparent(current: Span | None = None) -> str | None:
    """Place of a span in its trace (W3C Trace Context), by default of the current one; None without a trace."""
    found = (current or get_current_span()).get_span_context()
    if found.is_valid:
        return _traceparent(found.trace_id, found.span_id, found.trace_flags)
    return None if current else current_request().traceparent


def next_traceparent(given: str | None) -> str:
    """A place for what is done here without a span: in the trace of a valid `traceparent`, else in a new one."""
    found = get_current_span(_PROPAGATOR.extract({"traceparent": given or ""})).get_span_context()
    trace = found.trace_id if found.is_valid else int(token_hex(16), 16)
    return _traceparent(trace, int(token_hex(8), 16), found.trace_flags if found.is_valid else 0)


def _traceparent(trace: int, of: int, flags: int) -> str:
    return f"00-{trace:032x}-{of:016x}-{flags:02x}"


def trace_headers() -> dict[str, str]:
    """Headers by which a called server goes on with the trace; none without one."""
    found = traceparent()
    return {"traceparent": found} if found else {}


def configure_tracing(settings: TracingSettings) -> bool:
    """Turn LangSmith on or off for this process; returns True if it is on. Secrets are masked before sending.

    The environment variables that the library reads by itself have no effect afterwards. LangGraph instruments itself.
    """
    # The import is slow, and commands that only call a service never trace.
    import langsmith

    for name in _FORMER_SWITCHES:
        os.environ.pop(name, None)
    if settings.key is None:
        langsmith.configure(enabled=False)
        return False
    client = langsmith.Client(
        api_url=str(settings.endpoint).rstrip("/"), api_key=settings.key.get_secret_value(), anonymizer=redacted
    )
    langsmith.configure(client=client, enabled=True, project_name=settings.project)
    return True
