"""Observability: logging with session and run in every line, metrics, and tracing."""

from flowise_dev_agent.observability.logs import configure_logging, log_context
from flowise_dev_agent.observability.tracing import configure_tracing, sending_spans

__all__ = ["configure_logging", "configure_tracing", "log_context", "sending_spans"]
