"""Credentials in the compiler: ids go where the batch adds or chooses what takes one, and nowhere else."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.knowledge.credential_requirements import nested_types
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.findings import errors
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, nested_components
from flowise_dev_agent.patch.model.ops import AddNode, BindCredential, Connect, PatchOp, ReplaceNode, SetLabel, SetParam
from flowise_dev_agent.patch.validate import validate_flow
from flowise_dev_agent.patch.views.canvas_view import canvas_view

OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
BRAVE = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c003"
OWN = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c009"
CHOSEN = {"openAIApi": OPENAI, "braveSearchApi": BRAVE}
SEARCH: Any = [{"agentSelectedTool": "calculator"}, {"agentSelectedTool": "braveSearchAPI"}]
START = AddNode(node_name="startAgentflow", node_id="startAgentflow_0")
MODEL = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0")
INSIDE = {
    ("agentAgentflow_0", "agentModelConfig", OPENAI),
    ("agentAgentflow_0", "agentTools[1].agentSelectedToolConfig", BRAVE),
}


def agent(**params: Any) -> AddNode:
    return AddNode(
        node_name="agentAgentflow", node_id="agentAgentflow_0", params={"agentModel": "chatOpenAI", **params}
    )


def bound(graph: GraphIR) -> set[tuple[str, str, str]]:
    """(node, path, id) of each credential in a flow."""
    own = {(node.id, "", node.credential) for node in graph.nodes if node.credential}
    nested = {
        (node.id, part.path, part.config[CREDENTIAL_KEY])
        for node in graph.nodes
        for part in nested_components(node.params, node.inputs)
        if part.config and part.config.get(CREDENTIAL_KEY)
    }
    return own | nested


@pytest.fixture
def compiled(catalogue: NodeStore) -> Any:
    def build(
        ops: Sequence[PatchOp],
        base: GraphIR | None = None,
        *,
        credentials: Mapping[str, str] = CHOSEN,
        unbound: Sequence[str] = (),
    ) -> GraphIR:
        graph = base or GraphIR.empty()
        return compile_ops(graph, ops, catalogue.schemas, credentials=credentials, unbound=unbound).graph

    return build


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
def test_p10_models_and_tools_inside_a_node_are_bound(catalogue: NodeStore, given: list[PatchOp]) -> None:
    connect = Connect(source_node_id="startAgentflow_0", target_node_id="agentAgentflow_0")
    result = compile_ops(GraphIR.empty(), [START, *given, connect], catalogue.schemas, credentials=CHOSEN)

    assert bound(result.graph) == INSIDE
    types = {id_: type_ for type_, id_ in CHOSEN.items()}
    found = validate_flow(result.flow_data, schemas=catalogue.schemas, credentials=types, kind="AGENTFLOW")
    assert errors(found) == []


def test_a_node_is_bound_without_an_op_and_by_an_op_that_names_the_type(compiled: Any) -> None:
    assert bound(compiled([MODEL])) == {("chatOpenAI_0", "", OPENAI)}
    named = BindCredential(node_id="chatOpenAI_0", credential_type="openAIApi")
    assert bound(compiled([MODEL, named])) == {("chatOpenAI_0", "", OPENAI)}


def test_an_id_in_an_op_is_kept_and_bound_once(compiled: Any) -> None:
    own = BindCredential(node_id="chatOpenAI_0", credential_id=OWN)
    inside = BindCredential(node_id="agentAgentflow_0", credential_id=OWN, path="agentModelConfig")

    assert bound(compiled([MODEL, own])) == {("chatOpenAI_0", "", OWN)}
    assert bound(compiled([agent(), inside])) == {("agentAgentflow_0", "agentModelConfig", OWN)}


def test_one_id_for_several_places_must_name_the_place(compiled: Any) -> None:
    other = [{"agentSelectedTool": "chatflowTool"}, *SEARCH]
    with pytest.raises(PatchError) as caught:
        compiled([agent(agentTools=other), BindCredential(node_id="agentAgentflow_0", credential_id=OWN)])
    assert [item["code"] for item in caught.value.details["findings"]] == ["NO_CREDENTIAL_FIELD"]


def test_another_model_in_a_node_of_the_base_is_bound(compiled: Any) -> None:
    base = compiled([AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0")], credentials={})
    change = SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatOpenAI")

    assert bound(compiled([change], base)) == {("llmAgentflow_0", "llmModelConfig", OPENAI)}


def test_a_tool_that_stays_keeps_its_credential_when_the_list_is_set_again(compiled: Any) -> None:
    base = compiled([agent(agentTools=SEARCH)], credentials={"braveSearchApi": OWN})
    (node,) = base.nodes
    rows: list[Any] = [*json.loads(json.dumps(node.inputs["agentTools"])), {"agentSelectedTool": "braveSearchAPI"}]

    again = compiled([SetParam(node_id=node.id, param_name="agentTools", value=rows)], base)

    assert {item for item in bound(again) if "Tool" in item[1]} == {
        (node.id, "agentTools[1].agentSelectedToolConfig", OWN),
        (node.id, "agentTools[2].agentSelectedToolConfig", BRAVE),
    }


def test_a_replaced_node_gets_the_chosen_credential(compiled: Any) -> None:
    base = compiled([MODEL], credentials={"openAIApi": OWN})
    replaced = compiled([ReplaceNode(node_id="chatOpenAI_0", node_name="openAI", new_node_id="openAI_0")], base)
    assert bound(replaced) == {("openAI_0", "", OPENAI)}


def test_nodes_of_the_base_are_left_alone_unless_they_count_as_added(compiled: Any) -> None:
    base = compiled([MODEL, agent()], credentials={})
    change = [
        SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1),
        SetParam(node_id="agentAgentflow_0", param_name="agentModelConfig.temperature", value=0.1),
        SetLabel(node_id="agentAgentflow_0", label="Helper"),
    ]

    assert bound(compiled(change, base)) == set()
    assert bound(compiled(change, base, unbound=["chatOpenAI_0"])) == {("chatOpenAI_0", "", OPENAI)}


def test_what_has_no_chosen_credential_stays_unbound(compiled: Any) -> None:
    asked = BindCredential(node_id="agentAgentflow_0", credential_type="braveSearchApi")

    assert bound(compiled([agent(agentTools=SEARCH), asked], credentials={})) == set()
    assert bound(compiled([agent(agentTools=SEARCH), asked], credentials={"openAIApi": OPENAI})) == {
        ("agentAgentflow_0", "agentModelConfig", OPENAI)
    }


def test_a_tool_of_an_agent_gets_its_credential_by_the_path_of_its_row(compiled: Any) -> None:
    path = "agentTools[1].agentSelectedToolConfig"
    bind = BindCredential(node_id="agentAgentflow_0", credential_type="braveSearchApi", path=path)
    assert bound(compiled([START, agent(agentTools=SEARCH), bind])) >= INSIDE


def test_several_choices_are_given_as_a_list_of_their_names_inside_a_tool_too(compiled: Any) -> None:
    config: dict[str, Any] = {"gmailType": "messages", "messageActions": ["listMessages"]}
    tool: Any = [{"agentSelectedTool": "gmail", "agentSelectedToolConfig": {}}]
    path = "agentTools[0].agentSelectedToolConfig"
    sets = [
        SetParam(node_id="agentAgentflow_0", param_name=f"{path}.{name}", value=value) for name, value in config.items()
    ]
    graph = compiled([START, agent(agentTools=tool), *sets])
    stored = graph.node("agentAgentflow_0").inputs["agentTools"][0]["agentSelectedToolConfig"]
    assert stored["messageActions"] == '["listMessages"]'


def brave(**config: Any) -> dict[str, Any]:
    tool = "braveSearchAPI"
    return {"agentSelectedTool": tool, "agentSelectedToolConfig": {"agentSelectedTool": tool, **config}}


def test_a_list_that_comes_back_as_people_see_it_keeps_the_credentials_of_its_rows(compiled: Any) -> None:
    calculator = {"agentSelectedTool": "calculator"}
    rows = [calculator, brave(safeSearch="off", **{CREDENTIAL_KEY: OWN}), brave(**{CREDENTIAL_KEY: BRAVE})]
    base = compiled([agent(agentTools=rows)], credentials={}).to_flow_data()
    (shown,) = [one for one in canvas_view(GraphIR.from_flow_data(base)).nodes if one.id == "agentAgentflow_0"]
    seen = json.loads(next(param.value for param in shown.params if param.name == "agentTools"))
    assert OWN not in str(seen)

    def tools(*value: Any) -> list[Any]:
        op = SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=[*value])
        graph = compiled([op], GraphIR.from_flow_data(base), credentials={})
        configs = [one.get("agentSelectedToolConfig") or {} for one in graph.nodes[-1].inputs["agentTools"]]
        return [config.get(CREDENTIAL_KEY) for config in configs]

    assert tools(seen[2], seen[1], seen[0]) == [BRAVE, OWN, None]
    # One that is changed is found by its tool, after those that are as they were.
    changed = seen[1] | {"agentSelectedToolConfig": seen[1]["agentSelectedToolConfig"] | {"safeSearch": "strict"}}
    assert tools(changed, seen[2]) == [OWN, BRAVE]
    # Nobody gets what was never theirs.
    stranger = {"agentSelectedTool": "serpAPI", "agentSelectedToolConfig": {CREDENTIAL_KEY: "bound"}}
    assert tools(stranger) == [None]


def test_a_tool_put_into_a_list_needs_its_credential_and_one_that_comes_back_with_its_own_does_not(
    catalogue: NodeStore,
) -> None:
    rows: Any = [
        {"agentSelectedTool": "calculator"},
        {"agentSelectedTool": "braveSearchAPI"},
        {"agentSelectedTool": "serpAPI", "agentSelectedToolConfig": {CREDENTIAL_KEY: "bound"}},
    ]
    op = SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows)
    assert nested_types([op], catalogue.schemas, {}) == ["braveSearchApi"]
