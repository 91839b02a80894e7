"""What names structure is built, asked about or declined by its true name; facts that only sound like it are told."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.patch import Connect
from flowise_dev_agent.reasoning.contracts import PatchRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_properties import STORE, planned

#: Wishes for what no chatflow does by rules -> a word of the reason.
STRUCTURE = {
    "Every morning at 7 fetch the tide table and write a text for surfers": "«Every morning at 7 fetch",
    "Jeden Montag um 8 Uhr soll er die Preise abrufen und zusammenfassen": "«Jeden Montag um 8 Uhr soll",
    "Chaque lundi à 8h, résume les nouvelles du port": "«Chaque lundi à 8h",
    "Answers questions about boats and saves them to a Google sheet": "«saves them to a Google sheet»",
    "Traduit chaque message et envoie le résultat par mail à Yann": "«envoie le résultat par mail»",
    "Train a model on our letters and answer like Brenda": "training",
    "Der Bot soll Kunden anrufen": "anrufen",
    "Un bot para la tienda que cobre con tarjeta": "cobrar",
    "Un assistant qui donne des réponses garanties 100 % exactes": "promesse",
    "Ein Assistent, der am Telefon mit Kunden spricht": "anrufen",
    "Um assistente para a horta que telefone para os clientes": "telefonar",
}
#: Facts and ways to behave with words of structure in them.
FACTS = [
    "We are open every day from 9 to 5.",
    "La librairie est ouverte tous les jours de 10h à 19h.",
    "Der Laden ist jeden Tag geöffnet.",
    "We send parcels every Monday.",
    "It sends them to a volunteer if it is urgent.",
    "Never phone customers.",
    "Say that we accept payments by card.",
    "If someone asks about invoices tell them to send an e-mail to Moira.",
    "Bookings must be made 2 days ahead.",
    "Bread is baked fresh every morning.",
    "Kränze müssen 2 Wochen vorher bestellt werden.",
]  # fmt: skip


@pytest.mark.parametrize("wish", STRUCTURE)
def test_structure_that_is_not_built_is_declined_with_the_true_reason(wish: str) -> None:
    _, plan = planned(wish)
    assert plan.declined is not None
    assert STRUCTURE[wish] in plan.declined


#: What a flow cannot do, and what only talks about such things.
IMPOSSIBLE = {
    "I want an Android app that tells my customers the opening hours": "app for phones",
    "Mach uns eine App für das iPhone, die Rezepte vorschlägt": "App fürs Handy",
    "Vorrei un'app per iPhone che mostra il menù": "app per telefoni",
    "Zrób aplikację mobilną dla klientów piekarni": "aplikacja na telefon",
    "Un bot que vigile las pantallas de mis empleados": "pantalla",
    "Ein Bot, der den Bildschirm meiner Mitarbeiter überwacht": "Bildschirm",
    "Il me faut un bot qui leur bloque Facebook sur leur PC": "écran",
    "A bot that installs the printer driver on our computers": "screen",
    "Um bot que bloqueia o Instagram nos celulares dos alunos": "tela",
    "A museum guide: visitors point the camera at a painting and it speaks": "camera",
    "Un assistente che risponde al telefono": "telefonare",
}
TALKED_ABOUT = [
    "A support bot for our mobile app", "A bot that explains camera settings", "Ein Bot für unsere Android-App",
    "Un bot qui répond aux questions sur notre application mobile", "Bot dla sklepu, wyjaśnia ustawienia kamery",
    "A bot that explains how to install our software on a PC", "Een bot die uitlegt hoe je het scherm schoonmaakt",
    "Un asistente que explica cómo bloquear una tarjeta en el móvil", "A bot for our camera shop. We sell screens.",
    "A bot that answers questions about our phone plans and blocked SIM cards",
]  # fmt: skip


@pytest.mark.parametrize("wish", IMPOSSIBLE)
def test_what_is_outside_of_flows_is_declined_with_what_a_flow_does(wish: str) -> None:
    intent, plan = planned(wish)
    assert IMPOSSIBLE[wish] in (plan.declined or "")
    assert not intent.questions


@pytest.mark.parametrize("wish", TALKED_ABOUT)
def test_a_bot_that_only_talks_about_apps_and_devices_is_built(wish: str) -> None:
    assert planned(wish)[1].declined is None


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("Antworte immer nett. Und nur die letzten 10 Nachrichten merken.", "Antworte immer nett."),
        ("Antwoord altijd vriendelijk. En alleen met de laatste 10 berichten.", "Antwoord altijd vriendelijk."),
    ],
)
def test_what_was_taken_out_leaves_no_stump(wish: str, told: str) -> None:
    assert {"systemMessagePrompt": told, "k": 10}.items() <= {v.param: v.value for v in planned(wish)[1].values}.items()


def test_the_context_of_ollama_is_set() -> None:
    values = {v.param: v.value for v in planned("A polite bot for the club on Ollama, llama3.1:8b, ctx 8192")[1].values}
    assert values["numCtx"] == 8192
    assert "8192" not in str(values["systemMessagePrompt"])


@pytest.mark.parametrize(
    "wish",
    [
        "Agentflow: pierwszy model pisze opis, drugi ocenia. Jak nie, wraca do pierwszego, maks. 4 poprawki.",
        "Ein Ablauf der das Wetter von https://api.meteo.example/rain holt und wenn es regnet warnt, sonst 'Trocken.'",
        "Every working day at 8 fetch https://api.meteo.example/rain, if it rains write a warning, otherwise say dry",
        "Cada día laborable consulta https://api.tiempo.example/x y si llueve escribe un aviso, de lo contrario nada",
    ],
)
def test_steps_are_never_told_to_one_model(wish: str) -> None:
    assert planned(wish)[1].declined


@pytest.mark.parametrize(
    ("wish", "fields"),
    [
        ("Ma wyciągać z tekstu pola numer_faktury, kwota (liczba) i zwracać je jako JSON.",
         {"numer_faktury": "string", "kwota": "number"}),
        ("Extract the fields title, pages (number), available (yes/no) and return them as JSON",
         {"title": "string", "pages": "number", "available": "boolean"}),
        ("Die Felder name, stufe (hoch/tief) und rueckruf (ja/nein) sollen als JSON rauskommen, sonst kein Text.",
         {"name": "string", "stufe": "string", "rueckruf": "boolean"}),
        ("Extrahiere als JSON", None), ("A bot that answers in JSON about our menu", None),
    ],
)  # fmt: skip
def test_the_fields_of_an_answer_are_those_that_are_listed(wish: str, fields: dict[str, str] | None) -> None:
    _, plan = planned(wish)
    rows: Any = next((value.value for value in plan.values if value.param == "jsonStructure"), None)
    assert (rows and {row["property"]: row["type"] for row in rows}) == fields
    assert bool(plan.declined) == (fields is None)


@pytest.mark.parametrize(
    "fact", ["図面はPDFかDXFで。", "Drawings come as PDF or DXF.", "Logos bitte als PDF oder SVG."]
)
def test_a_file_that_people_send_is_no_source(fact: str) -> None:
    _, plan = planned(f"A polite bot for our workshop. {fact}")
    assert "pdfFile" not in {node.node_name for node in plan.nodes}
    assert fact in str(plan.values)


def test_a_salutation_and_a_remark_about_the_writer_are_not_in_the_prompt() -> None:
    _, plan = planned("Dear Sir or Madam, our library needs a helper (I am 74 so please bear with me). No emojis.")
    told = str(plan.values)
    assert "Madam" not in told
    assert "74" not in told
    assert "No emojis" in told


@pytest.mark.parametrize("version", ["1.21.4", "10.0.0.12", "2,5,7"])
def test_a_version_number_is_a_fact(version: str) -> None:
    _, plan = planned(f"A friendly bot for our game club. The server runs version {version}.")
    assert version in str(plan.values)


@pytest.mark.parametrize(
    "wish",
    [
        "Train a model on our letters", "A bot that phones our customers",
        "A flow that opens our Excel list on my office computer and runs the macros of stock.xlsm",
    ],
)  # fmt: skip
def test_what_no_model_makes_possible_is_not_promised_with_one(wish: str) -> None:
    assert "name a model" not in (planned(wish)[1].declined or "name a model")


@given(facts=st.lists(st.sampled_from(FACTS), max_size=3, unique=True), wish=st.sampled_from(sorted(STRUCTURE)))
def test_no_fact_beside_it_lets_structure_pass(facts: list[str], wish: str) -> None:
    _, plan = planned(" ".join(["A friendly bot for the boat yard.", *facts, f"{wish}."]))
    told = [part.quote.strip(" .") for part in plan.parts if part.state == "not_understood"]
    assert plan.declined or any(wish in quote or quote in wish for quote in told), plan.values


@given(st.lists(st.sampled_from(FACTS), min_size=1, max_size=4, unique=True))
def test_facts_with_words_of_structure_are_told_to_the_model_whole(facts: list[str]) -> None:
    _, plan = planned(" ".join(["A friendly bot for the boat yard.", *facts]))
    assert plan.declined is None
    told = " ".join(str(value.value) for value in plan.values)
    assert all(fact in told for fact in facts)


@pytest.mark.parametrize(
    "wish",
    [
        "we want something with AI for the garden centre, could you do that",
        "Mach mir irgendwas mit KI für die Praxis",
        "graag iets handigs voor de receptie", "un truc intelligent pour l'accueil svp", "coś sprytnego do biura",
        "the same as the one in our other shop, only nicer", "so was wie bei der Tochter, nur schneller",
    ],
)  # fmt: skip
def test_a_vague_wish_gets_one_question(wish: str) -> None:
    intent, _ = planned(wish)
    assert len(intent.questions) == 1
    assert intent.questions[0].endswith("?")


def test_a_text_that_is_spoken_of_and_not_named_is_asked_about() -> None:
    intent, _ = planned("Ein Bot, der Fragen zur Hausordnung beantwortet. Was nicht drinsteht, soll er nicht erfinden.")
    assert intent.questions == ["Soll er aus eigenen Texten antworten (welchen?) oder aus dem Wissen des Modells?"]


def test_the_address_of_the_model_is_its_own_and_no_page_to_read() -> None:
    _, plan = planned("A tutor for knitting with Ollama, model llama3.1, at http://192.168.1.20:11434")
    values = {value.param: value.value for value in plan.values}
    assert values["baseUrl"] == "http://192.168.1.20:11434"
    assert "cheerioWebScraper" not in {node.node_name for node in plan.nodes}


def test_no_default_of_the_retrieval_contradicts_what_the_person_asked_for() -> None:
    _, plan = planned("Answer questions from our safety handbook. If it doesn't say, answer: Ask the site engineer.")
    prompt = next(str(value.value) for value in plan.values if value.param == "responsePrompt")
    assert "Ask the site engineer." in prompt
    assert "{context}" in prompt
    assert "Hmm" not in prompt


def test_a_number_of_pages_is_a_limit_of_the_reader() -> None:
    _, plan = planned("Read 20 pages of https://docs.kiln.example and answer questions about glazes")
    assert {value.param: value.value for value in plan.values}["limit"] == 20


def test_a_number_of_results_is_a_setting_and_no_sentence_of_the_prompt() -> None:
    _, plan = planned("RAG bot over our employee handbook, return top 6, chunk size 800")
    values = {value.param: value.value for value in plan.values}
    assert values["topK"] == 6
    assert "top 6" not in str(values).casefold()


@pytest.mark.parametrize(
    "wish",
    [
        "An agentflow that fetches https://a.example/x and turns it into a poem and mails it to Bob",
        "Für jede Zeile eine Beschreibung schreiben und alle an Slack schicken",
    ],
)
def test_a_clause_is_built_in_full_or_not_at_all(wish: str) -> None:
    assert planned(wish)[1].declined


def test_a_secret_of_a_request_is_never_in_a_flow() -> None:
    _, plan = planned("Fetch https://api.tides.example/today with bearer token abc123, then write a text for surfers")
    assert "bearer token" in (plan.declined or "")
    assert "abc123" not in str(plan.values)


#: What is named and that no node does -> a word of the reason.
NAMED = {
    "An agent that looks things up on Wikipedia and in our manual (docx)": "Wikipedia",
    "flow that listens to the tractor's CAN bus over bluetooth and stops the engine": "outside of Flowise",
    "Jeden Morgen um 6:30 soll der Flow https://api.wetter.example/heute holen und in zwei Sätzen sagen": "«Jeden",
    "todo dia útil às 7h30 o fluxo busca https://porto.example/avisos.json e me faz um resumo": "«todo dia útil",
    "flusso: un primo agente scrive il comunicato, un secondo lo critica. ripeti 3 volte": "ripeti 3 volte",
}


@pytest.mark.parametrize("wish", NAMED)
def test_what_is_named_and_not_done_is_told(wish: str) -> None:
    assert NAMED[wish] in (planned(wish)[1].declined or "")


def test_an_address_is_used_once_for_what_its_sentence_says() -> None:
    text = (
        "bot over our docs site https://docs.kiln.example (crawl max 50 pages), pgvector as the store, GPT-4.1 at 0.1"
    )
    values = {value.param: value.value for value in planned(text)[1].values}
    assert (values["url"], values["limit"], values["temperature"]) == ("https://docs.kiln.example", 50, 0.1)
    assert "kiln" not in str(values["host"])


@pytest.mark.parametrize(
    ("wish", "kinds"),
    [
        ("extract from each note: sender, pallets (number), adr yes/no. only those fields",
         {"sender": "string", "pallets": "number", "adr": "boolean"}),
        ("Aus Bewerbungen diese Felder rausziehen: name, jahre (Zahl), fuehrerschein (ja/nein). Nur JSON.",
         {"name": "string", "jahre": "number", "fuehrerschein": "boolean"}),
        ("Extrais ces champs: nom, prix (nombre), disponible (oui/non). En JSON",
         {"nom": "string", "prix": "number", "disponible": "boolean"}),
        ("Extract from each supplier mail: supplier name, delivery date, total amount and currency. gpt-4o-mini",
         {"supplier_name": "string", "delivery_date": "string", "total_amount": "number", "currency": "string"}),
        ("Vorrei che dai messaggi estraesse: nome, tipo (preventivo, guasto, altro), urgenza da 1 a 3 e un riassunto "
         "di massimo 20 parole",
         {"nome": "string", "tipo": "string", "urgenza": "number", "riassunto": "string"}),
        ("Aus Bewerbungen bitte die Felder Name, Ort und Führerschein (ja/nein) als JSON zurückgeben",
         {"name": "string", "ort": "string", "fuhrerschein": "boolean"}),
    ],
)  # fmt: skip
def test_fields_after_a_colon_have_the_kinds_that_are_said(wish: str, kinds: dict[str, str]) -> None:
    rows = next(value.value for value in planned(wish)[1].values if value.param == "jsonStructure")
    assert isinstance(rows, list)
    assert {row["property"]: row["type"] for row in rows if isinstance(row, dict)} == kinds


def test_what_explains_a_field_is_in_its_description() -> None:
    values = planned("Estrai: tipo (guasto, altro), riassunto di massimo 20 parole")[1].values
    rows = next(value.value for value in values if value.param == "jsonStructure")
    assert isinstance(rows, list)
    told = [row["description"] for row in rows if isinstance(row, dict)]
    assert told == ["tipo (guasto, altro)", "riassunto di massimo 20 parole"]
    assert "maxTokens" not in {value.param for value in values}


@pytest.mark.parametrize(
    "wish",
    ["A bot for our bakery with a low temperature", "Un chatbot per il vivaio, temperatura bassa",
     "Chatbot pour une boulangerie, température basse", "Ein Bot für die Praxis, niedrige Temperatur"],
)  # fmt: skip
def test_a_low_temperature_is_set(wish: str) -> None:
    assert {value.param: value.value for value in planned(wish)[1].values}["temperature"] == 0.2


def test_documents_are_read_in_dutch_with_their_settings() -> None:
    _, plan = planned(
        "Een assistent die alleen antwoordt uit onze huisregels (Word-bestand, upload ik later) en de bron noemt, "
        "laatste 5 berichten onthouden"
    )
    names = {node.node_name for node in plan.nodes}
    values = {value.param: value.value for value in plan.values}
    assert {"docxFile", "conversationalRetrievalQAChain", "bufferWindowMemory"} <= names
    assert (values["k"], values["returnSourceDocuments"]) == (5, True)


def test_each_document_is_split_whatever_its_kind() -> None:
    wish = "A bot that answers from our price list (CSV) and the handbook in Word, with a text splitter"
    intent, plan = planned(wish)
    rules = DeterministicReasoner()
    answer: Any = asyncio.run(rules.patch(PatchRequest(requirement=wish, plan=plan, nodes=STORE))).value
    assert intent.operation == "create"
    split = {op.target_node_id for op in answer.ops if isinstance(op, Connect) and op.target_anchor == "textSplitter"}
    assert split == {"csvFile_0", "docxFile_0"}


#: Facts that sound like a tool, a setting or a service -> what must not be built for them.
ONLY_SAID = {
    "Ein Bot für unsere Praxis. Absagen 24 Stunden vorher, sonst berechnen wir 35 Euro.": "calculator",
    "A bot for our dev shop. Incidents go to #fire on Slack.": "slack",
    "Assistente con calcolatrice; deve sempre citare il link della fonte": "returnSourceDocuments",
}


@pytest.mark.parametrize("wish", ONLY_SAID)
def test_a_fact_or_a_rule_is_told_to_the_model_and_builds_nothing(wish: str) -> None:
    _, plan = planned(wish)
    assert plan.declined is None
    assert ONLY_SAID[wish] not in f"{plan.nodes} {[value.param for value in plan.values]}"
    assert any(wish.split()[-1].strip(".") in str(value.value) for value in plan.values)


@pytest.mark.parametrize(
    ("wish", "values"),
    [
        ("Chat über unsere Pläne (PDF), Qdrant, Collection heißt plan_7, die 4 besten Treffer",
         {"topK": 4, "qdrantCollection": "plan_7"}),
        ("bot that answers from our handbook (pdf), and it should show which passages it used",
         {"returnSourceDocuments": True}),
        ("chatbot over our lease (pdf), tell people where it found the answer", {"returnSourceDocuments": True}),
    ],
)  # fmt: skip
def test_what_names_a_setting_in_other_words_sets_it(wish: str, values: dict[str, object]) -> None:
    _, plan = planned(wish)
    assert values.items() <= {value.param: value.value for value in plan.values}.items()
    assert not plan.not_done


def test_a_time_of_day_asks_for_no_clock() -> None:
    _, plan = planned("bot for our chess club. club night tues 7pm, clocks are provided")
    assert "currentDateTime" not in {node.node_name for node in plan.nodes}


def test_a_vague_wish_that_stays_vague_is_the_plainest_chat_without_its_vague_words() -> None:
    text = "graag iets handigs voor de receptie"
    intent, _ = planned(text)
    _, plan = planned(text, clarifications=((intent.questions[0], "go on"),))
    assert [node.node_name for node in plan.nodes] == ["conversationChain", "chatOpenAI", "bufferMemory"]
    assert plan.values == []
    assert [part.state for part in plan.parts] == ["assumed"]


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("I run a small bike shop and would like a chatbot that answers questions about repairs and prices of parts",
         "Chatbot that answers questions about repairs and prices"),
        ("Dev team here, need a bot that explains our git rules", "Bot that explains our git rules"),
        ("bot for my pension with 14 rooms, breakfast 7-10, dogs welcome", "Bot for my pension with 14 rooms"),
        ("Assistant pour le musée de la dentelle et ses visiteurs, il explique",
         "Assistant pour le musée de la dentelle"),
    ],
)  # fmt: skip
def test_the_name_of_a_flow_ends_at_a_whole_word(wish: str, name: str) -> None:
    assert planned(wish)[0].title == name


@pytest.mark.parametrize(
    "wish",
    [
        "An agentflow: an LLM reads the amount. Over 3000 pounds a person must approve, below it is paid.",
        "Ein AgentFlow: ein LLM liest die Menge. Über 40 Stück muss ein Mensch freigeben, darunter geht sie durch.",
        "A flow that calls https://api.example.com/level , reads the level, otherwise says that all is well",
    ],
)
def test_p83_a_condition_that_was_not_read_is_no_task_of_a_step(wish: str) -> None:
    assert planned(wish)[1].declined


@pytest.mark.parametrize(
    "wish",
    [
        "Agentflow: write an offer. If it costs over 500 pounds a person must approve, below it is paid.",
        "Agentflow: a letter is written about boats, then if the boss likes",
        "Agentflow: classify messages into tyres, brakes and paint. Tyres and brakes: ask for the car. Paint: no.",
        "flow with three steps: outline, draft, proofread. topic comes from the user",
        "Een flow: vertaal de klacht naar het Engels en stuur hem door naar Piet, hij beslist wat we doen",
        "Agentflow: POST https://crm.example/leads and if that fails say sorry and give the number 030 1234",
    ],
)
def test_p83_what_is_no_task_is_no_step(wish: str) -> None:
    assert planned(wish)[1].declined


def test_an_agent_asks_each_address_that_it_is_given_by_a_tool_of_its_own() -> None:
    wish = (
        "Wir haben eine kleine API:\nGET https://api.solar.example/v2/anlagen (Liste aller Anlagen)\n"
        "GET https://api.solar.example/v2/ertrag?anlage=ID&monat=JJJJ-MM (Ertrag in kWh)\n"
        "Bitte einen Agenten mit beiden Abfragen und aktuellem Datum."
    )
    plan = planned(wish)[1]
    assert sorted(node.node_name for node in plan.nodes if node.node_name.startswith(("requests", "current"))) == [
        "currentDateTime",
        "requestsGet",
        "requestsGet",
    ]
    values = {f"{one.node_id}.{one.param}": one.value for one in plan.values}
    assert values["requestsGet_0.requestsGetUrl"] == "https://api.solar.example/v2/anlagen"
    assert values["requestsGet_0.requestsGetDescription"] == "Liste aller Anlagen"
    assert values["requestsGet_1.requestsGetUrl"] == "https://api.solar.example/v2/ertrag"
    inputs = json.loads(str(values["requestsGet_1.requestsGetQueryParamsSchema"]))
    assert {name: one["in"] for name, one in inputs.items()} == {"anlage": "query", "monat": "query"}
    assert values["requestsGet_0.requestsGetName"] != values["requestsGet_1.requestsGetName"]
    assert not [part.quote for part in plan.parts if part.state != "covered"]


def test_what_varies_in_the_path_of_an_address_is_filled_in_by_the_model() -> None:
    wish = "An agent for orders: it does GET https://api.flowers.example/v1/orders/<number> and explains the status."
    values = {one.param: one.value for one in planned(wish)[1].values}
    assert values["requestsGetUrl"] == "https://api.flowers.example/v1/orders/:number"
    assert json.loads(str(values["requestsGetQueryParamsSchema"]))["number"] == {
        "type": "string",
        "in": "path",
        "required": True,
    }


def test_a_page_that_people_are_sent_to_is_no_request() -> None:
    wish = "An agent with a calculator for our shop. Prices are on https://shop.example/prices."
    assert not [one for one in planned(wish)[1].nodes if one.node_name.startswith("requests")]


def test_fields_are_read_line_by_line_with_their_types_and_stay_as_they_are_written() -> None:
    wish = (
        "I paste a label and want JSON back with these fields:\n\ntaxon (string)\ncollection_number (string, "
        "might have letters)\nelevation_m (number)\nuncertain (list of field names)\n\nFeet to metres please."
    )
    plan = planned(wish)[1]
    rows = next(one.value for one in plan.values if one.param == "jsonStructure")
    assert isinstance(rows, list)
    assert [(row["property"], row["type"]) for row in rows if isinstance(row, dict)] == [
        ("taxon", "string"), ("collection_number", "string"), ("elevation_m", "number"), ("uncertain", "string"),
    ]  # fmt: skip
    assert "\ntaxon (string)" in str(next(one.value for one in plan.values if one.param == "template"))
