"""https to a pinned address: the certificate is still held against the name."""

import ssl
from ipaddress import ip_network
from pathlib import Path
from uuid import uuid4

import pytest

from flowise_dev_agent.persistence.deliveries import DeliveryAttempt, Endpoint
from flowise_dev_agent.webhooks.client import WebhookClient
from flowise_dev_agent.webhooks.policy import UrlPolicy
from tests.fixtures.receiver import running_receiver

#: A certificate for `hooks.test`, signed by itself, made for this test.
TLS = Path(__file__).resolve().parents[2] / "fixtures" / "tls"
SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


async def loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize(("host", "delivered"), [("hooks.test", True), ("other.test", False)])
async def test_the_certificate_must_be_the_hosts(host: str, delivered: bool) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    policy = UrlPolicy(allowed_networks=[ip_network("127.0.0.0/8")], resolve=loopback)
    trusted = ssl.create_default_context(cafile=TLS / "certificate.pem")
    with running_receiver(tls=server) as receiver:
        endpoint = Endpoint(receiver.url(host=host, scheme="https"), None, None)
        async with WebhookClient(policy, [SECRET], tls=trusted) as sender:
            result = await sender.send(DeliveryAttempt(uuid4(), 1, "default", 1, "{}", endpoint))
        assert result.delivered is delivered
        assert len(receiver.received) == delivered
        if delivered:
            assert receiver.received[0].headers["host"] == f"hooks.test:{receiver.port}"


@pytest.mark.parametrize(
    ("body", "sent"),
    [('{"data": {"traceparent": "00-a-b-01"}}', "00-a-b-01"), ('{"data": {"traceparent": null}}', None)],
    ids=["of a request", "of none"],
)
async def test_a_receiver_can_go_on_with_the_trace_of_the_request(body: str, sent: str | None) -> None:
    policy = UrlPolicy(allowed_networks=[ip_network("127.0.0.0/8")], resolve=loopback)
    with running_receiver() as receiver:
        async with WebhookClient(policy, [SECRET]) as sender:
            result = await sender.send(
                DeliveryAttempt(uuid4(), 1, "default", 1, body, Endpoint(receiver.url(), None, None))
            )
        assert result.delivered
        assert receiver.received[0].headers.get("traceparent") == sent
