"""What people ask for in words of their own: settings as who knows Flowise types them, and rules that stay whole."""

from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import PlanContract
from flowise_dev_agent.reasoning.phrases import say
from tests.unit.reasoning.test_rules_flows_there import DOCUMENTS
from tests.unit.reasoning.test_rules_properties import planned as classified
from tests.unit.reasoning.test_rules_rewording import BOATS, STORE, flow, planned, prompt_after


def new(wish: str) -> PlanContract:
    return classified(wish)[1]


def values(plan: PlanContract) -> dict[str, Any]:
    return {value.param: value.value for value in plan.values}


def types(plan: PlanContract) -> list[str]:
    return [node.node_name for node in plan.nodes]


# --- Settings of new flows


def test_a_folder_with_files_is_one_loader_and_its_path_is_used() -> None:
    plan = new("RAG chatflow over our rules: folder with PDFs at /data/rules, recursive splitter, 900 / 90, Qdrant")
    assert "folderFiles" in types(plan)
    assert "pdfFile" not in types(plan)
    assert values(plan) | {"folderPath": "/data/rules", "chunkSize": 900, "chunkOverlap": 90} == values(plan)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("Cheerio scraper on https://docs.heron.example, crawl links, max 45", 45),
        ("the site https://docs.heron.example (about 30 pages)", 30),
        ("https://docs.heron.example/tides, not the whole site", 1),
    ],
)
def test_how_many_pages_are_read_is_what_is_said(said: str, limit: int) -> None:
    assert values(new(f"A chatbot that answers from {said}."))["limit"] == limit


def test_the_number_of_the_next_item_is_no_value() -> None:
    plan = planned("", "1. chunk size 600, overlap 70\n2. top k 6", graph=DOCUMENTS)
    assert (values(plan)["chunkOverlap"], values(plan)["topK"]) == (70, 6)


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("ChatAnthropic (a Sonnet model)", "claude-sonnet-4-6"),
        ("Anthropic, Opus", "claude-opus-4-7"),
        ("OpenAI gpt-4o; write them a haiku", "gpt-4o"),
    ],
)
def test_a_tier_beside_its_house_is_a_model(said: str, model: str) -> None:
    assert values(new(f"A chatbot for our riders, with {said}."))["modelName"] == model


def test_an_agent_with_a_tool_that_a_tool_agent_does_not_take_is_built_of_one_step() -> None:
    plan = new(
        "Tool Agent on gpt-4o, temp 0, with Tavily and a calculator, that compares prices of oars. Window memory 6."
    )
    assert (plan.declined, plan.not_done, types(plan)) == (None, [], ["startAgentflow", "agentAgentflow"])
    tools = [row["agentSelectedTool"] for row in values(plan)["agentTools"]]
    assert tools == ["calculator", "tavilyAPI"]
    assert (
        values(plan)["agentModelConfig"] | {"modelName": "gpt-4o", "temperature": 0} == values(plan)["agentModelConfig"]
    )
    assert values(plan)["agentMemoryWindowSize"] == 6
    assert "compares prices of oars" in str(values(plan)["agentMessages"])


def test_an_api_that_is_asked_for_is_a_tool_and_no_page() -> None:
    plan = new("Queremos un asistente que mire el viento con una petición a https://api.mar.example/v1/viento y avise.")
    assert values(plan)["requestsGetUrl"] == "https://api.mar.example/v1/viento"
    assert "cheerioWebScraper" not in types(plan)


def test_a_text_that_follows_is_no_text_to_come() -> None:
    facts = "Sai às 7h00, 10h00 e 15h00, todos os dias.\nAdultos 9 euros, crianças 4,50 euros, cães grátis."
    plan = new(f"Um chatbot para a nossa balsa. Vou colar aqui o que ele tem de saber:\n{facts}")
    assert "plainText" not in types(plan)
    assert "crianças 4,50 euros" in values(plan)["systemMessagePrompt"]


def test_what_a_person_has_to_know_first_asks_for_no_clock() -> None:
    plan = new("Un asistente para los huéspedes. Tiene que saber esto:\n- entrada de 16 a 21 h\n- no hay ascensor")
    assert "currentDateTime" not in types(plan)


@pytest.mark.parametrize(
    "wish",
    [
        "An assistant where each guest's past chats are remembered next time, but nothing a guest types may be stored.",
        "A chat that greets guests by name when they come back. Nothing about guests may be saved anywhere.",
    ],
)
def test_a_memory_that_is_wanted_and_not_is_asked_about(wish: str) -> None:
    assert (new(wish).declined or "").endswith("Which of the two do you want?")


def test_what_says_twice_that_nothing_is_remembered_is_no_contradiction() -> None:
    plan = new("Un bot pour mes annonces. Pas besoin de se souvenir des annonces d'avant, chaque bien est indépendant.")
    assert plan.declined is None
    assert "bufferMemory" not in types(plan)


def test_a_sentence_with_a_date_is_one() -> None:
    said = "Im August haben wir vom 10. bis 21. Büro und Laden zu, das soll sie auch sagen."
    assert prompt_after(BOATS, planned(BOATS, said)).endswith(f"- {said}")


# --- Rules that stay whole


@pytest.mark.parametrize(
    "sentence",
    [
        "Part numbers and error codes are to stay as they are in the manual, and answers have at most 7 steps.",
        "Ada has left, it's Bo Lund now, and the desk number is 053 555 0199.",
        "Odpowiadaj najwyżej siedmioma zdaniami, ale numery części i kody błędów bez zmian.",
    ],
)
def test_a_rule_is_told_with_all_that_belongs_to_it(sentence: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, sentence)).endswith(f"- {sentence}")


def test_for_what_alone_a_tool_is_is_told_with_it() -> None:
    said = "People ask about the tides, so give it a web search, but only for the tides, never for prices."
    plan = planned("", said, graph=AGENT)
    assert f"- {said}" in str(values(plan)["systemMessage"])
    assert "serpAPI" in types(plan)


def test_what_is_called_a_rule_is_told_whatever_part_it_names() -> None:
    plan = planned(
        "", "Take the calculator out. And a rule that it works out no sums and sends people to Mia.", graph=AGENT
    )
    assert "sends people to Mia" in str(values(plan)["systemMessage"])
    assert plan.removals == ["calculator_0"]


# --- Changes


def test_make_them_a_copy_is_one() -> None:
    wish = (
        'Our friends in Youghal want the same, so please make them a copy called "Youghal desk" and leave ours alone.'
    )
    intent, _ = classified(wish, **AT_DESK)
    assert intent.operation == "copy"


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ('prosze zmienic nazwe na "Port Cobh"', "Port Cobh"),
        ('- Name bitte "Hafen Cobh"\n- nie über Rabatte reden', "Hafen Cobh"),
        ('nazwa ma być "Port Cobh"', "Port Cobh"),
    ],
)
def test_a_name_is_given_in_many_ways(wish: str, name: str) -> None:
    assert planned(BOATS, wish).new_name == name


def test_one_more_page_leaves_the_page_that_is_there() -> None:
    there = compile_ops(
        DOCUMENTS,
        [AddNode(node_name="cheerioWebScraper", node_id="page_0", params={"url": "https://heron.example/faq"})],
        STORE.schemas,
    ).graph
    plan = planned(
        "", "Please also let it read our new page https://heron.example/menu, the menu is there", graph=there
    )
    pages = {value.node_id: value.value for value in plan.values if value.param == "url"}
    assert [*pages.values()] == ["https://heron.example/menu"]
    assert not {*pages} & {node.id for node in there.nodes}


@pytest.mark.parametrize("wish", ["Window memory from 8 down to 4.", "temp 0.1, memory window 8 -> 4"])
def test_a_window_gets_another_size(wish: str) -> None:
    ops = [AddNode(node_name="bufferWindowMemory", node_id="window_0", params={"k": 8})]
    assert values(planned("", wish, graph=compile_ops(DOCUMENTS, ops, STORE.schemas).graph))["k"] == 4


def test_a_prompt_that_stays_in_its_language_still_takes_rules() -> None:
    plan = planned(BOATS, "Never mention ferries. Please keep the prompt in English.")
    assert "Never mention ferries." in prompt_after(BOATS, plan)


def test_what_forbids_something_is_no_remark() -> None:
    plan = planned(BOATS, "Hunde dürfen mit auf die Fähre. In die Burg dürfen sie nicht.")
    assert "In die Burg dürfen sie nicht." in prompt_after(BOATS, plan)


def test_the_plan_of_a_copy_says_how_its_prompt_begins() -> None:
    _, plan = classified('Make a copy called "Two" for Youghal, phone 024 555 0100.', **AT_DESK)
    assert say("step_copy_begins", "en", quote="You answer for Heron Boats in Cobh.") in plan.steps


GRAPH: GraphIR = flow(BOATS)
AGENT = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="calculator", node_id="calculator_0"),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": BOATS}),
        *(Connect(source_node_id=f"{one}_0", target_node_id="toolAgent_0", target_anchor=anchor)
          for one, anchor in (("chatOpenAI", "model"), ("bufferMemory", "memory"), ("calculator", "tools"))),
    ],
    STORE.schemas,
).graph  # fmt: skip
AT_DESK: dict[str, Any] = {
    "base": GRAPH,
    "existing": {node.id: node.name for node in GRAPH.nodes},
    "target": "Front desk",
    "flow_summary": "a flow",
    "labels": {node.id: node.label for node in GRAPH.nodes},
    "texts": {"conversationChain_0.systemMessagePrompt": BOATS},
}
