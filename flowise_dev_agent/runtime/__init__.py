"""How sessions run: the service that clients use, runs, worker, recovery and the event feed."""

from flowise_dev_agent.runtime.agent import Agent
from flowise_dev_agent.runtime.runs.timings import Timings
from flowise_dev_agent.runtime.runtime import Runtime
from flowise_dev_agent.runtime.sessions.service import SessionService

__all__ = ["Agent", "Runtime", "SessionService", "Timings"]
