"""The limits on session starts and questions to flows: per key, or per address without one. Counted in this process."""

import hashlib
from collections.abc import Callable
from typing import Any, Final

from limits import RateLimitItemPerMinute
from slowapi import Limiter
from starlette.exceptions import HTTPException
from starlette.requests import Request

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.settings import ServerSettings
from flowise_dev_agent.texts import text

_SCOPE: Final = "session-starts"
_CHAT_SCOPE: Final = "chat"


def build_limiter(server: ServerSettings) -> Limiter:
    """A limiter of its own for each app; a limit of 0 switches it off."""

    def caller(request: Request) -> str:
        return _caller(server, request)

    return Limiter(key_func=caller, enabled=server.rate_limit_sessions_per_min > 0)


def session_start_limit(limiter: Limiter, server: ServerSettings) -> Callable[..., Any]:
    """The decorator for routes that start a session; they share one count."""
    return limiter.shared_limit(_ceiling(server), scope=_SCOPE)


def count_session_start(request: Request) -> None:
    """Count a start where only some requests of a route are one. Raises HTTPException (429) above the limit."""
    server: ServerSettings = request.app.state.settings.server
    most = server.rate_limit_sessions_per_min
    strategy = request.app.state.limiter.limiter
    if most and not strategy.hit(RateLimitItemPerMinute(most), _caller(server, request), _SCOPE):
        raise HTTPException(429, text("error.too_many_starts", most=most), headers={"Retry-After": "60"})


async def limit_chat(request: Request) -> None:
    """A dependency of the routes that ask a flow: each question costs the flow's own model calls."""
    server: ServerSettings = request.app.state.settings.server
    item = RateLimitItemPerMinute(server.rate_limit_chat_per_min or 1)
    strategy = request.app.state.limiter.limiter
    if server.rate_limit_chat_per_min and not strategy.hit(item, _CHAT_SCOPE, _caller(server, request)):
        raise HTTPException(
            429,
            text("error.too_many_questions", rate_limit_chat_per_min=server.rate_limit_chat_per_min),
            headers={"Retry-After": "60"},
        )


def _ceiling(server: ServerSettings) -> str:
    return f"{server.rate_limit_sessions_per_min} per 1 minute"


def _caller(server: ServerSettings, request: Request) -> str:
    if server.api_key:
        _, _, key = request.headers.get("authorization", "").partition(" ")
        # Without a key it is a person who is signed in. Not the key itself: slowapi logs what it counts by.
        who = key.strip() or current_caller().key_id or ""
        return hashlib.sha256(who.encode()).hexdigest()[:16]
    return request.client.host if request.client else "unknown"
