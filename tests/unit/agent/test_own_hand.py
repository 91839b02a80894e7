"""What a person changes by hand, at the plan and at the result: done as they say, without a model for it."""

from typing import Any

import pytest
from pydantic import JsonValue

from flowise_dev_agent.agent.projection import approved_plan
from flowise_dev_agent.approval.manual_edits import edit_findings, ops_of
from flowise_dev_agent.errors import InvalidAnswerError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, SetParam, compile_ops
from flowise_dev_agent.schemas.interrupts import raised_interrupt
from flowise_dev_agent.schemas.verdict import Verdict
from tests.unit.agent.rig import Bench, plan
from tests.unit.agent.test_plan_binding import planned, value
from tests.unit.agent.test_plan_review import planned as plan_of
from tests.unit.agent.test_update import add_flow, drafts, inputs_of, made_for

MODEL = planned("chatOpenAI_0")
COLD = value("chatOpenAI_0", "temperature", 0.1)
CHAT: list[PatchOp] = [
    AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
    AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
    AddNode(node_name="conversationChain", node_id="conversationChain_0"),
    Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
]


def set_op(param: str, to: Any, node: str = "chatOpenAI_0") -> dict[str, Any]:
    return {"op_type": "SetParam", "node_id": node, "param_name": param, "value": to}


async def updating() -> Bench:
    bench = made_for("update")
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], values=[COLD], credential_requirements=[])]
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    return bench


def counted(bench: Bench) -> tuple[int, int]:
    return len(bench.reasoner.seen["plan"]), len(bench.reasoner.seen["patch"])


async def test_a_plan_is_approved_with_the_persons_own_values() -> None:
    bench = await updating()
    edits = {
        "values": [
            {"node_id": "chatOpenAI_0", "param": "temperature", "value": 0.4},
            {"node_id": "conversationChain_0", "param": "systemMessagePrompt", "value": "Answer in one sentence."},
        ]
    }
    review = await bench.answer(action="approve", edits=edits)
    assert review["type"] == "result_review"
    (draft,) = drafts(bench)
    assert inputs_of(draft, "chatOpenAI_0")["temperature"] == 0.4
    assert inputs_of(draft, "conversationChain_0")["systemMessagePrompt"] == "Answer in one sentence."
    state = await bench.state()
    assert state.plan.agreed is not None
    assert state.plan.agreed.nodes["conversationChain_0"].params == ["systemMessagePrompt", "settings"]
    assert counted(bench) == (1, 1)


async def test_ops_at_the_result_are_written_and_tested_and_no_model_plans_or_writes_ops() -> None:
    bench = await updating()
    await bench.answer(action="approve")
    before, asked = counted(bench), len(bench.flowise.asked)
    bench.reasoner.verdicts = [Verdict(done=False, category="INCOMPLETE", reason="it is too warm", fix="cool it")]
    review = await bench.answer(action="iterate", ops=[set_op("temperature", 0.9), set_op("topP", 0.5)])
    assert review["type"] == "result_review"
    (draft,) = drafts(bench)
    # The plan said 0.1; the person's last word counts, and a judge does not undo it.
    assert {name: inputs_of(draft, "chatOpenAI_0")[name] for name in ("temperature", "topP")} == {
        "temperature": 0.9,
        "topP": 0.5,
    }
    assert counted(bench) == before
    assert len(bench.flowise.asked) > asked
    state = await bench.state()
    assert state.iteration == 1
    assert {one.param: one.value for one in state.plan.current.values} == {"temperature": 0.9, "topP": 0.5}


async def test_a_node_can_be_replaced_by_hand_and_a_remark_afterwards_is_planned() -> None:
    bench = await updating()
    await bench.answer(action="approve")
    swap = {
        "op_type": "ReplaceNode",
        "node_id": "bufferMemory_0",
        "node_name": "bufferWindowMemory",
        "new_node_id": "bufferWindowMemory_0",
    }
    review = await bench.answer(action="iterate", ops=[swap])
    assert review["type"] == "result_review", review
    (draft,) = drafts(bench)
    assert "bufferWindowMemory_0" in draft.flow_data
    assert '"id":"bufferMemory_0"' not in draft.flow_data
    plans = counted(bench)[0]
    await bench.answer(action="iterate", feedback="warmer, please")
    assert counted(bench)[0] == plans + 1
    assert not (await bench.state()).patch.own


async def test_ops_that_cannot_be_written_are_asked_about_and_no_model_mends_them() -> None:
    bench = await updating()
    await bench.answer(action="approve")
    before = counted(bench)
    asked = await bench.answer(action="iterate", ops=[set_op("temperature", "cold")])
    assert (asked["type"], asked["reason"]) == ("patch_review", "repeated_finding")
    assert "Your change cannot be written" in asked["message"]
    assert counted(bench) == before


async def test_an_added_model_asks_for_its_credential_first() -> None:
    bench = await updating()
    await bench.answer(action="approve")
    swap = {"op_type": "ReplaceNode", "node_id": "chatOpenAI_0", "node_name": "chatAnthropic"}
    asked = await bench.answer(action="iterate", ops=[swap])
    assert asked["type"] == "credential_check"
    assert [one["type"] for one in asked["data"]["credentials"]] == ["anthropicApi"]
    review = await bench.answer(action="skip")
    assert review["type"] == "result_review"
    assert '"chatAnthropic"' in drafts(bench)[0].flow_data


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "iterate"},
        {"action": "iterate", "feedback": "warmer", "ops": [set_op("temperature", 1)]},
        {"action": "iterate", "ops": []},
        {"action": "iterate", "ops": [{"op_type": "Explode"}]},
    ],
)
async def test_an_iteration_says_one_thing_and_its_ops_can_be_read(answer: dict[str, Any]) -> None:
    bench = await updating()
    await bench.answer(action="approve")
    with pytest.raises(InvalidAnswerError):
        await bench.answer(**answer)


def codes(plan_: Any, answer: dict[str, Any], base: GraphIR, catalogue: NodeStore) -> list[tuple[str, str]]:
    return [(one.code, one.where) for one in edit_findings(plan_, answer, base, catalogue.schemas)]


def test_edits_of_a_plan_are_checked_before_they_are_taken(catalogue: NodeStore) -> None:
    made = plan_of("conversationChain_0", "chatOpenAI_0", "bufferMemory_0")

    def edits(*removals: str, **values: Any) -> list[tuple[str, str]]:
        given = [{"node_id": "chatOpenAI_0", "param": name, "value": to} for name, to in values.items()]
        return codes(made, {"edits": {"values": given, "removals": removals}}, GraphIR.empty(), catalogue)

    assert edits(temperature=0.3) == []
    assert edits(temperature="cold") == [("NOT_A_NUMBER", "chatOpenAI_0")]
    assert edits(temprature=1) == [("UNKNOWN_PARAM", "chatOpenAI_0")]
    assert edits("nothing_0") == [("UNKNOWN_NODE", "nothing_0")]
    assert edits("chatOpenAI_0") == [("INPUT_NOT_FED", "conversationChain_0")]

    # What the plan lacked before the edit is not the edit's fault.
    unfed = plan_of("conversationChain_0", "bufferMemory_0")
    given = [{"node_id": "bufferMemory_0", "param": "memoryKey", "value": "talk"}]
    assert codes(unfed, {"edits": {"values": given}}, GraphIR.empty(), catalogue) == []


def test_ops_for_a_result_are_checked_before_they_are_taken(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    assert codes(None, {"ops": [set_op("temperature", 0.3)]}, base, catalogue) == []
    assert codes(None, {"ops": [set_op("temperature", "cold")]}, base, catalogue) == [("NOT_A_NUMBER", "chatOpenAI_0")]
    without = {"op_type": "RemoveNode", "node_id": "chatOpenAI_0"}
    found = codes(None, {"ops": [without]}, base, catalogue)
    assert "conversationChain_0" in {where for _, where in found}


async def test_the_approved_plan_is_kept_as_the_person_changed_it() -> None:
    bench = await updating()
    interrupt = raised_interrupt((await bench.open_interrupt()).value, "")
    answer: dict[str, JsonValue] = {
        "action": "approve",
        "edits": {"values": [{"node_id": "chatOpenAI_0", "param": "temperature", "value": 0.4}], "removals": []},
    }
    kept = approved_plan(interrupt, answer)
    assert kept is not None
    assert kept.contract is not None
    assert [(one.param, one.value) for one in kept.contract.values] == [("temperature", 0.4)]
    assert "0.4" in kept.text
    assert "): 0.1" not in kept.text


def test_ops_of_an_answer_are_read_as_ops() -> None:
    assert ops_of({"action": "approve", "edits": None}) == []
    assert ops_of({"ops": [set_op("topP", 1)]}) == [SetParam(node_id="chatOpenAI_0", param_name="topP", value=1)]


async def test_words_beside_ops_are_planned_for_the_flow_that_the_ops_make() -> None:
    bench = made_for("update")
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], values=[COLD], credential_requirements=[])]
    row = await add_flow(bench)
    asked = await bench.start("make it colder", target=row.id, operation="update", ops=[set_op("topP", 0.5)])
    assert (asked["type"], counted(bench)) == ("plan_approval", (0, 0))
    asked = await bench.answer(action="approve")
    # The draft has the ops, and the words are planned on it; the tests come after both.
    assert (asked["type"], counted(bench)) == ("plan_approval", (1, 0))
    (draft,) = drafts(bench)
    assert inputs_of(draft, "chatOpenAI_0")["topP"] == 0.5
    (request,) = bench.reasoner.seen["plan"]
    assert request.feedback == "make it colder"
    assert "0.5" in str(request.flow_summary)
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    (draft,) = drafts(bench)
    assert {name: inputs_of(draft, "chatOpenAI_0")[name] for name in ("temperature", "topP")} == {
        "temperature": 0.1,
        "topP": 0.5,
    }
    await bench.answer(action="accept")
    assert inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")["topP"] == 0.5
