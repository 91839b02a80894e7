"""How sessions run: the service that clients use, legs, worker, recovery and the event feed.

Names are loaded when they are used: a client reads sessions without the graph that makes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowise_dev_agent.runtime.agent import Agent
    from flowise_dev_agent.runtime.engine import Engine
    from flowise_dev_agent.runtime.requests import ResumeSession, StartSession
    from flowise_dev_agent.runtime.service import SessionService
    from flowise_dev_agent.runtime.timings import Timings
    from flowise_dev_agent.runtime.views import InterruptView, SessionEvent, SessionPage, SessionView

_HOMES = {
    "Agent": "agent",
    "Engine": "engine",
    "InterruptView": "views",
    "ResumeSession": "requests",
    "SessionEvent": "views",
    "SessionPage": "views",
    "SessionService": "service",
    "SessionView": "views",
    "StartSession": "requests",
    "Timings": "timings",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
