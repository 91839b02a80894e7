"""Webhooks: payload and views. The secret is shown once, at the start; of the URL only the origin is shown."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.schemas.answers import InterruptType
from flowise_dev_agent.schemas.base import Bounded, Contract, Failure, JsonObject, Outcome, Worded
from flowise_dev_agent.schemas.interrupts import Option
from flowise_dev_agent.schemas.session import PublicStatus, SessionView
from flowise_dev_agent.schemas.usage import Totals

WebhookType: TypeAlias = Literal["session.waiting", "session.completed", "session.failed"]
DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed", "disabled"]


class WebhookInterrupt(Bounded):
    """The open interrupt with enough to decide whom to ask and how to answer; the session has the rest."""

    id: str
    type: InterruptType
    reason: str
    message: str
    options: list[Option] = Field(default_factory=list)
    response_schema: JsonObject = Field(default_factory=dict, description="JSON Schema of `answer` in `resume`.")


class WebhookLinks(Contract):
    """Links for reading the session and answering."""

    session: str
    resume: str | None
    page: str


class WebhookFailure(Failure, Bounded):
    """Error of the failed session."""


class WebhookTotals(Totals, Bounded):
    """Cost of the session so far."""


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
    """Response to a start: the session, and once only the secret that the start asked for."""

    webhook_secret: str | None = Field(
        default=None,
        repr=False,
        exclude_if=lambda secret: secret is None,
        description="Verifies this session's webhooks (`whsec_...`). Not shown again.",
    )


class DeliveryView(Worded):
    """One webhook delivery of a session. `id` is its `webhook-id`, the same at every attempt."""

    id: UUID
    session_id: UUID
    type: WebhookType
    interrupt_id: str | None
    status: DeliveryStatus = Field(
        description="`failed`: all attempts are used up; `disabled`: the receiver answered 410 to this session."
    )
    attempts: int
    next_attempt_at: datetime | None
    response_status: int | None = Field(description="Last response of the receiver; None without one.")
    error: str | None = Field(description="Why the last attempt failed.")
    created_at: datetime
    updated_at: datetime
    delivered_at: datetime | None


class ListedDeliveryView(DeliveryView):
    """A webhook delivery in the list of all sessions."""

    session_name: str | None
    origin: str = Field(description="Scheme, host and port of the receiver.")


class DeliveryPage(Contract):
    """Webhook deliveries of all sessions, newest first. `next_cursor` gets the next page; None on the last one."""

    deliveries: list[ListedDeliveryView]
    next_cursor: str | None


class EndpointView(Contract):
    """Webhook endpoint of a session."""

    origin: str = Field(description="Scheme, host and port; the path may be a secret of the receiver.")
    own_secret: bool = Field(description="Signed with the session's own secret instead of WEBHOOK_SECRET.")
    disabled_at: datetime | None = Field(description="Since when nothing is sent: the receiver answered 410.")


class DeliveryList(Contract):
    """Webhook deliveries of a session, newest first, 200 at most. `endpoint` is None if it asked for none."""

    endpoint: EndpointView | None
    deliveries: list[DeliveryView]
