"""A wish that contradicts a sentence of the prompt: replaced where the wish says so, else one question."""

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.agent.prompt_context import components_of, connected_inputs
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.design.rewording import amendment, sentences
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

STORE = NodeStore.from_snapshot()
PROMPT = "systemMessagePrompt"
HORSES = (
    "Du bist die Auskunft des Reiterhofs Linde.\nAntworte immer auf Deutsch und duze die Gäste.\n"
    "Eine Reitstunde kostet 28 Euro, ein Ausritt 40 Euro.\nWir haben von 10 bis 17 Uhr offen. Ruf uns an: 08151 22 33."
)
BOATS = (
    "You answer for Heron Boats in Cobh.\nStart every answer by apologising for the wait.\nNever mention discounts.\n"
    "Opening hours are 9:00 to 18:00. Call us on 053 555 0166.\nKeep answers under 120 words."
)
BREAD = "Tu réponds pour la boulangerie du Port.\nVouvoie les clients.\nLe pain de seigle coûte 3,20 €."
DIVING = "Eres la voz de la escuela de buceo Coral.\nTutea a los alumnos.\nEl bautismo cuesta 60 euros."
BIKES = "Jesteś asystentem warsztatu Szprycha.\nOdpowiadaj zawsze po polsku.\nPrzegląd kosztuje 120 zł."
SWIMMING = "Je bent de assistent van zwemschool De Golf.\nSpreek ouders aan met u.\nEen les kost 12 euro."
TEA = "茶道教室「松風」の案内係です。\n体験は3000円です。\n電話番号は075-555-0123です。"
CLAY = "Sei la voce del laboratorio Terracotta.\nDai del lei ai clienti.\nUn corso costa 90 euro."
BOOKS = "Você responde pela livraria Farol.\nUm vale custa 20 euros.\nLigue para 213 555 010."

HELLO = "Du hilfst im Teeladen Blatt.\nBegrüße alle mit „Moin“."
SHOP = "You answer for the quilt shop.\nWe are closed on Sundays.\nOur address is 3 Mill Lane."


def flow(prompt: str, *more: AddNode) -> GraphIR:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0", params={PROMPT: prompt}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        *more,
    ]
    return compile_ops(GraphIR.empty(), ops, STORE.schemas).graph


def planned(prompt: str, wish: str, *answers: tuple[str, str], **more: Any) -> PlanContract:
    """The plan for a wish, or for feedback to a former plan."""

    async def asked() -> PlanContract:
        rules, graph = DeterministicReasoner(), more.pop("graph", None) or flow(prompt)
        first = ClassifyRequest(requirement=wish, target="Front desk", clarifications=answers)
        request = PlanRequest(
            requirement=wish,
            clarifications=answers,
            intent=(await rules.classify(first)).value,
            nodes=STORE,
            credential_types={"openAIApi": 1},
            target="Front desk",
            flow_summary="a flow",
            base=graph,
            existing={node.id: node.name for node in graph.nodes},
            labels={node.id: node.label for node in graph.nodes},
            occupied=connected_inputs(graph),
            texts={f"conversationChain_0.{PROMPT}": prompt},
            **more,
        )
        return (await rules.plan(request)).value

    return asyncio.run(asked())


def prompt_after(prompt: str, plan: PlanContract) -> str:
    for value in plan.values:
        if value.param == PROMPT:
            prompt = str(value.value) if value.mode == "set" else f"{prompt}\n{value.value}"
    return prompt


@pytest.mark.parametrize(
    ("prompt", "wish", "old", "new"),
    [
        (HORSES, "Er soll auf Englisch antworten statt auf Deutsch.", "auf Deutsch und", "auf Englisch und"),
        (HORSES, "Die neue Nummer ist 08151 99 88.", "08151 22 33", "08151 99 88"),
        (HORSES, "Eine Reitstunde kostet jetzt 32 Euro.", "28 Euro, ein", "32 Euro, ein"),
        (HORSES, "Wir haben jetzt bis 19 Uhr offen.", "10 bis 17 Uhr", "10 bis 19 Uhr"),
        (BOATS, "we close at 20:00 now", "9:00 to 18:00", "9:00 to 20:00"),
        (BOATS, "Use 053 555 0199 instead of 053 555 0166.", "053 555 0166", "053 555 0199"),
        (BOATS, "stop apologising", "Start every answer by apologising for the wait.", "Stop apologising."),
        (BOATS, "Remove the line about discounts", "Never mention discounts.\n", ""),
        (BREAD, "Le pain de seigle passe à 3,50 €.", "3,20 €", "3,50 €"),
        (DIVING, "El bautismo cuesta ahora 65 euros", "60 euros", "65 euros"),
        (BIKES, "Przegląd kosztuje teraz 140 zł.", "120 zł", "140 zł"),
        (SWIMMING, "Een les kost nu 14 euro.", "12 euro", "14 euro"),
        (TEA, "電話番号は075-555-9999に変わりました。", "075-555-0123", "075-555-9999"),
        (CLAY, "Un corso costa adesso 95 euro", "90 euro", "95 euro"),
        (BOOKS, "O novo telefone é 213 555 999.", "213 555 010", "213 555 999"),
        (HELLO, "Statt „Moin“ soll er „Servus“ sagen.", "„Moin“", "„Servus“"),
    ],
)
def test_only_what_a_wish_replaces_goes(prompt: str, wish: str, old: str, new: str) -> None:
    plan = planned(prompt, wish)
    assert plan.declined is None
    assert prompt_after(prompt, plan) == prompt.replace(old, new)
    assert any(f"«{one.group()}»" in step for one in sentences(prompt) for step in plan.steps)


CLEAR = [
    (HORSES, "Bitte die Gäste siezen.", "und duze die Gäste.", ". Bitte die Gäste siezen."),
    (BOATS, "it can mention discounts now", "Never mention discounts.", "It can mention discounts now."),
    (BOATS, "answers may have up to 200 words", "under 120 words", "under 200 words"),
    (BREAD, "Il faut tutoyer les clients.", "Vouvoie les clients.", "Il faut tutoyer les clients."),
    (DIVING, "Trata a los alumnos de usted.", "Tutea a los alumnos.", "Trata a los alumnos de usted."),
    (BIKES, "Odpowiadaj po angielsku.", "po polsku.", "po angielsku."),
    (SWIMMING, "Spreek ouders voortaan aan met je.", "Spreek ouders aan met u.", "Spreek ouders voortaan aan met je."),
    (BOATS, "don't apologise for the wait", BOATS.split("\n")[1], "Don't apologise for the wait."),
    (SHOP, "We're open on Sundays now.", "We are closed on Sundays.", "We're open on Sundays now."),
    (SHOP, "we moved to 12 Quay Street", "Our address is 3 Mill Lane.", "We moved to 12 Quay Street."),
    (CLAY, "Dai del tu ai clienti", "Dai del lei ai clienti.", "Dai del tu ai clienti."),
    (
        "You answer. Answer in at most 4 sentences.",
        "two sentences max",
        "Answer in at most 4 sentences.",
        "Answer in two sentences max.",
    ),
    ("You tutor in maths. Be friendly and give long answers.", "be brief", "and give long answers.", ". Be brief."),
    (
        "You answer. Be matter-of-fact.",
        "Der Ton darf lockerer sein",
        "Be matter-of-fact.",
        "Der Ton darf lockerer sein.",
    ),
    ("You answer. Seja formal e breve.", "Pode ser mais descontraída", "Seja formal", "Pode ser mais descontraída"),
]


@pytest.mark.parametrize(("prompt", "wish", "old", "new"), CLEAR)
def test_a_clear_rule_replaces_one_sentence(prompt: str, wish: str, old: str, new: str) -> None:
    plan = planned(prompt, wish)
    assert plan.declined is None
    assert prompt_after(prompt, plan) == prompt.replace(f" {old}" if new[0] == "." else old, new)
    assert any(f"«{one.group()}»" in step for one in sentences(prompt) for step in plan.steps)


PARROTS = (
    "You are the assistant of Dr. Bo & Co. in St. Ives, founded in 1990.\nOpen Mon-Fri 9:00 to 18:00 and on Sat. from "
    "9:00 to 12:00.\nA parrot costs £45, a perch £12. Seeds, e.g. millet, are £3.\nKeep answers short."
)


@pytest.mark.parametrize(
    ("wish", "old", "new"),
    [
        ("On Saturdays we are open until 14:00 now", "to 12:00", "to 14:00"),
        ("From Monday to Friday we open at 8:30", "Fri 9:00", "Fri 8:30"),
        ("The perch is £15", "£12", "£15"),
        ("perches cost £15 and parrots £50", "£45, a perch £12", "£50, a perch £15"),
        ("millet is £4 now", "£3", "£4"),
        ("answers can be long", "Keep answers short.", "Answers can be long."),
    ],
)
def test_a_value_changes_where_its_owner_is_named(wish: str, old: str, new: str) -> None:
    plan = planned(PARROTS, wish)
    assert plan.declined is None
    assert prompt_after(PARROTS, plan) == PARROTS.replace(old, new)


@pytest.mark.parametrize(
    "wish",
    [
        "On Sundays we are open 10:00 to 12:00",
        "A cage costs £80",
        "Mention the long waiting list",
        "put a signature line at the end of every answer: Your team at Dr. Bo & Co.",
        "You may say that Dr. Bo was founded by two sisters",
        "our fax number is 01736 555 010",
        "In December we also open on Sat. from 13:00 to 15:00",
    ],
)
def test_what_is_about_another_thing_is_added_and_changes_nothing(wish: str) -> None:
    after = prompt_after(PARROTS, planned(PARROTS, wish))
    assert after == f"{PARROTS}\n{wish[0].upper()}{wish[1:]}"


def test_another_number_to_call_takes_the_place_of_none() -> None:
    prompt = f"{PARROTS}\nIn emergencies call the vet on 01736 555 099."
    after = prompt_after(prompt, planned(prompt, "End each answer with: Call 01736 555 011"))
    assert after.startswith(f"{prompt}\n")
    assert "Call 01736 555 011" in after


def test_a_line_that_says_more_than_the_new_value_is_asked_about() -> None:
    for wish in ("From May the perch costs £15, cash only", "A perch is £15 from April"):
        question = planned(PARROTS, wish).declined or ""
        assert "«A parrot costs £45, a perch £12.»" in question
        assert prompt_after(PARROTS, planned(PARROTS, wish, (question, "both"))) == f"{PARROTS}\n{wish}"
    mail = "Write to stay@gull.example."
    assert prompt_after(mail, planned(mail, "new email: hello@gull.example")) == "Write to hello@gull.example."


ASKED = [
    ("You sell tea. Be brief. Never write long texts.", "be detailed", "Be brief.", "1", "both",
     "Be brief about green tea."),
    ("You sell tea. Never promise a date for a blend.", "blends can be promised within a week",
     "Never promise a date for a blend.", "replace", "keep both", "Promise blends of tea on Mondays only."),
    (PARROTS, "the price is £20 now", "A parrot costs £45, a perch £12.", "The price of a parrot is £20, a perch £12.",
     "keep both", "A parrot costs £20, a perch £12."),
    (BREAD + " Ne parle ni de gâteaux, ni de glaces ou de prix.", "Il peut parler de glaces maintenant",
     "Ne parle ni de gâteaux, ni de glaces ou de prix.", "Ne parle ni de gâteaux, ni de prix.", "les deux",
     "Parle de glaces en été."),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "wish", "sentence", "replace", "both", "own"), ASKED)
def test_answers_settle_it(prompt: str, wish: str, sentence: str, replace: str, both: str, own: str) -> None:
    question = planned(prompt, wish).declined or ""
    assert question.rstrip().endswith("?")
    assert f"«{sentence}»" in question
    after = prompt_after(prompt, planned(prompt, wish, (question, replace)))
    assert sentence not in after
    assert all(one.group() in after for one in sentences(prompt) if one.group() != sentence)
    assert prompt_after(prompt, planned(prompt, wish, (question, both))).startswith(prompt)
    if replace != "1":
        assert prompt_after(prompt, planned(prompt, wish, (question, own))) == prompt.replace(sentence, own)
    # An answer to something else gets into no prompt, and nobody is asked the same twice.
    for other in ("OpenAI is fine", "yes, but keep the old one where it fits", "replace"):
        again = planned(prompt, wish, (question, other))
        assert f"«{other}»" in (again.declined or "") or (other == "replace" and replace != "1" and not again.declined)


APPENDED_BESIDE = [
    ("Always answer in English, even to other languages.", "If someone writes in Welsh it should answer in Welsh"),
    ("Sign off with \"Happy throwing!\"", "end every answer with: Questions? Call 01797 555 021"),
    ("Gib keine Rechtsberatung.", "Es soll auch eine kurze Einschätzung zur Rechtslage geben"),
    ("No des precios de lentillas; que llamen al 965 555 210.", "Ya podemos dar precios de lentillas: 22 € la caja"),
    ("Abrimos de 10 a 14 y de 17 a 20.", "Por la tarde abrimos hasta las 21 ahora"),
    ("Spediamo solo in Italia, con 9 euro di spese.", "Adesso spediamo anche in Svizzera, 25 euro"),
    ("Rispondi in italiano, con tono cordiale.", "Antworte auch auf Deutsch, wenn jemand Deutsch schreibt"),
    ("Otwarte codziennie od 8:00 do 20:00.", "W niedziele zamykamy o 18:00"),
    ("Evening classes run on Tuesdays from 6pm to 9pm and cost £34.", "Evening classes move to Wednesdays, same time"),
    ("Bei Fragen verweise an Frau Ebert, Tel. 0365 555 12.", "Frau Ebert ist weg, jetzt Herr Solak, Tel. 0365 555 18"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "wish"), APPENDED_BESIDE)
def test_a_wish_that_settles_nothing_is_asked_about(sentence: str, wish: str) -> None:
    plan = planned(f"You answer for the house.\n{sentence}", wish)
    assert plan.asks
    assert f"«{sentence}»" in (plan.declined or "")
    assert wish.split(" ", 1)[1] in (plan.declined or "")


@pytest.mark.parametrize(
    ("prompt", "wish", "changed"),
    [
        ("You answer.\nOur rate is 120 pounds per hour plus VAT. The first call of 30 minutes is free.",
         "the hourly rate went up to 145, and the first call is only 20 mins now", ("120 pounds", "145 pounds")),
        ("You answer.\nCancel up to 24 hours beforehand, after that we charge £20. A visit costs £46. Scans take 24 "
         "hours.", "cancelling is 48 hours now, not 24. and the fee went up to £30",
         ("24 hours beforehand", "48 hours beforehand")),
        ("案内係です。\n受付時間は9時〜17時です。図書館は10時〜17時です。",
         "受付時間を9時〜17時から9時〜18時に変えてください。", ("9時〜17時", "9時〜18時")),
    ],
)  # fmt: skip
def test_a_new_value_takes_the_place_of_the_old_one_alone(prompt: str, wish: str, changed: tuple[str, str]) -> None:
    plan = planned(prompt, wish)
    assert plan.declined is None
    after = prompt_after(prompt, plan)
    expected = prompt.replace(*changed, 1).replace("30 minutes", "20 mins" if "20 mins" in wish else "30 minutes")
    assert after == expected.replace("£20", "£30" if "£30" in wish else "£20")


@pytest.mark.parametrize(
    ("prompt", "wish"),
    [
        (HORSES, "Er soll außerdem auf den Parkplatz am Weiher hinweisen."),
        (BOATS, "Also mention the sunset tour on Fridays"),
        (BREAD, "Parle aussi de la tarte aux pommes."),
        (SWIMMING, "Vraag ook naar het lesnummer."),
        (TEA, "英語で答えてください。"),
    ],
)
def test_what_contradicts_nothing_is_added(prompt: str, wish: str) -> None:
    plan = planned(prompt, wish)
    assert plan.declined is None
    assert [value.mode for value in plan.values] == ["append"]


def test_a_value_that_is_not_said_is_asked_for_and_the_answer_set() -> None:
    wish = "put the price up by 5"
    question = planned(DIVING, wish).declined or ""
    assert question.endswith("?")
    assert "El bautismo cuesta 60 euros." in question
    plan = planned(DIVING, wish, (question, "bautismo 65 euros"))
    assert prompt_after(DIVING, plan) == DIVING.replace("60 euros", "65 euros")


@pytest.mark.parametrize(
    ("wish", "remark", "param"),
    [
        ("gpt-4o is far too expensive for us, take gpt-4o-mini", "gpt-4o is far too expensive for us", "modelName"),
        ("it keeps getting the sums wrong, add a calculator", "it keeps getting the sums wrong", "systemMessage"),
        (
            "Customers complained last week. Set the temperature to 0.2",
            "Customers complained last week.",
            "temperature",
        ),
    ],
)
def test_a_remark_is_shown_and_written_nowhere(wish: str, remark: str, param: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert param in {value.param for value in plan.values}
    assert [(part.quote.strip(" ,"), part.state) for part in plan.parts if part.state != "covered"] == [
        (remark, "assumed")
    ]
    assert not any(remark in str(value.value) for value in plan.values)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("set the second model's temperature to 0.1", {("chatOpenAI_1", "temperature"): 0.1}),
        ("the second one, not the first, should use gpt-4o-mini", {("chatOpenAI_1", "modelName"): "gpt-4o-mini"}),
        (
            "switch both to gpt-4o-mini",
            {("chatOpenAI_0", "modelName"): "gpt-4o-mini", ("chatOpenAI_1", "modelName"): "gpt-4o-mini"},
        ),
        ("przejdź na gpt-4o-mini w modelu Summaries", {("chatOpenAI_1", "modelName"): "gpt-4o-mini"}),
        ("In the Summaries model 400 tokens are enough", {("chatOpenAI_1", "maxTokens"): 400}),
    ],
)
def test_ordinals_names_and_both_choose_the_model(wish: str, changed: dict[tuple[str, str], Any]) -> None:
    second = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", label="Summaries")
    plan = planned(BOATS, wish, graph=flow(BOATS, second))
    assert plan.declined is None
    assert {(value.node_id, value.param): value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("copy as 'Cork desk' with the phone number 053 555 0200", "Cork desk"),
        ("haz una copia llamada «Cork desk» con el teléfono 053 555 0200", "Cork desk"),
        ("Faça uma cópia chamada «Cork desk» com o telefone 053 555 0200", "Cork desk"),
        ("Maak een kopie genaamd „Cork desk“ met telefoon 053 555 0200", "Cork desk"),
    ],
)
def test_a_copy_with_another_value_is_a_copy_and_only_that_differs(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.operation, plan.flow_name, plan.declined) == ("copy", name, None)
    assert prompt_after(BOATS, plan) == BOATS.replace("053 555 0166", "053 555 0200")


@pytest.mark.parametrize(
    "wish",
    [
        "Rename Front to Desk",
        "Rename the model to Main model. Set the temperature to 0.2",
        "Renombra el modelo a Principal",
        "Renomeie o modelo para Principal",
        "Renomme le modèle en Principal",
        "Front → Desk",
        "zmień nazwę Front na Desk",
        "「Front」を「Desk」に変更",
        "Benenne Front in Desk um",
    ],
)
def test_a_wish_to_rename_a_node_is_declined_and_never_told_to_the_model(wish: str) -> None:
    more = AddNode(node_name="calculator", node_id="calculator_0", label="Front")
    plan = planned(BOATS, wish, graph=flow(BOATS, more))
    assert plan.declined
    assert plan.values == []


def test_words_and_a_tool_of_one_wish_are_both_kept_when_the_chain_becomes_an_agent() -> None:
    plan = planned(BOATS, "add a calculator and tell people about gift vouchers")
    assert [(v.node_id, v.param, v.mode, v.value) for v in plan.values] == [
        ("toolAgent_0", "systemMessage", "set", f"{BOATS}\nTell people about gift vouchers")
    ]


def test_a_correction_takes_back_a_tool_and_keeps_the_words_and_the_chain() -> None:
    wish = "add a calculator and tell people about gift vouchers"
    plan = planned(BOATS, wish, previous=planned(BOATS, wish), feedback="no, without the calculator")
    assert plan.declined is None
    assert (plan.removals, plan.new_nodes) == ([], set())
    assert prompt_after(BOATS, plan) == f"{BOATS}\nTell people about gift vouchers"


def test_a_correction_takes_back_one_half_of_a_line() -> None:
    wish = "tell people about gift vouchers and the autumn sale"
    plan = planned(BOATS, wish, previous=planned(BOATS, wish), feedback="leave out the bit about the sale")
    assert prompt_after(BOATS, plan) == f"{BOATS}\nTell people about gift vouchers"


def test_a_conversation_that_gets_a_file_answers_from_it_with_its_prompt_kept() -> None:
    plan = planned(BOATS, "Answer from our PDF price list")
    assert plan.removals == ["conversationChain_0"]
    assert {"pdfFile", "conversationalRetrievalQAChain"} <= {node.node_name for node in plan.nodes}
    (prompt,) = [str(value.value) for value in plan.values if value.param == "responsePrompt"]
    assert prompt.startswith(BOATS)
    assert "{context}" in prompt


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("zmień temperaturę na 0.3", {("chatOpenAI_0", "temperature"): 0.3}),
        ("disable streaming", {("chatOpenAI_0", "streaming"): False}),
        ("use gpt-4o-mini everywhere, it gets the sums wrong", {("chatOpenAI_0", "modelName"): "gpt-4o-mini"}),
    ],
)
def test_a_setting_gets_into_no_prompt(wish: str, changed: dict[tuple[str, str], Any]) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert {(value.node_id, value.param): value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    ("wish", "node"),
    [
        ("the agent that drafts should also put the claim number first", "agentAgentflow_0"),
        ("the agent should also put the claim number first", "agentAgentflow_0"),
        ("the proofreader should keep capitals", "llmAgentflow_0"),
        ("answer in Irish", ""),
    ],
)
def test_a_step_is_found_by_its_title_or_asked_about(wish: str, node: str) -> None:
    steps = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Drafter",
                params={"agentMessages": [{"role": "system", "content": "<p>Write a reply.</p>"}]}),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Proofreader",
                params={"llmMessages": [{"role": "system", "content": "<p>Correct it.</p>"}]}),
    ]  # fmt: skip
    plan = planned("", wish, graph=compile_ops(GraphIR.empty(), steps, STORE.schemas).graph)
    if node:
        assert [(value.node_id, value.mode) for value in plan.values] == [(node, "append")]
    else:
        assert plan.declined == "This could mean: Drafter, Proofreader. Which one?"


def test_of_a_sentence_of_which_a_part_is_a_setting_nothing_is_written_into_the_prompt() -> None:
    for wish in (
        "Er soll sich nur noch die letzten 5 Nachrichten merken, das wird sonst zu teuer",
        'Put a moderation in front so nobody can insult our volunteers, message should be "Keep it friendly."',
    ):
        plan = planned(BOATS, wish)
        assert plan.values
        assert prompt_after(BOATS, plan) == BOATS


def test_hours_of_another_day_are_no_change_of_others() -> None:
    prompt = "Du gibst Auskunft.\nTermine gibt es Mo bis Do von 9 bis 16 Uhr."
    plan = planned(prompt, "Freitags sind wir jetzt auch da, 9 bis 12 Uhr")
    assert plan.asks or prompt_after(prompt, plan).startswith(f"{prompt}\n")


def test_an_old_and_a_new_number_without_unit_change_the_number_alone() -> None:
    prompt = f"{BOATS}\nThe deposit is 100 pounds, returned within three days."
    plan = planned(prompt, "the deposit is 150 now not 100, someone got it wrong yesterday and I had to argue with him")
    assert prompt_after(prompt, plan) == prompt.replace("100 pounds", "150 pounds")


def test_one_shared_word_without_a_contradiction_is_no_evidence() -> None:
    prompt = f"{BOATS}\nTail-lift delivery costs 25 euros more."
    assert [value.mode for value in planned(prompt, "never promise delivery dates").values] == ["append"]


def test_a_story_alone_is_no_wish_and_gets_into_no_prompt() -> None:
    story = "Pupils noticed that asking for discounts in verse makes the thing give in to them on every single occasion"
    assert planned(BOATS, story).declined
    plan = planned(BOATS, f"{story}. Never mention vouchers.")
    assert prompt_after(BOATS, plan) == f"{BOATS}\nNever mention vouchers."


def test_a_value_out_of_range_is_asked_for_and_the_answer_set() -> None:
    question = planned(HORSES, "Temperatur vom Modell auf 3 setzen").declined or ""
    assert "0 – 2" in question
    plan = planned(HORSES, "Temperatur vom Modell auf 3 setzen", (question, "dann 0,3"))
    assert [(value.param, value.value) for value in plan.values] == [("temperature", 0.3)]


def test_settings_are_emptied_and_switched_off_by_their_titles() -> None:
    plan = planned(HORSES, "max tokens auf 800 und das Timeout weg, außerdem Streaming aus")
    assert {value.param: value.value for value in plan.values} == {"maxTokens": 800, "timeout": "", "streaming": False}


CHUNKS = flow(
    BOATS,
    AddNode(node_name="memoryVectorStore", node_id="memoryVectorStore_0"),
    AddNode(node_name="recursiveCharacterTextSplitter", node_id="recursiveCharacterTextSplitter_0"),
)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("8 chunks please, chunk size 500", {"topK": 8, "chunkSize": 500}),
        ("Bitte 6 Treffer holen und Abschnitte von 800 Zeichen", {"topK": 6, "chunkSize": 800}),
        ("récupère 5 extraits au lieu de 4", {"topK": 5}),
        ("Put temprature to 0.2", {"temperature": 0.2}),
        ("set temperture 0.3 and the chunk overlapp to 40", {"temperature": 0.3, "chunkOverlap": 40}),
        ("temp runter auf 0.1", {"temperature": 0.1}),
        ("chunk size 600", {"chunkSize": 600}),
        ("look at 8 passages rather than 3", {"topK": 8}),
    ],
)
def test_a_number_beside_the_word_of_a_setting_is_set(wish: str, changed: dict[str, Any]) -> None:
    plan = planned(BOATS, wish, graph=CHUNKS)
    assert plan.declined is None
    assert {value.param: value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    "wish", ["chunk size 500", "give me 3 loops at most", "limit the memory to 0.5 tokens of 7 chunks"]
)
def test_a_setting_that_the_flow_does_not_have_gets_into_no_prompt(wish: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish)) == BOATS


def test_massages_are_no_messages() -> None:
    assert [value.value for value in planned(BOATS, "Say that 3 massages cost 80 euros").values] == [
        "Say that 3 massages cost 80 euros"
    ]


STEPS = [
    AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
    AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Writer",
            params={"llmModel": "chatOpenAI", "llmModelConfig": {"temperature": 0.7}}),
    AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Editor",
            params={"agentModel": "chatOpenAI", "agentModelConfig": {"temperature": 0.7}}),
    AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", params={"loopBackToNode": "llmAgentflow_0-Writer"}),
    AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0"),
    Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0", target_anchor=""),
    Connect(source_node_id="llmAgentflow_0", target_node_id="agentAgentflow_0", target_anchor=""),
    Connect(source_node_id="agentAgentflow_0", target_node_id="directReplyAgentflow_0", target_anchor=""),
]  # fmt: skip
EDITOR = "agentAgentflow_0.agentModelConfig"


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("loop at most 3 times", {"loopAgentflow_0.maxLoopCount": 3}),
        ("max 3 keer herhalen", {"loopAgentflow_0.maxLoopCount": 3}),
        ("Set the temperature of the second one to 0", {f"{EDITOR}.temperature": 0}),
        ("the second model should have temperature 0.1, leave the first one alone", {f"{EDITOR}.temperature": 0.1}),
        ("the Editor should use gpt-4o-mini, not the Writer", {f"{EDITOR}.modelName": "gpt-4o-mini"}),
        (
            "the Editor should use Claude, not the Writer",
            {"agentAgentflow_0.agentModel": "chatAnthropic", f"{EDITOR}.temperature": 0.7},
        ),
    ],
)  # fmt: skip
def test_of_steps_only_the_one_that_is_meant_changes_and_keeps_its_values(wish: str, changed: dict[str, Any]) -> None:
    graph = compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph
    plan = planned("", wish, graph=graph, inside=components_of(graph))
    assert plan.declined is None
    assert {f"{v.node_id}.{v.param}": v.value for v in plan.values if v.value is not True} == changed


@pytest.mark.parametrize("wish", ["ask me before the reply is sent", "Frag mich, bevor die Antwort rausgeht"])
def test_a_person_is_asked_in_front_of_the_reply(wish: str) -> None:
    plan = planned("", wish, graph=compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph)
    assert {node.node_name for node in plan.nodes if not node.existing} == {"humanInputAgentflow"}
    assert [(one.source, one.target) for one in plan.disconnections] == [("agentAgentflow_0", "directReplyAgentflow_0")]
    assert [(one.source, one.output, one.target) for one in plan.connections] == [
        ("agentAgentflow_0", "agentAgentflow", "humanInputAgentflow_0"),
        ("humanInputAgentflow_0", "proceed", "directReplyAgentflow_0"),
    ]
    for other in ("ask a person before sending the answer", "moet iemand akkoord geven voordat de mail weggaat"):
        assert re.search("approval|goedkeuring", planned(BOATS, other).declined or "")


def test_a_bare_number_changes_only_in_a_sentence_about_the_same_thing() -> None:
    prompt = "You sell soup.\nA family gets 3 bowls. Returns within 3 days."
    assert prompt_after(prompt, planned(prompt, "look at 8 things rather than 3")).startswith(prompt)
    after = prompt_after(prompt, planned(prompt, "returns are 8 days now, not 3"))
    assert after == prompt.replace("3 days", "8 days")


def test_a_conversation_without_memory_goes_on_as_a_chain_with_its_words() -> None:
    for wish in ("remove the memory", "Nimm das Gedächtnis raus"):
        plan = planned(BOATS, wish)
        assert set(plan.removals) == {"bufferMemory_0", "conversationChain_0"}
        assert {node.node_name for node in plan.nodes if not node.existing} == {"llmChain", "promptTemplate"}
        assert [v.value for v in plan.values if v.param == "template"] == [f"{BOATS}\n\n{{text}}"]


@pytest.mark.parametrize(
    ("wish", "added"),
    [
        ("My boss is driving me mad. Tell people that dogs stay outside.", "Tell people that dogs stay outside."),
        ("Hola! El otro día se enfadó uno. Añade que las toallas cuestan 2 €. Gracias!", "Las toallas cuestan 2 €."),
        ("Eine Kundin hat sich beschwert, und ich durfte mich entschuldigen. Bitte niemals Termine versprechen. "
         "Sonst nichts ändern!", "Niemals Termine versprechen."),
        ("Bitte noch rein: Am Ende immer „Bis bald!“ schreiben", "Am Ende immer „Bis bald!“ schreiben"),
        ("Cześć, dopisz proszę, że parking jest za budynkiem. Reszty nie ruszaj.", "Parking jest za budynkiem."),
    ],
)  # fmt: skip
def test_remarks_and_words_to_the_builder_get_into_no_prompt(wish: str, added: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish)) == f"{BOATS}\n{added}"


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("Copy the flow 3fa85f64-5717-4562-b3fc-2c963f66afa6 as Truro desk", "Truro desk"),
        ("Kopiere den Flow als Krume Süd", "Krume Süd"),
        ('Copia come "Il Noce 2"', "Il Noce 2"),
    ],
)
def test_as_is_how_a_copy_is_called(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.operation, plan.flow_name, plan.values) == ("copy", name, [])


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("rename the flow to Heron Desk", "Heron Desk"),
        ("rename it to Heron 2025, the old name confuses everyone", "Heron 2025"),
        ('Rename it to "Heron Desk – Night", nothing else', "Heron Desk – Night"),
        ("Just rename this to Heron Desk (v2) and leave the rest alone.", "Heron Desk (v2)"),
        ("Benenn den Bot um in Heron", "Heron"),
        ("Nenne ihn Bootsauskunft, sonst nichts ändern", "Bootsauskunft"),
        ("Rinominalo in Sportello Barche", "Sportello Barche"),
        ("Chama-lhe Balcão 2", "Balcão 2"),
        ("Renomme-le en Bureau du port", "Bureau du port"),
        ("Llámalo Puerto Norte. El resto se queda igual", "Puerto Norte"),
        ("hernoem hem naar Havenbalie, de rest blijft zo", "Havenbalie"),
        ("nazwij go Port Pomoc", "Port Pomoc"),
    ],
)
def test_a_flow_that_exists_gets_another_name_and_nothing_else(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.declined, plan.new_name, plan.values, plan.nodes, plan.not_done) == (None, name, [], [], [])
    assert any(f"«{name}»" in step and "«Front desk»" in step for step in plan.steps)


@pytest.mark.parametrize("wish", ["always call it a vessel", "Say that the ferry is called Maeve"])
def test_a_name_within_a_rule_renames_nothing(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.new_name is None
    assert wish[1:] in prompt_after(BOATS, plan)


def test_a_name_and_another_wish_are_both_done() -> None:
    plan = planned(BOATS, "Call it Heron Night and never mention vouchers")
    assert plan.new_name == "Heron Night"
    assert prompt_after(BOATS, plan) == f"{BOATS}\nNever mention vouchers"


@pytest.mark.parametrize(
    ("prompt", "wish", "after"),
    [
        ("Sprich Kundinnen und Kunden mit Sie an.", "Ab jetzt bitte duzen", "Ab jetzt bitte duzen."),
        ("We work from 8 to 17.", "add to the prompt: we are away from 23 December to 2 January",
         "We work from 8 to 17.\nWe are away from 23 December to 2 January"),
        ("三文以内で答えてください。", "回答の最後に必ず「ご利用ありがとうございます。」と付けてください。",
         "三文以内で答えてください。\n回答の最後に必ず「ご利用ありがとうございます。」と付けてください。"),
        ("Do not replace a vet: sick animals go to their vet first.", "before any advice it should ask which animal",
         "Do not replace a vet: sick animals go to their vet first.\nBefore any advice it should ask which animal"),
        ("Be kind.", "sluit elk antwoord af met: Nog vragen? Mail naar hallo@loods.example",
         "Be kind.\nSluit elk antwoord af met: Nog vragen? Mail naar hallo@loods.example"),
    ],
)  # fmt: skip
def test_texts_are_kept_whole(prompt: str, wish: str, after: str) -> None:
    start = "You answer for the house.\n"
    assert prompt_after(start + prompt, planned(start + prompt, wish)) == start + after


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ('make a copy called "Bot NL" that answers in Dutch, leave the original as it is', ("English", "Dutch")),
        ("Faz uma cópia deste com o nome Sul, igualzinho, só muda o telefone para 289 555 044",
         ("222 555 019", "289 555 044")),
        ("Haz una copia llamada Centro con el teléfono 965 555 333", ("222 555 019", "965 555 333")),
    ],
)  # fmt: skip
def test_what_is_different_in_a_copy_changes_in_it(wish: str, changed: tuple[str, str]) -> None:
    prompt = "You answer for the library.\nAnswer in English.\nReservas pelo telefone 222 555 019."
    plan = planned(prompt, wish)
    assert (plan.operation, plan.declined) == ("copy", None)
    assert prompt_after(prompt, plan) == prompt.replace(*changed)


def steps_with(*tools: str) -> GraphIR:
    rows: list[Any] = [
        {"agentSelectedTool": name, "agentSelectedToolConfig": {"agentSelectedTool": name}} for name in tools
    ]
    params: dict[str, Any] = {"agentMessages": [{"role": "system", "content": "You plan tours."}], "agentTools": rows}
    ops = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Planner", params=params),
        Connect(source_node_id="startAgentflow_0", target_node_id="agentAgentflow_0", target_anchor=""),
    ]
    return compile_ops(GraphIR.empty(), ops, STORE.schemas).graph


@pytest.mark.parametrize(
    ("there", "wish", "after"),
    [
        ([], "add a calculator, it can't even do 14 x 23.50", ["calculator"]),
        (["calculator"], "Er soll auch im Web suchen", ["calculator", "serpAPI"]),
        (["calculator", "currentDateTime"], "take the calculator out again", ["currentDateTime"]),
        (["calculator"], "Nimm den Taschenrechner raus", []),
    ],
)
def test_tools_in_an_agentflow_come_and_go(there: list[str], wish: str, after: list[str]) -> None:
    plan = planned("", wish, graph=steps_with(*there))
    assert plan.declined is None
    (value,) = plan.values
    rows: Any = value.value
    assert (value.param, [row["agentSelectedTool"] for row in rows]) == ("agentTools", after)
    assert plan.not_done == []
    assert ("serpApi" in plan.credential_requirements) == ("serpAPI" in after)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("Er soll sich nur die letzten 6 Nachrichten merken", {"MemoryType": "windowSize", "MemoryWindowSize": 6}),
        ("remember only the last 4 messages", {"MemoryType": "windowSize", "MemoryWindowSize": 4}),
        ("remove the memory", {"EnableMemory": False}),
    ],
)
def test_memory_in_an_agentflow_is_limited_or_off(wish: str, changed: dict[str, Any]) -> None:
    plan = planned("", wish, graph=steps_with())
    assert plan.declined is None
    assert {value.param: value.value for value in plan.values} == {f"agent{name}": v for name, v in changed.items()}
    assert plan.not_done == []


@pytest.mark.parametrize(
    "wish",
    [
        "Never mention vouchers, it told a lady with ducklings to pay so",
        "Bitte alle Gäste begrüßen, das ist bei uns jetzt so üblich.",
        "Responde siempre con rimas, nuestros clientes son de Valencia",
        "If a claim is open, say so: Reference: Dept. 4 / Claims, and nothing more",
    ],
)
def test_a_sentence_of_a_wish_and_its_reason_is_written_whole(wish: str) -> None:
    assert prompt_after("You answer for the house.", planned("You answer for the house.", wish)).split("\n")[1] == wish


@pytest.mark.parametrize(
    ("wish", "written"),
    [
        ("The deposit is 20 euros. Please leave the rest exactly as it is.", "The deposit is 20 euros."),
        ("Hi there, mention the tides! Thanks a lot", "Mention the tides!"),
        ("Nenne die Gezeiten, bitte. Der Rest bleibt, wie er ist. Danke!", "Nenne die Gezeiten."),
        ("Parle des marées, et laisse le reste tel quel. Merci !", "Parle des marées."),
        ("Habla de las mareas; lo demás se queda igual. Gracias", "Habla de las mareas"),
        ("Parla delle maree. Il resto lascialo com'è, grazie.", "Parla delle maree."),
        ("Fale das marés, o resto fica igual", "Fale das marés"),
        ("Noem de getijden, laat de rest zo. Bedankt", "Noem de getijden"),
        ("Wspomnij o pływach i dopytaj o łódź. Resztę zostaw bez zmian.", "Wspomnij o pływach i dopytaj o łódź."),
        ("can it finish every answer with a joke about herons? my boss insists...",
         "Finish every answer with a joke about herons."),
        ("Kann er am Ende nach dem Boot fragen?", "Am Ende nach dem Boot fragen."),
    ],
)  # fmt: skip
def test_scope_courtesy_and_questions_leave_the_wish_alone(wish: str, written: str) -> None:
    prompt = "You answer for Heron Boats in Cobh.\nNever mention discounts."
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan).rstrip(".") == f"{prompt}\n{written}".rstrip(".")
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("answer from our PDF price list. Keep the memory we have.", "bufferMemory_0"),
        ("Antworte aus unserer PDF-Preisliste, das Gedächtnis so lassen wie es ist", "bufferMemory_0"),
    ],
)
def test_a_part_that_is_to_stay_is_not_touched(wish: str, kept: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert kept not in plan.removals
    assert not any(value.node_id == kept for value in plan.values)
    assert not any("Memory" in node.node_name for node in plan.nodes if not node.existing)
    assert planned(BOATS, "remove the memory. Leave the memory as it is.").declined


@pytest.mark.parametrize(
    ("prompt", "wish", "after"),
    [
        ("Write replies of about 150 words with some background.", "2 sentences max from now on",
         "Write replies of 2 sentences max with some background."),
        ("Strona zwykła (1800 znaków) kosztuje 45 zł, przysięgła 65 zł. Ekspres do 45 minut.",
         "strona zwykła kosztuje teraz 52 zł, nie 45",
         "Strona zwykła (1800 znaków) kosztuje 52 zł, przysięgła 65 zł. Ekspres do 45 minut."),
        ("Reply in at most 60 words. Quote the page.", "60 words is too short, make it up to 120",
         "Reply in at most 120 words. Quote the page."),
        ("Responde siempre en español.", "Que responda en el idioma del cliente",
         "Responde siempre en el idioma del cliente."),
        ("Antworten Sie höchstens in fünf Sätzen. Der Strompreis beträgt 31 Cent.",
         "Strom kostet jetzt 29 Cent statt 31, und bitte höchstens drei Sätze",
         "Antworten Sie höchstens in drei Sätzen. Der Strompreis beträgt 29 Cent."),
        ("You write for a laundry in Leeds. Shirts are £2.", "the city is York, not Leeds",
         "You write for a laundry in York. Shirts are £2."),
    ],
)  # fmt: skip
def test_only_the_value_that_differs_changes_within_a_sentence(prompt: str, wish: str, after: str) -> None:
    assert prompt_after(f"You help.\n{prompt}", planned(f"You help.\n{prompt}", wish)) == f"You help.\n{after}"


def test_a_ban_on_what_the_prompt_orders_in_other_words_is_one_question() -> None:
    order = "Tell customers that parcels arrive on the second working day, and name the day."
    prompt = f"You help with orders.\n{order}\nShipping is free above £60."
    plan = planned(prompt, "never promise delivery dates!!")
    assert plan.asks
    assert f"«{order}»" in (plan.declined or "")
    after = prompt_after(prompt, planned(prompt, "never promise delivery dates!!", (plan.declined or "", "replace")))
    assert after == prompt.replace(order, "Never promise delivery dates!!")


@pytest.mark.parametrize(
    ("prompt", "wish", "answer", "changed"),
    [
        ("Shoes may be returned within 30 days. Refunds take 30 days.", "returns are 14 days now not 30",
         "only shoes", ("within 30", "within 14")),
        ("Zwroty są możliwe w ciągu 14 dni. Za zwrócony towar oddajemy pieniądze w ciągu 14 dni.",
         "Zwrot to teraz 30 dni a nie 14", "tylko zwroty", ("możliwe w ciągu 14", "możliwe w ciągu 30")),
    ],
    ids=["en", "pl"],
)  # fmt: skip
def test_of_two_places_with_the_same_value_one_is_asked_for(
    prompt: str, wish: str, answer: str, changed: tuple[str, str]
) -> None:
    question = planned(f"You help.\n{prompt}", wish).declined or ""
    assert question.count("«") == 3
    after = prompt_after(prompt, planned(f"You help.\n{prompt}", wish, (question, answer)))
    assert after == f"You help.\n{prompt}".replace(*changed)


def test_another_day_of_the_same_thing_is_asked_about() -> None:
    plan = planned("You help.\nRubbish is collected on Thursdays.", "rubbish day moves to Mondays")
    assert "«Rubbish is collected on Thursdays.»" in (plan.declined or "")


@pytest.mark.parametrize("wish", ["togli la memoria", "Usuń pamięć", "verwijder het geheugen", "Enlève la mémoire"])
def test_a_memory_is_taken_out_in_each_language_and_never_exchanged(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert "bufferMemory_0" in plan.removals
    assert not any("Memory" in node.node_name for node in plan.nodes if not node.existing)


@pytest.mark.parametrize(
    ("wish", "written"),
    [
        ("Please add our price list, it's a PDF (prices_2027.pdf), so that it stops making prices up.", []),
        ("add a calculator and tell people about gift vouchers and dogs", ["Tell people about gift vouchers and dogs"]),
    ],
)
def test_beside_a_part_only_wishes_of_words_are_written(wish: str, written: list[str]) -> None:
    plan = planned(BOATS, wish)
    texts = [str(value.value) for value in plan.values]
    lines = [line for text in texts for line in text.split("\n") if line and line[1:] in wish]
    assert lines == written
    assert plan.not_done == []
    assert written or any("prices_2027.pdf]" in text for text in texts)


def test_an_answer_that_settles_nothing_is_asked_once_more_with_the_choices() -> None:
    rule = "Only dogs up to 10 kg are allowed, at most one for each cottage."
    prompt, wish = f"You help guests.\n{rule}\nCats are not allowed.", "Customers may now bring dogs of any size."
    first = planned(prompt, wish).declined or ""
    assert f"reads «{wish[:-1]}, at most one for each cottage.»" in first
    second = planned(prompt, wish, (first, "yes, still one")).declined or ""
    assert "«yes, still one»" in second
    assert second.endswith(first)
    plan = planned(prompt, wish, (first, "yes, still one"), (second, "replace"))
    assert prompt_after(prompt, plan) == prompt.replace(rule, f"{wish[:-1]}, at most one for each cottage.")
    own = "Dogs of any size are allowed, one for each cottage."
    assert prompt_after(prompt, planned(prompt, wish, (first, own))) == prompt.replace(rule, own)


def test_a_part_whose_number_or_language_is_written_nowhere_is_told_as_not_done() -> None:
    plan = planned(BOATS, "temperature 0.2 and a frobnication of 17")
    assert plan.declined or any("17" in part.quote for part in plan.not_done)
    for wish in ("topK 6, Chunks 900 mit 150 Überlappung", "tokens max 700, temperature 0.3"):
        plan = planned(BOATS, wish, graph=CHUNKS)
        written = {str(value.value) for value in plan.values}
        done = " ".join(part.quote for part in plan.parts if part.state == "covered")
        assert set(re.findall(r"\d+(?:\.\d+)?", done)) <= written


PROMPTS = [HORSES, BOATS, BREAD, DIVING, BIKES, SWIMMING, TEA, CLAY, BOOKS]
WISHES = [wish for _, wish, *_ in [*CLEAR, *ASKED]] + [
    "Die neue Nummer ist 08151 99 88.", "Un corso costa adesso 95 euro", "stop apologising", "Answer in English",
    "Never mention prices", "No more than 80 words", "Usa gpt-4o-mini", "not 120 words but 90 words",
]  # fmt: skip


@given(st.sampled_from(PROMPTS), st.lists(st.sampled_from(WISHES), min_size=1, max_size=2, unique=True))
def test_p84_each_sentence_of_the_old_prompt_stays_or_is_named_as_replaced(prompt: str, wishes: list[str]) -> None:
    answers: list[tuple[str, str]] = []
    plan = planned(prompt, "\n".join(wishes))
    while plan.declined and plan.declined.endswith("?") and len(answers) < 4:
        answers.append((plan.declined, "replace"))
        plan = planned(prompt, "\n".join(wishes), *answers)
    after, told = prompt_after(prompt, plan), "\n".join(plan.steps)
    assert all(one.group() in after or one.group() in told for one in sentences(prompt)), (after, told)


@given(st.text(max_size=120), st.sampled_from(PROMPTS))
def test_any_line_at_all_changes_one_sentence_at_most(line: str, prompt: str) -> None:
    found = amendment(line, prompt)
    assert found is None or prompt[found.start : found.end] == found.old


@given(st.text(alphabet="ab .!?\n<p>-*•。", max_size=200))
def test_sentences_leave_out_no_letter(prompt: str) -> None:
    plain = re.sub(r"<[^<>\n]{1,60}>", "", prompt)
    said = "".join(one.group() for one in sentences(prompt))
    assert re.findall(r"[ab]", said) == re.findall(r"[ab]", plain)


HARBOUR = "You answer for a harbour. Always answer in English, even if the guest writes in another language. Be polite."


def test_another_language_takes_the_place_of_the_one_that_is_there() -> None:
    wish = "Ab jetzt bitte auf Deutsch antworten, egal in welcher Sprache gefragt wird"
    after = HARBOUR.replace("Always answer in English, even if the guest writes in another language", wish)
    assert prompt_after(HARBOUR, planned(HARBOUR, wish)) == after


@pytest.mark.parametrize("answer", ["replace", "no, drop them", "remove it", "weg", "quítala", "usuń"])
def test_the_old_sentence_goes_where_the_answer_says_so(answer: str) -> None:
    prompt = "You sell pianos. Always give a delivery date: three working days inside the country. Stay calm."
    question = planned(prompt, "never promise delivery dates").declined or ""
    assert "so that it reads «Never promise delivery dates.»" in question
    after = prompt_after(prompt, planned(prompt, "never promise delivery dates", (question, answer)))
    assert after == "You sell pianos. Never promise delivery dates. Stay calm."


def test_a_clause_that_hangs_on_another_stays_with_it() -> None:
    wish = "Niech na początku każdej odpowiedzi podaje, że nie jest to porada prawna"
    assert prompt_after(HARBOUR, planned(HARBOUR, wish)) == f"{HARBOUR}\n{wish}"


def test_a_value_of_one_day_changes_where_the_line_says_what_it_was() -> None:
    prompt = "Vous aidez. Le service est ouvert du lundi au jeudi de 9h à 17h et le vendredi de 9h à 17h."
    after = prompt_after(prompt, planned(prompt, "le vendredi nous fermons maintenant à 15h30, pas à 17h"))
    assert after == prompt.replace("le vendredi de 9h à 17h", "le vendredi de 9h à 15h30")


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("remove", ""),
        ("keep it", " If they say nothing, search the web."),
        ("If they are silent, do not search", " If they are silent, do not search."),
    ],
)
def test_a_sentence_about_a_tool_that_goes_is_asked_about(answer: str, left: str) -> None:
    prompt = "You guide visitors. Read the notes. If they say nothing, search the web."
    ops: list[AddNode | Connect] = [
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": prompt})
    ]
    for name, anchor in (
        ("chatOpenAI", "model"),
        ("bufferMemory", "memory"),
        ("serpAPI", "tools"),
        ("calculator", "tools"),
    ):
        ops.append(AddNode(node_name=name, node_id=f"{name}_0"))
        ops.append(Connect(source_node_id=f"{name}_0", target_node_id="toolAgent_0", target_anchor=anchor))
    graph = compile_ops(GraphIR.empty(), ops, STORE.schemas).graph
    question = planned(prompt, "remove the web search", graph=graph).declined or ""
    assert "«If they say nothing, search the web.»" in question
    plan = planned(prompt, "remove the web search", (question, answer), graph=graph)
    assert plan.removals == ["serpAPI_0"]
    texts = [value.value for value in plan.values if value.param == "systemMessage"] or [prompt]
    assert texts == [f"You guide visitors. Read the notes.{left}"]


def test_a_memory_of_few_messages_is_set_without_an_accent() -> None:
    plan = planned(HARBOUR, "q recuerde solo los ultimos 5 mensajes")
    assert [(one.param, one.value) for one in plan.values] == [("k", 5)]
