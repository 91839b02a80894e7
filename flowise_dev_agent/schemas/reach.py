"""The reach of a flow on a server: the ways by which people use it, and changes of them."""

from typing import Annotated, Literal

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.requests import Line, RequestBody, Truth

Starter = Annotated[Line, Field(description="A question that the chat offers before the first message.")]
Origin = Annotated[Line, Field(pattern=r"^https?://[^/\s?#@]+$", description="Address of a web site, without a path.")]


class MessageLimit(Contract):
    """A limit of one visitor's messages."""

    # Flowise's own file may hold any number.
    messages: int = Field(ge=1, le=1_000_000_000)
    seconds: int = Field(ge=1, le=1_000_000_000)
    told: Annotated[str, Field(min_length=1, max_length=1_000, description="Answer to whoever sends more.")]


class Reach(Contract):
    """Settings that decide how people reach a flow."""

    deployed: bool = Field(description="A mark for people: a flow answers its API without it, too.")
    public: bool = Field(description="Its chat page opens without an account.")
    starters: list[str]
    leads: bool = Field(description="The chat asks for name and e-mail address.")
    origins: list[str] = Field(description="Web sites that may embed the chat; all may while there are none.")
    limit: MessageLimit | None


class FlowReach(Reach):
    """The same of a flow on the server, with its addresses."""

    needs_key: bool = Field(description="Its API answers only with a key that was chosen in Flowise.")
    mcp: bool = Field(description="Flowise offers it as an MCP server.")
    starts: Literal["chat", "form", "schedule", "webhook"] = Field(description="How a run of the flow begins.")
    chat_url: str | None = Field(description="Flowise's chat page; null where the address is not known.")
    api_url: str | None = Field(description="Where programs ask it: `POST` with a JSON body.")
    etag: str = Field(default="", description=ETAG)


class ReachChange(RequestBody):
    """A change of the reach; what is left out stays."""

    deployed: Truth | None = None
    public: Truth | None = None
    starters: list[Starter] | None = Field(default=None, max_length=10)
    leads: Truth | None = None
    origins: list[Origin] | None = Field(default=None, max_length=50)
    limit: MessageLimit | Literal[False] | None = Field(default=None, description="`false` takes the limit away.")
