"""What a person changed by hand is told by titles, with the value before and after, and without secrets."""

from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetParam,
    UnsetParam,
    compile_ops,
    edit_views,
)

SCHEMAS = NodeStore.from_snapshot().schemas
CHAT = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", label="Chat model", params={"temperature": 0.7}),
        AddNode(node_name="calculator", node_id="calculator_0"),
    ],
    SCHEMAS,
).graph
STEP = compile_ops(
    GraphIR.empty(),
    [
        AddNode(
            node_name="llmAgentflow",
            node_id="llmAgentflow_0",
            label="Answer",
            params={"llmModel": "chatOpenAI", "llmModelConfig": {"temperature": 0.9}},
        )
    ],
    SCHEMAS,
).graph


def told(flow: GraphIR, *ops: PatchOp) -> list[str]:
    return [one.in_words for one in edit_views(ops, flow, SCHEMAS)]


def test_a_value_is_told_by_the_titles_of_field_and_node_with_what_it_was() -> None:
    assert told(
        CHAT,
        SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2),
        SetParam(node_id="chatOpenAI_0", param_name="maxTokens", value=100),
        UnsetParam(node_id="chatOpenAI_0", param_name="temperature"),
    ) == [
        "Temperature of Chat model: 0.7 → 0.2",
        "Max Tokens of Chat model: 100",
        "Temperature of Chat model: 0.7 → (none)",
    ]


def test_a_value_inside_a_component_is_told_by_its_own_title() -> None:
    path = "llmModelConfig.maxTokens"
    assert told(STEP, SetParam(node_id="llmAgentflow_0", param_name=path, value=50)) == ["Max Tokens of Answer: 50"]
    path = "llmModelConfig.temperature"
    assert told(STEP, SetParam(node_id="llmAgentflow_0", param_name=path, value=0.1)) == [
        "Temperature of Answer: 0.9 → 0.1"
    ]


def test_nodes_and_connections_are_told_by_titles() -> None:
    ends: dict[str, Any] = {"source_node_id": "chatOpenAI_0", "target_node_id": "wikipedia_0"}
    assert told(
        CHAT,
        AddNode(node_name="wikipedia", node_id="wikipedia_0", label="Look-up"),
        RemoveNode(node_id="calculator_0"),
        ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic"),
        Connect(**ends),
        Disconnect(**ends),
        BindCredential(node_id="chatOpenAI_0"),
    ) == [
        "Added: Look-up",
        "Removed: Calculator",
        "Replaced: Chat model → Anthropic Claude",
        "Connected: Chat model → Look-up",
        "Disconnected: Chat model → Look-up",
        "Changed: Chat model",
    ]


def test_a_secret_is_hidden_and_a_text_of_several_lines_is_one_line() -> None:
    key = SetParam(node_id="chatOpenAI_0", param_name="openAIApiKey", value="some-private-thing")
    stop = SetParam(node_id="chatOpenAI_0", param_name="stopSequence", value="one\ntwo")
    assert told(CHAT, key, stop) == ["openAIApiKey of Chat model: (hidden)", "Stop Sequence of Chat model: one ⏎ two"]


def test_what_the_flow_does_not_have_is_told_by_its_id() -> None:
    op = SetParam(node_id="chatOpenAI_9", param_name="temperature", value=True)
    assert told(GraphIR.empty(), op) == ["temperature of chatOpenAI_9: true"]
