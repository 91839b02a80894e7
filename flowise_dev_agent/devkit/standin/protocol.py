"""Requests and replies in a provider-independent form."""

import json
import threading
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from flowise_dev_agent.schemas.base import JsonObject

#: A request or an answer in the provider's own JSON.
Body = dict[str, Any]
#: A JSON schema.
JsonSchema = dict[str, Any]
Provider = Literal["openai", "anthropic"]
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class StandInToolCall:
    """A tool call of the model; `arguments` is a JSON object.

    `raw` is sent instead, valid JSON or not, where the wire format is text: always with OpenAI, with Anthropic only in
    streams.
    """

    name: str
    arguments: JsonObject = field(default_factory=dict)
    id: str = ""
    raw: str | None = None

    @property
    def text(self) -> str:
        """The arguments as sent."""
        return json.dumps(self.arguments, ensure_ascii=False) if self.raw is None else self.raw


@dataclass(frozen=True)
class StandInMessage:
    """One turn. `text` of a `tool` turn is the tool's result; `tool_calls` only on `assistant` turns."""

    role: Role
    text: str
    tool_calls: tuple[StandInToolCall, ...] = ()


@dataclass(frozen=True)
class ToolSpec:
    """A tool on offer; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: JsonSchema


@dataclass(frozen=True)
class RecordedRequest:
    """A chat or embeddings request as received. `body` is the provider's JSON, `api_key` the client's key."""

    provider: Provider
    kind: Literal["chat", "embeddings"]
    path: str
    model: str
    body: Body = field(repr=False)
    api_key: str = field(default="", repr=False)
    messages: tuple[StandInMessage, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    #: Name of the tool that must be called, "*" when any must be, "" when none.
    forced_tool: str = ""
    #: Schema that the answer must fit; an empty one means "any JSON object".
    json_schema: JsonSchema | None = None
    stream: bool = False

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")

    @property
    def last_user(self) -> str:
        """The last message of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def prompt(self) -> str:
        """All texts of the request, one after the other; `script("text", ...)` searches it."""
        return "\n\n".join(message.text for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """A reply of the model: a text, tool calls, or `json` (any JSON value, sent as text).

    `delay` seconds pass before the first byte, `chunk_delay` between the pieces of a streamed reply, which stops half
    way until `gate` is set. `tokens` replaces the estimated usage: (input, output).
    """

    text: str = ""
    tool_calls: tuple[StandInToolCall, ...] = ()
    json: Any = None
    delay: float = 0.0
    chunk_delay: float = 0.0
    gate: threading.Event | None = None
    tokens: tuple[int, int] | None = None
    #: Sent first: as signed blocks with Anthropic, as `reasoning_content` with OpenAI.
    thinking: str = ""
    #: Text that OpenAI's models send instead of an answer when they decline.
    refusal: str = ""
    #: Replaces the stop reason that follows from the content, in the provider's terms ("length", ...).
    stop_reason: str | None = None


@dataclass(frozen=True)
class StandInFailure:
    """A failure of the provider. Use the constructors."""

    mode: Literal["status", "hang", "drop", "malformed"]
    status: int = 200
    message: str = ""
    retry_after: float | None = None

    @classmethod
    def http(cls, status: int, message: str = "scripted failure", *, retry_after: float | None = None) -> Self:
        """An error status in the provider's own error shape."""
        return cls("status", status=status, message=message, retry_after=retry_after)

    @classmethod
    def hang(cls) -> Self:
        """No answer until the client gives up or the stand-in stops."""
        return cls("hang")

    @classmethod
    def drop(cls) -> Self:
        """The connection breaks: after the headers, or after the first event of a stream."""
        return cls("drop")

    @classmethod
    def malformed(cls) -> Self:
        """HTTP 200 with truncated JSON."""
        return cls("malformed")


def estimate_tokens(text: str) -> int:
    """Estimated number of tokens in `text`: one per four characters."""
    return max(1, len(text) // 4)


def pieces(text: str, words: int = 4) -> list[str]:
    """`text` cut into streamable pieces of a few words; joined they give the text again."""
    parts = text.split(" ")
    cut = [" ".join(parts[start : start + words]) for start in range(0, len(parts), words)]
    return [piece if index == len(cut) - 1 else f"{piece} " for index, piece in enumerate(cut)]
