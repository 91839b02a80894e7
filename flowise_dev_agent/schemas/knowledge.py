"""Knowledge of each Flowise instance, and its refresh."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.schemas.base import Failure, Worded


class SnapshotInfo(BaseModel):
    """The committed snapshot of node types."""

    flowise_version: str
    fingerprint: str = Field(description="The first 12 hex digits.")
    node_count: int


class InstanceKnowledge(BaseModel):
    """Node types of one server. While `source` is `snapshot`, none were read from the server, and only `repaired` is
    set."""

    source: Literal["snapshot", "live"]
    repaired: int = Field(description="Node types that were asked of the server one by one.")
    flowise_version: str | None = None
    fingerprint: str | None = Field(default=None, description="The first 12 hex digits.")
    node_count: int | None = None
    age_secs: int | None = Field(default=None, description="Since the server last confirmed them.")
    drift: bool | None = Field(default=None, description="They differ from the snapshot.")


class KnowledgeReport(BaseModel):
    """The snapshot, and the knowledge about each server by instance id."""

    snapshot: SnapshotInfo
    instances: dict[str, InstanceKnowledge]


class StepResult(Worded):
    """Result of a step of a refresh. For node types it also says whether they changed."""

    count: int
    flowise_version: str | None = None
    changed: bool | None = None
    text: str | None = Field(default=None, description="The change in a sentence.")


class RefreshView(BaseModel):
    """A refresh. `step` is the current step, `result` the results of the finished ones."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    instance: str
    status: Literal["queued", "running", "done", "failed"]
    step: str | None
    steps_done: int
    steps: int
    result: dict[str, StepResult] = Field(description="By step.")
    error: Failure | None
    created_at: datetime
    updated_at: datetime


class KnowledgeView(BaseModel):
    """Knowledge about an instance, and its last refresh."""

    model_config = ConfigDict(frozen=True)

    instance: str
    endpoint: str
    nodes: InstanceKnowledge
    templates: int | None = Field(description="Marketplace templates; None as long as they were not read.")
    templates_age_secs: float | None
    refresh: RefreshView | None


class KnowledgeList(BaseModel):
    """All instances, the default one first, and the committed snapshot for comparison."""

    snapshot: SnapshotInfo
    instances: list[KnowledgeView]
