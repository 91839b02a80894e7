"""Flows of steps that fork on what a step or a form says, and drafts that are made again until they are good."""

import asyncio
import re
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


#: A draft that a critic sends back -> (where it goes back to, how often at most, what is compared).
CRITICS = {
    "Agent flow: write a slogan for what the user sells, have it scored 1 to 5 by a second model with a reason, "
    "rewrite with that reason while the score is under 4 but at most 2 more times, then reply with the slogan":
        (2, ("smaller", 4)),
    "Ein Ablauf: Schritt 1 schreibt einen Nachruf, Schritt 2 ist ein Lektor, der auf den Ton schaut und \"OK\" sagt "
    "oder Vorschläge macht. Wenn nicht OK, zurück zu Schritt 1, höchstens 4 mal. Wenn OK, wird er ausgegeben.":
        (4, ("notEqual", True)),
    "Un flux d'agents : un rédacteur écrit une recette, un relecteur la note sur 20. Si la note est inférieure à 15, "
    "on la renvoie au rédacteur avec les remarques, trois fois maximum. Sinon la recette est affichée.":
        (3, ("smaller", 15)),
    "An agent flow where a first agent writes a blurb from the synopsis I paste. A second one checks it for spoilers. "
    "If there are spoilers it goes back to the first one, at most 3 times. Otherwise show the blurb.":
        (3, ("equal", True)),
    "Een agentflow: een schrijver maakt een persbericht, een redacteur beoordeelt het. Als de redacteur niet tevreden "
    "is, gaat het terug naar de schrijver met de opmerkingen, maximaal 2 keer. Anders toon het persbericht.":
        (2, ("notEqual", True)),
    "Przepływ: najpierw agent pisze post, potem drugi agent go ocenia w skali od 1 do 10. Jeśli ocena jest poniżej 8, "
    "wraca do pierwszego z uwagami, maksymalnie 3 razy. Na końcu pokaż post.": (3, ("smaller", 8)),
    "Agentflow: das erste Modell schreibt einen Text, das zweite prüft ihn. Wenn nicht gut, zurück zum ersten.":
        (None, ("notEqual", True)),
}  # fmt: skip


@pytest.mark.parametrize("wish", CRITICS, ids=range(len(CRITICS)))
def test_a_critic_sends_a_draft_back_with_its_remarks_and_then_it_is_the_answer(wish: str) -> None:
    most, (operation, value) = CRITICS[wish]
    plan, values = built(wish)
    assert not plan.not_done
    (row,) = values["conditionAgentflow_0.conditions"]
    assert (row["operation"], row["value2"]) == (operation, value)
    critic = re.sub(r"\W*(\w+)\.output.*", r"\1", row["value1"])
    writer = values["loopAgentflow_0.loopBackToNode"].partition("-")[0]
    assert values.get("loopAgentflow_0.maxLoopCount") == most
    assert values["directReplyAgentflow_0.directReplyMessage"] == f"{{{{ {writer} }}}}"
    # What the critic says reaches the writer, and the draft reaches the critic.
    told = {one.partition(".")[0]: str(rows) for one, rows in values.items() if one.endswith("Messages")}
    assert "{{ $flow.state.remarks }}" in told[writer]
    assert f"{{{{ {writer} }}}}" in told[critic]
    assert values[f"{critic}.llmUpdateState"] == [{"key": "remarks", "value": "{{ output.remarks }}"}]


#: Conditions -> the edges of their flow.
FORKS = {
    "Agentflow: read the invoice the user pastes. If the amount is over 500 euros, ask my boss to approve, "
    "otherwise reply 'Paid.'":
        "start>llm0 llm0>llm1 llm1>condition0 condition0:0>human0 human0:reject>loop0 human0:proceed>reply0 "
        "condition0:1>reply1",
    "Agentflow: Ein LLM liest die Bestellung. Bei mehr als 100 Stück muss der Chef freigeben, sonst bestätigen.":
        "start>llm0 llm0>llm1 llm1>condition0 condition0:0>human0 human0:reject>loop0 human0:proceed>reply0 "
        "condition0:1>llm2",
    "An agent flow for our kennel. It decides whether the message is a booking, a complaint or something else. "
    "Bookings are answered by an agent that knows our rate of 20 a day. Complaints get an "
    "apology and the owner has to approve "
    "it before it goes out. Everything else gets the answer 'Please call us.' If it is not clear what is meant, ask.":
        "start>sorter0 sorter0:0>agent0 sorter0:1>agent1 agent1>human0 human0:reject>loop0 human0:proceed>reply0 "
        "sorter0:2>reply1 sorter0:3>agent2",
    "Je voudrais un flux : le client remplit un formulaire (nom, urgent oui/non, description). Si c'est urgent, "
    "répondre 'Nous arrivons.', sinon l'IA rédige une réponse polie et je la valide avant l'envoi.":
        "start>condition0 condition0:0>reply0 condition0:1>llm0 llm0>human0 human0:reject>loop0 human0:proceed>reply1",
    "Un flusso: il modello legge la recensione e dà un voto da 1 a 5. Se il voto è 3 o meno, scrive una risposta di "
    "scuse che il titolare deve approvare; altrimenti scrive un ringraziamento breve.":
        "start>llm0 llm0>condition0 condition0:0>llm1 llm1>human0 human0:reject>loop0 human0:proceed>reply0 "
        "condition0:1>llm2",
    "Quiero un flujo de agentes con tres ramas: ventas, soporte y otros. Ventas responde con los precios (básico 20 "
    "euros). Soporte pide el número de serie. Otros: 'Escribe a info@tienda.example'.":
        "start>sorter0 sorter0:0>agent0 sorter0:1>agent1 sorter0:2>reply0",
    "When our shop system calls the webhook, the flow should summarise the order in two sentences and POST it to "
    "https://hooks.chat.example/orders.": "start>llm0 llm0>custom0 custom0>http0",
    'An LLM reviews the essay. If the score is under 5 reply "Please revise.", otherwise show it':
        "start>llm0 llm0>llm1 llm1>condition0 condition0:0>reply0 condition0:1>reply1",
    "Agentflow that reads a contract. If the contract has no termination clause, write a warning, otherwise summarise "
    "it in 5 points.": "start>llm0 llm0>sorter0 sorter0:0>llm1 sorter0:1>llm2",
    "agent flow: write a slogan, have it scored 1 to 5 by a second model, then reply with the slogan":
        "start>llm0 llm0>llm1 llm1>reply0",
    "Agentflow: write an outline, then write an article, then I approve it. If rejected, go back to the outline.":
        "start>llm0 llm0>llm1 llm1>human0 human0:reject>loop0 human0:proceed>reply0",
    "Ablauf mit Formular: Name, Hund (ja/nein), Anliegen. Wer keinen Hund hat, bekommt eine kurze Absage. Bei den "
    "anderen schreibt die KI eine Zusage, und bevor sie rausgeht, will ich sie freigeben.":
        "start>condition0 condition0:0>llm0 condition0:1>llm1 llm1>human0 human0:reject>loop0 human0:proceed>reply0",
}  # fmt: skip


@pytest.mark.parametrize("wish", FORKS, ids=range(len(FORKS)))
def test_a_fork_goes_on_in_both_ways(wish: str) -> None:
    plan, _ = built(wish)
    assert edges_of(wish) == FORKS[wish]
    assert not plan.not_done


def test_a_rejected_draft_goes_back_to_the_step_that_is_named() -> None:
    _, values = built("Agentflow: write an outline, then write an article, then I approve it. If rejected, go back to "
                      "the outline.")  # fmt: skip
    assert values["loopAgentflow_0.loopBackToNode"].startswith("llmAgentflow_0-")


def test_a_form_has_fields_of_their_kinds_and_a_condition_looks_at_one() -> None:
    _, values = built(
        "Agentflow. Form with name, size (small, medium, large), guarantee (yes/no) and what is broken. If there is no "
        "guarantee, write a price estimate, otherwise write a thank-you note."
    )
    rows = {row["name"]: row for row in values["startAgentflow_0.formInputTypes"]}
    assert {name: row["type"] for name, row in rows.items()} == {
        "name": "string", "size": "options", "guarantee": "boolean", "what_is_broken": "string"}  # fmt: skip
    assert [one["option"] for one in rows["size"]["addOptions"]] == ["small", "medium", "large"]
    assert values["conditionAgentflow_0.conditions"] == [
        {"type": "string", "value1": "{{ $form.guarantee }}", "operation": "notEqual", "value2": "true"}
    ]


def test_branches_may_be_listed_in_one_place_and_described_in_another() -> None:
    plan, values = built(
        "We sell 3 boats (Heron, Otter, Swift). An agent flow that first finds out which boat a question is about. "
        "Each boat gets its own agent. Heron is for lakes, Otter is for rivers, Swift is a racing "
        "boat. If it is not clear "
        "which boat is meant, ask. All of them with claude sonnet at temperature 0.3. The router can be a cheap one."
    )
    assert not plan.not_done
    rows = [row["scenario"] for row in values["conditionAgentAgentflow_0.conditionAgentScenarios"]]
    assert rows == ["Heron", "Otter", "Swift", "it is not clear which boat is meant"]
    assert "haiku" in values["conditionAgentAgentflow_0.conditionAgentModelConfig"]["modelName"]
    agents = [values[f"agentAgentflow_{n}.agentModelConfig"] for n in range(4)]
    assert {one["temperature"] for one in agents} == {0.3}
    assert all("sonnet" in one["modelName"] for one in agents)
    assert "lakes" in str(values["agentAgentflow_0.agentMessages"])


def test_what_is_said_for_a_case_in_place_of_the_answer_is_told_to_the_step_before() -> None:
    _, values = built(
        "Every weekday at 7am Europe/Berlin search the web for news about cocoa prices, sum it up in 5 bullets and "
        'post that to our webhook. URL is https://hooks.x.example/T00, if nothing new was found it should post "none".'
    )
    assert values["startAgentflow_0.scheduleOnDayOfWeek"] == "1,2,3,4,5"
    assert 'if nothing new was found it should post "none"' in str(values["agentAgentflow_0.agentMessages"]).lower()
    assert (values["httpAgentflow_0.method"], values["httpAgentflow_0.url"]) == ("POST", "https://hooks.x.example/T00")


@pytest.mark.parametrize(
    ("wish", "clauses"),
    [
        ("Agentflow: write a speech, then two editors approve it. Afterwards post it to our Slack channel.",
         ["two editors approve it", "post it to our Slack"]),
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


def test_a_rule_for_all_rounds_is_told_to_each_step_and_the_score_is_shown_where_it_is_asked_for() -> None:
    wish = (
        "Agentflow for our appeals (a small zoo, 3 people).\nStart is a form: animal, word limit.\n"
        'Step 1: gpt-4o writes the "why it matters" part of the appeal from the form, temp 0.6.\n'
        "Step 2: Claude Sonnet reads it like a strict donor and gives a score 1-10 plus what to fix, temp 0, "
        "structured output.\nIf the score is under 7 it goes back to step 1 with the fixes, max 3 rounds.\n"
        "Otherwise show the text plus the final score. "
        "The word limit has to be respected in every round and it must not make up numbers."
    )
    plan, values = built(wish)
    told = {one.partition(".")[0]: rows[0]["content"] for one, rows in values.items() if one.endswith("Messages")}
    assert len(told) == 2
    assert all("respected in every round" in one and "(a small zoo, 3 people)" in one for one in told.values())
    assert not any(word in one for one in told.values() for word in ("pt-4o", "Sonnet", "temp 0", "structured output"))
    reply = values["directReplyAgentflow_0.directReplyMessage"]
    assert "{{ llmAgentflow_0 }}" in reply
    assert "{{ llmAgentflow_1.output.score }}" in reply
    names = [one.label or "" for one in plan.nodes if one.node_id.startswith("llm")]
    assert not any(word in name for name in names for word in ('"', "pt-4o", "Claude"))
