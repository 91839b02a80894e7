"""What the agent hands to a prompt: flows of the marketplace as ops, and titles of steps."""

import json
from typing import Any

import pytest

from flowise_dev_agent.approval.ops import untitled
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, PatchOp, Schemas, compile_ops, decompile
from flowise_dev_agent.planning.prompt_context import like_flows, ops_text
from flowise_dev_agent.schemas.plan import PlannedNode

from .rig import Bench, plan

#: Those of the marketplace's "Human In The Loop".
TYPES = ("startAgentflow", "llmAgentflow", "humanInputAgentflow", "agentAgentflow", "loopAgentflow", "toolAgentflow")
CREDENTIAL = "9b6f0c1e-0000-4000-8000-000000000001"


def planned(*names: str) -> list[PlannedNode]:
    return [PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x") for name in names]


def flow_of(schemas: Schemas, *ops: PatchOp) -> str:
    return compile_ops(GraphIR.empty(), ops, schemas, credentials={"openAIApi": CREDENTIAL}).flow_data


def step(**params: Any) -> list[PatchOp]:
    return [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(
            node_name="llmAgentflow",
            node_id="llmAgentflow_0",
            label="Draft",
            params={"llmModel": "chatOpenAI", "llmModelConfig": {"modelName": "gpt-4o"}, **params},
        ),
        Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"),
        BindCredential(node_id="llmAgentflow_0", credential_type="openAIApi", path="llmModelConfig"),
    ]


def test_a_flow_becomes_ops_without_ids_addresses_positions_and_long_texts(schemas: Schemas) -> None:
    message = f"Ask https://user:pw@intern.example/{'x' * 20} first. {'Be kind. ' * 60}"
    config = {"modelName": "gpt-4o", "basepath": "https://intern.example/v1"}
    ops = step(llmMessages=[{"role": "system", "content": message}], llmModelConfig=config)

    text = ops_text(decompile(flow_of(schemas, *ops), schemas))

    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["op_type"] for line in lines] == ["AddNode", "AddNode", "Connect"]
    assert lines[1]["label"] == "Draft"
    assert lines[1]["params"]["llmModelConfig"]["modelName"] == "gpt-4o"
    assert "intern.example" not in text
    assert CREDENTIAL not in text
    assert len(lines[1]["params"]["llmMessages"][0]["content"]) <= 160
    assert "position" not in text


async def test_the_op_writer_of_a_new_flow_sees_flows_of_the_same_node_types(schemas: Schemas) -> None:
    rig = Bench([], CredentialStore([]))
    rig.knowledge.template_flows["Human In The Loop"] = flow_of(schemas, *step())
    wanted = plan(operation="create", nodes=planned(*TYPES))
    shown = await like_flows(rig.knowledge, wanted, await rig.knowledge.nodes())
    assert [text.partition("\n")[0] for text in shown] == ["Human In The Loop"]


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "update", "nodes": planned(*TYPES)},
        {"nodes": planned(*TYPES[:4])},
        {"nodes": planned("chatOpenAI", "toolAgent", "bufferMemory", "calculator", "serpAPI", "arxiv", "redisCache")},
    ],
    ids=["an update", "a small plan", "a plan like none"],
)
async def test_other_op_writers_see_no_marketplace_flow(change: dict[str, Any], schemas: Schemas) -> None:
    rig = Bench([], CredentialStore([]))
    rig.knowledge.template_flows["Human In The Loop"] = flow_of(schemas, *step())
    assert await like_flows(rig.knowledge, plan(**change), await rig.knowledge.nodes()) == ()


async def test_a_marketplace_that_cannot_be_read_is_no_failure() -> None:
    rig = Bench([], CredentialStore([]))
    wanted = plan(operation="create", nodes=planned(*TYPES))
    assert await like_flows(rig.knowledge, wanted, await rig.knowledge.nodes()) == ()


async def test_a_like_flow_that_is_too_long_is_left_out(schemas: Schemas) -> None:
    rig = Bench([], CredentialStore([]))
    many = [AddNode(node_name="llmAgentflow", node_id=f"llmAgentflow_{number}") for number in range(1, 80)]
    rig.knowledge.template_flows["Human In The Loop"] = flow_of(schemas, *step(), *many)
    wanted = plan(operation="create", nodes=planned(*TYPES))
    assert await like_flows(rig.knowledge, wanted, await rig.knowledge.nodes()) == ()


def test_a_step_that_is_added_without_a_title_is_told() -> None:
    bare = AddNode(node_name="llmAgentflow", node_id="llmAgentflow_1")
    found = untitled([*step(), bare])
    assert [(item.code, item.severity, item.where, item.op_index) for item in found] == [
        ("STEP_WITHOUT_TITLE", "warning", "llmAgentflow_1", 4)
    ]
