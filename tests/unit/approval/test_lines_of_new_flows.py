"""Lines of a new agentflow: the plan says them, the outline shows them, and the flow that is compiled has them."""

import pytest

from flowise_dev_agent.approval.amending import amended
from flowise_dev_agent.approval.binding import beyond_approval, capability_of
from flowise_dev_agent.approval.ops import compiled, completed
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import AddNode, Connect, Finding, GraphIR, PatchOp
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.plan_checks import checked_plan
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.schemas.plan import AmendAnswer, NamedConnection, Plan, PlannedNode, PlannedValue
from tests.support.requests import plan_request

START, SORT, ASK, EACH = "startAgentflow_0", "conditionAgentflow_0", "humanInputAgentflow_0", "iterationAgentflow_0"
ITEM, YES, NO = "llmAgentflow_0", "directReplyAgentflow_0", "directReplyAgentflow_1"
TITLES = {SORT: "Big order?", ASK: "Approval", EACH: "Each parcel", ITEM: "Label", YES: "Yes", NO: "No"}
NODES = [
    PlannedNode(node_id=id_, node_name=id_.rpartition("_")[0], purpose="does it", label=TITLES.get(id_, ""))
    for id_ in (START, SORT, ASK, EACH, ITEM, YES, NO)
]
ROW = {"type": "number", "value1": "{{ question }}", "operation": "larger", "value2": "5"}
LINES = [
    (START, "", SORT),
    (SORT, "0", ASK),
    (SORT, "1", EACH),
    (ASK, "proceed", YES),
    (ASK, "reject", NO),
    (EACH, "each", ITEM),
]


def plan_of(lines: list[tuple[str, str, str]]) -> Plan:
    return Plan(
        goal="Labels for parcels.",
        operation="create",
        flow_name="Parcels",
        nodes=NODES,
        values=[PlannedValue(node_id=SORT, param="conditions", value=[ROW])],
        connections=[NamedConnection(source=source, output=output, target=to) for source, output, to in lines],
    )


def checked(nodes: NodeStore, lines: list[tuple[str, str, str]] = LINES) -> Plan:
    """Plan as the model layer takes it, with what its approval grants."""
    made = checked_plan(plan_of(lines), plan_request(nodes))
    capability = capability_of(made, nodes.schemas, GraphIR.empty())
    return made.model_copy(update={"capability": capability})


async def outside(ops: list[PatchOp], plan: Plan, nodes: NodeStore) -> tuple[GraphIR, list[Finding]]:
    whole, found = completed(ops, plan, GraphIR.empty(), nodes.schemas)
    made = await compiled(whole, plan, GraphIR.empty(), nodes.schemas, credentials={}, unbound=[])
    return made.result.graph, [one for one in [*found, *made.lacking] if one.code == "OUTSIDE_PLAN"]


ADDED: list[PatchOp] = [AddNode(node_name=one.node_name, node_id=one.node_id, label=one.label or None) for one in NODES]


def test_the_outline_of_a_new_flow_says_where_each_branch_leads(catalogue: NodeStore) -> None:
    plan = checked(catalogue)
    shown = plan_markdown(plan, plan_details(plan, GraphIR.empty(), schemas=catalogue.schemas))
    for line in (
        "  - 2a the message is more than 5 → **3 Approval**",
        "  - 2b otherwise → **6 Each parcel**",
        "  - 3a approved → **4 Yes**",
        "  - 3b rejected → **5 No**",
        "  - **6.1 Label**: does it",
    ):
        assert line in shown.splitlines(), shown
    assert "A new line leads" not in shown


async def test_code_draws_the_lines_of_the_plan_and_finds_nothing_in_ops_that_say_the_same(
    catalogue: NodeStore,
) -> None:
    plan = checked(catalogue)
    same = [Connect(source_node_id=SORT, source_anchor="0", target_node_id=ASK)]
    for ops in (ADDED, [*ADDED, *same]):
        graph, found = await outside(ops, plan, catalogue)
        assert not found
        drawn = {(edge.source, edge.output_name, edge.target) for edge in graph.edges}
        assert {(SORT, "0", ASK), (SORT, "1", EACH), (ASK, "0", YES), (ASK, "1", NO)} < drawn
        assert len(graph.edges) == len(LINES) - 1
        assert (inner := graph.node(ITEM))
        assert inner.parent == EACH


async def test_a_line_that_the_plan_of_a_new_flow_does_not_have_is_outside_of_it(catalogue: NodeStore) -> None:
    beside: PatchOp = Connect(source_node_id=START, target_node_id=YES)
    _, found = await outside([*ADDED, beside], checked(catalogue), catalogue)
    assert [one.where for one in found] == [YES]


def test_another_line_of_a_new_flow_needs_another_approval(catalogue: NodeStore) -> None:
    plan = checked(catalogue)
    assert plan.capability is not None
    other = NamedConnection(source=ASK, output="1", target=EACH)
    answer = AmendAnswer(connections=[other], disconnections=[NamedConnection(source=ASK, target=NO)], reason="x")
    wider = amended(plan, answer, (), catalogue.schemas)
    assert (ASK, NO) not in {(one.source, one.target) for one in wider.connections}
    made = capability_of(wider.model_copy(update={"nodes": NODES[:-1]}), catalogue.schemas, GraphIR.empty())
    assert (beyond := beyond_approval(made, plan.capability))
    assert [one.target for one in beyond.lines] == [EACH]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([(START, "", "nobody_0"), *LINES], "names 'nobody_0'"),
        ([(YES, "", NO), *LINES], f"no line can lead from '{YES}' to '{NO}'"),
        ([(START, "", SORT), (SORT, "", ASK), (SORT, "", EACH), *LINES[3:]], "which branch"),
    ],
)
def test_lines_that_cannot_be_go_back(lines: list[tuple[str, str, str]], said: str, catalogue: NodeStore) -> None:
    with pytest.raises(UnusableOutputError) as refused:
        checked(catalogue, lines)
    assert any(said in problem for problem in refused.value.problems), refused.value.problems


def test_a_plan_that_is_given_again_without_lines_keeps_those_of_the_same_steps(catalogue: NodeStore) -> None:
    before = checked(catalogue)
    again = checked_plan(plan_of([]), plan_request(catalogue, previous=before))
    assert again.connections == before.connections
    fewer = plan_of([]).model_copy(update={"nodes": NODES[:-1]})
    assert checked_plan(fewer, plan_request(catalogue, previous=before)).connections == []
