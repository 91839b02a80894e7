"""What a node declares: connection points and fields as Flowise describes them, and the types that they go by."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flowise_dev_agent.patch.model.json_text import as_dicts
from flowise_dev_agent.patch.model.lazy import lazy
from flowise_dev_agent.patch.model.visibility import is_conditional, is_visible, with_defaults

#: Input types that the editor draws as fields; everything else is an anchor. A whitelist, not a matter of letter case:
#: setVariable has the anchor type ``string | number | boolean | json | array``.
PARAM_TYPES = frozenset(
    {
        "asyncOptions",
        "asyncMultiOptions",
        "options",
        "multiOptions",
        "array",
        "datagrid",
        "string",
        "number",
        "boolean",
        "password",
        "json",
        "code",
        "date",
        "file",
        "folder",
        "tabs",
        "conditionFunction",
        "timePicker",
        "weekDaysPicker",
        "monthDaysPicker",
        "datePicker",
    }
)


@lru_cache(maxsize=4096)
def split_types(text: str) -> tuple[str, ...]:
    """``"A | B"`` and ``"A|B"`` as ``("A", "B")``."""
    return tuple(part for part in (piece.strip() for piece in text.split("|")) if part)


@lru_cache(maxsize=4096)
def type_set(text: str) -> frozenset[str]:
    """The same types, to ask what they have in common with others."""
    return frozenset(split_types(text))


class Definitions:
    """The inputs that a node declares, in order. Fresh nodes of a type share one of these: nothing here is changed.

    An entry says what all nodes of the type say; what belongs to one node is asked of that (`FlowNode.handle`,
    `FlowNode.shows`).
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Takes anything that holds ``inputAnchors`` and ``inputParams``, read tolerantly."""
        self._data = data

    @lazy
    def anchors(self) -> list[dict[str, Any]]:
        return as_dicts(self._data.get("inputAnchors"))

    @lazy
    def with_credential(self) -> list[dict[str, Any]]:
        """Fields, and that of the credential among them."""
        return as_dicts(self._data.get("inputParams"))

    @lazy
    def params(self) -> list[dict[str, Any]]:
        """Fields without the credential's."""
        return [entry for entry in self.with_credential if entry.get("type") != "credential"]

    @lazy
    def credential(self) -> dict[str, Any] | None:
        return next((entry for entry in self.with_credential if entry.get("type") == "credential"), None)

    @lazy
    def params_by_name(self) -> dict[str, list[dict[str, Any]]]:
        """A name may occur more than once, told apart by show and hide."""
        return _grouped(self.params)

    @lazy
    def connectable(self) -> dict[str, list[dict[str, Any]]]:
        """Inputs that take a connection by name: anchors, and fields that take variables."""
        return _grouped([*self.anchors, *(entry for entry in self.params if entry.get("acceptVariable"))])

    @lazy
    def ranks(self) -> dict[str, int]:
        """Number of each input, top to bottom: connections first, then fields."""
        names = dict.fromkeys(str(entry.get("name")) for entry in self.anchors + self.params)
        return {name: rank for rank, name in enumerate(names)}

    @lazy
    def drawn_anchors(self) -> "Drawn":
        return Drawn(self.anchors, self.anchors)

    @lazy
    def drawn_params(self) -> "Drawn":
        """Fields that the editor has a place for, on the node or behind its button."""
        return Drawn(self.params, [entry for entry in self.params if not entry.get("hidden")])

    @lazy
    def nesting(self) -> list[dict[str, Any]]:
        """Fields that models and tools may stand in."""
        return [entry for entry in self.params if entry.get("loadConfig") or entry.get("type") == "array"]

    @lazy
    def _beside(self) -> list[dict[str, Any]]:
        return [entry for entry in self.params if entry.keys() & {"loadConfig", "tabs", "tabIdentifier"}]

    def undeclared(self, node_id: str) -> dict[str, Mapping[str, Any]]:
        """Keys that the editor writes beside declared ones: configs of models and tools, tabs and what they hold."""
        found: dict[str, Mapping[str, Any]] = {}
        for entry in self._beside:
            if entry.get("loadConfig"):
                found[f"{entry['name']}Config"] = {"name": f"{entry['name']}Config", "type": "config"}
            for tab in entry.get("tabs") or ():
                found[str(tab["name"])] = tab
            if tab_key := entry.get("tabIdentifier"):
                found[f"{tab_key}_{node_id}"] = {"name": tab_key, "type": "string"}
        return found

    @lazy
    def anchor_names(self) -> frozenset[str]:
        return frozenset(str(anchor.get("name")) for anchor in self.anchors)


class Drawn:
    """Inputs of one kind as the editor draws them in a state of the node."""

    def __init__(self, entries: list[dict[str, Any]], drawable: list[dict[str, Any]]) -> None:
        self._defaults = with_defaults(entries, {})
        self._entries = drawable
        self._conditional = {number for number, entry in enumerate(drawable) if is_conditional(entry)}

    def given(self, inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Those that are shown with these inputs; a field that a stored node lacks counts as its default."""
        if not self._conditional:
            return self._entries
        read = {**self._defaults, **inputs}
        return [
            entry
            for number, entry in enumerate(self._entries)
            if number not in self._conditional or is_visible(entry, read)
        ]


def _grouped(entries: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        grouped.setdefault(str(entry.get("name")), []).append(entry)
    return grouped
