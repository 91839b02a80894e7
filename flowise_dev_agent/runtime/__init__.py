"""How sessions run: the service that clients use, runs, worker, recovery and the event feed."""

from flowise_dev_agent.runtime.runtime import Runtime
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.service import SessionService
from flowise_dev_agent.timings import Timings

__all__ = ["Agent", "Runtime", "SessionService", "Timings"]
