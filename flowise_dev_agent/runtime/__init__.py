"""How sessions run: the service that clients use, runs, worker, recovery and the event feed.

Names are loaded when they are used: a client reads sessions without the graph that makes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowise_dev_agent.runtime.agent import Agent
    from flowise_dev_agent.runtime.runs.timings import Timings
    from flowise_dev_agent.runtime.runtime import Runtime
    from flowise_dev_agent.runtime.sessions.service import SessionService

_HOMES = {
    "Agent": "agent",
    "Runtime": "runtime",
    "SessionService": "sessions.service",
    "Timings": "runs.timings",
}

__all__ = [
    "Agent",
    "Runtime",
    "SessionService",
    "Timings",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
