"""Typed client of the service's HTTP API, async and sync."""

from flowise_dev_agent.client.blocking import SyncAgentClient
from flowise_dev_agent.client.client import AgentClient
from flowise_dev_agent.client.events import RUN_END_EVENTS
from flowise_dev_agent.client.transport import ServiceError, ServiceUnreachableError

__all__ = ["RUN_END_EVENTS", "AgentClient", "ServiceError", "ServiceUnreachableError", "SyncAgentClient"]
