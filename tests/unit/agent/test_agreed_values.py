"""Values that repairs change after the approval: shown in the result, and asked for where the plan has them."""

from typing import Any

import pytest

from flowise_dev_agent.approval.agreed_values import changed_values, with_agreed_values
from flowise_dev_agent.patch import GraphIR, SetParam
from flowise_dev_agent.schemas.plan import AmendAnswer, PlannedValue
from flowise_dev_agent.schemas.verdict import Verdict
from tests.unit.agent.rig import plan
from tests.unit.agent.test_graph import ops
from tests.unit.agent.test_judgement import bench

RUDE = Verdict(done=False, category="LOGIC", reason="It is rude.", fix="Be kind.")


def at(param: str, value: Any, mode: Any = "set", node: str = "chatOpenAI_0") -> PlannedValue:
    return PlannedValue(node_id=node, param=param, value=value, mode=mode)


def warm(value: float) -> SetParam:
    return SetParam(node_id="chatOpenAI_0", param_name="temperature", value=value)


async def test_a_value_that_a_repair_changes_is_shown_with_what_it_was_changed_for() -> None:
    made = bench()
    made.reasoner.verdicts = [RUDE, Verdict(done=True)]
    made.reasoner.patches = [ops(), [warm(0.1)]]
    await made.start()
    review = await made.answer(action="approve")
    (shown,) = review["data"]["repaired"]
    assert (shown["node"], shown["field"], shown["after"]) == ("OpenAI", "Temperature", "0.1")
    assert shown["reason"] == "It is rude."
    assert "Temperature: " in review["message"]


async def test_p102_a_secret_in_the_words_of_the_judge_is_in_nothing_that_the_session_keeps_or_shows() -> None:
    made, secret = bench(), "ghp_Kq2LmP4vT7wRb1NcY5sHd8JfGzX9aE3uQo45"
    made.reasoner.verdicts = [RUDE.model_copy(update={"reason": f"It tells {secret}."}), Verdict(done=True)]
    made.reasoner.patches = [ops(), [warm(0.1)]]
    await made.start()
    review = await made.answer(action="approve")
    assert "It tells [secret]." in review["message"]
    assert secret not in f"{review} {await made.values()}"


async def test_a_repair_that_changes_an_approved_value_asks() -> None:
    made = bench()
    made.reasoner.verdicts = [RUDE, Verdict(done=True)]
    made.reasoner.plans = [plan(values=[at("temperature", 0.7)]), plan(values=[at("temperature", 0.1)])]
    made.reasoner.patches = [ops(), []]
    await made.start()
    asked = await made.answer(action="approve")
    assert (asked["type"], asked["reason"]) == ("plan_approval", "plan_revised")
    assert "0.7" in asked["data"]["plan"]
    review = await made.answer(action="approve")
    assert (review["type"], review["data"]["repaired"]) == ("result_review", [])


async def test_an_approved_value_that_a_repair_leaves_out_stays() -> None:
    made = bench()
    made.reasoner.verdicts = [RUDE, Verdict(done=True)]
    made.reasoner.plans = [plan(values=[at("temperature", 0.7)]), plan()]
    made.reasoner.patches = [ops(), [warm(0.1)], []]
    await made.start()
    review = await made.answer(action="approve")
    assert (review["type"], review["data"]["repaired"]) == ("result_review", [])
    state = await made.state()
    assert ("temperature", 0.7) in [(one.param, one.value) for one in state.plan.current.values]


async def test_an_amendment_that_changes_an_approved_value_asks() -> None:
    made = bench()
    made.reasoner.plans = [plan(values=[at("temperature", 0.7)])]
    made.reasoner.patches = [AmendAnswer(values=[at("temperature", 0.1)], reason="It has to be exact."), ops()]
    await made.start()
    asked = await made.answer(action="approve")
    assert asked["type"] == "plan_approval"
    assert "It has to be exact." in asked["message"]


async def test_an_amendment_takes_a_value_back_and_asks() -> None:
    made = bench()
    made.reasoner.plans = [plan(values=[at("temperature", 0.7)])]
    made.reasoner.patches = [AmendAnswer(values=[at("temperature", None)], reason="The model takes none."), ops()]
    await made.start()
    asked = await made.answer(action="approve")
    assert asked["type"] == "plan_approval"
    assert "temperature" not in [one["param"] for one in asked["data"]["contract"]["values"]]
    assert (await made.answer(action="approve"))["type"] == "result_review"


async def test_what_the_person_asks_for_at_the_result_is_agreed_to() -> None:
    made = bench()
    made.reasoner.plans = [plan(values=[at("temperature", 0.7)]), plan(values=[at("temperature", 0.1)])]
    made.reasoner.patches = [ops(), []]
    await made.start()
    await made.answer(action="approve")
    review = await made.answer(action="iterate", feedback="be more precise")
    assert (review["type"], review["data"]["repaired"]) == ("result_review", [])
    assert (await made.state()).plan.agreed_values == [at("temperature", 0.1)]


ROWS = [{"role": "system", "content": "Be kind."}]


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        (at("rows[0].content", "Be rude."), True),
        (at("rows[0].content", "Be kind."), False),
        (at("rows", [*ROWS, {"role": "user", "content": "Hi"}]), True),
        (at("rows", [{**ROWS[0], "name": "x"}]), False),
        (at("other", "x"), False),
        (at("rows", ROWS, node="chatOpenAI_1"), False),
        (at("rows[0].content", "Be brief.", "append"), True),
    ],
)
def test_an_approved_value_is_compared_with_the_part_or_whole_that_a_plan_sets(
    new: PlannedValue, changes: bool
) -> None:
    assert bool(changed_values(plan(values=[new]), [at("rows", ROWS)], GraphIR.empty())) is changes


def test_only_what_the_flow_holds_of_the_approved_values_is_kept() -> None:
    inputs = {"temperature": "0.7"}
    node = {"id": "chatOpenAI_0", "data": {"id": "chatOpenAI_0", "name": "chatOpenAI", "inputs": inputs}}
    base = GraphIR({"nodes": [node], "edges": []})  # type: ignore[typeddict-item,list-item]
    agreed = [at("temperature", 0.7), at("topP", 1), at("text", "more", "append")]
    assert with_agreed_values(plan(), agreed, base).values == [at("temperature", 0.7)]
    assert with_agreed_values(plan(removals=["chatOpenAI_0"]), agreed, base).values == []
