"""Every word of a wish is in a value, in a prompt, or named as not done; and no word is written that was only an order
to whoever builds."""

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import PlanContract
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.details import find_fields
from tests.unit.reasoning.test_rules_flows_there import DOCUMENTS
from tests.unit.reasoning.test_rules_properties import planned as planned_new
from tests.unit.reasoning.test_rules_rewording import BOATS, STORE, planned, prompt_after, told


def of_documents(wish: str) -> PlanContract:
    return planned("", wish, graph=DOCUMENTS)


def reasons(plan: PlanContract) -> dict[str, str]:
    return {part.quote: part.reason for part in plan.parts if part.state == "not_understood"}


@pytest.mark.parametrize(
    "sentence",
    [
        "If somebody is hurt tell them to call 999 straight away, and nothing else.",
        "Contesta en español cuando el cliente escriba en español, y si no, sigue igual que ahora.",
        "Er erfindet manchmal Anleitungen, das soll er lassen.",
        "Chocolate and grapes should be named as examples of poisoning so it really catches those.",
    ],
)
def test_a_sentence_for_the_model_is_written_whole(sentence: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, sentence)) == told(BOATS, sentence)


@pytest.mark.parametrize(
    ("wish", "lost"),
    [
        ("Also read our pages https://heron.example/tides and /berths besides the PDF", "/berths"),
        ("Swap the in-memory store for Qdrant, server url https://qd01.heron.internal, collection notes_2, cluster "
         "c7.heron", "c7.heron"),
    ],
)  # fmt: skip
def test_what_is_in_no_value_and_no_prompt_is_named(wish: str, lost: str) -> None:
    plan = of_documents(wish)
    assert plan.values
    assert say("part_rest", "en", words=f"«{lost}»") in reasons(plan).values()


def test_host_database_and_table_of_a_store_are_read() -> None:
    plan = of_documents("Swap the in-memory store for Postgres, host pg01.heron.internal, database notes, table n_2")
    assert {value.param: value.value for value in plan.values} == {
        "host": "pg01.heron.internal", "database": "notes", "tableName": "n_2"}  # fmt: skip
    assert (plan.declined, plan.not_done) == (None, [])


def test_a_value_of_which_nothing_says_what_it_is_goes_into_no_prompt() -> None:
    plan = of_documents("Go to 600/80, text-embedding-3-small, top K 5")
    assert "Go to 600/80" in reasons(plan)
    assert {value.param for value in plan.values} == {"modelName", "topK"}


@pytest.mark.parametrize(
    "order", ["Take out the bit about discounts entirely", "Bitte nimm das mit den Rabatten ganz raus"]
)
def test_an_order_to_take_something_out_is_told_and_no_rule(order: str) -> None:
    plan = planned(BOATS, f"{order}. Always mention the tides.")
    assert prompt_after(BOATS, plan) == told(BOATS, "Always mention the tides.")
    assert any(order in quote for quote in reasons(plan))


def test_a_value_is_set_whatever_other_node_the_wish_names() -> None:
    plan = of_documents("The Club Rules 2023 are long: chunk size 600, overlap 80, temperature 0.2.")
    assert {value.param: value.value for value in plan.values} == {
        "chunkSize": 600, "chunkOverlap": 80, "temperature": 0.2}  # fmt: skip


def test_all_documents_are_not_gone_while_one_stays() -> None:
    plan = of_documents("Remove all the documents")
    assert plan.declined
    assert plan.removals == []


@pytest.mark.parametrize(
    "wish",
    [
        "We have a second house and need the same for it. Please leave the Front desk bot exactly as it is. "
        "The new one is for Hotel Laurin in Merano.",
        "Der Front desk bot bleibt genau so. Wir brauchen ihn noch einmal für Hotel Laurin in Meran.",
    ],
)
def test_a_flow_that_is_to_stay_as_it_is_is_copied(wish: str) -> None:
    assert planned(BOATS, wish).operation == "copy"


def test_a_rename_is_no_copy_whatever_else_stays() -> None:
    plan = planned(BOATS, "The flow should be called Night desk, leave the rest.")
    assert (plan.operation, plan.new_name) == ("update", "Night desk")


WISH = (
    "Our lawyer says that the chat must not keep anything, so please remove the memory completely. "
    "And it should remember the customer's name through the chat and say it now and then."
)


def test_a_change_that_contradicts_itself_about_memory_is_asked_about() -> None:
    plan = planned(BOATS, WISH)
    assert (plan.declined or "").endswith("?")
    assert plan.removals == []
    answered = planned(BOATS, WISH, (plan.declined or "", "Remove the memory."))
    assert (answered.declined, answered.removals) == (None, ["bufferMemory_0", "conversationChain_0"])


STORED = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="conversationalRetrievalQAChain", node_id="chain_0"),
        AddNode(node_name="openAIEmbeddings", node_id="openAIEmbeddings_0"),
        AddNode(node_name="qdrant", node_id="qdrant_0", params={"qdrantServerUrl": "http://qdrant.heron.example:6333"}),
        AddNode(node_name="pdfFile", node_id="pdfFile_0"),
        *(
            Connect(source_node_id=source, target_node_id=target, target_anchor=anchor)
            for source, target, anchor in [
                ("chatOpenAI_0", "chain_0", "model"),
                ("openAIEmbeddings_0", "qdrant_0", "embeddings"),
                ("qdrant_0", "chain_0", "vectorStoreRetriever"),
                ("pdfFile_0", "qdrant_0", "document"),
            ]
        ),
    ],
    STORE.schemas,
).graph


def test_a_store_is_told_how_long_the_vectors_of_other_embeddings_are() -> None:
    plan = planned("", "Use text-embedding-3-large for the embeddings", graph=STORED)
    assert {value.param: value.value for value in plan.values} == {
        "modelName": "text-embedding-3-large", "qdrantVectorDimension": 3072}  # fmt: skip


def test_top_k_is_said_of_what_is_looked_up_and_not_of_the_model() -> None:
    _, plan = planned_new(
        "RAG bot over our PDF with Qdrant at http://qdrant.heron.example:6333, claude sonnet, top k 6"
    )
    assert [value.node_id for value in plan.values if value.param == "topK"] == ["qdrant_0"]


@pytest.mark.parametrize(
    ("wish", "fields"),
    [
        ("On colle un contrat et je voudrais en JSON : les parties, le préavis (en jours), la loi applicable.",
         ["parties", "preavis", "loi_applicable"]),
        ("coś co z tekstu faktury wyciągnie nr faktury, datę wystawienia, kwotę netto i vat jako json",
         ["nr_faktury", "date_wystawienia", "kwote_netto", "vat"]),
    ],
)  # fmt: skip
def test_a_list_of_fields_is_cut_between_them_alone(wish: str, fields: list[str]) -> None:
    _, plan = planned_new(wish)
    (structure,) = (value.value for value in plan.values if value.param == "jsonStructure")
    assert isinstance(structure, list)
    assert [row["property"] for row in structure if isinstance(row, dict)] == fields


def test_that_only_a_source_counts_stays_in_the_prompt() -> None:
    _, plan = planned_new("Assistant for our shop working from the price list PDF. It must ONLY use the PDF.")
    (prompt,) = (str(value.value) for value in plan.values if value.param == "responsePrompt")
    assert "It must ONLY use the PDF." in prompt


def test_what_varies_in_an_address_may_be_in_capitals() -> None:
    _, plan = planned_new("A bot that calls GET https://track.heron.example/v1/parcels/NUMBER and says where it is")
    values = {value.param: value.value for value in plan.values}
    assert values["requestsGetUrl"] == "https://track.heron.example/v1/parcels/:NUMBER"


@pytest.mark.parametrize(
    "wish",
    [
        "i need a bot for my shop that does what my staff does",
        "vorrei un chatbot per il mio negozio, che risponda bene",
    ],
)
def test_a_bot_of_which_only_the_owner_is_known_is_asked_about(wish: str) -> None:
    intent, _ = planned_new(wish)
    assert intent.questions


def test_what_is_asked_beside_a_tool_is_told_to_the_agent_and_the_kind_is_no_rule() -> None:
    wish = (
        "Let her look this up on the web with Brave Search and tell the source. I guess it has to become an agent. "
        "The prompt stays apart from what the tools need."
    )
    plan = planned(BOATS, wish)
    written = "\n".join(str(one.value) for one in plan.values)
    assert "toolAgent" in {node.node_name for node in plan.nodes}
    assert "Tell the source" in written
    assert "become an agent" not in written
    assert reasons(plan) == {}


@pytest.mark.parametrize("end", ["Thanks a lot, Greet", "Danke, Jonas Weber"])
def test_a_signature_is_no_rule(end: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, f"Always name the tides. {end}")) == told(BOATS, "Always name the tides.")


def test_why_a_name_is_wished_for_is_no_rule() -> None:
    wish = 'Always name the tides :) And please call it "Heron Desk" because nobody understands the old name.'
    plan = planned(BOATS, wish)
    assert plan.new_name == "Heron Desk"
    assert prompt_after(BOATS, plan) == told(BOATS, "Always name the tides")


def test_a_list_within_the_fields_is_one_field() -> None:
    found = find_fields("Return JSON with customer, date and a list of items with product, quantity and unit.")
    assert [one.name for one in found] == ["customer", "date", "list_of_items"]
    assert found[-1].description == "list of items with product, quantity and unit"
    found = find_fields("Campos: cliente, lista de artículos con cantidad, dirección, fecha.")
    assert [one.name for one in found] == ["cliente", "lista_de_articulos", "direccion", "fecha"]


def test_the_form_of_the_fields_is_no_field() -> None:
    found = find_fields("Felder: Betrag, Fälligkeit und Empfänger, am besten als JSON.")
    assert [one.name for one in found] == ["betrag", "falligkeit", "empfanger"]
    assert [one.name for one in find_fields("Pola: miejscowość, środek, najlepiej jako JSON.")] == [
        "miejscowosc", "srodek"]  # fmt: skip
    assert find_fields("Pola: kwota, opłata jako JSON.")[-1].name == "oplata"


def test_a_manual_that_comes_too_leaves_the_one_that_is_there() -> None:
    wish = "add the KX300 manual too, its a pdf (KX300_Manual.pdf), and it should always say which machine it is about"
    plan = of_documents(wish)
    assert [node.node_name for node in plan.nodes if not node.existing] == ["pdfFile"]
    assert not any(value.node_id == "pdfFile_0" for value in plan.values)


def test_what_no_flow_can_do_is_named_in_a_change() -> None:
    plan = planned(BOATS, "Set the temperature to 0.2 and make it watch the camera in the harbour")
    assert [value.param for value in plan.values] == ["temperature"]
    assert any("watch the camera" in quote for quote in reasons(plan))


def test_a_language_that_is_not_read_is_told_to_the_model_and_the_plan_says_so() -> None:
    wish = "Potřebuju překladač pro náš fotbalový klub, jména hráčů a výsledky neměnit, bez paměti."
    states = {(part.state, part.reason) for part in planned_new(wish)[1].parts}
    assert states == {("assumed", say("part_foreign", "en"))}


def test_the_longest_list_holds_the_fields() -> None:
    wish = "I get a lot of CVs. I want to get back full name, email, phone and notice period as JSON."
    assert [one.name for one in find_fields(wish)] == ["full_name", "email", "phone", "notice_period"]
