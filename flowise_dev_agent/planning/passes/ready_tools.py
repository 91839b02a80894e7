"""Ready-made tools of domains: added to the plan before its approval, and to the ops without a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from flowise_dev_agent.patch import AddNode, Connect, Disconnect, Finding, FlowNode, GraphIR, PatchOp, Schemas
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import ReadyTool
from flowise_dev_agent.schemas.plan import MOST_TESTS, Plan, PlannedNode, PlannedValue, TestCase

#: Field with the tools of an agentflow's agent, and the fields of a row.
AGENT: Final = "agentAgentflow"
ROWS: Final = "agentTools"
_SELECTED: Final = "agentSelectedTool"
_SEPARATOR: Final = "__"
#: Code of a finding on a plan whose flow has no agent for a tool.
NO_AGENT: Final = "NO_AGENT_FOR_TOOL"


def ready_tools(context: PlanContext) -> PlanContext:
    """Add the ready-made tools of the domains to the plan."""
    return context.having(with_ready_tools(context.plan, context.request.ready_tools, context.base, context.schemas))


def owner_of(node_id: str) -> str:
    """Name of the domain that provides a node; empty for the plan's own nodes."""
    domain, separator, _ = node_id.partition(_SEPARATOR)
    return domain if separator else ""


def owned(plan: Plan, domain: str) -> list[PlannedNode]:
    """New nodes of a plan that a domain provides."""
    return [node for node in plan.nodes if not node.existing and owner_of(node.node_id) == domain]


def with_ready_tools(plan: Plan, tools: Sequence[ReadyTool], base: GraphIR, schemas: Schemas) -> Plan:
    """Add tools to a plan: their nodes, values and data, and a test for the use of each.

    In an agentflow they become rows of its agent. Without an agent that takes tools a finding says so.
    """
    if not tools or plan.declined or plan.answer is not None:
        return plan
    chatflow = plan.flow_kind != "AGENTFLOW"
    agent = _agent_of(plan, base, schemas)
    if agent is None:
        names = ", ".join(tool.title for tool in tools)
        finding = Finding(
            code=NO_AGENT,
            severity="warning",
            detail=f"The flow has no agent that could use {names}.",
            params={"tools": names},
            hint="Ask for an agent, or say which step is to use it.",
        )
        return plan.model_copy(update={"findings": [*plan.findings, finding]})
    for tool in tools:
        plan = _with_node(plan, tool, base) if chatflow else _with_row(plan, tool, agent, base)
        shown = tool.node_id if chatflow else tool.node_name
        tested = any(shown in test.expect.tools for test in plan.tests)
        tests = list(plan.tests)
        if tool.question and not tested and len(tests) < MOST_TESTS:
            taken = {test.id for test in tests}
            id_ = next(new for n in range(1, MOST_TESTS + 2) if (new := f"t{n}") not in taken)
            tests.append(TestCase.model_validate({"id": id_, "turns": [tool.question], "expect": {"tools": [shown]}}))
        plan = plan.model_copy(
            update={
                "tests": tests,
                "domain_targets": [*dict.fromkeys([*plan.domain_targets, tool.domain])],
                "data_fields": [*dict.fromkeys([*plan.data_fields, *(one.name for one in tool.gives)])],
                "pii_tools": [*dict.fromkeys([*plan.pii_tools, *(tool.tool_names if tool.pii_fields else ())])],
                "pii_fields": [*dict.fromkeys([*plan.pii_fields, *tool.pii_fields])],
            }
        )
    return plan


def ops_of(plan: Plan, domain: str, base: GraphIR, schemas: Schemas) -> list[PatchOp]:
    """Ops for a domain's new nodes in a plan: each node with its values, connected to the agent."""
    agent = _agent_of(plan, base, schemas)
    ops: list[PatchOp] = []
    for node in owned(plan, domain):
        params: dict[str, JsonValue] = {one.param: one.value for one in plan.values if one.node_id == node.node_id}
        ops.append(AddNode(node_name=node.node_name, node_id=node.node_id, label=node.label or None, params=params))
        if agent:
            ops.append(Connect(source_node_id=node.node_id, target_node_id=agent, target_anchor="tools"))
    return ops


def merged(first: Sequence[PatchOp], shares: Mapping[str, Sequence[PatchOp]]) -> list[PatchOp]:
    """Merge the ops of all domains: for a node of a domain in `shares`, only that domain's ops count."""
    kept = [op for op in first if not any(owner_of(id_) in shares for id_ in _about(op))]
    return [*kept, *(op for ops in shares.values() for op in ops)]


def _about(op: PatchOp) -> tuple[str, ...]:
    return (op.source_node_id,) if isinstance(op, Connect | Disconnect) else (op.node_id,)


def _agent_of(plan: Plan, base: GraphIR, schemas: Schemas) -> str | None:
    """Id of the agent that gets the tools: a planned one before one of the flow."""
    planned = [(node.node_id, node.node_name) for node in plan.nodes if node.node_id not in plan.removals]
    stays = [(node.id, node.name) for node in base.nodes if node.id not in plan.removals]
    for node_id, name in [*planned, *stays]:
        schema = schemas.get(name)
        if plan.flow_kind == "AGENTFLOW":
            if name == AGENT:
                return node_id
        elif schema and any("Tool" in anchor.types and anchor.is_list for anchor in schema.anchors):
            return node_id
    return None


def _with_node(plan: Plan, tool: ReadyTool, base: GraphIR) -> Plan:
    if base.node(tool.node_id) is not None:
        return plan
    # The same tool, planned without the domain's knowledge.
    twins = {
        node.node_id
        for node in plan.nodes
        if not node.existing and node.node_name == tool.node_name and not owner_of(node.node_id)
    }
    nodes = [node for node in plan.nodes if node.node_id not in {*twins, tool.node_id}]
    values = [one for one in plan.values if one.node_id not in {*twins, tool.node_id}]
    nodes.append(PlannedNode(node_id=tool.node_id, node_name=tool.node_name, purpose=tool.about, label=tool.title))
    values += [PlannedValue(node_id=tool.node_id, param=name, value=value) for name, value in tool.values.items()]
    return plan.model_copy(update={"nodes": nodes, "values": values})


def _with_row(plan: Plan, tool: ReadyTool, agent: str, base: GraphIR) -> Plan:
    planned = next((one for one in plan.values if (one.node_id, one.param) == (agent, ROWS)), None)
    rows = _rows(planned.value if planned else None) or _rows(_inputs(base.node(agent)).get(ROWS))
    rows = [row for row in rows if row.get(_SELECTED) != tool.node_name or row.get(f"{_SELECTED}Config")]
    row: dict[str, Any] = {_SELECTED: tool.node_name, f"{_SELECTED}Config": dict(tool.values)}
    if any(_same_tool(one, row) for one in rows):
        return plan
    values = [one for one in plan.values if one is not planned]
    values.append(PlannedValue(node_id=agent, param=ROWS, value=[*rows, row]))
    return plan.model_copy(update={"values": values})


def _same_tool(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if two rows hold the same tool, ignoring its input schema, which depends on the other tools."""
    parts = [
        {name: value for name, value in (row.get(f"{_SELECTED}Config") or {}).items() if not name.endswith("Schema")}
        for row in (one, other)
    ]
    return one.get(_SELECTED) == other.get(_SELECTED) and parts[0] == parts[1]


def _rows(value: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _inputs(node: FlowNode | None) -> Mapping[str, Any]:
    return node.inputs if node else {}
