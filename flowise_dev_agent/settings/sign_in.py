"""Settings of signing in by OpenID Connect."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Self, cast, get_args

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic.networks import HttpUrl

from flowise_dev_agent.caller import DEFAULT_OWNER, Scope
from flowise_dev_agent.settings.base import Group, items

#: In OIDC_GROUPS: everybody who signs in.
EVERYBODY = "*"

_RULE = re.compile(r"(?P<group>[^=]+)=(?P<scopes>[a-z+]+)(@(?P<owner>[a-z0-9][a-z0-9._-]{0,62}))?")
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class GroupRule:
    """Scopes of the members of a group, and the owner that they act for; None leaves the owner to another group."""

    group: str
    scopes: frozenset[Scope]
    owner: str | None


@dataclass(frozen=True)
class Rights:
    """Scopes of a person, and the owner that they act for."""

    scopes: frozenset[Scope]
    owner: str


class SignInSettings(Group):
    """The OpenID Connect provider that people sign in at. Off without an issuer."""

    issuer: HttpUrl | None = Field(default=None, alias="OIDC_ISSUER")
    client_id: str = Field(default="", alias="OIDC_CLIENT_ID")
    client_secret: SecretStr | None = Field(default=None, alias="OIDC_CLIENT_SECRET")
    scope: str = Field(default="openid profile email", alias="OIDC_SCOPE")
    groups_claim: str = Field(default="groups", alias="OIDC_GROUPS_CLAIM")
    groups: str = Field(default="", alias="OIDC_GROUPS")
    #: Of access tokens that REST and MCP take.
    audience: str = Field(default="", alias="OIDC_AUDIENCE")
    session_hours: float = Field(default=12, gt=0, le=24 * 90, alias="OIDC_SESSION_HOURS")

    @field_validator("groups")
    @classmethod
    def _is_a_list_of_rules(cls, value: str) -> str:
        _parse_rules(value)
        return value

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.issuer is None:
            return self
        needs = {"OIDC_CLIENT_ID": self.client_id, "OIDC_GROUPS": self.groups}
        if missing := [name for name, value in needs.items() if not value]:
            raise ValueError(f"OIDC_ISSUER needs {' and '.join(missing)}.")
        if self.issuer.scheme != "https" and self.issuer.host not in _LOCAL:
            raise ValueError("OIDC_ISSUER must be an https address.")
        if "openid" not in self.scope.split():
            raise ValueError("OIDC_SCOPE must have `openid` in it.")
        return self

    @property
    def is_on(self) -> bool:
        """True if people sign in at a provider."""
        return self.issuer is not None

    @cached_property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of OIDC_AUDIENCE; those of the service's own address when empty."""
        return items(self.audience)

    @cached_property
    def rules(self) -> tuple[GroupRule, ...]:
        """The rules of OIDC_GROUPS, in order."""
        return _parse_rules(self.groups)

    def rights(self, groups: frozenset[str]) -> Rights:
        """Rights of a member of these groups: the scopes of all matching rules, for the owner of the first rule that
        names one."""
        matching = [rule for rule in self.rules if rule.group == EVERYBODY or rule.group in groups]
        scopes: frozenset[Scope] = frozenset(scope for rule in matching for scope in rule.scopes)
        return Rights(scopes, next((rule.owner for rule in matching if rule.owner), DEFAULT_OWNER))


def check_service(address: HttpUrl | None, *, has_key: bool) -> None:
    """Raises ValueError for a service that people cannot sign in to: one that is open without it, or that they cannot
    safely come back to from the provider."""
    missing = [name for name, given in (("PUBLIC_BASE_URL", address), ("AGENT_API_KEY", has_key)) if not given]
    if missing or address is None:
        raise ValueError(f"OIDC_ISSUER needs {' and '.join(missing)}.")
    if address.scheme != "https" and address.host not in _LOCAL:
        raise ValueError("With OIDC_ISSUER, PUBLIC_BASE_URL must be an https address: a cookie signs people in.")


def _parse_rules(text: str) -> tuple[GroupRule, ...]:
    rules: list[GroupRule] = []
    for item in items(text):
        found = _RULE.fullmatch(item)
        scopes = found["scopes"].split("+") if found else []
        if not found or not set(scopes) <= set(get_args(Scope)):
            raise ValueError(
                f"OIDC_GROUPS has '{item}', which is not `group=scope+scope` or `group=scope@owner` with the scopes "
                f"{', '.join(get_args(Scope))}."
            )
        rules.append(GroupRule(found["group"].strip(), frozenset(cast("list[Scope]", scopes)), found["owner"]))
    return tuple(rules)
