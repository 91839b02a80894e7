"""Executes deliveries of the queue, and requeues those whose worker was lost.

At least once: a worker may be lost between the receiver's response and its record; then the same message is sent again
under the same id. Receivers drop repeated ids.
"""

import logging
from uuid import UUID

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.observability.metrics import DELIVERIES
from flowise_dev_agent.persistence import Deliveries
from flowise_dev_agent.timings import Timings
from flowise_dev_agent.webhooks.client import WebhookClient
from flowise_dev_agent.webhooks.service import WebhookConfig

logger = logging.getLogger(__name__)


class DeliveryWorker:
    """Makes the delivery attempts of this process."""

    def __init__(self, deliveries: Deliveries, sender: WebhookClient, config: WebhookConfig, timings: Timings) -> None:
        self._deliveries = deliveries
        self._sender = sender
        self._config = config
        self._timings = timings

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent attempts."""
        return self._config.concurrency

    async def deliver(self, delivery_id: UUID, job_id: int) -> None:
        """Make one attempt; does nothing when another job has taken over the delivery."""
        with log_context(delivery=delivery_id, job=job_id):
            try:
                await self._attempt(delivery_id, job_id)
            except DatabaseUnavailableError:
                logger.warning("The database does not answer; the delivery continues when it does.")

    async def take_back_lost(self) -> None:
        """Requeue deliveries of lost workers; only one process checks at a time."""
        async with self._deliveries.turn() as ours:
            if ours and (taken := await self._deliveries.take_back_lost(self._timings.stalled)):
                logger.warning("%d webhook deliveries lost their worker; they are queued again.", taken)

    async def _attempt(self, delivery_id: UUID, job_id: int) -> None:
        attempt = await self._deliveries.claim(delivery_id, job_id)
        if attempt is None:
            return
        result = await self._sender.send(attempt)
        retry_in = self._config.pause_after(attempt.number, result.retry_after)
        with serving(attempt.owner):
            await self._deliveries.conclude(attempt, result, retry_in=retry_in)
        over = result.gone or retry_in is None
        DELIVERIES.labels("delivered" if result.delivered else "given_up" if over else "failed").inc()
        if result.delivered:
            return
        what = "no more attempts" if over else f"next in {retry_in:.0f} s"
        logger.warning("Webhook attempt %d failed, %s: %s", attempt.number, what, result.error)
