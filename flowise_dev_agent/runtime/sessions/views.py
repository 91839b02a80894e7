"""What clients see of a session: one shape for HTTP, streams, MCP, webhooks and the client library."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.errors import InvalidInputError

if TYPE_CHECKING:
    from flowise_dev_agent.persistence import SessionRow, StoredEvent

PublicStatus = Literal["in_progress", "pending_interrupt", "completed", "error", "cancelled"]

_PUBLIC: Final[Mapping[str, PublicStatus]] = {
    "queued": "in_progress",
    "running": "in_progress",
    "waiting": "pending_interrupt",
    "completed": "completed",
    "failed": "error",
    "cancelled": "cancelled",
}
#: (instance id, chatflow id) -> where the flow opens in the Flowise editor, None when the instance is not known.
ChatflowLink = Callable[[str, str], str | None]


def public_status(row_status: str) -> PublicStatus:
    """The status that clients see for a row's."""
    return _PUBLIC[row_status]


def public_statuses() -> dict[PublicStatus, list[str]]:
    """Every status that clients see, with the row statuses behind it."""
    return {public: [row for row, shown in _PUBLIC.items() if shown == public] for public in _PUBLIC.values()}


def row_statuses(status: str) -> list[str]:
    """The row statuses behind a public one. Raises InvalidInputError for an unknown word."""
    found = [row for row, public in _PUBLIC.items() if public == status]
    if not found:
        raise InvalidInputError(
            f"There is no status '{status}'.", hint=f"Use one of: {', '.join(dict.fromkeys(_PUBLIC.values()))}."
        )
    return found


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class InterruptView(_View):
    """A question that waits for a person. In lists `data` and `response_schema` are left out (empty)."""

    id: str
    type: str
    reason: str = ""
    message: str = ""
    options: list[Any] = Field(default_factory=list)
    data: dict[str, Any] = Field(default_factory=dict)
    response_schema: dict[str, Any] = Field(default_factory=dict)


class Totals(_View):
    """What the session has cost so far: calls as they are made, the rest as of its last question or its end.

    There is no `get_node_calls_total`: the whole catalogue of node types is at hand at once, nobody asks for one type
    after another, and reading a mapping is not worth a number. What it was to show, types that had to be asked of the
    server one by one, is `repairs`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = Field(default=0.0, description="List prices, without the calls that have none.")
    unpriced_calls: int = Field(default=0, description="Model calls whose price nobody knows.")
    model_calls: int = 0
    flowise_calls: int = 0
    repairs: int = Field(default=0, description="Node types that the catalogue lacked: the server was asked for each.")
    knowledge_repairs: int = Field(default=0, description="Those that the server had.")
    phases_timed: int = 0
    phase_durations_ms: dict[str, int] = Field(default_factory=dict)
    node_durations_ms: dict[str, int] = Field(default_factory=dict)


class ResultView(_View):
    """What the last review showed of the flow: kept after its answer, and replaced by the next review."""

    summary: str = Field(default="", description="The outcome in a sentence.")
    verdict: dict[str, Any] = Field(default_factory=dict, description="Empty when nothing was judged.")
    tests: list[dict[str, Any]] = Field(
        default_factory=list, description="One for each question and trial: question, passed, answer, category, error."
    )
    regressions: list[dict[str, Any]] = Field(
        default_factory=list, description="Questions whose answers differ from those before the change."
    )
    change: str = Field(default="", description="What the session changed in the flow, in words.")
    warnings: list[dict[str, Any]] = Field(default_factory=list)
    placeholders: list[str] = Field(default_factory=list, description="What is still to be filled in.")


class PlanView(_View):
    """The plan that the person approved last, as it was shown, with what the answer changed of it."""

    text: str = Field(default="", description="Markdown.")
    contract: dict[str, Any] = Field(
        default_factory=dict,
        description="The same as data: goal, nodes, removals, steps, credential_requirements, success_criteria,"
        " test_questions and more.",
    )
    approach: str | None = Field(default=None, description="The way that was chosen, where the plan had several.")


class SessionView(_View):
    """A session as every response carries it."""

    thread_id: UUID
    session_id: UUID = Field(description="The same value as `thread_id`.")
    session_name: str | None
    status: PublicStatus
    outcome: str | None = Field(
        description="accepted, answered, rolled_back, declined or cancelled, once it has ended."
    )
    answer: str | None = Field(default=None, description="For a question about a flow: the answer.")
    phase: str | None
    operation_mode: str | None
    instance: str
    chatflow_id: str | None
    chatflow_url: str | None
    iteration: int
    totals: Totals
    degraded: list[dict[str, Any]] = Field(description="Reasoning phases that the other mode had to answer.")
    runtime_mode: Literal["capability_first"] = "capability_first"
    interrupt: InterruptView | None
    plan: PlanView | None = Field(default=None, description="The plan that was approved. Left out of lists.")
    result: ResultView | None = Field(
        default=None, description="The last review's tests and verdict. Left out of lists."
    )
    error: dict[str, Any] | None = Field(description="Why it failed: code, detail, and hint or details where known.")
    requirement: str
    last_event_seq: int = Field(description="Number of the newest event; a stream after it brings only what is new.")
    created_at: datetime
    updated_at: datetime

    @property
    def in_progress(self) -> bool:
        """A run is queued or running: nothing is asked of the person now."""
        return self.status == "in_progress"


class ListTotals(_View):
    """Number and cost of all sessions that a list's filters let through, not of one page."""

    sessions: int
    input_tokens: int
    output_tokens: int
    usd: float


class SessionPage(_View):
    """Sessions, newest first. `next_cursor` gets the next page; None on the last one."""

    sessions: list[SessionView]
    next_cursor: str | None
    totals: ListTotals | None = Field(default=None, description="On the first page only.")


class SessionEvent(_View):
    """One line of a session's story. `seq` is None for what is not stored (token, tool_call, tool_result)."""

    seq: int | None
    ts: datetime
    session_id: UUID
    run_id: UUID | None
    type: str
    node: str | None
    phase: str | None
    status: str | None
    duration_ms: int | None
    summary: str
    data: dict[str, Any]


def session_view(row: "SessionRow", link: ChatflowLink) -> SessionView:
    """The view of a row."""
    return SessionView(
        thread_id=row.id,
        session_id=row.id,
        session_name=row.name,
        status=public_status(row.status),
        outcome=row.outcome,
        answer=row.answer,
        phase=row.phase,
        operation_mode=row.operation_mode,
        instance=row.instance_id,
        chatflow_id=row.chatflow_id,
        chatflow_url=link(row.instance_id, row.chatflow_id) if row.chatflow_id else None,
        iteration=row.iteration,
        totals=Totals.model_validate(row.totals),
        degraded=row.degraded,
        interrupt=InterruptView.model_validate(row.interrupt) if row.interrupt else None,
        plan=PlanView.model_validate(row.plan) if row.plan else None,
        result=ResultView.model_validate(row.result) if row.result else None,
        error=row.error,
        requirement=row.requirement,
        last_event_seq=row.event_seq,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def event_view(event: "StoredEvent") -> SessionEvent:
    """The view of an event."""
    return SessionEvent(**vars(event))


class EventPage(_View):
    """Stored events in order. `next_after_seq` gets the next page; None when there is no more now."""

    events: list[SessionEvent]
    next_after_seq: int | None


class _Listed(Protocol):
    """A row of a list that is ordered by age."""

    @property
    def id(self) -> UUID: ...
    @property
    def created_at(self) -> datetime: ...


def encode_cursor(row: _Listed) -> str:
    """Where the page after `row` begins; opaque to clients."""
    text = json.dumps([row.created_at.isoformat(), str(row.id)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The inverse. Raises InvalidInputError for a cursor that we did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        created_at, session_id = json.loads(base64.urlsafe_b64decode(padded.encode()))
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None:
            raise ValueError("no time zone")  # noqa: TRY301 - one place says what is wrong
        return moment, UUID(session_id)
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise InvalidInputError(
            "The cursor is not one that this service gave out.", hint="Pass `next_cursor` of the page before unchanged."
        ) from None
