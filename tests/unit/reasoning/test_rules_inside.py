"""Changes of agentflows by rules: the models and the instructions inside their nodes."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import BindCredential, PatchOp, SetLabel, SetParam
from flowise_dev_agent.reasoning.contracts import AgentTools, ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

ONE = {"llmAgentflow_0.llmModelConfig": "chatOpenAI"}
TWO = {**ONE, "agentAgentflow_0.agentModelConfig": "chatAnthropic"}
TEXTS = {"llmAgentflow_0.llmMessages[0].content": "<p>You translate.</p>"}


SEARCH = {
    "agentSelectedTool": "braveSearchAPI",
    "agentSelectedToolRequiresHumanInput": True,
    "agentSelectedToolConfig": {"agentSelectedTool": "braveSearchAPI", "FLOWISE_CREDENTIAL_ID": "c", "theirs": [1]},
}
CALCULATOR = {"agentSelectedTool": "calculator", "agentSelectedToolConfig": {"agentSelectedTool": "calculator"}}
HELPER = AgentTools("agentAgentflow_0", "Helper", "agentTools", (SEARCH,))
WRITER = AgentTools("agentAgentflow_1", "Writer", "agentTools", (CALCULATOR,))


async def done(
    wish: str,
    nodes: NodeStore,
    inside: dict[str, str],
    feedback: str | None = None,
    agents: tuple[AgentTools, ...] = (),
) -> tuple[PlanContract, list[PatchOp]]:
    """The plan and the ops for a wish, or those for a later one."""
    rules = DeterministicReasoner()
    flow: dict[str, Any] = {
        "requirement": wish,
        "nodes": nodes,
        "agents": agents,
        "existing": {"startAgentflow_0": "startAgentflow"}
        | {agent.node_id: "agentAgentflow" for agent in agents}
        | {place.partition(".")[0]: place.partition("_")[0] for place in inside},
        "inside": inside,
        "texts": TEXTS,
    }
    intent = (await rules.classify(ClassifyRequest(requirement=wish, forced="update"))).value
    asked = {"intent": intent, "credential_types": {"anthropicApi": 1, "openAIApi": 1}, "flow_summary": "a flow"}
    contract = (await rules.plan(PlanRequest(**flow, **asked))).value
    if feedback:
        contract = (await rules.plan(PlanRequest(**flow, **asked, previous=contract, feedback=feedback))).value
    if contract.declined:
        return contract, []
    return contract, (await rules.patch(PatchRequest(**flow, plan=contract))).value.ops


async def test_values_of_the_model_inside_a_node_are_set_by_their_path(catalogue: NodeStore) -> None:
    contract, ops = await done("Set the temperature to 0.2 and use gpt-4o", catalogue, ONE)
    assert (contract.flow_kind, [node.node_id for node in contract.nodes]) == ("AGENTFLOW", ["llmAgentflow_0"])
    assert {(op.param_name, op.value) for op in ops if isinstance(op, SetParam)} == {
        ("llmModelConfig.temperature", 0.2),
        ("llmModelConfig.modelName", "gpt-4o"),
    }


async def test_a_value_goes_to_every_model_of_the_flow(catalogue: NodeStore) -> None:
    _, ops = await done("Setze die Temperatur auf 0.1", catalogue, TWO)
    assert [(op.node_id, op.param_name) for op in ops if isinstance(op, SetParam)] == [
        ("llmAgentflow_0", "llmModelConfig.temperature"),
        ("agentAgentflow_0", "agentModelConfig.temperature"),
    ]


async def test_another_provider_takes_the_place_of_a_model_with_its_credential(catalogue: NodeStore) -> None:
    contract, ops = await done("Use Claude instead of GPT in this flow", catalogue, ONE)
    assert contract.credential_requirements == ["anthropicApi"]
    assert SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatAnthropic") in ops
    (binding,) = [op for op in ops if isinstance(op, BindCredential)]
    assert (binding.path, binding.credential_type, binding.credential_id) == ("llmModelConfig", "anthropicApi", "")


async def test_a_way_to_behave_is_added_to_the_instructions(catalogue: NodeStore) -> None:
    contract, _ = await done("Make it answer like a pirate", catalogue, ONE)
    (value,) = contract.values
    assert (value.param, value.mode) == ("llmMessages[0].content", "append")
    assert value.value == "<p>Answer like a pirate</p>"


async def test_a_later_wish_keeps_the_first(catalogue: NodeStore) -> None:
    _, ops = await done("Set the temperature to 0.2", catalogue, ONE, feedback="Rather a temperature of 0.4")
    assert [op.value for op in ops if isinstance(op, SetParam)][-1] == 0.4


async def test_a_node_is_renamed_by_its_id(catalogue: NodeStore) -> None:
    contract, ops = await done("Rename agentAgentflow_0 to Boss", catalogue, TWO)
    assert ops == [SetLabel(node_id="agentAgentflow_0", label="Boss")]
    assert [node.node_id for node in contract.nodes] == ["agentAgentflow_0"]


@pytest.mark.parametrize(
    "wish",
    ["Remove the agent at the end", "Remove the calculator and add memory", "Add a buffer memory"],
)
async def test_half_of_a_wish_is_not_carried_out(wish: str, catalogue: NodeStore) -> None:
    contract, _ = await done(wish, catalogue, TWO, agents=(WRITER,))
    assert contract.declined
    assert "the tools of agents" in contract.declined


def tools(ops: list[PatchOp]) -> dict[str, list[str]]:
    """The tools that each agent gets."""
    lists = {op.node_id: op.value for op in ops if isinstance(op, SetParam) and op.param_name == "agentTools"}
    return {node_id: [row["agentSelectedTool"] for row in rows] for node_id, rows in lists.items()}


async def test_the_agent_gets_a_tool_and_keeps_what_it_has_as_it_is(catalogue: NodeStore) -> None:
    contract, ops = await done("Give the agent a calculator", catalogue, TWO, agents=(HELPER,))
    (op,) = [op for op in ops if isinstance(op, SetParam)]
    assert (op.node_id, op.param_name) == ("agentAgentflow_0", "agentTools")
    assert op.value[0] == SEARCH
    assert op.value[1]["agentSelectedTool"] == "calculator"
    assert contract.steps[0] == "Give Helper (`agentAgentflow_0`) the tool Calculator."
    assert [node.node_id for node in contract.nodes] == ["agentAgentflow_0"]


async def test_a_new_tool_brings_its_credential_and_goes_to_the_agent_that_is_named(catalogue: NodeStore) -> None:
    contract, ops = await done("Add a SerpAPI search to the Writer", catalogue, TWO, agents=(HELPER, WRITER))
    assert contract.credential_requirements == ["serpApi"]
    assert tools(ops) == {"agentAgentflow_1": ["calculator", "serpAPI"]}
    (binding,) = [op for op in ops if isinstance(op, BindCredential)]
    assert (binding.node_id, binding.path) == ("agentAgentflow_1", "agentTools[1].agentSelectedToolConfig")


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ("Remove the calculator", {"agentAgentflow_1": []}),
        ("Entferne den Taschenrechner", {"agentAgentflow_1": []}),
        ("Take away the Brave search from Helper", {"agentAgentflow_0": []}),
        ("Take the Brave search away from Helper", {"agentAgentflow_0": []}),
        ("Replace the calculator by the current date and time", {"agentAgentflow_1": ["currentDateTime"]}),
        (
            "Give all agents the current date and time",
            {
                "agentAgentflow_0": ["braveSearchAPI", "currentDateTime"],
                "agentAgentflow_1": ["calculator", "currentDateTime"],
            },
        ),
        (
            "Set the temperature to 0.2 and give Helper a calculator",
            {"agentAgentflow_0": ["braveSearchAPI", "calculator"]},
        ),
    ],
)
async def test_tools_are_taken_replaced_and_given_to_those_who_are_meant(
    wish: str, wanted: dict[str, list[str]], catalogue: NodeStore
) -> None:
    contract, ops = await done(wish, catalogue, TWO, agents=(HELPER, WRITER))
    assert contract.declined is None
    assert tools(ops) == wanted
    others = {op.param_name for op in ops if isinstance(op, SetParam)} - {"agentTools"}
    assert bool(others) is ("temperature" in wish)


async def test_a_later_wish_about_tools_builds_on_the_first(catalogue: NodeStore) -> None:
    _, ops = await done(
        "Give the agent a calculator", catalogue, TWO, feedback="and the current date and time", agents=(HELPER,)
    )
    assert tools(ops) == {"agentAgentflow_0": ["braveSearchAPI", "calculator", "currentDateTime"]}


@pytest.mark.parametrize(
    ("wish", "agents", "why"),
    [
        ("Give the agent a calculator", (), "No agent of this flow can use tools"),
        ("Give the agent the current date and time", (HELPER, WRITER), "Writer (agentAgentflow_1)"),
        ("Remove the calculator", (HELPER,), "No agent of this flow has this tool: Calculator"),
        ("Give the agent a calculator", (WRITER,), "like that already"),
    ],
)
async def test_what_cannot_be_done_with_tools_is_said(
    wish: str, agents: tuple[AgentTools, ...], why: str, catalogue: NodeStore
) -> None:
    contract, _ = await done(wish, catalogue, ONE, agents=agents)
    assert contract.declined
    assert why in contract.declined
