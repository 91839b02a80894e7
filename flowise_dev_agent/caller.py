"""Caller, door and request: known to everything that a request or a run does, down to the rows that
it writes."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

from flowise_dev_agent.errors import ScopeMissingError
from flowise_dev_agent.texts import text

T = TypeVar("T")
Scope = Literal["read", "build", "approve", "admin"]
#: What a route may need: a scope of a key, or a share link, which no key is.
Right = Literal[Scope, "share"]
#: Where a request came in; `service` for what the service does by itself.
Door = Literal["rest", "page", "cli", "mcp", "webhook", "service"]

#: Of `AGENT_API_KEY`, of a service without a key, and of keys that name no other.
DEFAULT_OWNER: Final = "default"
#: What the `key_id` of a person begins with.
PERSON: Final = "oidc:"
ALL_SCOPES: Final[frozenset[Scope]] = frozenset({"read", "build", "approve", "admin"})


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """`scopes` with what they include: `admin` is everything, and all read."""
    given = frozenset(scopes)
    reads: frozenset[Scope] = frozenset({"read"})
    return ALL_SCOPES if "admin" in given else given | reads


@dataclass(frozen=True)
class Caller:
    """A person or program, under the name of its key. `key_id` is None for AGENT_API_KEY and without a key; of a person
    who has signed in it is PERSON and the provider's id.

    `owner` is the team or person that it acts for: whose sessions it sees, and whose those are that it starts. `share`
    is the id of the link of somebody without a key.
    """

    name: str
    scopes: frozenset[Scope]
    key_id: str | None = None
    door: Door = "service"
    owner: str = DEFAULT_OWNER
    share: UUID | None = None

    @property
    def signed_in(self) -> bool:
        """True for a person of the OpenID Connect provider."""
        return self.key_id is not None and self.key_id.startswith(PERSON)

    def may(self, any_of: Iterable[Right]) -> bool:
        """True when it has one of the rights, or none is needed."""
        needed = frozenset(any_of)
        return not needed or bool(self.scopes & needed) or ("share" in needed and self.share is not None)


@dataclass(frozen=True)
class RequestIds:
    """The ids of a request: `X-Request-Id`, and `traceparent` of W3C Trace Context."""

    id: str | None = None
    traceparent: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The trace that the request belongs to."""
        return self.traceparent.split("-")[1] if self.traceparent else None


NO_REQUEST: Final = RequestIds()
#: What the service does by itself. It acts for no owner until `serving` says for whom.
SERVICE: Final = Caller("service", ALL_SCOPES, owner="")
_caller: ContextVar[Caller] = ContextVar("caller", default=SERVICE)
_request: ContextVar[RequestIds] = ContextVar("request", default=NO_REQUEST)


def current_caller() -> Caller:
    """Return the caller of the current request or run."""
    return _caller.get()


def current_request() -> RequestIds:
    """The request that is answered here, or that the running run follows from."""
    return _request.get()


@contextmanager
def acting_for(caller: Caller) -> Generator[None]:
    """Do what is in the block, and in the tasks that it starts, for this caller."""
    with _set(_caller, caller):
        yield


def serving(owner: str) -> AbstractContextManager[None]:
    """Do what is in the block as the service itself, for this owner."""
    return acting_for(replace(SERVICE, owner=owner))


@contextmanager
def answering(request: RequestIds) -> Generator[None]:
    """Do what is in the block, and in the tasks that it starts, under the ids of this request."""
    with _set(_request, request):
        yield


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Generator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def as_stored() -> dict[str, str | None]:
    """The caller and the request as they are kept with what was asked for."""
    caller, request = current_caller(), current_request()
    return {
        "name": caller.name,
        "key_id": caller.key_id,
        "door": caller.door,
        "owner": caller.owner,
        "request_id": request.id,
        "traceparent": request.traceparent,
    }


def from_stored(row: Mapping[str, Any] | None) -> tuple[Caller, RequestIds]:
    """Restore the stored caller and request of a run. What runs for them was allowed when they asked: all scopes."""
    if row is None:
        return SERVICE, NO_REQUEST
    caller = Caller(row["name"], ALL_SCOPES, row["key_id"], row["door"], row.get("owner", DEFAULT_OWNER))
    return caller, RequestIds(row.get("request_id"), row.get("traceparent"))


def require(*any_of: Right) -> None:
    """Raises ScopeMissingError unless the caller has one of the scopes."""
    caller = current_caller()
    if not caller.may(any_of):
        if "share" in any_of:
            raise ScopeMissingError(
                text("error.only_share"), hint="Send it: `Authorization: Share <the link's last part>`."
            )
        needed = " or ".join(f"'{scope}'" for scope in any_of)
        raise ScopeMissingError(
            text("error.scope_missing", name=caller.name, needed=needed),
            hint=text("error.use_other_key"),
            details={"needs": list(any_of), "has": sorted(caller.scopes)},
        )
