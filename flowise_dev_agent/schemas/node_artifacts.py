"""Artifacts: records that the steps of the graph leave."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from flowise_dev_agent.phases import Mode
from flowise_dev_agent.schemas.base import Bounded, Contract
from flowise_dev_agent.schemas.requests import Line, Note, RequestBody, Whole

ArtifactKind: TypeAlias = Literal["plan", "memory", "milestone", "decision"]
MemoryKind: TypeAlias = Literal["pattern", "note"]
StoreMode: TypeAlias = Literal["append", "replace", "update"]
TaskStatus: TypeAlias = Literal["planned", "approved", "written", "passed", "failed"]
#: Size limit of one artifact as JSON.
MAX_ARTIFACT_BYTES: Final = 64_000


class RoutingState(Contract):
    """Position of the session when the artifact was made."""

    node: str = ""
    phase: str = ""
    iteration: int = 0
    route_key: str | None = Field(default=None, description="Next step, if it was decided here.")


class StoredTask(Contract):
    """One task of a plan: a node, a value, a test."""

    task_id: str
    task_key: str
    title: str = ""
    status: TaskStatus = "planned"


class StoredStage(Contract):
    """Tasks of one kind."""

    stage_id: str
    stage_key: str
    tasks: list[StoredTask] = Field(default_factory=list)


class StoredPlan(Contract):
    """The plan as stages with tasks."""

    plan_id: str
    title: str = ""
    stages: list[StoredStage] = Field(default_factory=list)


class OperationCounts(Contract):
    """Numbers of stages and tasks by result of storing."""

    created: int = 0
    updated: int = 0
    replaced: int = 0
    skipped_missing: int = 0


class StoredPlanPayload(Bounded):
    """Payload of `plan`: the plan as it is stored now, and the operations on it."""

    artifact_type: Literal["plan"] = "plan"
    mode: Mode
    store_mode: StoreMode
    action_results: list[str] = Field(default_factory=list)
    additive_prompt: str = Field(default="", description="Changes that the person requested.")
    operation_counts: OperationCounts
    touched: list[str] = Field(default_factory=list, description="Ids of stages and tasks.")
    warnings: list[str] = Field(default_factory=list)
    errors: list[str] = Field(default_factory=list)
    mode_fallback_used: bool = False
    failed_mode: Mode | None = None
    fallback_mode: Mode | None = None
    fallback_reason: str | None = None
    plan: StoredPlan | None = None
    routing_state: RoutingState = RoutingState()
    llm_transform_summary: str | None = None


class RememberedFlow(Contract):
    """A pattern or note, or its result in a search."""

    memory_id: int
    kind: MemoryKind = "pattern"
    text: str = ""
    score: float | None = None
    refused: str | None = Field(default=None, description="Why it is not used.")


class MemoryAdd(Contract):
    """A memory to store."""

    text: str
    store_mode: Literal["append", "replace"]
    confidence: float | None = Field(default=None, ge=0, le=1)


class MemoryRetrieve(Contract):
    """A query for memories."""

    query_text: str = ""
    memory_id: int | None = None
    limit: int = Field(default=5, ge=1, le=50)
    confidence: float | None = Field(default=None, ge=0, le=1)


class MemoryPayload(Bounded):
    """Payload of `memory`: patterns that were searched or stored. No model takes part, so the mode is deterministic."""

    artifact_type: Literal["memory"] = "memory"
    action: Literal["add", "retrieve"]
    action_prompt_template: str = ""
    internal_action_prompt: str = ""
    action_results: list[str] = Field(default_factory=list)
    additive_prompt: str = ""
    inferred_prompt: str = ""
    effective_prompt: str = ""
    stored_memory: RememberedFlow | None = None
    retrieved_memories: list[RememberedFlow] = Field(default_factory=list)
    mcp_server_keys: list[str] = Field(default_factory=list)
    routing_state: RoutingState = RoutingState()
    execution_status: Literal["success", "success_with_warning"] = "success"
    fallback_used: bool = False
    fallback_reason: str | None = None
    failed_mode: Mode | None = None
    fallback_mode: Mode | None = None
    llm_guided_add: MemoryAdd | None = None
    llm_guided_retrieve: MemoryRetrieve | None = None


class MilestoneState(Contract):
    """State of a milestone: a phase, an iteration or the acceptance."""

    milestone_key: str
    status: Literal["planned", "in_progress", "completed"]
    iteration: int = 0
    detail: str = ""


class MilestonePayload(Bounded):
    """Payload of `milestone`."""

    artifact_type: Literal["milestone"] = "milestone"
    action: Literal["create_or_update", "mark_complete"]
    action_results: list[str] = Field(default_factory=list)
    additive_prompt: str = ""
    checkpoint_hit: bool
    before_milestone: MilestoneState | None = None
    milestone: MilestoneState
    routing_state: RoutingState = RoutingState()


class Evaluation(Contract):
    """A candidate for the next step, and whether its condition held."""

    connector_id: str
    condition_text: str
    matched: bool
    reason: str


class DecisionPayload(Bounded):
    """Payload of `decision`: a fork of the graph. The connectors are its edges."""

    artifact_type: Literal["decision"] = "decision"
    matched_connector_ids: list[str] = Field(default_factory=list)
    evaluations: list[Evaluation] = Field(default_factory=list)
    no_match: bool
    resolved_route_key: str | None = None
    resolved_route_path: str | None = None
    routing_state: RoutingState = RoutingState()


ArtifactPayload: TypeAlias = StoredPlanPayload | MemoryPayload | MilestonePayload | DecisionPayload
_PAYLOAD: TypeAdapter[ArtifactPayload] = TypeAdapter(
    Annotated[ArtifactPayload, Field(discriminator="artifact_type")], config=ConfigDict(defer_build=True)
)


@dataclass(frozen=True)
class NodeArtifact:
    """An artifact as a node reports it to its run.

    `memory_id` is the pattern that it is about. `answered`: it follows from the person's last answer, which the audit
    log has.
    """

    payload: ArtifactPayload
    memory_id: int | None = None
    answered: bool = False


class ArtifactView(Contract):
    """A stored artifact."""

    id: UUID
    artifact_type: ArtifactKind
    flowchart_id: UUID = Field(description="The session.")
    flowchart_run_id: UUID | None
    flowchart_node_id: str = Field(description="The graph's node.")
    memory_id: int | None = Field(default=None, description="The pattern that it is about.")
    payload: Annotated[ArtifactPayload, Field(discriminator="artifact_type")]
    request_id: str | None
    correlation_id: str | None
    audit_seq: int | None = Field(description="The row of the session's audit log that is the same fact.")
    created_at: datetime


def _absent(value: object) -> bool:
    return value is None


class _Envelope(Contract):
    ok: Literal[True] = True
    plan_id: UUID | None = Field(default=None, exclude_if=_absent)
    memory_id: int | None = Field(default=None, exclude_if=_absent)
    milestone_id: UUID | None = Field(default=None, exclude_if=_absent)
    flowchart_id: UUID | None = Field(default=None, exclude_if=_absent)
    flowchart_node_id: str | None = Field(default=None, exclude_if=_absent)
    request_id: str | None = Field(default=None, description="Of this request.")
    correlation_id: str | None = Field(default=None, exclude_if=_absent, description="Trace id of this request.")


class ArtifactPage(_Envelope):
    """Artifacts, newest first, with the ids of the request."""

    count: int = Field(description="Of all that fit.")
    limit: int
    offset: int
    items: list[ArtifactView]


class ArtifactDetail(_Envelope):
    """One artifact."""

    item: ArtifactView


class Memory(Contract):
    """A memory: a pattern (an accepted flow that new ones may start from) or a note of a person."""

    memory_id: int
    kind: MemoryKind = "pattern"
    name: str = ""
    text: str = Field(description="Of a pattern the requirement that it was made for.")
    instance: str
    created_at: datetime | None = None
    success_count: int = 0
    failure_count: int = 0


class NewMemory(RequestBody):
    """A note to remember."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"properties": {"store_mode": {"const": "append"}, "memory_id": {"type": "null"}}},
                {
                    "required": ["store_mode", "memory_id"],
                    "properties": {"store_mode": {"const": "replace"}, "memory_id": {"not": {"type": "null"}}},
                },
            ]
        }
    )

    text: Note
    store_mode: Literal["append", "replace"] = "append"
    memory_id: Whole | None = Field(default=None, ge=1, le=2**63 - 1, description="The note that `replace` is about.")
    instance: Line | None = Field(default=None, description="The default one when left out.")

    @model_validator(mode="after")
    def _is_about_one(self) -> Self:
        if (self.memory_id is not None) != (self.store_mode == "replace"):
            raise ValueError("`memory_id` goes with the store_mode `replace`, and only with that")
        return self


class MemoryPage(_Envelope):
    """Memories, with the id of the request."""

    count: int = Field(description="Of those in `items`.")
    limit: int
    offset: int
    items: list[Memory]


class MemoryDetail(_Envelope):
    """One memory."""

    item: Memory


class StoredPlanReport(Contract):
    """A plan with its artifacts."""

    session_id: UUID
    plan: StoredPlan | None
    artifacts: ArtifactPage | None = None


class MemoryReport(Contract):
    """Memories with their artifacts."""

    memories: list[Memory]
    artifacts: ArtifactPage | None = None


class MilestoneReport(Contract):
    """Milestones of a session, each in its latest state."""

    session_id: UUID
    milestones: list[MilestoneState]
    artifacts: ArtifactPage | None = None


def read_payload(row: Any) -> ArtifactPayload:
    """Parse a stored payload."""
    return _PAYLOAD.validate_python(row, extra="ignore")
