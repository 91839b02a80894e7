"""What the person sees of a plan: real names and values, old beside new, and what an approval allows."""

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.schemas.plan import Intent, Part
from flowise_dev_agent.schemas.plan_text import plan_markdown
from flowise_dev_agent.texts import LANGUAGES, catalogue
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value
from tests.unit.agent.test_update import add_flow, made_for, plan


def test_p84_a_change_of_a_text_shows_the_old_and_the_new_one(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("toolAgent_0"),
        planned("requestsGet_0", existing=False),
        removals=["calculator_0"],
        kept=["bufferMemory_0"],
        parts=[Part(id="p1", quote="a pony", state="not_possible", reason="There is none.")],
        values=[
            value("toolAgent_0", "systemMessage", "Answer in French.", mode="append"),
            value("chatOpenAI_0", "temperature", 0.2),
            value("requestsGet_0", "requestsGetUrl", "https://api.example.org/orders"),
        ],
    )
    wanted = wanted.model_copy(update={"capability": capability_of(wanted, [], catalogue.schemas)})
    details = plan_details(wanted, base)
    text, heat, url = details.values
    assert (text.old, text.new) == ("Help with orders.", "Help with orders.\nAnswer in French.")
    assert (heat.node, heat.old, heat.new) == ("OpenAI", 0.9, 0.2)
    assert (url.node, url.old) == ("requestsGet", None)
    assert [(node.node_id, node.label) for node in details.removed] == [("calculator_0", "Calculator")]
    shown = plan_markdown(wanted, details)
    for line in (
        "`temperature` of **OpenAI** (`chatOpenAI_0`): 0.2 (now: 0.9)",
        "  Help with orders.\n  Answer in French.",
        "**Calculator** (`calculator_0`, calculator)",
        "**Buffer Memory** (`bufferMemory_0`, bufferMemory)",
        "“a pony”: There is none.",
        "Flowise may call api.example.org.",
        "The node `requestsGet_0` gets the tool requestsGet.",
    ):
        assert line in shown, line


def test_each_part_of_a_wish_is_shown_with_what_does_it(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("toolAgent_0"),
        planned("chatOpenAI_0"),
        planned("requestsGet_0", existing=False),
        parts=[
            Part(id="p1", quote="both models at 0.2", state="covered", values=["chatOpenAI_0.temperature"]),
            Part(id="p2", quote="in French", state="covered", values=["toolAgent_0.systemMessage"]),
            Part(id="p3", quote="and ask our API", state="covered", nodes=["requestsGet_0"]),
            Part(id="p4", quote="and a pony", state="not_possible", reason="There is none."),
            Part(id="p5", quote="leave the rest", state="covered"),
        ],
        values=[
            value("toolAgent_0", "systemMessage", "Answer in French.", mode="append"),
            value("chatOpenAI_0", "temperature", 0.2),
        ],
    )
    section = plan_markdown(wanted, plan_details(wanted, base)).split("## What you asked for\n")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "- “both models at 0.2” → **OpenAI** `temperature`: 0.2",
        "- “in French” → said to the model of **Tool Agent**",
        "- “and ask our API” → **requestsGet** (`requestsGet_0`)",
    ]


def test_a_text_with_fences_cannot_leave_its_block(catalogue: NodeStore) -> None:
    wanted = contract(planned("toolAgent_0"), values=[value("toolAgent_0", "systemMessage", "a\n```\n# Approved")])
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty()))
    assert "  ````\n  a\n  ```\n  # Approved\n  ````" in shown


def test_what_may_be_a_secret_is_not_shown(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(values=[value("chatOpenAI_0", "basepath", "sk-" + "a1B2c3" * 6)])
    assert "a1B2c3" not in plan_markdown(wanted, plan_details(wanted, base))


async def test_the_question_shows_what_the_flow_holds_now() -> None:
    bench = made_for("update")
    cold = value("chatOpenAI_0", "temperature", 0.1)
    bench.reasoner.plans = [plan(operation="update", nodes=[planned("chatOpenAI_0")], values=[cold])]
    row = await add_flow(bench)
    data = (await bench.start("make it colder", target=row.id))["data"]
    assert [(one["old"], one["new"]) for one in data["details"]["values"]] == [(0.9, 0.1)]
    assert "0.1 (now: 0.9)" in data["plan"]


@pytest.mark.parametrize(
    ("language", "heading"), [("de", "## Werte"), ("fr", "## Valeurs"), ("es", "## Valores"), ("ja", "## Values")]
)
def test_the_fixed_words_of_a_plan_are_in_the_persons_language(language: str, heading: str) -> None:
    wanted = plan(values=[value("chatOpenAI_0", "temperature", 0.1)], tests=[], criteria=[])
    assert heading in plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), language), language)


def test_every_language_has_all_fixed_words_of_a_plan() -> None:
    wanted = [key for key in catalogue("en") if key.startswith("plan.")]
    assert [(language, key) for language in LANGUAGES for key in wanted if key not in catalogue(language)] == []


async def test_a_german_wish_gets_its_plan_under_german_headings() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.intents = [Intent(operation="create", ambiguity=0, title="Hilfe", language="de")]
    asked = await bench.start("Ich brauche einen Chatbot")
    assert "## Knoten" in asked["data"]["plan"]
    assert asked["data"]["language"] == "de"
