"""The Flowise server and the model provider that the service is connected to. Keys come in and are never shown."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, UrlConstraints
from pydantic.networks import HttpUrl

from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.requests import Line, RequestBody, Truth

#: Providers that need an address and a key, and nothing else.
ConnectableEngine = Literal["claude", "openai"]
#: Environment variables come first. A connection stored under another SECRETS_KEY is unreadable.
Source = Literal["environment", "stored", "unreadable", "none"]


def _holds_no_password(url: HttpUrl) -> HttpUrl:
    # The address is shown.
    if url.username or url.password:
        raise ValueError("the address must not hold a name or a password")
    return url


def _fits_into_a_header(key: SecretStr) -> SecretStr:
    if not all("!" <= character <= "~" for character in key.get_secret_value()):
        raise ValueError("a key has letters, digits and signs of ASCII only, and no blanks")
    return key


#: The limit applies to the sent text: parsing a URL appends a slash to a bare host.
Address = Annotated[HttpUrl, UrlConstraints(max_length=500), AfterValidator(_holds_no_password)]
Key = Annotated[SecretStr, Field(min_length=1, max_length=1_000), AfterValidator(_fits_into_a_header)]


class ConnectFlowise(RequestBody):
    """The body of `PUT /connections/flowise`."""

    endpoint: Address = Field(description="The address of the server, without a path.")
    api_key: Key | None = Field(default=None, description="A key of it (in Flowise: API Keys).")
    same_server: Truth = Field(
        default=False, description="The Flowise that is connected now, at another address: its sessions go on there."
    )
    force: Truth = Field(
        default=False, description="Another Flowise, although sessions are open: they end in `server_changed`."
    )


class ConnectModel(RequestBody):
    """The body of `PUT /connections/model`."""

    engine: ConnectableEngine = Field(description="`openai` is also every provider with the API of OpenAI.")
    api_key: Key | None = Field(default=None, description="A server of your own may need none.")
    base_url: Address | None = Field(default=None, description="None: the provider's own.")
    model: Line | None = Field(default=None, description="None: the default model of the engine.")


class FlowiseConnection(Contract):
    """The default Flowise server."""

    source: Source
    endpoint: str | None = Field(description="None for `unreadable`.")
    has_key: bool
    changed_by: str | None = None
    changed_at: datetime | None = None


class ModelConnection(Contract):
    """The model that plans."""

    source: Source
    engine: str = Field(description="`deterministic`: no model.")
    model: str
    base_url: str | None = Field(default=None, description="Only of what was stored.")
    changed_by: str | None = None
    changed_at: datetime | None = None


class ConnectionsView(Contract):
    """Current connections of the service."""

    etag: str = Field(default="", description=ETAG)
    storable: bool = Field(description="SECRETS_KEY is set: keys can be kept here.")
    flowise: FlowiseConnection
    model: ModelConnection
