"""Changes by rules of the graph of an AgentFlow: approvals that go, numbers of conditions, limits of loops."""

import asyncio
from typing import Any

import pytest

from flowise_dev_agent.agent.plan_binding import capability_of, not_met, outside_plan
from flowise_dev_agent.agent.plan_values import with_planned_values
from flowise_dev_agent.agent.prompt_context import components_of, connected_inputs
from flowise_dev_agent.contracts.plan import OpsAnswer, PlanContract
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.reasoning.contracts import PatchRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_flows_there import STORE, chain, changed, declines_structure, inputs, planned, step
from tests.unit.reasoning.test_rules_steps_there import BOOKING


def fork(source: str, *targets: str) -> list[Connect]:
    return [Connect(source_node_id=source, source_anchor=str(number), target_node_id=target, target_anchor=target)
            for number, target in enumerate(targets)]  # fmt: skip


#: Three drafts that one approval is asked for; on its yes they are recorded and answered.
LIBRARY = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentAgentflow", node_id="conditionAgentAgentflow_0", label="Which desk", params={
            "conditionAgentScenarios": [{"scenario": "Renewals"}, {"scenario": "Fines"}, {"scenario": "Other"}]}),
        step("llmAgentflow_0", "Loan draft", "Answer on loans."),
        step("llmAgentflow_1", "Fine draft", "Answer on fines."),
        step("llmAgentflow_2", "Other draft", "Answer the rest."),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Librarian approval"),
        AddNode(node_name="httpAgentflow", node_id="httpAgentflow_0", label="Record", params={
            "method": "POST", "url": "https://log.heron.example/in"}),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Answer",
                params={"directReplyMessage": "{{ httpAgentflow_0 }}"}),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_1", label="Turned down",
                params={"directReplyMessage": "We say no."}),
        *chain("startAgentflow_0", "conditionAgentAgentflow_0"), *chain("httpAgentflow_0", "directReplyAgentflow_0"),
        *fork("conditionAgentAgentflow_0", "llmAgentflow_0", "llmAgentflow_1", "llmAgentflow_2"),
        *(one for number in range(3) for one in chain(f"llmAgentflow_{number}", "humanInputAgentflow_0")),
        *fork("humanInputAgentflow_0", "httpAgentflow_0", "directReplyAgentflow_1"),
    ],
    STORE.schemas,
).graph  # fmt: skip

#: Orders above a number are approved.
ORDERS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0", label="Above 40?", params={
            "conditions": [{"type": "number", "value1": "{{ question }}", "operation": "larger", "value2": 40}]}),
        step("llmAgentflow_0", "Big order", "Write to the buyer within 5 days."),
        step("llmAgentflow_1", "Small order", "Thank the buyer."),
        *chain("startAgentflow_0", "conditionAgentflow_0"),
        *fork("conditionAgentflow_0", "llmAgentflow_0", "llmAgentflow_1"),
    ],
    STORE.schemas,
).graph  # fmt: skip


def edges(graph: GraphIR) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges}


def beyond(graph: GraphIR, plan: PlanContract, wish: str) -> list[str]:
    """What its ops do to the flow that the approval of a plan does not cover, and what they leave out."""
    existing = {node.id: node.name for node in graph.nodes}
    request = PatchRequest(requirement=wish, plan=plan, nodes=STORE, occupied=connected_inputs(graph),
                           existing=existing, inside=components_of(graph))  # fmt: skip
    answer = asyncio.run(DeterministicReasoner().patch(request)).value
    assert isinstance(answer, OpsAnswer)
    ops = with_planned_values(answer.ops, plan, graph)
    found = outside_plan(ops, plan, capability_of(plan, [wish], STORE.schemas), STORE.schemas, graph)
    return [one.message for one in (*found, *not_met(plan, graph, compile_ops(graph, ops, STORE.schemas).graph))]


def broken(graph: GraphIR) -> set[str]:
    found = validate_flow(graph.to_flow_data(), schemas=STORE.schemas, credentials=None, kind="AGENTFLOW")
    return {one.code for one in errors(found)}


@pytest.mark.parametrize(
    "wish",
    [
        "We don't need Kim's check any more. Send it directly.",
        "Wir brauchen die Freigabe nicht mehr, nimm sie raus.",
        "Supprime la validation",
        "Il passaggio di approvazione va tolto",
        "Ya no hace falta la aprobación, envía la oferta directamente",
        "De goedkeuring is niet meer nodig, stuur het direct door",
        "Usuń akceptację, oferta ma iść od razu",
    ],
)
def test_an_approval_goes_with_what_only_it_leads_to(wish: str) -> None:
    graph, plan = changed(BOOKING, wish)
    assert edges(graph) == {("startAgentflow_0", "llmAgentflow_0"), ("llmAgentflow_0", "llmAgentflow_1"),
                            ("llmAgentflow_1", "httpAgentflow_0")}  # fmt: skip
    assert plan.removals == ["humanInputAgentflow_0", "loopAgentflow_0"]
    assert [(one.source, one.target) for one in plan.connections] == [("llmAgentflow_1", "httpAgentflow_0")]
    assert (plan.values, plan.not_done, len(plan.steps), beyond(BOOKING, plan, wish)) == ([], [], 3, [])


@pytest.mark.parametrize(
    "wish",
    [
        "Fines need no approval any more, the rest stays as it is.",
        "Drop the approval for renewals.",
        "Loan drafts don't need the librarian's approval anymore, they can go straight out. The others still do.",
    ],
)
def test_of_several_steps_those_that_are_named_go_their_own_way_past_the_approval(wish: str) -> None:
    graph, plan = changed(LIBRARY, wish)
    free = "llmAgentflow_1" if "Fines" in wish else "llmAgentflow_0"
    gone, new = edges(LIBRARY) - edges(graph), edges(graph) - edges(LIBRARY)
    assert gone == {(free, "humanInputAgentflow_0")}
    assert new == {(free, "httpAgentflow_1"), ("httpAgentflow_1", "directReplyAgentflow_2")}
    assert inputs(graph, "httpAgentflow_1") == inputs(LIBRARY, "httpAgentflow_0")
    assert inputs(graph, "directReplyAgentflow_2")["directReplyMessage"] == "{{ httpAgentflow_1 }}"
    assert (plan.not_done, broken(graph) - broken(LIBRARY), beyond(LIBRARY, plan, wish)) == ([], set(), [])


@pytest.mark.parametrize(
    "wish",
    [
        "Drop the approval for small fines.",
        "Drop the approval for press enquiries.",
        "Remove the librarian approval, everything should be turned down.",
        "Remove the librarian approval, fines over 20 go straight to Turned down.",
        "Nothing goes out without the librarian approval, only fines do.",
    ],
)
def test_an_approval_stays_where_it_is_open_for_what_or_more_is_wanted(wish: str) -> None:
    plan = planned(LIBRARY, wish)
    assert plan.declined
    assert [*plan.removals, *plan.connections, *plan.disconnections, *plan.values] == []


def test_an_approval_stays_where_another_change_of_the_steps_is_not_done() -> None:
    declines_structure(LIBRARY, "Remove the librarian approval. Then add a branch for lost books.",
                       "Remove the librarian approval", "Then add a branch for lost books")  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "held"),
    [
        ("The limit goes from 40 to 60.", {"value2": "60", "operation": "larger"}),
        ("Die Grenze soll 60 statt 40 sein.", {"value2": "60", "operation": "larger"}),
        ("big orders start from 75 € upwards, not 40", {"value2": "75", "operation": "largerEqual"}),
        ("orders over 75 are big ones instead of 40", {"value2": "75", "operation": "larger"}),
    ],
)
def test_a_condition_compares_with_the_number_that_takes_the_place_of_its_own(wish: str, held: dict[str, Any]) -> None:
    graph, plan = changed(ORDERS, wish)
    (row,) = inputs(graph, "conditionAgentflow_0")["conditions"]
    assert {name: str(row[name]) for name in held} == held
    assert [node.label for node in graph.nodes if node.id == "conditionAgentflow_0"] == [f"Above {held['value2']}?"]
    assert ({value.node_id for value in plan.values}, plan.not_done) == ({"conditionAgentflow_0"}, [])
    assert beyond(ORDERS, plan, wish) == []


@pytest.mark.parametrize(
    "wish",
    [
        "Big order: write within 7 days instead of 5.",
        "Tell the buyer that the warranty is 60 months instead of 40.",
        "Say that parking costs 60 cents, not 40.",
        "The limit is 40 instead of 60.",
    ],
)
def test_a_number_that_is_none_of_the_condition_leaves_it_alone(wish: str) -> None:
    plan = planned(ORDERS, wish)
    assert "conditionAgentflow_0" not in {value.node_id for value in plan.values}


@pytest.mark.parametrize(
    "wish",
    [
        "Do not remove the approval.",
        "Please don't remove Kim's check.",
        "Never drop the approval.",
        "Die Freigabe nicht entfernen.",
        "N'enlève pas la validation.",
    ],
)
def test_an_approval_that_is_to_stay_stays(wish: str) -> None:
    plan = planned(BOOKING, wish)
    assert (plan.removals, plan.connections, plan.disconnections) == ([], [], [])


@pytest.mark.parametrize("wish", ["Drop the approval for tours.", "Drop the approval for cars."])
def test_an_approval_for_what_nobody_knows_stays_for_all(wish: str) -> None:
    plan = planned(LIBRARY, wish)
    assert (plan.removals, plan.connections, plan.disconnections) == ([], [], [])


@pytest.mark.parametrize(
    "rule",
    ["Always mention our logo in the offer.", "In the offer, name the price directly at the top."],
)
def test_a_rule_beside_an_approval_that_goes_is_not_lost(rule: str) -> None:
    plan = planned(BOOKING, f"Remove the approval. {rule}")
    told = "\n".join(str(value.value) for value in plan.values) + "\n".join(part.quote for part in plan.not_done)
    assert plan.declined or rule.split()[-2] in told


def test_what_nothing_leads_to_is_not_taken_out_with_an_approval() -> None:
    ops = [step("llmAgentflow_9", "Spare letter", "Write a letter.")]
    graph = compile_ops(BOOKING, ops, STORE.schemas).graph
    assert "llmAgentflow_9" not in planned(graph, "Remove the approval.").removals


def test_back_to_a_step_is_no_limit_of_the_loop() -> None:
    plan = planned(BOOKING, "The loop should go back to step 2.")
    assert "maxLoopCount" not in [value.param for value in plan.values]


@pytest.mark.parametrize(
    "wish",
    ['Rename "Loan draft", "Fine draft" and "Other draft" to "Drafts".',
     'Rename the steps "Loan draft", "Fine draft" to "Loans", "Fines".'],
)  # fmt: skip
def test_what_is_named_side_by_side_is_no_new_title(wish: str) -> None:
    plan = planned(LIBRARY, wish)
    assert not any(node.label in ("Fine draft", "Other draft") for node in plan.nodes)


@pytest.mark.parametrize(
    ("wish", "limit"),
    [
        ("Cap the loop at 2.", 2),
        ("Si può rifare al massimo due volte.", 2),
        ("let it loop 3 times instead of 5", 3),
        ("Begrenze die Schleife auf 4", 4),
    ],
)
def test_a_loop_goes_back_as_often_as_is_said(wish: str, limit: int) -> None:
    graph, plan = changed(BOOKING, wish)
    assert inputs(graph, "loopAgentflow_0")["maxLoopCount"] in (limit, str(limit))
    assert ([value.param for value in plan.values], plan.not_done) == (["maxLoopCount"], [])


@pytest.mark.parametrize(
    ("wish", "name", "titles"),
    [
        ("Renommez le flux en « Livres » et l'étape « Fine draft » en « Amendes ».", "Livres", {1: "Amendes"}),
        ("Zmień nazwę przepływu na „Książki” i krok „Loan draft” na „Wypożyczenia”", "Książki", {0: "Wypożyczenia"}),
        ('Rename "Loan draft" to "Loans" and "Fine draft" to "Fines".', None, {0: "Loans", 1: "Fines"}),
    ],
)
def test_a_flow_and_several_steps_get_their_names_in_one_wish(
    wish: str, name: str | None, titles: dict[int, str]
) -> None:
    graph, plan = changed(LIBRARY, wish)
    before = {node.id: node.label for node in LIBRARY.nodes}
    renamed = {node.id: node.label for node in graph.nodes if node.label != before[node.id]}
    assert renamed == {f"llmAgentflow_{number}": title for number, title in titles.items()}
    assert (plan.new_name, plan.values, plan.not_done) == (name, [], [])


def test_a_setting_that_is_to_stay_the_same_is_no_wish() -> None:
    model = {"llmModel": "chatOpenAI", "llmModelConfig": {"modelName": "gpt-4o", "temperature": 0.3}}
    writer = step("llmAgentflow_0", "Minutes", "Write it.")
    made = [AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
            writer.model_copy(update={"params": {**writer.params, **model}}),
            *chain("startAgentflow_0", "llmAgentflow_0")]  # fmt: skip
    graph = compile_ops(GraphIR.empty(), made, STORE.schemas).graph
    plan = planned(graph, "Switch Minutes from gpt-4o to gpt-4.1 (same temperature).")
    assert [(one.param, one.value) for one in plan.values] == [("llmModelConfig.modelName", "gpt-4.1")]
    assert plan.not_done == []


def test_the_plan_names_the_branch_that_leads_on_and_no_number_of_an_output() -> None:
    ops = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentAgentflow", node_id="conditionAgentAgentflow_0", label="Which desk", params={
            "conditionAgentModel": "chatOpenAI", "conditionAgentModelConfig": {"modelName": "gpt-4o"},
            "conditionAgentInput": "{{ question }}",
            "conditionAgentScenarios": [{"scenario": "Boats"}, {"scenario": "Tea"}]}),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Kim's check"),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Answer",
                params={"directReplyMessage": "Done."}),
        *chain("startAgentflow_0", "conditionAgentAgentflow_0"),
        step("llmAgentflow_0", "Tea talk", "Talk of tea."),
        *fork("conditionAgentAgentflow_0", "humanInputAgentflow_0", "llmAgentflow_0"),
        *fork("humanInputAgentflow_0", "directReplyAgentflow_0"),
    ]  # fmt: skip
    plan = planned(compile_ops(GraphIR.empty(), ops, STORE.schemas).graph, "Remove Kim's check.")
    assert "«Which desk: Boats» leads straight to «Answer» from now on." in plan.steps
