"""New chatflows from wishes without accents, with blanks, with what is only background: built, asked, never lost."""

from typing import Any

import pytest

from flowise_dev_agent.contracts.plan import PlanContract
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import ClassifyRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.language.lexicon import words
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_new_flows import planned, prompt_of


def names(plan: PlanContract) -> set[str]:
    return {node.node_name for node in plan.nodes}


@pytest.mark.parametrize("wish", [
    "Ein Chat fuer unsere Baeckerei, ohne Gedaechtnis. Er soll freundlich ueber Brot reden.",
    "Un assistant pour ma librairie, sans memoire. Il parle de romans policiers.",
    "Preciso de um robo que conte historias, sem memoria e temperatura 0,4",
    "Czat dla kwiaciarni, bez pamieci. Mowi o roslinach doniczkowych.",
    "Bot for our farm shop. It must not keep any conversation. It sells eggs at 4 euros.",
])  # fmt: skip
async def test_letters_without_marks_are_the_same_letters(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert plan.declined is None
    assert not any("Memory" in name for name in names(plan))


def test_a_short_word_without_its_mark_is_another_word() -> None:
    assert words("memory").search("sans memoire")
    assert words("sources").search("dis où il a lu ça")
    assert not words("sources").search("un bot ou il a lu ça")


@pytest.mark.parametrize("wish", [
    "make us a bot that supports our company",
    "ein bot der unserer firma hilft",
    "un bot que ayude a mi empresa",
    "un bot qui aide mon entreprise",
    "een bot die mijn bedrijf helpt",
    "chcę bota który pomaga mojej firmie",
])  # fmt: skip
async def test_to_help_with_a_business_says_nothing_to_do(wish: str) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.questions == [say("question_vague", intent.language)]


@pytest.mark.parametrize("wish", [
    "Chatbot over our price list (PDF, comes later). Qdrant at http://vec.lan:6333, collection prices, 768 dimensions, "
    "splitter: 1200 with overlap 150.",
    "Chatbot über unsere Preisliste als PDF. Qdrant http://vec.lan:6333, Collection prices, Vektordimension 768. "
    "Recursive Splitter mit 1200, Überlappung 150.",
    "Chatbot sur nos tarifs en PDF. Qdrant http://vec.lan:6333, collection prices, dimension 768\n"
    "- splitter 1200 / overlap 150",
])  # fmt: skip
async def test_a_splitter_and_a_vector_size_are_values(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    values = {one.param: one.value for one in plan.values}
    assert (values["chunkSize"], values["chunkOverlap"], values["qdrantVectorDimension"]) == (1200, 150, 768)
    assert "768" not in prompt_of(plan)
    assert plan.not_done == []


@pytest.mark.parametrize(("wish", "head"), [
    ("I'd like a prompt with two placeholders: name and occasion. It writes a card of max 40 words. gpt-4o, temp 0.9.",
     "two placeholders: name and occasion"),
    ("Ein Prompt mit zwei Lücken: Name und Anlass. Er schreibt eine Karte mit höchstens 40 Wörtern. gpt-4o, "
     "Temperatur 0,9.", "zwei Lücken: Name und Anlass"),
    ("Un prompt con due campi: nome e tono. Scrive un biglietto di massimo 40 parole. gpt-4o, temperatura 0,9.",
     "due campi: nome e tono"),
])  # fmt: skip
async def test_what_a_prompt_has_blanks_for_is_not_the_prompt(wish: str, head: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert head in prompt_of(plan)
    assert "40" in prompt_of(plan)
    assert "gpt-4o" not in prompt_of(plan)
    assert {one.param: one.value for one in plan.values if one.param in ("modelName", "temperature")} == {
        "modelName": "gpt-4o", "temperature": 0.9}  # fmt: skip


@pytest.mark.parametrize(("wish", "first"), [
    ("paste a support mail, get back a json with urgency (low/high), customer name, product", "urgency"),
    ("Plak een mail, je krijgt json met urgentie (laag/hoog), klantnaam, product", "urgentie"),
])  # fmt: skip
async def test_what_comes_back_is_no_part_of_a_field(wish: str, first: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    rows: Any = next(one.value for one in plan.values if one.param == "jsonStructure")
    assert next(row["property"] for row in rows) == first


@pytest.mark.parametrize("wish", [
    "Wij hebben een garage in Breda en klanten bellen de hele dag met de vraag of hun auto klaar is. Ik wil een "
    "chatbot die zegt: open van 8 tot 18.",
    "Tenemos una clínica en Lugo y los pacientes llaman todo el día para preguntar el horario. Quiero un chatbot que "
    "responda: abrimos de 9 a 14.",
])  # fmt: skip
async def test_that_people_ring_is_no_wish_to_ring_them(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert plan.declined is None
    assert plan.not_done == []


@pytest.mark.parametrize("wish", [
    "I need a bot for our garage. It looks up the order at https://garage.example/orders with a GET, no password.",
    "Ein Bot für die Werkstatt, er fragt nach der Nummer und schlägt sie bei https://garage.example/orders per GET "
    "nach.",
    "Bot voor de garage. Hij zoekt het kenteken op via https://garage.example/orders met een GET.",
])  # fmt: skip
async def test_an_address_in_front_of_its_method_is_asked(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert {"toolAgent", "requestsGet"} <= names(plan)
    assert "cheerioWebScraper" not in names(plan)


@pytest.mark.parametrize("wish", [
    "An assistant with my Google Calendar, please. A lesson takes 2 hours, never on Mondays, and it should repeat the "
    "day and wait for a yes before it books anything.",
])  # fmt: skip
async def test_to_wait_for_a_yes_in_a_talk_is_a_rule(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert {"toolAgent", "googleCalendarTool"} <= names(plan)
    assert "wait for a yes" in prompt_of(plan)


@pytest.mark.parametrize("wish", [
    "Potrzebuję bota na stronę szkoły. Zajęcia zaczynają się o 9:00.",
    "Je veux un bot pour notre site. Il parle de nos gîtes: 80 euros la nuit.",
])  # fmt: skip
async def test_a_page_that_the_bot_stands_on_is_not_told_as_missing(wish: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue)).not_done == []


async def test_a_bot_in_another_service_is_told_as_missing(catalogue: NodeStore) -> None:
    plan = await planned("I want a bot on WhatsApp that tells people our opening hours, 9 to 5.", catalogue)
    assert plan.not_done


async def test_an_order_of_steps_that_reads_fields_first_is_no_parser(catalogue: NodeStore) -> None:
    plan = await planned(
        "Ich stelle mir einen Ablauf vor, keinen Chat. Erst soll das System rausziehen: Modell, Baujahr, Ort. Fehlt "
        'der Ort, soll es danach fragen. Bei Oldtimern bitte nur mit "Preis auf Anfrage".', catalogue
    )  # fmt: skip
    assert "structuredOutputParser" not in names(plan)
