"""The person's words without a model: kept as they are, added to prompts, and told where they are not understood."""

import pickle
import time
from collections.abc import Mapping

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, Pattern, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.language.text import normalised
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

FROM_NOW_ON = say("prompt_from_now_on", "en")

CHAIN = {"chatOpenAI_0": "chatOpenAI", "bufferMemory_0": "bufferMemory", "conversationChain_0": "conversationChain"}
TAKEN = frozenset({"conversationChain_0.model", "conversationChain_0.memory"})
THEIRS = "You are the support of Contoso. Never promise a refund. Opening hours: 9 to 18."
PROMPT = "conversationChain_0.systemMessagePrompt"


async def planned(
    text: str,
    nodes: NodeStore,
    existing: Mapping[str, str] | None = None,
    answers: tuple[tuple[str, str], ...] = (),
) -> PlanContract:
    rules = DeterministicReasoner()
    first = ClassifyRequest(requirement=text, target="Shop bot" if existing else None, clarifications=answers)
    request = PlanRequest(
        requirement=text,
        clarifications=answers,
        intent=(await rules.classify(first)).value,
        nodes=nodes,
        target="Shop bot" if existing else None,
        credential_types={"openAIApi": 1, "anthropicApi": 1, "serpApi": 1},
        existing=existing or {},
        occupied=TAKEN if existing else frozenset(),
        flow_summary="a flow" if existing else None,
        texts={PROMPT: THEIRS} if existing else {},
    )
    return (await rules.plan(request)).value


def value_of(plan: PlanContract, param: str) -> object:
    return next((value.value for value in plan.values if value.param == param), None)


# --- New flows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        (
            "Build a support bot for a shoe shop in Lyon with Claude and memory. We open at 9 and close at 18, on "
            "Sundays we are closed. Be polite but short. Returns within 30 days only.",
            "A support bot for a shoe shop in Lyon. We open at 9 and close at 18, on Sundays we are closed. Be polite "
            "but short. Returns within 30 days only.",
        ),
        (
            "Ein Bot für eine Tierarztpraxis mit GPT-4o. Notfälle: 0171 555 666. Duzt die Leute.",
            "Ein Bot für eine Tierarztpraxis. Notfälle: 0171 555 666. Duzt die Leute.",
        ),
        (
            "Quiero un asistente para una panadería que responda siempre de usted, con temperatura 0.3",
            "Un asistente para una panadería que responda siempre de usted",
        ),
        ("An OpenAI agent that can do arithmetic and knows today's date", ""),
        (
            "Chatbot without memory that speaks only in rhymes, using gpt-4o",
            "Chatbot without memory that speaks only in rhymes",
        ),
    ],
)
def test_the_prompt_is_the_text_without_structure(text: str, prompt: str, catalogue: NodeStore) -> None:
    reading = read(normalised(text), catalogue)
    assert prompt_of(reading.text, reading.spans) == prompt


async def test_p83_every_stretch_of_the_text_is_a_part_with_what_covers_it(catalogue: NodeStore) -> None:
    text = "A tutor for chemistry with Claude that can calculate, remembers the last 7 messages and never gives up"
    plan = await planned(text, catalogue)
    covered = {part.quote: (part.state, part.nodes + part.values) for part in plan.parts}
    assert {state for state, _ in covered.values()} == {"covered"}
    assert {"chatAnthropic_0", "calculator_0"} <= {*covered["A tutor for chemistry with Claude that can calculate"][1]}
    assert "bufferWindowMemory_0.k" in covered["remembers the last 7 messages and"][1]
    assert covered["never gives up"][1] == ["toolAgent_0.systemMessage"]
    assert "".join(quote.replace(" ", "") for quote in covered) == text.replace(" ", "").replace(",", "")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Post a summary of the news to Slack every morning at 8", ["to Slack"]),
        ("A chatbot that reads invoices and saves them to a Google sheet", ["Google sheet"]),
        ("Chatbot with GPT-4o that calls our API to look up orders", ["calls our API"]),
        ("A bot for WhatsApp that answers politely", ["for WhatsApp"]),
        ("A bot which writes appointments into Calendly", ["Calendly"]),
        ("Translate to German with DeepL", ["with DeepL"]),
        ("Ein Chatbot, der jeden Morgen die Wetterlage an Telegram schickt", ["jeden Morgen"]),
    ],
)
async def test_p83_what_names_structure_and_is_not_understood_is_declined_by_name(
    text: str, parts: list[str], catalogue: NodeStore
) -> None:
    plan = await planned(text, catalogue)
    assert plan.declined
    assert plan.nodes == []
    assert all(part in plan.declined for part in parts), plan.declined


async def test_sources_of_any_number_have_a_loader_each(catalogue: NodeStore) -> None:
    plan = await planned(
        "A bot that answers from a PDF and from https://a.example/faq and https://b.example", catalogue
    )
    names = [node.node_name for node in plan.nodes]
    assert (names.count("pdfFile"), names.count("cheerioWebScraper")) == (1, 2)
    assert [value.value for value in plan.values if value.param == "url"] == [
        "https://a.example/faq",
        "https://b.example",
    ]


async def test_each_document_that_is_named_is_tested(catalogue: NodeStore) -> None:
    plan = await planned("Answer questions about our handbook and our price list, both pasted", catalogue)
    assert [node.node_name for node in plan.nodes].count("plainText") == 2
    assert plan.test_questions == ["What does the handbook say?", "What does the price list say?"]


async def test_a_memory_is_tested_over_two_turns(catalogue: NodeStore) -> None:
    plan = await planned("A chatbot for a hotel with memory", catalogue)
    assert [len(test.turns) for test in plan.tests] == [1, 2]
    assert "hotel" in plan.tests[0].turns[0]


async def test_every_field_that_is_named_is_in_the_answer(catalogue: NodeStore) -> None:
    text = "Extract order number (string), amount (number) and urgent (yes/no) from support emails as JSON"
    rows = value_of(await planned(text, catalogue), "jsonStructure")
    assert isinstance(rows, list)
    assert [row["property"] for row in rows if isinstance(row, dict)] == ["order_number", "amount", "urgent"]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("A support bot with Llama 3.1 via Ollama", "llama3.1"),
        ("A support bot using Llama 3.1 8B on Ollama", "llama3.1:8b"),
        ("A support bot with llama3.1:8b on Ollama", "llama3.1:8b"),
        ("A support bot with Mistral on Ollama", "mistral"),
        ("A support bot with Llama on Ollama", "llama3.2"),
    ],
)
async def test_a_model_on_ollama_has_its_name_there(text: str, model: str, catalogue: NodeStore) -> None:
    plan = await planned(text, catalogue)
    assert plan.declined is None
    assert "chatOllama" in {node.node_name for node in plan.nodes}
    assert value_of(plan, "modelName") == model


async def test_a_model_family_is_taken_at_its_word(catalogue: NodeStore) -> None:
    plan = await planned("Chatbot for a florist with Claude Sonnet", catalogue)
    assert "sonnet" in str(value_of(plan, "modelName"))


async def test_answers_are_used_for_what_was_asked(catalogue: NodeStore) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement="make me a bot"))).value
    said = "recipes for students; it calculates portions"
    plan = await planned("make me a bot", catalogue, answers=((intent.questions[0], said),))
    assert value_of(plan, "systemMessage") is not None
    assert str(value_of(plan, "systemMessage")).splitlines()[-1] == said
    assert "calculator" in {node.node_name for node in plan.nodes}


# --- Changes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ("tell the agent to answer in French", "Answer in French"),
        ("Make it answer like a pirate, change nothing else", "Answer like a pirate"),
        ("It should always end with a joke", "Always end with a joke"),
        ("Never mention prices", "Never mention prices"),
        ("If someone asks for a refund, say no", "If someone asks for a refund, say no"),
        (
            "Please answer in the language of the user, and if you don't know, say so",
            "Answer in the language of the user, and if you don't know, say so",
        ),
        ("make it friendlier", "Make it friendlier"),
        ('Add "Be brief" to the system prompt', "Be brief"),
        (
            "Always mention that we ship to Canada and use emojis",
            "Always mention that we ship to Canada and use emojis",
        ),
        ("Er soll auf Englisch antworten", "Auf Englisch antworten"),
        ("Haz que responda de usted", "Responda de usted"),
    ],
)
async def test_p84_a_way_to_behave_is_added_to_the_prompt(wish: str, line: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue, CHAIN)
    assert plan.declined is None
    (value,) = plan.values
    assert (f"{value.node_id}.{value.param}", value.mode, value.value) == (PROMPT, "append", f"{FROM_NOW_ON}\n- {line}")
    assert plan.removals == []


async def test_p84_only_an_explicit_wish_replaces_the_prompt(catalogue: NodeStore) -> None:
    (value,) = (await planned('Replace the system prompt by "You are Bob."', catalogue, CHAIN)).values
    assert (value.mode, value.value) == ("set", "You are Bob.")


async def test_settings_and_behaviour_of_one_wish_are_both_kept(catalogue: NodeStore) -> None:
    plan = await planned("Set the temperature to 0.2 and answer only in Italian", catalogue, CHAIN)
    assert [(value.param, value.mode, value.value) for value in plan.values] == [
        ("temperature", "set", 0.2),
        ("systemMessagePrompt", "append", f"{FROM_NOW_ON}\n- Answer only in Italian"),
    ]


@pytest.mark.parametrize(
    "wish",
    [
        "Set the temperature to 0.2 and connect the frobnicator",
        "Add a calculator and send me an e-mail when it is used",
    ],
)
async def test_p83_no_part_of_a_change_is_dropped_in_silence(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue, CHAIN)
    assert plan.declined is None
    assert "from now on" not in str(plan.values).casefold()
    assert [part.quote in wish and part.state for part in plan.not_done] == ["not_understood"]


async def test_a_change_of_which_nothing_is_understood_is_declined(catalogue: NodeStore) -> None:
    plan = await planned("Remove the frobnicator node", catalogue, CHAIN)
    assert "«Remove the frobnicator node»" in (plan.declined or "")
    assert plan.values == []


@pytest.mark.parametrize(
    ("text", "temperature", "model"),
    [
        ("A youth club bot, 4o mini, temperature .7. Entry is free.", 0.7, "gpt-4o-mini"),
        ("A calm tutor on gpt-4o, temperature zero", 0, "gpt-4o"),
        ("丁寧な言葉で答えるボット。モデルはgpt-4oで、温度0.2。", 0.2, "gpt-4o"),
    ],
    ids=["short", "in words", "Japanese"],
)
async def test_models_and_numbers_are_read_as_people_write_them(
    text: str, temperature: float, model: str, catalogue: NodeStore
) -> None:
    plan = await planned(text, catalogue)
    assert (value_of(plan, "temperature"), value_of(plan, "modelName")) == (temperature, model)


@pytest.mark.parametrize(
    "text",
    [
        "問い合わせを「緊急」と「通常」に分けるエージェントフローを作って。",
        "A bot for our shop, temperature quite low please",
        "中古車の広告文を貼ると、車種と価格をJSONで返すフローが欲しい。",
    ],
    ids=["agents in Japanese", "setting", "output in Japanese"],
)
async def test_p83_structure_that_is_not_read_is_declined_and_no_part_of_a_prompt(
    text: str, catalogue: NodeStore
) -> None:
    assert (await planned(text, catalogue)).declined


@pytest.mark.parametrize(
    "wish",
    [
        "stop with the emojis and the Yay thing",
        "no more than two sentences, people fall asleep",
        "el curso de iniciación sube a 205 euros, cámbialo",
        "季節の挨拶はもういりません。",
    ],
    ids=["stop", "limit", "price", "Japanese"],
)
async def test_a_wish_that_speaks_of_no_part_is_added_in_the_persons_words(wish: str, catalogue: NodeStore) -> None:
    (value,) = (await planned(wish, catalogue, CHAIN)).values
    assert value.mode == "append"
    assert str(value.value).casefold() == f"{FROM_NOW_ON}\n- {wish}".casefold()


async def test_p83_a_complaint_beside_a_wish_for_words_is_no_rule(catalogue: NodeStore) -> None:
    plan = await planned("It rambles on. Be shorter, three sentences max", catalogue, CHAIN)
    assert [value.value for value in plan.values] == [f"{FROM_NOW_ON}\n- Be shorter, three sentences max"]
    assert plan.not_done == []


async def test_who_speaks_stays_in_the_prompt_where_it_asks_for_nothing(catalogue: NodeStore) -> None:
    plan = await planned("I repair violins and cellos. I need a bot for my site: rehair is $75.", catalogue)
    assert value_of(plan, "systemMessagePrompt") == ("I repair violins and cellos. A bot for my site: rehair is $75.")


async def test_the_number_of_documents_is_no_number_of_messages(catalogue: NodeStore) -> None:
    plan = await planned("top k to 8", catalogue, {**CHAIN, "memoryVectorStore_0": "memoryVectorStore"})
    assert [(value.node_id, value.param, value.value) for value in plan.values] == [("memoryVectorStore_0", "topK", 8)]
    assert plan.removals == []


@pytest.mark.parametrize(
    "wish",
    [
        "hmm, not quite",
        "can you put a filter in front so abusive stuff gets blocked",
        "togli il browser web, tira fuori roba vecchia",
    ],
)
async def test_a_wish_about_a_part_is_never_told_to_the_model(wish: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue, CHAIN)).declined


async def test_what_can_go_is_said_behind_it_too(catalogue: NodeStore) -> None:
    plan = await planned("Bitte das Gedächtnis ganz rausnehmen wegen Datenschutz", catalogue, CHAIN)
    assert "bufferMemory_0" in plan.removals


async def test_what_is_named_takes_the_place_of_its_kind(catalogue: NodeStore) -> None:
    agent = {"serpAPI_0": "serpAPI", "chatOpenAI_0": "chatOpenAI", "toolAgent_0": "toolAgent"}
    plan = await planned("Replace the web search by Brave", catalogue, agent)
    assert plan.removals == ["serpAPI_0"]
    assert "braveSearchAPI" in {node.node_name for node in plan.nodes}


@pytest.mark.parametrize(
    "wish", ["Entferne die Websuche aus diesem Agenten", "Remove the web search from this agent, but keep the prompt"]
)
async def test_the_flow_that_a_removal_names_is_understood(wish: str, catalogue: NodeStore) -> None:
    agent = {"serpAPI_0": "serpAPI", "calculator_0": "calculator", "chatOpenAI_0": "chatOpenAI"}
    plan = await planned(wish, catalogue, {**agent, "toolAgent_0": "toolAgent"})
    assert (plan.declined, plan.removals) == (None, ["serpAPI_0"])


async def test_a_copy_keeps_its_name_and_what_is_to_be_different(catalogue: NodeStore) -> None:
    plan = await planned("Copy it as Shop bot 2 and make the copy answer in French", catalogue, CHAIN)
    assert (plan.operation, plan.flow_name) == ("copy", "Shop bot 2")
    assert [value.value for value in plan.values] == [f"{FROM_NOW_ON}\n- Answer in French"]


# --- Steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (
            "Sorts messages into billing and technical, a billing agent and a technical agent answer, and asks a "
            "person to approve before any refund",
            "asks a person to approve before any refund",
        ),
        ("If the customer is angry, escalate to a human", "escalate to"),
        (
            "An agentflow: write a poem, then improve it until it has 5 rhymes, at most 3 times",
            "at most 3 times",
        ),
        ("An agentflow that frobnicates", "An agentflow that frobnicates"),
    ],
)
async def test_p83_a_step_is_declined_by_its_clause(text: str, clause: str, catalogue: NodeStore) -> None:
    assert f"«{clause}»" in str((await planned(text, catalogue)).declined)


async def test_a_pattern_that_is_the_whole_flow_gives_ops_all_the_same(catalogue: NodeStore) -> None:
    rules, text = DeterministicReasoner(), "An agent with a calculator using OpenAI"
    made = await planned(text, catalogue)
    nodes = {node.node_id: node.node_name for node in made.nodes}
    intent = (await rules.classify(ClassifyRequest(requirement=text))).value
    pattern = Pattern(requirement=text, summary="", nodes=nodes)
    request = PlanRequest(requirement=text, intent=intent, nodes=catalogue, pattern=pattern)
    plan = (await rules.plan(request)).value
    assert all(node.existing for node in plan.nodes)
    seed = tuple(AddNode(node_id=node_id, node_name=name) for node_id, name in nodes.items())
    taken = frozenset({"toolAgent_0.model", "toolAgent_0.memory", "toolAgent_0.tools"})
    patch = PatchRequest(requirement=text, plan=plan, nodes=catalogue, existing=nodes, occupied=taken, seed=seed)
    answer = (await rules.patch(patch)).value
    assert answer.kind == "ops"
    assert answer.ops


# --- The engine itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["temp" + " " * 30_000, "a, " * 10_000, "and " * 8_000, "use " * 8_000, "not to " * 5_000]
)
async def test_p86_no_text_takes_long(text: str, catalogue: NodeStore) -> None:
    for existing in (None, CHAIN):
        start = time.process_time()
        await planned(text, catalogue, existing)
        assert time.process_time() - start < 5


async def test_a_plan_can_be_handed_to_another_process(catalogue: NodeStore) -> None:
    plan = await planned("A chatbot for a hotel with memory", catalogue)
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own bytes
