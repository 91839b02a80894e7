"""Files in the forms in which Flowise writes flows."""

import json
from typing import Any

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_exports import import_of, read_export, read_flows
from flowise_dev_agent.schemas.flow_writes import ReadExport
from tests.unit.patch.test_cases import case

EMPTY = {"nodes": [], "edges": []}


def _row(id_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "flowData": json.dumps(more.pop("flow", EMPTY)), **more}


def test_a_workspace_gives_its_flows_with_their_kinds_and_names_what_else_it_has() -> None:
    workspace = {
        **case("I2-workspace-export")["file"],
        "AgentFlow": [_row("b", "Team")],
        "AgentFlowV2": [_row("c", "Steps", type="AGENTFLOW")],
        "AssistantFlow": [_row("d", "Helper")],
        "Tool": [{"id": "t", "name": "weather"}],
    }
    export = read_export(json.dumps(workspace))
    kinds = {flow.name: flow.type for flow in export.flows}
    assert kinds == {"Support": "CHATFLOW", "Steps": "AGENTFLOW", "Team": "MULTIAGENT"}
    assert export.others == {"AssistantFlow": 1}
    assert export.named["t"] == "weather"


def test_the_request_of_a_flow_has_what_the_flow_names_and_nothing_else() -> None:
    workspace = {
        "ChatFlow": [_row("flow-1", "Ask", flow={"nodes": [], "edges": [], "said": "tool-1 $vars.tone"})],
        "Tool": [
            {
                "id": "tool-1",
                "name": "weather",
                "schema": "[]",
                "func": "return 1",
                "createdDate": "2026",
                "color": None,
            },
            {"id": "tool-2", "name": "other"},
            "no row",
        ],
        "Variable": [{"id": "v", "name": "tone", "value": "kind", "type": "static"}, {"id": "w", "name": "rest"}],
    }
    export = read_export(json.dumps(workspace))
    body = import_of(export, export.flows[0], name="Ask")
    assert [(one.kind, one.id, one.name, one.columns) for one in body.missing] == [
        ("custom tool", "tool-1", "weather", {"schema": "[]", "func": "return 1"}),
        ("variable", "v", "tone", {"value": "kind", "type": "static"}),
    ]
    assert body.named == {"tool-1": "weather"}


def test_p116_a_row_keeps_its_settings_and_says_what_is_left_out() -> None:
    row = {**case("I3-settings-of-a-row-dropped")["file"], "flowData": json.dumps(EMPTY)}
    (flow,) = read_export(json.dumps(row)).flows
    assert flow.settings.category == "sales"
    assert json.loads(flow.settings.chatbot_config or "") == {"starterPrompts": {"0": {"prompt": "Hi there"}}}
    assert json.loads(flow.settings.api_config or "") == {"overrideConfig": {"status": True}}
    assert flow.left_out == ("deployed",)


def test_a_sequential_flow_without_a_type_is_known_by_its_nodes() -> None:
    (flow,) = read_export(json.dumps(case("I4-sequential-flow-read-as-chatflow")["flow_data"])).flows
    assert flow.type == "MULTIAGENT"


def test_a_called_flow_comes_before_its_caller() -> None:
    caller = _row("a1", "Caller", flow={**EMPTY, "calls": "b2"})
    rows = [caller, _row("b2", "Called"), _row("c3", "Round", flow={**EMPTY, "calls": "c4"})]
    rows.append(_row("c4", "About", flow={**EMPTY, "calls": "c3"}))
    assert [flow.name for flow in read_export(json.dumps(rows)).flows] == ["Called", "Caller", "Round", "About"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", "null", '{"ChatFlow": []}', '{"ChatFlow": [{"flowData": "x"}]}']
)
def test_a_file_without_a_flow_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_export(text)


def test_a_file_is_read_as_requests_for_the_page() -> None:
    workspace = {"ChatFlow": [_row("flow-1", " ", deployed=True)], "DocumentStore": [{"id": "s", "name": "Handbook"}]}
    found = read_flows(ReadExport(text=json.dumps(workspace), name="export.json"))
    (flow,) = found.flows
    assert (flow.request.name, flow.request.type, flow.left_out) == ("export.json", "CHATFLOW", ["deployed"])
    assert found.others == {"DocumentStore": 1}
    with pytest.raises(InvalidInputError, match="name"):
        read_flows(ReadExport(text=json.dumps({"ChatFlow": [_row("flow-1", "x" * 300)]})))
