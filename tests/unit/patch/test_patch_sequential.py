"""Sequential flows: each change of a flow that answers, with what Flowise 3.1.4 says to it (measured)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, Schemas, compile_ops, validate_flow
from tests.unit.patch.test_cases import case

Flow = dict[str, Any]


def without(*names: str) -> Callable[[Flow], None]:
    def change(flow: Flow) -> None:
        gone = {node["id"] for node in flow["nodes"] if node["data"]["name"] in names}
        flow["nodes"] = [node for node in flow["nodes"] if node["id"] not in gone]
        flow["edges"] = [edge for edge in flow["edges"] if not gone & {edge["source"], edge["target"]}]
        for node in flow["nodes"]:
            for name, value in node["data"]["inputs"].items():
                if any(f"{{{{{id_}." in json.dumps(value) for id_ in gone):
                    node["data"]["inputs"][name] = ""

    return change


def second_start(flow: Flow) -> None:
    start = next(node for node in flow["nodes"] if node["id"] == "seqStart_0")
    flow["nodes"].append(json.loads(json.dumps(start).replace("seqStart_0", "seqStart_1")))


def other_row(flow: Flow) -> None:
    condition = next(node for node in flow["nodes"] if node["id"] == "seqCondition_0")
    condition["data"]["inputs"]["conditionUI"] = condition["data"]["inputs"]["conditionUI"].replace("yes", "other")


def loose_branch(flow: Flow) -> None:
    flow["edges"] = [edge for edge in flow["edges"] if edge["target"] != "seqEnd_1"]
    flow["nodes"] = [node for node in flow["nodes"] if node["id"] != "seqEnd_1"]


def same_name(flow: Flow) -> None:
    agent = next(node for node in flow["nodes"] if node["id"] == "seqAgent_1")
    agent["data"]["inputs"]["agentName"] = " First"


def loop_to(name: str) -> Callable[[Flow], None]:
    def change(flow: Flow) -> None:
        end = next(node for node in flow["nodes"] if node["id"] == "seqEnd_0")
        end["data"]["name"] = "seqLoop"
        end["data"]["inputs"]["loopToName"] = name

    return change


def left_over(name: str) -> Callable[[Flow], None]:
    def change(flow: Flow) -> None:
        node = {"id": f"{name}_9", "position": {"x": 0, "y": 0}, "type": "customNode"}
        category = "Sequential Agents" if name.startswith("seq") else "Chat Models"
        data = {"id": f"{name}_9", "name": name, "category": category, "inputs": {}, "outputs": {}}
        flow["nodes"].append({**node, "data": {**data, "inputAnchors": [], "inputParams": [], "outputAnchors": []}})

    return change


def other_edge(like: str, **ends: str) -> Callable[[Flow], None]:
    def change(flow: Flow) -> None:
        edge = next(one for one in flow["edges"] if one["source"].startswith(like))
        flow["edges"].append({**edge, **ends})

    return change


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        (without("seqStart"), "NO_START_NODE", "error"),  # 500 Start node not found
        (second_start, "MULTIPLE_START_NODES", "error"),  # 500 reading 'name'
        (without("seqEnd"), "NO_END_NODE", "error"),  # 500 Graph should have at least one End/Loop node
        (other_row, "BRANCHES_OUTDATED", "error"),  # 500 Branch condition returned unknown or null destination
        (loose_branch, "BRANCH_LEADS_NOWHERE", "warning"),
        (loop_to("Nobody"), "LOOP_TARGET_UNKNOWN", "error"),
        (other_edge("seqAgent"), "DUPLICATE_EDGE", "warning"),
        (other_edge("seqAgent", target="ghost_0"), "DANGLING_EDGE", "warning"),
        (other_edge("seqAgent", source="ghost_0"), "DANGLING_EDGE", "error"),  # 500 reading 'flatMap'
        (other_edge("seqAgent", source="seqEnd_0", target="ghost_0"), "DANGLING_EDGE", "error"),  # 500 no ending node
        (other_edge("seqAgent", sourceHandle="x"), "BAD_SOURCE_HANDLE", "warning"),
        (other_edge("seqCondition", sourceHandle="x"), "BAD_SOURCE_HANDLE", "error"),
        (left_over("seqState"), "ISOLATED_NODE", "error"),  # 500 reading 'name'
        (left_over("chatOpenAI"), "ISOLATED_NODE", "warning"),
        (left_over("chatOpenAI"), "CREDENTIAL_UNBOUND", "warning"),
        (same_name, "DUPLICATE_STEP_NAME", "error"),  # 500 Node `first` already present
    ],
)
def test_a_change_that_fails_is_found(
    change: Callable[[Flow], None], code: str, severity: str, schemas: Schemas
) -> None:
    flow = case("R1-branches-of-seqCondition")["flow_data"]
    change(flow)
    found = validate_flow(json.dumps(flow), schemas=schemas, credentials=None, kind="MULTIAGENT")
    assert (code, severity) in {(one.code, one.severity) for one in found}


def test_a_loop_finds_a_step_by_its_name_as_the_server_writes_it(schemas: Schemas) -> None:
    flow = case("R1-branches-of-seqCondition")["flow_data"]
    agent = next(node for node in flow["nodes"] if node["id"] == "seqAgent_0")
    agent["data"]["inputs"]["agentName"] = "First Step"
    loop_to("first step")(flow)
    found = validate_flow(json.dumps(flow), schemas=schemas, credentials=None, kind="MULTIAGENT")
    assert "LOOP_TARGET_UNKNOWN" not in {one.code for one in found}


def test_a_supervisor_needs_workers_of_different_names(schemas: Schemas) -> None:
    """Measured: alone it answers 200 with nothing; a second worker of a name is refused with 500."""
    boss = AddNode(node_name="supervisor", node_id="boss")

    def codes(*workers: str) -> set[str]:
        team = [
            op
            for index, name in enumerate(workers)
            for op in (
                AddNode(node_name="worker", node_id=f"w{index}", params={"workerName": name}),
                Connect(source_node_id="boss", target_node_id=f"w{index}", target_anchor="supervisor"),
            )
        ]
        flow = compile_ops(GraphIR.empty(), [boss, *team], schemas).flow_data
        found = validate_flow(flow, schemas=schemas, credentials=None, kind="MULTIAGENT")
        return {one.code for one in found} & {"NO_WORKER", "DUPLICATE_STEP_NAME"}

    assert codes() == {"NO_WORKER"}
    assert codes("Writer", "Reader") == set()
    assert codes("Code writer", "code writer") == {"DUPLICATE_STEP_NAME"}
    assert codes("Supervisor") == {"DUPLICATE_STEP_NAME"}


@pytest.mark.parametrize(
    ("prompt", "values", "code"),
    [
        ("Speak {lang}", "", "PROMPT_VALUE_MISSING"),  # 500 Required: lang, Provided: . Missing: lang
        ("Speak {lang}", '{"lang":"$flow.state.lang"}', ""),
        ('Answer {"a": 1}', "", ""),
        ("Speak {lang", "", "PROMPT_BRACES"),  # 500 Unclosed '{' in template
    ],
)
def test_placeholders_of_a_step_have_values_of_its_own(prompt: str, values: str, code: str, schemas: Schemas) -> None:
    flow = case("R1-branches-of-seqCondition")["flow_data"]
    step = next(node for node in flow["nodes"] if node["id"] == "seqAgent_0")
    step["data"]["inputs"] |= {"systemMessagePrompt": prompt, "promptValues": values}
    found = validate_flow(json.dumps(flow), schemas=schemas, credentials=None, kind="MULTIAGENT")
    assert [one.code for one in found if one.code.startswith("PROMPT_")] == [code] * bool(code)
