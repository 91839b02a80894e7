"""What a wish names is there, or told: products, steps, fields, sources. What nobody can build from is asked about."""

from typing import Any

import pytest

from flowise_dev_agent.contracts.plan import PlanContract
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_clauses_of_changes import SEARCHER
from tests.unit.reasoning.test_rules_flows_there import STORE, chain, changed, inputs
from tests.unit.reasoning.test_rules_flows_there import planned as plan_of
from tests.unit.reasoning.test_rules_new_flows import planned

FINDER = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "You help hikers."}),
        AddNode(
            node_name="retrieverTool",
            node_id="retrieverTool_0",
            params={"name": "find_paths", "description": "Finds paths in the trail guide."},
        ),
        AddNode(node_name="qdrant", node_id="qdrant_0", params={"qdrantCollection": "trails"}),
        AddNode(node_name="openAIEmbeddings", node_id="openAIEmbeddings_0"),
        AddNode(node_name="pdfFile", node_id="pdfFile_0"),
        *(
            Connect(source_node_id=source, target_node_id=target, target_anchor=anchor)
            for source, target, anchor in [
                ("chatOpenAI_0", "toolAgent_0", "model"),
                ("bufferMemory_0", "toolAgent_0", "memory"),
                ("retrieverTool_0", "toolAgent_0", "tools"),
                ("qdrant_0", "retrieverTool_0", "retriever"),
                ("openAIEmbeddings_0", "qdrant_0", "embeddings"),
                ("pdfFile_0", "qdrant_0", "document"),
            ]
        ),
    ],
    STORE.schemas,
).graph

#: `FINDER` with a calculator.
COUNTER = compile_ops(
    FINDER,
    [
        AddNode(node_name="calculator", node_id="calculator_0"),
        Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ],
    STORE.schemas,
).graph

MAILS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        *(
            AddNode(
                node_name="llmAgentflow",
                node_id=f"llmAgentflow_{n}",
                label=label,
                params={
                    "llmModel": "chatOpenAI",
                    "llmModelConfig": {"modelName": "gpt-4o-mini"},
                    "llmMessages": [{"role": "system", "content": text}],
                },
            )
            for n, (label, text) in enumerate(
                [("Sort mail", "Find the topic."), ("Complaint letter", "Under 30 words."), ("Thanks", "Say thanks.")]
            )
        ),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Send complaint answer"),
        *chain("startAgentflow_0", "llmAgentflow_0", "llmAgentflow_1", "llmAgentflow_2", "directReplyAgentflow_0"),
    ],
    STORE.schemas,
).graph


def values_of(plan: PlanContract) -> dict[str, Any]:
    return {f"{one.node_id}.{one.param}": one.value for one in plan.values}


@pytest.mark.parametrize("wish", [
    "need an AI for our garage that does everything my wife does",
    "Ein Bot für meinen Laden, der mehr Kunden bringt",
    "quiero un bot que haga todo el trabajo de la oficina",
    "Un assistant qui s'occupe de tout dans notre agence",
    "Un bot per la palestra che faccia un po' tutto",
])  # fmt: skip
async def test_a_wish_that_says_nothing_of_what_is_to_be_done_is_asked_about(wish: str) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.questions == [say("question_vague", intent.language)]


@pytest.mark.parametrize("wish", [
    "A bot that quizzes me on French verbs",
    "Ein Bot für unseren Kameraladen",
    "A bot for our phone repair shop",
    "Un bot que explique cómo se abre la barrera del parking",
])  # fmt: skip
async def test_a_short_wish_that_says_what_is_to_be_done_is_built(wish: str, catalogue: NodeStore) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.questions == []
    assert (await planned(wish, catalogue)).declined is None


def test_what_no_flow_can_do_goes_into_no_prompt_of_a_flow_that_is_there() -> None:
    wish = "As soon as somebody books it should phone the guide and take the payment from the guest's card."
    plan = plan_of(FINDER, wish)
    assert plan.declined
    assert plan.values == []


def test_what_is_possible_beside_it_is_done_and_the_rest_told() -> None:
    wish = "Tell them that the hut opens in May. It should also ring up every guest the evening before."
    graph, plan = changed(FINDER, wish)
    assert "hut opens in May" in inputs(graph, "toolAgent_0")["systemMessage"]
    assert "ring up" not in inputs(graph, "toolAgent_0")["systemMessage"]
    assert any("ring up" in part.quote for part in plan.not_done)


async def test_a_vector_store_beside_a_memory_in_redis_is_the_one_that_is_named(catalogue: NodeStore) -> None:
    wish = "RAG over our handbook (PDF). Vector store: Pinecone, index kb-1, namespace v2. Redis-backed chat memory."
    plan = await planned(wish, catalogue)
    assert {"pinecone", "RedisBackedChatMemory"} <= {node.node_name for node in plan.nodes}
    assert "redis" not in {node.node_name for node in plan.nodes}
    assert values_of(plan)["pinecone_0.pineconeIndex"] == "kb-1"


@pytest.mark.parametrize(("wish", "fields"), [
    ("I paste an invoice and need back supplier name, invoice date (YYYY-MM-DD), net and IBAN as JSON.",
     ["supplier_name", "invoice_date", "net", "iban"]),
    ("I paste a mail. Return name, postal code and phone number as json.",
     ["name", "postal_code", "phone_number"]),
    ("Ich füge eine Mail ein. Gib mir Name, Ort und Telefon als JSON zurück.", ["name", "ort", "telefon"]),
])  # fmt: skip
async def test_fields_of_several_words_in_front_of_as_json_are_all_there(
    wish: str, fields: list[str], catalogue: NodeStore
) -> None:
    plan = await planned(wish, catalogue)
    rows = values_of(plan)["structuredOutputParser_0.jsonStructure"]
    assert [row["property"] for row in rows] == fields


async def test_an_agent_of_which_only_the_parts_are_named_is_told_the_wish(catalogue: NodeStore) -> None:
    wish = "Agent with Claude, temp 0.1, that can check my Google Calendar so my crew can ask who is on shift"
    plan = await planned(wish, catalogue)
    assert "my crew can ask who is on shift" in values_of(plan)["toolAgent_0.systemMessage"]


@pytest.mark.parametrize(("wish", "writes"), [
    ("Assistant with Google Calendar for our cello teacher", False),
    ("Assistant with Google Calendar that says what is free. It never enters anything.", False),
    ("Assistant with Google Calendar that enters lessons, and it never deletes any.", True),
])  # fmt: skip
async def test_a_tool_writes_only_where_that_is_asked_of_it(wish: str, writes: bool, catalogue: NodeStore) -> None:
    actions = str(values_of(await planned(wish, catalogue))["googleCalendarTool_0.eventActions"])
    assert ("createEvent" in actions) is writes
    assert "listEvents" in actions


async def test_the_description_of_a_request_holds_the_sentence_whole(catalogue: NodeStore) -> None:
    wish = "An agent that can GET https://tides.example/v1/today so that sailors can ask when to leave"
    plan = await planned(wish, catalogue)
    assert values_of(plan)["requestsGet_0.requestsGetDescription"] == wish


def test_the_tool_of_an_agent_says_what_a_new_source_is_for() -> None:
    wish = "Add the price list as a PDF, too (prices.pdf), so that it answers on huts."
    graph, plan = changed(FINDER, wish)
    assert sum(node.name == "pdfFile" for node in graph.nodes) == 2
    told = inputs(graph, "retrieverTool_0")["description"]
    assert told.startswith("Finds paths in the trail guide.\n")
    assert "prices.pdf" in told
    assert "it answers on huts" in told
    assert plan.not_done == []


def test_the_name_of_a_collection_is_not_the_one_of_the_flow() -> None:
    wish = "Chunk size 500. It needs a new collection, call it trails_v2 and leave the old one alone."
    plan = plan_of(FINDER, wish)
    assert plan.new_name is None
    assert plan_of(FINDER, 'Chunk size 500. Call it "Trail Desk".').new_name == "Trail Desk"


def test_all_steps_of_a_sentence_get_the_model() -> None:
    wish = "Run Sort mail and the complaint step on gpt-4.1."
    graph, _ = changed(MAILS, wish)
    models = [inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"]["modelName"] for n in range(3)]
    assert models == ["gpt-4.1", "gpt-4.1", "gpt-4o-mini"]


def test_a_number_of_something_else_is_not_exchanged() -> None:
    wish = "En Complaint letter, el recargo ya no son 25 libras sino 30."
    graph, _ = changed(MAILS, wish)
    assert inputs(graph, "llmAgentflow_1")["llmMessages"][0]["content"].startswith("Under 30 words.")


def test_a_word_for_all_that_is_said_is_no_memory() -> None:
    wish = "Togli la ricerca e tutto il discorso dei prezzi."
    plan = plan_of(SEARCHER, wish)
    assert "bufferMemory" not in {node.node_name for node in plan.nodes}


async def test_a_rule_with_a_colon_ends_where_the_next_sentence_begins(catalogue: NodeStore) -> None:
    wish = (
        "Ein Chat für unseren Heizungsbetrieb. Bei Gasgeruch muss er SOFORT sagen: Fenster auf, raus aus dem Haus, und "
        "sonst gar nichts. Er soll keine Anleitungen zum Reparieren geben, das ging schon mal nicht gut aus. Er sollte "
        "sich auch merken, was der Kunde vorher gesagt hat."
    )
    prompt = values_of(await planned(wish, catalogue))["conversationChain_0.systemMessagePrompt"]
    assert "Fenster auf" in prompt
    assert "keine Anleitungen zum Reparieren" in prompt


@pytest.mark.parametrize(("wish", "name"), [
    ("Bonjour, je tiens un petit restaurant à Nantes, Le Goéland, et je voudrais un assistant poli.", "Nantes"),
    ("Hoi, ik werk bij de gemeente Oostermeer en krijg veel vragen. Maak een bot over afval.", "Oostermeer"),
])  # fmt: skip
async def test_who_the_bot_is_for_is_in_its_prompt(wish: str, name: str, catalogue: NodeStore) -> None:
    assert name in str(values_of(await planned(wish, catalogue)))


async def test_pages_that_are_listed_by_their_paths_are_all_read(catalogue: NodeStore) -> None:
    wish = "A bot that answers from https://club.example/fees, /times and /rules, only those three pages."
    plan = await planned(wish, catalogue)
    pages = {value for field, value in values_of(plan).items() if field.endswith(".url")}
    assert pages == {f"https://club.example/{name}" for name in ("fees", "times", "rules")}


async def test_a_text_that_follows_in_quotes_is_the_source(catalogue: NodeStore) -> None:
    text = (
        "Juniors: Mo 17-18:30, coach Ida. Seniors: Tu 18-20, coach Bo. Fees: 60 euros a year. Mail: info@club.example."
    )
    wish = f'Er soll die Fragen aus folgendem Text beantworten und sonst aus nichts:\n"{text}"'
    assert values_of(await planned(f"Ein Bot für den Verein. {wish}", catalogue))["plainText_0.text"] == text


async def test_a_name_that_is_given_is_taken_as_it_is() -> None:
    wish = 'RAG chatflow over our docs. We have 40 flows here so please name it "docs-rag-v2".'
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.title == "docs-rag-v2"


async def test_in_a_language_that_is_not_read_a_wish_beside_a_model_is_not_called_done(catalogue: NodeStore) -> None:
    wish = (
        "Çeviri için bir akış: metni Almancaya çevirsin. Model gpt-4o olsun, önceki metinleri hatırlamasına gerek yok."
    )
    plan = await planned(wish, catalogue)
    (memory,) = [part for part in plan.parts if "hatırlamasına" in part.quote]
    assert memory.state == "assumed"


def test_each_step_gets_the_model_and_the_number_of_its_own_sentence() -> None:
    wish = "1. Sort mail -> gpt-4o, temp 0\n2. Complaint letter -> gpt-4.1, temp 0.7"
    graph, _ = changed(MAILS, wish)
    held = [inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"] for n in range(3)]
    assert [one["modelName"] for one in held] == ["gpt-4o", "gpt-4.1", "gpt-4o-mini"]
    assert [one.get("temperature") for one in held[:2]] == [0, 0.7]


@pytest.mark.parametrize("wish", [
    "The inspection is 85 now, the e-bike one stays at 99.",
    "Allow 5 rounds of corrections instead of 3, please.",
    "Si alguien no puede pagar, que sea amable, que no amenace con nada y que le pida escribir a pay@hut.example.",
])  # fmt: skip
def test_a_value_is_exchanged_only_where_the_text_speaks_of_it(wish: str) -> None:
    text = "An e-bike costs 99 euros. Less than 3 working days is a rush. Contracts: con@hut.example."
    graph, _ = changed(_told(text), wish)
    assert inputs(graph, "conversationChain_0")["systemMessagePrompt"].startswith(text)


def test_one_more_page_does_not_take_the_place_of_the_other() -> None:
    flow = compile_ops(
        FINDER,
        [AddNode(node_name="cheerioWebScraper", node_id="cheerioWebScraper_0", params={"url": "https://hut.example/fees"}),
         Connect(source_node_id="cheerioWebScraper_0", target_node_id="qdrant_0", target_anchor="document")],
        STORE.schemas,
    ).graph  # fmt: skip
    graph, _ = changed(
        flow, "wir haben jetzt auch eine seite mit den kursen, https://hut.example/kurse, die soll er kennen."
    )
    pages = {node.inputs.get("url") for node in graph.nodes if node.name == "cheerioWebScraper"}
    assert pages == {"https://hut.example/fees", "https://hut.example/kurse"}


def test_what_is_to_be_done_rather_is_told_with_what_is_not() -> None:
    graph, _ = changed(
        COUNTER, "Der Taschenrechner kann weg. Rechnen soll der Bot dann gar nicht mehr, sondern ans Büro verweisen."
    )
    assert "Rechnen soll der Bot dann gar nicht mehr, sondern" in inputs(graph, "toolAgent_0")["systemMessage"]


def _told(text: str) -> GraphIR:
    """A flow that is told this."""
    nodes = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0", params={"systemMessagePrompt": text}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
    ]
    return compile_ops(GraphIR.empty(), nodes, STORE.schemas).graph


@pytest.mark.parametrize("wish", [
    "Visitors say the assistant is not good enough. Can you make it better?",
    "Die Gäste sind nicht zufrieden. Mach den Bot bitte besser.",
])  # fmt: skip
def test_that_it_should_be_better_is_asked_about_whatever_people_say(wish: str) -> None:
    assert say("question_different", "de" if "Mach" in wish else "en") in (plan_of(FINDER, wish).declined or "")


def test_an_order_behind_the_part_takes_it_out() -> None:
    assert plan_of(COUNTER, "La calculadora la podéis quitar.").removals == ["calculator_0"]


def test_the_name_of_one_more_file_is_not_put_into_the_one_that_is_there() -> None:
    wish = "Wir haben jetzt noch eine zweite PDF, die Müllordnung (muell.pdf), die soll auch mit rein."
    plan = plan_of(FINDER, wish)
    assert {field for field in values_of(plan) if field.endswith(".pdfFile")} == {"pdfFile_1.pdfFile"}


def test_two_hours_beside_each_other_are_not_exchanged() -> None:
    text = "The office is open Monday to Friday from 9 to 5. An e-bike costs 99 euros."
    graph, _ = changed(_told(text), "We are open Monday to Thursday 9 to 5 and Friday 9 to 1.")
    assert inputs(graph, "conversationChain_0")["systemMessagePrompt"].startswith(text)


async def test_the_same_bot_again_is_a_copy_where_the_one_there_stays() -> None:
    wish = (
        "We open a second surgery in Hull and need the same bot again for there. Please leave the Leeds one as it is."
    )
    request = ClassifyRequest(requirement=wish, target="Harbour Vets")
    assert (await DeterministicReasoner().classify(request)).value.operation == "copy"


async def test_that_guests_are_to_ring_is_no_call_by_the_bot(catalogue: NodeStore) -> None:
    wish = (
        "Ein Assistent für unsere Praxis. Bei starken Schmerzen sollen die Leute gleich anrufen, Telefon 0641 33 21 90."
    )
    assert (await planned(wish, catalogue)).declined is None


def test_a_new_source_of_a_flow_that_is_renamed_too_is_described() -> None:
    wish = 'Also add https://hut.example/faq as a source next to the guide and rename the flow to "Trail Desk 2".'
    graph, plan = changed(FINDER, wish)
    assert plan.new_name == "Trail Desk 2"
    assert "https://hut.example/faq as a source" in inputs(graph, "retrieverTool_0")["description"]


def test_two_new_sources_are_both_described() -> None:
    wish = "Also add https://hut.example/faq as a source. Also add https://hut.example/maps as a source."
    graph, _ = changed(FINDER, wish)
    said = inputs(graph, "retrieverTool_0")["description"]
    assert "https://hut.example/faq" in said
    assert "https://hut.example/maps" in said


def test_a_second_file_comes_beside_the_one_that_is_there() -> None:
    wish = "We also have a second pdf now, the parking rules (parking.pdf), it should answer from both."
    plan = plan_of(FINDER, wish)
    assert {field for field in values_of(plan) if field.endswith(".pdfFile")} == {"pdfFile_1.pdfFile"}


def test_a_model_for_two_steps_is_not_that_of_the_steps_that_keep_theirs() -> None:
    wish = "Use gpt-4.1 for Sort mail and Complaint letter. Thanks stays as it is."
    graph, _ = changed(MAILS, wish)
    models = [inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"]["modelName"] for n in range(3)]
    assert models == ["gpt-4.1", "gpt-4.1", "gpt-4o-mini"]


def test_a_number_that_goes_from_one_to_another_keeps_the_word_behind_it() -> None:
    graph, _ = changed(_told("Cancel up to 48 hours before."), "Pour les annulations le délai passe de 48 à 72 heures.")
    assert inputs(graph, "conversationChain_0")["systemMessagePrompt"] == "Cancel up to 72 hours before."


def test_that_the_rest_stays_declines_nothing() -> None:
    wish = "Run Thanks on gpt-4.1. The rest does not change, least of all the approval by the manager."
    graph, plan = changed(MAILS, wish)
    assert inputs(graph, "llmAgentflow_2")["llmModelConfig"]["modelName"] == "gpt-4.1"
    assert plan.not_done == []


async def test_a_duplicate_that_customers_ask_for_is_no_copy_of_the_flow() -> None:
    wish = "When a customer asks for an invoice or a duplicate, it should say that it is in the account."
    request = ClassifyRequest(requirement=wish, target="Shop")
    assert (await DeterministicReasoner().classify(request)).value.operation == "update"


async def test_how_often_people_ring_is_no_schedule(catalogue: NodeStore) -> None:
    wish = (
        "Hola! Trabajo en un colegio, cada día nos llaman 50 veces. Quiero un bot para las familias: abrimos de 9 a 14."
    )
    assert (await planned(wish, catalogue)).declined is None


async def test_a_key_that_is_filled_in_later_is_no_text_to_answer_from(catalogue: NodeStore) -> None:
    wish = (
        "An agent for our shop.\nTools:\n- GET https://shop.example/v1/orders/{order_id} to look up an order. header "
        "X-Api-Key, I'll fill in the key myself\n- calculator"
    )
    assert not {"plainText", "retrieverTool"} & {node.node_name for node in (await planned(wish, catalogue)).nodes}


def test_a_step_that_is_named_for_something_else_gets_no_value() -> None:
    graph, _ = changed(MAILS, "Complaint letter should mention refunds, and Thanks gets temperature 0.2.")
    held = [inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"].get("temperature") for n in range(3)]
    assert held[2] == 0.2
    assert 0.2 not in held[:2]


def test_of_two_providers_each_step_gets_its_own() -> None:
    graph, _ = changed(MAILS, "Use claude-sonnet-4-5 in Sort mail and gpt-4.1 in Thanks.")
    models = [inputs(graph, f"llmAgentflow_{n}")["llmModel"] for n in (0, 2)]
    assert models == ["chatAnthropic", "chatOpenAI"]
    assert inputs(graph, "llmAgentflow_2")["llmModelConfig"]["modelName"] == "gpt-4.1"


async def test_a_name_that_begins_with_a_counted_number_stops_nothing() -> None:
    wish = "Build me a chatbot for our fan club. Call it 1. FC Fanbot. Rules: 1. be friendly 2. no politics"
    assert (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value.operation == "create"


@pytest.mark.parametrize(("wish", "action"), [
    ("Assistent mit Gmail, der Entwürfe schreibt.", "createDraft"),
    ("An assistant with Gmail. Don't send anything, just write drafts.", "createDraft"),
    ("An assistant that manages my Google Calendar.", "createEvent"),
])  # fmt: skip
async def test_what_a_tool_is_to_write_it_may(wish: str, action: str, catalogue: NodeStore) -> None:
    assert action in str(values_of(await planned(wish, catalogue)))


def test_an_ending_that_is_spelled_out_is_told() -> None:
    graph, _ = changed(
        _told("You are kind."), "Begin every answer with: Hello there! Keep the answers very short from now on."
    )
    assert "Hello there!" in inputs(graph, "conversationChain_0")["systemMessagePrompt"]
