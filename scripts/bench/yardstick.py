"""The yardstick of the benches: LangGraph alone, with its own Postgres saver, and the memory of a process."""

import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg_pool import AsyncConnectionPool

from flowise_dev_agent.persistence.database import Connection

STEPS = 18


class State(TypedDict, total=False):
    """Counts steps and keeps a plan of the usual size."""

    step: int
    plan: dict[str, Any]


async def _step(state: State) -> State:
    return State(step=state.get("step", 0) + 1, plan={"nodes": ["x" * 40] * 20})


async def plain_cpu(pool: AsyncConnectionPool[Connection], runs: int = 100) -> tuple[list[float], float]:
    """Run 18 steps, one thread after the other: wall seconds of each, CPU seconds of one."""
    builder = StateGraph(State)
    names = [f"step_{number}" for number in range(STEPS)]
    for name in names:
        builder.add_node(name, _step)
    for source, target in pairwise([START, *names, END]):
        builder.add_edge(source, target)
    graph = builder.compile()
    taken: list[float] = []
    cpu = 0.0
    for number in range(runs + 10):
        if number == 10:
            cpu = time.process_time()
        began = time.perf_counter()
        thread = graph.copy(update={"checkpointer": AsyncPostgresSaver(pool)})
        await thread.ainvoke({"step": 0}, {"configurable": {"thread_id": str(uuid4())}}, durability="sync")
        taken.append(time.perf_counter() - began)
    return taken[10:], (time.process_time() - cpu) / runs


def resident_mb(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
