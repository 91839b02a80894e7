"""Signing in at an OpenID Connect provider, for the page, and where MCP clients find that provider (RFC 9728)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from fastapi import Query, Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from flowise_dev_agent.api.middleware import cookies_of
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.schemas.keys import ProtectedResource, SignedOut
from flowise_dev_agent.settings import Settings

if TYPE_CHECKING:
    # Loaded where it is on: it brings cryptography along.
    from flowise_dev_agent.access.sign_in import SignIn

router = Routes(tags=["keys"])

_OFF = "Nobody signs in at this service: OIDC_ISSUER is not set."


def service(settings: Settings, engine: Callable[[], Runtime]) -> "SignIn | None":
    """The sign-in of these settings; None if it is off. `engine` is called when a person signs in."""
    address = settings.server.public_base_url
    if not settings.sign_in.is_on or address is None:
        return None
    from flowise_dev_agent.access.sign_in import SignIn

    return SignIn(settings.sign_in, address, lambda: engine().db)


@router.get("/auth/sign-in", include_in_schema=False)
async def begin_sign_in(request: Request, return_to: Annotated[str, Query(max_length=300)] = "") -> Response:
    """Lead a person to the provider. `return_to` is a view of the page, such as `#/s/<id>`."""
    sign_in = _sign_in(request)
    try:
        address, kept = await sign_in.begin(return_to)
    except AgentError as error:
        return _in_words(error)
    response = RedirectResponse(address, status_code=303)
    _set_cookie(response, sign_in, sign_in.attempt_cookie, kept, sign_in.ATTEMPT_SECS)
    return response


@router.get("/auth/callback", include_in_schema=False)
async def finish_sign_in(request: Request) -> Response:
    """Complete a sign-in: the provider redirects here."""
    sign_in = _sign_in(request)
    kept = cookies_of(Headers(scope=request.scope)).get(sign_in.attempt_cookie, "")
    try:
        token, view = await sign_in.finish(kept, request.query_params)
    except AgentError as error:
        response: Response = _in_words(error)
    else:
        response = RedirectResponse(f"{urlsplit(sign_in.base_url).path}/{view}", status_code=303)
        _set_cookie(response, sign_in, sign_in.cookie, token, sign_in.seconds)
    _set_cookie(response, sign_in, sign_in.attempt_cookie, "", 0)
    return response


@router.post("/auth/sign-out", responses=declared("not_found"))
async def sign_out(request: Request, response: Response) -> SignedOut:
    """End the sign-in whose cookie this request has."""
    sign_in = _sign_in(request)
    token = cookies_of(Headers(scope=request.scope)).get(sign_in.cookie, "")
    url = await sign_in.end(token)
    _set_cookie(response, sign_in, sign_in.cookie, "", 0)
    return SignedOut(url=url)


@router.get("/.well-known/oauth-protected-resource", include_in_schema=False)
@router.get("/.well-known/oauth-protected-resource/mcp", include_in_schema=False)
async def protected_resource(request: Request) -> ProtectedResource:
    """For MCP clients: who gives tokens."""
    sign_in = _sign_in(request)
    return ProtectedResource(resource=f"{sign_in.base_url}/mcp", authorization_servers=[sign_in.issuer])


def _sign_in(request: Request) -> "SignIn":
    sign_in: SignIn | None = request.app.state.sign_in
    if sign_in is None:
        raise HTTPException(404, _OFF)
    return sign_in


def _set_cookie(response: Response, sign_in: "SignIn", name: str, value: str, seconds: int) -> None:
    response.set_cookie(name, value, max_age=seconds, path="/", secure=sign_in.is_secure, httponly=True, samesite="lax")


def _in_words(error: AgentError) -> Response:
    # A person sees this in the browser, not a program.
    text = f"{error.message}\n{error.hint or ''}\n"
    return PlainTextResponse(text, status_code=error.http_status, headers={"Cache-Control": "no-store"})
