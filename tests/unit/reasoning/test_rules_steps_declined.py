"""Flows of steps that the rules do not understand in full: declined with the clause that was not, never half built."""

import pytest

from tests.unit.reasoning.test_rules_properties import planned

#: What is asked for -> the beginning of the clause that is not understood.
NOT_READ = {
    "Agentflow: si el pedido supera los 200 euros lo aprueba el jefe, si no responde 'Gracias.'":
        "si el pedido supera los 200 euros",
    "Flux : si le montant dépasse 1000 euros, le responsable doit valider ; sinon répondre 'C'est noté, merci.'":
        "si le montant dépasse 1000 euros",
    "Modulo con nome e importo. Se l'importo supera 5000 euro deve approvare una persona, altrimenti scrivi una "
    "conferma. Non parlare mai di interessi.":
        "Se l'importo supera 5000 euro",
    "Agentflow: draft a reply to the complaint, then I approve it. If I say yes send it, otherwise email me the "
    "draft.":
        "otherwise email me the draft",
    "Agentflow: write a press release. Legal and then marketing have to approve.":
        "Legal",
    "Agentflow: write an offer, then two managers approve it.":
        "two managers approve it",
    "Agentflow: write an offer, then the boss approves it, then the lawyer approves it.":
        "the lawyer approves it",
    "Agentflow: research the topic, write an outline, write the article. I want to approve the outline before "
    "the article is written.":
        "I want to approve the outline before",
    "Agentflow : rédige la lettre, puis le juriste et la directrice valident.":
        "le juriste",
    "AgentFlow: Ein LLM schreibt eine Stellenanzeige aus den Stichworten, danach prüft eine Kollegin und gibt "
    "frei.":
        "gibt frei",
    "quiero un flujo que redacte el boletín, luego lo revisa Marta y lo aprueba. Si lo rechaza se reescribe":
        "lo aprueba",
    "Agentflow: sort messages into refunds and questions. Refunds: write an answer. Questions: answer them. "
    "After that log everything to https://log.example/x with POST.":
        "log everything to",
    "Un agentflow: clasifica los mensajes en averías, facturas y otros; para averías pide la dirección":
        "clasifica los mensajes en averías",
    "An agentflow: when the input does not contain the word please, an LLM asks for it":
        "when the input does not contain",
    "Agentflow for our clinic: nurses answer medical questions, reception answers appointment questions.":
        "Agentflow for our clinic: nurses answer",
    "Agentflow: write the minutes, then post them to https://wiki.example/api with PUT, afterwards tell me the "
    "link.":
        "post them to https://wiki.example/api with PUT",
    "Agentflow: POST the order to https://shop.example/{order}, then tell the customer the number.":
        "POST the order to https://shop.example/{order}",
    "Agentflow: classify the ticket as bug or question. Bug: ask for the version. Question: answer from "
    "https://docs.example":
        "Question: answer from",
    "Agentflow: Write a poem and keep polishing it until it rhymes.":
        "Write a poem",
    "Agentflow with 4 agents: one drafts a text, one checks it.":
        "one drafts a text",
    "agentflow: draft an answer. ask me if it's ok. if ok send, if not write it again, max 3x":
        "if not write it again",
    "Agentflow: is the message angry? If so apologise, otherwise thank them.":
        "If so apologise",
    "Agentflow: read the order. Orders of more than 10 items go to the manager for approval, all others are confirmed.":
        "Orders of more than 10 items",
    "Agentflow: geef het opstel een cijfer. Is het lager dan 6, schrijf dan tips, anders een compliment.":
        "Is het lager dan 6, schrijf dan tips, anders een compliment",
    "A flow in which one LLM scores an essay. Over 70: write a praise. Under 40: write a hint.":
        "Over 70: write a praise",
    "Agentflow: Ein Agent schreibt die Vorteile, ein anderer die Nachteile.":
        "Ein Agent schreibt die Vorteile",
    "An agentflow that drafts a tender and lets three managers vote on it.": "drafts a tender",
    "Agentflow: extract name, phone and address from the message, then POST name and phone to "
    "https://crm.example/x":
        "POST name",
}  # fmt: skip

#: What compares a number or a score, is said of all branches, needs a secret or is in a wording of its own: it is not
#: read -> the beginning of the clause.
NOT_READ |= {
    "Agentflow: read the invoice the user pastes. If the amount is over 500 euros, ask my boss to approve, otherwise "
    "reply 'Paid.'":
        "If the amount is over 500 euros",
    "Agentflow: Ein LLM liest die Bestellung. Bei mehr als 100 Stück muss der Chef freigeben, sonst bestätigen.":
        "Bei mehr als 100 Stück",
    "Un flusso: il modello legge la recensione e dà un voto da 1 a 5. Se il voto è 3 o meno, scrive delle scuse; "
    "altrimenti scrive un ringraziamento breve.":
        "Se il voto è 3 o meno",
    "A flow where an LLM writes a slogan, then a second LLM rates it from 1 to 10. If the rating is below 7 it should "
    "be rewritten, max 3 tries.":
        "If the rating is below 7",
    "Agentflow: write a slogan, have it scored by a second model, then reply with the slogan":
        "write a slogan, have it scored by a second model",
    "An agent flow where a first agent writes a blurb, a second one checks it. If there are spoilers, rewrite it.":
        "rewrite it",
    "Write a cover letter from my notes. If I am not happy, redo it with my comments, up to 5 times. An agentflow.":
        "If I am not happy",
    "Przepływ: formularz: imię, rachunek. Jeżeli rachunek jest poniżej 90 zł, model pisze, że się nie opłaca.":
        "Jeżeli rachunek jest poniżej 90 zł",
    "Agentflow: if it is a complaint, apologise, otherwise answer it, then a person approves.":
        "a person approves",
    "Agentflow: sort messages into orders and complaints. Orders: name the price. Complaints: apologise. HR has to "
    "approve every mail before it is sent.":
        "HR has to approve every mail",
    "Agentflow: write an offer and I approve it, then translate it and I approve it.":
        "I approve it",
    "Flow voor de garage: is het een afspraak, een klacht of iets anders? Afspraak: vraag de dag.":
        "is het een afspraak",
    "Ein Ablauf: 1. Ich füge eine Liste von Produkten ein 2. er geht sie einzeln durch 3. jedes wird übersetzt":
        "er geht sie einzeln durch",
    "When our shop system calls the webhook, the flow should summarise the order in two sentences and POST it to "
    "https://hooks.chat.example/orders.":
        "webhook",
    "Flow: call GET https://api.parcels.example/v1 with header X-Api-Key, then explain the status":
        "call GET https://api.parcels.example/v1 with header",
    "Workflow: an LLM writes a refusal letter. Mr Okoye must approve it. If he rejects it, email the boss.":
        "If he rejects it, email the boss",
    "Agentflow: write a reply, then I approve it. If there is no order number, ask for it.":
        "If there is no order number",
    "Agentflow: write a reply, then I approve it. If legal says no, reply 'No.'":
        "If legal says no",
    "Agentflow: sort into orders and complaints. Orders: if it is urgent, say so. Complaints: apologise.":
        "Orders: if it is urgent",
    "Agentflow: write a poem, then translate it into Dutch. gpt-4o for the invoice.":
        "gpt-4o for the invoice",
    "An agent that looks things up on arXiv, and sends me an email with what it found":
        "sends me an email",
}  # fmt: skip

#: What no clause is named of: the whole is not understood.
NO_STEPS = [
    "Agentflow: user types a topic. First agent makes an outline, second writes, third checks facts with web search.",
    "Write a haiku, improve it until it has 17 syllables, at most 4 times",
    "agent flow: write a slogan, rewrite it while the score is under 4, then translate it",
    "Ein Ablauf bitte: zu jedem Stichwort soll ein Spruch entstehen, danach wählt ein LLM die drei besten aus.",
]  # fmt: skip

#: A sentence beside the steps -> what is said to the model.
SAID = {
    "Agentflow: write a tender, then translate it into Dutch. Answers are due within 3 days.":
        "Answers are due within 3 days",
    "We're an online florist, dev of one (me). Agentflow: write a tender, then translate it into Dutch.":
        "We're an online florist, dev of one (me)",
    "Agentflow: write a tender, then translate it into Dutch. Keep it under 80 words.": "Keep it under 80 words",
}  # fmt: skip


@pytest.mark.parametrize("wish", NOT_READ, ids=range(len(NOT_READ)))
def test_the_clause_that_is_not_understood_is_named_and_nothing_is_built(wish: str) -> None:
    _, plan = planned(wish)
    assert f"«{NOT_READ[wish]}" in (plan.declined or "")
    assert plan.nodes == []


@pytest.mark.parametrize("wish", NO_STEPS)
def test_what_has_no_steps_that_are_understood_is_declined(wish: str) -> None:
    assert planned(wish)[1].declined


def test_a_wish_that_is_too_long_is_not_built_in_part() -> None:
    wish = f"Agentflow: write a tender.{' The tender is for a bridge.' * 110} Then translate it into Dutch."
    assert "bridge" in (planned(wish)[1].declined or "")


@pytest.mark.parametrize("wish", SAID)
def test_a_sentence_beside_the_steps_is_told_to_the_models(wish: str) -> None:
    _, plan = planned(wish)
    told = [value.value for value in plan.values if value.param.endswith("Messages")]
    assert told
    assert all(SAID[wish] in str(one) for one in told)
    assert not plan.not_done


LISTS = {
    "Agentflow for our inbox:\n- tenant reports a defect -> ask what and where, emergency number 0800 555 0199\n"
    '- somebody looks for a flat -> fixed text: "We list all vacancies online. No waiting list."\n'
    '- anything else -> fixed text: "Please write to us."': [
        "tenant reports a defect", "somebody looks for a flat", "anything else"],
    "We're a clinic. Messages should be sorted and get a reply:\n1. appointments -> book by phone from 8am\n"
    '2. urgent (chest pain) -> fixed text: "Call 999 now."\n3. rest -> results are never given by chat': [
        "appointments", "urgent (chest pain)", "rest"],
}  # fmt: skip


@pytest.mark.parametrize("wish", LISTS)
def test_a_list_with_arrows_is_a_list_of_branches(wish: str) -> None:
    _, plan = planned(wish)
    values = {value.param: value.value for value in plan.values}
    assert values["conditionAgentScenarios"] == [{"scenario": name} for name in LISTS[wish]]
    assert values["directReplyMessage"] in wish
    assert {part.state for part in plan.parts} == {"covered"}


def test_each_of_a_pasted_list_is_an_iteration() -> None:
    _, plan = planned(
        "Tienda de cerámica. Quiero pegar una lista de productos (uno por línea) y que para cada uno escriba una "
        "descripción de 60 palabras. Estilo sobrio. gpt-4o-mini"
    )
    assert [node.node_name for node in plan.nodes][1:] == ["llmAgentflow", "iterationAgentflow", "llmAgentflow"]


def test_what_comes_after_all_of_a_list_is_no_part_of_each() -> None:
    _, plan = planned(
        "I paste a list of codes, one per line. For EACH code a model should write: likely cause and first check. Then "
        "after all codes one last step should order them by urgency."
    )
    assert plan.declined


def test_a_numbered_list_with_an_introduction_is_a_list_of_steps() -> None:
    _, plan = planned(
        "Pressestelle Landkreis Ostermark. Ablauf gewünscht:\n1. Wir geben Stichpunkte ein\n2. KI schreibt eine "
        "Pressemitteilung (max. 1800 Zeichen)\n3. Ich muss freigeben. Bei Ablehnung mit meinem Kommentar zurück zu 2, "
        'höchstens 3 Runden\n4. Nach Freigabe POST an https://cms.x.example/api mit {"text": ...}\n5. Antwort "Fertig."'
    )
    values = {value.param: value.value for value in plan.values}
    assert [node.node_name for node in plan.nodes] == [
        "startAgentflow", "llmAgentflow", "humanInputAgentflow", "loopAgentflow", "customFunctionAgentflow",
        "httpAgentflow", "directReplyAgentflow",
    ]  # fmt: skip
    assert (values["maxLoopCount"], values["customFunctionJavascriptFunction"]) == (
        3, "return JSON.stringify({text: $text});")  # fmt: skip
    assert {part.state for part in plan.parts} == {"covered"}


def test_a_condition_goes_to_its_end_and_what_is_done_begins_there() -> None:
    wish = (
        "Un agentflow: si el cliente pregunta por horarios responde 'Abrimos de 9 a 18.', si pregunta por precios pide "
        "el modelo, y en los demás casos responde con amabilidad."
    )
    rows = next(one.value for one in planned(wish)[1].values if one.param == "conditionAgentScenarios")
    assert isinstance(rows, list)
    said = [row["scenario"] for row in rows if isinstance(row, dict)]
    assert said[:2] == ["el cliente pregunta por horarios", "pregunta por precios"]


@pytest.mark.parametrize(
    "wish",
    [
        "Every Monday at 07:15 (Europe/Dublin) fetch https://fish.example/prices and write three sentences about cod",
        "Form with name and town. An agentflow writes a letter from it, then I approve it. gpt-4.1",
    ],
)
def test_what_was_read_leaves_no_mark_in_a_flow(wish: str) -> None:
    _, plan = planned(wish)
    assert plan.nodes
    assert "\\u0000" not in plan.model_dump_json()


def test_what_is_sent_to_an_address_is_the_answer_so_far() -> None:
    wish = "Agentflow: extract name, phone and address from the message, then POST it to https://crm.example/leads"
    _, plan = planned(wish)
    values = {f"{value.node_id}.{value.param}": value.value for value in plan.values}
    assert "name, phone and address" in str(values["llmAgentflow_0.llmMessages"])
    assert values["customFunctionAgentflow_0.customFunctionInputVariables"] == [
        {"variableName": "message", "variableValue": "{{ llmAgentflow_0 }}"}
    ]


def test_what_follows_an_approval_is_not_done_after_a_rejection() -> None:
    wish = "Agentflow: write a letter, then I approve it. If rejected, reply 'No letter.' Then translate it into Dutch."
    _, plan = planned(wish)
    ways = {(one.source, one.output): one.target for one in plan.connections}
    assert ways["humanInputAgentflow_0", "proceed"] == "llmAgentflow_1"
    assert ways["humanInputAgentflow_0", "reject"] == "directReplyAgentflow_0"
    assert [one.target for one in plan.connections].count("llmAgentflow_1") == 1


def test_without_a_memory_each_step_is_given_what_the_one_before_it_made() -> None:
    _, plan = planned("Agentflow: write a poem, then translate it into Dutch. No memory.")
    told = {value.node_id: str(value.value) for value in plan.values if value.param == "llmMessages"}
    assert "{{ llmAgentflow_0 }}" in told["llmAgentflow_1"]
