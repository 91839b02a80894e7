"""Flows of steps as people describe them: forms with their fields, branches that share what is done, who approves what,
reviewers, conditions for a text, requests whose address comes later, and what asks for nothing."""

import json
from collections import defaultdict
from typing import Any

import pytest

from tests.unit.reasoning.test_rules_forks import built
from tests.unit.reasoning.test_rules_properties import planned


class Flow:
    """What a wish becomes: values by node and field, what each model is told, and where each way goes."""

    def __init__(self, wish: str) -> None:
        plan, self.values = built(wish)
        self.told = {place.partition(".")[0]: str(value[0]["content"]) for place, value in self.values.items()
                     if place.endswith("Messages")}  # fmt: skip
        self.ways: dict[str, dict[str, str]] = defaultdict(dict)
        for one in plan.connections:
            self.ways[one.source][one.output] = one.target
        self.rows = [
            row["scenario"] for row in self.values.get("conditionAgentAgentflow_0.conditionAgentScenarios", [])
        ]
        self.fields = {row["label"]: row for row in self.values.get("startAgentflow_0.formInputTypes", [])}

    def way(self, name: str) -> str:
        """The node that a branch begins with."""
        return self.ways["conditionAgentAgentflow_0"][str(self.rows.index(name))]

    def model(self, said: str) -> str:
        """The only model that is told this."""
        (node,) = [node for node, told in self.told.items() if said in told]
        return node

    def again(self, human: str = "humanInputAgentflow_0", output: str = "reject") -> tuple[str, Any]:
        """(the step that is made again, how often at most) on a way of an approval or a fork."""
        loop = self.ways[human][output]
        return self.values[f"{loop}.loopBackToNode"].partition("-")[0], self.values.get(f"{loop}.maxLoopCount")


# --- Forms

#: A form -> its fields with their types; those of a choice with what is to be chosen.
FORMS: dict[str, dict[str, Any]] = {
    "Workflow: the guest fills in a form: name, room (sea, garden or yard), years of stay, whether a cot is needed in "
    "the room right now (yes/no). Then write a greeting of 40 words.": {
        "Name": "string", "Room (sea, garden or yard)": ["sea", "garden", "yard"], "Years of stay": "string",
        "Whether a cot is needed in the room right now (yes/no)": "boolean"},
    "Ein Ablauf: 1. Der Mieter füllt ein Formular aus: Name, Art (Heizung, Wasser oder Sonstiges), 2 Fotos-Links. "
    "2. Schreib eine Antwort dazu.": {
        "Name": "string", "Art (Heizung, Wasser oder Sonstiges)": ["Heizung", "Wasser", "Sonstiges"],
        "2 Fotos-Links": "string"},
    "Flujo: la redactora pega la nota en un formulario, con la sección (cultura u otra) y el nombre. Luego escribe un "
    "titular.": {"La nota": "string", "La sección (cultura u otra)": ["cultura", "otra"], "El nombre": "string"},
    "Fluxo em etapas: a pessoa preenche um formulário com nome, data e recado. Depois escreve um orçamento.": {
        "Nome": "string", "Data": "string", "Recado": "string"},
    "An agent flow for returns: the clerk fills in customer, part number, reason and then an LLM writes a letter.": {
        "Customer": "string", "Part number": "string", "Reason": "string"},
}  # fmt: skip


@pytest.mark.parametrize("wish", FORMS, ids=range(len(FORMS)))
def test_each_field_of_a_form_is_one_in_the_words_for_it(wish: str) -> None:
    flow = Flow(wish)
    found = {label: [one["option"] for one in row["addOptions"]] if row["type"] == "options" else row["type"]
             for label, row in flow.fields.items()}  # fmt: skip
    assert found == FORMS[wish]
    assert all(f"{{{{ $form.{row['name']} }}}}" in told for row in flow.fields.values() for told in flow.told.values())


def test_brackets_that_explain_a_field_are_no_choice() -> None:
    flow = Flow("Workflow: form with address (street, town), salary (from, to). Then write a letter of 50 words.")
    assert {row["type"] for row in flow.fields.values()} == {"string"}


# --- Branches

SHARED = {
    "Agent flow: sort the message into opening hours, lost items, or complaints. Opening hours and lost items get a "
    "short answer. Complaints get an apology. Everything else: say we answer within two days.":
        "opening hours, lost items",
    "Ein Agentflow: sortiere die Nachrichten in Bestellung, Beschwerde und Sonstiges. Bei Bestellung oder Sonstiges: "
    "freundlich bestätigen. Bei Beschwerde: eine Entschuldigung schreiben.": "Bestellung, Sonstiges",
    "Flux : classe les messages en devis, panne ou facture. Pour un devis ou une facture : donne le numéro du bureau. "
    "Pour une panne : demande l'adresse.": "devis, facture",
    "Fluxo: classifica as mensagens em preço, tempo, mudança ou outro. Preço: pergunta o orçamento. Tempo: oferece "
    "congelar o plano. Mudança e outro: só confirma o pedido.": "mudança, outro",
}  # fmt: skip


@pytest.mark.parametrize("wish", SHARED, ids=range(len(SHARED)))
def test_branches_that_are_named_together_are_one_way(wish: str) -> None:
    flow = Flow(wish)
    assert SHARED[wish] in flow.rows
    assert len({*flow.ways["conditionAgentAgentflow_0"].values()}) == len(flow.rows)
    assert not {*SHARED[wish].split(", ")} & {*flow.rows}


def test_a_branch_is_named_by_a_word_of_it_and_its_name_has_no_article() -> None:
    flow = Flow(
        "Vorrei un flusso in più passaggi. Il sistema capisce se è una cosa piccola (corde) o una riparazione grossa "
        "(manico). Se è piccola risponde che può passare. Se è grossa propone un appuntamento."
    )
    assert flow.rows == ["cosa piccola (corde)", "riparazione grossa (manico)"]
    assert "può passare" in flow.told[flow.way("cosa piccola (corde)")]


def test_what_else_is_found_out_is_no_branch_but_a_step_in_front_of_them() -> None:
    flow = Flow(
        "Agent flow: sort the message into emergency or appointment and say how urgent it is. Emergency: tell them to "
        "call 555 0199. Appointment: ask for two days."
    )
    assert flow.rows == ["emergency", "appointment"]
    assert flow.ways["startAgentflow_0"][""] == flow.model("and say how urgent it is")
    assert f"{{{{ {flow.model('how urgent')} }}}}" in flow.values["conditionAgentAgentflow_0.conditionAgentInput"]


def test_a_word_that_says_nothing_is_no_step_of_a_branch() -> None:
    assert planned("Agentflow: classify messages into tyres and paint. Tyres: ask for the car. Paint: no.")[1].declined


def test_what_an_item_of_a_list_says_in_more_sentences_belongs_to_its_branch() -> None:
    flow = Flow(
        "Ein Ablauf in mehreren Schritten:\n1) Die KI entscheidet, ob es ein Notfall oder ein Mangel ist.\n2) Bei "
        "Notfall: die Nummer 0561 555 0100 nennen.\n3) Bei Mangel: höflich antworten. Bevor das rausgeht, muss Frau "
        "Albrecht es freigeben; wenn sie ablehnt, wird es mit ihrem Kommentar neu geschrieben, höchstens 2 Mal."
    )
    draft = flow.way("Mangel")
    assert flow.ways[draft][""] == "humanInputAgentflow_0"
    assert flow.again() == (draft, 2)


# --- Approvals

#: What a person says when they are not content, in each language -> how often at most.
REFUSALS = {
    "Agent flow: write a note. Ms Lee approves it - if she rejects it she leaves a comment and it is written again.":
        None,
    "Workflow: write a note, then I approve it. If it's not ok I write what to change and it is redone, max 3 times.":
        3,
    "Ein Ablauf: schreib eine Notiz. Frau Kern gibt sie frei. Passt sie ihr nicht, schreibt sie einen Kommentar und "
    "sie wird neu geschrieben, höchstens 2 Mal.": 2,
    "Flux : écris une note. Je valide, et si je refuse elle recommence avec ma remarque.": None,
    "Flujo: escribe una nota. La encargada, Marta, la aprueba; si no le gusta, escribe qué cambiar y se rehace, como "
    "máximo tres veces.": 3,
    "Flusso: scrivi una nota. La devo approvare io; se non mi piace scrivo cosa non va e la rifà.": None,
    "Fluxo: escreve uma nota, depois eu aprovo. Se eu não gostar, escrevo o que mudar e refaz, no máximo 2 vezes.": 2,
    "Een werkstroom: schrijf een notitie. Ik moet hem goedkeuren; als het niet bevalt wordt het met mijn opmerkingen "
    "opnieuw geschreven, hooguit 2 keer.": 2,
    "Przepływ: napisz notatkę, potem kierownik zatwierdza. Jeśli mu się nie spodoba, napisz od nowa z jego uwagami.":
        None,
}  # fmt: skip


@pytest.mark.parametrize("wish", REFUSALS, ids=range(len(REFUSALS)))
def test_what_is_refused_is_made_again_with_what_the_person_says(wish: str) -> None:
    flow = Flow(wish)
    assert flow.again() == ("llmAgentflow_0", REFUSALS[wish])
    assert [*flow.told] == ["llmAgentflow_0"]


def test_a_refusal_may_lead_to_another_answer() -> None:
    flow = Flow(
        "Fluxo: classifica o motivo em preço ou tempo. Se for preço: oferece 20% de desconto. Se for tempo: oferece "
        "uma pausa. Antes de mandar a oferta de desconto eu quero aprovar; se eu não aprovar, manda só a confirmação."
    )
    assert flow.ways[flow.way("preço")][""] == "humanInputAgentflow_0"
    assert flow.ways["humanInputAgentflow_0"]["reject"] == flow.model("Manda só a confirmação")
    assert not flow.ways[flow.way("tempo")]


ALL_WAYS = (
    "Agent flow: sort the message into hours or complaint. Hours: give the hours. Complaint: write an apology. In both "
    "cases I want to approve it before it is shown, and if I reject it it is written again with my comment.",
    "Flux : si les conditions ne sont pas remplies, prépare un refus, sinon une invitation à un entretien. Dans les "
    "deux cas je veux relire et valider avant que le texte ne s'affiche, et si je refuse on recommence.",
    "Vorremmo un flusso. Un modello capisce se il messaggio è una disdetta, un reclamo oppure una domanda. Se è una "
    "disdetta: conferma la ricezione. Se è un reclamo: scrive delle scuse. In entrambi i casi voglio approvare io; se "
    "non mi va bene la rifà con le mie note. Se è una domanda: risponde che siamo aperti.",
)


@pytest.mark.parametrize("wish", ALL_WAYS, ids=range(len(ALL_WAYS)))
def test_who_approves_on_both_ways_has_each_draft_made_again(wish: str) -> None:
    flow = Flow(wish)
    first, second, *others = flow.ways["conditionAgentAgentflow_0"].values()
    for draft in (first, second):
        assert flow.again(flow.ways[draft][""])[0] == draft
    assert not any(flow.ways[one] for one in others)


def test_what_is_done_once_all_ways_are_approved_has_no_place() -> None:
    plan = planned(f"{ALL_WAYS[0]} If I approve, POST it to https://desk.example/x")[1]
    assert "If I approve, POST it" in (plan.declined or "")


def test_who_approves_may_be_explained_between_commas() -> None:
    flow = Flow("Flux : écris une réponse d'excuses, et la directrice, le Dr Le Goff, doit valider avant l'envoi.")
    assert flow.told["llmAgentflow_0"].endswith("Écris une réponse d'excuses")
    assert "La directrice, le Dr Le Goff, doit" in flow.values["humanInputAgentflow_0.humanInputDescription"]


def test_the_draft_of_a_branch_stays_a_step_where_it_is_approved_in_the_same_clause() -> None:
    flow = Flow(
        "Flusso: smista i messaggi in corde o manico. Corde: rispondi che può passare. Manico: prepara una risposta "
        "gentile, ma prima di mostrarla al cliente la devo approvare io."
    )
    assert "Prepara una risposta gentile" in flow.told[flow.way("manico")]
    assert flow.ways[flow.way("manico")][""] == "humanInputAgentflow_0"


# --- Reviewers

REVIEWS = {
    "Agentflow: draft a newsletter, have a second LLM check it. If it fails, send it back to the writer with the "
    "reasons, max 2 times. If it passes, our editor has to approve. On reject it goes back to the writer.": 2,
    "Een stroom: stap 1 schrijft een advertentie van 120 woorden, niet langer dan 9 regels. Stap 2 controleert of er "
    "geen fouten in staan. Is het niet goed dan terug naar stap 1 met de opmerkingen, hooguit 3 keer. Als het goed is "
    "keurt de chef het goed.": 3,
    "Flux : un premier modèle écrit un communiqué, un deuxième le relit et donne ses remarques. Si ce n'est pas bon, "
    "retour au premier, au maximum 3 fois. Si c'est bon, je valide.": 3,
}  # fmt: skip


@pytest.mark.parametrize("wish", REVIEWS, ids=range(len(REVIEWS)))
def test_a_reviewer_sends_it_back_to_the_writer_and_a_person_approves_what_is_good(wish: str) -> None:
    flow = Flow(wish)
    assert flow.again("conditionAgentAgentflow_0", "0") == ("llmAgentflow_0", REVIEWS[wish])
    assert flow.ways["conditionAgentAgentflow_0"]["1"] == "humanInputAgentflow_0"
    assert flow.again()[0] == "llmAgentflow_0"
    assert flow.values["directReplyAgentflow_0.directReplyMessage"] == "{{ llmAgentflow_0 }}"


def test_what_the_result_is_to_be_is_told_to_the_writer_and_not_to_the_reviewer() -> None:
    flow = Flow(
        "Agentflow:\n- Writer: writes an advert of 90 words\n- Reviewer: checks it for bias. Gives back JSON: ok and a "
        "list of problems\n- If not ok, loop back to the writer with the problems, max 3 times\n- final output is the "
        "advert only"
    )
    assert flow.model("final output is the advert only") == "llmAgentflow_0"
    assert "checks it for bias. Gives back JSON: ok and a list of problems" in flow.told["llmAgentflow_1"]


# --- Conditions for a text

FETCHED = (
    "Agentflow: GET https://api.tides.example/v1, then write a note of 60 words, then POST it to https://h.example/x. "
)


@pytest.mark.parametrize(
    "rule",
    [
        'If there is a storm warning in it, the note must start with "STORM".',
        'If there were no tides just post "Nothing today."',
        "If the level falls by more than 3 % say so first.",
    ],
)
def test_a_condition_that_is_for_the_text_is_told_to_the_model(rule: str) -> None:
    flow = Flow(FETCHED + rule)
    assert rule.rstrip(".") in flow.told["llmAgentflow_0"]
    assert "conditionAgentAgentflow_0" not in flow.ways


def test_conditions_are_no_branches_where_the_steps_go_on_behind_all_of_them() -> None:
    flow = Flow(
        'Agentflow: GET https://api.row.example/v2, then write a short notice. If board is "red" the notice says no '
        'boats, full stop. If "green": normal rules. Then POST the notice as {"text": "..."} to https://h.example/n.'
    )
    assert 'If board is "red" the notice says no boats, full stop' in flow.told["llmAgentflow_0"]
    assert 'If "green": normal rules' in flow.told["llmAgentflow_0"]
    assert flow.values["httpAgentflow_1.url"] == "https://h.example/n"


@pytest.mark.parametrize(
    "end",
    ["If the list is empty don't post anything.", "Wenn die Liste leer ist, nichts senden.",
     "Se a lista estiver vazia, não mandar nada.", "Als de lijst leeg is, stuur dan niets."],
)  # fmt: skip
def test_nothing_is_sent_where_a_condition_ends_the_flow(end: str) -> None:
    flow = Flow(FETCHED + end)
    assert flow.ways["httpAgentflow_0"][""] == "conditionAgentAgentflow_0"
    (on,) = flow.ways["conditionAgentAgentflow_0"].values()
    assert (on, *flow.ways["conditionAgentAgentflow_0"]) == ("llmAgentflow_0", "1")
    assert "{{ httpAgentflow_0 }}" in flow.values["conditionAgentAgentflow_0.conditionAgentInput"]


# --- Requests and schedules


def test_nothing_is_done_on_a_way_that_ends_at_once() -> None:
    flow = Flow("Agentflow: sort mails into returns or spam. Returns: write an answer. Spam: do nothing.")
    assert [*flow.ways["conditionAgentAgentflow_0"]] == ["0"]
    assert [*flow.told] == [flow.way("returns")]


def test_a_verb_behind_an_address_is_of_its_request() -> None:
    flow = Flow("Ein Agentflow: schreib acht Zeilen, dann per POST an https://chat.example/hook schicken.")
    assert flow.values["httpAgentflow_0.method"] == "POST"


def test_the_address_of_a_request_may_be_said_later() -> None:
    flow = Flow(
        "Agentflow: GET https://api.tides.example/v1 (it gives JSON, my son made it), have an LLM turn it into 5 "
        'lines, then POST that to our webhook as {"note": "..."}. The webhook url is https://h.example/ops.'
    )
    assert flow.values["httpAgentflow_1.url"] == "https://h.example/ops"
    assert flow.values["customFunctionAgentflow_0.customFunctionInputVariables"][0]["variableName"] == "note"
    assert "Turn it into 5 lines" in flow.told["llmAgentflow_0"]


def test_what_a_person_puts_in_by_hand_is_left_to_be_filled_in() -> None:
    flow = Flow(
        "Agentflow: get https://api.rota.example/v1 (GET, needs a bearer token), write a list, and POST it to our "
        "Teams webhook. I can do tokens and webhooks myself if you leave me the slots."
    )
    assert flow.values["httpAgentflow_1.url"].startswith("[PLACEHOLDER")
    assert "token" not in json.dumps(flow.values)
    assert flow.values["customFunctionAgentflow_0.customFunctionInputVariables"][0]["variableName"] == "text"


def test_a_request_without_an_address_is_declined() -> None:
    assert "POST it to our Teams webhook" in (
        planned("Agentflow: write a list, then POST it to our Teams webhook.")[1].declined or ""
    )


def test_what_a_request_is_for_is_no_step() -> None:
    flow = Flow("Agentflow: write a letter, then post it to https://h.example/drafts so I can look at it there.")
    assert flow.values["httpAgentflow_0.method"] == "POST"


SCHEDULES = (
    "I'd love something that runs by itself every Sunday at 18:00 (Dublin). It should fetch https://b.example/api, "
    "write 9 lines and then post it to https://b.example/drafts.",
    "Fluxo em etapas: todo domingo às 18:00 (horário de Dublin) buscar a lista de https://b.example/api (GET), "
    "escrever 9 linhas e mandar por POST para https://b.example/drafts.",
)


@pytest.mark.parametrize("wish", SCHEDULES, ids=range(len(SCHEDULES)))
def test_a_schedule_is_one_wherever_it_is_said(wish: str) -> None:
    flow = Flow(wish)
    found = {name: flow.values[f"startAgentflow_0.schedule{name}"] for name in ("OnDayOfWeek", "OnTime", "Timezone")}
    assert found == {"OnDayOfWeek": "7", "OnTime": "18:00", "Timezone": "Europe/Dublin"}


def test_a_zone_in_an_address_stays_there() -> None:
    flow = Flow(
        "Agentflow: every Monday and Thursday at 6:30 GET https://m.example/v1?timezone=Europe/Amsterdam, then write 5 "
        "lines about it."
    )
    assert flow.values["httpAgentflow_0.url"] == "https://m.example/v1?timezone=Europe/Amsterdam"
    assert flow.values["startAgentflow_0.scheduleOnDayOfWeek"] == "1,4"


def test_what_happens_every_month_is_a_fact_of_a_step() -> None:
    flow = Flow(
        "Agent flow: sort the message into billing or technical. Billing gets an answer (invoices go out on the 3rd of "
        "every month). Technical gets an answer that asks for the browser."
    )
    assert "the 3rd of every month" in flow.told[flow.way("billing")]


# --- Models

MODELS = {
    "Agent flow: step 1: read the order. Step 2: write a confirmation. Use Claude for the confirmation and something "
    "cheap for the reading.": ["chatOpenAI None", "chatAnthropic None"],
    "Flujo: 1. Un paso saca los datos. 2. Otro paso escribe la noticia. De modelo ponme gpt-4o para escribir y uno "
    "barato para sacar los datos.": ["chatOpenAI None", "chatOpenAI gpt-4o"],
}  # fmt: skip


@pytest.mark.parametrize("wish", MODELS, ids=range(len(MODELS)))
def test_a_model_for_one_step_is_not_for_the_others(wish: str) -> None:
    flow = Flow(wish)
    assert [*flow.told] == ["llmAgentflow_0", "llmAgentflow_1"]
    used = [f"{flow.values[f'{node}.llmModel']} {flow.values[f'{node}.llmModelConfig'].get('modelName')}"
            for node in flow.told]  # fmt: skip
    assert used == MODELS[wish]


# --- What asks for nothing

PLAIN = "Workflow: {before}write a poem about the topic, then translate it into Dutch. {behind}"


@pytest.mark.parametrize(
    "behind",
    [
        "Grazie mille e scusate se mi sono dilungata.",
        "Voilà, j'espère que c'est assez clair, je ne m'y connais pas du tout !",
        "If a schedule isn't possible on my server just tell me and let me start it by hand.",
        "Alvast bedankt!",
        "Sorry for the long text!",
    ],
)
def test_thanks_and_asides_are_told_to_nobody(behind: str) -> None:
    flow = Flow(PLAIN.format(before="", behind=behind))
    assert [told.rpartition("\n")[0] for told in flow.told.values()] == ["", ""]


def test_that_a_flow_in_steps_is_wanted_is_no_step() -> None:
    flow = Flow(
        "Bonjour,\nJe voudrais un agent avec plusieurs étapes, si c'est possible. D'abord écris un poème, ensuite "
        "traduis-le en anglais."
    )
    assert [*flow.told.values()] == ["Écris un poème", "Traduis-le en anglais"]
