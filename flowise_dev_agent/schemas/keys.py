"""API keys of people and programs: bodies and views. The key itself is shown once."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints

from flowise_dev_agent.caller import DEFAULT_OWNER, Scope
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.requests import Moment, RequestBody, Whole

KeyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,62}[A-Za-z0-9]$|^[A-Za-z0-9]$")]

#: Pattern of an owner's id, as in the table.
OWNER_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
OwnerId = Annotated[str, StringConstraints(pattern=OWNER_PATTERN)]


class NewKey(RequestBody):
    """The body of `POST /keys`."""

    name: KeyName = Field(description="Of the person or program; it is recorded with everything that the key does.")
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=4,
        description="`read`: see everything but the keys. `build`: also start sessions, test, ask for changes."
        " `approve`: also decide what is written to Flowise. `admin`: everything, keys included.",
    )
    owner: OwnerId = Field(
        default=DEFAULT_OWNER,
        description="The team or person that the key acts for, as a short name in lower case. It is added with its"
        " first key.",
    )
    expires_at: Moment | None = Field(default=None, description="None: it does not expire.")


class RotateKey(RequestBody):
    """The body of `POST /keys/{id}/rotate`."""

    keep_old_secs: Whole = Field(
        default=0, ge=0, le=604_800, description="Seconds for which the old key opens too, to replace it everywhere."
    )


class KeyView(Contract):
    """A key without the key itself."""

    id: UUID
    name: str
    owner: str = Field(description="The team or person that the key acts for.")
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")
    revoked_at: datetime | None
    active: bool = Field(description="It opens the service now.")
    etag: str = Field(default="", description=f"{ETAG} The use of a key does not change it.")


class KeyList(Contract):
    """Keys, newest first, revoked and expired ones included."""

    keys: list[KeyView]


class MadeKey(KeyView):
    """A new key. `key` is shown only here."""

    key: str


class OwnerView(Contract):
    """An owner: the team or person that keys act for and sessions belong to."""

    id: str
    name: str
    kind: Literal["team", "person"]
    created_at: datetime
    keys: int = Field(description="Keys that open for it now.")


class OwnerList(Contract):
    """Owners, by id."""

    owners: list[OwnerView]


class CallerView(Contract):
    """Caller of a request: the key, or the person who is signed in."""

    name: str
    key_id: str | None = Field(
        description="None for `AGENT_API_KEY`, and without a key; `oidc:` and the provider's id of a person."
    )
    signed_in: bool = Field(default=False, description="A person of the OpenID Connect provider.")
    owner: str = Field(description="The team or person that it acts for.")
    scopes: list[Scope]


class SignedOut(BaseModel):
    """Result of a sign-out."""

    url: str | None = Field(description="Sign-out page of the provider; None: it has none.")


class ProtectedResource(BaseModel):
    """OAuth metadata of `/mcp` (RFC 9728): the servers that issue its tokens."""

    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str] = ["header"]
    resource_name: str = "Flowise Dev Agent"
