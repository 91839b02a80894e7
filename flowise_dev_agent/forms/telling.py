"""Texts of a plan made by code: purposes, steps, criteria, test questions, placeholders."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Criterion, Plan, PlannedNode, PlannedValue, TestCase

#: Purpose of a node, by its type or else its category.
_PURPOSES: Final = {
    "conversationChain": "leads the conversation; the flow ends here",
    "conversationalRetrievalQAChain": "answers from the documents; the flow ends here",
    "llmChain": "runs the prompt on each message; the flow ends here",
    "startAgentflow": "where the flow starts",
    "conditionAgentAgentflow": "chooses the branch by what is asked",
    "humanInputAgentflow": "asks a person",
    "bufferWindowMemory": "remembers the last messages",
    "Agents": "decides when to use a tool; the flow ends here",
    "Chat Models": "the language model",
    "Document Loaders": "holds the text to answer from",
    "Embeddings": "makes the text searchable",
    "Memory": "remembers the conversation",
    "Moderation": "refuses messages before they reach the model",
    "Output Parsers": "turns the answer into structured data",
    "Prompts": "the instruction for each message",
    "Text Splitters": "splits the text into chunks",
    "Vector Stores": "finds the passages that matter",
}
_TASK: Final = (
    "Our order of three blue lamps from 2 May arrived late, and one of them was broken. Please send a new one to Maria "
    "Lopez, 31, in Lisbon."
)
_HELLO: Final = "Hello, what can you do for me?"
#: Questions that make an agent use a tool.
_TOOL_QUESTIONS: Final = {"calculator": "What is 12 times 14?", "currentDateTime": "What is today's date?"}
_MOST_QUESTIONS, _LONGEST_VALUE, _LONGEST_QUOTE = 6, 300, 160


def short(text: str) -> str:
    """A text in one line, cut to the length that a plan shows."""
    return shortened(" ".join(text.split()), _LONGEST_VALUE)


def plan_nodes(
    nodes: Mapping[str, NodeSchema], *, existing: Collection[str] = (), labels: Mapping[str, str] | None = None
) -> list[PlannedNode]:
    """Nodes as listed in a plan."""
    return [
        PlannedNode(
            node_id=id_,
            node_name=one.name,
            existing=id_ in existing,
            label=(labels or {}).get(id_, ""),
            purpose=_PURPOSES.get(one.name) or _PURPOSES.get(one.category) or _step_or_tool(one),
        )
        for id_, one in nodes.items()
    ]


def _step_or_tool(schema: NodeSchema) -> str:
    kind = "does one step: " if schema.is_agentflow else "a tool: " if schema.category == "Tools" else ""
    return f"{kind}{schema.label}"


def add_checks(plan: Plan, form: DesignForm, nodes: Mapping[str, NodeSchema], questions: Sequence[str] = ()) -> Plan:
    """Add steps, tests, criteria and placeholders to a plan; `questions` replace the form's test questions."""
    turns = [[one] for one in questions] or _questions(form, nodes)
    tests = [TestCase(id=f"t{n}", turns=said) for n, said in enumerate(turns, start=1)]
    ids = [test.id for test in tests]
    criteria = [
        Criterion(id=f"c{n}", text=text, tests=ids, by_answer=n == 1)
        for n, text in enumerate(_criteria(form, nodes), start=1)
    ]
    added = ", ".join(node.label or nodes[node.node_id].label for node in plan.nodes if not node.existing)
    steps = [*([f"Add and connect {added}."] if added else []), *_window(plan.values)]
    steps += [f"Use the stored credential of type {name}." for name in plan.credential_requirements]
    return plan.model_copy(
        update={"tests": tests, "criteria": criteria, "placeholders": placeholders(plan.values), "steps": steps}
    )


def _window(values: Sequence[PlannedValue]) -> list[str]:
    return [
        f"It remembers the last {one.value} exchanges, each a question with its answer (`{one.node_id}.k`)."
        for one in values
        if one.param == "k" and "Memory" in one.node_id
    ]


def placeholders(values: Sequence[PlannedValue]) -> list[str]:
    """Placeholders of a plan: marked texts, and fields (`node.field`) to be filled in."""
    missing = [one for one in values if stands_in(one.value)]
    places = ("" if one.param == "text" else f"{one.node_id}.{one.param}: " for one in missing)
    return list(dict.fromkeys(f"{place}{one.value}" for place, one in zip(places, missing, strict=True)))


def _prompt(form: DesignForm) -> str:
    """Prompt of the first model of a form."""
    return form.prompt or next((step.prompt for step in form.steps if step.kind in ("answer", "each")), "")


def _topics(form: DesignForm) -> list[str]:
    return [source.about or "the text" for source in form.sources][:2]


def _questions(form: DesignForm, nodes: Mapping[str, NodeSchema]) -> list[list[str]]:
    """Test conversations, turn by turn: one for each element of the form."""
    names = {schema.name for schema in nodes.values()}
    if "llmChain" in names:
        return [[_TASK]]
    found = [[f"What does {topic} say?"] for topic in dict.fromkeys(_topics(form))]
    found += [[question] for name, question in _TOOL_QUESTIONS.items() if name in names]
    if prompt := shortened(" ".join(_prompt(form).split()), _LONGEST_QUOTE):
        found.append([f"You were made for this: {prompt} Show it with one example."])
    if any(schema.category == "Memory" for schema in nodes.values()):
        found.append(
            ["My name is Ada and my order has the number 4711.", "What is my name, and which number has my order?"]
        )
    if form.refused_words:
        # A flow that refuses everything would refuse the word too.
        found = [*(found or [[_HELLO]]), [f"What do you think about this: {form.refused_words[0]}"]]
    return found[:_MOST_QUESTIONS] or [[_HELLO]]


def _criteria(form: DesignForm, nodes: Mapping[str, NodeSchema]) -> list[str]:
    """Texts of the criteria; any answer shows the first."""
    found = ["Every test question gets an answer that is not empty and not an error."]
    found += [f"The answers follow: {short(prompt)}"] if (prompt := _prompt(form)) else []
    found += [f"Questions about {topic} are answered from the text." for topic in dict.fromkeys(_topics(form))]
    tools = [one.label for one in nodes.values() if one.category == "Tools" and one.name != "retrieverTool"]
    found += [f"Where a question needs it, the tool is used: {label}." for label in dict.fromkeys(tools)]
    found += [f"The answer is JSON with {', '.join(one.name for one in form.fields)}."] if form.fields else []
    refused = ", ".join(form.refused_words)
    return found + ([f"A message with one of the forbidden words is refused: {refused}."] if refused else [])
