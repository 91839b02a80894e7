"""The flow that a plan leads to, before any op is written, and its picture."""

import json
import time
from typing import Any

import pytest

from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.forms.offer import Offer
from flowise_dev_agent.forms.ops import to_ops
from flowise_dev_agent.forms.plan import plan_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, SetParam, compile_ops
from flowise_dev_agent.patch.model.nested import with_bound
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.planning.planned_lines import with_following_lines
from flowise_dev_agent.planning.preview import FlowPreview, planned_flow
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.flows import Preview, PreviewFlow
from flowise_dev_agent.schemas.plan import NamedConnection, Part, Plan
from flowise_dev_agent.sessions.preview import Picture, drawn, proposed
from tests.fixtures.editor_flows import AGENTFLOWS, CHATFLOWS
from tests.fixtures.golden_flows import NOWHERE
from tests.unit.agent.test_plan_review import node, planned

CHAIN = [
    AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"temperature": 0.9}),
    AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
    AddNode(node_name="conversationChain", node_id="conversationChain_0"),
    Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
]


def ends(graph: GraphIR) -> set[tuple[str, ...]]:
    return {edge.ends for edge in graph.edges}


def preview_of(plan: Plan, catalogue: NodeStore, base: GraphIR | None = None) -> Preview:
    before = base or GraphIR.empty()
    plan = with_following_lines(plan, before, catalogue.schemas)
    found = planned_flow(plan, before, catalogue.schemas)
    picture = Picture("plan", before, found.graph, plan, found.unknown, found.unconnected)
    return drawn(picture, catalogue.schemas, name="")


@pytest.mark.parametrize(
    "form",
    [
        {"memory": 3, "model": "claude-sonnet-4-6"},
        {"tools": ["calculator"], "sources": [{"kind": "text", "text": "We open at 9."}]},
        {"sources": [{"kind": "web", "url": "https://a.example"}], "refused_words": ["bet"]},
        {"kind": "task", "fields": [{"name": "total"}]},
        {
            "kind": "steps",
            "steps": [{"kind": "answer", "prompt": "Sum up."}, {"kind": "answer", "prompt": "Translate."}],
        },
    ],
)
async def test_a_plan_is_drawn_as_code_then_builds_it(form: dict[str, Any], catalogue: NodeStore) -> None:
    contract = plan_of(DesignForm.model_validate({"name": "Desk", **form}), Offer(catalogue, {"openAIApi": 1}))
    ops = to_ops(contract, catalogue, existing={})
    made = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    drawn_ = planned_flow(contract, GraphIR.empty(), catalogue.schemas)
    assert [(one.id, one.name, one.label) for one in drawn_.graph.nodes] == [
        (one.id, one.name, one.label) for one in made.nodes
    ]
    assert ends(drawn_.graph) == ends(made)
    assert (drawn_.unknown, drawn_.unconnected) == ((), ())


def test_connections_that_follow_from_types_are_expected_and_named_ones_are_not(catalogue: NodeStore) -> None:
    plan = planned("conversationChain_0", "chatOpenAI_0", "bufferMemory_0")
    by_type = preview_of(plan, catalogue)
    assert {(one.edge.source, one.edge.target, one.state, one.expected) for one in by_type.edges} == {
        ("chatOpenAI_0", "conversationChain_0", "new", True),
        ("bufferMemory_0", "conversationChain_0", "new", True),
    }
    named = NamedConnection(source="chatOpenAI_0", target="conversationChain_0", input="model")
    shown = preview_of(plan.model_copy(update={"connections": [named]}), catalogue)
    assert {(one.edge.source, one.expected) for one in shown.edges} == {
        ("chatOpenAI_0", False),
        ("bufferMemory_0", True),
    }


def test_nodes_say_what_becomes_of_them_and_what_is_set_on_them(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAIN, catalogue.schemas).graph
    plan = planned(
        "chatOpenAI_0",
        values={
            "chatOpenAI_0.modelName": "gpt-4o",
            "chatOpenAI_0.temperature": 0.2,
            "conversationChain_0.systemMessagePrompt": "You answer in one sentence.",
        },
        operation="update",
        nodes=[node("chatOpenAI_0", existing=True), node("conversationChain_0", existing=True)],
        removals=["bufferMemory_0"],
        parts=[
            Part(id="p1", quote="use gpt-4o", state="covered", values=["chatOpenAI_0.modelName"]),
            Part(id="p2", quote="no memory", state="covered", nodes=["bufferMemory_0"]),
            Part(id="p3", quote="sing", state="not_possible", reason="it cannot sing"),
        ],
    )
    preview = preview_of(plan, catalogue, base)
    nodes = {one.node.id: one for one in preview.nodes}
    assert {id_: one.state for id_, one in nodes.items()} == {
        "chatOpenAI_0": "changed",
        "conversationChain_0": "changed",
        "bufferMemory_0": "removed",
    }
    model = nodes["chatOpenAI_0"]
    assert ("temperature", "0.9", "0.2") in [(one.name, one.before, one.after) for one in model.values]
    assert (model.model, model.parts, model.placed) == ("gpt-4o", ["p1"], True)
    assert nodes["conversationChain_0"].prompt == "You answer in one sentence."
    assert {part.id: part.nodes for part in preview.parts} == {
        "p1": ["chatOpenAI_0"],
        "p2": ["bufferMemory_0"],
        "p3": [],
    }
    kept = base.node("chatOpenAI_0")
    assert kept is not None
    assert (model.node.x, model.node.y) == (kept.raw["position"]["x"], kept.raw["position"]["y"])  # pyright: ignore
    assert [(one.edge.source, one.state) for one in preview.edges] == [
        ("chatOpenAI_0", "existing"),
        ("bufferMemory_0", "removed"),
    ]
    assert len({one.edge.id for one in preview.edges}) == 2


def test_steps_of_a_model_come_one_after_the_other_up_to_a_branch(catalogue: NodeStore) -> None:
    straight = preview_of(planned("startAgentflow_0", "llmAgentflow_0", "directReplyAgentflow_0"), catalogue)
    assert [(one.edge.source, one.edge.target, one.expected) for one in straight.edges] == [
        ("startAgentflow_0", "llmAgentflow_0", False),
        ("llmAgentflow_0", "directReplyAgentflow_0", False),
    ]
    branching = planned("startAgentflow_0", "conditionAgentflow_0", "llmAgentflow_0", "llmAgentflow_1")
    preview = preview_of(branching, catalogue)
    # No line is drawn that is not approved.
    assert preview.edges == []
    assert preview.unconnected == [node.node_id for node in branching.nodes]


def test_a_value_that_cannot_be_set_and_a_type_that_is_unknown_leave_the_rest_drawn(catalogue: NodeStore) -> None:
    plan = planned(
        *("conversationChain_0", "chatOpenAI_0", "noSuchThing_0"),
        values={"chatOpenAI_0.temperature": "cold", "chatOpenAI_0.modelName": "gpt-4o"},
    )
    preview = preview_of(plan, catalogue)
    nodes = {one.node.id: one for one in preview.nodes}
    assert set(nodes) == {"conversationChain_0", "chatOpenAI_0", "noSuchThing_0"}
    assert nodes["chatOpenAI_0"].model == "gpt-4o"
    assert nodes["noSuchThing_0"].state == "new"
    assert [(one.edge.source, one.edge.target) for one in preview.edges] == [("chatOpenAI_0", "conversationChain_0")]


@pytest.mark.parametrize("flow", [*CHATFLOWS.values(), *AGENTFLOWS.values()], ids=lambda flow: flow.__name__)
def test_a_picture_has_every_value_of_the_flow_and_no_other(flow: Any, catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), flow({**NOWHERE, "tool": "tool-1"}), catalogue.schemas).graph
    preview = preview_of(planned(operation="update", flow_kind=base.kind), catalogue, base)
    shown = {one.node.id: {param.name: param for param in one.node.params} for one in preview.nodes}
    for there in base.nodes:
        wanted = {
            name: value
            for name, value in there.inputs.items()
            if name not in there.definitions.anchor_names and not is_empty(value) and not there.is_note
        }
        assert set(shown[there.id]) == set(wanted)
        for name, value in wanted.items():
            param = shown[there.id][name]
            held = param.value if isinstance(value, str) else with_bound(json.loads(param.value), value)
            assert param.cut or held == value


def test_a_value_that_is_not_shown_in_full_says_so(catalogue: NodeStore) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    ops = [
        AddNode(
            node_name="conversationChain",
            node_id="conversationChain_0",
            params={"systemMessagePrompt": "word " * 9_000},
        ),
        AddNode(
            node_name="plainText", node_id="plainText_0", params={"text": f"Use {key}.", "metadata": {"author": "me"}}
        ),
    ]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    preview = preview_of(planned(operation="update"), catalogue, base)
    cut = {f"{one.node.id}.{param.name}" for one in preview.nodes for param in one.node.params if param.cut}
    assert cut == {"conversationChain_0.systemMessagePrompt", "plainText_0.text"}


def test_no_secret_is_in_a_picture(catalogue: NodeStore) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    values: dict[str, Any] = {
        "conversationChain_0.systemMessagePrompt": f"Use the key {key} for everything.",
        "chatOpenAI_0.baseOptions": {"Authorization": f"Bearer {key}"},
    }
    preview = preview_of(planned("conversationChain_0", "chatOpenAI_0", values=values), catalogue)
    assert key not in preview.model_dump_json()


def test_a_change_by_hand_of_a_flow_of_60_nodes_is_drawn_within_150_ms(catalogue: NodeStore) -> None:
    ops: list[Any] = []
    for number in range(20):
        ops += [
            AddNode(node_name="chatOpenAI", node_id=f"chatOpenAI_{number}"),
            AddNode(node_name="bufferMemory", node_id=f"bufferMemory_{number}"),
            AddNode(node_name="conversationChain", node_id=f"conversationChain_{number}"),
            Connect(
                source_node_id=f"chatOpenAI_{number}",
                target_node_id=f"conversationChain_{number}",
                target_anchor="model",
            ),
            Connect(
                source_node_id=f"bufferMemory_{number}",
                target_node_id=f"conversationChain_{number}",
                target_anchor="memory",
            ),
        ]
    flow_data = compile_ops(GraphIR.empty(), ops, catalogue.schemas).flow_data
    row = Chatflow(id="1", name="Desk", flow_data=flow_data)
    changed = SetParam(node_id="chatOpenAI_7", param_name="temperature", value=0.2)
    body = PreviewFlow(ops=[changed, AddNode(node_name="calculator", node_id="calculator_0")])
    times: list[float] = []
    for _ in range(3):
        started = time.process_time()
        proposed(row, body, catalogue.schemas)
        times.append(time.process_time() - started)
    assert min(times) < 0.15


def test_a_flow_of_400_nodes_is_drawn_quickly_and_in_bounds(catalogue: NodeStore) -> None:
    ops: list[Any] = []
    for number in range(200):
        ops += [
            AddNode(node_name="chatOpenAI", node_id=f"chatOpenAI_{number}"),
            AddNode(
                node_name="conversationChain",
                node_id=f"conversationChain_{number}",
                params={"systemMessagePrompt": f"Be kind. {'word ' * 2_000}"},
            ),
            Connect(
                source_node_id=f"chatOpenAI_{number}",
                target_node_id=f"conversationChain_{number}",
                target_anchor="model",
            ),
        ]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    plan = planned(
        "calculator_0",
        values={"chatOpenAI_7.modelName": "gpt-4o"},
        operation="update",
        nodes=[node("chatOpenAI_7", existing=True), node("calculator_0")],
    )
    started = time.process_time()
    preview = preview_of(plan, catalogue, base)
    assert time.process_time() - started < 3
    assert len(preview.nodes) == 401
    assert preview.cut
    assert len(preview.model_dump_json()) < 2_500_000
    assert [one.node.id for one in preview.nodes if one.state == "changed"] == ["chatOpenAI_7"]


def test_an_unconnected_pair_of_nodes_is_named(catalogue: NodeStore) -> None:
    found = planned_flow(planned("calculator_0", "chatOpenAI_0"), GraphIR.empty(), catalogue.schemas)
    assert isinstance(found, FlowPreview)
    assert set(found.unconnected) == {"calculator_0", "chatOpenAI_0"}


def test_a_line_that_goes_frees_its_input_for_a_new_node(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAIN, catalogue.schemas).graph
    gone = NamedConnection(source="bufferMemory_0", target="conversationChain_0", input="memory")
    plan = planned("bufferWindowMemory_0", operation="update", disconnections=[gone])
    assert {(one.edge.source, one.state) for one in preview_of(plan, catalogue, base).edges} == {
        ("chatOpenAI_0", "existing"),
        ("bufferMemory_0", "removed"),
        ("bufferWindowMemory_0", "new"),
    }


@pytest.mark.parametrize("said", [False, True])
def test_a_moderation_has_a_model_only_where_the_plan_says_so(catalogue: NodeStore, said: bool) -> None:
    names = ("chatOpenAI", "chatAnthropic", "conversationChain", "bufferMemory", "inputModerationSimple")
    line = NamedConnection(source="chatAnthropic_0", target="inputModerationSimple_0", input="model")
    contract = planned(*(f"{name}_0" for name in names), connections=[line] if said else [])
    graph = planned_flow(contract, GraphIR.empty(), catalogue.schemas).graph
    into = {(edge.source, edge.input_name) for edge in graph.edges if edge.target == "inputModerationSimple_0"}
    assert into == ({("chatAnthropic_0", "model")} if said else set())
