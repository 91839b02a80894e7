"""Compile ops and schemas to ``flowData``: all or nothing, and deterministic.

A batch describes the flow to be, it is no script. Whatever their order, ops run in phases: remove and add nodes, cut
connections, replace nodes, set fields and credentials, connect. So independent ops may come in any order without
changing a byte.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from flowise_dev_agent.patch.compile.agentflow import complete_conditions, derive_fields, name_loop_targets
from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.compile.connect_op import connect
from flowise_dev_agent.patch.compile.credentials import bind_chosen, bind_credential
from flowise_dev_agent.patch.compile.edit_ops import disconnect, remove_node, set_parent, set_position
from flowise_dev_agent.patch.compile.node_ops import (
    add_node,
    set_deferred_param,
    set_label,
    set_output,
    set_param,
    unset_param,
)
from flowise_dev_agent.patch.compile.replace_op import replace_node, report_lost, upgrade_node
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.json_text import payload_sha256
from flowise_dev_agent.patch.model.named import with_names
from flowise_dev_agent.patch.model.nested import is_path
from flowise_dev_agent.patch.model.ops import (
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
    patch_error,
)
from flowise_dev_agent.patch.model.schema import Schemas


@dataclass(frozen=True)
class CompileResult:
    """A compiled flow."""

    graph: GraphIR

    @cached_property
    def flow_data(self) -> str:
        """The JSON text that Flowise stores."""
        return self.graph.to_flow_data()

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of ``flow_data`` in UTF-8, lower-case hex."""
        return payload_sha256(self.flow_data)


def compile_ops(
    base: GraphIR,
    ops: Sequence[PatchOp],
    schemas: Schemas,
    *,
    credentials: Mapping[str, str] | None = None,
    unbound: Collection[str] = (),
) -> CompileResult:
    """Apply ``ops`` to ``base``.

    ``credentials`` are those that were chosen, type to id: what the ops add or choose gets them without an op that says
    so, as do the nodes of the base that ``unbound`` names.

    Raises PatchError with all findings in ``details["findings"]`` (EMPTY_PATCH, UNKNOWN_NODE_NAME, NODE_EXISTS,
    BAD_NODE_ID, UNKNOWN_NODE, UNKNOWN_PARAM, PARAM_IS_ANCHOR, PARAM_IS_CREDENTIAL, value codes of `values.normalize`,
    UNKNOWN_ANCHOR, UNKNOWN_OUTPUT, OUTPUT_CONFLICT, TYPE_MISMATCH, KIND_MISMATCH, ANCHOR_OCCUPIED, REFERENCE_MISSING,
    NOT_CONNECTED, BAD_PARENT, NO_CREDENTIAL_FIELD, CREDENTIAL_NOT_UUID, CREDENTIAL_TYPE_MISMATCH); ``base`` is never
    changed.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> ops = [
    ...     AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"temperature": 0.2}),
    ...     AddNode(node_name="conversationChain", node_id="conversationChain_0"),
    ...     Connect(
    ...         source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"
    ...     ),
    ... ]
    >>> result = compile_ops(GraphIR.empty(), ops, schemas)
    >>> result.graph.node("conversationChain_0").inputs["model"]
    '{{chatOpenAI_0.data.instance}}'
    >>> result.flow_data[:11], len(result.sha256)
    ('{"nodes":[{', 64)

    A mistake names the op and what to do:

    >>> compile_ops(result.graph, [SetParam(node_id="chatOpenAI_0", param_name="temprature", value=1)], schemas)
    Traceback (most recent call last):
    flowise_dev_agent.errors.PatchError: The patch cannot be used: UNKNOWN_PARAM (op 0 SetParam, ...
    """
    batch = Batch(base, schemas, credentials or {})
    if not ops:
        batch.fail("EMPTY_PATCH", "There is no op to apply.")
    phases: list[list[tuple[int, PatchOp]]] = [[] for _ in range(_PHASES)]
    for index, op in enumerate(ops):
        phases[_phase(op)].append((index, op))
    _apply(batch, chain.from_iterable(phases[: _SET_FIELDS + 1]))
    complete_conditions(batch)
    derive_fields(batch)
    # A tool is chosen before its settings, in whatever order they are given.
    for index, op, name, value in sorted(batch.deferred, key=lambda one: (one[0], _depth(one[2]))):
        batch.index, batch.op = index, op
        set_deferred_param(batch, op, name, value)
    _apply(batch, sorted(phases[_SET_INNER], key=lambda one: _depth(_path(one[1]))))
    derive_fields(batch)
    _apply(batch, chain.from_iterable(phases[_SET_INNER + 1 :]))
    name_loop_targets(batch)
    report_lost(batch)
    if batch.credentials and not batch.findings:
        bind_chosen(batch, ops, unbound)
    if batch.findings:
        found = sorted(batch.findings, key=lambda finding: finding.op_index or 0)
        raise patch_error(with_names(found, batch.base.with_parts(list(batch.nodes.values()), []), schemas))
    return CompileResult(batch.finish())


def _apply(batch: Batch, steps: Iterable[tuple[int, PatchOp]]) -> None:
    for index, op in steps:
        batch.index, batch.op = index, op
        _HANDLERS[type(op)](batch, op)


#: Plain fields decide which branches an agentflow node has, and which models and tools are inside it.
_SET_FIELDS = 4
#: Fields inside a model or tool exist only after the plain fields are set. A new row may be a branch or a tool too.
_SET_INNER = 5
_PHASES = 8
_PHASE: Mapping[type[Any], int] = {
    RemoveNode: 0,
    AddNode: 1,
    Disconnect: 2,
    ReplaceNode: 3,
    UpgradeNode: 3,
    SetParam: _SET_FIELDS,
    UnsetParam: _SET_FIELDS,
    SetLabel: _SET_FIELDS,
    SetParent: _SET_FIELDS,
    SetPosition: _SET_FIELDS,
    BindCredential: 6,
    SetOutput: 6,
    Connect: 7,
}
_HANDLERS: Mapping[type[Any], Callable[[Batch, Any], None]] = {
    RemoveNode: remove_node,
    AddNode: add_node,
    Disconnect: disconnect,
    ReplaceNode: replace_node,
    UpgradeNode: upgrade_node,
    SetParam: set_param,
    UnsetParam: unset_param,
    SetLabel: set_label,
    SetParent: set_parent,
    SetPosition: set_position,
    BindCredential: bind_credential,
    SetOutput: set_output,
    Connect: connect,
}


def _path(op: PatchOp) -> str:
    return op.param_name if isinstance(op, (SetParam, UnsetParam)) else ""


def _depth(path: str) -> int:
    """Models and tools around a field."""
    return path.count("Config.")


def _phase(op: PatchOp) -> int:
    phase = _PHASE[type(op)]
    if phase == _SET_FIELDS and isinstance(op, (SetParam, UnsetParam)) and is_path(op.param_name):
        return _SET_INNER
    return phase
