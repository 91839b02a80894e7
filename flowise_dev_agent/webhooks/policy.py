"""Rules for webhook URLs: public addresses over https, and exceptions that the operator allows.

The service runs inside a network whose machines trust it, and the URL comes from a client. So the resolved addresses
are checked, not the host name: when a session asks for a webhook, and again at each delivery, which connects to exactly
the checked addresses (a name may resolve to something else a second later).
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import httpx2

from flowise_dev_agent.errors import WebhookUrlError
from flowise_dev_agent.settings import Network
from flowise_dev_agent.texts import text

MAX_URL_CHARS: Final = 2_000
_RESOLVE_SECS: Final = 3.0

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: (host, port) -> its addresses, as texts. Raises OSError (socket.gaierror) or UnicodeError.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

#: Registered as global, but never receivers of webhooks: services of cloud hosts, site-local and relay ranges.
_RESERVED: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "64:ff9b:1::/48", "2001::/32")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True)
class Target:
    """A parsed URL that passed the checks."""

    url: httpx2.URL
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Scheme, host and port, safe to show and log; the path may contain a secret of the receiver."""
        return f"{self.url.scheme}://{self.url.netloc.decode('ascii')}"


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver, which also reads numeric notations (`0x7f.1`, `2130706433`)."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class UrlPolicy:
    """Checks of URLs. `allowed_hosts` (lower case) and `allowed_networks` need neither https nor a public address."""

    def __init__(
        self,
        allowed_hosts: frozenset[str] = frozenset(),
        allowed_networks: Sequence[Network] = (),
        resolve: Resolve = resolve_by_system,
    ) -> None:
        self._hosts = allowed_hosts
        self._networks = tuple(allowed_networks)
        self._resolve = resolve

    async def check_at_start(self, url: str) -> None:
        """Refuse a URL that a delivery would refuse. If the resolver does not answer, the URL passes for now.

        Raises WebhookUrlError.
        """
        target = self.parse(url)
        try:
            async with asyncio.timeout(_RESOLVE_SECS):
                await self.addresses(target)
        except TimeoutError:
            return
        except socket.gaierror as error:
            if error.errno in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}:
                raise _refused("unknown_host", text("webhook.unknown_host", host=target.host)) from None

    def parse(self, url: str) -> Target:
        """Parse a URL. Raises WebhookUrlError for one that no resolved address could make acceptable."""
        if len(url) > MAX_URL_CHARS:
            raise _refused("malformed", text("webhook.too_long", limit=MAX_URL_CHARS))
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL:
            raise _refused("malformed", text("webhook.no_url")) from None
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise _refused("malformed", text("webhook.no_host"))
        if parsed.userinfo:
            raise _refused("userinfo", text("webhook.userinfo"))
        port = parsed.port if parsed.port is not None else {"http": 80, "https": 443}[parsed.scheme]
        if not 0 < port < 65_536:
            raise _refused("malformed", text("webhook.port", port=port))
        return Target(parsed, parsed.raw_host.decode("ascii").lower().rstrip("."), port)

    async def addresses(self, target: Target) -> list[str]:
        """Resolve a target and check all its addresses.

        Raises WebhookUrlError when one of them is refused, OSError when none can be resolved now.
        """
        try:
            found = await self._resolve(target.host, target.port)
        except UnicodeError:
            raise _refused("malformed", text("webhook.host_name")) from None
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        for one in found:
            self._check(target, ipaddress.ip_address(one))
        return list(found)

    def _check(self, target: Target, address: Address) -> None:
        meant = _embedded(address)
        if target.host in self._hosts or any(one in network for one in (address, meant) for network in self._networks):
            return
        if not _is_public(meant):
            raise _refused("private_address", text("webhook.private_address", host=target.host))
        if target.url.scheme != "https":
            raise _refused("not_https", text("webhook.not_https"))


def _embedded(address: Address) -> Address:
    """The IPv4 address inside an IPv6 address (mapped, 6to4, NAT64), else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not (address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local)
        and not any(address in network for network in _RESERVED)
    )


def _refused(reason: str, why: str) -> WebhookUrlError:
    return WebhookUrlError(
        text("webhook.refused", why=why),
        hint=text("webhook.use_public"),
        details={"reason": reason},
    )
