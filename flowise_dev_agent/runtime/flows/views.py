"""What clients see of flows: facts for lists, pictures, differences, answers. Never a credential or a secret."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.patch import AddedNode, CanvasView, Connected, GraphIR, NodeChange, canvas_view, diff, public_op

#: Entries of each list of a difference, and characters of its text; `summary` counts all.
_MOST_ENTRIES: Final = 1_000
_LONGEST_TEXT: Final = 20_000


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class FlowFacts(_View):
    """What tells a flow from others."""

    id: str
    name: str
    type: str
    instance: str
    url: str | None = Field(description="Where it opens in the Flowise editor.")
    nodes: int
    node_types: list[str] = Field(description="The eight most frequent ones.")
    categories: list[str] = Field(description="The person's own tags.")
    updated: str
    deployed: bool
    public: bool
    draft: bool = Field(description="The draft of a session.")


class FlowPage(_View):
    """Flows that fit, best first; without words those changed last."""

    flows: list[FlowFacts]
    total: int = Field(description="Flows that fit, shown or not.")
    searched: int = Field(description="Flows of the instance that were looked at, 2 000 at most.")


class FlowView(_View):
    """A flow on the server with its picture."""

    flow: FlowFacts
    graph: CanvasView


class FlowSummary(_View):
    """A flow on the server in words."""

    flow: FlowFacts
    summary: str = Field(
        description="Nodes with what is set on them, then who feeds whom. Long texts by their length, credentials and "
        "secrets only as set or not set."
    )


class Difference(_View):
    """What differs between two flows: in words, and by names. `moved` are nodes that only stand elsewhere."""

    summary: str
    text: str
    added: list[AddedNode]
    removed: list[AddedNode]
    changed: list[NodeChange]
    connected: list[Connected]
    disconnected: list[Connected]
    moved: list[str]


class FlowChange(_View):
    """Two states of a flow and what lies between them. `before` is None for a flow that was new."""

    before: CanvasView | None
    after: CanvasView | None
    before_label: str
    after_label: str
    diff: Difference
    ops: list[dict[str, Any]] = Field(description="The ops that led from one to the other, where they are known.")


class SessionChange(FlowChange):
    """What a session does to its flow."""

    chatflow_id: str | None
    draft_id: str | None = Field(description="The draft that the change is tried on, as long as there is one.")
    meanwhile: FlowChange | None = Field(
        description="What someone else changed since the flow was read, if that is so."
    )


def difference(before: GraphIR, after: GraphIR) -> Difference:
    """The bounded difference of two flows."""
    found = diff(before, after)
    text = found.text
    return Difference(
        summary=found.summary,
        text=text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…",
        added=list(found.added[:_MOST_ENTRIES]),
        removed=list(found.removed[:_MOST_ENTRIES]),
        changed=list(found.changed[:_MOST_ENTRIES]),
        connected=list(found.connected[:_MOST_ENTRIES]),
        disconnected=list(found.disconnected[:_MOST_ENTRIES]),
        moved=list(found.moved[:_MOST_ENTRIES]),
    )


def change_of(
    before: GraphIR | None,
    after: GraphIR | None,
    *,
    labels: tuple[str, str],
    ops: list[dict[str, Any]] | None = None,
) -> FlowChange:
    """The view of two states; None is a flow that is not there."""
    return FlowChange(
        before=canvas_view(before) if before else None,
        after=canvas_view(after) if after else None,
        before_label=labels[0],
        after_label=labels[1],
        diff=difference(before or GraphIR.empty(), after or GraphIR.empty()),
        ops=[public_op(op) for op in ops or []],
    )
