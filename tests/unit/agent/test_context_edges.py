"""Every node gets what the table says, and nothing else."""

from collections import defaultdict
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.agent import graph
from flowise_dev_agent.agent.context_edges import CONTEXT, CONTROL, undeclared
from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.graph import Steps
from flowise_dev_agent.agent.state import AgentState, PatchState, PlanState, Update
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops

PAGE = Path(__file__).resolve().parents[3] / "docs" / "architecture.md"


def test_the_table_has_every_node_and_only_parts_of_the_state() -> None:
    parts = AgentState.model_fields.keys() - CONTROL
    assert list(CONTEXT) == list(NODE_PHASES)
    assert {part for one in CONTEXT.values() for part in one.reads | one.writes} <= parts


async def test_a_node_that_writes_what_it_may_not_is_stopped() -> None:
    async def node(_: AgentState, __: Any) -> Update:
        return {"plan": PlanState(notes=["mine"]), "patch": PatchState(ops=[])}

    assert undeclared("validate", ["check", "budget", "plan"]) == {"plan"}
    with pytest.raises(LookupError, match="validate may not write patch, plan"):
        await Steps({"validate": node}).beginning_with("validate")(AgentState(), RuntimeDouble())


async def test_a_node_that_fails_behind_another_is_repeated_alone_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def ends(_: AgentState, __: Any) -> Update:
        return {}

    async def fails(_: AgentState, __: Any) -> Update:
        raise ValueError("secret words")

    assert graph.joins("load_current_flow", "summarize_current_flow")
    steps = Steps({"load_current_flow": ends, "summarize_current_flow": fails})
    command = await steps.beginning_with("load_current_flow")(AgentState(), RuntimeDouble())
    assert command.goto == "summarize_current_flow"
    assert caplog.messages == ["summarize_current_flow failed behind load_current_flow and is repeated: ValueError"]
    with pytest.raises(ValueError, match="secret words"):
        await steps.beginning_with("summarize_current_flow")(AgentState(), RuntimeDouble())


@pytest.mark.parametrize("name", CONTEXT)
async def test_only_the_nodes_of_the_table_get_the_files(name: str) -> None:
    seen: list[Any] = []

    async def node(_: AgentState, runtime: Any) -> Update:
        seen.append(runtime.context.files)
        return {}

    await Steps({name: node}).beginning_with(name)(AgentState(), RuntimeDouble())

    assert [one is not None for one in seen] == [CONTEXT[name].files]


class RuntimeDouble:
    """As much of LangGraph's runtime as a node's wrapping uses."""

    def __init__(self, context: Any = None) -> None:
        self.context = context or replace(Bench(ops(), credentials("1")).context(), files=object())

    def override(self, *, context: Any) -> "RuntimeDouble":
        return RuntimeDouble(context)

    def stream_writer(self, _: Any) -> None: ...


async def test_nodes_read_only_what_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    running: ContextVar[str | None] = ContextVar("running", default=None)
    reads: dict[str, set[str]] = defaultdict(set)
    read = AgentState.__getattribute__

    def noted(self: AgentState, name: str) -> Any:
        if (node := running.get()) is not None and name in AgentState.model_fields:
            reads[node].add(name)
        return read(self, name)

    def watched(name: str, node: Any) -> Any:
        async def run(state: AgentState, runtime: Any, **more: Any) -> Update:
            token = running.set(name)
            try:
                return await node(state, runtime, **more)
            finally:
                running.reset(token)

        return run

    monkeypatch.setattr(AgentState, "__getattribute__", noted)
    monkeypatch.setattr(
        graph, "Steps", lambda nodes: Steps({name: watched(name, node) for name, node in nodes.items()})
    )
    bench = Bench(ops(), credentials(OPENAI))
    await bench.start()
    await bench.answer(action="request_changes", feedback="Call it Helper")
    await bench.answer(action="approve")
    await bench.answer(action="accept")

    assert len(reads) > 9
    assert {name: found - CONTROL - CONTEXT[name].reads for name, found in reads.items()} == {
        name: set[str]() for name in reads
    }
