"""Whatever a person puts together: nothing of it disappears, and no change loses a line of a prompt."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.agent.plan_values import with_planned_values
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

STORE = NodeStore.from_snapshot()
#: Pieces that the rules know -> the node type, field or value that each must lead to.
KNOWN = {
    "with Claude": "chatAnthropic",
    "with a temperature of 0.3": "temperature",
    "that can calculate": "calculator",
    "that remembers the last 7 messages": "bufferWindowMemory",
    "that knows today's date": "currentDateTime",
    "that searches the web": "serpAPI",
    "that answers questions about our handbook": "plainText",
    'that refuses messages with the words "bet" and "casino"': "denyList",
    "with at most 300 tokens": "maxTokens",
}
#: Phrases that no rule knows: all of each belongs to the prompt, or is told as not done.
UNKNOWN = [
    "for the zoo of Wexford",
    "that greets people as Dr. Quill",
    'that ends each answer with "Ahoi!"',
    "which knows that we open at 9:30 and close at 18:45",
    "who never mentions the number 4711",
    "that writes to mail@example.org only in emergencies",
    "and is polite, brief and funny",
    "that sends a parcel to Ulm",
    "that posts to Slack every morning at 8",
    "with two models",
    "that calls our API",
    "for each row of the table",
    "with a frobnicator of 12 qux",
]
WISHES = [
    "Answer in French", "Set the temperature to 0.2", "Use Claude instead of OpenAI", "Add a calculator",
    "Make it friendlier", "Never mention prices", "Remember only the last 3 messages", "Remove the memory",
    "tell the agent to answer in French", 'Add "Be brief." to the system prompt', "Rename the chain to Front desk",
    "Copy it as Shop bot 2 and make the copy answer in French", "Replace the memory by a summary memory",
    "Er soll auf Englisch antworten", "Haz que responda de usted", "Use gpt-4o-mini and answer in rhymes",
]  # fmt: skip
THEIRS = ["You are the support of Contoso.", "Never promise a refund.", "Opening hours: 9 to 18. Call 0171 555 666."]
DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1, "serpApi": 1}


def base_flow() -> GraphIR:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0",
                params={"systemMessagePrompt": "\n".join(THEIRS)}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
    ]  # fmt: skip
    return compile_ops(GraphIR.empty(), ops, STORE.schemas).graph


BASE = base_flow()


def planned(text: str, **flow: Any) -> tuple[Intent, PlanContract]:
    async def asked() -> tuple[Intent, PlanContract]:
        rules = DeterministicReasoner()
        first = ClassifyRequest(requirement=text, target="Shop bot" if flow else None)
        intent = (await rules.classify(first)).value
        request = PlanRequest(requirement=text, intent=intent, nodes=STORE, credential_types=CREDENTIALS, **flow)
        return intent, (await rules.plan(request)).value

    return asyncio.run(asked())


def told(intent: Intent, plan: PlanContract) -> str:
    """Everything that a person sees, or a model is told, of what they said."""
    values = [str(value.value) for value in plan.values]
    parts = [part.quote for part in plan.parts if part.state != "covered"]
    return " ".join([*values, *parts, plan.declined or "", *intent.questions]).casefold()


@given(
    known=st.lists(st.sampled_from(sorted(KNOWN)), max_size=3, unique=True),
    unknown=st.lists(st.sampled_from(UNKNOWN), max_size=3, unique=True),
    data=st.data(),
)
def test_p83_no_piece_of_a_requirement_disappears(known: list[str], unknown: list[str], data: st.DataObject) -> None:
    pieces = data.draw(st.permutations([*known, *unknown]))
    intent, plan = planned(f"A chatbot {', '.join(pieces)}.")
    if plan.declined:
        assert "«" in plan.declined or plan.declined.endswith("?"), plan.declined
        return
    if intent.questions:
        return
    for piece in unknown:
        missing = [word for word in re.findall(r"[\w@.:]+\w", piece.casefold()) if word not in told(intent, plan)]
        # "that", "with" and the like may go together with what they introduced.
        assert set(missing) <= {"and", "that", "with", "who", "which", "for"}, (piece, plan.values)
    built = f"{plan.values} {plan.nodes}"
    assert all(KNOWN[piece] in built for piece in known), (known, built)


@given(st.text(max_size=300))
def test_any_text_at_all_is_planned_asked_about_or_declined(text: str) -> None:
    intent, plan = planned(text or "x")
    assert plan.declined or plan.nodes or plan.answer is not None or intent.operation == "copy"


def changed(wish: str) -> tuple[PlanContract, GraphIR | None]:
    """The plan and the flow after it; None where nothing is written."""
    existing = {node.id: node.name for node in BASE.nodes}
    flow: Mapping[str, Any] = {
        "target": "Shop bot",
        "existing": existing,
        "flow_summary": "a flow",
        "occupied": frozenset({"conversationChain_0.model", "conversationChain_0.memory"}),
        "texts": {"conversationChain_0.systemMessagePrompt": "\n".join(THEIRS)},
    }
    _, plan = planned(wish, **flow)
    if plan.declined or plan.answer is not None or not (plan.values or plan.nodes):
        return plan, None
    request = PatchRequest(requirement=wish, plan=plan, nodes=STORE, existing=existing, occupied=flow["occupied"])
    ops = with_planned_values(asyncio.run(DeterministicReasoner().patch(request)).value.ops, plan, BASE)
    chosen = dict.fromkeys(plan.credential_requirements, DUMMY)
    return plan, compile_ops(BASE, ops, STORE.schemas, credentials=chosen).graph


def check_lines(graph: GraphIR | None) -> None:
    texts = " ".join(str(value) for node in (graph.nodes if graph else ()) for value in node.inputs.values())
    assert graph is None or all(line in texts for line in THEIRS)


@given(st.lists(st.sampled_from(WISHES), min_size=1, max_size=3, unique=True))
def test_p84_no_change_loses_a_line_of_the_prompt(wishes: list[str]) -> None:
    check_lines(changed(". ".join(wishes))[1])


@given(st.sampled_from(WISHES), st.text(max_size=80))
def test_p84_no_change_with_any_text_loses_a_line_of_the_prompt(wish: str, text: str) -> None:
    if not re.search(r"prompt|replace", text, re.IGNORECASE):
        check_lines(changed(f"{wish}. {text}")[1])


@pytest.mark.parametrize("wish", WISHES)
def test_p84_each_change_is_done_or_declined_and_keeps_the_prompt(wish: str) -> None:
    plan, graph = changed(wish)
    assert plan.declined or graph is not None
    check_lines(graph)


def test_only_an_explicit_wish_replaces_the_prompt() -> None:
    _, graph = changed('Replace the system prompt by "You are Bob."')
    assert graph is not None
    with pytest.raises(AssertionError):
        check_lines(graph)
