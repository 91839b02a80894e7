"""What differs between two states of a flow, in words and as JSON."""

import json
from typing import Any

from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.views.flow_diff import diff

_MOST_ENTRIES = 100
_LONGEST_TEXT = 6_000


def changes(before: GraphIR, after: GraphIR) -> dict[str, Any]:
    """`{summary, text, added, removed, changed, connected, disconnected, moved}` as `patch.flow_diff` names them.

    Bounded: at most 100 entries a list and 6 000 characters of text; `summary` counts all.
    """
    found = diff(before, after)
    data: dict[str, Any] = json.loads(json.dumps(found.as_json()))
    text = found.text if len(found.text) <= _LONGEST_TEXT else f"{found.text[: _LONGEST_TEXT - 1]}…"
    return {"summary": found.summary, "text": text, **{key: items[:_MOST_ENTRIES] for key, items in data.items()}}
