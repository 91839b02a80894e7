"""Views of flows for clients: facts for lists, pictures, differences, answers. They hold no credential or secret."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from flowise_dev_agent.patch import GraphIR, canvas_view, diff
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.change import Difference, FlowChange, public_ops_of_rows
from flowise_dev_agent.schemas.flows import StartForm, StartFormField

#: Entries of each list of a difference, and characters of its text; `summary` counts all.
_MOST_ENTRIES: Final = 1_000
_LONGEST_TEXT: Final = 20_000
_START: Final = "startAgentflow"
_STARTS: Final[Mapping[str, Literal["form", "schedule", "webhook"]]] = {
    "formInput": "form",
    "scheduleInput": "schedule",
    "webhookTrigger": "webhook",
}


def start_form(graph: GraphIR) -> StartForm | None:
    """Input form of a flow that starts with a form; None otherwise."""
    start = _start(graph)
    if starts_by(graph) != "form":
        return None
    rows: Any = start.get("formInputTypes")
    return StartForm(
        title=str(start.get("formTitle") or ""),
        description=str(start.get("formDescription") or ""),
        fields=[_field(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [],
    )


def starts_by(graph: GraphIR) -> Literal["chat", "form", "schedule", "webhook"]:
    """The way in which a run of the flow begins."""
    return _STARTS.get(str(_start(graph).get("startInputType")), "chat")


def server_of(link: str | None) -> str | None:
    """Address of the server that a link to its editor names."""
    return link and re.split(r"/(?:v2/agent)?canvas/", link, maxsplit=1)[0]


def _start(graph: GraphIR) -> Mapping[str, Any]:
    return next((node.inputs for node in graph.nodes if node.name == _START), {})


def _field(row: dict[str, Any]) -> StartFormField:
    options: Any = row.get("addOptions")
    return StartFormField(
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
    """Compare two states of a flow; None stands for a flow that does not exist."""
    return FlowChange(
        before=canvas_view(before) if before else None,
        after=canvas_view(after) if after else None,
        before_label=labels[0],
        after_label=labels[1],
        diff=difference(before or GraphIR.empty(), after or GraphIR.empty()),
        ops=public_ops_of_rows(ops),
    )


#: (instance id, chatflow id) -> where the flow opens in the Flowise editor, None when the instance is not known.
ChatflowLink = Callable[[str, str], str | None]
