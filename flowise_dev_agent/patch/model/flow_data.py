"""JSON types of ``flowData`` and node types, as Flowise stores and sends them.

Unknown keys are carried through unchanged. `shape.parse_document` checks the required ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

#: Values of a node's inputs by name: any JSON.
Inputs = dict[str, Any]
#: Read-only inputs.
Values = Mapping[str, Any]


class Conditions(TypedDict, total=False):
    """Visibility conditions of an entry: wanted values by the path of an input."""

    show: Values | None
    hide: Values | None


class OptionEntry(Conditions, total=False):
    """A choice of a field of type options."""

    name: Required[str]
    label: str


class InputEntry(Conditions, total=False):
    """An input that a node declares: a connection point or a field. On a node of a flow it has `id` and `display`."""

    name: Required[str]
    type: Required[str]
    label: str
    description: str
    warning: str
    id: str
    display: bool
    optional: bool
    default: Any
    options: Sequence[OptionEntry]
    array: Sequence["InputEntry"]
    tabs: Sequence["InputEntry"]
    tabIdentifier: str
    credentialNames: Sequence[str]
    loadMethod: str
    loadConfig: bool
    acceptVariable: bool
    additionalParams: bool
    freeSolo: bool
    fileType: str
    hidden: bool
    rows: int
    list: bool


class OutputEntry(TypedDict, total=False):
    """An output that a node type declares, an output anchor of a node, or an option of an anchor."""

    name: Required[str | int]
    id: str
    label: str | int | None
    description: str
    type: str
    baseClasses: Sequence[str]
    default: str | int
    options: Sequence["OutputEntry"]
    isAnchor: bool
    hidden: bool


class NodeType(TypedDict, total=False):
    """An entry of `GET /nodes`."""

    name: Required[str]
    label: str
    version: float
    type: str
    category: str
    description: str
    badge: str
    color: str
    baseClasses: Sequence[str]
    inputs: list[InputEntry]
    outputs: list[OutputEntry]
    credential: InputEntry
    hideOutput: bool


class NodeData(TypedDict, total=False):
    """``data`` of a node: its type, and the values of this node."""

    id: str
    name: str | None
    label: str
    version: float
    category: str
    color: str
    inputs: Inputs
    inputAnchors: list[InputEntry]
    inputParams: list[InputEntry]
    outputs: dict[str, str]
    outputAnchors: list[OutputEntry]
    credential: str
    description: str


class Position(TypedDict):
    """Position in editor pixels, relative to the parent if there is one."""

    x: float
    y: float


class Size(TypedDict):
    """Size in editor pixels."""

    width: float
    height: float


class StoredNode(TypedDict, total=False):
    """A node of a flow: its place on the canvas, and its `NodeData`."""

    id: Required[str]
    data: Required[NodeData]
    type: str | None
    position: Position
    positionAbsolute: Position
    width: float
    height: float
    style: Size
    parentNode: str
    extent: str
    selected: bool
    dragging: bool


class EdgeData(TypedDict, total=False):
    """Drawing data of an edge of an agentflow."""

    sourceColor: str
    targetColor: str
    edgeLabel: str
    isHumanInput: bool


class StoredEdge(TypedDict, total=False):
    """An edge of a flow."""

    id: str
    source: str
    sourceHandle: str
    target: str
    targetHandle: str
    type: str
    data: EdgeData
    zIndex: int


class Viewport(TypedDict):
    """The part of the canvas that the editor shows first."""

    x: float
    y: float
    zoom: float


class FlowData(TypedDict, total=False):
    """The whole document ``flowData``."""

    nodes: Required[list[StoredNode]]
    edges: Required[list[StoredEdge]]
    viewport: Viewport
