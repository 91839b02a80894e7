"""Which nodes share a step of LangGraph, and what becomes of one that fails or asks there."""

from typing import Any

import pytest

from flowise_dev_agent.agent import graph
from flowise_dev_agent.agent.nodes import patch
from flowise_dev_agent.errors import FlowiseTimeoutError
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops

AFTER_APPROVAL = [
    *("hitl_plan_v2", "define_patch_scope", "compile_patch_ir", "compile_flow_data", "validate"),
    *("preflight_validate_patch", "apply_patch", "test_v2", "evaluate", "hitl_review_v2"),
]


async def test_nodes_whose_state_nobody_needs_share_a_step() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    await bench.start()
    bench.nodes_run, bench.steps_run = [], []
    await bench.answer(action="approve")
    assert bench.nodes_run == AFTER_APPROVAL
    joined = {"define_patch_scope", "validate", "preflight_validate_patch"}
    assert bench.steps_run == [name for name in AFTER_APPROVAL if name not in joined]


async def test_each_node_has_a_step_of_its_own_where_somebody_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "tracing_is_enabled", lambda: True)
    bench = Bench(ops(), credentials(OPENAI))
    await bench.start()
    bench.nodes_run, bench.steps_run = [], []
    await bench.answer(action="approve")
    assert bench.steps_run == bench.nodes_run == AFTER_APPROVAL


async def test_a_node_that_fails_keeps_what_was_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    async def fails(*_: Any) -> Any:
        nonlocal tries
        tries += 1
        raise FlowiseTimeoutError("Flowise does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(patch, "define_patch_scope", fails)
        bench = Bench(ops(), credentials(OPENAI))
        await bench.start()
        with pytest.raises(FlowiseTimeoutError):
            await bench.answer(action="approve")
    assert tries == 2
    assert (await bench.state()).plan.approved
    assert (await bench.graph.aget_state(bench.config)).next == ("define_patch_scope",)


async def test_a_node_that_asks_keeps_what_was_before_it() -> None:
    bench = Bench(ops(), credentials())
    await bench.start()
    assert (await bench.answer(action="approve"))["type"] == "credential_check"
    assert bench.steps_run[-2:] == ["hitl_plan_v2", "define_patch_scope"]
    assert bench.nodes_run[-2:] == ["hitl_plan_v2", "define_patch_scope"]
    assert (await bench.state()).plan.approved
