"""Logging with the session and run that a line belongs to."""

from flowise_dev_agent.observability.logs import configure_logging, log_context

__all__ = ["configure_logging", "log_context"]
