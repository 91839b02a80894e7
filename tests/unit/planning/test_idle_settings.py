"""Settings without effect that the planner chose: a claim about a part rests on what the part asked for."""

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.idle_settings import idle_settings
from flowise_dev_agent.schemas.plan import Criterion, Part, Plan, PlannedNode, PlannedValue
from tests.support.requests import plan_request

WARM = "chatOpenAI_0.temperature"


def planned(catalogue: NodeStore, words: str, model: str = "gpt-5.4-mini", *, alone: bool = False) -> Plan:
    named = [] if alone else ["chatOpenAI_0.modelName"]
    plan = Plan(
        operation="create",
        goal="x",
        flow_name="x",
        nodes=[PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="answers")],
        values=[
            PlannedValue(node_id="chatOpenAI_0", param="modelName", value=model),
            PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.2),
        ],
        parts=[Part(id="p1", quote=words, state="covered", values=[*named, WARM])],
        criteria=[
            Criterion(id="c1", text="Answers stick to the facts.", part="p1", settings=[WARM]),
            Criterion(id="c2", text="It says the hours.", part="p1", tests=["t1"], settings=[WARM]),
        ],
    )
    return idle_settings(PlanContext(plan=plan, request=plan_request(catalogue, requirement=words))).plan


def test_a_setting_without_effect_that_nobody_asked_for_is_no_part_of_the_plan(catalogue: NodeStore) -> None:
    plan = planned(catalogue, "It answers from facts")
    assert [one.param for one in plan.values] == ["modelName"]
    assert plan.parts[0].values == ["chatOpenAI_0.modelName"]
    assert [(one.id, one.settings) for one in plan.criteria] == [("c2", [])]


@pytest.mark.parametrize(
    ("words", "model", "alone"),
    [
        ("with a low temperature", "gpt-5.4-mini", False),
        ("mit niedriger Temperatur", "gpt-5.4-mini", False),
        ("température basse", "gpt-5.4-mini", False),
        ("as sober as it can be", "gpt-5.4-mini", True),
        ("It answers from facts", "gpt-4o-mini", False),
    ],
)
def test_a_setting_that_works_or_that_was_asked_for_stays(
    words: str, model: str, alone: bool, catalogue: NodeStore
) -> None:
    plan = planned(catalogue, words, model, alone=alone)
    assert [one.param for one in plan.values] == ["modelName", "temperature"]
    assert WARM in plan.parts[0].values
    assert [one.id for one in plan.criteria] == ["c1", "c2"]


def test_a_setting_inside_the_settings_of_a_step_goes_too(catalogue: NodeStore) -> None:
    config = {"modelName": "gpt-5.4-mini", "temperature": 0.2, "maxTokens": 300}
    plan = Plan(
        operation="create",
        goal="x",
        flow_name="x",
        flow_kind="AGENTFLOW",
        nodes=[PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose="answers")],
        values=[
            PlannedValue(node_id="llmAgentflow_0", param="llmModel", value="chatOpenAI"),
            PlannedValue(node_id="llmAgentflow_0", param="llmModelConfig", value=config),
        ],
    )
    left = idle_settings(PlanContext(plan=plan, request=plan_request(catalogue, requirement="Facts only"))).plan
    assert left.values[1].value == {"modelName": "gpt-5.4-mini", "maxTokens": 300}
