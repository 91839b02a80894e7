"""Cost of the watch of flows: `python scripts/bench/watch.py`, with `--flows` for the first look.

A Flowise in memory, in a process of its own, has flows of 40 KB. Prints what the first look at all of them takes, what
a turn takes while nothing changes, and what 200 edits by another hand leave: requests, rows, bytes, and states that are
no version or twice one. A turn is taken at once here, in production every `FLOWISE_WATCH_SECS` seconds.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx2
import psycopg

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.watch import Watch
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, SetParam, compile_ops
from flowise_dev_agent.persistence import Blobs, Database, WatchedVersions, migrate
from flowise_dev_agent.settings import FlowiseSettings
from scripts.bench.service import Bench, load, show
from tests.chaos.fake_flowise import CREDENTIALS
from tests.fixtures.golden_flows import chat

_BYTES: Final = 40_000
_EDITED: Final = 200
_QUIET: Final = 10
_TURNS_A_DAY: Final = 24 * 60
SCHEMAS: Final = NodeStore.from_snapshot().schemas


@dataclass(frozen=True)
class World:
    """The server by its own API, the watch on it, and the database."""

    http: httpx2.AsyncClient
    counts: str
    watch: Watch
    dsn: str

    async def requests(self) -> Mapping[str, int]:
        """Requests by route since the last time."""
        return (await self.http.get(self.counts)).json()["calls"]

    async def look(self) -> None:
        """Take one turn."""
        await self.watch.look("default")

    def kept(self) -> tuple[int, int, int]:
        """Versions, states that are more than one version, and bytes of the database."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM watched_versions), (SELECT count(*) FROM (SELECT 1 FROM watched_versions"
                " GROUP BY chatflow_id, sha256 HAVING count(*) > 1) AS twice), pg_database_size(current_database())"
            ).fetchone()
        return row or (0, 0, 0)


class Texts:
    """Flows of 40 KB, of many nodes, each with words of its own."""

    def __init__(self) -> None:
        schemas = SCHEMAS
        graph = compile_ops(GraphIR.empty(), chat({"openAIApi": CREDENTIALS[0]["id"]}), schemas)
        (chain,) = [node.id for node in graph.graph.nodes if node.name == "conversationChain"]
        op = SetParam(node_id=chain, param_name="systemMessagePrompt", value="WORDS")
        made = compile_ops(graph.graph, [op], schemas)
        for name in sorted(name for name in schemas if name.startswith("chat")):
            if len(made.flow_data) < _BYTES:
                made = compile_ops(made.graph, [AddNode(node_name=name, node_id=f"{name}_9")], schemas)
        self._flow = made.flow_data

    def text(self, number: int) -> str:
        """Flow data."""
        return self._flow.replace('"WORDS"', json.dumps(f"You are number {number}. {uuid4()}"))


async def measure(world: World, flows: int) -> None:
    """Print all rows."""
    texts, ids = Texts(), list[str]()
    for number in range(flows):
        body = {"name": f"Flow {number}", "flowData": texts.text(number), "type": "CHATFLOW"}
        ids.append((await world.http.post("/chatflows", json=body)).json()["id"])
    await world.requests()
    _, _, empty = world.kept()
    began, cpu = time.perf_counter(), time.process_time()
    await world.look()
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    asked = await world.requests()
    versions, _, size = world.kept()
    show(f"first look at {flows} flows", f"CPU {cpu:.1f} s, wall {took:.1f} s, {sum(asked.values())} requests")
    show(
        "left by it", f"{versions} versions, {(size - empty) / 1e6:.1f} MB, {(size - empty) / flows / 1e3:.1f} KB each"
    )

    while (asked := await _turn(world)) and sum(asked.values()) > 1:
        pass  # checks of flows that were found
    asked = dict[str, int]()
    for _ in range(_QUIET):
        for route, number in (await _turn(world)).items():
            asked[route] = asked.get(route, 0) + number
    a_turn = sum(asked.values()) / _QUIET
    show("a turn while nothing changes", f"{a_turn:.2f} requests: {a_turn * _TURNS_A_DAY:.0f} a day, {asked}")

    before, _, size = world.kept()
    total = 0
    for number, id_ in enumerate(ids[:_EDITED]):
        await world.http.put(f"/chatflows/{id_}", json={"flowData": texts.text(number)})
        if number % 10 == 9:
            asked = await _turn(world)
            total += sum(count for route, count in asked.items() if not route.startswith("PUT"))
    after, twice, grown = world.kept()
    edits = min(_EDITED, len(ids))
    show(f"{edits} edits, ten between two turns", f"{total} requests, {total / edits:.2f} an edit")
    show("lost, twice", f"{edits - (after - before)}, {twice}")
    show("left by an edit", f"{(after - before) / edits:.2f} rows, {(grown - size) / edits / 1e3:.1f} KB")


async def _turn(world: World) -> Mapping[str, int]:
    await world.look()
    return await world.requests()


async def _schemas(_: str) -> Schemas:
    return SCHEMAS


async def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flows", type=int, default=1_000)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fda-bench-"))
    try:
        with EmbeddedPostgres(folder / "data") as postgres:
            bench = Bench(postgres, folder, 1, 1.0)
            dsn = bench.database()
            await migrate(dsn)
            async with bench.outside() as outside, Database(dsn, min_size=1, max_size=4, connect_timeout=5) as database:
                servers = [{"id": "default", "endpoint": outside["flowise"], "api_key": "bench"}]
                instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
                watch = Watch(
                    database,
                    index=FlowIndex(database, watched=WatchedVersions(database)),
                    blobs=Blobs(database),
                    instances=instances,
                    schemas=_schemas,
                    every_secs=60,
                )
                key = {"Authorization": "Bearer bench"}
                base = f"{outside['flowise']}/api/v1"
                async with httpx2.AsyncClient(base_url=base, headers=key, timeout=60) as http:
                    await measure(World(http, f"{outside['flowise']}/counts", watch, dsn), given.flows)
                await instances.aclose()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show("load of this machine", load())


if __name__ == "__main__":
    asyncio.run(main())
