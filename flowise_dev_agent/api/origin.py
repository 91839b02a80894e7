"""Allowed origins of requests to a service without a key: this machine, by name, and our own page.

Such a service trusts whoever reaches it, so a web page that somebody opens on the same machine must not: by DNS
rebinding (its own name now leads here: the `Host` header shows it) or by requests across origins (`Origin` and
`Sec-Fetch-Site` show those). With a key neither works: no browser adds it by itself.
"""

from typing import Final

from pydantic.networks import HttpUrl
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from flowise_dev_agent.api.problems import problem_response
from flowise_dev_agent.settings import ServerSettings

_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


class OriginMiddleware:
    """Answers 403 to requests for foreign hosts or from foreign origins, while the service has no key."""

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self.app = app
        self._open = server.api_key is not None
        public = server.public_base_url
        bound = f"[{server.host}]" if ":" in server.host else server.host
        self._hosts = {*_LOCAL, bound.lower(), *([public.host.lower()] if public and public.host else [])}
        self._origins = {origin_of(public)} if public else set[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._open or scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if _name_of(headers.get("host", "")) not in self._hosts:
            detail = "Without AGENT_API_KEY the service answers only on this machine's own names."
        elif self._is_foreign(scope, headers):
            detail = "Without AGENT_API_KEY the service answers no requests of other web pages."
        else:
            await self.app(scope, receive, send)
            return
        await problem_response(403, path=scope["path"], detail=detail)(scope, receive, send)

    def _is_foreign(self, scope: Scope, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is not None:
            own = f"{scope['scheme']}://{headers['host']}"
            return origin.lower() not in {own.lower(), *self._origins}
        if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
            return False
        # A link on another page may lead here; nothing else on it may.
        return scope["method"] not in _SAFE_METHODS or headers.get("sec-fetch-mode") != "navigate"


def origin_of(url: HttpUrl) -> str:
    """The origin of an address, as a browser sends it."""
    port = "" if url.port in {None, {"http": 80, "https": 443}.get(url.scheme)} else f":{url.port}"
    return f"{url.scheme}://{url.host}{port}".lower()


def may_change(method: str, headers: Headers, origin: str) -> bool:
    """True if a request with a cookie may change something: it comes from our page at `origin`, and from no other."""
    if method in _SAFE_METHODS:
        return True
    given = headers.get("origin")
    return given.lower() == origin if given is not None else headers.get("sec-fetch-site") == "same-origin"


def _name_of(host: str) -> str:
    """A `Host` header without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()
