"""What grows: `python scripts/bench/growth.py [ROW ...] [--sessions N] [--part F]`.

Rows: sessions, flows, nodes; by default all. As `session.py` measures: over HTTP against the real command line, in Y.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping

import psycopg
from clock import measure
from patch import CREDENTIAL, teams
from service import Bench, Service, begin, copies, in_steps, load, measure_rows, show, table, tree_cpu

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, validate_flow

#: One has the number of its session as a word; the rest of 3 kB is the same in all.
_FILL = """
    INSERT INTO sessions (owner, id, name, requirement, request, instance_id, status, created_at)
    SELECT %(owner)s, gen_random_uuid(), 'Session ' || n,
        'Build a support chatbot for shop number' || n || ' with memory' || repeat(' and returns', 240),
        '{}', 'default', 'completed', now() - make_interval(secs => n)
    FROM generate_series(1, %(count)s) AS n"""
#: What is asked of a list of sessions, by name.
_ASKED: Mapping[str, Mapping[str, str]] = {
    "first page": {},
    "search, all have the words": {"text": "support shop"},
    "search, one has the word": {"text": "number17"},
    "search, none has the word": {"text": "zebra"},
}


async def sessions(bench: Bench) -> None:
    """The list and the search of many sessions, with totals."""
    for count in map(bench.sized, (1_000, 10_000, 100_000)):
        await bench.unit()
        dsn = bench.database()
        async with bench.outside() as outside, bench.service(outside, POSTGRES_DSN=dsn) as service:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(_FILL, {"owner": DEFAULT_OWNER, "count": count})
                connection.execute("VACUUM ANALYZE sessions")
            for name, asked in _ASKED.items():
                await _pages(bench, service, f"{count} sessions: {name}", asked)
            first = (await service.http.get("/sessions")).json()
            if cursor := first["next_cursor"]:
                await _pages(bench, service, f"{count} sessions: next page", {"cursor": cursor})


async def _pages(bench: Bench, service: Service, name: str, asked: Mapping[str, str], times: int = 40) -> None:
    for _ in range(6):  # a statement is prepared when it comes often
        (await service.http.get("/sessions", params=asked)).raise_for_status()
    taken: list[float] = []
    own, postgres = tree_cpu(service.process.pid), bench.postgres_cpu()
    for _ in range(times):
        began = time.perf_counter()
        await service.http.get("/sessions", params=asked)
        taken.append(time.perf_counter() - began)
    own, postgres = tree_cpu(service.process.pid) - own, bench.postgres_cpu() - postgres
    show(
        name,
        f"{statistics.median(taken) * 1000:.1f} ms, shortest {min(taken) * 1000:.1f}, "
        f"CPU {bench.ratio(own / times)}, Postgres {bench.ratio(postgres / times)}, load {load()}",
    )


async def flows(bench: Bench) -> None:
    """New chatflows on a server that has none, and on those that have many."""
    for count in (0, 600, 10_000):
        await bench.unit()
        async with bench.outside() as outside, bench.service(outside) as service:
            await copies(service, outside, bench.sized(count) if count else 0)
            found = await in_steps(bench, service, outside, lambda _: begin(service.http), ("approve", "accept"))
        table(bench, f"CREATE, rules, {count} chatflows", found)


async def nodes(bench: Bench) -> None:
    """Compiling and checking a flow, with warm caches."""
    schemas = NodeStore.from_snapshot().schemas
    for count in (5, 25, 100, 200, 400):
        ops = teams(count // 5)
        text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
        compiled = measure(lambda ops=ops: compile_ops(GraphIR.empty(), ops, schemas).sha256)
        checked = measure(lambda text=text: validate_flow(text, schemas=schemas, credentials={CREDENTIAL: "openAIApi"}))
        both = compiled.median + checked.median
        show(
            f"{count} nodes: compile and check",
            f"{compiled.median:.1f} and {checked.median:.1f} ms = {both / 1000 / bench.y:.2f} Y, "
            f"{both / count * 1000:.0f} us a node, load {load()}",
        )


ROWS: Mapping[str, Callable[[Bench], Awaitable[None]]] = {"sessions": sessions, "flows": flows, "nodes": nodes}


if __name__ == "__main__":
    with serving(DEFAULT_OWNER):
        asyncio.run(measure_rows(ROWS, __doc__ or ""))
