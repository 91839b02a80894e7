"""How a plan is told: purposes, criteria, questions to test with, placeholders."""

from collections.abc import Mapping

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.deterministic.parameters import role_text, topic
from flowise_dev_agent.reasoning.deterministic.placeholders import MARK, stands_in
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.text import squeeze
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.sanitize import shortened

_PURPOSES = {
    "Chat Models": "purpose_model",
    "Memory": "purpose_memory",
    "Agents": "purpose_ending_agent",
    "Prompts": "purpose_prompt",
    "Output Parsers": "purpose_parser",
    "Document Loaders": "purpose_loader",
    "Text Splitters": "purpose_splitter",
    "Vector Stores": "purpose_store",
    "Embeddings": "purpose_embeddings",
    "Moderation": "purpose_moderation",
    "Tools": "purpose_tool",
}
_CHAIN_PURPOSES = {
    "conversationChain": "purpose_ending_chat",
    "conversationalRetrievalQAChain": "purpose_ending_documents",
    "llmChain": "purpose_ending_chain",
}
_STEP_PURPOSES = {
    "startAgentflow": "purpose_start",
    "conditionAgentAgentflow": "purpose_route",
    "humanInputAgentflow": "purpose_human",
}
_SEARCHES = frozenset({"serpAPI", "serper", "braveSearchAPI", "googleCustomSearch", "exaSearch", "searXNG"})
_MAX_QUESTIONS = 4


def short(text: str) -> str:
    return shortened(squeeze(text), 300)


def purpose(schema: NodeSchema, language: str) -> str:
    if schema.is_agentflow:
        return say(_STEP_PURPOSES.get(schema.name, "purpose_step"), language, label=schema.label)
    key = _CHAIN_PURPOSES.get(schema.name) or _PURPOSES.get(schema.category, "purpose_other")
    return say(key, language, label=schema.label)


def criteria(reading: Reading, nodes: Mapping[str, NodeSchema], language: str) -> list[str]:
    """What can be seen in the answers, most general first."""
    found = [say("criterion_answer", language)]
    if reading.persona.role:
        found.append(say("criterion_role", language, role=role_text(reading, language)))
    found += [say("criterion_behaviour", language, behaviour=text) for text in reading.persona.behaviour]
    if reading.knowledge:
        found.append(say("criterion_documents", language, topic=topic(reading, language)))
    found += [
        say("criterion_tool", language, label=schema.label)
        for schema in nodes.values()
        if schema.category == "Tools" and schema.name != "retrieverTool"
    ]
    if reading.structured and reading.fields:
        found.append(say("criterion_json", language, fields=", ".join(field.name for field in reading.fields)))
    elif reading.translate_to:
        found.append(say("criterion_translate", language, language=reading.translate_to))
    elif _is_task(nodes):
        found.append(say("criterion_task", language))
    if reading.denied_words:
        found.append(say("criterion_refuse", language, words=", ".join(reading.denied_words)))
    return found


def questions(reading: Reading, nodes: Mapping[str, NodeSchema], language: str) -> list[str]:
    """What to ask the flow: each ability once, one greeting otherwise."""
    names = {schema.name for schema in nodes.values()}
    found: list[str] = []
    if _is_task(nodes):
        return [say("test_translate" if reading.translate_to else "test_task", language)]
    if reading.knowledge:
        found.append(say("test_documents", language, topic=topic(reading, language)))
    found += [say(f"test_{name}", language) for name in ("calculator", "currentDateTime") if name in names]
    if names & _SEARCHES:
        found.append(say("test_search", language))
    if not found:
        found.append(say("test_hello", language))
        if reading.persona.role:
            found.append(say("test_role", language))
    elif "retrieverTool" in names:
        found.append(say("test_hello", language))
    if reading.denied_words:
        found.append(say("test_refused", language, word=reading.denied_words[0]))
    return found[:_MAX_QUESTIONS]


def placeholders(values: Mapping[str, object]) -> list[str]:
    """What stands in for what is still to come: marked texts, and fields (`node.field`) to be filled in."""
    found: list[str] = []
    for where, value in values.items():
        if stands_in(value):
            text = str(value) if str(value).startswith(MARK) else f"{MARK}: a file]"
            found.append(text if where.endswith(".text") else f"{where}: {text}")
    return list(dict.fromkeys(found))


def _is_task(nodes: Mapping[str, NodeSchema]) -> bool:
    return any(schema.name == "llmChain" for schema in nodes.values())
