"""What clients ask of webhooks: an endpoint for a new session, the list of deliveries, one of them again."""

import base64
import secrets
from uuid import UUID

from flowise_dev_agent.contracts.requests import StartSession
from flowise_dev_agent.contracts.webhooks import DeliveryList, DeliveryPage, DeliveryView
from flowise_dev_agent.errors import WebhookSecretError
from flowise_dev_agent.persistence import Deliveries
from flowise_dev_agent.persistence.sessions import NewWebhook
from flowise_dev_agent.runtime.sessions.views import decode_cursor, encode_cursor
from flowise_dev_agent.runtime.webhooks.config import WebhookConfig
from flowise_dev_agent.runtime.webhooks.views import delivery_view, endpoint_view, listed_view

_SECRET_BYTES = 32


class WebhookService:
    """The webhook half of the session service."""

    def __init__(self, deliveries: Deliveries, config: WebhookConfig) -> None:
        self._deliveries = deliveries
        self._config = config

    async def endpoint_for(self, request: StartSession) -> NewWebhook | None:
        """The endpoint that a start asks for, with a fresh secret where it wants its own.

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
                "Webhooks are signed, and this service has no secret for that.",
                hint="Ask for one of the session's own with `webhook_own_secret`, or have the operator set"
                " WEBHOOK_SECRET.",
            )
        await self._config.policy.check_at_start(request.webhook_url)
        return NewWebhook(request.webhook_url, secret)

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """All deliveries of a session that exists."""
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
        """Send a delivery again, under its old id. Raises DeliveryNotFoundError."""
        return delivery_view(await self._deliveries.replay(session_id, delivery_id))
