"""Dependencies of routes."""

import asyncio
import re
from typing import Annotated, Any, Final, Protocol, TypeVar
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request, Response

from flowise_dev_agent.ops.memories import MemoryService
from flowise_dev_agent.ops.patterns import PatternService
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.schemas.etags import Expected
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.sessions.service import SessionService

MAX_WAIT_SECS = 300
#: The largest Postgres bigint; a larger cursor could not be compared with a sequence number.
MAX_SEQ = 2**63 - 1
IDEMPOTENCY_KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"


def engine(request: Request) -> Runtime:
    """The engine of this process."""
    return request.app.state.engine


def part_of(name: str) -> Any:
    """Dependency on a part of the runtime, by its name there."""

    async def read(request: Request) -> Any:
        return getattr(engine(request), name)

    return Depends(read)


async def _patterns(request: Request) -> PatternService:
    running = engine(request)
    return PatternService(running.db, running.instances)


async def _memories(request: Request) -> MemoryService:
    running = engine(request)
    return MemoryService(running.db, running.instances)


async def _wait_secs(
    request: Request,
    wait: Annotated[
        float | None,
        Query(ge=0, le=MAX_WAIT_SECS, description="Seconds to wait for the next question or the end; 0: none."),
    ] = None,
    prefer: Annotated[str | None, Header(description="RFC 7240: `wait=10` or `respond-async`.")] = None,
) -> float:
    """`?wait=`, else what `Prefer` says, else AGENT_WAIT_SECS."""
    if wait is not None:
        return wait
    preferences = {item.strip().lower() for item in re.split("[,;]", prefer or "")}
    if "respond-async" in preferences:
        return 0
    for preference in preferences:
        if found := re.fullmatch(r"wait\s*=\s*\"?(\d{1,9})\"?", preference):
            return min(int(found[1]), MAX_WAIT_SECS)
    return request.app.state.settings.server.wait_secs


async def _after_seq(
    after_seq: Annotated[int, Query(ge=0, le=MAX_SEQ, description="Leave out events up to this number.")] = 0,
    last_event_id: Annotated[int, Header(ge=0, le=MAX_SEQ, description="Sent by a client that reconnects.")] = 0,
) -> int:
    # A browser reconnects to the very same URL, so the header is the newer of the two.
    return max(after_seq, last_event_id)


def words(former: str) -> Any:
    """Words of a search: the parameter `query`, or `former`, the name that this list had for it before."""

    async def read(
        query: Annotated[str, Query(max_length=2_000, description="Words to find.")] = "",
        earlier: Annotated[
            str, Query(alias=former, max_length=2_000, deprecated=True, description="Former name of `query`.")
        ] = "",
    ) -> str:
        return query or earlier

    return Depends(read)


Service = Annotated[SessionService, part_of("service")]
PatternsOfOwner = Annotated[PatternService, Depends(_patterns)]
MemoriesOfOwner = Annotated[MemoryService, Depends(_memories)]
FlowId = Annotated[UUID, Path(description="The chatflow's id.")]
SessionId = Annotated[UUID, Path(description="The session's id (`thread_id`).")]
WaitSecs = Annotated[float, Depends(_wait_secs)]
AfterSeq = Annotated[int, Depends(_after_seq)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=IDEMPOTENCY_KEY_PATTERN,
        description="The same key with the same request gives the same answer instead of a second run.",
    ),
]


async def _expected(
    if_match: Annotated[
        str | None,
        Header(max_length=700, description="The `ETag` of what was read: no other state is changed (412)."),
    ] = None,
) -> Expected | None:
    return None if if_match is None else Expected.read(if_match)


IfMatch = Annotated[Expected | None, Depends(_expected)]


class _View(Protocol):
    @property
    def etag(self) -> str: ...


Tagged = TypeVar("Tagged", bound=_View)
#: For `responses` of a route whose answer has an ETag.
TAGGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": {"ETag": {"description": "For `If-Match`.", "schema": {"type": "string"}}}}
}


def tagged(response: Response, view: Tagged) -> Tagged:
    """The view, with its entity tag in the header."""
    response.headers["ETag"] = view.etag
    return view


async def settle(
    response: Response,
    service: SessionService,
    view: SessionView,
    wait_secs: float,
    watched: asyncio.Event | None = None,
) -> SessionView:
    """Wait until the session asks or ends: 200 then, 202 while it still works (time is up, or the service stops)."""
    if view.in_progress and wait_secs > 0:
        view = await service.wait(view.thread_id, wait_secs, watched)
    response.headers["Location"] = f"/sessions/{view.thread_id}"
    response.status_code = 202 if view.in_progress else 200
    return tagged(response, view)
