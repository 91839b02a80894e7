"""The conversation with a model: messages, tools, answers, and what they may cost."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from pydantic import Field

from flowise_dev_agent.models.capabilities import Kind, Loss
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.usage import Usage

_OUR_TAG: Final = re.compile(
    r"<(?=\s*/?\s*(?:requirement|clarifications|later_words|requested_changes|named_by_the_request|target|catalogue|"
    r"credentials_on_the_server|on_the_server|flow|texts_in_the_flow|pattern|intent|previous_plan|"
    r"verdict_of_the_last_test|playbook|node_fields|like_flows|variables|step|settings|node_types|approved_plan|limit|"
    r"nodes_that_exist_already|chosen_approach|your_last_ops|findings_on_them|goal|success_criteria|placeholders|"
    r"trials?|question|answer|attachments|ready_tools|parts|stand_in|never_ran|steps|tools|sources|remarks|notes)\b)",
    re.IGNORECASE,
)
#: Maximum characters of a tool's summary, whatever the tool declares.
MAX_SUMMARY_CHARS: Final = 6_000
#: Most tool calls of one phase, over all its rounds and tries.
MAX_TOOL_CALLS: Final = 20


class ToolDef(Contract):
    """Tool as offered to a model, under its registry name (`flowise.get_node`).

    `summary_limit` is the number of characters that a prompt may see of a result. `answered_once`: identical calls of
    one phase try are answered with one result.
    """

    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")
    description: str
    parameters: JsonObject
    summary_limit: int = Field(default=300, ge=1, le=MAX_SUMMARY_CHARS)
    answered_once: bool = True


class ToolCall(Contract):
    """Request of a model to call a tool, under its registry name."""

    id: str
    name: str
    arguments: JsonObject
    #: The model's text, shortened, if it is not one JSON object; `arguments` is empty then.
    malformed: str = ""


class Message(Contract):
    """Turn of a conversation. `tool` messages answer the call `tool_call_id` and carry only a `ToolResult.summary`."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    #: The answer as the engine read it (a `ModelResponse`): its reasoning state has to go back unchanged.
    turn: Any = Field(default=None, exclude=True, repr=False)


class Toolbox(Protocol):
    """Tools of one phase of one session, ready to be called."""

    @property
    def definitions(self) -> Sequence[ToolDef]:
        """Tool definitions that the model is offered."""
        ...

    async def call(self, name: str, arguments: JsonObject) -> str:
        """Call a tool; return the text for the model, bounded in length and time. The text reports a failed call; only
        a bug raises.
        """
        ...


class EngineResponse(Contract):
    """Answer of a model. `stop_reason` is the provider's value; `truncated`: the output limit cut the answer.

    `turn` is the answer for the next request of the conversation. `kind` tells what the request held, `lost` what it
    should have held and the model does not take.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    turn: Any = Field(default=None, exclude=True, repr=False)
    usage: Usage = Usage()
    model: str = ""
    stop_reason: str = ""
    truncated: bool = False
    kind: Kind = "both"
    lost: tuple[Loss, ...] = ()


DeltaSink = Callable[[str], None]


@dataclass(frozen=True)
class SessionBudget:
    """Ceilings of a session, and the amounts spent."""

    max_tokens: float
    max_usd: float
    spent: Usage = field(default_factory=Usage)

    def exceeded_by(self, more: Usage) -> str | None:
        """Sentence that names the ceiling exceeded with `more` added; None while within the budget."""
        total = self.spent + more
        tokens = total.input_tokens + total.output_tokens
        if tokens >= self.max_tokens:
            return f"{tokens} of {self.max_tokens:.0f} tokens are used"
        if total.usd >= self.max_usd:
            return f"{total.usd:.2f} of {self.max_usd:.2f} USD are used"
        return None


@dataclass(frozen=True)
class Prompt:
    """Prompt for the engine: `system` is stable per phase, `user` is specific to the session."""

    system: str
    user: str


def as_data(text: str) -> str:
    """Escape a text so that it cannot close or open a tag, and mask pasted keys."""
    return _OUR_TAG.sub("‹", masked(text))
