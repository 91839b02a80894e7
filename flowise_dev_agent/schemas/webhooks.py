"""Webhooks: what is sent, and what clients see of it. Never the secret after the start, of the URL only the origin."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.schemas.answers import InterruptType
from flowise_dev_agent.schemas.base import Bounded, Contract, Failure, JsonObject, Outcome
from flowise_dev_agent.schemas.interrupts import Option
from flowise_dev_agent.schemas.session import PublicStatus, SessionView
from flowise_dev_agent.schemas.usage import Totals

WebhookType: TypeAlias = Literal["session.waiting", "session.completed", "session.failed"]
DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed", "disabled"]


class WebhookInterrupt(Bounded):
    """The open question: enough to decide whom to ask and how to answer. The rest is read from the session."""

    id: str
    type: InterruptType
    reason: str
    message: str
    options: list[Option] = Field(default_factory=list)
    response_schema: JsonObject = Field(default_factory=dict, description="JSON Schema of `answer` in `resume`.")


class WebhookLinks(Contract):
    """Where to read and to answer."""

    session: str
    resume: str | None
    page: str


class WebhookFailure(Failure, Bounded):
    """Why the session failed."""


class WebhookTotals(Totals, Bounded):
    """What the session has cost so far."""


class WebhookSession(Contract):
    """The session at rest that a webhook is about."""

    session_id: UUID
    session_name: str | None
    status: PublicStatus
    outcome: Outcome | None
    phase: str | None
    operation_mode: str | None
    instance: str
    iteration: int
    chatflow_id: str | None
    chatflow_url: str | None
    interrupt: WebhookInterrupt | None
    error: WebhookFailure | None
    totals: WebhookTotals
    event_seq: int = Field(
        description="Number of the reported event. Orders the webhooks of a session, which may arrive in any order."
    )
    links: WebhookLinks
    request_id: str | None = Field(default=None, description="Of the request that led here: the start or an answer.")
    traceparent: str | None = Field(default=None, description="Its place in a trace (W3C Trace Context).")


class WebhookPayload(Contract):
    """The body of a webhook, in the shape of Standard Webhooks. It stays below 20 KB."""

    type: WebhookType
    timestamp: datetime
    data: WebhookSession


class StartedView(SessionView):
    """The answer to a start: the session, and once only the secret that it asked for."""

    webhook_secret: str | None = Field(
        default=None,
        repr=False,
        exclude_if=lambda secret: secret is None,
        description="Verifies this session's webhooks (`whsec_...`). Not shown again.",
    )


class DeliveryView(Contract):
    """One webhook of a session. `id` is its `webhook-id`, the same at every attempt."""

    id: UUID
    session_id: UUID
    type: WebhookType
    interrupt_id: str | None
    status: DeliveryStatus = Field(
        description="`failed`: all attempts are used up; `disabled`: the receiver answered 410 to this session."
    )
    attempts: int
    next_attempt_at: datetime | None
    response_status: int | None = Field(description="What the receiver answered last, None when it did not.")
    error: str | None = Field(description="Why the last attempt failed.")
    created_at: datetime
    updated_at: datetime
    delivered_at: datetime | None


class ListedDeliveryView(DeliveryView):
    """A webhook in the list of all sessions."""

    session_name: str | None
    origin: str = Field(description="Where it goes to: scheme, host and port.")


class DeliveryPage(Contract):
    """Webhooks of all sessions, newest first. `next_cursor` gets the next page; None on the last one."""

    deliveries: list[ListedDeliveryView]
    next_cursor: str | None


class EndpointView(Contract):
    """Where a session's webhooks go to."""

    origin: str = Field(description="Scheme, host and port; the path may be a secret of the receiver.")
    own_secret: bool = Field(description="Signed with the session's own secret instead of WEBHOOK_SECRET.")
    disabled_at: datetime | None = Field(description="Since when nothing is sent: the receiver answered 410.")


class DeliveryList(Contract):
    """The webhooks of a session, newest first, 200 at most. `endpoint` is None when it asked for none."""

    endpoint: EndpointView | None
    deliveries: list[DeliveryView]
