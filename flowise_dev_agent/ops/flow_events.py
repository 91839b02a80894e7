"""Webhooks about flows that people change in Flowise itself: `flow.changed`, `flow.deleted`, `flow.broken`."""

import json
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from flowise_dev_agent.persistence.deliveries import DeliveryAttempt, Endpoint
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.webhooks.client import WebhookClient


class FlowEvents:
    """Sends events to the receiver of the settings, signed by the service. Each is sent until it is taken once."""

    def __init__(self, sender: WebhookClient, url: str) -> None:
        self._sender = sender
        self._endpoint = Endpoint(url, None, None)

    async def tell(self, event: str, key: str, data: JsonMapping) -> bool:
        """Send one event; False if it was not taken. `key` names it: sent again it has the same `webhook-id`."""
        body = json.dumps({"type": event, "timestamp": datetime.now(UTC).isoformat(), "data": data})
        attempt = DeliveryAttempt(uuid5(NAMESPACE_URL, f"{event} {key}"), 0, "", 1, body, self._endpoint)
        return (await self._sender.send(attempt)).delivered
