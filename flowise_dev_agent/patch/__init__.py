"""Flows as data: ops compiled to ``flowData`` and back, checked, compared, described. Pure functions, no I/O.

Everything here works on a `GraphIR` and on the `NodeSchema`s of a server. Other floors import from this package; what
is not named below they take from its modules.

Names are loaded when they are used: a client reads ops and drawn flows without the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        ops_from_json,
        ops_from_list,
        ops_json_schema,
    )
    from flowise_dev_agent.patch.model.schema import (
        KIND_OF_CATEGORY,
        InputAnchor,
        InputParam,
        NodeSchema,
        OutputOption,
        Schemas,
    )
    from flowise_dev_agent.patch.validate import CHOSEN_BY_ID, CUSTOM_TOOL, validate_flow
    from flowise_dev_agent.patch.views.canvas_view import CanvasView, canvas_view, public_op
    from flowise_dev_agent.patch.views.edit_view import EditView, edit_views
    from flowise_dev_agent.patch.views.flow_diff import AddedNode, Connected, FlowDiff, NodeChange, diff
    from flowise_dev_agent.patch.views.summary import outline, summarize

_HOMES = {
    "AddNode": "model.ops",
    "AddedNode": "views.flow_diff",
    "BindCredential": "model.ops",
    "CHOSEN_BY_ID": "validate",
    "CUSTOM_TOOL": "validate",
    "CanvasView": "views.canvas_view",
    "EditView": "views.edit_view",
    "edit_views": "views.edit_view",
    "CompileResult": "compile.compiler",
    "Connect": "model.ops",
    "Connected": "views.flow_diff",
    "Disconnect": "model.ops",
    "Finding": "model.findings",
    "FlowDiff": "views.flow_diff",
    "FlowEdge": "model.graph",
    "FlowNode": "model.node",
    "GraphIR": "model.graph",
    "InputAnchor": "model.schema",
    "InputEntry": "model.flow_data",
    "InputParam": "model.schema",
    "Inputs": "model.flow_data",
    "KIND_OF_CATEGORY": "model.schema",
    "NodeChange": "views.flow_diff",
    "NodeData": "model.flow_data",
    "NodeSchema": "model.schema",
    "NodeType": "model.flow_data",
    "OP_TYPES": "model.ops",
    "OptionEntry": "model.flow_data",
    "OutputEntry": "model.flow_data",
    "OutputOption": "model.schema",
    "PatchOp": "model.ops",
    "RemoveNode": "model.ops",
    "ReplaceNode": "model.ops",
    "Schemas": "model.schema",
    "SetLabel": "model.ops",
    "SetOutput": "model.ops",
    "SetParam": "model.ops",
    "SetParent": "model.ops",
    "SetPosition": "model.ops",
    "UnsetParam": "model.ops",
    "UpgradeNode": "model.ops",
    "Values": "model.flow_data",
    "canvas_view": "views.canvas_view",
    "compile_ops": "compile.compiler",
    "decompile": "compile.decompiler",
    "diff": "views.flow_diff",
    "errors": "model.findings",
    "example_op": "model.ops",
    "ops_from_json": "model.ops",
    "ops_from_list": "model.ops",
    "ops_json_schema": "model.ops",
    "outline": "views.summary",
    "payload_sha256": "model.json_text",
    "public_op": "views.canvas_view",
    "summarize": "views.summary",
    "validate_flow": "validate",
}

__all__ = [
    "CHOSEN_BY_ID",
    "CUSTOM_TOOL",
    "KIND_OF_CATEGORY",
    "OP_TYPES",
    "AddNode",
    "AddedNode",
    "BindCredential",
    "CanvasView",
    "CompileResult",
    "Connect",
    "Connected",
    "Disconnect",
    "EditView",
    "Finding",
    "FlowDiff",
    "FlowEdge",
    "FlowNode",
    "GraphIR",
    "InputAnchor",
    "InputEntry",
    "InputParam",
    "Inputs",
    "NodeChange",
    "NodeData",
    "NodeSchema",
    "NodeType",
    "OptionEntry",
    "OutputEntry",
    "OutputOption",
    "PatchOp",
    "RemoveNode",
    "ReplaceNode",
    "Schemas",
    "SetLabel",
    "SetOutput",
    "SetParam",
    "SetParent",
    "SetPosition",
    "UnsetParam",
    "UpgradeNode",
    "Values",
    "canvas_view",
    "compile_ops",
    "decompile",
    "diff",
    "edit_views",
    "errors",
    "example_op",
    "ops_from_json",
    "ops_from_list",
    "ops_json_schema",
    "outline",
    "payload_sha256",
    "public_op",
    "summarize",
    "validate_flow",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
