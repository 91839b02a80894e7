"""A session's flow as a picture, from the plan on."""

from typing import Literal

from pydantic import Field

from flowise_dev_agent.contracts.base import Contract
from flowise_dev_agent.contracts.plan import FlowKind, Part
from flowise_dev_agent.patch.views.canvas_view import CanvasEdge, CanvasNode
from flowise_dev_agent.patch.views.flow_diff import FieldChange


class PreviewNode(Contract):
    """A node of the picture, drawn as it will be; a removed one as it is."""

    node: CanvasNode
    state: Literal["existing", "new", "changed", "removed"]
    placed: bool = Field(description="The position is that of the flow in Flowise, not one that code chose.")
    purpose: str = Field(default="", description="What the plan says that it is for.")
    model: str = Field(default="", description="The model that it asks.")
    prompt: str = Field(default="", description="The text that tells the model what to do; 4 000 characters of it.")
    values: list[FieldChange] = Field(
        default_factory=list,
        description="What is set on it, by field or path: of a new node what differs from the defaults of its type, of "
        "a changed one what changes. `before` is empty for nothing. Secrets are hidden.",
    )
    parts: list[str] = Field(default_factory=list, description="Ids of the parts of the wish that it serves.")


class PreviewEdge(Contract):
    """A connection of the picture."""

    edge: CanvasEdge
    state: Literal["existing", "new", "removed"]
    expected: bool = Field(
        default=False, description="Not in the plan: code expects it, from the types of the nodes or from their order."
    )


class Preview(Contract):
    """What a session makes of its flow, put beside what there is now."""

    source: Literal["plan", "ops", "flow"] = Field(
        description="What it is drawn from: the plan, the ops that were compiled for it, or the flow that was written."
    )
    flow_name: str
    kind: FlowKind
    summary: str = Field(description="What changes, in one line.")
    nodes: list[PreviewNode]
    edges: list[PreviewEdge]
    parts: list[Part] = Field(description="The parts of the wish with the ids of the nodes in the picture.")
    unconnected: list[str] = Field(
        default_factory=list, description="New nodes whose connections are decided while the flow is built."
    )
    cut: bool = Field(default=False, description="Values were left out, because the flow has too many.")
