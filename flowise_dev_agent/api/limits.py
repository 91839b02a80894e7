"""The ceiling on session starts: per key, or per address when there is no key. Counted in this process."""

import hashlib
import math
import time
from collections.abc import Callable
from typing import Any, Final

from limits import parse
from slowapi import Limiter
from starlette.requests import Request

from flowise_dev_agent.errors import RateLimitedError
from flowise_dev_agent.settings import ServerSettings

_SCOPE: Final = "session-starts"


def build_limiter(server: ServerSettings) -> Limiter:
    """A limiter of its own for each app; a limit of 0 switches it off."""

    def caller(request: Request) -> str:
        return _caller(server, request)

    return Limiter(key_func=caller, enabled=server.rate_limit_sessions_per_min > 0)


def session_start_limit(limiter: Limiter, server: ServerSettings) -> Callable[..., Any]:
    """The decorator for routes that start a session; they share one count."""
    return limiter.shared_limit(_ceiling(server), scope=_SCOPE)


def count_start(limiter: Limiter, server: ServerSettings, request: Request) -> None:
    """The same count for a start that comes through no route of its own. Raises RateLimitedError."""
    if not limiter.enabled:
        return
    limit, key = parse(_ceiling(server)), (_caller(server, request), _SCOPE)
    if limiter.limiter.hit(limit, *key):
        return
    wait = max(1, math.ceil(limiter.limiter.get_window_stats(limit, *key).reset_time - time.time()))
    raise RateLimitedError(
        f"Only {_ceiling(server)} of these requests are allowed.",
        hint=f"Wait {wait} s, or raise RATE_LIMIT_SESSIONS_PER_MIN.",
        details={"retry_after_secs": wait},
    )


def _ceiling(server: ServerSettings) -> str:
    return f"{server.rate_limit_sessions_per_min} per 1 minute"


def _caller(server: ServerSettings, request: Request) -> str:
    if server.api_key:
        # Not the key itself: slowapi logs what it counts by.
        return hashlib.sha256(request.headers.get("authorization", "").encode()).hexdigest()[:16]
    return request.client.host if request.client else "unknown"
