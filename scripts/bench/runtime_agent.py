"""The agent of the runtime's bench, and a worker process around it: `python scripts/bench/runtime_agent.py DSN N`.

Seven steps, a question, the end.
"""

import asyncio
import gc
import signal
import sys
from itertools import pairwise
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from flowise_dev_agent.contracts.interrupts import ClarificationData, ClarificationInterrupt
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.runtime import Agent, Runtime
from flowise_dev_agent.runtime.agent import Graph
from flowise_dev_agent.settings import FlowiseSettings

STEPS = 7
#: Seconds of each step by requirement; others take none.
PAUSES = {"slow": 1.0, "stuck": 3_600.0}


class State(TypedDict, total=False):
    """Counts steps and keeps a plan of the usual size."""

    step: int
    pause: float
    plan: dict[str, Any]


async def _step(state: State) -> State:
    if pause := state.get("pause"):
        await asyncio.sleep(pause)
    return State(step=state.get("step", 0) + 1, plan={"nodes": ["x" * 40] * 20})


async def _ask(state: State) -> State:
    interrupt(ClarificationInterrupt(message="go on?", options=[], data=ClarificationData(questions=[])).as_value())
    return State(step=state.get("step", 0) + 1)


def build_graph(steps: int) -> Graph:
    """So many steps and a question."""
    builder = StateGraph(State)
    path = [START, *_names(steps), END]
    for name in path[1:-2]:
        builder.add_node(name, _step)
    builder.add_node("ask", _ask)
    for source, target in pairwise(path):
        builder.add_edge(source, target)
    return builder.compile()


def _names(steps: int) -> list[str]:
    return [*(f"step_{number}" for number in range(steps)), "ask"]


def build_agent() -> Agent:
    """Seven steps and a question."""
    return Agent(
        graph=build_graph(STEPS),
        context=lambda session, lease, emit: None,
        initial_state=lambda request: {"step": 0, "pause": PAUSES.get(request["requirement"], 0.0)},
        project=lambda values: {"iteration": values.get("step", 0)},
        check_answer=lambda interrupt, body: body.answer or {},
        instances=Instances(FlowiseSettings()),
        chatflow_url=lambda endpoint, chatflow_id: f"{endpoint}/canvas/{chatflow_id}",
        lookups=cast(Any, None),
        node_phases=dict.fromkeys(_names(STEPS), "bench"),
    )


async def _work(dsn: str, concurrency: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    pool = Database(dsn, min_size=2, max_size=10)
    async with Runtime.assemble(pool, dsn, build_agent(), worker=True, concurrency=concurrency):
        gc.freeze()  # as the service does
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], int(sys.argv[2])))
