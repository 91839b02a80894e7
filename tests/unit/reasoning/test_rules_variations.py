"""Thirty wishes in other words, numbers, providers and languages: each a flow that compiles and validates."""

from typing import Any

import pytest

from flowise_dev_agent.agent.plan_binding import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1, "serpApi": 1}

VARIATIONS: list[tuple[str, set[str], dict[str, Any]]] = [
    # Conversations
    (
        "Please set up an assistant for hotel guests with Claude Haiku 4.5 that recalls the past 12 messages",
        {"chatAnthropic", "bufferWindowMemory", "conversationChain"},
        {"chatAnthropic.modelName": "claude-haiku-4-5", "bufferWindowMemory.k": 12},
    ),
    (
        "We need a bot for our gym members. Model: gpt-4o-mini. Temperature 0. It should remember the conversation.",
        {"chatOpenAI", "bufferMemory", "conversationChain"},
        {"chatOpenAI.modelName": "gpt-4o-mini", "chatOpenAI.temperature": 0},
    ),
    (
        "Ich brauche einen Chatbot für Patienten einer Praxis mit GPT-4o, der sich die letzten 8 Nachrichten merkt",
        {"chatOpenAI", "bufferWindowMemory", "conversationChain"},
        {"chatOpenAI.modelName": "gpt-4o", "bufferWindowMemory.k": 8},
    ),
    (
        "Crea un asistente de viajes con Mistral que recuerde la conversación",
        {"chatMistralAI", "bufferMemory", "conversationChain"},
        {},
    ),
    ("Crée un chatbot pour un musée avec GPT-4o et de la mémoire", {"chatOpenAI", "bufferMemory"}, {}),
    (
        "Crie um chatbot de atendimento com Gemini 2.5 Flash e memória",
        {"chatGoogleGenerativeAI", "bufferMemory"},
        {"chatGoogleGenerativeAI.modelName": "gemini-2.5-flash"},
    ),
    ("Assistente virtuale per un ristorante con GPT-4o e memoria", {"chatOpenAI", "bufferMemory"}, {}),
    ("Maak een chatbot voor een fietsenwinkel met GPT-4o en geheugen", {"chatOpenAI", "bufferMemory"}, {}),
    (
        "Chatbot on DeepSeek with a summary of the conversation as memory",
        {"chatDeepseek", "conversationSummaryMemory"},
        {},
    ),
    # Tools
    (
        "Agent with Claude that can calculate and look things up on the web",
        {"chatAnthropic", "calculator", "serpAPI", "toolAgent"},
        {},
    ),
    ("Ein Agent, der rechnen kann und die aktuelle Uhrzeit kennt", {"toolAgent", "calculator", "currentDateTime"}, {}),
    ("Un agente que sepa qué día es y haga cálculos", {"toolAgent", "calculator", "currentDateTime"}, {}),
    ("Un agent qui connaît la date du jour et fait des calculs", {"toolAgent", "calculator", "currentDateTime"}, {}),
    (
        "Um agente com calculadora que lembra das últimas 5 mensagens",
        {"toolAgent", "calculator", "bufferWindowMemory"},
        {"bufferWindowMemory.k": 5},
    ),
    (
        "Agent that searches with Brave, with GPT-4.1",
        {"toolAgent", "braveSearchAPI", "chatOpenAI"},
        {"chatOpenAI.modelName": "gpt-4.1"},
    ),
    # Documents
    (
        "Q&A bot over our employee handbook, I'll provide the text later; chunks of 800 characters, overlap 80",
        {
            "conversationalRetrievalQAChain",
            "plainText",
            "memoryVectorStore",
            "openAIEmbeddings",
            "recursiveCharacterTextSplitter",
        },
        {"recursiveCharacterTextSplitter.chunkSize": 800, "recursiveCharacterTextSplitter.chunkOverlap": 80},
    ),
    (
        "Beantworte Fragen zu unserem Mietvertrag, den Text füge ich später ein, mit Quellenangabe",
        {"conversationalRetrievalQAChain", "plainText", "memoryVectorStore"},
        {"conversationalRetrievalQAChain.returnSourceDocuments": True},
    ),
    (
        "Responde preguntas sobre nuestra política de devoluciones. Pegaré el texto.",
        {"conversationalRetrievalQAChain", "plainText", "memoryVectorStore"},
        {},
    ),
    (
        "An agent with a retriever tool over our product manual (text to follow) and a calculator",
        {"toolAgent", "retrieverTool", "calculator", "plainText", "memoryVectorStore"},
        {},
    ),
    (
        "RAG chatbot over pasted notes, return the 6 most relevant chunks, Claude for answers, OpenAI embeddings",
        {"chatAnthropic", "openAIEmbeddings", "conversationalRetrievalQAChain"},
        {"memoryVectorStore.topK": "6"},
    ),
    (
        "Answer questions from https://example.com/faq",
        {"cheerioWebScraper", "memoryVectorStore"},
        {"cheerioWebScraper.url": "https://example.com/faq"},
    ),
    # One way
    ("Summarise any article in three bullet points", {"llmChain", "promptTemplate"}, {}),
    ("Übersetze jeden Text ins Englische", {"llmChain", "promptTemplate"}, {}),
    ("Traduis chaque message en allemand, sans mémoire", {"llmChain", "promptTemplate"}, {}),
    ("Classify incoming tickets as bug, question or praise", {"llmChain", "promptTemplate"}, {}),
    (
        "Extract invoice number, date and total amount from an e-mail as JSON",
        {"llmChain", "structuredOutputParser"},
        {},
    ),
    (
        "I paste an order mail and need the fields: order_no, price (number), is_gift yes/no. gpt-4o-mini",
        {"llmChain", "structuredOutputParser"},
        {},
    ),
    (
        "Extrahiere Name, Telefonnummer und Wunschtermin aus einer Nachricht als JSON",
        {"llmChain", "structuredOutputParser"},
        {},
    ),
    # Moderation
    (
        'Chatbot that blocks messages containing "password" or "credit card" before the model sees them',
        {"inputModerationSimple", "conversationChain"},
        {"inputModerationSimple.denyList": "password\ncredit card"},
    ),
    (
        'Ein Chatbot, der Nachrichten mit den Wörtern "Waffe" oder "Drogen" ablehnt',
        {"inputModerationSimple"},
        {"inputModerationSimple.denyList": "Waffe\nDrogen"},
    ),
]


@pytest.mark.parametrize(("wish", "expected", "values"), VARIATIONS, ids=[wish[:40] for wish, _, _ in VARIATIONS])
async def test_the_wish_becomes_a_flow_that_validates(
    catalogue: NodeStore, wish: str, expected: set[str], values: dict[str, Any]
) -> None:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    assert (intent.operation, intent.questions) == ("create", [])
    request = PlanRequest(requirement=wish, intent=intent, nodes=catalogue, credential_types=CREDENTIALS)
    plan = (await rules.plan(request)).value
    assert plan.declined is None
    assert expected <= {node.node_name for node in plan.nodes}
    ops = (await rules.patch(PatchRequest(requirement=wish, plan=plan, nodes=catalogue))).value.ops
    added = [op for op in ops if isinstance(op, AddNode)]
    params = {f"{op.node_name}.{name}": value for op in added for name, value in op.params.items()}
    assert {key: str(params.get(key)) for key in values} == {key: str(value) for key, value in values.items()}
    chosen = dict.fromkeys(plan.credential_requirements, DUMMY)
    compiled = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen)
    flow = compiled.flow_data
    assert not_met(plan, GraphIR.empty(), compiled.graph) == []
    assert errors(validate_flow(flow, schemas=catalogue.schemas, credentials=None)) == []


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("Build a team of agents with a supervisor and workers", "step by step"),
        ('Chatbot built around the node "moodRing"', "moodRing"),
        ("Agent with a custom tool that knows our stock", "Custom Tool"),
    ],
)
async def test_what_the_rules_cannot_build_is_said_in_words(catalogue: NodeStore, wish: str, says: str) -> None:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    request = PlanRequest(requirement=wish, intent=intent, nodes=catalogue, credential_types=CREDENTIALS)
    plan = (await rules.plan(request)).value
    assert plan.declined
    assert says.casefold() in plan.declined.casefold()
    assert plan.nodes == []
