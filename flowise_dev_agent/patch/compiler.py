"""Ops and schemas to ``flowData``: all or nothing, and the same bytes for the same input.

A batch is a set of statements about the flow to be, not a script: nodes are added first, then fields and credentials
are set, then connections are made. So independent ops may come in any order without changing a byte.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.patch.batch import Batch
from flowise_dev_agent.patch.connect_op import connect
from flowise_dev_agent.patch.diff import DiffSummary
from flowise_dev_agent.patch.graph import GraphIR
from flowise_dev_agent.patch.hashing import payload_sha256
from flowise_dev_agent.patch.node_ops import add_node, bind_credential, set_param
from flowise_dev_agent.patch.ops import AddNode, BindCredential, Connect, PatchOp, SetParam, patch_error
from flowise_dev_agent.patch.schema import Schemas


@dataclass(frozen=True, slots=True)
class CompileResult:
    """A compiled flow. ``sha256`` is that of ``flow_data`` in UTF-8."""

    flow_data: str
    sha256: str
    graph: GraphIR
    summary: DiffSummary


def compile_ops(base: GraphIR, ops: Sequence[PatchOp], schemas: Schemas) -> CompileResult:
    """Apply ``ops`` to ``base``.

    Raises PatchError with all findings in ``details["findings"]`` (EMPTY_PATCH, UNKNOWN_NODE_NAME, NODE_EXISTS,
    BAD_NODE_ID, UNKNOWN_NODE, UNKNOWN_PARAM, PARAM_IS_ANCHOR, PARAM_IS_CREDENTIAL, value codes of `values.normalize`,
    UNKNOWN_ANCHOR, UNKNOWN_OUTPUT, OUTPUT_CONFLICT, TYPE_MISMATCH, ANCHOR_OCCUPIED, REFERENCE_MISSING,
    NO_CREDENTIAL_FIELD, CREDENTIAL_NOT_UUID, CREDENTIAL_TYPE_MISMATCH); ``base`` is never changed.
    """
    batch = Batch(base, schemas)
    if not ops:
        batch.fail("EMPTY_PATCH", "There is no op to apply.")
    for index, op in sorted(enumerate(ops), key=lambda pair: _PHASE[type(pair[1])]):
        batch.index, batch.op = index, op
        _HANDLERS[type(op)](batch, op)
    if batch.findings:
        raise patch_error(sorted(batch.findings, key=lambda finding: finding.op_index or 0))
    graph = batch.finish()
    flow_data = graph.to_flow_data()
    return CompileResult(flow_data, payload_sha256(flow_data), graph, batch.summary)


_PHASE: Mapping[type[Any], int] = {AddNode: 0, SetParam: 1, BindCredential: 1, Connect: 2}
_HANDLERS: Mapping[type[Any], Callable[[Batch, Any], None]] = {
    AddNode: add_node,
    SetParam: set_param,
    BindCredential: bind_credential,
    Connect: connect,
}
