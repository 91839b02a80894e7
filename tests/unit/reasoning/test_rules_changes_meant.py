"""Changes that ask for a part in words of which another part could be meant, and copies with several other facts."""

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, SetParam, compile_ops
from tests.unit.reasoning.test_rules_clauses_of_changes import SEARCHER
from tests.unit.reasoning.test_rules_flows_there import AGENT, DOCUMENTS, STORE, changed, inputs
from tests.unit.reasoning.test_rules_rewording import BOATS, flow, planned, prompt_after, told

SHOWN = compile_ops(
    DOCUMENTS, [SetParam(node_id="chain_0", param_name="returnSourceDocuments", value=True)], STORE.schemas
).graph


@pytest.mark.parametrize(
    ("wish", "address"),
    [
        ("It should know the tides. The API is https://tides.example/today?port=12 (GET).", "/today?port=12"),
        ("Er soll die Gezeiten kennen. Die API ist https://tides.example/today?port=12 (GET).", "/today?port=12"),
        ("Quero que ele consulte as marés. A API é https://tides.example/today, um GET sem chave.", "/today"),
    ],
)
def test_an_address_that_is_only_named_takes_the_place_of_none(wish: str, address: str) -> None:
    graph, plan = changed(AGENT, wish)
    addresses = {node.id: node.inputs.get("requestsGetUrl") for node in graph.nodes if node.name == "requestsGet"}
    assert addresses == {
        "requestsGet_0": "https://taxis.example/api/libres",
        "requestsGet_1": f"https://tides.example{address}",
    }
    about = str(inputs(graph, "requestsGet_1")["requestsGetDescription"]).casefold()
    assert any(word in about for word in ("tides", "gezeiten", "marés"))
    assert not any("API" in part.quote for part in plan.parts if part.state == "not_understood")


def test_an_address_that_has_moved_takes_the_place_of_the_one_there() -> None:
    graph, _ = changed(AGENT, "The service has moved, it is at https://cabs.example/free now.")
    addresses = [node.inputs.get("requestsGetUrl") for node in graph.nodes if node.name == "requestsGet"]
    assert addresses == ["https://cabs.example/free"]


@pytest.mark.parametrize(
    "wish",
    [
        "The memory can go down to 3.",
        "Das Gedächtnis kann auf 3 runter, setz das Gedächtnis auf 3.",
        "Baja la memoria a 3.",
        "Zet het geheugen op 3 berichten, het geheugen kan terug naar 3.",
    ],
)
def test_what_goes_down_is_not_taken_out(wish: str) -> None:
    graph, plan = changed(SEARCHER, wish)
    assert plan.removals == []
    assert inputs(graph, "bufferWindowMemory_0")["k"] == 3


def test_what_can_go_beside_another_source_takes_none_out() -> None:
    wish = "Say hello first. The price list can go in next to the PDF."
    assert planned("", wish, graph=DOCUMENTS).removals == []


@pytest.mark.parametrize(
    ("wish", "shown"),
    [
        ("Please turn off the sources below the answers, they confuse people", False),
        ("Bitte keine Quellen mehr unter der Antwort anzeigen", False),
        ("No muestres más las fuentes debajo de la respuesta.", False),
        ("Non mostrare più le fonti sotto la risposta", False),
        ("Haal de bronnen onder het antwoord weg", False),
        ("Don't forget to show the sources below the answers", True),
    ],
)
def test_sources_that_are_not_to_be_shown_are_switched_off(wish: str, shown: bool) -> None:
    graph, _ = changed(SHOWN if not shown else DOCUMENTS, wish)
    assert inputs(graph, "chain_0")["returnSourceDocuments"] is shown


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ("Could our sailing assistant also ask for the age?", "Ask for the age."),
        ("Can the Heron bot say which boats are free?", "Say which boats are free."),
    ],
)
def test_the_bot_that_is_asked_whether_it_can_is_no_part_of_the_rule(wish: str, line: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish, graph=flow(BOATS))) == told(BOATS, line)


def test_a_word_that_means_and_elsewhere_stays_in_front_of_a_rule() -> None:
    prompt = "Eres el asistente de la tienda Garza. Un té cuesta 3 euros."
    wish = "En Canarias no se cobra el envío, que lo diga siempre."
    assert "- En Canarias no se cobra" in prompt_after(prompt, planned(prompt, wish))


def test_items_of_a_list_are_told_whole_and_nothing_of_them_is_a_remark() -> None:
    prompt = "You write texts about tools of 80 to 120 words. Never write cheap."
    wish = (
        "The shop sent feedback on the texts, so please:\n1. The texts are too long, 50 to 70 words are enough.\n"
        '2. After the text three bullet points with the data.\n3. Also "super" and "perfect" on the list of words.'
    )
    after = prompt_after(prompt, planned(prompt, wish))
    for said in ("50 to 70 words", "three bullet points with the data", '"super" and "perfect" on the list'):
        assert said in after
    assert "feedback" not in after


def test_a_value_behind_a_complaint_is_told_in_one_line_with_it() -> None:
    wish = "Unsere Texte sind zu lang, 50 bis 70 Wörter reichen. Schreib nie billig."
    prompt = "Du schreibst Texte von 80 bis 120 Wörtern auf Deutsch."
    lines = ["Unsere Texte sind zu lang, 50 bis 70 Wörter reichen.", "Schreib nie billig."]
    assert prompt_after(prompt, planned(prompt, wish)) == told(prompt, *lines, language="de")


HOURS = (
    "Du bist am Empfang der Praxis Reiher, Seeweg 4. Offen ist Montag und Dienstag 8 bis 12 Uhr, Mittwoch und Freitag "
    "8 bis 13 Uhr. Telefon 0561 998 4410, im Notfall 01805 607011."
)
DESK = "You are the desk of Fern. Ring extension 4400, Monday to Friday 7:00 to 18:00."


def test_hours_of_one_day_are_not_those_of_another() -> None:
    after = prompt_after(HOURS, planned(HOURS, "Freitag ist jetzt 9 bis 12 Uhr offen"))
    assert "Mittwoch und Freitag 8 bis 13 Uhr" in after
    assert "Freitag ist jetzt 9 bis 12 Uhr offen" in after


def test_of_several_numbers_to_call_none_is_exchanged_and_the_new_one_is_added() -> None:
    wish = "Unsere Telefonnummer ist jetzt 0561 998 4470."
    assert prompt_after(HOURS, planned(HOURS, wish)) == told(HOURS, wish, language="de")


def test_of_several_numbers_to_call_the_one_that_is_named_is_another_one() -> None:
    after = prompt_after(HOURS, planned(HOURS, "Ersetze 0561 998 4410 durch 0561 998 4470."))
    assert after == HOURS.replace("0561 998 4410", "0561 998 4470")


@pytest.mark.parametrize(
    ("wish", "lines"),
    [
        (
            "Faz uma cópia deste bot para a loja do Porto, a responder em português, com a extensão 210 em vez da "
            "4400 e horário das 8h às 17h.",
            ["responder em português", "8h às 17h"],
        ),
        (
            "Make a copy of this bot for Leeds, to answer in English, with extension 210 instead of 4400, open from "
            "7:00 to 9:00 there.",
            ["answer in English", "7:00"],
        ),
    ],
)
def test_of_a_copy_each_fact_is_another_one_and_none_is_lost(wish: str, lines: list[str]) -> None:
    plan = planned(DESK, wish)
    after = prompt_after(DESK, plan)
    assert plan.operation == "copy"
    assert "4400" not in after.partition("\n")[0]
    assert all(line in after for line in ["210", *lines])


def test_words_go_to_the_prompt_that_is_connected_to_a_chain() -> None:
    graph = compile_ops(
        GraphIR.empty(),
        [
            AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
            AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
            AddNode(
                node_name="chatPromptTemplate", node_id="chatPromptTemplate_0", label="Desk",
                params={"systemMessagePrompt": "You answer for Fern.", "humanMessagePrompt": "{input}"},
            ),
            AddNode(node_name="conversationChain", node_id="conversationChain_0"),
            Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
            Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
            Connect(
                source_node_id="chatPromptTemplate_0", target_node_id="conversationChain_0",
                target_anchor="chatPromptTemplate",
            ),
        ],
        STORE.schemas,
    ).graph  # fmt: skip
    after, plan = changed(graph, "It should always answer in rhymes.")
    assert plan.declined is None
    assert "rhymes" in str(inputs(after, "chatPromptTemplate_0")["systemMessagePrompt"])


@pytest.mark.parametrize(
    "wish",
    [
        "Add https://heron.example/rates as one more source. Below an answer people should see what it is based on.",
        "Que dé también el número de página.",
    ],
)
def test_a_wish_for_the_page_of_an_answer_shows_the_sources(wish: str) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    assert inputs(graph, "chain_0")["returnSourceDocuments"] is True
    assert not any(value.param == "responsePrompt" for value in plan.values)
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("wish", "limit"),
    [
        ("Please also let it read our page https://heron.example/moorings.", 1),
        ("Nimm auch unsere Seite https://heron.example/gezeiten dazu. Nur diese Seite, ohne Links.", 1),
        ("Add https://heron.example/moorings and its subpages as one more source.", None),
        ("Please also let it read our page https://heron.example/moorings and the pages below it.", None),
    ],
)
def test_one_page_is_one_page(wish: str, limit: int | None) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    assert inputs(graph, "cheerioWebScraper_1").get("limit") in ({limit} if limit else {None, "", 10, "10"})
    assert not any(value.node_id == "cheerioWebScraper_0" for value in plan.values)
    assert plan.not_done == []


@pytest.mark.parametrize("wish", [
    "change the price of the small boat to 17 euros and the big one to 27 euros, all else stays the same",
    "ändere den Preis für das kleine Boot auf 17 Euro und für das große auf 27 Euro, der Rest bleibt gleich",
])  # fmt: skip
def test_each_of_two_prices_is_told(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert all(price in prompt_after(BOATS, plan) for price in ("17", "27"))
    assert plan.not_done == []
