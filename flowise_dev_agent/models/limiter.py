"""Limit of parallel model calls, adapted to the provider.

The limit begins at 64 and doubles while it is used and nothing is refused. The first refusal (429, or 503 and 529
of an overloaded provider) halves it; from then on it grows by one for each round of calls. A provider that says in its
headers how many requests are left, or when to come again, is believed: no call starts before that. The SDK alone
repeats what was refused; here every response is read by a hook of its HTTP client.
"""

import asyncio
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

import httpx2

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.observability.metrics import (
    MODEL_CALL_LIMIT,
    MODEL_CALLS_RUNNING,
    MODEL_CALLS_WAITING,
    MODEL_REFUSALS,
)

_FIRST: Final = 64
_REFUSED: Final = frozenset({429, 503, 529})
#: Longest wait (seconds) taken from a header; for a longer one the provider will repeat it.
_LONGEST_PAUSE_SECS: Final = 60.0
#: Header names of both providers for the remaining quota and its reset, for requests and tokens.
_LEFT: Final = (
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[hms])")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

#: Owner and session of a call.
_Who = tuple[str, str]

_session: ContextVar[str] = ContextVar("model_calls_of", default="")
_number: ContextVar[int] = ContextVar("model_call_number", default=0)


@contextmanager
def calls_of(session: str) -> Generator[None]:
    """Assign the model calls of the block and its tasks to a session; sessions take turns."""
    token = _session.set(session)
    try:
        yield
    finally:
        _session.reset(token)


class CallLimiter:
    """Limiter of parallel calls for one provider and key. `ceiling` is never exceeded.

    The next call is of the owner with the fewest under way; its sessions take turns. So neither an owner with many
    sessions nor a session with many calls holds up the others.
    """

    def __init__(self, provider: str, ceiling: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ceiling = ceiling
        self._clock = clock
        self._limit = float(min(_FIRST, ceiling))
        #: Below it the limit doubles in each round, above it grows by one.
        self._doubling_below = float("inf")
        self._running = 0
        #: Calls started so far, and how many those were at the last refusal: calls from before it say nothing new.
        self._started = 0
        self._started_at_refusal = 0
        self._paused_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: OrderedDict[_Who, deque[asyncio.Future[None]]] = OrderedDict()
        #: Calls under way by owner.
        self._of_owner: Counter[str] = Counter()
        self._limit_shown = MODEL_CALL_LIMIT.labels(provider)
        self._running_shown = MODEL_CALLS_RUNNING.labels(provider)
        self._waiting_shown = MODEL_CALLS_WAITING.labels(provider)
        self._refusals = MODEL_REFUSALS.labels(provider)
        self._limit_shown.set(self._limit)

    @property
    def limit(self) -> int:
        """Current maximum of parallel calls."""
        return int(self._limit)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a free slot; the block is one call."""
        who = current_caller().owner, _session.get()
        await self._wait(who)
        token = _number.set(self._started)
        try:
            yield
        finally:
            _number.reset(token)
            self._ended(who)

    async def observe(self, response: httpx2.Response) -> None:
        """Adapt the limit to a response; hook of the SDK's HTTP client, called for each try within `turn`."""
        headers = response.headers
        if response.status_code in _REFUSED:
            self._refusals.inc()
            self._shrink()
            self._pause(_seconds(headers.get("retry-after")))
        elif response.is_success:
            self._grow()
        for left, reset in _LEFT:
            if headers.get(left) == "0":
                self._pause(_seconds(headers.get(reset)))

    def _shrink(self) -> None:
        # All calls of a round are refused for the same reason: halve once.
        if _number.get() <= self._started_at_refusal:
            return
        self._started_at_refusal = self._started
        self._set_limit(max(1.0, self._limit / 2))
        self._doubling_below = self._limit

    def _grow(self) -> None:
        # A limit that is not reached has not been tried.
        if self._running >= int(self._limit):
            self._set_limit(self._limit + (1 if self._limit < self._doubling_below else 1 / self._limit))

    def _set_limit(self, limit: float) -> None:
        self._limit = min(limit, float(self._ceiling))
        self._limit_shown.set(int(self._limit))
        self._grant()

    def _pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, self._clock() + min(seconds, _LONGEST_PAUSE_SECS))

    # --- turns -------------------------------------------------------------------------------------------------------

    async def _wait(self, who: _Who) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        self._waiting_shown.inc()
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was granted at the same moment.
                self._ended(who)
            else:
                self._forget(who, turn)
            raise

    def _ended(self, who: _Who) -> None:
        self._running -= 1
        self._running_shown.dec()
        self._of_owner -= Counter({who[0]: 1})
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._running < int(self._limit):
            if (pause := self._paused_until - self._clock()) > 0:
                self._grant_after(pause)
                return
            # The first of those that wait, if their owners have equally many calls.
            who = min(self._waiting, key=lambda one: self._of_owner[one[0]])
            turns = self._waiting.pop(who)
            turn = turns.popleft()
            if turns:
                self._waiting[who] = turns
            self._of_owner[who[0]] += 1
            self._waiting_shown.dec()
            self._running += 1
            self._running_shown.inc()
            self._started += 1
            turn.set_result(None)

    def _grant_after(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._grant()

    def _forget(self, who: _Who, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(who)
        if turns is not None and turn in turns:
            turns.remove(turn)
            self._waiting_shown.dec()
            if not turns:
                del self._waiting[who]


def _seconds(value: str | None) -> float:
    """Seconds given by a header: a number, "6m0s", or a date; 0 for anything else."""
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    if parts := _DURATION.findall(value):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return 0.0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
