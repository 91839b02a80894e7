"""Deliveries as clients see them."""

from typing import TYPE_CHECKING

from flowise_dev_agent.contracts.session import SessionView
from flowise_dev_agent.contracts.webhooks import DeliveryView, EndpointView, ListedDeliveryView, StartedView
from flowise_dev_agent.runtime.webhooks.policy import UrlPolicy

if TYPE_CHECKING:
    from flowise_dev_agent.persistence.deliveries import DeliveryRow, Endpoint, ListedDelivery


def started_view(view: SessionView, secret: str | None) -> StartedView:
    """`view` with the secret that may be shown with it."""
    return StartedView.model_validate(vars(view) | {"webhook_secret": secret})


def delivery_view(row: "DeliveryRow") -> DeliveryView:
    """The view of a row."""
    return DeliveryView(**vars(row))


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
