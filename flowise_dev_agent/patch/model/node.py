"""A node of a flow: its stored form, and new nodes as Flowise's editor makes them."""

from functools import cached_property
from typing import cast

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.definitions import Definitions
from flowise_dev_agent.patch.model.flow_data import InputEntry, Inputs, NodeData, NodeType, OutputEntry, StoredNode
from flowise_dev_agent.patch.model.json_text import as_dict, as_dicts
from flowise_dev_agent.patch.model.outputs import Output, output_anchors, read_outputs
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.model.suggest import resolve_case
from flowise_dev_agent.patch.model.visibility import refresh_visibility

_ANSWERING = frozenset({"Chains", "Agents", "Engine", "Multi Agents", "Sequential Agents"})


class FlowNode:
    """A node as Flowise stores it, read tolerantly: absent values read as empty.

    Immutable by convention: the compiler changes only a `copy`, and only before it passes it on.
    """

    def __init__(self, raw: StoredNode) -> None:
        self.raw = raw
        self.data = raw["data"]
        self.id = str(raw["id"])
        #: The node type, for example ``chatOpenAI``.
        self.name = str(self.data.get("name") or "")
        self.inputs: Inputs = as_dict(self.data.get("inputs"))

    @property
    def label(self) -> str:
        return str(self.data.get("label") or self.name)

    @property
    def category(self) -> str:
        return str(self.data.get("category") or "")

    @property
    def version(self) -> object:
        """The stored version; a number in a valid node."""
        return self.data.get("version")

    @property
    def is_note(self) -> bool:
        """True for sticky notes, which take no part in the flow."""
        return self.raw.get("type") == v2.STICKY_NOTE or self.name in v2.NOTE_NAMES

    @property
    def is_agentflow(self) -> bool:
        """True for a node of an AGENTFLOW (V2), which has one unnamed input and outputs without types."""
        kind = self.raw.get("type")
        return kind in v2.AGENTFLOW_TYPES or (kind is None and self.category == v2.AGENTFLOW_CATEGORY)

    @property
    def answers(self) -> bool:
        """True for a node that may end a chatflow: a chain, an agent, an engine, or what is set to end it."""
        return self.selected_output == "EndingNode" or self.category in _ANSWERING

    @property
    def parent(self) -> str:
        """Id of the iteration that holds the node, or ''."""
        return str(self.raw.get("parentNode") or "")

    @cached_property
    def definitions(self) -> Definitions:
        """The inputs that the node declares."""
        anchors = cast("list[InputEntry]", as_dicts(self.data.get("inputAnchors")))
        return Definitions(anchors, cast("list[InputEntry]", as_dicts(self.data.get("inputParams"))), self.name)

    @property
    def anchors(self) -> list[InputEntry]:
        return self.definitions.anchors

    @property
    def params(self) -> list[InputEntry]:
        """Fields without the credential field."""
        return self.definitions.params

    @property
    def params_by_name(self) -> dict[str, list[InputEntry]]:
        """Fields by name. A name may occur more than once, with different show and hide conditions."""
        return self.definitions.params_by_name

    @property
    def credential_param(self) -> InputEntry | None:
        return self.definitions.credential

    @property
    def connectable(self) -> dict[str, list[InputEntry]]:
        """Inputs that take a connection by name: anchors, and fields that take variables."""
        return self.definitions.connectable

    def input_at(self, handle: str) -> InputEntry | None:
        """The input that an edge with this handle ends at."""
        for same_named in self.connectable.values():
            for entry in same_named:
                if entry.get("id") == handle:
                    return entry
        return None

    @property
    def credential(self) -> str:
        """Id of the bound credential, or ''."""
        return str(self.data.get("credential") or "")

    @property
    def output_anchors(self) -> list[OutputEntry]:
        """The node's stored anchors, which may differ from the current schema."""
        return cast("list[OutputEntry]", as_dicts(self.data.get("outputAnchors")))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        return read_outputs(self.id, self.name, self.output_anchors, agentflow=self.is_agentflow)

    def output_called(self, name: str) -> Output | None:
        """The output of this name or label."""
        by_name = {output.name: output for output in self.outputs} | {output.label: output for output in self.outputs}
        return by_name.get(resolve_case(name, by_name) or "")

    def output_at(self, handle: str) -> Output | None:
        """The output that an edge with this handle leaves from."""
        for output in self.outputs:
            if output.handle == handle:
                return output
        return None

    @cached_property
    def multi_output(self) -> bool:
        """True if the node gives one of several outputs, chosen by ``data.outputs.output``."""
        return any("options" in anchor for anchor in self.output_anchors)

    @property
    def names_outputs(self) -> bool:
        """True if an edge must name the output that it leaves from: there are several outputs or branches."""
        return self.multi_output or len(self.outputs) > 1

    @property
    def selected_output(self) -> str:
        return str(as_dict(self.data.get("outputs")).get("output") or "")

    # --- changes by the compiler, on a copy -------------------------------------------------------------------------

    def copy(self) -> "FlowNode":
        """A copy whose ``raw``, ``data`` and ``inputs`` may be changed in place."""
        return FlowNode({**self.raw, "data": {**self.data, "inputs": dict(self.inputs)}})

    def set_inputs(self, inputs: Inputs) -> None:
        self.inputs = self.data["inputs"] = inputs

    def set_output_anchors(self, anchors: list[OutputEntry]) -> None:
        self.data["outputAnchors"] = anchors
        self.outputs = read_outputs(self.id, self.name, anchors, agentflow=self.is_agentflow)

    def finished(self) -> "FlowNode":
        """The node with the visibility of its inputs recomputed from their values."""
        if not self.is_note:
            refresh_visibility(self.data)
        return FlowNode(self.raw)  # a new object, without properties cached before the last change


def new_node(schema: NodeSchema, node_id: str) -> FlowNode:
    """A node of this type, without a place on the canvas."""
    raw: StoredNode = {
        "id": node_id,
        "type": v2.canvas_type(schema.name, agentflow=schema.is_agentflow),
        "data": init_node(schema, node_id, agentflow=schema.is_agentflow),
    }
    return FlowNode(raw)


def init_node(schema: NodeSchema, node_id: str, *, agentflow: bool) -> NodeData:
    """Port of the editor's ``initNode`` (3.1.4). With ``agentflow`` the outputs are branches."""
    node_type: NodeType = schema.raw
    anchors = v2.output_anchors(node_type, node_id) if agentflow else output_anchors(node_type, node_id)
    chosen = {str(anchor["name"]): str(anchor.get("default") or "") for anchor in anchors}
    data: NodeData = {
        **node_type,
        "id": node_id,
        "inputs": schema.new_inputs(),
        "inputAnchors": [_with_id(entry, node_id) for entry in schema.definitions.anchors],
        "inputParams": [_with_id(entry, node_id) for entry in schema.definitions.with_credential],
        "outputs": chosen if "outputs" in node_type else {},
        "outputAnchors": anchors,
    }
    if node_type.get("credential"):
        data["credential"] = ""
    refresh_visibility(data)
    return data


def _with_id(entry: InputEntry, node_id: str) -> InputEntry:
    return {**entry, "id": f"{node_id}-input-{entry['name']}-{entry['type']}"}
