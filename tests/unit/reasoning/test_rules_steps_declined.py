"""Wishes in words for flows of steps: declined with the clauses in which steps were heard, and with the way on."""

import pytest

from flowise_dev_agent.contracts.designs import form_of
from flowise_dev_agent.contracts.plan import Part
from tests.unit.reasoning.test_rules_properties import planned

#: What is asked for -> a clause in which steps are heard.
STEPS = {
    "Agentflow: si el pedido supera los 200 euros lo aprueba el jefe, si no responde 'Gracias.'":
        "Agentflow: si el pedido supera los 200 euros lo aprueba el jefe",
    "Modulo con nome e importo. Se l'importo supera 5000 euro deve approvare una persona, altrimenti scrivi una "
    "conferma.": "Se l'importo supera 5000 euro deve approvare una persona",
    "Agentflow: write an offer, then the boss approves it, then the lawyer approves it.": "then the boss approves it",
    "AgentFlow: Ein LLM schreibt eine Stellenanzeige, danach prüft eine Kollegin und gibt frei.":
        "danach prüft eine Kollegin",
    "quiero un flujo que redacte el boletín, luego lo revisa Marta y lo aprueba. Si lo rechaza se reescribe":
        "lo aprueba",
    "Agentflow for our clinic: nurses answer medical questions, reception answers appointment questions.":
        "Agentflow for our clinic: nurses answer medical questions",
    "Every Monday at 07:15 (Europe/Dublin) fetch https://fish.example/prices and write three sentences about cod":
        "Every Monday at 07:15 (Europe/Dublin) fetch https://fish.example/prices",
    "Chaque jour à 18h30 Europe/Paris, appelle https://gare.example/retards puis résume les retards":
        "Chaque jour à 18h30 Europe/Paris",
    "cada día laborable a las 8 consulta https://api.tiempo.example/x y escribe un aviso":
        "cada día laborable a las 8 consulta https://api.tiempo.example/x",
    "A workflow where an AI drafts a reply to a review, I check it and if I reject it it gets rewritten with my "
    "comments, max 4 rounds.": "I check it",
    "Um fluxo: o primeiro agente pesquisa na web, o segundo escreve um texto. Antes de terminar quero aprovar o texto.":
        "Antes de terminar quero aprovar o texto.",
    "Najpierw LLM pisze szkic, potem drugi sprawdza błędy, na końcu kierownik zatwierdza.": "na końcu kierownik",
    "Een flow: een schrijver maakt een persbericht, dan keurt de chef het goed.": "dan keurt de chef het goed",
    "I need a flow. Step 1: an LLM writes a job ad. Step 2: another one shortens it to 80 words. Step 3: I approve it.":
        "Step 3: I approve it.",
    "Form with name, allotment and what is broken. An LLM writes a work order from it.": "Form with name",
    "Ein Ablauf: KI entscheidet ob Notfall, Reparatur oder Sonstiges. Bei Notfall die Nummer 0170 55566 nennen.":
        "Reparatur oder Sonstiges.",
    "Fetch https://api.tides.example/today with GET, then write a text for surfers": "Fetch https://api.tides.example",
}  # fmt: skip
#: What a chat model does by itself, although it reads a little like steps.
NONE = [
    "A chatbot for a bike shop. If someone asks about repairs, ask for the brand, otherwise answer kindly.",
    "Flujo: si el cliente pide una devolución pregúntale el número, si no contesta amablemente.",
    "Translates what people write into Dutch and corrects its spelling",
    "Ein Bot für die Praxis. Erst den Namen erfragen, dann den Grund des Anrufs.",
    "A flow that answers questions about our bread, with the prices of today",
    "Un assistant pour le musée, ouvert tous les jours de 10h à 18h.",
    "Assistant with a calculator and a web search for travel plans",
]


@pytest.mark.parametrize("wish", STEPS, ids=range(len(STEPS)))
def test_a_wish_with_steps_is_declined_with_its_clauses_and_the_way_to_the_form(wish: str) -> None:
    _, plan = planned(wish)
    assert f"«{STEPS[wish]}" in (plan.declined or "")
    assert "build --guided" in (plan.declined or "")
    assert (plan.flow_kind, plan.nodes, plan.asks) == ("AGENTFLOW", [], False)


@pytest.mark.parametrize("wish", NONE, ids=range(len(NONE)))
def test_what_only_reads_a_little_like_steps_is_a_chatflow(wish: str) -> None:
    _, plan = planned(wish)
    assert (plan.declined, plan.flow_kind) == (None, "CHATFLOW")


def test_the_form_that_a_declined_wish_leads_to_holds_all_of_its_words() -> None:
    said = ["Every evening fetch https://shop.example/orders.", "Summarise them.", "I approve it."]
    _, plan = planned(" ".join(said))
    parts = [Part(id=f"p{n}", quote=quote) for n, quote in enumerate(said, 1)]
    form = form_of(plan.model_copy(update={"parts": parts}), " ".join(said))
    assert form is not None
    assert [(step.kind, step.prompt or step.url) for step in form.steps] == [
        ("call", "https://shop.example/orders"), ("answer", "Summarise them."), ("answer", "I approve it."),
    ]  # fmt: skip
