"""What clients see of flows: facts for lists, pictures, differences, answers. Never a credential or a secret."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.contracts.base import JsonMapping
from flowise_dev_agent.contracts.change import Difference, FlowChange, public_ops_of_rows
from flowise_dev_agent.contracts.etags import ETAG
from flowise_dev_agent.contracts.session import PublicStatus
from flowise_dev_agent.patch import CanvasView, GraphIR, canvas_view, diff
from flowise_dev_agent.patch.views.picture import FlowPicture

#: Entries of each list of a difference, and characters of its text; `summary` counts all.
_MOST_ENTRIES: Final = 1_000
_LONGEST_TEXT: Final = 20_000
_START: Final = "startAgentflow"


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
    changed_by: str | None = Field(
        default=None, description="Who changed it last through this service; null: somebody in Flowise. In lists only."
    )
    last_session: FlowSession | None = Field(default=None, description="The newest session on it; in lists only.")
    picture: FlowPicture | None = Field(default=None, description="In lists that are asked for pictures.")


class FlowPage(_View):
    """Flows that fit, best first; without words those changed last."""

    flows: list[FlowFacts]
    total: int = Field(description="Flows that fit, shown or not.")
    searched: int = Field(description="Flows of the instance that were looked at, 20 000 at most.")
    next_cursor: str | None = Field(default=None, description="Gets the next page; null on the last one.")


class FormField(_View):
    """A field of the form that starts a flow."""

    name: str
    label: str
    type: str = Field(description="`string`, `number`, `boolean` or `options`.")
    options: list[str] = Field(default_factory=list)


class StartForm(_View):
    """The form that starts a flow."""

    title: str
    description: str
    fields: list[FormField]


class FlowView(_View):
    """A flow on the server with its picture."""

    flow: FlowFacts
    etag: str = Field(default="", description=ETAG)
    graph: CanvasView
    form: StartForm | None = Field(default=None, description="What the flow asks for first, in place of a question.")


class FlowSummary(_View):
    """A flow on the server in words."""

    flow: FlowFacts
    etag: str = Field(default="", description=ETAG)
    summary: str = Field(
        description="Nodes with what is set on them, then who feeds whom. Long texts by their length, credentials and "
        "secrets only as set or not set."
    )


def start_form(graph: GraphIR) -> StartForm | None:
    """The form of a flow that starts with one."""
    start = next((node.inputs for node in graph.nodes if node.name == _START), {})
    if start.get("startInputType") != "formInput":
        return None
    rows: Any = start.get("formInputTypes")
    return StartForm(
        title=str(start.get("formTitle") or ""),
        description=str(start.get("formDescription") or ""),
        fields=[_field(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [],
    )


def _field(row: dict[str, Any]) -> FormField:
    options: Any = row.get("addOptions")
    return FormField(
        name=str(row.get("name") or ""),
        label=str(row.get("label") or row.get("name") or ""),
        type=str(row.get("type") or "string"),
        options=[str(one.get("option") or "") for one in options if isinstance(one, dict)]
        if isinstance(options, list)
        else [],
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
    ops: Sequence[JsonMapping] = (),
) -> FlowChange:
    """The view of two states; None is a flow that is not there."""
    return FlowChange(
        before=canvas_view(before) if before else None,
        after=canvas_view(after) if after else None,
        before_label=labels[0],
        after_label=labels[1],
        diff=difference(before or GraphIR.empty(), after or GraphIR.empty()),
        ops=public_ops_of_rows(ops),
    )
