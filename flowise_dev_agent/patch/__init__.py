"""Flows as data: compile ops to ``flowData`` and back, check, compare and describe them. Pure functions, no I/O.

Everything works on a `GraphIR` and on the `NodeSchema`s of a server. Other packages import the names below from here,
and everything else from the modules of this package.
"""
# pyright: reportUnusedImport=false

from flowise_dev_agent.patch.compile.compiler import CompileResult, compile_ops
from flowise_dev_agent.patch.compile.decompiler import decompile
from flowise_dev_agent.patch.model.findings import Finding, errors
from flowise_dev_agent.patch.model.flow_data import (
    InputEntry,
    Inputs,
    NodeData,
    NodeType,
    OptionEntry,
    OutputEntry,
    Values,
)
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import payload_sha256
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import (
    OP_TYPES,
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetOutput,
    SetParam,
    SetParent,
    SetPosition,
    UnsetParam,
    UpgradeNode,
    example_op,
    op_json,
    ops_from_json,
    ops_from_list,
    whole_example,
)
from flowise_dev_agent.patch.model.schema import (
    KIND_OF_CATEGORY,
    InputAnchor,
    InputParam,
    NodeSchema,
    OutputOption,
    Schemas,
)
from flowise_dev_agent.patch.validate import CHOSEN_BY_ID, CUSTOM_TOOL, TOOL, VARIABLE, validate_flow
from flowise_dev_agent.patch.views.canvas_view import CanvasView, canvas_view, public_op
from flowise_dev_agent.patch.views.edit_view import EditView, edit_views
from flowise_dev_agent.patch.views.flow_diff import (
    AddedNode,
    Connected,
    FlowDiff,
    NodeChange,
    diff,
    hunks,
    is_same_node,
)
from flowise_dev_agent.patch.views.node_versions import OtherVersion, other_versions
from flowise_dev_agent.patch.views.summary import outline, summarize
