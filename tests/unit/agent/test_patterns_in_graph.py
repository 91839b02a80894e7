"""A new flow on the base of an accepted one, on the real graph: with a scripted model and with a form."""

import json
from typing import Any

import pytest

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.flowise.models import Credential
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.patch import AddNode, Connect, PatchOp, SetParam
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import CriterionVerdict, Evidence, Verdict
from tests.unit.agent.rig import OPENAI, Bench, BenchFlowise, Script, plan
from tests.unit.agent.test_graph import ops
from tests.unit.knowledge.memory_patterns import MemoryPatterns

FORM = DesignForm(name="Customer support bot for our bicycle shop", temperature=0.7)
COLDER = FORM.model_copy(update={"temperature": 0.3})
SIMILAR_FORM = DesignForm(name="Customer support bot for a bicycle shop", memory=6)
ASKED, SIMILAR = FORM.as_text(), SIMILAR_FORM.as_text()


def credentials() -> CredentialStore:
    return CredentialStore.from_rows([Credential(id=OPENAI, name="key", credential_name="openAIApi")])


def by_form(rows: MemoryPatterns, flowise: BenchFlowise | None = None) -> Bench:
    return Bench([], credentials(), reasoner=DeterministicReasoner(), patterns=library(rows), flowise=flowise)


def library(rows: MemoryPatterns) -> PatternLibrary:
    return PatternLibrary(rows, instance_id="default")


async def build(rows: MemoryPatterns, form: DesignForm, end: str = "accept") -> tuple[Bench, dict[str, Any]]:
    bench = by_form(rows)
    assert (await bench.start(form.as_text(), design=form.model_dump(mode="json")))["type"] == "plan_approval"
    review = await bench.answer(action="approve")
    assert review["reason"] == "tests_passed", review
    (row,) = bench.flowise.flows.values()
    flow = json.loads(row.flow_data)
    await bench.answer(action=end)
    return bench, flow


def nodes_of(flow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["id"]: node["data"] for node in flow["nodes"]}


def edges_of(flow: dict[str, Any]) -> set[tuple[str, str]]:
    return {(edge["source"], edge["target"]) for edge in flow["edges"]}


async def test_the_second_similar_flow_starts_from_the_first_and_is_right_all_the_same() -> None:
    rows = MemoryPatterns()
    first, _ = await build(rows, FORM)
    assert (await first.state()).pattern.id is None
    assert [row.category for row in rows.rows.values()] == ["conversational"]
    assert OPENAI not in json.dumps([row.ops for row in rows.rows.values()])
    second, flow = await build(rows, SIMILAR_FORM)
    state = await second.state()
    assert state.pattern.id == 1
    assert len(state.pattern.ops) == 3  # model, chain and their connection; the memory is another one
    nodes = nodes_of(flow)
    assert set(nodes) == {"chatOpenAI_0", "conversationChain_0", "bufferWindowMemory_0"}
    assert edges_of(flow) == {
        ("chatOpenAI_0", "conversationChain_0"),
        ("bufferWindowMemory_0", "conversationChain_0"),
    }
    assert nodes["chatOpenAI_0"]["credential"] == OPENAI
    assert str(nodes["bufferWindowMemory_0"]["inputs"]["k"]) == "6"
    assert str(nodes["chatOpenAI_0"]["inputs"]["temperature"]) == "0.9"  # the default, not the first flow's 0.7
    added = {op.node_id for op in state.patch.ops if isinstance(op, AddNode)}
    assert added == {"bufferWindowMemory_0"}
    (decision,) = [e for e in second.events if e["type"] == "decision" and e["summary"].startswith("Start from")]
    assert decision["data"]["taken"] == "pattern 1"
    assert rows.rows[1].success_count == 2


@pytest.mark.parametrize("end", ["accept", "rollback"])
async def test_a_flow_that_starts_from_a_pattern_equals_one_from_nothing(end: str) -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    _, seeded = await build(rows, COLDER, end)
    _, fresh = await build(MemoryPatterns(), COLDER)
    assert edges_of(seeded) == edges_of(fresh)
    assert {id_: data["inputs"] for id_, data in nodes_of(seeded).items()} == {
        id_: data["inputs"] for id_, data in nodes_of(fresh).items()
    }
    assert rows.rows[1].failure_count == (1 if end == "rollback" else 0)


async def test_a_broken_library_stops_nothing() -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    rows.broken = True
    bench, _ = await build(rows, SIMILAR_FORM)
    state = await bench.state()
    assert (state.outcome, state.pattern.id) == ("accepted", None)


async def test_an_update_neither_uses_nor_makes_a_pattern() -> None:
    rows = MemoryPatterns()
    first, _ = await build(rows, FORM)
    bench = Bench([], credentials(), patterns=library(rows), flowise=first.flowise)
    (id_,) = bench.flowise.flows
    bench.reasoner.intents = [Intent(operation="update", ambiguity=0, title="Colder")]
    colder = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.1)
    bench.reasoner.plans = [plan(operation="update", nodes=[], values=[colder])]
    bench.reasoner.patches = [[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)]]
    await bench.start("Set the temperature to 0.1", operation="update", target=id_)
    await bench.answer(action="approve")
    await bench.answer(action="accept")
    assert (await bench.state()).pattern.id is None
    assert len(rows.rows) == 1
    assert not any("pattern" in event["summary"].casefold() for event in bench.events)


async def steps_of(rows: MemoryPatterns, form: DesignForm) -> list[str]:
    """The plan's steps about nodes, as shown for approval; values and credentials are left out."""
    bench = by_form(rows)
    question = await bench.start(form.as_text(), design=form.model_dump(mode="json"))
    steps = question["data"]["contract"]["steps"]
    assert all(f"- {step}\n" in question["data"]["plan"] for step in steps)
    return [step for step in steps if "Set" not in step and "credential" not in step]


WINDOW = "It remembers the last 6 exchanges, each a question with its answer."


async def test_the_plan_says_what_is_taken_over_and_adds_only_the_rest() -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    assert await steps_of(rows, SIMILAR_FORM) == [
        f'Start from pattern 1 ("{ASKED}"), an accepted flow: take over Conversation Chain, OpenAI.',
        "Add and connect Buffer Window Memory.",
        WINDOW,
    ]
    assert await steps_of(rows, COLDER) == [
        f'Start from pattern 1 ("{ASKED}"), an accepted flow: take over Conversation Chain, Buffer Memory, OpenAI.'
    ]


async def test_a_plan_whose_pattern_falls_away_adds_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)

    def refused(*_: object, **__: object) -> None:
        raise PatchError("gone")

    monkeypatch.setattr(pattern_reuse, "trimmed", refused)
    assert await steps_of(rows, SIMILAR_FORM) == [
        "Add and connect Conversation Chain, OpenAI.",
        "Add and connect Buffer Window Memory.",
        WINDOW,
    ]


def model_ops() -> list[PatchOp]:
    return [
        AddNode(node_name="bufferMemory", node_id="bufferMemory_1"),
        SetParam(node_id="chatOpenAI_0", param_name="modelName", value="gpt-4o-mini"),
        Connect(source_node_id="bufferMemory_1", target_node_id="conversationChain_0", target_anchor="memory"),
    ]


async def test_the_model_is_told_what_is_there_and_what_the_plan_leaves_out_falls_away() -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    bench = Bench(model_ops(), credentials(), patterns=library(rows))
    bench.reasoner.patches.append([SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)])
    bench.reasoner.plans = [
        plan(
            nodes=[
                PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="model", existing=True),
                PlannedNode(node_id="conversationChain_0", node_name="conversationChain", purpose="", existing=True),
                PlannedNode(node_id="bufferMemory_1", node_name="bufferMemory", purpose="memory"),
            ]
        )
    ]
    bench.reasoner.verdicts = [Verdict(done=False, category="LOGIC", reason="rude", fix="be kind"), Verdict(done=True)]
    await bench.start(SIMILAR)
    (request,) = bench.reasoner.seen["plan"]
    assert (await bench.state()).plan.current.steps[0].endswith("take over OpenAI, Conversation Chain.")
    assert set(request.pattern.nodes) == {"chatOpenAI_0", "bufferMemory_0", "conversationChain_0"}
    assert request.flow.existing == {}
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    first, second = bench.reasoner.seen["patch"]
    assert set(first.flow.existing) == {"chatOpenAI_0", "conversationChain_0"}
    assert len(first.seed) == 3
    assert second.seed == ()  # by then it is a flow like any other
    assert rows.rows[1].failure_count == 1  # the first try was not right
    (row,) = bench.flowise.flows.values()
    assert nodes_of(json.loads(row.flow_data))["chatOpenAI_0"]["credential"] == OPENAI


async def test_a_plan_that_takes_nothing_over_starts_from_nothing() -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    bench = Bench([], credentials(), patterns=library(rows))
    await bench.start(SIMILAR)
    state = await bench.state()
    assert (state.pattern.id, state.pattern.ops) == (None, [])


@pytest.mark.parametrize(("state", "kept"), [("shown", 1), ("not_shown", 0)])
async def test_p103_a_flow_is_kept_as_a_pattern_only_when_its_criteria_were_shown(state: Any, kept: int) -> None:
    rows = MemoryPatterns()
    made = Bench(ops(), credentials(), patterns=library(rows))
    proof = [Evidence(trial=1, quote="Answer to: Hello")]
    votes = [CriterionVerdict(id="c1", state=state, judged_by="model", evidence=proof)]
    made.reasoner.verdicts = [Verdict(done=True, criteria=votes)]
    await made.start()
    await made.answer(action="approve")
    await made.answer(action="accept")
    assert (await made.state()).outcome == "accepted"
    assert len(rows.rows) == kept


class Seeker(Script):
    """Looks for a pattern by words of its own and starts from the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def plan(self, request: Any) -> Reasoned[Plan]:
        for name, arguments in (
            ("flowise.search_patterns", {"query": ASKED}),
            ("flowise.use_pattern", {"pattern_id": 1}),
        ):
            self.read.append(await request.tools.call(name, arguments))
        return await super().plan(request)


async def test_a_pattern_that_the_planner_finds_by_a_tool_is_the_base_of_the_flow() -> None:
    rows = MemoryPatterns()
    await build(rows, FORM)
    seeker = Seeker()
    seeker.patches = [[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)]]
    bench = Bench([], credentials(), reasoner=seeker, patterns=library(rows))

    question = await bench.start("Something for our riders")
    (request,) = seeker.seen["plan"]
    review = await bench.answer(action="approve")
    await bench.answer(action="accept")

    assert request.pattern is None
    assert "pattern 1 (CHATFLOW)" in seeker.read[0]
    assert "chatOpenAI_0 (chatOpenAI)" in seeker.read[1]
    assert question["data"]["contract"]["steps"][0].startswith("Start from pattern 1")
    assert review["reason"] == "tests_passed"
    state = await bench.state()
    assert (state.pattern.id, state.artifacts["flowise"]["pattern_id"]) == (1, 1)
    assert not any(isinstance(op, AddNode) for op in state.patch.ops)
    (row,) = bench.flowise.flows.values()
    flow = json.loads(row.flow_data)
    assert set(nodes_of(flow)) == {"chatOpenAI_0", "conversationChain_0", "bufferMemory_0"}
    assert len(edges_of(flow)) == 2
    assert nodes_of(flow)["chatOpenAI_0"]["credential"] == OPENAI
    assert rows.rows[1].success_count == 2


async def test_a_pattern_of_another_search_or_owner_cannot_be_used_by_a_tool() -> None:
    rows = MemoryPatterns()
    seeker = Seeker()
    seeker.patches = [ops()]
    bench = Bench([], credentials(), reasoner=seeker, patterns=library(rows))

    await bench.start("Something for our riders")

    assert seeker.read[0] == "No pattern fits."
    assert "has not found a pattern 1" in seeker.read[1]
    state = await bench.state()
    assert (state.pattern.id, state.pattern.ops) == (None, [])
