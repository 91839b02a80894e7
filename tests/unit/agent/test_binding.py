"""Ids of credentials in ops: on nodes, and on the models and tools inside agentflow nodes."""

from collections.abc import Sequence
from typing import Any

import pytest

from flowise_dev_agent.agent.domains.binding import bind_credentials
from flowise_dev_agent.errors import FlowiseAuthError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    SetParam,
    compile_ops,
    errors,
    validate_flow,
)
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops

BRAVE = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c003"
IDS = {"openAIApi": OPENAI, "braveSearchApi": BRAVE}


def bindings(result: Sequence[PatchOp]) -> set[tuple[str, str, str]]:
    """(node, path, id) of each."""
    return {(op.node_id, op.path, op.credential_id) for op in result if isinstance(op, BindCredential)}


def agent(**params: Any) -> AddNode:
    return AddNode(
        node_name="agentAgentflow", node_id="agentAgentflow_0", params={"agentModel": "chatOpenAI", **params}
    )


SEARCH: Any = [{"agentSelectedTool": "calculator"}, {"agentSelectedTool": "braveSearchAPI"}]
INSIDE = {
    ("agentAgentflow_0", "agentModelConfig", OPENAI),
    ("agentAgentflow_0", "agentTools[1].agentSelectedToolConfig", BRAVE),
}


@pytest.mark.parametrize(
    "given",
    [
        [agent(agentTools=SEARCH)],
        [agent(), SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=SEARCH)],
        [agent(agentTools='[{"agentSelectedTool": "calculator"}, {"agentSelectedTool": "braveSearchAPI"}]')],
        [agent(agentTools=SEARCH), BindCredential(node_id="agentAgentflow_0", credential_type="openAIApi")],
        [agent(agentTools=SEARCH), BindCredential(node_id="agentAgentflow_0")],
    ],
    ids=["no op", "tools by SetParam", "tools as text", "an op without a path", "an op without path and type"],
)
def test_p10_models_and_tools_inside_a_node_are_bound_where_they_stand(
    catalogue: NodeStore, given: list[PatchOp]
) -> None:
    result = bind_credentials(given, catalogue, IDS)

    assert bindings(result) == INSIDE
    start = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        Connect(source_node_id="startAgentflow_0", target_node_id="agentAgentflow_0"),
    ]
    flow = compile_ops(GraphIR.empty(), [*start, *result], catalogue.schemas).flow_data
    types = {id_: type_ for type_, id_ in IDS.items()}
    assert errors(validate_flow(flow, schemas=catalogue.schemas, credentials=types, kind="AGENTFLOW")) == []


def test_a_path_keeps_its_id_and_is_bound_once(catalogue: NodeStore) -> None:
    own = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c009"
    op = BindCredential(node_id="agentAgentflow_0", credential_id=own, path="agentModelConfig")

    assert bindings(bind_credentials([agent(), op], catalogue, IDS)) == {("agentAgentflow_0", "agentModelConfig", own)}


def test_another_model_in_a_node_of_the_base_is_bound(catalogue: NodeStore) -> None:
    change = SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatOpenAI")

    result = bind_credentials([change], catalogue, IDS, existing={"llmAgentflow_0": "llmAgentflow"})

    assert bindings(result) == {("llmAgentflow_0", "llmModelConfig", OPENAI)}


def test_nodes_of_the_base_keep_theirs_and_those_of_a_seed_get_one(catalogue: NodeStore) -> None:
    change = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)
    seed = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0")]
    existing = {"chatOpenAI_0": "chatOpenAI"}

    assert bindings(bind_credentials([change], catalogue, IDS, existing=existing)) == set()
    assert bindings(bind_credentials([change], catalogue, IDS, existing=existing, seed=seed)) == {
        ("chatOpenAI_0", "", OPENAI)
    }


def test_what_has_no_chosen_credential_stays_unresolved(catalogue: NodeStore) -> None:
    asked = BindCredential(node_id="agentAgentflow_0", credential_type="braveSearchApi")

    assert bindings(bind_credentials([agent(agentTools=SEARCH), asked], catalogue, {})) == {
        ("agentAgentflow_0", "agentTools[1].agentSelectedToolConfig", "")
    }


TOOL = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c777"
CUSTOM_TOOL: list[PatchOp] = [
    *ops()[:3],
    AddNode(node_name="toolAgent", node_id="toolAgent_0"),
    AddNode(
        node_name="customTool", node_id="customTool_0", params={"selectedTool": "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c777"}
    ),
]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([{"id": TOOL, "name": "weather"}], False),
        ([{"id": "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c778", "name": "weather"}], True),
        (FlowiseAuthError("No permission."), False),
    ],
    ids=["known", "unknown", "may not be listed"],
)
async def test_p27_ids_of_custom_tools_are_held_against_the_instance(answer: Any, found: bool) -> None:
    bench = Bench(ops(), credentials(OPENAI))
    store = bench.knowledge.store
    bench.flowise.tools = answer
    capability = bench.capability
    with_tool = compile_ops(GraphIR.empty(), CUSTOM_TOOL, store.schemas).flow_data
    without = compile_ops(GraphIR.empty(), CUSTOM_TOOL[:-1], store.schemas).flow_data

    findings = await capability.validate(bench.context(), with_tool, "CHATFLOW")
    await capability.validate(bench.context(), without, "CHATFLOW")

    assert ("UNKNOWN_TOOL" in {finding.code for finding in findings}) is found
    assert bench.flowise.tool_lists == 1


async def test_a_type_that_only_the_base_knows_is_a_warning() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    flow = compile_ops(GraphIR.empty(), ops(), bench.knowledge.store.schemas).flow_data.replace(
        '"name":"bufferMemory"', '"name":"communityMemory"'
    )

    async def severity(base: str | None) -> dict[str, str]:
        findings = await bench.capability.validate(bench.context(), flow, "CHATFLOW", base)
        return {finding.code: finding.severity for finding in findings if finding.where == "bufferMemory_0"}

    assert "error" in (await severity(None)).values()
    assert "error" not in (await severity(flow)).values()


async def test_planning_is_shown_flows_of_the_marketplace() -> None:
    bench = Bench(ops(), credentials(OPENAI))

    await bench.start("An agent with a calculator tool")

    request = bench.reasoner.seen["plan"][0]
    assert "Tool Agent" in [template.name for template in request.templates]
