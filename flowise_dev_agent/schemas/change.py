"""Differences between flows, and changes that sessions make."""

from collections.abc import Iterable

from pydantic import ConfigDict, Field, TypeAdapter

from flowise_dev_agent.patch import AddedNode, CanvasView, Connected, NodeChange, PatchOp, public_op
from flowise_dev_agent.schemas.base import Contract, JsonMapping, Worded

_OPS: TypeAdapter[list[PatchOp]] = TypeAdapter(list[PatchOp], config=ConfigDict(defer_build=True))


class SettingChange(Worded):
    """A changed setting beside the flow. Both values are safe to show: short, secrets hidden, '' for none."""

    name: str = Field(description="Of the setting, for people.")
    path: str = Field(description="Column of Flowise and keys in it: `chatbotConfig.starterPrompts.0.prompt`.")
    before: str
    after: str


class Difference(Worded):
    """Difference of two flows, as text and as lists. `moved` lists nodes of which only the position differs."""

    summary: str = ""
    text: str = ""
    added: list[AddedNode] = Field(default_factory=list)
    removed: list[AddedNode] = Field(default_factory=list)
    changed: list[NodeChange] = Field(default_factory=list)
    connected: list[Connected] = Field(default_factory=list)
    disconnected: list[Connected] = Field(default_factory=list)
    moved: list[str] = Field(default_factory=list)
    settings: list[SettingChange] | None = Field(
        default_factory=list,
        description="Of versions and writes: what differs beside the flow; null where an older version has no record.",
    )


class RepairedValue(Worded):
    """Value that a repair changed after the approval, and what it was changed for."""

    node: str = Field(description="Title of the node.")
    field: str
    before: str
    after: str
    reason: str = ""


class Conflict(Contract):
    """Conflict: someone else saved the flow right after the session's write. Both texts are stored as versions."""

    chatflow_id: str
    ours: str = Field(description="SHA-256 of the text that the session wrote.")
    theirs: str = Field(description="SHA-256 of the text that the flow held after that.")


class FlowChange(Worded):
    """Two states of a flow and their difference. `before` is None for a new flow."""

    before: CanvasView | None
    after: CanvasView | None
    before_label: str
    after_label: str
    before_name: str | None = Field(default=None, description="Name of the flow before, in comparisons of versions.")
    after_name: str | None = Field(default=None, description="Name of the flow after, in comparisons of versions.")
    diff: Difference
    ops: list[PatchOp] = Field(description="The ops that made the change, if known.")


class SessionChange(FlowChange):
    """Change of a session to its flow."""

    chatflow_id: str | None
    draft_id: str | None = Field(description="The draft that the change is tried on, as long as there is one.")
    meanwhile: FlowChange | None = Field(description="Changes by someone else since the flow was read, if any.")


def public_ops(ops: Iterable[PatchOp]) -> list[PatchOp]:
    """Remove credentials and secrets from ops."""
    return public_ops_of_rows(op.model_dump(mode="json") for op in ops)


def public_ops_of_rows(rows: Iterable[JsonMapping]) -> list[PatchOp]:
    """Remove credentials and secrets from stored ops."""
    return _OPS.validate_python([public_op(row) for row in rows], extra="ignore")
