"""What a session changes in a flow."""

from collections.abc import Iterable

from pydantic import ConfigDict, Field, TypeAdapter

from flowise_dev_agent.patch import AddedNode, CanvasView, Connected, NodeChange, PatchOp, public_op
from flowise_dev_agent.schemas.base import Contract, JsonMapping, Worded

_OPS: TypeAdapter[list[PatchOp]] = TypeAdapter(list[PatchOp], config=ConfigDict(defer_build=True))


class Difference(Contract):
    """What differs between two flows: in words, and by names. `moved` are nodes whose position alone differs."""

    summary: str = ""
    text: str = ""
    added: list[AddedNode] = Field(default_factory=list)
    removed: list[AddedNode] = Field(default_factory=list)
    changed: list[NodeChange] = Field(default_factory=list)
    connected: list[Connected] = Field(default_factory=list)
    disconnected: list[Connected] = Field(default_factory=list)
    moved: list[str] = Field(default_factory=list)


class Conflict(Contract):
    """Someone else saved the flow right after the session had written it. The texts are versions of the session."""

    chatflow_id: str
    ours: str = Field(description="SHA-256 of the text that the session wrote.")
    theirs: str = Field(description="SHA-256 of the text that the flow held after that.")


class FlowChange(Worded):
    """Two states of a flow and what differs. `before` is None for a flow that was new."""

    before: CanvasView | None
    after: CanvasView | None
    before_label: str
    after_label: str
    before_name: str | None = Field(default=None, description="What the flow was called, in comparisons of versions.")
    after_name: str | None = Field(default=None, description="The same of the other.")
    diff: Difference
    ops: list[PatchOp] = Field(description="The ops that led from one to the other, where they are known.")


class SessionChange(FlowChange):
    """What a session does to its flow."""

    chatflow_id: str | None
    draft_id: str | None = Field(description="The draft that the change is tried on, as long as there is one.")
    meanwhile: FlowChange | None = Field(
        description="What someone else changed since the flow was read, if that is so."
    )


def public_ops(ops: Iterable[PatchOp]) -> list[PatchOp]:
    """The ops without credentials and secrets."""
    return public_ops_of_rows(op.model_dump(mode="json") for op in ops)


def public_ops_of_rows(rows: Iterable[JsonMapping]) -> list[PatchOp]:
    """The same of ops as they are stored."""
    return _OPS.validate_python([public_op(row) for row in rows], extra="ignore")
