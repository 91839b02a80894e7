"""State and settings of the service and of its Flowise servers. Never a key or a secret."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from flowise_dev_agent.schemas.base import Failure, Worded
from flowise_dev_agent.schemas.knowledge import KnowledgeReport


class Drift(BaseModel):
    """Difference between a server's node types and the committed snapshot; at most 20 names each."""

    snapshot_version: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    differs: bool


class InstanceView(Worded):
    """One Flowise server."""

    id: str
    default: bool
    endpoint: str
    state: Literal["ok", "unavailable"]
    version: str | None = None
    nodes: int | None = Field(default=None, description="Number of node types.")
    drift: Drift | None = None
    error: str | None = None


class InstanceList(BaseModel):
    """All servers of the settings, the default one first."""

    instances: list[InstanceView]


class FlowiseHealth(BaseModel):
    """State of a Flowise server, with its error if it does not respond."""

    endpoint: str
    state: Literal["ok", "unavailable"]
    error: Failure | None = None


class DatabaseState(BaseModel):
    """The database: its latency in ms, migrations that are not applied, and those of a later version of the service
    that this one cannot work beside.
    """

    state: Literal["ok", "unavailable"]
    latency_ms: float | None = None
    pending_migrations: list[str] = Field(default_factory=list)
    newer_migrations: list[str] = Field(default_factory=list)


class QueueState(BaseModel):
    """Runs that wait for a worker, the age of the oldest in seconds, and the number of workers."""

    name: str
    queued: int
    oldest_secs: float
    workers: int


class WorkerState(BaseModel):
    """The worker of this process, and the number of its active runs."""

    state: Literal["running", "restarting", "paused"]
    runs: int


class Readiness(BaseModel):
    """State of the parts that a new session needs."""

    database: DatabaseState
    queue: QueueState
    paused: bool = Field(
        default=False, description="Workers wait until `flowise-dev-agent resume`: nothing is run, sent or removed."
    )


class ProcessHealth(BaseModel):
    """State of this process and the database. Without a database there is no `queue` and no `knowledge`."""

    status: Literal["ok", "degraded", "unavailable"]
    feed: Literal["listening", "polling"]
    worker: WorkerState | None = Field(description="None when other processes do the work.")
    database: DatabaseState
    queue: QueueState | None = None
    paused: bool = Field(default=False, description="As in `/ready`.")
    knowledge: KnowledgeReport | None = Field(default=None, description="None while migrations are pending.")


class ReadyView(Readiness):
    """Response of a service that accepts new work."""

    status: Literal["ok"] = "ok"


class ModelCheck(BaseModel):
    """Abilities that a model was seen to have. Sizes are in tokens."""

    checked_at: datetime
    answers: bool
    schema_held: bool = Field(description="Its answers are held to a schema.")
    prompt_only: bool = Field(default=False, description="It is asked for JSON in words only.")
    tools: bool = Field(description="It calls tools.")
    tools_with_schema: bool = Field(description="It calls tools in a request that holds a schema, too.")
    reads_whole_prompt: bool = Field(description="It read a prompt of 3 000 tokens from beginning to end.")
    window: int = Field(description="Prompt and answer together.")
    output_tokens: int = Field(description="The longest answer.")


class ReasoningView(BaseModel):
    """The reasoning engine and the model that plans."""

    engine: str
    model: str
    error: Failure | None = Field(default=None, description="Why nothing plans: `connection_unreadable`.")


class HealthView(ProcessHealth):
    """State of the service, its model and its Flowise servers."""

    version: str
    reasoning: ReasoningView
    flowise: dict[str, FlowiseHealth] = Field(description="By instance id.")
    drift_policy: Literal["warn", "fail", "refresh"]
    model_stand_in: bool = Field(description="The models in Flowise are a local stand-in.")


class ModelView(Worded):
    """A model that sessions may plan with, as far as it is known. Its provider is not asked."""

    model: str
    checked: ModelCheck | None = Field(
        description="Result of the last check, by `doctor` or at connecting; null if none."
    )
    lacks: list[str] = Field(description="A sentence for each thing that is lost with this model.")


class InfoView(Worded):
    """Version of the service, the models that it plans with, and those that it could plan with."""

    version: str
    reasoning: ReasoningView
    models: list[ModelView] = Field(description="Models of the settings; empty without a model.")
    local_models: list[str] = Field(
        description="Models of an Ollama in reach. They are used only where settings say so."
    )
    offer: str | None = Field(description="Without a model: in one sentence, what one would change.")


class PhaseSettings(BaseModel):
    """Mode and model of one phase of reasoning."""

    mode: str
    model: str


class InstanceSettings(BaseModel):
    """A Flowise server of the settings."""

    id: str
    default: bool


class PublicSettings(BaseModel):
    """Settings of this service. Each is an environment variable of the documentation."""

    version: str
    auth: bool = Field(description="AGENT_API_KEY is set.")
    engine: str
    phases: dict[str, PhaseSettings]
    fallback_enabled: bool
    retry_count: int
    instances: list[InstanceSettings]
    schema_drift_policy: str
    limits: dict[str, Any] = Field(description="Ceilings of a session.")
    retention_days: dict[str, float] = Field(description="0 keeps for ever.")
    rate_limit_sessions_per_min: int = Field(description="0 is off.")
    worker_concurrency: int
    webhooks_signed: bool = Field(description="WEBHOOK_SECRET is set.")
    public_base_url: str | None
    tracing: bool
