"""The limits on session starts and questions to flows: per key, or per address without one. Counted in this process."""

import hashlib
import math
import time
from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from starlette.exceptions import HTTPException
from starlette.requests import Request

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.settings import ServerSettings
from flowise_dev_agent.texts import text

_STARTS: Final = "session-starts"
_CHAT: Final = "chat"


def build_limiter() -> FixedWindowRateLimiter:
    """The counters of one app."""
    return FixedWindowRateLimiter(MemoryStorage())


def count_session_start(request: Request) -> None:
    """Count a start of a session. Raises HTTPException (429) above the limit; a limit of 0 switches it off."""
    most = _server(request).rate_limit_sessions_per_min
    _count(request, _STARTS, most, text("error.too_many_starts", count=most))


async def limit_chat(request: Request) -> None:
    """A dependency of the routes that ask a flow: each question costs the flow's own model calls."""
    most = _server(request).rate_limit_chat_per_min
    _count(request, _CHAT, most, text("error.too_many_questions", count=most))


def _count(request: Request, scope: str, most: int, refusal: str) -> None:
    if not most:
        return
    limiter: FixedWindowRateLimiter = request.app.state.limiter
    limit, who = RateLimitItemPerMinute(most), _caller(request)
    if not limiter.hit(limit, scope, who):
        wait = max(1, math.ceil(limiter.get_window_stats(limit, scope, who).reset_time - time.time()))
        raise HTTPException(429, refusal, headers={"Retry-After": str(wait)})


def _server(request: Request) -> ServerSettings:
    return request.app.state.settings.server


def _caller(request: Request) -> str:
    if _server(request).api_key:
        _, _, key = request.headers.get("authorization", "").partition(" ")
        # Without a key it is a person who is signed in. Keys are not kept.
        who = key.strip() or current_caller().key_id or ""
        return hashlib.sha256(who.encode()).hexdigest()[:16]
    return request.client.host if request.client else "unknown"
