"""Prometheus metrics of a process. Every label has few, known values."""

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from flowise_dev_agent.errors import code_of

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

_STEP_BUCKETS: Final = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_CALL_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

RUNS_ACTIVE: Final = Gauge("fda_runs_active", "Runs executing in this process.", registry=REGISTRY)
RUN_SECONDS: Final = Histogram(
    "fda_run_duration_seconds",
    "From the claim of a run to the next question, the end, or the loss of the run.",
    ["kind", "end"],
    buckets=_STEP_BUCKETS,
    registry=REGISTRY,
)
NODE_SECONDS: Final = Histogram(
    "fda_node_duration_seconds",
    "A step of the graph.",
    ["node", "status"],
    buckets=_STEP_BUCKETS,
    registry=REGISTRY,
)
RUN_FAILURES: Final = Counter(
    "fda_run_failures", "Attempts at a run that an error ended, by its code.", ["code", "end"], registry=REGISTRY
)
MODEL_SECONDS: Final = Histogram(
    "fda_model_call_duration_seconds",
    "A call of a model, waiting for its turn included.",
    ["provider", "phase", "result"],
    buckets=_STEP_BUCKETS,
    registry=REGISTRY,
)
MODEL_CALLS: Final = Counter("fda_model_calls", "Calls of a model.", ["phase"], registry=REGISTRY)
MODEL_TOKENS: Final = Counter("fda_model_tokens", "Tokens of models.", ["phase", "direction"], registry=REGISTRY)
MODEL_USD: Final = Counter("fda_model_usd", "What models cost, in USD.", ["phase"], registry=REGISTRY)
MODEL_CALL_LIMIT: Final = Gauge(
    "fda_model_call_limit", "Model calls that may run at once.", ["provider"], registry=REGISTRY
)
MODEL_CALLS_RUNNING: Final = Gauge(
    "fda_model_calls_running", "Model calls running now.", ["provider"], registry=REGISTRY
)
MODEL_CALLS_WAITING: Final = Gauge(
    "fda_model_calls_waiting", "Model calls waiting for their turn.", ["provider"], registry=REGISTRY
)
MODEL_REFUSALS: Final = Counter(
    "fda_model_refusals", "Model calls refused because of a rate limit or overload.", ["provider"], registry=REGISTRY
)
FALLBACKS: Final = Counter(
    "fda_reasoning_fallbacks", "Phases answered by the fallback mode.", ["phase"], registry=REGISTRY
)
TOOL_SECONDS: Final = Histogram(
    "fda_tool_call_duration_seconds",
    "A call of a tool by a model.",
    ["tool", "result"],
    buckets=_CALL_BUCKETS,
    registry=REGISTRY,
)
FLOWISE_CALLS: Final = Counter("fda_flowise_calls", "Requests sent to Flowise.", ["route"], registry=REGISTRY)
FLOWISE_SECONDS: Final = Histogram(
    "fda_flowise_call_duration_seconds",
    "A request to Flowise, until its answer is read.",
    ["route", "result"],
    buckets=_CALL_BUCKETS,
    registry=REGISTRY,
)
DELIVERIES: Final = Counter("fda_webhook_attempts", "Attempts to deliver a webhook.", ["result"], registry=REGISTRY)
HTTP_SECONDS: Final = Histogram(
    "fda_http_request_duration_seconds",
    "From a request to the first byte of its response; a stream continues after that.",
    ["method", "route", "status"],
    buckets=_CALL_BUCKETS,
    registry=REGISTRY,
)


@dataclass
class Outcome:
    """Result of what is timed: "ok", or the code of an error."""

    result: str = "ok"


@contextmanager
def timed(histogram: Histogram, *labels: str) -> Generator[Outcome]:
    """Time the block; the last label of the histogram is its result."""
    outcome, began = Outcome(), time.monotonic()
    try:
        yield outcome
    except BaseException as error:
        outcome.result = code_of(error) if isinstance(error, Exception) else "cancelled"
        raise
    finally:
        histogram.labels(*labels, outcome.result).observe(time.monotonic() - began)


#: Values of a gauge by the values of its labels.
Values = Mapping[tuple[str, ...], float]


def gauge(name: str, text: str, values: Values | float, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    """A gauge measured at scrape time."""
    family = GaugeMetricFamily(name, text, labels=list(labels))
    for label_values, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        family.add_metric(label_values, value)
    return family


def exposition(measured: Iterable[GaugeMetricFamily]) -> bytes:
    """The exposition text: the counters of this process, and what was measured now."""
    now = CollectorRegistry()
    now.register(_Measured(list(measured)))
    return generate_latest(REGISTRY) + generate_latest(now)


class _Measured(Collector):
    def __init__(self, families: list[GaugeMetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families
