"""Ops of a chatflow without a call: where its nodes connect in one way, and its values are all that is to be set."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Connect, Finding, GraphIR, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.ops_by_code import ops_by_code
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.schemas.plan import Approach, OpsAnswer, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.settings import ReasoningSettings
from tests.unit.planning.test_llm_reasoner import ScriptedEngine

CHAT = ("chatOpenAI", "bufferMemory", "conversationChain")
AGENT = ("chatOpenAI", "bufferMemory", "calculator", "currentDateTime", "toolAgent")


def request(catalogue: NodeStore, *names: str, values: tuple[PlannedValue, ...] = (), **more: Any) -> PatchRequest:
    count: dict[str, int] = {}
    nodes: list[PlannedNode] = []
    for name in names:
        number = count[name] = count.get(name, -1) + 1
        nodes.append(PlannedNode(node_id=f"{name}_{number}", node_name=name, purpose="x"))
    fields: dict[str, Any] = {"operation": "create", **more.pop("plan", {})}
    plan = Plan(goal="x", flow_name="x", nodes=nodes, values=list(values), **fields)
    return PatchRequest(requirement="x", plan=plan, nodes=catalogue, **more)


def lines(answer: Any) -> set[tuple[str, str]]:
    return {(op.source_node_id, op.target_node_id) for op in answer if isinstance(op, Connect)}


@pytest.mark.parametrize("names", [CHAT, AGENT])
async def test_a_new_chatflow_that_connects_in_one_way_takes_no_call(
    names: tuple[str, ...], catalogue: NodeStore
) -> None:
    engine = ScriptedEngine({"kind": "nothing_to_change", "reason": "x"})
    model = PlannedValue(node_id="chatOpenAI_0", param="modelName", value="gpt-5.4")
    result = await LlmReasoner(engine, ReasoningSettings()).patch(request(catalogue, *names, values=(model,)))
    assert engine.calls == []
    assert isinstance(result.value, OpsAnswer)
    assert lines(result.value.ops) == {(f"{name}_0", f"{names[-1]}_0") for name in names[:-1]}


def test_a_chatflow_over_a_store_that_is_filled_already_takes_no_call(catalogue: NodeStore) -> None:
    chain = ("chatOpenAI", "openAIEmbeddings", "qdrant", "bufferMemory", "conversationalRetrievalQAChain")
    address = PlannedValue(node_id="qdrant_0", param="qdrantServerUrl", value="https://qdrant.example")
    collection = PlannedValue(node_id="qdrant_0", param="qdrantCollection", value="rules")
    made = ops_by_code(request(catalogue, *chain, values=(address, collection)))
    assert ("qdrant_0", "conversationalRetrievalQAChain_0") in lines(made or [])


def test_a_tool_is_added_to_an_agent_without_a_call(catalogue: NodeStore) -> None:
    made = ops_by_code(request(catalogue, *AGENT))
    assert made
    base = compile_ops(GraphIR.empty(), made, catalogue.schemas).graph
    wanted = request(catalogue, "customTool", plan={"operation": "update"}, flow=GraphView(base))
    assert ops_by_code(wanted) is None  # which tool of the server it is, no plan says
    search = PlannedNode(node_id="serpAPI_0", node_name="serpAPI", purpose="search")
    agent = PlannedNode(node_id="toolAgent_0", node_name="toolAgent", purpose="gets it", existing=True)
    plan = Plan(goal="x", flow_name="x", operation="update", nodes=[search, agent])
    found = ops_by_code(PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=GraphView(base)))
    assert found
    assert lines(found) == {("serpAPI_0", "toolAgent_0")}


TWO = ("chatOpenAI", "chatOpenAI", "bufferMemory", "conversationChain")
FINDING = Finding(code="X", severity="error", detail="x")


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (TWO, {}),
        (("chatOpenAI", "conversationChain"), {}),
        ((*CHAT, "calculator"), {}),
        (("chatOpenAI", "llmChain", "promptTemplate"), {}),
        (("groqChat", "bufferMemory", "conversationChain"), {}),
        (CHAT, {"findings": (FINDING,)}),
        (CHAT, {"plan": {"approaches": [Approach(label="Small", description="x")]}}),
        (CHAT, {"verdict": Verdict(done=False, category="STRUCTURE", reason="x", fix="y")}),
        (CHAT, {"plan": {"operation": "copy"}}),
        (("startAgentflow", "llmAgentflow"), {"plan": {"flow_kind": "AGENTFLOW"}}),
    ],
    ids=[
        "two models",
        "no memory",
        "loose tool",
        "prompt",
        "no model name",
        "finding",
        "approach",
        "repair",
        "copy",
        "steps",
    ],
)
def test_where_a_choice_is_left_the_model_writes_the_ops(
    names: tuple[str, ...], more: dict[str, Any], catalogue: NodeStore
) -> None:
    assert ops_by_code(request(catalogue, *names, **more)) is None
