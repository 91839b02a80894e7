"""Capabilities of models at servers: learned from refusals, told by the servers, and kept.

Each refusal teaches one thing and costs one request, once: what was learned is kept in a `CapabilityStore`, for all
processes. Ways to ask for an object are kept per phase and kind of request, everything else per model.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import ModelCapabilityRows
from flowise_dev_agent.schemas.base import JsonObject

#: Ways to ask for an object, best first: an enforced schema, the same without `strict`, a tool that must be called,
#: JSON of any shape, the prompt alone.
Way = Literal["strict", "schema", "tool", "object", "prompt"]
#: Kinds of request: with tools only, with the schema only, with both.
Kind = Literal["look_up", "answer", "both"]
#: Losses that the person is told about.
Loss = Literal["tools", "schema", "prompt_only", "thinking"]

#: Server messages for missing tool support: "does not support tools", "no endpoints that support tool use".
_NO_TOOLS: Final = re.compile(
    r"(?:not support|unsupported|no endpoints|not available|not allowed|requires --)[^.]*(?:tool|function)"
    r"|(?:tool|function)[^.]*(?:not support|unsupported|not available|not allowed|requires --)"
)
_NOT_TOGETHER: Final = re.compile(
    r"(?:combin|together|with)[^.]*(?:tool|function)|(?:tool|function)[^.]*(?:combin|together|with)[^.]*"
    r"(?:json|response|schema|mime)"
)
_FORMAT: Final = re.compile(
    r"response[_ ]format|text\.format|output_config|output_format|json_schema|json_object|structured[ _]output|"
    r"json[ -]mode|mime[ _]type|response_schema|schema is too complex|grammar is too large"
)
_TOOL_CHOICE: Final = re.compile(r"tool_choice|forced? (?:a )?(?:tool|function)")
_STRICT: Final = re.compile(r"\bstrict\b|additionalproperties|invalid schema")
_EFFORT: Final = re.compile(r"reasoning[_. ]effort|output_config[^a-z]*effort|\beffort\b|not support thinking")
_NO_STREAM: Final = re.compile(r"not support(?:ed)?[^.]*\bstream(?:ing)?\b|\bstream(?:ing)?\b[^.]*not (?:be )?support")
_UNKNOWN: Final = re.compile(r"unsupported|not supported|unknown|unrecognized|extra|instead|not permitted")
_LIMIT_NAME: Final = re.compile(r"max_(?:completion_)?tokens")
_OUTPUT_LIMIT: Final = re.compile(
    r"(?:at most|maximum(?: allowed)?(?: number)?(?: of)?|up to|less than or equal to|<=)\s*`?(\d{2,7})`?\s*"
    r"(?:completion|output|max_tokens|tokens)"
    r"|max_(?:completion_)?tokens[^.]*?(?:at most|maximum|less than or equal to|<=|must be (?:in|between)[^.]*?)\D*?"
    r"(\d{2,7})(?!.*context)"
    r"|maximum tokens[^.]* exceeds[^.]* limit of (\d{2,7})"
)
#: Numbers by which servers name their window.
_WINDOW: Final = re.compile(
    r"(?:maximum context length(?: is)?(?: of)?|context (?:length|window|size)(?: is)?(?: of)?(?: only)?|n_ctx\D{0,6}|"
    r"maximum number of tokens allowed|context limit(?: of)?|> )\D{0,12}?(\d{3,8})(?! *tokens? *\+)"
)
#: Numbers by which servers name the tokens of a prompt.
_PROMPT: Final = re.compile(
    r"(\d{2,8}) (?:input tokens|in the messages)|(?:messages resulted in|request \(|n_keep: |too long: )(\d{2,8})"
)


class Capabilities(BaseModel):
    """Capabilities of a model at a server."""

    model_config = ConfigDict(validate_assignment=True, extra="ignore")

    #: API that an OpenAI model wants; None: as configured.
    api: Literal["chat", "responses"] | None = None
    tools: bool = True
    #: False: look-ups and answer are two kinds of request; None: as the provider is known to be.
    together: bool | None = None
    temperature: bool = True
    effort: bool = True
    thinking: bool = True
    streaming: bool = True
    #: True: the other of `max_tokens` and `max_completion_tokens`.
    other_limit_name: bool = False
    #: Ways that were refused, by "phase kind".
    refused: dict[str, list[Way]] = Field(default_factory=dict[str, list[Way]])
    #: Tokens of prompt and answer together.
    window: int | None = None
    output_limit: int | None = None
    #: Fewest characters per token seen in a request that was surely read whole.
    chars_per_token: float | None = None
    #: Result of the last check, a `ModelCheck`.
    checked: JsonObject | None = None

    def refuse(self, phase: str, kind: Kind, way: Way) -> None:
        """Remember that this way is refused in this kind of request."""
        key = f"{phase} {kind}"
        self.refused = {**self.refused, key: [*self.refused.get(key, []), way]}

    def ways_left(self, ways: Sequence[Way], phase: str, kind: Kind) -> list[Way]:
        """The ways not refused yet, best first; the last one is never refused."""
        refused = self.refused.get(f"{phase} {kind}", [])
        return [way for way in ways if way not in refused] or [ways[-1]]


class CapabilityStore(Protocol):
    """Keeps capabilities for all processes. A store that cannot be reached knows nothing and keeps nothing."""

    async def load(self, server: str, model: str) -> Capabilities | None:
        """Capabilities of a model at a server."""
        ...

    async def save(self, server: str, model: str, capabilities: Capabilities) -> None:
        """Keep it in place of what was known; what is None stays as another process found it."""
        ...


class StoredCapabilities:
    """Capabilities in the database of the service."""

    def __init__(self, rows: ModelCapabilityRows) -> None:
        self._rows = rows

    async def load(self, server: str, model: str) -> Capabilities | None:
        """See `CapabilityStore.load`."""
        try:
            known = await self._rows.load(server, model)
            return None if known is None else Capabilities.model_validate(known)
        except (DatabaseUnavailableError, ValidationError):
            return None

    async def save(self, server: str, model: str, capabilities: Capabilities) -> None:
        """See `CapabilityStore.save`."""
        with suppress(DatabaseUnavailableError):
            await self._rows.save(server, model, capabilities.model_dump(mode="json"))


def learn(
    known: Capabilities, said: str, *, phase: str, kind: Kind, way: Way | None, effort: bool, thinking: bool
) -> bool:
    """Learn from a refusal which option the server does not take; False if it names none that was sent."""
    said = said.lower()
    if "/v1/responses" in said and known.api != "responses":
        known.api = "responses"
    elif known.streaming and _NO_STREAM.search(said):
        # It may name the response format, too, beside which it does not stream.
        known.streaming = False
    elif kind == "both" and known.together is not False and way != "prompt" and _refuses_both(said):
        known.together = False
    elif (
        (way == "tool" and _TOOL_CHOICE.search(said))
        or (way == "strict" and _STRICT.search(said))
        or (way in ("strict", "schema", "object") and _FORMAT.search(said))
    ):
        known.refuse(phase, kind, way)
    elif known.temperature and "temperature" in said:
        known.temperature = False
    elif effort and known.effort and _EFFORT.search(said):
        known.effort = False
    elif thinking and known.thinking and "thinking" in said:
        known.thinking = False
    elif known.streaming and "stream" in said and _UNKNOWN.search(said):
        known.streaming = False
    elif limit := _output_limit(said, known.output_limit):
        known.output_limit = limit
    elif not known.other_limit_name and _LIMIT_NAME.search(said) and _UNKNOWN.search(said):
        known.other_limit_name = True
    elif kind != "answer" and known.tools and _NO_TOOLS.search(said):
        known.tools = False
    else:
        return False
    return True


def prompt_named(said: str) -> int | None:
    """Tokens of the prompt, as a refusal names them."""
    numbers = [int(number) for match in _PROMPT.finditer(said.lower().replace(",", "")) for number in match.groups("0")]
    return max(numbers, default=0) or None


def window_named(said: str) -> int | None:
    """Size of the window in tokens, as a refusal names it."""
    numbers = [int(match[1]) for match in _WINDOW.finditer(said.lower().replace(",", ""))]
    return min((number for number in numbers if number >= 512), default=None)


def _refuses_both(said: str) -> bool:
    return _NOT_TOGETHER.search(said) is not None and (_FORMAT.search(said) is not None or "json" in said)


def _output_limit(said: str, known: int | None) -> int | None:
    if "context" in said or "prompt" in said:
        return None
    match = _OUTPUT_LIMIT.search(said)
    limit = int(next(filter(None, match.groups()))) if match else 0
    return limit if limit >= 16 and (known is None or limit < known) else None
