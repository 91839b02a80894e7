"""Flows of steps that fork on what a model judges, and drafts that are made again until they are good."""

import asyncio
from typing import Any

import pytest

from flowise_dev_agent.patch import GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.reasoning.contracts import PatchRequest, PlanContract
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_properties import STORE, planned
from tests.unit.reasoning.test_rules_structure import edges_of

DUMMY = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"


def built(wish: str) -> tuple[PlanContract, dict[str, Any]]:
    """The plan and its values; its flow is one that Flowise takes."""
    plan = planned(wish)[1]
    assert plan.declined is None, plan.declined
    answer: Any = asyncio.run(
        DeterministicReasoner().patch(PatchRequest(requirement=wish, plan=plan, nodes=STORE))
    ).value
    chosen = {kind: DUMMY for schema in STORE.schemas.values() for kind in schema.credential_names}
    flow = compile_ops(GraphIR.empty(), answer.ops, STORE.schemas, credentials=chosen).flow_data
    assert errors(validate_flow(flow, schemas=STORE.schemas, credentials=None, kind="AGENTFLOW")) == []
    return plan, {f"{value.node_id}.{value.param}": value.value for value in plan.values}


#: A draft that is made again -> (what a model judges, the way on which it is made again, how often at most).
LOOPS = {
    "Agentflow: write a poem, then improve it until it rhymes, at most 3 times": ("it rhymes", "1", 3),
    "Agentflow: write a slogan and rewrite it while it sounds boring. Show it.": ("it sounds boring", "0", None),
    "Schreib einen Elternbrief und verbessere ihn, bis er gut ist, höchstens 3 Runden. Ein Agentflow.":
        ("er gut ist", "1", 3),
    "Ein Agentflow: Fasse den Text zusammen. Wenn die Zusammenfassung zu lang ist, schreib sie neu, höchstens 2 mal.":
        ("die Zusammenfassung zu lang ist", "0", 2),
    # A critic says what it thinks of it, and the draft is the answer in the end.
    "Agentflow: das erste Modell schreibt einen Text, das zweite prüft ihn. Wenn nicht gut, zurück zum ersten.":
        ("nicht gut", "0", None),
    "Een agentflow: een schrijver maakt een persbericht, een redacteur beoordeelt het. Als de redacteur niet tevreden "
    "is, gaat het terug naar de schrijver met de opmerkingen, maximaal 2 keer.":
        ("de redacteur niet tevreden is", "0", 2),
}  # fmt: skip


@pytest.mark.parametrize("wish", LOOPS, ids=range(len(LOOPS)))
def test_a_draft_is_made_again_until_a_model_says_that_it_is_good_and_then_it_is_the_answer(wish: str) -> None:
    judged, way, most = LOOPS[wish]
    plan, values = built(wish)
    assert not plan.not_done
    rows = values["conditionAgentAgentflow_0.conditionAgentScenarios"]
    assert judged in [row["scenario"] for row in rows]
    (again,) = [one.output for one in plan.connections if one.target == "loopAgentflow_0"]
    writer = values["loopAgentflow_0.loopBackToNode"].partition("-")[0]
    assert (again, writer.partition("_")[2]) == (way, "0")
    assert values.get("loopAgentflow_0.maxLoopCount") == most
    assert values["directReplyAgentflow_0.directReplyMessage"] == f"{{{{ {writer} }}}}"


#: Conditions -> the edges of their flow.
FORKS = {
    "Je voudrais un flux : le client remplit un formulaire (nom, urgent oui/non, description). Si c'est urgent, "
    "répondre 'Nous arrivons.', sinon l'IA rédige une réponse polie et je la valide avant l'envoi.":
        "start>sorter0 sorter0:0>reply0 sorter0:1>llm0 llm0>human0 human0:reject>loop0 human0:proceed>reply1",
    "Quiero un flujo de agentes con tres ramas: ventas, soporte y otros. Ventas responde con los precios (básico 20 "
    "euros). Soporte pide el número de serie. Otros: 'Escribe a info@tienda.example'.":
        "start>sorter0 sorter0:0>agent0 sorter0:1>agent1 sorter0:2>reply0",
    "Agentflow that reads a contract. If the contract has no termination clause, write a warning, otherwise summarise "
    "it in 5 points.": "start>llm0 llm0>sorter0 sorter0:0>llm1 sorter0:1>llm2",
    "Agentflow: write an outline, then write an article, then I approve it. If rejected, go back to the outline.":
        "start>llm0 llm0>llm1 llm1>human0 human0:reject>loop0 human0:proceed>reply0",
    "Agentflow: write a slogan and rewrite it while it sounds boring. Then translate it into French.":
        "start>llm0 llm0>sorter0 sorter0:0>loop0 sorter0:1>llm1",
    "Agentflow: sort the mail into three kinds (invoices, thanks, complaints). Invoices: name the amount. Thanks: "
    "reply 'You are welcome.' Complaints: apologise, and I have to approve it.":
        "start>sorter0 sorter0:0>agent0 sorter0:1>reply0 sorter0:2>agent1 agent1>human0 human0:reject>loop0 "
        "human0:proceed>reply1",
}  # fmt: skip


@pytest.mark.parametrize("wish", FORKS, ids=range(len(FORKS)))
def test_a_fork_goes_on_in_both_ways(wish: str) -> None:
    plan, _ = built(wish)
    assert edges_of(wish) == FORKS[wish]
    assert not plan.not_done


@pytest.mark.parametrize(
    ("wish", "step"),
    [
        ("Agentflow: write an outline, then write an article, then I approve it. If rejected, go back to the outline.",
         "llmAgentflow_0-"),
        ("Agentflow: 1. read the mail 2. list its points 3. write a reply 4. I approve. If I reject, back to step 2.",
         "llmAgentflow_1-"),
        ("Agentflow: read the mail, then write a reply, then I approve it. If I reject it, it gets rewritten.",
         "llmAgentflow_1-"),
    ],
)  # fmt: skip
def test_a_rejected_draft_goes_back_to_the_step_that_is_named(wish: str, step: str) -> None:
    _, values = built(wish)
    assert values["loopAgentflow_0.loopBackToNode"].startswith(step)


def test_a_form_has_fields_of_their_kinds_and_each_step_and_condition_is_given_them() -> None:
    _, values = built(
        "Agentflow. Form with name, pages (number), guarantee (yes/no) and what is broken. If there is no "
        "guarantee, write a price estimate, otherwise write a thank-you note."
    )
    rows = {row["name"]: row["type"] for row in values["startAgentflow_0.formInputTypes"]}
    assert rows == {"name": "string", "pages": "number", "guarantee": "boolean", "what_is_broken": "string"}
    given = [values["conditionAgentAgentflow_0.conditionAgentInput"], str(values["llmAgentflow_1.llmMessages"])]
    assert all("{{ $form.guarantee }}" in one for one in given)


@pytest.mark.parametrize(
    ("wish", "clauses"),
    [
        ("Agentflow: write a speech, then two editors approve it. Afterwards post it to our Slack channel.",
         ["two editors approve it", "Afterwards post it to our Slack"]),
        ("agent flow: write a slogan, rewrite it while the score is under 4, then translate it", ["rewrite it while"]),
    ],
)  # fmt: skip
def test_the_clauses_that_are_not_understood_are_named(wish: str, clauses: list[str]) -> None:
    declined = planned(wish)[1].declined or ""
    assert all(f"«{clause}" in declined for clause in clauses)


def test_a_search_that_the_second_reader_alone_finds_is_not_left_to_a_model_without_a_tool() -> None:
    plan = planned("Agentflow: hunt the internet for cheap flights to Oslo, then write a short summary for the team.")[
        1
    ]
    tools = [value for value in plan.values if value.param == "agentTools"]
    assert plan.declined or tools


#: Where a person agrees on one branch alone, in front of the answer that goes out -> the words of that branch.
ON_ONE_BRANCH = {
    "An agent flow for the letters we get.\n"
    "Step 1: read the letter and decide whether it is \"leaks\", \"keys\" or \"noise\".\n"
    "Step 2: for leaking pipes, write down which flat it is and draft a note to the plumber.\n"
    "For keys it drafts an answer that new ones cost 30 euros.\nFor noise a kind reply is enough.\n"
    "Before the note for leaks goes out, one of us has to approve it; if we reject it, it should be rewritten with "
    "our comment.\nEverything signed \"Elm House\".": "note to the plumber",
    "Je veux un flux d'agents pour les lettres que je colle. Si c'est une réclamation, il rédige des excuses en deux "
    "phrases et je dois valider avant que ça parte ; si c'est un remerciement, il répond en une phrase.":
        "excuses en deux phrases",
}  # fmt: skip


@pytest.mark.parametrize("wish", ON_ONE_BRANCH, ids=range(len(ON_ONE_BRANCH)))
def test_a_person_agrees_on_the_branch_that_is_named_and_a_refusal_goes_back_there(wish: str) -> None:
    plan, values = built(wish)
    (before,) = [one.source for one in plan.connections if one.target == "humanInputAgentflow_0"]
    told = {one.partition(".")[0]: str(rows) for one, rows in values.items() if one.endswith("Messages")}
    assert ON_ONE_BRANCH[wish] in told[before]
    assert values["loopAgentflow_0.loopBackToNode"].partition("-")[0] == before
    assert values["directReplyAgentflow_0.directReplyMessage"] == f"{{{{ {before} }}}}"
    if "signed" in wish:
        assert all("Elm House" in one for one in told.values())
