"""How sessions run: the service that clients use, legs, worker, recovery and the event feed."""

from flowise_dev_agent.runtime.agent import Agent
from flowise_dev_agent.runtime.engine import Engine
from flowise_dev_agent.runtime.requests import ResumeSession, StartSession
from flowise_dev_agent.runtime.service import SessionService
from flowise_dev_agent.runtime.timings import Timings
from flowise_dev_agent.runtime.views import InterruptView, SessionEvent, SessionPage, SessionView

__all__ = [
    "Agent",
    "Engine",
    "InterruptView",
    "ResumeSession",
    "SessionEvent",
    "SessionPage",
    "SessionService",
    "SessionView",
    "StartSession",
    "Timings",
]
