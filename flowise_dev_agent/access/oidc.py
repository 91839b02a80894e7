"""Client of an OpenID Connect provider: discovery, keys, code exchange, token validation."""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import httpx2
import jwt
from jwt import PyJWK
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.errors import SignInFailedError, SignInUnavailableError
from flowise_dev_agent.settings import SignInSettings
from flowise_dev_agent.texts import text

M = TypeVar("M", bound=BaseModel)

#: Signatures that only the provider can make: none with a shared secret.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_TIMEOUT_SECS: Final = 10.0
_MAX_BYTES: Final = 1024 * 1024
_MAX_TOKEN_CHARS: Final = 16 * 1024
_LEEWAY_SECS: Final = 30
#: Seconds that metadata and keys are cached, and shortest time between two requests for an unknown key.
_KEPT_SECS: Final = 3_600.0
_AGAIN_SECS: Final = 60.0


class ProviderMetadata(BaseModel):
    """The fields of the provider's discovery document that are used here."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]


class _Keys(BaseModel):
    keys: list[dict[str, Any]]


class Tokens(BaseModel):
    """Tokens from the token endpoint."""

    access_token: str
    id_token: str


class OidcProvider:
    """The provider of OIDC_ISSUER. It is contacted at the first use, not earlier.

    All methods raise SignInUnavailableError when it cannot be reached or violates the standard.
    """

    def __init__(self, settings: SignInSettings) -> None:
        self._settings = settings
        self._issuer = str(settings.issuer).rstrip("/")
        self._http = httpx2.AsyncClient(timeout=_TIMEOUT_SECS)
        self._lock = asyncio.Lock()
        self._metadata: tuple[float, ProviderMetadata] | None = None
        self._keys: tuple[float, dict[str | None, PyJWK]] = (-_KEPT_SECS, {})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def metadata(self) -> ProviderMetadata:
        """The provider's discovery document, cached for an hour."""
        async with self._lock:
            if self._metadata is None or time.monotonic() > self._metadata[0] + _KEPT_SECS:
                address = f"{self._issuer}/.well-known/openid-configuration"
                found = _read(ProviderMetadata, await self._ask("GET", address))
                if found.issuer.rstrip("/") != self._issuer:
                    raise _unavailable(text("error.sign_in_other_issuer"))
                self._metadata = (time.monotonic(), found)
            return self._metadata[1]

    async def sign_in_address(self, *, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """URL of the provider's sign-in page. It sends a code to `redirect_uri`, usable only with `verifier` (PKCE)."""
        address = (await self.metadata()).authorization_endpoint
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._settings.client_id,
                "redirect_uri": redirect_uri,
                "scope": self._settings.scope,
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge(verifier),
                "code_challenge_method": "S256",
            }
        )
        return f"{address}{'&' if '?' in address else '?'}{query}"

    async def sign_out_address(self, back_to: str) -> str | None:
        """URL of the provider's sign-out page; None if it has none."""
        address = (await self.metadata()).end_session_endpoint
        if address is None:
            return None
        query = urlencode({"client_id": self._settings.client_id, "post_logout_redirect_uri": back_to})
        return f"{address}{'&' if '?' in address else '?'}{query}"

    async def exchange(self, code: str, *, verifier: str, redirect_uri: str) -> Tokens:
        """Exchange a code for tokens. Raises SignInFailedError when the provider refuses it."""
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self._settings.client_id,
        }
        auth = None
        if self._settings.client_secret is not None:
            secret = self._settings.client_secret.get_secret_value()
            if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
                auth = httpx2.BasicAuth(self._settings.client_id, secret)
            else:
                form["client_secret"] = secret
        answer = await self._ask("POST", metadata.token_endpoint, data=form, auth=auth)
        return _read(Tokens, answer)

    async def person(self, tokens: Tokens, *, nonce: str) -> dict[str, Any]:
        """Claims about the person who signed in. Raises SignInFailedError if the token is not for this sign-in."""
        claims = await self.claims(tokens.id_token, (self._settings.client_id,))
        # `azp` names the client that requested the token; if present it must be this service.
        if claims is None or claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise SignInFailedError(text("error.sign_in_token"), hint=text("error.sign_in_again"))
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInFailedError(text("error.sign_in_mismatch"), hint=text("error.sign_in_again"))
        more = (await self.metadata()).userinfo_endpoint
        if more is not None and groups_of(claims, self._settings.groups_claim) is None:
            said = await self._ask("GET", more, headers={"Authorization": f"Bearer {tokens.access_token}"})
            if isinstance(said, dict) and said.get("sub") == claims["sub"]:
                return {**said, **claims}
        return claims

    async def claims(self, token: str, audiences: tuple[str, ...]) -> dict[str, Any] | None:
        """Claims of a token that the provider issued for one of the audiences; None when the token is not valid."""
        if len(token) > _MAX_TOKEN_CHARS or token.count(".") != 2:
            return None
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS or (key := await self._key(header.get("kid"))) is None:
                return None
            return jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=audiences,
                issuer=(await self.metadata()).issuer,
                leeway=_LEEWAY_SECS,
                options={"require": ["exp", "iat", "sub", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    async def _key(self, kid: str | None) -> PyJWK | None:
        """The signing key with this id; without an id, the provider's only key."""
        address = (await self.metadata()).jwks_uri
        async with self._lock:
            read_at, keys = self._keys
            age = time.monotonic() - read_at
            if age >= _KEPT_SECS or (kid not in keys and age >= _AGAIN_SECS):
                given = _read(_Keys, await self._ask("GET", address)).keys
                keys = {item.get("kid"): key for item in given if (key := _usable(item))}
                self._keys = (time.monotonic(), keys)
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        return keys.get(kid)

    async def _ask(self, method: str, address: str, **given: Any) -> Any:
        if self._issuer.startswith("https:") and not address.startswith("https:"):
            raise _unavailable(text("error.sign_in_no_https"))
        content = b""
        try:
            async with (
                asyncio.timeout(_TIMEOUT_SECS),
                self._http.stream(
                    method, address, headers={"Accept": "application/json"} | given.pop("headers", {}), **given
                ) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        raise _unavailable(text("error.sign_in_too_long"))
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise _unavailable(type(error).__name__) from None
        if method == "POST" and response.status_code in {400, 401}:
            raise SignInFailedError(
                text("error.sign_in_refused"),
                hint=text("error.sign_in_check_client"),
            )
        if response.status_code != 200:
            raise _unavailable(text("error.sign_in_status", status=response.status_code))
        try:
            return json.loads(content)
        except ValueError:
            raise _unavailable(text("error.sign_in_no_json")) from None


def challenge(verifier: str) -> str:
    """The PKCE challenge (S256) of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def groups_of(claims: Mapping[str, Any], name: str) -> frozenset[str] | None:
    """Groups in the claim `name`, which may be a path such as `realm_access.roles`; None without the claim."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return frozenset({found})
    return frozenset(item for item in found if isinstance(item, str)) if isinstance(found, list) else None


def _usable(item: dict[str, Any]) -> PyJWK | None:
    if item.get("use", "sig") != "sig" or item.get("kty") not in {"RSA", "EC", "OKP"}:
        return None
    try:
        return PyJWK.from_dict(item)
    except jwt.PyJWTError:
        return None


def _read(model: type[M], answer: Any) -> M:
    try:
        return model.model_validate(answer)
    except ValidationError:
        raise _unavailable(text("error.sign_in_not_standard")) from None


def _unavailable(why: str) -> SignInUnavailableError:
    return SignInUnavailableError(
        text("error.sign_in_provider", why=why),
        hint=text("error.sign_in_provider_hint"),
    )
