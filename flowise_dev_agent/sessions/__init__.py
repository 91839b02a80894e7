"""Sessions: the service that clients use, the execution of runs, recovery and the event feed."""

from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.service import SessionService

__all__ = ["Agent", "SessionService"]
