"""One node of a flow: as it is stored, or fresh from its type and not written out before that is asked for."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.patch.layout.columns import WIDTH, node_height
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.definitions import Definitions
from flowise_dev_agent.patch.model.json_text import as_dict, as_dicts, dump_json
from flowise_dev_agent.patch.model.lazy import lazy
from flowise_dev_agent.patch.model.prototype import MARK, Output, Prototype, Shown, input_suffix, read_outputs
from flowise_dev_agent.patch.model.visibility import refresh_visibility


class FlowNode:
    """A stored node, read tolerantly: what is absent reads as empty.

    Immutable by agreement, except for a copy of one's own (`copy`) before it is handed on. ``frame`` is the node as it
    stands on the canvas and ``own`` its data, both as far as ops change them; here that is all of ``raw``.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.frame = raw
        self.own: dict[str, Any] = raw["data"]
        self.id = str(raw["id"])
        #: The node type, for example ``chatOpenAI``.
        self.name = str(self.own.get("name") or "")
        self.inputs = as_dict(self.own.get("inputs"))
        self.definitions = Definitions(self.own)

    @property
    def raw(self) -> dict[str, Any]:
        """The node as Flowise stores it."""
        return self.frame

    @property
    def data(self) -> dict[str, Any]:
        return self.own

    @property
    def label(self) -> str:
        return str(self.own.get("label") or self.name)

    @property
    def category(self) -> str:
        return str(self.own.get("category") or "")

    @property
    def version(self) -> Any:
        """As stored: a number in a sound node."""
        return self.own.get("version")

    @lazy
    def is_note(self) -> bool:
        """Sticky notes take no part in the flow."""
        return self.frame.get("type") == v2.STICKY_NOTE or self.name in v2.NOTE_NAMES

    @lazy
    def is_agentflow(self) -> bool:
        """A node of an AGENTFLOW (V2), which has one unnamed input and outputs without types."""
        kind = self.frame.get("type")
        return kind in v2.AGENTFLOW_TYPES or (kind is None and self.category == v2.AGENTFLOW_CATEGORY)

    @property
    def parent(self) -> str:
        """Id of the iteration that the node stands in, or ''."""
        return str(self.frame.get("parentNode") or "")

    @property
    def anchors(self) -> list[dict[str, Any]]:
        return self.definitions.anchors

    @property
    def params(self) -> list[dict[str, Any]]:
        """Fields without the credential's."""
        return self.definitions.params

    @property
    def params_by_name(self) -> dict[str, list[dict[str, Any]]]:
        """A name may occur more than once, told apart by show and hide."""
        return self.definitions.params_by_name

    @property
    def credential_param(self) -> dict[str, Any] | None:
        return self.definitions.credential

    @property
    def connectable(self) -> dict[str, list[dict[str, Any]]]:
        """Inputs that take a connection by name: anchors, and fields that take variables."""
        return self.definitions.connectable

    def handle(self, entry: Mapping[str, Any]) -> str:
        """The editor's id of an input."""
        return str(entry.get("id") or "")

    def input_at(self, handle: str) -> dict[str, Any] | None:
        """The input that an edge with this handle arrives at."""
        for same_named in self.connectable.values():
            for entry in same_named:
                if self.handle(entry) == handle:
                    return entry
        return None

    def shows(self, entry: Mapping[str, Any]) -> bool:
        """Whether the editor draws an input."""
        return bool(entry.get("display", True))

    @property
    def credential(self) -> str:
        """The bound credential's id or ''."""
        return str(self.own.get("credential") or "")

    @lazy
    def output_anchors(self) -> list[dict[str, Any]]:
        """The node's own, whatever the schema says today."""
        return as_dicts(self.own.get("outputAnchors"))

    @lazy
    def outputs(self) -> tuple[Output, ...]:
        return read_outputs(self.id, self.name, self.output_anchors, agentflow=self.is_agentflow)

    def output_at(self, handle: str) -> Output | None:
        """The output that an edge with this handle leaves from."""
        for output in self.outputs:
            if output.handle == handle:
                return output
        return None

    @lazy
    def multi_output(self) -> bool:
        """The node gives one of several things, chosen by ``data.outputs.output``."""
        return any("options" in anchor for anchor in self.output_anchors)

    @property
    def names_outputs(self) -> bool:
        """An edge must say which output it leaves from: several to choose from, or several branches."""
        return self.multi_output or len(self.outputs) > 1

    @property
    def selected_output(self) -> str:
        return str(as_dict(self.own.get("outputs")).get("output") or "")

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in editor pixels, near enough where the node does not say."""
        width, height = self.frame.get("width"), self.frame.get("height")
        if not width or not height:
            if self.is_agentflow or self.is_note:
                usual: tuple[float, float] = v2.size(self.own, len(self.outputs))
            else:
                usual = WIDTH, height or node_height(self.own)
            width, height = width or usual[0], height or usual[1]
        return float(width), float(height)

    @lazy
    def text(self) -> str:
        """Compact JSON of ``raw``."""
        return dump_json(self.frame)

    # --- what the compiler does to a copy -------------------------------------------------------------------------

    def copy(self) -> "FlowNode":
        """The same node with ``frame``, ``own`` and ``inputs`` that may be changed in place."""
        return FlowNode({**self.frame, "data": {**self.own, "inputs": dict(self.inputs)}})

    def set_inputs(self, inputs: dict[str, Any]) -> None:
        self.inputs = self.own["inputs"] = inputs

    def set_output_anchors(self, anchors: list[dict[str, Any]]) -> None:
        self.own["outputAnchors"] = self.output_anchors = anchors
        self.outputs = read_outputs(self.id, self.name, anchors, agentflow=self.is_agentflow)

    def settled(self) -> "FlowNode":
        """The same node with its inputs shown and hidden by their present values."""
        if not self.is_note:
            self.own.update(refresh_visibility(self.own))
        return FlowNode(self.frame)  # nothing read before the last change is kept

    def placed(self, frame: dict[str, Any]) -> "FlowNode":
        """The same node, standing otherwise."""
        return FlowNode(frame)


class FreshNode(FlowNode):
    """A node made from a type. Its definitions are those of all of the type: ``raw`` is written out when asked for."""

    def __init__(self, prototype: Prototype, node_id: str) -> None:
        self.prototype = prototype
        self.id = node_id
        self.name = prototype.name
        self.inputs = prototype.fresh_inputs()
        self.own = {**prototype.data, "id": node_id, "inputs": self.inputs}
        self.frame = {"id": node_id, "type": prototype.canvas_type, "data": MARK}
        self.definitions = prototype.definitions
        self.shown: Shown = prototype.shown
        self.is_agentflow = prototype.is_step
        self.is_note = prototype.is_note
        self.multi_output = prototype.multi_output
        if prototype.branching:
            self.own["outputAnchors"] = self.output_anchors

    @property
    def raw(self) -> dict[str, Any]:
        return self._raw

    @lazy
    def _raw(self) -> dict[str, Any]:
        return {**self.frame, "data": self.data}

    @property
    def data(self) -> dict[str, Any]:
        return self._data

    @lazy
    def _data(self) -> dict[str, Any]:
        definitions = self.prototype.stored_definitions(self.id, self.shown)
        return {**self.own, **definitions, "outputAnchors": self.output_anchors}

    def handle(self, entry: Mapping[str, Any]) -> str:
        return f"{self.id}{input_suffix(entry)}"

    def shows(self, entry: Mapping[str, Any]) -> bool:
        return self.prototype.shows(entry, self.shown)

    @lazy
    def output_anchors(self) -> list[dict[str, Any]]:
        return self.prototype.output_anchors(self.id)

    @lazy
    def outputs(self) -> tuple[Output, ...]:
        return self.prototype.outputs(self.id)

    @property
    def size(self) -> tuple[float, float]:
        if self.is_agentflow or self.is_note or "width" in self.frame or "height" in self.frame:
            return super().size
        return WIDTH, self.prototype.height(self.shown)

    @lazy
    def text(self) -> str:
        before, _, after = dump_json(self.frame).partition(f'"{MARK}"')
        return f"{before}{self.prototype.text(self.own, self.shown)}{after}"

    def copy(self) -> "FreshNode":
        node = FreshNode(self.prototype, self.id)
        node.frame = self.frame.copy()
        node.own = self.own.copy()
        node.set_inputs(self.inputs.copy())
        node.shown = self.shown
        if self.prototype.branching:
            node.set_output_anchors(self.output_anchors)
        return node

    def settled(self) -> "FreshNode":
        self.shown = self.prototype.shown_with(self.inputs)
        return self

    def placed(self, frame: dict[str, Any]) -> "FreshNode":
        node = self.copy()
        node.frame = frame
        return node
