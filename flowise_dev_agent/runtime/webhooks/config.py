"""Webhook configuration from the settings."""

import random
import ssl
from dataclasses import dataclass, field
from typing import Final, Self

from flowise_dev_agent.runtime.webhooks.client import TIMEOUT_SECS
from flowise_dev_agent.runtime.webhooks.policy import UrlPolicy
from flowise_dev_agent.settings import ServerSettings

_MINUTE, _HOUR = 60.0, 3_600.0
#: Seconds before the second attempt and each one after it: 8 attempts over just under 24 hours.
RETRY_SECS: Final = (5.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 8 * _HOUR, 8 * _HOUR)
#: Concurrent deliveries of a process. Each waits for the network at most 10 s and holds no database connection.
CONCURRENCY: Final = 20


@dataclass(frozen=True)
class WebhookConfig:
    """How webhooks are checked, signed, linked and retried. `base_url` has no trailing slash; "" when not set."""

    policy: UrlPolicy = field(default_factory=UrlPolicy)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    base_url: str = ""
    retry_secs: tuple[float, ...] = RETRY_SECS
    timeout: float = TIMEOUT_SECS
    concurrency: int = CONCURRENCY
    tls: ssl.SSLContext | None = None

    @classmethod
    def from_settings(cls, server: ServerSettings) -> Self:
        """The configuration of a service."""
        hosts, networks = server.webhook_allowed
        return cls(
            policy=UrlPolicy(hosts, networks),
            secrets=server.webhook_secrets,
            base_url=str(server.public_base_url or "").rstrip("/"),
        )

    def pause_after(self, attempt: int, asked: float | None = None) -> float | None:
        """Seconds from this attempt (counted from 1) to the next one; None after the last. Jitter only shortens.

        `asked` is the pause that the receiver requested, limited to the longest pause of ours.
        """
        if attempt > len(self.retry_secs):
            return None
        pause = self.retry_secs[attempt - 1] * random.uniform(0.9, 1.0)  # noqa: S311 - only spreads retries
        return max(pause, min(asked or 0.0, max(self.retry_secs)))
