"""Checks on the final ``flowData`` string, before any byte of it is written.

Flowise saves anything: each rule here stands for a flow that was saved with 200 and then failed at its first question,
answered wrongly without saying so, or left the editor blank (Flowise 3.1.4, measured).
"""

from collections.abc import Mapping

from flowise_dev_agent.patch.findings import Finding, error
from flowise_dev_agent.patch.graph import GraphIR, parse_document
from flowise_dev_agent.patch.schema import Schemas

# Importing a rule module registers its rules.
from flowise_dev_agent.patch.validator import connections, credentials, nodes, params, topology
from flowise_dev_agent.patch.validator.context import FlowContext
from flowise_dev_agent.patch.validator.registry import RULES

__all__ = ["RULE_MODULES", "validate_flow"]

RULE_MODULES = (nodes, connections, topology, params, credentials)

_CHECKED_KINDS = frozenset({"CHATFLOW"})


def validate_flow(
    flow_data: str,
    *,
    schemas: Schemas,
    credentials: Mapping[str, str] | None,
    kind: str = "CHATFLOW",
    base_flow_data: str | None = None,
) -> list[Finding]:
    """All findings, in the order of rules and nodes; empty for a good flow. Any text may be given.

    ``credentials`` maps the instance's credential ids to their types; None means unknown, then only unbound ones are
    found. ``base_flow_data`` is the flow before an update: node types that no schema knows but that stood there already
    (community nodes) are warnings, new ones errors.
    """
    if kind not in _CHECKED_KINDS:
        return [error("KIND_UNSUPPORTED", f"Flows of type {kind} cannot be checked yet.", hint="Nothing is written.")]
    document, findings = parse_document(flow_data)
    if document is None:
        return findings
    base = parse_document(base_flow_data)[0] if base_flow_data else None
    context = FlowContext(
        graph=GraphIR(document),
        schemas=schemas,
        credentials=credentials,
        known_names=frozenset(node.name for node in GraphIR(base).nodes) if base else frozenset(),
    )
    return [finding for rule in RULES for finding in rule.check(context)]
