"""Data of each type of event."""

from typing import ClassVar, Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.schemas.answers import InterruptType
from flowise_dev_agent.schemas.base import Bounded, Contract, JsonObject, Outcome, Worded
from flowise_dev_agent.schemas.node_artifacts import ArtifactKind
from flowise_dev_agent.schemas.verdict import VerdictCategory

StoredType: TypeAlias = Literal[
    "node_start",
    "node_end",
    "node_error",
    "interrupt",
    "decision",
    "retry",
    "fallback",
    "write",
    "test",
    "cost",
    "artifact",
    "drift",
    "error",
    "done",
    "node_artifact:persisted",
]
#: Event types that are sent to open streams and not stored.
LiveType: TypeAlias = Literal["token", "tool_call", "tool_result"]
EventType: TypeAlias = StoredType | LiveType


class EventData(Bounded, Worded):
    """Data of an event besides its summary; limited to 4 KB. `texts` has the code of the summary."""

    event_type: ClassVar[EventType]


class NodeStartData(EventData):
    """Data of `node_start`."""

    event_type = "node_start"


class NodeEndData(EventData):
    """Data of `node_end`."""

    event_type = "node_end"


class NodeErrorData(EventData):
    """Data of `node_error`."""

    event_type = "node_error"
    code: str = ""


class InterruptData(EventData):
    """Data of `interrupt`: the question in short; the session has the rest."""

    event_type = "interrupt"
    interrupt_id: str = ""
    type: InterruptType | None = None
    reason: str = ""
    questions: list[str] = Field(default_factory=list, description="Of a clarification.")
    names: dict[str, str] = Field(default_factory=dict, description="Of the flows to choose from, by id.")


class Candidate(Worded):
    """A candidate for the next step: the step, whether it fits, and the reason."""

    to: str
    fits: bool
    why: str


class DecisionData(EventData):
    """Data of `decision`: a fork with its candidates and the taken one, or the findings of a check."""

    event_type = "decision"
    taken: str | None = None
    why: str = ""
    candidates: list[Candidate] = Field(default_factory=list)
    iteration: int = Field(default=0, description="Of the session, after the step.")
    codes: list[str] = Field(default_factory=list, description="Codes of findings.")
    chatflow_id: str | None = None
    where: Literal["live", "work"] | None = Field(
        default=None, description="Flow that someone else changed: the live one or the session's own."
    )


class RetryData(EventData):
    """Data of `retry`: the ops go back with findings (`codes`), or the run is repeated after an error (`code`)."""

    event_type = "retry"
    codes: list[str] = Field(default_factory=list)
    code: str | None = None
    attempt: int | None = None
    of: int | None = None


class FallbackData(EventData):
    """Data of `fallback`: the other mode answered."""

    event_type = "fallback"
    reason: str = ""


class WriteData(EventData):
    """Data of `write`: a chatflow, document store or custom tool was written, accepted or removed on the server."""

    event_type = "write"
    chatflow_id: str | None = None
    flow: str | None = Field(default=None, description="SHA-256 of the flow's text.")
    deployed: bool | None = None
    version: str | None = Field(default=None, description="Label of the version that was put back.")
    source: str | None = Field(default=None, description="Id of the flow that it was promoted from.")
    document_store: str | None = Field(default=None, description="Name of the document store that is made or removed.")
    tool: str | None = Field(default=None, description="Name of the custom tool that is made or removed.")


class TestData(EventData):
    """Data of `test`: one question, asked once. `before`: it was asked of the flow before the change."""

    __test__ = False  # not a pytest class

    event_type = "test"
    question: str = ""
    trial: int = 1
    before: bool = False
    passed: bool = False
    category: VerdictCategory | None = None
    answer: str = ""
    duration_ms: int | None = None


class CostData(EventData):
    """Data of `cost`: model calls of one reasoning phase."""

    event_type = "cost"
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0


class ArtifactData(EventData):
    """Data of `artifact`: something was found or made. `flow` is the SHA-256 of a compiled flow of `ops` ops."""

    event_type = "artifact"
    candidates: list[str] = Field(default_factory=list, description="Ids of flows that fit.")
    exact: str | None = Field(default=None, description="Id of the one flow that is meant.")
    flow: str | None = None
    ops: int | None = None
    nodes: int | None = Field(default=None, description="Of the flow as it is.")
    edges: int | None = None
    codes: list[str] = Field(default_factory=list, description="Codes of warnings.")
    pattern_used: bool | None = None
    pattern_id: int | None = None
    ops_in_base: int | None = None


class DriftCounts(Contract):
    """Numbers of node types that differ."""

    added: int = 0
    removed: int = 0
    changed: int = 0


class RepairNote(Contract):
    """Result of looking up a missing node type on the server."""

    node_type: str
    action: str
    decision_reason: str
    comparison_method: Literal["none", "version", "hash"] = "none"
    local_version: str | None = None
    api_version: str | None = None
    local_hash: str | None = None
    api_hash: str | None = None


class DriftData(EventData):
    """Data of `drift`: the server's node types changed, were asked for, or cannot be read (`source` is `snapshot`)."""

    event_type = "drift"
    policy: Literal["warn", "fail", "refresh"] | None = None
    source: str | None = None
    before: str | None = Field(default=None, description="Fingerprint of the former catalogue, its beginning.")
    after: str | None = None
    flowise_version: str | None = None
    counts: DriftCounts | None = None
    added: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)
    changed: list[str] = Field(default_factory=list)
    asked: int = Field(default=0, description="Unknown node types that the server was asked for.")
    found: int = 0
    names: list[str] = Field(default_factory=list)
    decisions: list[RepairNote] = Field(default_factory=list)


class ErrorData(EventData):
    """Data of `error`: the reason why the session failed."""

    event_type = "error"
    code: str = ""
    hint: str | None = None


class DoneData(EventData):
    """Data of `done`, the last event of a session."""

    event_type = "done"
    outcome: Outcome | None = None
    chatflow_id: str | None = None


class NodeArtifactData(EventData):
    """Data of `node_artifact:persisted`: an artifact was stored at the address in `reference`."""

    event_type = "node_artifact:persisted"
    artifact_id: UUID | None = None
    artifact_type: ArtifactKind | None = None
    flowchart_id: UUID | None = Field(default=None, description="The session.")
    flowchart_run_id: UUID | None = None
    flowchart_node_id: str | None = Field(default=None, description="The graph's node.")
    reference: str = Field(default="", description="Address of the artifact.")
    request_id: str | None = None
    correlation_id: str | None = None


class TokenData(EventData):
    """Data of `token`: a piece of a model's text while it is written."""

    event_type = "token"
    text: str = ""


class ToolCallData(EventData):
    """Data of `tool_call`: the model calls a tool."""

    event_type = "tool_call"
    name: str = ""
    arguments: JsonObject = Field(default_factory=dict)


class ToolResultData(EventData):
    """Data of `tool_result`: the result of a tool call."""

    event_type = "tool_result"
    name: str = ""
    ok: bool = True
    characters: int = Field(default=0, description="Of the summary, which is all that a model sees.")
    duration_ms: int = 0
    repeated: bool = Field(default=False, description="Answered with the result of an identical call.")
