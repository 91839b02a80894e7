"""Flows as clients see them: facts for lists, pictures, summaries. Never a credential or a secret."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.patch import CanvasView, EditView, Finding
from flowise_dev_agent.patch.views.canvas_view import CanvasEdge, CanvasNode
from flowise_dev_agent.patch.views.flow_diff import FieldChange
from flowise_dev_agent.patch.views.picture import FlowPicture
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.plan import Capability, FlowKind, Part
from flowise_dev_agent.schemas.requests import BaseHash, Line, RequestBody, SentOps
from flowise_dev_agent.schemas.session import PublicStatus


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class FlowSession(_View):
    """A session on a flow, in short."""

    thread_id: UUID
    session_name: str | None
    status: PublicStatus
    outcome: str | None
    updated_at: datetime


class FlowFacts(_View):
    """Identifying facts of a flow."""

    id: str
    name: str
    type: str
    instance: str
    url: str | None = Field(description="URL in the Flowise editor.")
    nodes: int
    node_types: list[str] = Field(description="The eight most frequent ones.")
    categories: list[str] = Field(description="The person's own tags.")
    updated: str
    deployed: bool
    public: bool
    draft: bool = Field(description="The draft of a session.")
    changed_by: str | None = Field(
        default=None,
        description="Person who changed it last through this service; null: somebody in Flowise. In lists only.",
    )
    last_session: FlowSession | None = Field(default=None, description="The newest session on it; in lists only.")
    picture: FlowPicture | None = Field(default=None, description="In lists that are asked for pictures.")


class FlowPage(_View):
    """Flows that fit, best first; without words those changed last."""

    flows: list[FlowFacts]
    total: int = Field(description="Flows that fit, shown or not.")
    searched: int = Field(description="Flows of the instance that were looked at, 20 000 at most.")
    next_cursor: str | None = Field(default=None, description="Gets the next page; null on the last one.")


class StartFormField(_View):
    """A field of the form that starts a flow."""

    name: str
    label: str
    type: str = Field(description="`string`, `number`, `boolean` or `options`.")
    options: list[str] = Field(default_factory=list)


class StartForm(_View):
    """The form that starts a flow."""

    title: str
    description: str
    fields: list[StartFormField]


class FlowView(_View):
    """A flow on the server with its picture."""

    flow: FlowFacts
    etag: str = Field(default="", description=ETAG)
    graph: CanvasView
    form: StartForm | None = Field(default=None, description="Form that starts the flow, instead of a question.")


class FlowSummary(_View):
    """A flow on the server in words."""

    flow: FlowFacts
    etag: str = Field(default="", description=ETAG)
    summary: str = Field(
        description="Nodes with their values, then the connections. Long texts are given by their length, credentials "
        "and secrets only as set or not set."
    )


class PreviewNode(Contract):
    """A node of the picture, drawn as it will be; a removed one as it is."""

    node: CanvasNode
    state: Literal["existing", "new", "changed", "removed"]
    placed: bool = Field(description="True if the position comes from the flow in Flowise, false if code chose it.")
    purpose: str = Field(default="", description="Purpose from the plan.")
    model: str = Field(default="", description="The model that it asks.")
    prompt: str = Field(default="", description="The text that tells the model what to do; 4 000 characters of it.")
    values: list[FieldChange] = Field(
        default_factory=list,
        description="Values by field or path: for a new node those that differ from the defaults of its type, for a "
        "changed node those that change. `before` is empty if nothing was set. Secrets are hidden.",
    )
    parts: list[str] = Field(default_factory=list, description="Ids of the parts of the requirement that it serves.")


class PreviewEdge(Contract):
    """A connection of the picture."""

    edge: CanvasEdge
    state: Literal["existing", "new", "removed"]
    expected: bool = Field(
        default=False, description="Not in the plan: code expects it, from the types of the nodes or from their order."
    )


class Preview(Contract):
    """Preview of a session's change: the flow beside its current state."""

    source: Literal["plan", "ops", "flow"] = Field(
        description="Source of the picture: the plan, the compiled ops, or the written flow."
    )
    flow_name: str
    kind: FlowKind
    summary: str = Field(description="Summary of the changes in one line.")
    nodes: list[PreviewNode]
    edges: list[PreviewEdge]
    parts: list[Part] = Field(description="Parts of the requirement with the ids of the nodes in the picture.")
    unconnected: list[str] = Field(
        default_factory=list, description="New nodes whose connections are decided while the flow is built."
    )
    cut: bool = Field(default=False, description="Values were left out, because the flow has too many.")


class PreviewFlow(RequestBody):
    """The body of `POST /flows/preview`: a flow, or nothing, and the ops that a person made for it."""

    chatflow_id: UUID | None = Field(default=None, description="The flow to change; a new one when left out.")
    flowise_instance_id: Line | None = Field(default=None, description="The Flowise instance; the default one.")
    base_sha256: BaseHash | None = Field(default=None, description="`sha256` of the preview that the ops began with.")
    ops: SentOps | None = None


class FlowPreview(Contract):
    """The flow with the ops. Ops that cannot be compiled are left out of the picture and have a finding."""

    preview: Preview
    findings: list[Finding] = Field(description="With `op_index` for a finding on an op; else `where` is a node's id.")
    edits: list[EditView] = Field(description="The ops in words, one for each.")
    capability: Capability | None = Field(description="All that would be approved with the ops.")
    sha256: str = Field(description="Hash of the flow as the server has it now; empty for a new one.")
    stale: bool = Field(description="True if the flow is not the one of `base_sha256` any more.")
