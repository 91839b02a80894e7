"""What each prompt shows: everything that the phase needs, and nothing that does not concern it."""

import re
from dataclasses import replace

import pytest
from pydantic import JsonValue

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.contracts.verdict import Trace, TraceStep
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import (
    Intent,
    JudgeRequest,
    PatchRequest,
    PlanContract,
    PlannedNode,
    PlanRequest,
    Trial,
)
from flowise_dev_agent.reasoning.prompts import judge_prompt, patch_prompt, plan_prompt

CREATE = Intent(operation="create", ambiguity=0, title="x")
UPDATE = Intent(operation="update", ambiguity=0, title="x")


def tag(name: str, prompt: str) -> str:
    """The content of a tag, '' without it."""
    return prompt.partition(f"<{name}>\n")[2].partition(f"\n</{name}>")[0]


def fields(request: PlanRequest, *, whole_catalogue: bool = True) -> list[str]:
    """The node types whose fields the changing part of the plan prompt shows."""
    text = tag("node_fields", plan_prompt(request, whole_catalogue=whole_catalogue).user)
    return [line.partition(":")[0] for line in text.splitlines()]


def test_the_planner_sees_the_fields_of_likely_types_once(catalogue: NodeStore) -> None:
    likely = tuple(catalogue.schemas[name] for name in ("pinecone", "chatOpenAI", "cheerioWebScraper"))
    request = PlanRequest(requirement="x", intent=CREATE, nodes=catalogue, candidates=likely)
    assert fields(request) == ["pinecone", "cheerioWebScraper"]
    assert "chatOpenAI: " in plan_prompt(request).system
    assert fields(request, whole_catalogue=False) == ["pinecone", "chatOpenAI", "cheerioWebScraper"]


def test_the_planner_of_a_change_sees_the_fields_of_what_the_flow_consists_of_first(catalogue: NodeStore) -> None:
    request = PlanRequest(
        requirement="x",
        intent=UPDATE,
        nodes=catalogue,
        candidates=tuple(catalogue.schemas.values()),
        existing={"pinecone_0": "pinecone", "llmAgentflow_0": "llmAgentflow"},
        inside={"llmAgentflow_0.llmModelConfig": "chatMistralAI"},
    )
    assert fields(request)[:2] == ["pinecone", "chatMistralAI"]
    assert len(fields(request)) <= 2 + 6


def test_the_judge_sees_which_planned_steps_ran_in_no_trial() -> None:
    steps = [
        PlannedNode(node_id=f"llmAgentflow_{number}", node_name="llmAgentflow", purpose="x") for number in range(2)
    ]
    contract = PlanContract(goal="x", operation="create", flow_name="x", nodes=steps)
    trials = (Trial(question="q", answer="a", passed=True),)
    request = JudgeRequest(requirement="x", plan=contract, trials=trials)
    assert "never_ran" not in judge_prompt(request).user
    seen = replace(request, traces=(Trace(steps=[TraceStep(node_id="llmAgentflow_0")]),))
    assert tag("never_ran", judge_prompt(seen).user) == "llmAgentflow_1: x"


def test_the_fields_in_a_plan_prompt_take_1500_tokens_at_most(catalogue: NodeStore) -> None:
    every = {f"{name}_0": name for name in catalogue.schemas}
    request = PlanRequest(requirement="x", intent=UPDATE, nodes=catalogue, existing=every)
    text = tag("node_fields", plan_prompt(request).user)
    assert 5_000 < len(text) <= 6_000


def test_p93_the_op_writer_sees_what_flowise_warns_of() -> None:
    warning = "Prompt must include {context}"
    raw = {
        "name": "warned",
        "category": "Chains",
        "inputs": [{"name": "prompt", "type": "string", "additionalParams": False, "warning": warning}],
    }
    store = NodeStore({"warned": NodeSchema.from_raw(raw)}, "3.1.4")
    node = PlannedNode(node_id="warned_0", node_name="warned", purpose="x")
    plan = PlanContract(goal="x", operation="create", flow_name="x", nodes=[node])
    prompt = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=store))
    assert f"warning: {warning}" in tag("node_types", prompt.user)


def card_of_start(*values: tuple[str, str], nodes: NodeStore, existing: dict[str, str] | None = None) -> str:
    start = PlannedNode(node_id="startAgentflow_0", node_name="startAgentflow", purpose="x")
    set_to = [PlannedValue(node_id="startAgentflow_0", param=param, value=value) for param, value in values]
    plan = PlanContract(goal="x", operation="create", flow_name="x", nodes=[start], values=set_to)
    request = PatchRequest(requirement="x", plan=plan, nodes=nodes, existing=existing or {})
    return tag("node_types", patch_prompt(request).user)


def test_a_card_leaves_out_what_the_values_of_the_plan_rule_out(catalogue: NodeStore) -> None:
    daily = [("startInputType", "scheduleInput"), ("scheduleFrequency", "daily")]
    card = card_of_start(*daily, nodes=catalogue)
    assert "param scheduleOnTime*" in card
    assert "param startState" in card
    assert not [name for name in ("webhookMethod", "formTitle", "scheduleOnDayOfWeek") if f"param {name}" in card]
    assert "param webhookMethod" in card_of_start(nodes=catalogue)
    there = {"startAgentflow_1": "startAgentflow"}
    assert "param webhookMethod" in card_of_start(*daily, nodes=catalogue, existing=there)


def cards_for(node_name: str, param: str, value: JsonValue, nodes: NodeStore) -> list[str]:
    """The node types whose cards the op writer sees besides that of the planned node."""
    node = PlannedNode(node_id="x_0", node_name=node_name, purpose="x")
    values = [PlannedValue(node_id="x_0", param=param, value=value)]
    plan = PlanContract(goal="x", operation="create", flow_name="x", nodes=[node], values=values)
    prompt = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=nodes))
    return re.findall(r"^### (\w+)", tag("node_types", prompt.user), re.MULTILINE)[1:]


@pytest.mark.parametrize(
    ("node_name", "param", "value", "cards"),
    [
        ("llmAgentflow", "llmModel", "chatOpenAI", ["chatOpenAI"]),
        ("toolAgentflow", "toolAgentflowSelectedTool", "calculator", ["calculator"]),
        ("agentAgentflow", "agentTools", [{"agentSelectedTool": "calculator"}, {}], ["calculator"]),
        ("agentAgentflow", "agentTools[0].agentSelectedTool", "calculator", ["calculator"]),
        ("agentAgentflow", "agentTools[1]", {"agentSelectedTool": "serpAPI"}, ["serpAPI"]),
        ("postgresRecordManager", "database", "postgres", []),
        ("llmAgentflow", "llmModelConfig.modelName", "calculator", []),
        ("llmAgentflow", "llmMessages", [{"role": "system", "content": "calculator"}], []),
    ],
    ids=["model", "tool", "tools", "tool of a row", "row", "database", "model name", "text"],
)
def test_planned_components_bring_their_cards(
    node_name: str, param: str, value: JsonValue, cards: list[str], catalogue: NodeStore
) -> None:
    assert cards_for(node_name, param, value, catalogue) == cards


def test_the_op_writer_sees_no_card_of_a_node_that_goes(catalogue: NodeStore) -> None:
    plan = PlanContract(goal="x", operation="update", flow_name="x", removals=["calculator_0"])
    existing = {"calculator_0": "calculator", "bufferMemory_0": "bufferMemory"}
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue, existing=existing)
    cards = tag("node_types", patch_prompt(request).user)
    assert "### bufferMemory" in cards
    assert "### calculator" not in cards


def test_the_op_reference_has_an_op_with_a_title_and_one_with_a_path(catalogue: NodeStore) -> None:
    plan = PlanContract(goal="x", operation="create", flow_name="x")
    reference = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=catalogue)).system
    assert '"label":"Sort the mail"}' in reference
    assert '"credential_type":"openAIApi","path":"llmModelConfig"}' in reference
