"""Requirements as people write them become flows that compile and validate, without any model."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, BindCredential, GraphIR, PatchOp, compile_ops, errors, validate_flow
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1, "serpApi": 1}


async def classify(text: str, answers: Sequence[tuple[str, str]] = ()) -> Intent:
    request = ClassifyRequest(requirement=text, clarifications=tuple(answers))
    return (await DeterministicReasoner().classify(request)).value


async def plan(
    text: str, nodes: NodeStore, *, available: Mapping[str, int] = CREDENTIALS, answers: Sequence[tuple[str, str]] = ()
) -> PlanContract:
    request = PlanRequest(
        requirement=text,
        clarifications=tuple(answers),
        intent=await classify(text, answers),
        nodes=nodes,
        credential_types=available,
    )
    return (await DeterministicReasoner().plan(request)).value


async def write(text: str, contract: PlanContract, nodes: NodeStore) -> list[PatchOp]:
    return (await DeterministicReasoner().patch(PatchRequest(requirement=text, plan=contract, nodes=nodes))).value.ops


def params_of(ops: Sequence[PatchOp]) -> dict[str, Any]:
    return {
        f"{op.node_name}.{name}": value for op in ops if isinstance(op, AddNode) for name, value in op.params.items()
    }


CASES: list[tuple[str, set[str], dict[str, Any]]] = [
    # Chat
    (
        "I need a helpdesk assistant for our employees that remembers the whole conversation, "
        "use Claude Sonnet 4.5 at temperature 0.3",
        {"chatAnthropic", "bufferMemory", "conversationChain"},
        {"chatAnthropic.modelName": "claude-sonnet-4-5", "chatAnthropic.temperature": 0.3},
    ),
    (
        "A pirate chatbot on gpt-4.1-mini with max tokens 300, no streaming",
        {"chatOpenAI", "bufferMemory", "conversationChain"},
        {"chatOpenAI.modelName": "gpt-4.1-mini", "chatOpenAI.maxTokens": 300, "chatOpenAI.streaming": False},
    ),
    (
        "Make a chatbot with conversation summary memory on Gemini 2.5 Pro",
        {"chatGoogleGenerativeAI", "conversationSummaryMemory", "conversationChain"},
        {"chatGoogleGenerativeAI.modelName": "gemini-2.5-pro"},
    ),
    (
        "Travel advisor with Groq that keeps the last seven messages",
        {"groqChat", "bufferWindowMemory", "conversationChain"},
        {"bufferWindowMemory.k": 7, "groqChat.modelName": "llama-3.3-70b-versatile"},
    ),
    ("Chatbot without memory using gpt-4o", {"chatOpenAI", "llmChain", "promptTemplate"}, {}),
    # Agents with tools
    (
        "Support agent for a travel agency with web search, calculator and today's date, remembers the last 5 "
        "messages, max 4 iterations",
        {"toolAgent", "chatOpenAI", "bufferWindowMemory", "calculator", "currentDateTime", "serpAPI"},
        {"bufferWindowMemory.k": 5, "toolAgent.maxIterations": 4},
    ),
    (
        "An Anthropic agent with Wolfram Alpha",
        {"toolAgent", "chatAnthropic", "bufferMemory", "wolframAlpha"},
        {},
    ),
    ("An agent that can browse the web, but no calculator", {"toolAgent", "chatOpenAI", "bufferMemory", "serpAPI"}, {}),
    # Answers from texts
    (
        "Knowledge base bot over our FAQ, keep the vectors in memory, embeddings from OpenAI, chat model Claude "
        "Haiku 4.5, return the top 3 documents",
        {
            "conversationalRetrievalQAChain",
            "chatAnthropic",
            "memoryVectorStore",
            "openAIEmbeddings",
            "plainText",
            "recursiveCharacterTextSplitter",
        },
        {"chatAnthropic.modelName": "claude-haiku-4-5", "memoryVectorStore.topK": 3},
    ),
    (
        "RAG over https://example.com/docs, chunk size 1,000, overlap of 100, cite the sources",
        {
            "conversationalRetrievalQAChain",
            "chatOpenAI",
            "memoryVectorStore",
            "openAIEmbeddings",
            "cheerioWebScraper",
            "recursiveCharacterTextSplitter",
        },
        {
            "cheerioWebScraper.url": "https://example.com/docs",
            "recursiveCharacterTextSplitter.chunkSize": 1000,
            "recursiveCharacterTextSplitter.chunkOverlap": 100,
            "conversationalRetrievalQAChain.returnSourceDocuments": True,
        },
    ),
    (
        'An agent which answers from this text: "We are open from nine to five on weekdays. Parking is free for all '
        'of our guests." It can calculate, too.',
        {
            "toolAgent",
            "chatOpenAI",
            "bufferMemory",
            "calculator",
            "retrieverTool",
            "memoryVectorStore",
            "openAIEmbeddings",
            "plainText",
            "recursiveCharacterTextSplitter",
        },
        {"plainText.text": "We are open from nine to five on weekdays. Parking is free for all of our guests."},
    ),
    # One text in, one text out
    (
        "Summarise customer emails into three bullet points with gpt-4o-mini, temperature 0",
        {"llmChain", "chatOpenAI", "promptTemplate"},
        {"chatOpenAI.temperature": 0},
    ),
    (
        "Read an invoice and return JSON with the invoice number, the total amount and whether it is paid",
        {"llmChain", "chatOpenAI", "promptTemplate", "structuredOutputParser"},
        {
            "structuredOutputParser.jsonStructure": [
                {"property": "invoice_number", "type": "string", "description": "invoice number"},
                {"property": "total_amount", "type": "number", "description": "total amount"},
                {"property": "whether_it_is_paid", "type": "boolean", "description": "whether it is paid"},
            ]
        },
    ),
    # Guards
    (
        'Chatbot that blocks messages mentioning "politics", "religion" or "gambling"',
        {"conversationChain", "chatOpenAI", "bufferMemory", "inputModerationSimple"},
        {"inputModerationSimple.denyList": "politics\nreligion\ngambling"},
    ),
    (
        "A chatbot for kids with OpenAI moderation",
        {"conversationChain", "chatOpenAI", "bufferMemory", "inputModerationOpenAI"},
        {},
    ),
    # Nodes by name
    (
        "Use the node chatMistralAI and a conversationChain with window memory of 6 messages",
        {"conversationChain", "chatMistralAI", "bufferWindowMemory"},
        {"bufferWindowMemory.k": 6},
    ),
    # Other languages
    (
        "Baue einen freundlichen Kundenservice-Chatbot mit GPT-4o-mini, der sich die letzten 6 Nachrichten merkt",
        {"conversationChain", "chatOpenAI", "bufferWindowMemory"},
        {"chatOpenAI.modelName": "gpt-4o-mini", "bufferWindowMemory.k": 6},
    ),
    (
        "Ein Chatbot, der Fragen zu unserem Handbuch beantwortet. Den Text füge ich später ein. Abschnitte von 800 "
        "Zeichen mit 80 Überlappung.",
        {
            "conversationalRetrievalQAChain",
            "chatOpenAI",
            "memoryVectorStore",
            "openAIEmbeddings",
            "plainText",
            "recursiveCharacterTextSplitter",
        },
        {"recursiveCharacterTextSplitter.chunkSize": 800, "recursiveCharacterTextSplitter.chunkOverlap": 80},
    ),
    (
        "Eine Kette, die Texte ins Englische übersetzt. Kein Gedächtnis nötig.",
        {"llmChain", "chatOpenAI", "promptTemplate"},
        {},
    ),
    (
        "Quiero un agente con Claude que pueda hacer cálculos y recuerde los últimos 4 mensajes",
        {"toolAgent", "chatAnthropic", "bufferWindowMemory", "calculator"},
        {"bufferWindowMemory.k": 4},
    ),
    (
        "Crée un assistant de voyage avec GPT-4o qui connaît la date du jour et se souvient des 5 derniers messages",
        {"toolAgent", "chatOpenAI", "bufferWindowMemory", "currentDateTime"},
        {"bufferWindowMemory.k": 5, "chatOpenAI.modelName": "gpt-4o"},
    ),
    (
        "Crie um chatbot de suporte com GPT-4o e memória das últimas 8 mensagens",
        {"conversationChain", "chatOpenAI", "bufferWindowMemory"},
        {"bufferWindowMemory.k": 8},
    ),
    # An address that only the person knows is a stand-in, and no mistake.
    (
        "Bot odpowiadający z naszego Confluence dla działu kadr, limit 500 tokenów",
        {"conversationalRetrievalQAChain", "chatOpenAI", "memoryVectorStore", "openAIEmbeddings",
         "recursiveCharacterTextSplitter", "confluence"},
        {"chatOpenAI.maxTokens": 500},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "nodes", "params"), CASES, ids=[case[0][:40] for case in CASES])
async def test_requirement_becomes_a_valid_flow(
    text: str, nodes: set[str], params: dict[str, Any], catalogue: NodeStore
) -> None:
    contract = await plan(text, catalogue)
    assert contract.declined is None
    assert {node.node_name for node in contract.nodes} == nodes
    ops = await write(text, contract, catalogue)
    assert params.items() <= params_of(ops).items()
    chosen = dict.fromkeys(contract.credential_requirements, DUMMY)
    flow = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen).flow_data
    assert errors(validate_flow(flow, schemas=catalogue.schemas, credentials=None)) == []


async def test_the_same_requirement_gives_the_same_plan_and_ops(catalogue: NodeStore) -> None:
    text = "A history teacher with Claude that explains things in simple words and remembers the last 3 messages"
    first, second = await asyncio.gather(plan(text, catalogue), plan(text, catalogue))
    assert first == second
    assert await write(text, first, catalogue) == await write(text, second, catalogue)


async def test_the_words_of_the_person_become_the_system_prompt(catalogue: NodeStore) -> None:
    text = "A bot for my bakery that answers politely and takes orders. Never give discounts."
    ops = await write(text, await plan(text, catalogue), catalogue)
    prompt = params_of(ops)["conversationChain.systemMessagePrompt"]
    assert prompt == "A bot for my bakery that answers politely and takes orders. Never give discounts."


async def test_given_system_prompt_is_taken_word_for_word(catalogue: NodeStore) -> None:
    text = 'A chatbot with the system prompt "You are Ada, a stern librarian. Answer in one sentence." and memory'
    ops = await write(text, await plan(text, catalogue), catalogue)
    assert params_of(ops)["conversationChain.systemMessagePrompt"] == (
        "You are Ada, a stern librarian. Answer in one sentence."
    )


async def test_promised_text_becomes_a_marked_placeholder(catalogue: NodeStore) -> None:
    text = "Chatbot that answers questions about our travel policy. I will paste the text later."
    contract = await plan(text, catalogue)
    assert len(contract.placeholders) == 1
    assert contract.placeholders[0].startswith("[PLACEHOLDER")
    assert "travel policy" in contract.placeholders[0]
    assert params_of(await write(text, contract, catalogue))["plainText.text"] == contract.placeholders[0]
    assert contract.test_questions == ["What does the travel policy say?"]


async def test_words_inside_a_pasted_text_are_not_wishes(catalogue: NodeStore) -> None:
    text = 'Answer questions about this text: """Our calculator ships with Claude and a web search of 9 messages."""'
    contract = await plan(text, catalogue)
    assert {"calculator", "chatAnthropic", "serpAPI"}.isdisjoint(node.node_name for node in contract.nodes)


async def test_long_text_under_the_wish_is_the_document(catalogue: NodeStore) -> None:
    document = "Employees may use the calculator. Memory sticks are forbidden. " * 20
    text = f"Build a chatbot that answers questions about our IT policy:\n\n{document}"
    contract = await plan(text, catalogue)
    assert "calculator" not in {node.node_name for node in contract.nodes}
    assert params_of(await write(text, contract, catalogue))["plainText.text"] == document.strip()


@pytest.mark.parametrize(
    "piece", ["no chat ", "claude-3-", "a-b-", '"', "aBcD", "write a-a-a ", "1,000 ", 'node "', "\n"]
)
async def test_no_text_holds_up_the_event_loop(piece: str, catalogue: NodeStore) -> None:
    text = (piece * 32_000)[:32_000]
    start = time.process_time()
    await plan(text, catalogue)
    assert time.process_time() - start < 5


async def test_provider_with_a_credential_is_taken_when_none_is_named(catalogue: NodeStore) -> None:
    contract = await plan("A cooking assistant with memory", catalogue, available={"anthropicApi": 1})
    assert "chatAnthropic" in {node.node_name for node in contract.nodes}
    assert contract.credential_requirements == ["anthropicApi"]


async def test_search_tool_follows_the_credential_that_is_there(catalogue: NodeStore) -> None:
    contract = await plan("An agent with web search", catalogue, available={"openAIApi": 1, "braveSearchApi": 1})
    assert "braveSearchAPI" in {node.node_name for node in contract.nodes}


async def test_credential_ids_are_left_to_code(catalogue: NodeStore) -> None:
    text = "An agent with web search and a calculator"
    ops = await write(text, await plan(text, catalogue), catalogue)
    assert [op for op in ops if isinstance(op, BindCredential)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Build a chatflow with the node "quantumTeleporter" that predicts lottery numbers', "quantumTeleporter"),
        ("Use the chatOpenAIx node in a chatbot", "chatOpenAI"),
        ("A supervisor with workers, multi-agent please", "«A supervisor with workers»"),
        ("do something nice with stuff", "for whom, and from which information"),
        ("An AgentFlow that answers from our handbook (pasted text)", "step by step"),
        ('Nimm den Knoten "quantenTeleporter" für meinen Chatbot', "gibt es keinen Knoten „quantenTeleporter“"),
    ],
)
async def test_what_cannot_be_built_is_declined_with_the_reason(text: str, said: str, catalogue: NodeStore) -> None:
    contract = await plan(text, catalogue)
    assert contract.declined is not None
    assert said in contract.declined
    assert contract.nodes == []


async def test_index_named_in_the_text_is_filled_in(catalogue: NodeStore) -> None:
    text = 'A RAG chatbot with Pinecone, index "products"'
    ops = await write(text, await plan(text, catalogue), catalogue)
    assert params_of(ops)["pinecone.pineconeIndex"] == "products"


@pytest.mark.parametrize("text", ["make me a bot", "a chatbot", "Build me an AI", "I want a simple agent", "Ein Bot"])
async def test_vague_requirement_asks(text: str) -> None:
    intent = await classify(text)
    assert intent.ambiguity >= 5
    assert len(intent.questions) == 1


@pytest.mark.parametrize("text", [case[0] for case in CASES])
async def test_clear_requirement_does_not_ask(text: str) -> None:
    intent = await classify(text)
    assert (intent.operation, intent.questions) == ("create", [])
    assert intent.ambiguity < 5


async def test_answers_to_the_questions_shape_the_flow(catalogue: NodeStore) -> None:
    vague = "What should it answer or do, for whom, and from which information?"
    answers = [(vague, "recipes for students"), ("Anything else?", "calculate, too")]
    assert (await classify("make me a bot", answers)).ambiguity < 5
    contract = await plan("make me a bot", catalogue, answers=answers)
    assert "calculator" in {node.node_name for node in contract.nodes}


async def test_questions_come_in_the_language_of_the_person() -> None:
    intent = await classify("Ich möchte einen Bot")
    assert intent.language == "de"
    assert intent.questions[0] == "Was soll er beantworten oder tun, für wen, und aus welchen Informationen?"


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("Switch the model of this chatflow to gpt-4o", "update"),
        ("Add a calculator to my sales agent", "update"),
        ("Replace the buffer memory with a window memory", "update"),
        ("Set the temperature to 0.3", "update"),
        ("Make it rhyme", "update"),
        ("Entferne die Websuche aus diesem Flow", "update"),
        ("Make a copy of the support flow", "copy"),
        ("Which model does my support flow use?", "question"),
        ("Question answering over our handbook", "create"),
        ("Build a bot that can replace our receptionist", "create"),
        ("A chain that changes the tone of emails", "create"),
    ],
)
async def test_operation_is_read_from_the_words(text: str, operation: str) -> None:
    assert (await classify(text)).operation == operation


async def test_forced_operation_wins() -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement="A chatbot", forced="update"))).value
    assert intent.operation == "update"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Set the temperature to 0.2, change nothing else", "Set the temperature to 0.2"),
        (
            "Please build me a customer support chatbot with GPT-4o and memory",
            "Customer support chatbot with GPT-4o and memory",
        ),
        (
            "Build a customer support chatbot for our online shop with GPT-4o that remembers the conversation",
            "Customer support chatbot for our online shop",
        ),
        (
            "Build a support bot with answers for people who bought old film cameras",
            "Support bot with answers for people",
        ),
        ("Build a support bot with answers for every single new dull grey rainy Monday", "Support bot with answers"),
        ("Crea un asistente de atención al cliente con memoria", "Asistente de atención al cliente con memoria"),
        (
            "Build an agent for our online shop that remembers the conversation and has a calculator",
            "Agent for our online shop",
        ),
        ("RAG over https://example.com/docs", "RAG over example.com/docs"),
        ("?!", "New chatflow"),
    ],
)
async def test_title_is_short_and_says_what_it_is(text: str, title: str) -> None:
    assert (await classify(text)).title == title


async def test_a_value_is_shown_once_and_not_as_a_step_again(catalogue: NodeStore) -> None:
    contract = await plan("Build a chatbot with GPT-4o that always answers: We are closed today.", catalogue)
    assert any("We are closed today" in str(value.value) for value in contract.values)
    assert not any("We are closed today" in step for step in contract.steps)
