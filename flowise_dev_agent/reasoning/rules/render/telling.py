"""How a design is told: purposes, steps, criteria, questions to test with, placeholders."""

import json
from collections.abc import Mapping, Sequence

from flowise_dev_agent.contracts.plan import Criterion, Design, PlannedValue, TestCase
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.placeholders import MARK, stands_in
from flowise_dev_agent.reasoning.rules.design.values import Said, topic_of
from flowise_dev_agent.reasoning.rules.language.text import squeeze
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
_TYPE_PURPOSES = {
    "conversationChain": "purpose_ending_chat",
    "conversationalRetrievalQAChain": "purpose_ending_documents",
    "llmChain": "purpose_ending_chain",
    "startAgentflow": "purpose_start",
    "conditionAgentAgentflow": "purpose_route",
    "humanInputAgentflow": "purpose_human",
}
_SEARCHES = frozenset({"serpAPI", "serper", "braveSearchAPI", "googleCustomSearch", "exaSearch", "searXNG"})
_MOST_QUESTIONS, _LONGEST_VALUE, _LONGEST_QUOTE = 6, 300, 160


def short(text: str) -> str:
    return shortened(squeeze(text), 300)


def purpose(schema: NodeSchema, language: str) -> str:
    key = _TYPE_PURPOSES.get(schema.name) or _PURPOSES.get(schema.category, "purpose_other")
    return say("purpose_step" if schema.is_agentflow and key == "purpose_other" else key, language, label=schema.label)


def told(design: Design, nodes: Mapping[str, NodeSchema], said: Said, language: str) -> Design:
    """The design with its steps, tests, criteria and placeholders. `nodes` are all that it is about."""
    new = {node.node_id: nodes[node.node_id].label for node in design.nodes if not node.existing}
    labels = {node.node_id: node.label or new.get(node.node_id, "") for node in design.nodes}
    steps = [say("step_add", language, nodes=", ".join(labels[id_] for id_ in new))] if new else []
    steps += [value_step(value, language) for value in design.values]
    steps += [say("step_credential", language, type=name) for name in design.credential_requirements]
    asked = questions(said, nodes, language)
    tests = [TestCase(id=f"t{n}", turns=turns) for n, turns in enumerate(asked, start=1)]
    criteria = [
        Criterion(id=f"c{n}", text=text, tests=[test.id for test in tests])
        for n, text in enumerate(_criteria(said, nodes, language), start=1)
    ]
    return design.model_copy(
        update={
            "steps": [*design.steps, *steps],
            "tests": tests,
            "criteria": criteria,
            "placeholders": placeholders(design.values),
        }
    )


def value_step(value: PlannedValue, language: str) -> str:
    if value.param == "conditions" and isinstance(value.value, list):
        rows = [row for row in value.value if isinstance(row, dict)]
        cases = "; ".join(f"{number}: {row.get('operation')} {row.get('value2')!r}" for number, row in enumerate(rows))
        return say("step_set", language, where=f"{value.node_id}.{value.param}", value=cases)
    shown = value.value if isinstance(value.value, str) else json.dumps(value.value, ensure_ascii=False)
    where = f"{value.node_id}.{value.param}"
    if value.mode == "append":
        return say("step_append", language, where=where, value=shown)
    if len(shown) > _LONGEST_VALUE:
        return say("step_set_long", language, where=where, length=len(shown))
    return say("step_set", language, where=where, value=shown)


def questions(said: Said, nodes: Mapping[str, NodeSchema], language: str) -> list[list[str]]:
    """What to ask the flow, turn by turn: what the person named, each once."""
    reading, names = said.reading, {schema.name for schema in nodes.values()}
    if any(schema.name == "llmChain" for schema in nodes.values()):
        return [
            [say("test_translate" if "French" in said.prompt and not reading.structured else "test_task", language)]
        ]
    found: list[list[str]] = []
    if reading.knowledge:
        topics: Sequence[str | None] = reading.topics or (None,)
        found += [
            [say("test_documents", language, topic=topic_of(Said(reading, topic=topic), language))] for topic in topics
        ]
    found += [[say(f"test_{name}", language)] for name in ("calculator", "currentDateTime") if name in names]
    if names & _SEARCHES:
        found.append([say("test_search", language)])
    if prompt := said.prompt or reading.system_text:
        found.append([say("test_about", language, quote=shortened(squeeze(prompt), _LONGEST_QUOTE))])
    if reading.memory:
        found.append([say("test_name", language), say("test_name_again", language)])
    if reading.denied_words:
        # A flow that refuses everything would refuse the word, too.
        found = found or [[say("test_hello", language)]]
        found.append([say("test_refused", language, word=reading.denied_words[0])])
    return found[:_MOST_QUESTIONS] or [[say("test_hello", language)]]


def _criteria(said: Said, nodes: Mapping[str, NodeSchema], language: str) -> list[str]:
    reading = said.reading
    found = [say("criterion_answer", language)]
    if prompt := said.prompt or reading.system_text:
        found.append(say("criterion_behaviour", language, behaviour=shortened(squeeze(prompt), _LONGEST_VALUE)))
    if reading.knowledge:
        topics: Sequence[str | None] = reading.topics or (None,)
        found += [
            say("criterion_documents", language, topic=topic_of(Said(reading, topic=topic), language))
            for topic in topics
        ]
    found += [
        say("criterion_tool", language, label=schema.label)
        for schema in nodes.values()
        if schema.category == "Tools" and schema.name != "retrieverTool"
    ]
    if reading.structured and reading.fields:
        found.append(say("criterion_json", language, fields=", ".join(field.name for field in reading.fields)))
    if reading.denied_words:
        found.append(say("criterion_refuse", language, words=", ".join(reading.denied_words)))
    return found


def placeholders(values: Sequence[PlannedValue]) -> list[str]:
    """What stands in for what is still to come: marked texts, and fields (`node.field`) to be filled in."""
    found: list[str] = []
    for value in values:
        if stands_in(value.value):
            text = str(value.value) if str(value.value).startswith(MARK) else f"{MARK}: a file]"
            found.append(text if value.param == "text" else f"{value.node_id}.{value.param}: {text}")
    return list(dict.fromkeys(found))
