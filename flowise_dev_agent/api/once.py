"""`Idempotency-Key` on routes that change something without a session of their own: a repeated request gets the first
one's answer, and nothing is done again.

Requests that start or continue a session keep the key with the session (`persistence.sessions`).
"""

import hashlib
import json
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from flowise_dev_agent.api.access import authorize
from flowise_dev_agent.api.deps import IDEMPOTENCY_KEY_PATTERN, IdempotencyKey, engine
from flowise_dev_agent.errors import AnswerNotKeptError, RequestInProgressError
from flowise_dev_agent.persistence import DoneRequest
from flowise_dev_agent.runtime.sessions.service import key_reused

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]

#: In the answer to a repeated request.
REPLAYED_HEADER: Final = "idempotent-replayed"
_BOUNDARY: Final = re.compile(rb'boundary="?([^";,\s]+)')


class _Once:
    """Declares the header. `secret`: the answer shows a secret, which is not kept."""

    def __init__(self, *, secret: bool = False) -> None:
        self.secret = secret

    async def __call__(self, idempotency_key: IdempotencyKey = None) -> None: ...


#: For `dependencies` of a route of a router whose `route_class` is OnceRoute.
ONCE: Final = Depends(_Once())
ONCE_WITH_SECRET: Final = Depends(_Once(secret=True))


class OnceRoute(APIRoute):
    """A route that, with `ONCE` among its dependencies, is carried out once for each Idempotency-Key of an owner.

    A request that failed is forgotten and may be sent again with its key. Nobody knows how far a request came whose
    process was lost: its key is free again after a while.

    Raises:
        IdempotencyKeyReusedError: another request has the key.
        RequestInProgressError: the first request goes on.
        AnswerNotKeptError: its answer held a secret.
    """

    def get_route_handler(self) -> _Handler:
        """The handler of the base class, behind the key."""
        handler = super().get_route_handler()
        once = next((one.dependency for one in self.dependencies if isinstance(one.dependency, _Once)), None)
        if once is None:
            return handler

        async def handle(request: Request) -> Response:
            key = request.headers.get("idempotency-key", "")
            if not re.fullmatch(IDEMPOTENCY_KEY_PATTERN, key):
                return await handler(request)
            await authorize(request)
            return await _once(request, key, handler, secret=once.secret)

        return handle


async def _once(request: Request, key: str, handler: _Handler, *, secret: bool) -> Response:
    requests = engine(request).done_requests
    fingerprint = await _fingerprint(request)
    claim = await requests.claim(key, fingerprint)
    if isinstance(claim, DoneRequest):
        return _replayed(claim, fingerprint)
    try:
        response = await handler(request)
    except Exception:
        await requests.release(claim)
        raise
    body = None if secret else bytes(response.body)
    await requests.finish(claim, status=response.status_code, body=body, location=response.headers.get("location"))
    return response


def _replayed(earlier: DoneRequest, fingerprint: str) -> Response:
    if earlier.fingerprint != fingerprint:
        raise key_reused()
    if earlier.status is None:
        raise RequestInProgressError(
            "The first request with this Idempotency-Key is still at work.", hint="Send it again in a moment."
        )
    if earlier.body is None:
        raise AnswerNotKeptError(
            "This request was carried out. Its answer held a secret and was not kept.",
            hint="Have another key made, and remove the one whose secret was lost.",
        )
    headers = {REPLAYED_HEADER: "true"} | ({"location": earlier.location} if earlier.location else {})
    media_type = "application/json" if earlier.body else None
    return Response(earlier.body, status_code=earlier.status, headers=headers, media_type=media_type)


async def _fingerprint(request: Request) -> str:
    body = await request.body()
    content_type = request.headers.get("content-type", "").encode()
    if found := _BOUNDARY.search(content_type):
        # Clients choose another one for each request.
        body = body.replace(found[1], b"")
    else:
        with suppress(ValueError, RecursionError):
            body = json.dumps(json.loads(body), sort_keys=True).encode()
    what = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return hashlib.sha256(what + body).hexdigest()
