"""Rules on single nodes: identity, type, and the fields that the editor needs to draw them."""

from collections.abc import Iterator

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import NODE_ID
from flowise_dev_agent.patch.model.schema import KIND_OF_CATEGORY
from flowise_dev_agent.patch.model.suggest import closest_types, resolve_case
from flowise_dev_agent.patch.validate.context import AGENTFLOW, CHATFLOW, MULTIAGENT, FlowContext, rule


@rule("DUPLICATE_NODE_ID", "BAD_NODE_ID", "NODE_ID_MISMATCH")
def node_ids(flow: FlowContext) -> Iterator[Finding]:
    """Ids are unique, usable in handles and references, and the same inside and outside ``data``."""
    seen: set[str] = set()
    for node in flow.graph.nodes:
        if node.id in seen:
            yield error("DUPLICATE_NODE_ID", "Two nodes have this id.", where=node.id, hint="Give one another id.")
            continue
        seen.add(node.id)
        if not NODE_ID.fullmatch(node.id):
            yield error(
                "BAD_NODE_ID",
                "A node id may contain only letters, digits and _; '-' breaks the editor, '.' the server.",
                where=node.id,
                hint=f"For example {node.name or 'node'}_0.",
            )
        if node.data.get("id") != node.id:
            yield error("NODE_ID_MISMATCH", "`data.id` differs from the node's id.", where=node.id, field="id")


@rule("DATA_FIELD_MISSING")
def data_fields(flow: FlowContext) -> Iterator[Finding]:
    """Required keys of a node, which the server or the editor reads without a check."""
    for node in flow.nodes:
        for name in _missing_fields(node):
            yield error(
                "DATA_FIELD_MISSING",
                f"`{name}` is missing: the server fails on it or the editor stays blank.",
                where=node.id,
                field=name,
                hint=f"UpgradeNode on {node.id} writes the node again with the same values.",
            )


def _missing_fields(node: FlowNode) -> Iterator[str]:
    data = node.data
    for name in ("name", "category"):
        if not isinstance(data.get(name), str):
            yield name
    if not isinstance(data.get("inputs"), dict):
        yield "inputs"
    for name in ("inputAnchors", "inputParams", "outputAnchors"):
        if not isinstance(data.get(name), list):
            yield name
    if node.multi_output and not isinstance(data.get("outputs"), dict):
        yield "outputs"
    if not isinstance(node.raw.get("position"), dict):
        yield "position"
    if not isinstance(node.raw.get("type"), str):
        yield "type"


@rule("UNKNOWN_NODE_NAME", "UNVERIFIED_NODE")
def node_types(flow: FlowContext) -> Iterator[Finding]:
    """Known node types. The server fails on an unknown type without naming the node."""
    for node in flow.nodes:
        if not node.name or flow.schema(node):
            continue
        yield unknown_type(flow, node.name, node.id, "name")


def unknown_type(flow: FlowContext, name: str, where: str, field: str, *, code: str = "UNKNOWN_NODE_NAME") -> Finding:
    """A finding for a type without a schema: a warning if the flow had it before, else an error."""
    right = resolve_case(name, flow.schemas)
    if right is None and name in flow.known_names:
        return warning(
            "UNVERIFIED_NODE",
            f"The type {name!r} is not in the catalogue; it was in the flow before and stays unverified.",
            where=where,
            field=field,
        )
    near = (right,) if right else closest_types(name, flow.schemas)
    return Finding(
        code=code,
        severity="error",
        detail=f"This Flowise server has no node type {name!r}.",
        where=where,
        field=field,
        allowed=near,
        hint=f"Did you mean {near[0]!r}?" if near else "",
    )


@rule("VERSION_DRIFT")
def versions(flow: FlowContext) -> Iterator[Finding]:
    """Outdated nodes. The editor marks them; the server runs its own version of them."""
    for node in flow.nodes:
        schema = flow.schema(node)
        if schema and flow.version_drifted(node):
            yield warning(
                "VERSION_DRIFT",
                f"Stored as version {node.data.get('version', 'none')}, the server has {schema.version:g}.",
                where=node.id,
                field="version",
                hint="It runs as it is; leave it, or use UpgradeNode if a newer field is needed.",
            )


@rule("KIND_MISMATCH")
def kinds(flow: FlowContext) -> Iterator[Finding]:
    """Nodes that run in this type of flow."""
    for node in flow.nodes:
        belongs = KIND_OF_CATEGORY.get(node.category, "CHATFLOW")
        # Models, tools and stores are nodes of their own in the sequential flows too.
        if belongs == flow.kind or not node.category or (belongs, flow.kind) == (CHATFLOW, MULTIAGENT):
            continue
        yield error(
            "KIND_MISMATCH",
            f"Nodes of category {node.category!r} run only in flows of type {belongs}, not in one of type {flow.kind}.",
            where=node.id,
            hint="Use a chain or an agent of the chatflow kind, for example toolAgent."
            if flow.kind != AGENTFLOW
            else "In an agentflow, models, tools and stores are set inside nodes such as agentAgentflow.",
        )
