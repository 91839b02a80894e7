"""The op writer may say that the plan lacks something, or that nothing is to be done; an approval covers no more."""

from typing import Any

import pytest

from flowise_dev_agent.approval.binding import beyond_approval
from flowise_dev_agent.patch import AddNode, Connect, PatchOp, SetParam
from flowise_dev_agent.schemas.plan import (
    AmendAnswer,
    Capability,
    CredentialBinding,
    NodeCapability,
    NothingToChange,
    Part,
    ToolBinding,
)
from flowise_dev_agent.schemas.verdict import Verdict
from tests.unit.agent.rig import Bench, plan
from tests.unit.agent.test_plan_binding import planned, value
from tests.unit.agent.test_update import COLDER, add_flow, drafts, inputs_of, made_for

COLD = value("chatOpenAI_0", "temperature", 0.1)
MODEL = planned("chatOpenAI_0")


def change(name: str, *params: str) -> NodeCapability:
    return NodeCapability(node_name=name, action="change", params=list(params))


AGREED = Capability(
    nodes={
        "a_0": NodeCapability(node_name="a", action="add", params="all"),
        "b_0": change("b", "temperature", "settings"),
        "c_0": NodeCapability(node_name="", action="remove"),
    },
    hosts=["https://api.example.org"],
    credentials=[CredentialBinding(node_id="*", type="openAIApi")],
)


@pytest.mark.parametrize(
    ("wanted", "beyond"),
    [
        (AGREED, None),
        (Capability(nodes={"a_0": change("a", "systemMessage")}), None),
        (Capability(nodes={"b_0": change("b", "settings")}), None),
        (Capability(nodes={"b_0": change("b", "systemMessage")}), "nodes"),
        (Capability(nodes={"b_0": NodeCapability(node_name="b", action="remove")}), "nodes"),
        (Capability(nodes={"a_0": change("z", "settings")}), "nodes"),
        (Capability(nodes={"d_0": change("d")}), "nodes"),
        (Capability(hosts=["https://api.example.org:8443"]), "hosts"),
        (Capability(credentials=[CredentialBinding(node_id="*", type="awsApi")]), "credentials"),
        (Capability(code=["a_0"]), "code"),
        (Capability(tools=[ToolBinding(node_id="a_0", name="requestsGet")]), "tools"),
        (Capability(effects=["document_store"]), "effects"),
    ],
)
def test_p85_an_approval_covers_what_it_named_and_nothing_else(wanted: Capability, beyond: str | None) -> None:
    found = beyond_approval(wanted, AGREED)
    assert (found.model_dump(exclude_defaults=True).keys() if found else None) == ({beyond} if beyond else None)


async def updating(*answers: Any) -> tuple[Bench, str]:
    bench = made_for("update")
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], values=[COLD], credential_requirements=[])]
    bench.reasoner.patches = list(answers)
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    return bench, row.id


async def test_an_amendment_within_the_approval_goes_on_with_the_amended_plan() -> None:
    more = AmendAnswer(values=[COLD], reason="said again")
    bench, _ = await updating(more, list(COLDER))
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert bench.reasoner.seen["patch"][1].plan.values == more.values
    assert inputs_of(drafts(bench)[0], "chatOpenAI_0")["temperature"] == 0.1


async def test_after_an_amendment_nothing_of_the_ops_for_the_former_plan_is_shown() -> None:
    wrong: list[PatchOp] = [SetParam(node_id="chatOpenAI_0", param_name="nosuch", value=1)]
    more = AmendAnswer(values=[COLD], reason="said again")
    bench, _ = await updating(wrong, more, list(COLDER))
    await bench.answer(action="approve")
    [_, second, third] = bench.reasoner.seen["patch"]
    assert (bool(second.findings), bool(second.previous_ops)) == (True, True)
    assert (third.findings, third.previous_ops) == ((), ())


async def test_what_the_person_says_later_is_kept_in_order_for_all_phases() -> None:
    bench, _ = await updating(list(COLDER))
    await bench.answer(action="request_changes", feedback="Colder still.")
    await bench.answer(action="request_changes", feedback="And shorter.")
    assert (bench.reasoner.seen["plan"][-1].later, bench.reasoner.seen["plan"][-1].feedback) == (
        ("Colder still.",),
        "And shorter.",
    )
    await bench.answer(action="approve")
    assert bench.reasoner.seen["patch"][-1].later == ("Colder still.", "And shorter.")
    assert bench.reasoner.seen["judge"][-1].later == ("Colder still.", "And shorter.")
    await bench.answer(action="iterate", feedback="In French.")
    assert bench.reasoner.seen["judge"][-1].later == ("Colder still.", "And shorter.", "In French.")


async def test_words_at_a_stopped_patch_are_kept_too() -> None:
    bench, _ = await updating(AmendAnswer(values=[COLD], reason="again"))
    question = await bench.answer(action="approve")
    assert question["type"] == "patch_review"
    bench.reasoner.patches = [list(COLDER)]
    await bench.answer(action="replan", feedback="Only colder.")
    assert bench.reasoner.seen["plan"][-1].feedback == "Only colder."
    await bench.answer(action="approve")
    assert bench.reasoner.seen["judge"][-1].later == ("Only colder.",)


async def test_an_amendment_beyond_the_approval_goes_to_the_person_with_what_is_added() -> None:
    swap = AmendAnswer(
        nodes=[planned("bufferWindowMemory_0", existing=False)],
        removals=["bufferMemory_0"],
        values=[value("chatOpenAI_0", "basepath", "https://models.example.org/v1")],
        reason="The memory is too long for this model.",
    )
    ops: list[PatchOp] = [
        *COLDER,
        AddNode(node_name="bufferWindowMemory", node_id="bufferWindowMemory_0"),
        Connect(source_node_id="bufferWindowMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
    ]
    bench, _ = await updating(swap, ops)
    question = await bench.answer(action="approve")
    assert (question["type"], question["reason"]) == ("plan_approval", "plan_widened")
    assert "The memory is too long" in question["message"]
    added = question["data"]["added"]
    assert set(added["nodes"]) == {"bufferWindowMemory_0", "bufferMemory_0", "chatOpenAI_0"}
    assert added["hosts"] == ["https://models.example.org"]
    assert question["data"]["contract"]["removals"] == ["bufferMemory_0"]
    assert drafts(bench) == []
    await bench.answer(action="approve")
    assert bench.reasoner.seen["patch"][-1].plan.removals == ["bufferMemory_0"]


async def test_a_planned_node_that_cannot_be_used_is_taken_back_and_the_person_is_asked() -> None:
    tool = planned("calculator_0", existing=False)
    bench = made_for("update")
    bench.reasoner.plans = [
        plan(
            operation="update",
            nodes=[MODEL, tool],
            values=[COLD],
            credential_requirements=[],
            parts=[Part(id="p1", source="requirement", quote="count", state="covered", nodes=["calculator_0"])],
        )
    ]
    bench.reasoner.patches = [AmendAnswer(removals=["calculator_0"], reason="It fits no input."), list(COLDER)]
    row = await add_flow(bench)
    await bench.start("make it colder and let it count", target=row.id)
    question = await bench.answer(action="approve")
    assert (question["type"], question["reason"]) == ("plan_approval", "plan_revised")
    assert "It fits no input." in question["message"]
    contract = question["data"]["contract"]
    assert [node["node_id"] for node in contract["nodes"]] == ["chatOpenAI_0"]
    assert contract["removals"] == []
    assert [part["state"] for part in contract["parts"]] == ["not_possible"]
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"


async def test_amendments_without_end_are_a_finding() -> None:
    more = AmendAnswer(values=[COLD], reason="again")
    bench, _ = await updating(more)
    question = await bench.answer(action="approve")
    assert question["type"] == "patch_review"
    assert [finding["code"] for finding in question["data"]["findings"]] == ["NO_OPS"]


async def test_p96_nothing_to_change_goes_to_the_review_and_nothing_is_written() -> None:
    bench, chatflow_id = await updating(NothingToChange(reason="The temperature is 0.1 already."))
    before = bench.flowise.flows[chatflow_id].flow_data
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("result_review", "nothing_to_change")
    assert "The temperature is 0.1 already." in review["message"]
    assert [option["value"] for option in review["options"]] == ["accept", "iterate"]
    await bench.answer(action="accept")
    assert (await bench.state()).outcome == "accepted"
    assert bench.flowise.flows[chatflow_id].flow_data == before
    assert len(bench.flowise.flows) == 1


async def test_p96_nothing_to_change_after_a_failed_test_keeps_the_draft_as_it_is() -> None:
    bench, chatflow_id = await updating(list(COLDER), NothingToChange(reason="The key is wrong, not the flow."))
    bench.reasoner.verdicts = [Verdict(done=False, category="LOGIC", reason="It fails.", fix="Repair it.")]
    review = await bench.answer(action="approve")
    assert review["reason"] == "tests_failed"
    codes = str(review["texts"])
    assert "interrupt.nothing_changed" not in codes  # the draft has the change
    assert "The key is wrong, not the flow." in review["message"]
    assert [option["value"] for option in review["options"]] == ["accept", "iterate", "rollback"]
    await bench.answer(action="accept")
    assert (await bench.state()).outcome == "accepted"
    assert inputs_of(bench.flowise.flows[chatflow_id], "chatOpenAI_0")["temperature"] == 0.1


async def test_a_revision_beyond_the_approval_is_shown_and_one_within_it_is_not() -> None:
    bench, _ = await updating(list(COLDER))
    await bench.answer(action="approve")
    wider = [COLD, value("chatOpenAI_0", "modelName", "gpt-4.1")]
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], values=wider, credential_requirements=[])]
    question = await bench.answer(action="iterate", feedback="use another model")
    assert (question["type"], question["reason"]) == ("plan_approval", "plan_widened")
    assert question["data"]["added"]["nodes"]["chatOpenAI_0"]["params"] == ["temperature", "modelName", "settings"]
    await bench.answer(action="approve")
    review = await bench.answer(action="iterate", feedback="once more")
    assert review["type"] == "result_review"


async def test_p94_a_planned_removal_that_the_ops_leave_out_is_never_written() -> None:
    bench, _ = await updating(list(COLDER))
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], removals=["bufferMemory_0"], values=[COLD])]
    await bench.answer(action="request_changes", feedback="and no memory")
    question = await bench.answer(action="approve")
    assert question["type"] == "patch_review"
    assert "PLAN_NOT_MET" in {finding["code"] for finding in question["data"]["findings"]}
    assert drafts(bench) == []


async def test_p85_a_revised_plan_that_removes_more_is_shown_again() -> None:
    bench, chatflow_id = await updating(list(COLDER))
    before = bench.flowise.flows[chatflow_id].flow_data
    await bench.answer(action="approve")
    calls = list(bench.flowise.calls)
    wider = plan(
        operation="update", nodes=[MODEL], values=[COLD], removals=["bufferMemory_0"], credential_requirements=[]
    )
    bench.reasoner.plans = [wider]
    question = await bench.answer(action="iterate", feedback="shorter")
    assert (question["type"], question["reason"]) == ("plan_approval", "plan_widened")
    assert question["data"]["added"]["nodes"] == {"bufferMemory_0": {"node_name": "", "action": "remove", "params": []}}
    assert bench.flowise.calls == calls
    assert bench.flowise.flows[chatflow_id].flow_data == before
