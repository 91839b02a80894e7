"""A typed client of the service's HTTP API."""

from flowise_dev_agent.client.client import RUN_END_EVENTS, AgentClient
from flowise_dev_agent.client.errors import ServiceError, ServiceUnreachableError

__all__ = ["RUN_END_EVENTS", "AgentClient", "ServiceError", "ServiceUnreachableError"]
