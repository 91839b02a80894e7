"""What clients see of webhooks: never the secret after the start, never more of the URL than its origin."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.runtime.sessions.views import SessionView
from flowise_dev_agent.runtime.webhooks.policy import UrlPolicy

if TYPE_CHECKING:
    from flowise_dev_agent.persistence.deliveries import DeliveryRow, Endpoint, ListedDelivery

DeliveryStatus = Literal["pending", "delivered", "failed", "disabled"]


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class StartedView(SessionView):
    """The answer to a start: the session, and once only the secret that it asked for."""

    webhook_secret: str | None = Field(
        default=None,
        repr=False,
        exclude_if=lambda secret: secret is None,
        description="Verifies this session's webhooks (`whsec_...`). Not shown again.",
    )


class DeliveryView(_View):
    """One webhook of a session. `id` is its `webhook-id`, the same at every attempt."""

    id: UUID
    session_id: UUID
    type: str = Field(description="session.waiting, session.completed or session.failed")
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


class DeliveryPage(_View):
    """Webhooks of all sessions, newest first. `next_cursor` gets the next page; None on the last one."""

    deliveries: list[ListedDeliveryView]
    next_cursor: str | None


class EndpointView(_View):
    """Where a session's webhooks go to."""

    origin: str = Field(description="Scheme, host and port; the path may be a secret of the receiver.")
    own_secret: bool = Field(description="Signed with the session's own secret instead of WEBHOOK_SECRET.")
    disabled_at: datetime | None = Field(description="Since when nothing is sent: the receiver answered 410.")


class DeliveryList(_View):
    """The webhooks of a session, newest first, 200 at most. `endpoint` is None when it asked for none."""

    endpoint: EndpointView | None
    deliveries: list[DeliveryView]


def started_view(view: SessionView, secret: str | None) -> StartedView:
    """`view` with the secret that may be shown with it."""
    return StartedView.model_validate(vars(view) | {"webhook_secret": secret})


def delivery_view(row: "DeliveryRow") -> DeliveryView:
    """The view of a row."""
    return DeliveryView.model_validate(vars(row))


def listed_view(row: "ListedDelivery") -> ListedDeliveryView:
    """The view of a row with its session."""
    return ListedDeliveryView.model_validate(
        vars(row.delivery) | {"session_name": row.session_name, "origin": UrlPolicy().parse(row.url).origin}
    )


def endpoint_view(endpoint: "Endpoint") -> EndpointView:
    """The view of an endpoint."""
    return EndpointView(
        origin=UrlPolicy().parse(endpoint.url).origin,
        own_secret=endpoint.secret is not None,
        disabled_at=endpoint.disabled_at,
    )
