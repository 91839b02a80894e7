"""Who asks, and by which door: known to everything that a request or a run does, down to the rows that it writes."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

from flowise_dev_agent.errors import ScopeMissingError

Scope = Literal["read", "build", "approve", "admin"]
#: Where a request came in; `service` for what the service does by itself.
Door = Literal["rest", "page", "cli", "mcp", "webhook", "service"]

ALL_SCOPES: Final[frozenset[Scope]] = frozenset({"read", "build", "approve", "admin"})


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """`scopes` with what they include: `admin` is everything, and all read."""
    given = frozenset(scopes)
    reads: frozenset[Scope] = frozenset({"read"})
    return ALL_SCOPES if "admin" in given else given | reads


@dataclass(frozen=True)
class Caller:
    """A person or program, under the name of its key. `key_id` is None for AGENT_API_KEY and without a key."""

    name: str
    scopes: frozenset[Scope]
    key_id: str | None = None
    door: Door = "service"

    def may(self, any_of: Iterable[Scope]) -> bool:
        """True when it has one of the scopes, or none is needed."""
        needed = frozenset(any_of)
        return not needed or bool(self.scopes & needed)


def as_stored(caller: Caller) -> dict[str, str | None]:
    """A caller as it is kept with what they asked for."""
    return {"name": caller.name, "key_id": caller.key_id, "door": caller.door}


def from_stored(row: Mapping[str, Any] | None) -> Caller:
    """Whoever asked for it. What runs for them was allowed when they asked, so it has all scopes."""
    return Caller(row["name"], ALL_SCOPES, row["key_id"], row["door"]) if row else SERVICE


#: What the service does by itself: recovery, retention, commands with the database's own address.
SERVICE: Final = Caller("service", ALL_SCOPES)
_caller: ContextVar[Caller] = ContextVar("caller", default=SERVICE)


def current_caller() -> Caller:
    """Who asks for what is done here."""
    return _caller.get()


@contextmanager
def acting_for(caller: Caller) -> Generator[None]:
    """Do what is in the block, and in the tasks that it starts, for this caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def require(*any_of: Scope) -> None:
    """Raises ScopeMissingError unless the caller has one of the scopes."""
    caller = current_caller()
    if not caller.may(any_of):
        needed = " or ".join(f"'{scope}'" for scope in any_of)
        raise ScopeMissingError(
            f"The key '{caller.name}' may not do this: it needs the scope {needed}.",
            hint="Use a key that has it, or ask whoever manages the keys (scope 'admin').",
            details={"needs": list(any_of), "has": sorted(caller.scopes)},
        )
