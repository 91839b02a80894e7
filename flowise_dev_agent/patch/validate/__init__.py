"""Validation of the final ``flowData`` string, before anything is written.

Flowise saves anything. Each rule comes from a flow that was saved with 200 and then failed at its first question,
answered wrongly without an error, or left the editor blank (measured on Flowise 3.1.4).
"""

from collections.abc import Mapping

from flowise_dev_agent.patch.model.findings import Finding, error
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.model_uses import ModelEnds
from flowise_dev_agent.patch.model.named import with_names
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.patch.model.shape import parse_document

# Importing a rule module registers its rules.
from flowise_dev_agent.patch.validate import (
    agentflow,
    branches,
    conditions,
    connections,
    credentials,
    http_bodies,
    limits,
    models,
    nested,
    nodes,
    params,
    prompts,
    rows,
    teamwork,
    topology,
    variables,
)
from flowise_dev_agent.patch.validate.context import RULES, FlowContext, known_names
from flowise_dev_agent.patch.validate.params import CHOSEN_BY_ID, CUSTOM_TOOL

__all__ = ["CHOSEN_BY_ID", "CUSTOM_TOOL", "RULE_MODULES", "validate_flow"]

RULE_MODULES = (
    nodes,
    connections,
    topology,
    agentflow,
    branches,
    conditions,
    variables,
    http_bodies,
    params,
    limits,
    models,
    rows,
    nested,
    prompts,
    teamwork,
    credentials,
)

#: Flows of types other than CHATFLOW and AGENTFLOW are carried through, not built: only their shape is checked.
_KINDS = frozenset({"CHATFLOW", "AGENTFLOW", "MULTIAGENT", "ASSISTANT"})


def validate_flow(
    flow_data: str,
    *,
    schemas: Schemas,
    credentials: Mapping[str, str] | None,
    kind: str = "CHATFLOW",
    base_flow_data: str | None = None,
    tools: Mapping[str, str] | None = None,
    model_ends: ModelEnds | None = None,
) -> list[Finding]:
    """All findings, in the order of rules and nodes; empty for a valid flow. Any text may be given.

    ``credentials`` maps the instance's credential ids to their types; None means unknown, and then only missing ones
    are reported. ``base_flow_data`` is the flow before an update: node types without a schema are warnings if it has
    them (community nodes), else errors. ``tools`` maps ids of the instance's custom tools to names; None means unknown.
    ``model_ends`` are the models, by node type and id, that have ended or end soon.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, compile_ops
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
    document, findings = parse_document(flow_data)
    if document is None:
        return findings
    base = parse_document(base_flow_data)[0] if base_flow_data else None
    known = known_names(GraphIR(base)) if base else frozenset[str]()
    context = FlowContext(
        graph=GraphIR(document),
        schemas=schemas,
        credentials=credentials,
        known_names=known,
        kind=kind,
        tools=tools,
        model_ends=model_ends or {},
    )
    found = [finding for rule in RULES if kind in rule.kinds for finding in rule.check(context)]
    return with_names(found, context.graph, schemas)
