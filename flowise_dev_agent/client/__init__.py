"""A typed client of the service's HTTP API."""

from flowise_dev_agent.client.client import AgentClient
from flowise_dev_agent.client.errors import ServiceError, ServiceUnreachableError

__all__ = ["AgentClient", "ServiceError", "ServiceUnreachableError"]
