"""Labels of fields, as the canvas shows them."""

from collections.abc import Iterable

from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.nested import parse_path


def field_label(entries: Iterable[InputEntry], param: str) -> str:
    """Label of a field, of one in a row that of its column; '' where the definitions do not have it."""
    label = ""
    for step in parse_path(param) or ():
        if isinstance(step, str):
            entry = next((one for one in entries if one["name"] == step), None)
            if entry is None:
                return ""
            label, entries = str(entry.get("label") or ""), entry.get("array") or ()
    return label
