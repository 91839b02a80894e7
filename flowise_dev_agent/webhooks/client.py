"""One delivery attempt: signed, to a checked address, for at most 10 s, without following redirects.

Webhooks about flows that people change in Flowise itself (`flow.changed`, `flow.deleted`, `flow.broken`) have no
session and no queue: the watch sends each until it is taken.
"""

import asyncio
import json
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Final, Self
from uuid import NAMESPACE_URL, UUID, uuid5

import httpx2
from standardwebhooks.webhooks import Webhook

from flowise_dev_agent import __version__
from flowise_dev_agent.errors import WebhookUrlError
from flowise_dev_agent.persistence.deliveries import DeliveryAttempt, Endpoint, Result
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.texts import text
from flowise_dev_agent.webhooks.policy import Target, UrlPolicy

TIMEOUT_SECS: Final = 10.0


def trace_headers(body: str) -> dict[str, str]:
    """`traceparent` header with the trace of the request that led to this webhook; empty without a trace."""
    traceparent = json.loads(body).get("data", {}).get("traceparent")
    return {"traceparent": traceparent} if traceparent else {}


def signature_headers(delivery_id: UUID, body: str, secrets: Sequence[str], at: datetime) -> dict[str, str]:
    """Standard Webhooks headers (id, timestamp, signature), with one signature per secret."""
    id_ = str(delivery_id)
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id_, at.astimezone(UTC), body) for secret in secrets),
    }


class WebhookClient:
    """HTTP client for webhooks, an async context manager. `secrets` sign for sessions without their own secret."""

    def __init__(
        self,
        policy: UrlPolicy,
        secrets: Sequence[str],
        *,
        timeout: float = TIMEOUT_SECS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._secrets = tuple(secrets)
        self._timeout = timeout
        # A transport has no redirects, cookies or proxies. No keep-alive: a connection that was checked for one host
        # must not carry a request for another host at the same address.
        self._transport = httpx2.AsyncHTTPTransport(
            verify=tls or True, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._transport.aclose()

    async def send(self, attempt: DeliveryAttempt) -> Result:
        """Make one delivery attempt. Failures of the receiver or the network become a `Result`, not an exception."""
        secrets = (attempt.endpoint.secret,) if attempt.endpoint.secret else self._secrets
        if not secrets:
            return Result(delivered=False, error=text("delivery.no_secret"))
        try:
            async with asyncio.timeout(self._timeout):
                target = self._policy.parse(attempt.endpoint.url)
                response = await self._post(target, await self._policy.addresses(target), attempt, secrets)
        except WebhookUrlError as error:
            return Result(delivered=False, error=error.message)
        except (TimeoutError, httpx2.TimeoutException):
            return Result(delivered=False, error=text("delivery.timeout", seconds=f"{self._timeout:g}"))
        except (OSError, httpx2.TransportError) as error:
            return Result(delivered=False, error=text("delivery.unreachable", name=type(error).__name__))
        return _judged(response, datetime.now(UTC))

    async def _post(
        self, target: Target, addresses: Sequence[str], attempt: DeliveryAttempt, secrets: Sequence[str]
    ) -> httpx2.Response:
        """Send to each address in turn until one accepts the connection, and return the response."""
        *others, last = addresses
        for address in others:
            try:
                return await self._post_to(address, target, attempt, secrets)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._post_to(last, target, attempt, secrets)

    async def _post_to(
        self, address: str, target: Target, attempt: DeliveryAttempt, secrets: Sequence[str]
    ) -> httpx2.Response:
        request = httpx2.Request(
            "POST",
            # Exactly the checked address; certificate and Host header still use the host name.
            target.url.copy_with(host=address),
            headers={
                "Host": target.url.netloc.decode("ascii"),
                "Content-Type": "application/json",
                "User-Agent": f"flowise-dev-agent/{__version__}",
                **trace_headers(attempt.body),
                **signature_headers(attempt.id, attempt.body, secrets, datetime.now(UTC)),
            },
            content=attempt.body.encode(),
            extensions={"sni_hostname": target.host},
        )
        response = await self._transport.handle_async_request(request)
        # Only status and headers are used; the body is not read.
        await response.aclose()
        return response


def _judged(response: httpx2.Response, now: datetime) -> Result:
    status = response.status_code
    if 200 <= status < 300:
        return Result(delivered=True, response_status=status)
    if status == 410:
        return Result(delivered=False, response_status=status, error=text("delivery.gone"), gone=True)
    code = "delivery.redirected" if 300 <= status < 400 else "delivery.answered"
    retry_after = _retry_after(response.headers.get("retry-after", ""), now)
    return Result(delivered=False, response_status=status, error=text(code, status=status), retry_after=retry_after)


def _retry_after(text: str, now: datetime) -> float | None:
    """Seconds from a `Retry-After` header, in either of its two forms; None for anything else."""
    if text.isdecimal() and text.isascii():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


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
