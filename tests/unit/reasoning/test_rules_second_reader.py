"""What the classifier hears in a wish for a new flow, and the rules do not know: built, asked about, or declined."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from flowise_dev_agent.contracts.attachments import AttachmentFacts
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_properties import CREDENTIALS, STORE


def planned(wish: str, *answers: tuple[str, str], files: Sequence[str] = ()) -> PlanContract:
    async def asked() -> PlanContract:
        rules = DeterministicReasoner()
        intent = (await rules.classify(ClassifyRequest(requirement=wish, clarifications=answers))).value
        assert intent.questions == []
        return (
            await rules.plan(
                PlanRequest(
                    requirement=wish,
                    clarifications=answers,
                    intent=intent,
                    nodes=STORE,
                    credential_types=CREDENTIALS,
                    attachments=tuple(AttachmentFacts(name=one, kind="pdf", size=1000) for one in files),
                )
            )
        ).value

    return asyncio.run(asked())


def names(plan: PlanContract) -> set[str]:
    return {node.node_name for node in plan.nodes}


@pytest.mark.parametrize(
    ("wish", "tool"),
    [
        ("A helper for our kennel that checks online whether a vaccine is recalled.", "serpAPI"),
        ("Bot for the print shop, it has to work out the price of a poster to the cent.", "calculator"),
        ("Chatbot für den Bootsverleih, er muss wissen, welches Datum heute ist.", "currentDateTime"),
        ("Un assistant pour la mairie qui va chercher sur le net les horaires des marchés.", "serpAPI"),
    ],
)
def test_a_tool_in_words_that_no_rule_knows_is_built(wish: str, tool: str) -> None:
    plan = planned(wish)
    assert plan.declined is None
    assert tool in names(plan)
    assert plan.not_done == []


@pytest.mark.parametrize(
    "wish",
    [
        "A bot drafts the reply to a guest. Before it goes out our manager has to look at it and say yes. If she says "
        "no it is written again, twice at most.",
        "Ein Schreiber verfasst den Artikel. Danach bewertet ihn ein strenger Lektor von 1 bis 10. Unter 7 geht er mit "
        "den Anmerkungen zurück.",
        "Un premier agent résume la plainte, ensuite un deuxième propose un geste commercial, et rien ne part sans "
        "l'accord de la directrice.",
    ],
)
def test_steps_are_never_told_to_one_model_as_if_they_were_done(wish: str) -> None:
    plan = planned(wish)
    assert plan.flow_kind == "AGENTFLOW" or (plan.declined and "«" in plan.declined)


CONTRADICTION = (
    "A receptionist for our gym that remembers what each member told it last week. "
    "Nothing of a conversation may be kept."
)


def test_a_wish_that_contradicts_itself_is_asked_about_once() -> None:
    question = planned(CONTRADICTION).declined
    assert question is not None
    assert question.endswith("?")
    assert "last week" in question
    assert "may be kept" in question
    assert planned(CONTRADICTION, (question, "It must not keep anything")).declined is None


def test_the_answer_says_whether_a_conversation_is_remembered() -> None:
    question = planned(CONTRADICTION).declined or ""
    assert not any("Memory" in name for name in names(planned(CONTRADICTION, (question, "It must not remember"))))
    assert any("Memory" in name for name in names(planned(CONTRADICTION, (question, "It should remember the chat"))))


def test_what_no_flow_can_do_is_declined_as_impossible() -> None:
    plan = planned("A bot for our bank that phones debtors on its own and collects the money from their account.")
    assert plan.declined is not None
    assert "with a model or without" in plan.declined


MISSING = (
    "A friendly bot for the parents of our nursery. We open at 7:30 and close at 16:00, lunch is at 11:30. "
    "Afterwards it has to enter the name of the child into our Airtable list by itself."
)


def test_a_part_that_makes_it_another_flow_is_asked_about_first() -> None:
    question = planned(MISSING).declined
    assert question is not None
    assert question.endswith("?")
    assert "Airtable" in question
    plan = planned(MISSING, (question, "go on"))
    assert plan.declined is None
    assert any("Airtable" in part.quote for part in plan.not_done)


@pytest.mark.parametrize(
    "wish",
    [
        "A bot for the boat school. Payments are by card or cash. Every Monday at 7 there is yoga on deck. People "
        "under 18 need a signature of a parent. Orders above 50 euro are delivered free.",
        "Chatbot für die Schreinerei: Wir rufen innerhalb eines Tages zurück. Wer eine Küche will, kommt erst zum "
        "Aufmaß. Rechnungen schicken wir per Post. Bei Beschwerden bitte Frau Huber nennen.",
        "Un chatbot para la peluquería. Si alguien pregunta por el precio dos veces, que llame al 955 555 010. Los "
        "lunes cerramos. Primero se lava y luego se corta.",
    ],
)
def test_facts_and_rules_that_sound_like_steps_are_told_to_the_bot(wish: str) -> None:
    plan = planned(wish)
    assert plan.declined is None
    assert plan.flow_kind == "CHATFLOW"
    prompt = next(str(one.value) for one in plan.values if one.param == "systemMessagePrompt")
    assert prompt.endswith(wish.split(". ")[-1])
    assert not [part for part in plan.parts if part.state == "not_understood"]


def test_rules_beside_a_prompt_that_is_given_hold_too() -> None:
    plan = planned(
        'Bot with the system prompt "You answer for the quarry." Never name a price for gravel. GPT-4o, temperature 0.'
    )
    prompt = next(str(one.value) for one in plan.values if one.param == "systemMessagePrompt")
    assert prompt == "You answer for the quarry.\nNever name a price for gravel."


def test_what_a_bot_is_for_is_told_beside_the_parts_of_its_sentence() -> None:
    plan = planned("A chatbot for a zoo that remembers the last 7 messages")
    assert [value.value for value in plan.values if value.param == "systemMessagePrompt"] == ["A chatbot for a zoo"]


def test_what_is_said_of_an_attached_file_is_not_asked_about() -> None:
    wish = "A bot with GPT-4o that answers from the document store Travel; add our handbook to it"
    for files in ([], ["Our handbook.pdf"]):
        plan = planned(wish, files=files)
        assert (plan.declined, [part.quote for part in plan.not_done]) == (None, ["add our handbook to it"])
    wish = "A bot with GPT-4o for our inn; e-mail our handbook to the guests automatically"
    assert "e-mail our handbook" in (planned(wish).declined or "")
    assert planned(wish, files=["Our handbook.pdf"]).declined is None


#: Wish -> what the bot is told: what is built is no word for it, a question to whoever builds neither.
WITHOUT_PARTS = {
    "A bot for our chess club. Obviously it has to remember what was said before.": "A bot for our chess club.",
    "Ein Bot für den Ruderverein, der die Bootszeiten nennt. Er soll sich an das Gespräch erinnern. Geht das bis "
    "Montag?": "Ein Bot für den Ruderverein, der die Bootszeiten nennt.",
    "Wir sind ein Reitstall und brauchen einen Assistenten, der Fragen beantwortet. Er soll sich merken, welches Pferd "
    "das Kind mag.": "Ein Assistent, der Fragen beantwortet. Wir sind ein Reitstall. Er soll sich merken, welches "
    "Pferd das Kind mag.",
    "I run a cheese shop and want a bot that answers questions. It should remember what the customer likes and suggest "
    "a wine.": "A bot that answers questions. I run a cheese shop. It should remember what the customer likes and "
    "suggest a wine.",
    "Spor salonumuz için bir sohbet botu istiyorum. Pazar günü kapalıyız.":
        "Spor salonumuz için bir sohbet botu. Pazar günü kapalıyız.",
    "Mam piekarnię i chciałabym prostego bota, który podaje godziny: 6-18. Ma pamiętać rozmowę.":
        "Prosty bot, który podaje godziny: 6-18. Mam piekarnię.",
}  # fmt: skip


@pytest.mark.parametrize("wish", WITHOUT_PARTS)
def test_what_is_built_is_not_told_to_the_bot_as_well(wish: str) -> None:
    plan = planned(wish)
    assert [value.value for value in plan.values if value.param == "systemMessagePrompt"] == [WITHOUT_PARTS[wish]]
    assert "bufferMemory" in names(plan)
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("wish", "fields"),
    [
        ("Ich brauche etwas, das den Text eines Lieferscheins nimmt und Nummer, Datum und Empfänger als JSON ausgibt.",
         ["nummer", "datum", "empfanger"]),
        ("Quero uma ferramenta que leia um recibo e devolva em JSON: loja, data, total.", ["loja", "data", "total"]),
    ],
)  # fmt: skip
def test_fields_that_are_built_are_not_told_as_not_done(wish: str, fields: list[str]) -> None:
    plan = planned(wish)
    rows = next(value.value for value in plan.values if value.param == "jsonStructure")
    assert [row["property"] for row in cast("list[dict[str, str]]", rows)] == fields
    assert plan.not_done == []


def test_fields_that_may_be_null_have_no_parser_that_refuses_it() -> None:
    wish = "I paste a delivery note and get back number, date and weight as JSON. {}"
    assert "structuredOutputParser" in names(planned(wish.format("Never guess.")))
    plan = planned(wish.format("What is missing is null."))
    assert names(plan) == {"llmChain", "promptTemplate", "chatOpenAI"}
    assert plan.not_done == []
    prompt = next(str(value.value) for value in plan.values if value.param == "template")
    assert "JSON" in prompt
    assert "null" in prompt


def test_a_limit_that_is_set_is_not_told_as_not_done() -> None:
    plan = planned("RAG chatbot:\n- cheerio scraper on https://docs.example.com, follow links, limit 30\n- gpt-4o")
    assert next(value.value for value in plan.values if value.param == "limit") == 30
    assert plan.not_done == []


def test_an_answer_of_an_address_in_json_is_no_part_that_is_missing() -> None:
    wish = "Agent for our stock: GET https://api.example/stock/{sku}, returns json with price, amount and shelf. gpt-4o"
    assert planned(wish).not_done == []


@pytest.mark.parametrize(
    "wish",
    [
        "A bot for our allotment rules that answers from the PDF only and names the page.",
        "Un assistant pour le club, il répond d'après notre règlement en PDF et donne le numéro de page.",
        "Chatbot na podstawie regulaminu PDF, podaje też numer strony.",
    ],
)
def test_the_page_of_an_answer_is_shown_by_its_sources_and_made_up_by_no_model(wish: str) -> None:
    plan = planned(wish)
    assert [value.value for value in plan.values if value.param == "returnSourceDocuments"] == [True]
    prompts = [str(value.value) for value in plan.values if value.param == "responsePrompt"]
    assert not any(word in prompt for prompt in prompts for word in ("page", "stron"))
