"""Where webhooks may go, however the address is written."""

import socket
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from flowise_dev_agent.errors import WebhookUrlError
from flowise_dev_agent.texts import Text, in_language
from flowise_dev_agent.webhooks.policy import Resolve, UrlPolicy

PUBLIC = "93.184.216.34"


def resolver(*addresses: str) -> Resolve:
    """A DNS in which every name has these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


def policy(*allow: str, addresses: Sequence[str] = (PUBLIC,)) -> UrlPolicy:
    hosts = frozenset(item for item in allow if "/" not in item)
    networks = [ip_network(item) for item in allow if "/" in item]
    return UrlPolicy(hosts, networks, resolver(*addresses))


async def reason(policy: UrlPolicy, url: str) -> str | None:
    """Why the URL is refused, None when it is not."""
    try:
        await policy.check_at_start(url)
    except WebhookUrlError as error:
        return str(error.details["reason"])
    return None


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com",
        "https://hooks.example.com:8443/path?token=1#part",
        "HTTPS://Hooks.Example.COM./",
        "https://exämple.de/",
        "https://xn--exmple-cua.de/",
        f"https://{PUBLIC}/",
        "https://[2606:4700::1111]:8443/",
    ],
)
async def test_public_https_urls_pass(url: str) -> None:
    assert await reason(policy(), url) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example.com/", "not_https"),
        (f"http://{PUBLIC}/", "not_https"),
        ("ftp://hooks.example.com/", "malformed"),
        ("javascript:alert(1)", "malformed"),
        ("file:///etc/passwd", "malformed"),
        ("//hooks.example.com/", "malformed"),
        ("hooks.example.com", "malformed"),
        ("https:///path", "malformed"),
        ("https://", "malformed"),
        ("", "malformed"),
        ("https://hooks.example.com:0/", "malformed"),
        ("https://hooks.example.com:65536/", "malformed"),
        ("https://hooks.example.com:-1/", "malformed"),
        ("https://hooks.example.com:https/", "malformed"),
        ("https://hooks.example.com/\n", "malformed"),
        ("https://[v1.x]/", "malformed"),
        ("https://0177.0.0.1/", "malformed"),
        ("https://①②⑦.0.0.1/", "malformed"),
        ("https://hooks.example.com/" + "a" * 2_000, "malformed"),
        ("https://user@hooks.example.com/", "userinfo"),
        ("https://user:password@hooks.example.com/", "userinfo"),
        ("https://hooks.example.com\\@127.0.0.1/", "userinfo"),
        ("https://hooks.example.com%40127.0.0.1@hooks.example.com/", "userinfo"),
    ],
)
async def test_other_urls_are_refused_by_their_shape(url: str, why: str) -> None:
    assert await reason(policy(), url) == why


#: Every range that is not the public internet, one address or more of each.
PRIVATE = [
    "0.0.0.0",  # noqa: S104
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.1.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%2",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("address", PRIVATE)
async def test_p63_a_name_with_such_an_address_is_refused(address: str) -> None:
    assert await reason(policy(addresses=[address]), "https://hooks.example.com/") == "private_address"


@pytest.mark.parametrize("address", PRIVATE)
async def test_p63_one_such_address_among_others_is_enough(address: str) -> None:
    assert await reason(policy(addresses=[PUBLIC, address]), "https://hooks.example.com/") == "private_address"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "0",
        "017700000001",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1]",
        "localhost",
        "LOCALHOST.",
        "169.254.169.254",
        "2852039166",
    ],
)
async def test_p63_the_systems_resolver_is_not_fooled_by_notations(host: str) -> None:
    assert await reason(UrlPolicy(), f"https://{host}/") == "private_address"
    assert await reason(UrlPolicy(), f"http://{host}:8080/") == "private_address"


@pytest.mark.parametrize("address", ["64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8"])
async def test_an_embedded_public_address_is_public(address: str) -> None:
    assert await reason(policy(addresses=[address]), "https://hooks.example.com/") is None


@pytest.mark.parametrize(
    ("allow", "url", "addresses"),
    [
        ("hooks.corp.example", "http://hooks.corp.example:8080/", ["10.1.2.3"]),
        ("hooks.corp.example", "https://HOOKS.corp.example./", ["10.1.2.3"]),
        ("10.0.0.0/8", "http://anything.example/", ["10.1.2.3"]),
        ("10.0.0.0/8", "https://anything.example/", ["::ffff:10.1.2.3"]),
        ("127.0.0.0/8", "http://127.0.0.1:5000/", ["127.0.0.1"]),
        ("fd00::/8", "http://six.example/", ["fd00::1"]),
    ],
)
async def test_the_operator_may_allow_hosts_and_networks(allow: str, url: str, addresses: list[str]) -> None:
    assert await reason(policy(allow, addresses=addresses), url) is None
    assert await reason(policy(addresses=addresses), url) == "private_address"


@pytest.mark.parametrize(
    ("allow", "url", "addresses", "why"),
    [
        ("hooks.corp.example", "http://other.corp.example/", ["10.1.2.3"], "private_address"),
        ("hooks.corp.example", "http://x.hooks.corp.example/", ["10.1.2.3"], "private_address"),
        ("corp.example", "http://corp.example.evil.example/", [PUBLIC], "not_https"),
        ("10.0.0.0/8", "http://mixed.example/", ["10.1.2.3", "192.168.0.1"], "private_address"),
        ("10.0.0.0/8", "http://mixed.example/", ["10.1.2.3", PUBLIC], "not_https"),
        ("hooks.corp.example", "https://a@hooks.corp.example/", ["10.1.2.3"], "userinfo"),
    ],
)
async def test_nothing_else_is_allowed(allow: str, url: str, addresses: list[str], why: str) -> None:
    assert await reason(policy(allow, addresses=addresses), url) == why


@pytest.mark.parametrize(("number", "why"), [(socket.EAI_NONAME, "unknown_host"), (socket.EAI_AGAIN, None)])
async def test_an_unknown_host_is_refused_and_a_resolver_out_of_order_is_not(number: int, why: str | None) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(number, "no")

    assert await reason(UrlPolicy(resolve=resolve), "https://hooks.example.com/") == why


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://h.example/" + "a" * 2_000, PUBLIC),
        ("https://[v1.x]/", PUBLIC),
        ("ftp://h.example/", PUBLIC),
        ("https://user@h.example/", PUBLIC),
        ("https://h.example:0/", PUBLIC),
        ("https://h.example/", "10.0.0.1"),
        ("http://h.example/", PUBLIC),
    ],
)
async def test_p123_why_a_url_is_refused_is_said_in_the_persons_language(url: str, address: str) -> None:
    with pytest.raises(WebhookUrlError) as caught:
        await policy(addresses=[address]).check_at_start(url)
    said = in_language(caught.value.message, "de")
    assert isinstance(caught.value.message, Text)
    assert said.startswith("An diese URL")
    assert " it " not in said


async def test_a_message_does_not_repeat_the_path() -> None:
    with pytest.raises(WebhookUrlError) as caught:
        await policy(addresses=["10.0.0.1"]).check_at_start("https://hooks.example.com/t0ken?k=t0ken")
    assert "t0ken" not in str(caught.value)
    assert "WEBHOOK_ALLOW" in str(caught.value.hint)
    assert policy().parse("https://hooks.example.com:8443/t0ken").origin == "https://hooks.example.com:8443"
