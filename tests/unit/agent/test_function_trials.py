"""Functions of an approved plan are run once before the write: what fails with any input goes back to the op writer."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.domains.function_trials import failing_functions
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.patch import AddNode, Connect, Finding, GraphIR, PatchOp, compile_ops
from flowise_dev_agent.schemas.plan import FunctionSample, OpsAnswer, Plan, PlannedNode
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials

NODE = "customFunctionAgentflow"


def function(number: int, code: str, **variables: str) -> AddNode:
    rows = [{"variableName": name, "variableValue": value} for name, value in variables.items()]
    params: dict[str, Any] = {"customFunctionJavascriptFunction": code, "customFunctionInputVariables": rows}
    return AddNode(node_name=NODE, node_id=f"{NODE}_{number}", label=f"Convert {number}", params=params)


def planned(*ops: PatchOp) -> Plan:
    """The plan of the nodes that the ops add."""
    added = [op for op in ops if isinstance(op, AddNode)]
    nodes = [PlannedNode(node_id=op.node_id, node_name=op.node_name, purpose="x") for op in added]
    return plan(nodes=nodes, flow_kind="AGENTFLOW", credential_requirements=[])


@pytest.fixture
def bench() -> Bench:
    return Bench([], credentials(OPENAI))


async def found(
    bench: Bench, *ops: PatchOp, approved: bool = True, samples: Sequence[FunctionSample] = ()
) -> list[Finding]:
    schemas = bench.knowledge.store.schemas
    nodes = [
        PlannedNode(node_id=op.node_id, node_name=op.node_name, purpose="x") for op in ops if isinstance(op, AddNode)
    ]
    wanted = plan(nodes=nodes, flow_kind="AGENTFLOW")
    if approved:
        wanted = wanted.model_copy(update={"capability": capability_of(wanted, schemas, GraphIR.empty())})
    context = bench.context()
    scope = ToolScope(flowise=context.flowise, knowledge=context.knowledge, plan=wanted)
    return await failing_functions(scope, compile_ops(GraphIR.empty(), ops, schemas).flow_data, ops, samples)


async def test_a_function_runs_once_on_a_sample_of_what_the_flow_fills(bench: Bench) -> None:
    assert (
        await found(bench, function(0, "return Number($count) + $step;", count="{{ $flow.state.n }}", step="2")) == []
    )
    [(code, given)] = bench.flowise.functions
    assert code == "$count = $count[0]; $step = $step[0]; return Number($count) + $step;"
    assert given == {"count": ["1"], "step": ["2"]}


@pytest.mark.parametrize("error", ["ReferenceError: $rows is not defined", "Unexpected token ')'"])
async def test_a_function_that_fails_with_any_input_is_an_error(error: str, bench: Bench) -> None:
    bench.flowise.function_result = FlowiseServerError(error)
    [finding] = await found(bench, function(0, "return $rows.length;", row="{{ question }}"))
    assert (finding.code, finding.severity, finding.where) == ("FUNCTION_FAILS", "error", f"{NODE}_0")
    assert error in finding.detail


@pytest.mark.parametrize(
    "error",
    [
        "Unexpected token 'o', \"no\" is not valid JSON",
        "$vars is not defined",
        "Cannot read properties of undefined (reading 'x')",
        "Too many requests",
    ],
)
async def test_what_a_sample_or_the_server_may_cause_is_no_finding(error: str, bench: Bench) -> None:
    bench.flowise.function_result = FlowiseServerError(error)
    assert await found(bench, function(0, "return JSON.parse($row).x;", row="{{ question }}")) == []


def sample(result: Any = None, **variables: Any) -> FunctionSample:
    return FunctionSample(node_id=f"{NODE}_0", variables=variables, result=result)


ADDS = function(0, "return Number($count) + $step;", count="{{ question }}", step="2")


async def test_a_function_runs_on_its_samples_at_most_three_of_them_as_texts(bench: Bench) -> None:
    bench.flowise.function_result = 4
    given = [
        sample(4, count=2),
        sample("4", **{"$count": "2", "step": "9", "other": "x"}),
        sample(count=[1]),
        sample(7),
    ]
    assert await found(bench, ADDS, samples=given) == []
    assert [variables for _, variables in bench.flowise.functions] == [
        {"count": ["2"], "step": ["2"]},
        {"count": ["2"], "step": ["2"]},
        {"count": ["[1]"], "step": ["2"]},
    ]


async def test_what_differs_from_a_sample_is_an_error_that_shows_both(bench: Bench) -> None:
    bench.flowise.function_result = "22"
    [finding] = await found(bench, ADDS, samples=[sample("22", count=2), sample(4, count="2"), sample(9)])
    assert (finding.code, finding.severity, finding.where) == ("SAMPLE_FAILS", "error", f"{NODE}_0")
    for text in ('"22"', '{"count": "2", "step": "2"}', "4 was expected"):
        assert text in finding.detail
    assert len(bench.flowise.functions) == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("Unexpected token 'o', \"no\" is not valid JSON", "SAMPLE_FAILS"),
        ("Cannot read properties of undefined (reading 'x')", "SAMPLE_FAILS"),
        ("$count.map is not a function", "SAMPLE_FAILS"),
        ("$cuont is not defined", "FUNCTION_FAILS"),
        ("$flow is not defined", None),
        ("Too many requests", None),
    ],
)
async def test_a_function_that_fails_on_its_sample_is_an_error(error: str, code: str | None, bench: Bench) -> None:
    bench.flowise.function_result = FlowiseServerError(error)
    assert [one.code for one in await found(bench, ADDS, samples=[sample(4, count="2")])] == ([code] if code else [])


@pytest.mark.parametrize(
    "code",
    ["const r = await fetch($url); return r.text();", "const axios = require('axios'); return 1;", "return $vars.key;"],
)
async def test_code_that_reaches_out_is_not_run(code: str, bench: Bench) -> None:
    assert await found(bench, function(0, code, url="{{ question }}")) == []
    assert bench.flowise.functions == []


async def test_code_that_nobody_approved_is_not_run(bench: Bench) -> None:
    assert await found(bench, function(0, "return 1;"), approved=False) == []
    assert bench.flowise.functions == []


async def test_at_most_four_functions_run_at_the_same_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, asked = 0, 0, 0

    async def run(code: str, variables: Mapping[str, Any]) -> Any:
        nonlocal running, most, asked
        running, asked = running + 1, asked + 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return json.dumps({})

    monkeypatch.setattr(bench.flowise, "run_function", run)
    assert await found(bench, *(function(number, "return 1;") for number in range(10))) == []
    assert (most, asked) == (4, 8)


async def test_the_op_writer_corrects_a_function_that_fails_before_anything_is_written(bench: Bench) -> None:
    def ops(code: str) -> list[PatchOp]:
        return [
            AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
            function(0, code, count="{{ question }}"),
            AddNode(
                node_name="directReplyAgentflow",
                node_id="directReplyAgentflow_0",
                params={"directReplyMessage": "{{ customFunctionAgentflow_0 }}"},
            ),
            Connect(source_node_id="startAgentflow_0", target_node_id=f"{NODE}_0"),
            Connect(source_node_id=f"{NODE}_0", target_node_id="directReplyAgentflow_0"),
        ]

    async def run(code: str, variables: Mapping[str, Any]) -> Any:
        if "cuont" in code:
            raise FlowiseServerError("cuont is not defined")
        return 1

    bench.flowise.run_function = run
    bench.reasoner.plans = [planned(*ops(""))]
    bench.reasoner.patches = [ops("return cuont;"), ops("return $count;")]

    await bench.start("count")
    review = await bench.answer(action="approve")

    [first, again] = bench.reasoner.seen["patch"]
    assert first.findings == ()
    assert {finding.code for finding in again.findings} == {"FUNCTION_FAILS", "STEP_WITHOUT_TITLE"}
    assert "return $count;" in next(iter(bench.flowise.flows.values())).flow_data
    assert review


async def test_a_sample_that_its_writer_keeps_is_for_the_person_and_stops_nothing(bench: Bench) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        function(0, "return 1;", count="{{ question }}"),
        Connect(source_node_id="startAgentflow_0", target_node_id=f"{NODE}_0"),
    ]
    bench.flowise.function_result = 1
    bench.reasoner.plans = [planned(*ops)]
    bench.reasoner.patches = [OpsAnswer(ops=ops, samples=[sample(2, count="1")])]

    await bench.start("count")
    review = await bench.answer(action="approve")

    [_, again] = bench.reasoner.seen["patch"]
    assert [finding.code for finding in again.findings] == ["SAMPLE_FAILS"]
    assert review["type"] == "result_review"
    assert [(one["code"], one["severity"]) for one in review["data"]["warnings"]] == [("SAMPLE_FAILS", "warning")]
