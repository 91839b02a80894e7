"""Files in the forms in which Flowise writes flows."""

import json
from typing import Any

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_exports import read_export
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
    assert export.others == {"AssistantFlow": 1, "Tool": 1}
    assert export.named["t"] == "weather"


def test_a_row_keeps_its_settings_and_says_what_is_left_out() -> None:
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
