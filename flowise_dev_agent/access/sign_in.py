"""Sign-in of people at an OpenID Connect provider: the redirects, and the callers of cookies and tokens."""

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic.networks import HttpUrl

from flowise_dev_agent.access.oidc import OidcProvider, groups_of
from flowise_dev_agent.caller import DEFAULT_OWNER, PERSON, Caller, Door, acting_for, with_implied
from flowise_dev_agent.errors import SignInFailedError, SignInUnavailableError
from flowise_dev_agent.persistence import ApiKeys, Database, SignIns
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.settings import SignInSettings
from flowise_dev_agent.texts import text

_MAX_NAME: Final = 64
_MAX_GROUPS: Final = 500
_RETURN_TO: Final = re.compile(r"#/[A-Za-z0-9/._:-]{0,200}")
_ERROR: Final = re.compile(r"[a-z_]{1,40}")


class SignIn:
    """Sign-in at the configured provider. One per process, on the database of the running engine."""

    #: Seconds to sign in at the provider.
    ATTEMPT_SECS: Final = 600

    def __init__(
        self,
        settings: SignInSettings,
        base_url: HttpUrl,
        database: Callable[[], Database],
    ) -> None:
        self._settings = settings
        self._provider = OidcProvider(settings)
        self._database = database
        self._known_owners = {DEFAULT_OWNER}
        self.base_url = str(base_url).rstrip("/")
        self.issuer = str(settings.issuer).rstrip("/")
        self.audiences = settings.audiences or (self.base_url, f"{self.base_url}/", f"{self.base_url}/mcp")
        self.seconds = round(settings.session_hours * 3600)
        # A browser takes cookies with this prefix only from the host itself, over https.
        prefix = "__Host-" if self.is_secure else ""
        #: Names of the cookies of a sign-in and of a sign-in in progress.
        self.cookie = f"{prefix}flowise-dev-agent-session"
        self.attempt_cookie = f"{prefix}flowise-dev-agent-sign-in"

    @property
    def is_secure(self) -> bool:
        """True if cookies are sent only over https; false only for a loopback base URL with http."""
        return self.base_url.startswith("https:")

    @property
    def _redirect_uri(self) -> str:
        return f"{self.base_url}/auth/callback"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._provider.aclose()

    async def begin(self, return_to: str) -> tuple[str, str]:
        """Start a sign-in: (URL of the provider, state that the browser keeps). `return_to` is a view of the page.

        Raises SignInUnavailableError, as `finish` does.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        address = await self._provider.sign_in_address(
            redirect_uri=self._redirect_uri, state=state, nonce=nonce, verifier=verifier
        )
        view = return_to if _RETURN_TO.fullmatch(return_to) else ""
        return address, ".".join([state, nonce, verifier, base64.urlsafe_b64encode(view.encode()).decode()])

    async def finish(self, kept: str, given: Mapping[str, str]) -> tuple[str, str]:
        """Finish a sign-in from the browser's state and the provider's query: (new token, view to return to).

        Raises SignInFailedError with the reason for the person.
        """
        state, nonce, verifier, view = _unpacked(kept)
        if not secrets.compare_digest(state.encode(), given.get("state", "").encode()):
            raise SignInFailedError(text("error.sign_in_not_begun"), hint=text("error.sign_in_again"))
        # RFC 9207: an answer of another provider.
        if given.get("iss", self.issuer).rstrip("/") != self.issuer:
            raise SignInFailedError(text("error.sign_in_not_ours"), hint=text("error.sign_in_again"))
        if error := given.get("error"):
            known = error if _ERROR.fullmatch(error) else "error"
            raise SignInFailedError(
                text("error.sign_in_not_let_in", reason=known), hint=text("error.sign_in_ask_there")
            )
        tokens = await self._provider.exchange(
            given.get("code", ""), verifier=verifier, redirect_uri=self._redirect_uri
        )
        claims = await self._provider.person(tokens, nonce=nonce)
        groups = groups_of(claims, self._settings.groups_claim) or frozenset()
        caller = await self._caller(str(claims["sub"]), name_of(claims), groups, "page")
        if not caller.scopes:
            raise SignInFailedError(
                text("error.sign_in_no_group", name=caller.name),
                hint=text("error.sign_in_groups_hint"),
            )
        token = secrets.token_urlsafe(32)
        with acting_for(caller):
            await SignIns(self._database()).add(
                _hash(token),
                subject=str(claims["sub"]),
                name=caller.name,
                groups=sorted(groups)[:_MAX_GROUPS],
                seconds=self.seconds,
            )
        return token, view

    async def end(self, token: str) -> str | None:
        """End a sign-in. Returns the provider's sign-out URL, None if there is none."""
        await SignIns(self._database()).end(_hash(token))
        try:
            return await self._provider.sign_out_address(f"{self.base_url}/")
        except SignInUnavailableError:
            return None

    async def by_cookie(self, token: str, door: Door) -> Caller | None:
        """Caller signed in with this cookie; None if expired or unknown. The scopes follow the current settings."""
        row = await SignIns(self._database()).find(_hash(token))
        return row and await self._caller(row.subject, row.name, frozenset(row.groups), door)

    async def by_bearer(self, token: str, door: Door) -> Caller | None:
        """Caller of an access token of the provider; None when the token is not valid. Raises SignInUnavailableError.

        Raises SignInUnavailableError.
        """
        claims = await self._provider.claims(token, self.audiences)
        if claims is None:
            return None
        groups = groups_of(claims, self._settings.groups_claim) or frozenset()
        return await self._caller(str(claims["sub"]), name_of(claims), groups, door)

    async def _caller(self, subject: str, name: str, groups: frozenset[str], door: Door) -> Caller:
        rights = self._settings.rights(groups)
        if rights.owner not in self._known_owners:
            await ApiKeys(self._database()).add_owner(rights.owner)
            self._known_owners.add(rights.owner)
        scopes = with_implied(rights.scopes) if rights.scopes else rights.scopes
        return Caller(name, scopes, f"{PERSON}{subject}", door, rights.owner)


def name_of(claims: Mapping[str, Any]) -> str:
    """Name of a person for the audit log and the page: the verified e-mail address, else another name."""
    names = (
        ("preferred_username", "name")
        if claims.get("email_verified") is False
        else ("email", "preferred_username", "name")
    )
    for key in (*names, "sub"):
        if isinstance(claims.get(key), str) and (name := " ".join(clean_text(claims[key]).split())):
            return name[:_MAX_NAME]
    return "unnamed"


def _unpacked(kept: str) -> tuple[str, str, str, str]:
    try:
        state, nonce, verifier, view = kept.split(".")
        decoded = base64.urlsafe_b64decode(view).decode()
    except (ValueError, binascii.Error):
        # No sign-in has this state, so `finish` refuses it.
        return secrets.token_urlsafe(32), "", "", ""
    return state, nonce, verifier, decoded if _RETURN_TO.fullmatch(decoded) else ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
