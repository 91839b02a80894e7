"""What a flow is held against on its instance: custom tools, node types, templates."""

from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseAuthError
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.ops import AddNode, PatchOp
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops

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

    findings = (await capability.validate(bench.context(), with_tool, "CHATFLOW")).findings
    await capability.validate(bench.context(), without, "CHATFLOW")

    assert ("UNKNOWN_TOOL" in {finding.code for finding in findings}) is found
    assert bench.flowise.tool_lists == 1


async def test_a_type_that_only_the_base_knows_is_a_warning() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    flow = compile_ops(GraphIR.empty(), ops(), bench.knowledge.store.schemas).flow_data.replace(
        '"name":"bufferMemory"', '"name":"communityMemory"'
    )

    async def severity(base: str | None) -> dict[str, str]:
        report = await bench.capability.validate(bench.context(), flow, "CHATFLOW", base)
        return {finding.code: finding.severity for finding in report.findings if finding.where == "bufferMemory_0"}

    assert "error" in (await severity(None)).values()
    assert "error" not in (await severity(flow)).values()
