"""Validation of the final ``flowData`` string, before anything is written.

Flowise saves anything. Each rule comes from a flow that was saved with 200 and then failed at its first question,
answered wrongly without an error, or left the editor blank (measured on Flowise 3.1.4).
"""

from collections.abc import Mapping

from flowise_dev_agent.patch.model.findings import Finding, error
from flowise_dev_agent.patch.model.graph import read_flow
from flowise_dev_agent.patch.model.model_uses import ModelEnds
from flowise_dev_agent.patch.model.named import with_names
from flowise_dev_agent.patch.model.schema import Schemas

# Importing a rule module registers its rules.
from flowise_dev_agent.patch.validate import (
    agentflow,
    answers,
    branches,
    conditions,
    connections,
    credentials,
    functions,
    http_bodies,
    limits,
    models,
    nested,
    nodes,
    params,
    prompts,
    providers,
    rows,
    sequential,
    server_settings,
    teamwork,
    topology,
    traits,
    variables,
)
from flowise_dev_agent.patch.validate.context import ALL_KINDS, ASSISTANT, RULES, FlowContext, ServerThings, known_names
from flowise_dev_agent.patch.validate.params import CHOSEN_BY_ID, CUSTOM_TOOL, TOOL, VARIABLE

__all__ = ["CHOSEN_BY_ID", "CUSTOM_TOOL", "RULE_MODULES", "TOOL", "VARIABLE", "validate_flow"]

RULE_MODULES = (
    nodes,
    connections,
    topology,
    agentflow,
    branches,
    answers,
    conditions,
    variables,
    http_bodies,
    params,
    functions,
    limits,
    models,
    providers,
    rows,
    nested,
    prompts,
    traits,
    teamwork,
    credentials,
    server_settings,
    sequential,
)

#: Errors also on nodes that no run reaches: the editor does not show the flow, or the flow gives something away.
_ANYWHERE = frozenset(
    {
        *("DUPLICATE_NODE_ID", "BAD_NODE_ID", "NODE_ID_MISMATCH", "DATA_FIELD_MISSING", "SECRET_IN_INPUTS"),
        *("TEXT_STALLS_SERVER", "ENDING_NODE_KIND", "ENDING_NODE_OUTPUT", "MULTIPLE_ENDING_NODES"),
    }
)
#: Codes of things that the server does not have.
_OF_THE_SERVER = frozenset({"NOT_ON_SERVER", "UNKNOWN_TOOL"})
_KINDS = frozenset({*ALL_KINDS, ASSISTANT})


def validate_flow(
    flow_data: str,
    *,
    schemas: Schemas,
    credentials: Mapping[str, str] | None,
    kind: str = "CHATFLOW",
    base_flow_data: str | None = None,
    server: ServerThings | None = None,
    model_ends: ModelEnds | None = None,
    unfinished: bool = False,
) -> list[Finding]:
    """All findings, in the order of rules and nodes; empty for a valid flow. Any text may be given.

    ``credentials`` maps the instance's credential ids to their types; None means unknown, and then only missing ones
    are reported. ``base_flow_data`` is the flow before an update: node types without a schema are warnings if it has
    them (community nodes), else errors. ``server`` are other things that the instance has, by kind and id; what is left
    out is unknown. ``model_ends`` are the models, by node type and id, that have ended or end soon.
    ``unfinished``: connections are still to come, so that nodes count that no run reaches yet.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, GraphIR, compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> ops = [AddNode(node_name="llmChain", node_id="llmChain_0")]
    >>> flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    >>> for finding in validate_flow(flow, schemas=schemas, credentials=None):
    ...     print(finding.code, finding.where, finding.field)
    REQUIRED_ANCHOR_UNCONNECTED llmChain_0 model
    REQUIRED_ANCHOR_UNCONNECTED llmChain_0 prompt
    """
    if kind not in _KINDS:
        return [
            error(
                "KIND_UNKNOWN", f"Flowise has no flows of type {kind!r}.", hint=f"One of {', '.join(sorted(_KINDS))}."
            )
        ]
    graph, findings = read_flow(flow_data)
    if graph is None:
        return findings
    base = read_flow(base_flow_data)[0] if base_flow_data else None
    known = known_names(base) if base else frozenset[str]()
    context = FlowContext(
        graph=graph,
        schemas=schemas,
        credentials=credentials,
        known_names=known,
        kind=kind,
        server=server or {},
        model_ends=model_ends or {},
    )
    found = [finding for rule in RULES if kind in rule.kinds for finding in rule.check(context)]
    told = found if unfinished else [_unless_unreached(finding, context) for finding in found]
    return with_names(told, context.graph, schemas)


def _unless_unreached(finding: Finding, flow: FlowContext) -> Finding:
    """The finding, as a warning if it is about how a node runs and no run reaches the node.

    What the server does not have is an error only where each run takes it.
    """
    node = finding.where
    if finding.severity == "warning" or flow.graph.node(node) is None or finding.code in _ANYWHERE:
        return finding
    if node not in flow.reached or node in flow.skipped:
        why = "No question runs the node."
    elif node not in flow.certain and finding.code in _OF_THE_SERVER:
        why = "The questions that take this branch fail."
    else:
        return finding
    return finding.model_copy(update={"severity": "warning", "detail": f"{finding.detail} ({why})"})
