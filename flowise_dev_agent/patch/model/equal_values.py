"""Compare field values as Flowise does, independent of their notation."""

import json
import re
from contextlib import suppress
from typing import Any, Final

from flowise_dev_agent.patch.model.agentflow import loop_target_id
from flowise_dev_agent.patch.model.attached_files import file_names
from flowise_dev_agent.patch.model.item_fields import FIELD, as_item_fields
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in

#: Step that a loop goes back to, as the editor stores it: its id, a dash and its title.
_LOOP_TARGET: Final = re.compile(r"[A-Za-z]\w*Agentflow_\d+-.+")


def held(stored: Any, wanted: Any) -> bool:
    """True if the stored value contains the wanted one; the compiler adds defaults and credentials to rows and
    settings.
    """
    return _within(_comparable(stored), _comparable(wanted))


def _within(stored: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(stored, dict) and all(_within(stored.get(key), item) for key, item in wanted.items())
    if isinstance(wanted, list):
        return isinstance(stored, list) and len(stored) == len(wanted) and all(map(_within, stored, wanted))
    # The compiler stores the text "true" as true where a field is a switch; it never stores true as a text.
    return stored == wanted or (isinstance(stored, bool) and wanted == str(stored).lower())


def same_value(one: Any, other: Any) -> bool:
    """True if Flowise treats both values as the same."""
    return _comparable(one) == _comparable(other)


def _comparable(value: Any) -> Any:
    """Normalise a value: Flowise also stores numbers as text. true is not "true": it compares strictly."""
    if isinstance(value, dict):
        return {key: _comparable(as_item_fields(item) if key == FIELD else item) for key, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return f"{float(value):g}"
    text = "" if value is None else str(value).strip()
    if _LOOP_TARGET.fullmatch(text):
        return loop_target_id(text)
    if stands_in(text):
        # A marked text becomes a file where a field takes files.
        return MARK
    if names := file_names(text):
        # A file is a name in the plan, a data URL in the compiled flow, and a storage path on the server.
        return ("file", *names)
    if text[:1] in ("[", "{"):
        # Rows of a table are stored as JSON text.
        with suppress(ValueError):
            return _comparable(json.loads(text))
    return f"{float(text):g}" if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", text) else text
