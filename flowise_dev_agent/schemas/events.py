"""Events of a session, as a union by `type`. Rows of the log and `data` of stream frames are the same."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypeAliasType

from flowise_dev_agent.schemas.base import Contract, JsonMapping
from flowise_dev_agent.schemas.event_data import (
    ArtifactData,
    CostData,
    DecisionData,
    DoneData,
    DriftData,
    ErrorData,
    EventData,
    FallbackData,
    InterruptData,
    NodeArtifactData,
    NodeEndData,
    NodeErrorData,
    NodeStartData,
    RetryData,
    TestData,
    TokenData,
    ToolCallData,
    ToolResultData,
    WriteData,
)
from flowise_dev_agent.schemas.node_artifacts import NodeArtifact


class _Event(Contract):
    seq: int | None = Field(description="Number in the session's log; null for events that are not stored.")
    ts: datetime
    session_id: UUID
    run_id: UUID | None
    node: str | None
    phase: str | None
    status: str | None
    duration_ms: int | None
    summary: str
    request_id: str | None = Field(default=None, description="Of the request that the run follows from.")


class NodeStartEvent(_Event):
    """A step begins."""

    type: Literal["node_start"]
    data: NodeStartData


class NodeEndEvent(_Event):
    """A step has ended."""

    type: Literal["node_end"]
    data: NodeEndData


class NodeErrorEvent(_Event):
    """A step has failed."""

    type: Literal["node_error"]
    data: NodeErrorData


class InterruptEvent(_Event):
    """The session asks a person."""

    type: Literal["interrupt"]
    data: InterruptData


class DecisionEvent(_Event):
    """The session decided on its next step."""

    type: Literal["decision"]
    data: DecisionData


class RetryEvent(_Event):
    """Something is tried again."""

    type: Literal["retry"]
    data: RetryData


class FallbackEvent(_Event):
    """A reasoning phase was answered by the other mode."""

    type: Literal["fallback"]
    data: FallbackData


class WriteEvent(_Event):
    """Something was written to Flowise."""

    type: Literal["write"]
    data: WriteData


class TestEvent(_Event):
    """A test question was asked of the flow."""

    __test__ = False  # not a pytest class

    type: Literal["test"]
    data: TestData


class CostEvent(_Event):
    """A reasoning phase reported its cost."""

    type: Literal["cost"]
    data: CostData


class ArtifactEvent(_Event):
    """Something was found or made."""

    type: Literal["artifact"]
    data: ArtifactData


class DriftEvent(_Event):
    """The server's node types changed or were asked for."""

    type: Literal["drift"]
    data: DriftData


class ErrorEvent(_Event):
    """The session failed."""

    type: Literal["error"]
    data: ErrorData


class DoneEvent(_Event):
    """The session has ended."""

    type: Literal["done"]
    data: DoneData


class NodeArtifactEvent(_Event):
    """An artifact was stored."""

    type: Literal["node_artifact:persisted"]
    data: NodeArtifactData


class TokenEvent(_Event):
    """A piece of a model's text."""

    type: Literal["token"]
    data: TokenData


class ToolCallEvent(_Event):
    """A model calls a tool."""

    type: Literal["tool_call"]
    data: ToolCallData


class ToolResultEvent(_Event):
    """A tool has answered."""

    type: Literal["tool_result"]
    data: ToolResultData


SessionEvent = TypeAliasType(
    "SessionEvent",
    Annotated[
        NodeStartEvent
        | NodeEndEvent
        | NodeErrorEvent
        | InterruptEvent
        | DecisionEvent
        | RetryEvent
        | FallbackEvent
        | WriteEvent
        | TestEvent
        | CostEvent
        | ArtifactEvent
        | DriftEvent
        | ErrorEvent
        | DoneEvent
        | NodeArtifactEvent
        | TokenEvent
        | ToolCallEvent
        | ToolResultEvent,
        Field(discriminator="type"),
    ],
)
_EVENT: TypeAdapter[SessionEvent] = TypeAdapter(SessionEvent, config=ConfigDict(defer_build=True))


class EventPage(Contract):
    """Stored events in order. `next_after_seq` gets the next page; None when there is no more now."""

    events: list[SessionEvent]
    next_after_seq: int | None


@dataclass(frozen=True)
class NodeEvent:
    """An event as a node (or a write without a graph) reports it; the run adds the remaining fields."""

    node: str | None
    phase: str | None
    summary: str
    data: EventData
    #: Artifact that is stored with the event and referred to by it.
    artifact: NodeArtifact | None = None


def session_event(fields: JsonMapping) -> SessionEvent:
    """Make an event from stored or sent fields. Obsolete fields of `data` from older versions are dropped."""
    return _EVENT.validate_python(fields, extra="ignore")


def session_event_from_json(text: str | bytes) -> SessionEvent:
    """Parse an event from JSON text."""
    return _EVENT.validate_json(text, extra="ignore")
