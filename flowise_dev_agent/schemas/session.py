"""A session as clients see it, the same for HTTP, webhooks, MCP and the client library."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.schemas.base import Bounded, Contract, Failure, Maybe, Outcome
from flowise_dev_agent.schemas.change import Conflict
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.interrupts import Interrupt, ListedInterrupt
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.usage import DegradedPhase, PhaseMetrics, Totals
from flowise_dev_agent.schemas.verdict import Regression, Trial, Verdict

PublicStatus: TypeAlias = Literal["in_progress", "pending_interrupt", "completed", "error", "cancelled"]


class ResultView(Bounded):
    """Result of the last review: kept after its answer, and replaced by the next review."""

    summary: str = Field(default="", description="The outcome in a sentence.")
    verdict: Maybe[Verdict] = Field(default=None, description="Null when nothing was judged.")
    tests: list[Trial] = Field(default_factory=list, description="One for each question and trial.")
    regressions: list[Regression] = Field(
        default_factory=list, description="Questions whose answers differ from those before the change."
    )
    change: str = Field(default="", description="Summary of the session's changes to the flow.")
    warnings: list[Finding] = Field(default_factory=list)
    placeholders: list[str] = Field(default_factory=list, description="Values that are still to be filled in.")
    conflicts: list[Conflict] = Field(
        default_factory=list, description="Writes of the session that others saved over at once. Told at its rest."
    )


class ApprovedPlan(Bounded):
    """Last approved plan, as it was shown and with the changes of the answer."""

    text: str = Field(default="", description="Markdown.")
    contract: Maybe[Plan] = Field(default=None, description="The same as data; null when it is too large.")
    approach: str | None = Field(default=None, description="The approach that was chosen, where the plan had several.")
    form: DesignForm | None = Field(default=None, description="The form that the plan was made of.")


class _Session(Contract):
    thread_id: UUID
    session_id: UUID = Field(description="The same value as `thread_id`.")
    session_name: str | None
    status: PublicStatus
    outcome: Outcome | None = Field(description="Outcome of an ended session.")
    answer: str | None = Field(default=None, description="For a question about a flow: the answer.")
    phase: str | None
    operation_mode: str | None
    instance: str
    chatflow_id: str | None
    chatflow_url: str | None
    iteration: int
    totals: Totals
    degraded: list[DegradedPhase] = Field(description="Reasoning phases that the other mode had to answer.")
    runtime_mode: Literal["capability_first"] = "capability_first"
    error: Failure | None = Field(description="Why it failed.")
    requirement: str
    last_event_seq: int = Field(description="Number of the newest event; a stream after it brings only newer events.")
    created_at: datetime
    updated_at: datetime

    @property
    def in_progress(self) -> bool:
        """True if a run is queued or running, so that no question is open."""
        return self.status == "in_progress"


class SessionView(_Session):
    """A session, as in every response except lists."""

    etag: str = Field(default="", description=ETAG)
    interrupt: Interrupt | None
    plan: ApprovedPlan | None = Field(default=None, description="The plan that was approved.")
    result: ResultView | None = Field(default=None, description="The last review's tests and verdict.")
    phase_metrics: list[PhaseMetrics] = Field(
        default_factory=list, description="The session's phases in order, the latest 60."
    )


class ListedSession(_Session):
    """A session in a list: the beginning of its requirement, and its open interrupt without data."""

    interrupt: ListedInterrupt | None
    started_by: str | None = Field(default=None, description="Name of the person or key that started it.")


class ListTotals(Contract):
    """Number and cost of all sessions that match a list's filters, not of one page."""

    sessions: int
    input_tokens: int
    output_tokens: int
    usd: float


class SessionPage(Contract):
    """Sessions, newest first. `next_cursor` gets the next page; None on the last one."""

    sessions: list[ListedSession]
    next_cursor: str | None
    totals: ListTotals | None = Field(default=None, description="On the first page only.")


class SessionSummary(Contract):
    """A session on one page of Markdown, to be pasted into a ticket or a chat."""

    thread_id: UUID
    summary: str
