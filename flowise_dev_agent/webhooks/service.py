"""Webhooks for clients: make the endpoint of a new session, list deliveries, send one again."""

import base64
import random
import secrets
import ssl
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

from flowise_dev_agent.cursors import decode_cursor, encode_cursor
from flowise_dev_agent.errors import WebhookSecretError
from flowise_dev_agent.persistence import Deliveries
from flowise_dev_agent.persistence.deliveries import DeliveryRow, Endpoint, ListedDelivery
from flowise_dev_agent.persistence.sessions import NewWebhook
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.webhooks import (
    DeliveryList,
    DeliveryPage,
    DeliveryView,
    EndpointView,
    ListedDeliveryView,
    StartedView,
)
from flowise_dev_agent.settings import ServerSettings
from flowise_dev_agent.texts import text
from flowise_dev_agent.webhooks.client import TIMEOUT_SECS
from flowise_dev_agent.webhooks.policy import UrlPolicy


def started_view(view: SessionView, secret: str | None) -> StartedView:
    """Add the webhook secret to the view of a started session."""
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


_MINUTE, _HOUR = 60.0, 3_600.0
#: Seconds before the second attempt and each one after it: 8 attempts over just under 24 hours.
RETRY_SECS: Final = (5.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 8 * _HOUR, 8 * _HOUR)


#: Concurrent deliveries of a process. Each waits for the network at most 10 s and holds no database connection.
CONCURRENCY: Final = 20


@dataclass(frozen=True)
class WebhookConfig:
    """Settings of webhooks: checks, signatures, links, retries. `base_url` has no trailing slash; "" if not set."""

    policy: UrlPolicy = field(default_factory=UrlPolicy)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    base_url: str = ""
    #: Receiver of events about flows, if there is one.
    flow_url: str | None = None
    retry_secs: tuple[float, ...] = RETRY_SECS
    timeout: float = TIMEOUT_SECS
    concurrency: int = CONCURRENCY
    tls: ssl.SSLContext | None = None

    @classmethod
    def from_settings(cls, server: ServerSettings) -> Self:
        """Read the configuration from the settings."""
        hosts, networks = server.webhook_allowed
        return cls(
            policy=UrlPolicy(hosts, networks),
            secrets=server.webhook_secrets,
            base_url=str(server.public_base_url or "").rstrip("/"),
            flow_url=server.flow_webhook_url,
        )

    def pause_after(self, attempt: int, asked: float | None = None) -> float | None:
        """Seconds from this attempt (counted from 1) to the next one; None after the last. Jitter only shortens.

        `asked` is the pause that the receiver requested. It is limited to the longest pause in `retry_secs`.
        """
        if attempt > len(self.retry_secs):
            return None
        pause = self.retry_secs[attempt - 1] * random.uniform(0.9, 1.0)  # noqa: S311 - only spreads retries
        return max(pause, min(asked or 0.0, max(self.retry_secs)))


_SECRET_BYTES = 32


class WebhookService:
    """Webhooks of the session service."""

    def __init__(self, deliveries: Deliveries, config: WebhookConfig) -> None:
        self._deliveries = deliveries
        self._config = config

    async def endpoint_for(self, request: StartSession) -> NewWebhook | None:
        """Make the endpoint for a request to start a session, with a fresh secret if the request asks for one.

        Raises:
            WebhookUrlError: the URL is refused.
            WebhookSecretError: there is nothing to sign with.
        """
        if request.webhook_url is None:
            return None
        if request.webhook_own_secret:
            secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        elif self._config.secrets:
            secret = None
        else:
            raise WebhookSecretError(
                text("webhook.no_secret"),
                hint=text("webhook.own_secret"),
            )
        await self._config.policy.check_at_start(request.webhook_url)
        return NewWebhook(request.webhook_url, secret)

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """All deliveries of an existing session."""
        endpoint = await self._deliveries.endpoint(session_id)
        rows = await self._deliveries.of_session(session_id)
        return DeliveryList(
            endpoint=endpoint_view(endpoint) if endpoint else None, deliveries=[delivery_view(row) for row in rows]
        )

    async def page(self, status: str | None, limit: int, cursor: str | None) -> DeliveryPage:
        """Deliveries of all sessions, newest first."""
        rows = await self._deliveries.page(
            status=status, limit=limit + 1, before=decode_cursor(cursor) if cursor else None
        )
        shown = rows[:limit]
        return DeliveryPage(
            deliveries=[listed_view(row) for row in shown],
            next_cursor=encode_cursor(shown[-1].delivery) if len(rows) > limit else None,
        )

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        """Send a delivery again with its original id. Raises DeliveryNotFoundError."""
        return delivery_view(await self._deliveries.replay(session_id, delivery_id))
