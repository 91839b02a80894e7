"""Declared inputs of a node: connection points and fields as Flowise describes them, and their types."""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final

from flowise_dev_agent.patch.model.flow_data import InputEntry, Values
from flowise_dev_agent.patch.model.visibility import is_visible, with_defaults

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


#: Node type -> fields that Flowise 3.1.4 reads without declaring them: of its editor's dialogs, or of former versions.
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("cheerioWebScraper", "playwrightWebScraper", "puppeteerWebScraper"), ("selectedLinks",)),
    **dict.fromkeys(("requestsDelete", "requestsGet"), ("description", "headers", "name", "queryParamsSchema", "url")),
    **dict.fromkeys(
        ("requestsPost", "requestsPut"), ("body", "description", "headers", "maxOutputLength", "name", "url")
    ),
    "arxiv": ("description", "name"),
    "azureOpenAI": ("streaming",),
    "chatPerplexity": ("returnImages", "returnRelatedQuestions", "searchDomainFilter", "searchRecencyFilter"),
    "conversationalRetrievalQAChain": ("systemMessagePrompt",),
    "elasticsearch": ("similarityMeasure",),
    "fireCrawl": ("metadata",),
    "mem0": ("aiPrefix", "api_version", "enable_graph", "filters", "host", "humanPrefix", "metadata"),
    "openAI": ("streaming",),
    "postgres": ("driver",),
}


@lru_cache(maxsize=4096)
def split_types(text: str) -> tuple[str, ...]:
    """``"A | B"`` and ``"A|B"`` as ``("A", "B")``."""
    return tuple(part for part in (piece.strip() for piece in text.split("|")) if part)


@lru_cache(maxsize=4096)
def type_set(text: str) -> frozenset[str]:
    """The types as a set, to intersect with others."""
    return frozenset(split_types(text))


class Definitions:
    """The inputs that a node or a node type declares, in order.

    ``with_credential`` holds all fields, ``node_name`` is the type.
    """

    def __init__(self, anchors: list[InputEntry], with_credential: list[InputEntry], node_name: str = "") -> None:
        self.anchors = anchors
        self.with_credential = with_credential
        self.node_name = node_name

    @classmethod
    def of(
        cls, entries: Iterable[InputEntry], credential: InputEntry | None = None, node_name: str = ""
    ) -> "Definitions":
        """Sort the declared inputs into connection points and fields."""
        anchors: list[InputEntry] = []
        params: list[InputEntry] = [credential] if credential else []
        for entry in entries:
            (params if entry["type"] in PARAM_TYPES else anchors).append(entry)
        return cls(anchors, params, node_name)

    @cached_property
    def params(self) -> list[InputEntry]:
        """Fields without the credential field."""
        return [entry for entry in self.with_credential if entry.get("type") != "credential"]

    @property
    def credential(self) -> InputEntry | None:
        return next((entry for entry in self.with_credential if entry.get("type") == "credential"), None)

    @cached_property
    def params_by_name(self) -> dict[str, list[InputEntry]]:
        """Fields by name. A name may occur more than once, with different show and hide conditions."""
        return _grouped(self.params)

    @cached_property
    def connectable(self) -> dict[str, list[InputEntry]]:
        """Inputs that take a connection by name: anchors, and fields that take variables."""
        return _grouped([*self.anchors, *(entry for entry in self.params if entry.get("acceptVariable"))])

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Number of each input, top to bottom: connections first, then fields."""
        names = dict.fromkeys(str(entry.get("name")) for entry in self.anchors + self.params)
        return {name: rank for rank, name in enumerate(names)}

    @cached_property
    def anchor_names(self) -> frozenset[str]:
        return frozenset(str(anchor.get("name")) for anchor in self.anchors)

    def undeclared(self, node_id: str) -> dict[str, InputEntry]:
        """Undeclared keys that the editor also writes or the server reads: configs of models and tools, tabs and their
        fields, links chosen by hand."""
        found: dict[str, InputEntry] = {name: {"name": name, "type": "any"} for name in _READ.get(self.node_name, ())}
        for entry in self.params:
            if entry.get("loadConfig"):
                found[f"{entry['name']}Config"] = {"name": f"{entry['name']}Config", "type": "config"}
            for tab in entry.get("tabs") or ():
                found[tab["name"]] = tab
            if tab_key := entry.get("tabIdentifier"):
                found[f"{tab_key}_{node_id}"] = {"name": tab_key, "type": "string"}
        return found

    def visible_anchors(self, inputs: Values) -> list[InputEntry]:
        """Connection points that the editor shows with these inputs; absent fields count as their defaults."""
        return _visible(self.anchors, with_defaults(self.anchors, inputs))

    def visible_params(self, inputs: Values) -> list[InputEntry]:
        """Fields that the editor shows with these inputs, on the node or behind its button."""
        shown = _visible(self.params, with_defaults(self.params, inputs))
        return [entry for entry in shown if not entry.get("hidden")]


def _visible(entries: list[InputEntry], inputs: Values) -> list[InputEntry]:
    return [entry for entry in entries if is_visible(entry, inputs)]


def _grouped(entries: list[InputEntry]) -> dict[str, list[InputEntry]]:
    grouped: dict[str, list[InputEntry]] = {}
    for entry in entries:
        grouped.setdefault(str(entry.get("name")), []).append(entry)
    return grouped
