"""`Idempotency-Key` on routes that change something without a session of their own: a repeated request gets the first
one's answer, and nothing is done again.

Requests that start or continue a session keep the key with the session (`persistence.sessions`).
"""

import asyncio
import hashlib
import json
import logging
import re
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final
from uuid import UUID

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from flowise_dev_agent.api.access import authorize
from flowise_dev_agent.api.deps import IDEMPOTENCY_KEY_PATTERN, IdempotencyKey, engine
from flowise_dev_agent.errors import AnswerNotKeptError, DatabaseUnavailableError, RequestInProgressError
from flowise_dev_agent.persistence import DoneRequest, DoneRequests
from flowise_dev_agent.sessions.service import key_reused

logger = logging.getLogger(__name__)
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]

#: In the answer to a repeated request.
REPLAYED_HEADER: Final = "idempotent-replayed"
#: How long the answer to a request that was carried out waits for a database that does not keep it.
_KEEP_SECS: Final = 10.0
_PAUSE_SECS: Final = 0.25
_BOUNDARY: Final = re.compile(rb'boundary="?([^";,\s]+)')


class _Once:
    """Dependency that declares the header.

    `secret`: the response shows a secret and is not stored. `sealed`: the request has one, so only a slow salted hash
    of it is stored.
    """

    def __init__(self, *, secret: bool = False, sealed: bool = False) -> None:
        self.secret = secret
        self.sealed = sealed

    async def __call__(self, idempotency_key: IdempotencyKey = None) -> None: ...


#: For `dependencies` of a route of a router whose `route_class` is OnceRoute.
ONCE: Final = Depends(_Once())
ONCE_WITH_SECRET: Final = Depends(_Once(secret=True))
ONCE_OF_SECRETS: Final = Depends(_Once(sealed=True))


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
            return await _once(request, key, handler, once)

        return handle


async def _once(request: Request, key: str, handler: _Handler, once: _Once) -> Response:
    requests = engine(request).done_requests
    fingerprint = partial(_sealed if once.sealed else _hashed, await _content(request))
    claim = await requests.claim(key, await fingerprint())
    if isinstance(claim, DoneRequest):
        return _replayed(claim, same=claim.fingerprint == await fingerprint(claim.fingerprint))
    try:
        response = await handler(request)
    except Exception:
        # What went wrong is said, also when the database does not answer: the claim is free again after a while.
        with suppress(DatabaseUnavailableError):
            await requests.release(key, claim)
        raise
    await _keep(requests, key, claim, response, None if once.secret else bytes(response.body))
    return response


async def _keep(requests: DoneRequests, key: str, claim: UUID, response: Response, body: bytes | None) -> None:
    """Keep an answer. Without a database it is given all the same: the request was carried out."""
    location = response.headers.get("location")
    with suppress(TimeoutError):
        async with asyncio.timeout(_KEEP_SECS):
            while True:
                with suppress(DatabaseUnavailableError):
                    return await requests.finish(key, claim, status=response.status_code, body=body, location=location)
                await asyncio.sleep(_PAUSE_SECS)
    logger.error("The answer to a request with an Idempotency-Key is not kept: the database does not answer.")
    return None


def _replayed(earlier: DoneRequest, *, same: bool) -> Response:
    if not same:
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


async def _content(request: Request) -> bytes:
    """The content that identifies a request, in the same form for each encoding."""
    body = await request.body()
    content_type = request.headers.get("content-type", "").encode()
    if found := _BOUNDARY.search(content_type):
        # Clients choose another one for each request.
        body = body.replace(found[1], b"")
    else:
        with suppress(ValueError, RecursionError):
            body = json.dumps(json.loads(body), sort_keys=True).encode()
    return f"{request.method} {request.url.path}?{request.url.query}\n".encode() + body


async def _hashed(content: bytes, _: str = "") -> str:
    return hashlib.sha256(content).hexdigest()


async def _sealed(content: bytes, earlier: str = "") -> str:
    """Hash a request like a password: salted and slow. `earlier` provides the salt for a comparison."""
    salt = earlier.partition("$")[0] or secrets.token_hex(16)
    made = await asyncio.to_thread(hashlib.scrypt, content, salt=salt.encode(), n=2**14, r=8, p=1)
    return f"{salt}${made.hex()}"
