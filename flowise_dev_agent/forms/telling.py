"""Texts of a plan made by code, in the language of the person: goal, purposes, steps, criteria, test questions."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from flowise_dev_agent.forms.defaults import without_braces
from flowise_dev_agent.forms.starters import branch_messages
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.labels import credential_name
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Criterion, Plan, PlannedNode, PlannedValue, TestCase
from flowise_dev_agent.texts import say_in

#: Code of a node's purpose, by its type or else its category.
_PURPOSES: Final = {
    "conversationChain": "conversation",
    "conversationalRetrievalQAChain": "answers_from_documents",
    "llmChain": "prompt_per_message",
    "startAgentflow": "start",
    "llmAgentflow": "model_answers",
    "agentAgentflow": "agent_answers",
    "conditionAgentAgentflow": "branch",
    "humanInputAgentflow": "person",
    "httpAgentflow": "request",
    "iterationAgentflow": "each",
    "loopAgentflow": "repeat",
    "directReplyAgentflow": "reply",
    "customFunctionAgentflow": "code",
    "bufferWindowMemory": "last_messages",
    "Agents": "agent",
    "Chat Models": "model",
    "Document Loaders": "text",
    "Embeddings": "embeddings",
    "Memory": "memory",
    "Moderation": "moderation",
    "Output Parsers": "structure",
    "Prompts": "instruction",
    "Text Splitters": "splitter",
    "Tools": "tool",
    "Tools (MCP)": "tool",
    "Vector Stores": "search",
}
#: Codes of questions that make an agent use a tool.
_TOOL_QUESTIONS: Final = {
    "calculator": "plan.test.calculator",
    "currentDateTime": "plan.test.date",
    "postgreSQLMCP": "plan.test.database",
}
_MOST_QUESTIONS, _MOST_OF_STEPS, _LONGEST_GOAL, _LONGEST_PURPOSE = 6, 10, 300, 160


def short(text: str, most: int = _LONGEST_GOAL) -> str:
    """A text in one line, cut to the length that a plan shows."""
    return shortened(" ".join(text.split()), most)


def with_texts(plan: Plan, form: DesignForm, schemas: Mapping[str, NodeSchema], *, words: str, language: str) -> Plan:
    """Add the texts to the plan of a form. `words` are those of the person, if they gave any beside the form."""
    nodes = {node.node_id: schemas[node.node_name] for node in plan.nodes}
    purpose = purpose_of(form, words)
    tests = [TestCase(id=f"t{n}", turns=said) for n, said in enumerate(_questions(form, nodes, language), start=1)]
    ids = [test.id for test in tests]
    criteria = _criteria(form, nodes, short(purpose, _LONGEST_PURPOSE), language)
    return plan.model_copy(
        update={
            "goal": short(purpose),
            "nodes": [
                node.model_copy(update={"purpose": _purpose(nodes[node.node_id], language)}) for node in plan.nodes
            ],
            "steps": _steps(plan, nodes, language),
            "tests": tests,
            "criteria": [
                Criterion(id=f"c{n}", text=text, tests=ids, by_answer=n == 1)
                for n, text in enumerate(criteria, start=1)
            ],
            "placeholders": placeholders(plan.values),
        }
    )


def purpose_of(form: DesignForm, words: str = "") -> str:
    """Purpose of a form's flow: the person's words if a prompt of the form quotes them, else what the form says."""
    prompts = [one for one in (form.prompt, *(step.prompt for step in form.steps)) if one]
    said = words.strip()
    if said and any(said in prompt or without_braces(said) in prompt for prompt in prompts):
        return said
    if form.prompt:
        return form.purpose
    return " \u2192 ".join(step.label for step in form.steps) or form.name


def placeholders(values: Sequence[PlannedValue]) -> list[str]:
    """Placeholders of a plan: marked texts, and fields (`node.field`) to be filled in."""
    missing = [one for one in values if stands_in(one.value)]
    places = ("" if one.param == "text" else f"{one.node_id}.{one.param}: " for one in missing)
    return list(dict.fromkeys(f"{place}{one.value}" for place, one in zip(places, missing, strict=True)))


def _purpose(schema: NodeSchema, language: str) -> str:
    code = _PURPOSES.get(schema.name) or _PURPOSES.get(schema.category)
    return say_in(language, f"plan.purpose.{code}") if code else schema.label


def _steps(plan: Plan, nodes: Mapping[str, NodeSchema], language: str) -> list[str]:
    said = partial(say_in, language)
    added = [_title(node, nodes) for node in plan.nodes if not node.existing]
    steps = [said("plan.step.add", nodes=", ".join(added))] if added else []
    steps += [
        said("plan.step.window", count=int(str(one.value)))
        for one in plan.values
        if one.param == "k" and "Memory" in one.node_id and str(one.value).isdecimal()
    ]
    return steps + [said("plan.step.credential", type=credential_name(name)) for name in plan.credential_requirements]


def _title(node: PlannedNode, nodes: Mapping[str, NodeSchema]) -> str:
    return node.label or nodes[node.node_id].label


def _questions(form: DesignForm, nodes: Mapping[str, NodeSchema], language: str) -> list[list[str]]:
    """Test conversations, turn by turn: one for each element of the form."""
    said = partial(say_in, language)
    names = {schema.name for schema in nodes.values()}
    if branches := [name for step in form.steps for name in step.branches]:
        messages = branch_messages(language)
        return [[messages.get(name) or said("plan.test.branch", branch=name)] for name in branches][:_MOST_OF_STEPS]
    if form.schedule:
        return [[form.schedule.text]]
    if "llmChain" in names:
        return [[said("plan.test.task")]]
    if any(step.kind == "approve" for step in form.steps):
        return [[said("plan.test.draft")]]
    found = [[said("plan.test.topic", topic=topic) if topic else said("plan.test.text")] for topic in _topics(form)]
    found += [[said(code)] for name, code in _TOOL_QUESTIONS.items() if name in names]
    found += [[said("plan.test.each")]] if any(step.kind == "each" for step in form.steps) else []
    found = found or [[said("plan.test.hello")]]
    if any(schema.category == "Memory" for schema in nodes.values()):
        found.append([said("plan.test.memory"), said("plan.test.remembered")])
    if form.refused_words:
        # A flow that refuses everything would refuse the word too.
        found.append([said("plan.test.refused", word=form.refused_words[0])])
    return found[:_MOST_QUESTIONS]


def _criteria(form: DesignForm, nodes: Mapping[str, NodeSchema], purpose: str, language: str) -> list[str]:
    """Texts of the criteria; any answer shows the first."""
    said = partial(say_in, language)
    found = [said("plan.criterion.answered"), said("plan.criterion.purpose", purpose=purpose)]
    found += [
        said("plan.criterion.topic", topic=topic) if topic else said("plan.criterion.text") for topic in _topics(form)
    ]
    tools = [one.label for one in nodes.values() if one.category == "Tools" and one.name != "retrieverTool"]
    found += [said("plan.criterion.tool", tool=label) for label in dict.fromkeys(tools)]
    found += [said("plan.criterion.fields", fields=", ".join(one.name for one in form.fields))] if form.fields else []
    refused = ", ".join(form.refused_words)
    return found + ([said("plan.criterion.refused", words=refused)] if refused else [])


def _topics(form: DesignForm) -> list[str]:
    """Subjects of the first sources, each once; empty for a source without one."""
    return [*dict.fromkeys(source.about for source in form.sources[:2])]
