"""Sessions through two API processes and three workers behind pgbouncer, all replaced one by one in the middle.

    nice -n 10 python scripts/bench/soak.py --minutes 15

Each session makes a flow, from its start to its acceptance, on a Flowise in memory and without a model. Clients do as a
proxy does: where a process no longer listens they ask the other one, with the same idempotency key. Prints how many
sessions were lost, how many flows and answers were made twice, and each status of the API.
"""

import argparse
import asyncio
import itertools
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx2
import psycopg

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from scripts.bench.service import show
from tests.chaos.fake_flowise import FakeFlowise
from tests.chaos.pgbouncer import running_pgbouncer
from tests.e2e.service import ServiceProcess
from tests.support.sessions import new_flow

_KEY: Final = "flowise-key"
_ACTIONS: Final = {"plan_approval": "approve", "result_review": "accept"}
_PAUSE: Final = 0.3
_LONGEST: Final = 300.0
_APIS: Final = 2
_WORKERS: Final = 3


class Fleet:
    """The processes of the service, and a client of their APIs."""

    def __init__(self, environment: Mapping[str, str], folder: Path, http: httpx2.AsyncClient) -> None:
        self._environment = environment
        self._folder = folder
        self._http = http
        self._numbers = itertools.count()
        self._turn = itertools.count()
        self.apis: list[ServiceProcess] = []
        self.workers: list[ServiceProcess] = []
        self.statuses: Counter[int] = Counter()
        self.refused = 0

    async def start(self) -> None:
        """Start all."""
        for _ in range(_APIS):
            self.apis.append(await self._started("serve", "--no-worker"))
        for _ in range(_WORKERS):
            self.workers.append(await self._started("worker"))

    async def _started(self, *command: str) -> ServiceProcess:
        folder = self._folder / f"{command[0]}-{next(self._numbers)}"
        folder.mkdir()
        process = ServiceProcess(self._environment, folder, *command)
        await (process.start() if command[0] == "serve" else process.launch())
        return process

    async def replace_all(self) -> list[int]:
        """Start another process for each one, then stop the one that was there; their exit codes."""
        codes: list[int] = []
        for kind, command in ((self.apis, ("serve", "--no-worker")), (self.workers, ("worker",))):
            for former in list(kind):
                kind.append(await self._started(*command))
                kind.remove(former)
                codes.append(await former.stop())
        return codes

    async def stop(self) -> None:
        """Stop all."""
        for process in [*self.apis, *self.workers]:
            await process.stop()

    async def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        """Ask one of the APIs; another one where it does not answer, and again after a 503."""
        headers = {"Idempotency-Key": str(uuid4())} if body is not None else {}
        while True:
            api = self.apis[next(self._turn) % len(self.apis)]
            try:
                response = await self._http.request(method, f"{api.url}{path}", json=body, headers=headers)
            except httpx2.TransportError:
                self.refused += 1
                await asyncio.sleep(_PAUSE)
                continue
            self.statuses[response.status_code] += 1
            if response.status_code != 503:
                return response
            await asyncio.sleep(_PAUSE)


async def session(fleet: Fleet) -> str:
    """Lead one from start to end: its outcome, or what it stopped at."""
    response = await fleet.ask("POST", "/sessions?wait=30", new_flow().model_dump(mode="json", exclude_unset=True))
    while response.status_code < 300:
        view = response.json()
        if view["status"] == "pending_interrupt":
            question = view["interrupt"]
            body = {"interrupt_id": question["id"], "answer": {"action": _ACTIONS[question["type"]]}}
            response = await fleet.ask("POST", f"/sessions/{view['thread_id']}/resume?wait=30", body)
        elif view["status"] == "in_progress":
            await asyncio.sleep(_PAUSE)
            response = await fleet.ask("GET", f"/sessions/{view['thread_id']}")
        else:
            return str(view["outcome"] or view["status"])
    return f"status {response.status_code}"


async def soak(fleet: Fleet, seconds: float, at_once: int) -> tuple[Counter[str], list[float], list[int]]:
    """Outcomes and seconds of all sessions, and the exit codes of the processes that were replaced."""
    ends, took = Counter[str](), list[float]()
    until = time.monotonic() + seconds

    async def client() -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_LONGEST):
                    ends[await session(fleet)] += 1
            except TimeoutError:
                ends["lost"] += 1
            took.append(time.monotonic() - began)

    async def replaced() -> list[int]:
        await asyncio.sleep(seconds / 2)
        return await fleet.replace_all()

    async with asyncio.TaskGroup() as tasks:
        replacing = tasks.create_task(replaced())
        for _ in range(at_once):
            tasks.create_task(client())
    return ends, took, replacing.result()


def twice(dsn: str) -> tuple[int, int]:
    """Questions that were answered more than once, and sessions whose events have a gap."""
    with psycopg.connect(dsn) as connection:
        answers = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM runs WHERE kind = 'resume' GROUP BY session_id, interrupt_id"
            " HAVING count(*) > 1) AS found"
        ).fetchone()
        gaps = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM sessions AS s JOIN session_events AS e ON e.session_id = s.id"
            " GROUP BY s.id HAVING (min(e.seq), max(e.seq), count(*)) <> (1, s.event_seq, s.event_seq)"
            " OR count(*) FILTER (WHERE e.type = 'done') <> 1) AS found"
        ).fetchone()
    return (answers or (-1,))[0], (gaps or (-1,))[0]


async def main() -> None:
    """Soak, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--at-once", type=int, default=12, help="sessions that are led at the same time")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fda-soak-"))
    limits = httpx2.Limits(max_connections=None)
    try:
        with EmbeddedPostgres(folder / "data") as postgres, FakeFlowise(api_key=_KEY) as flowise:
            direct = postgres.create_database("soak")
            async with (
                running_pgbouncer(direct, folder, connections=20) as pooled,
                httpx2.AsyncClient(timeout=120, limits=limits) as http,
            ):
                environment = {
                    "POSTGRES_DSN": pooled,
                    "POSTGRES_DIRECT_DSN": direct,
                    "FLOWISE_API_ENDPOINT": flowise.endpoint,
                    "FLOWISE_API_KEY": _KEY,
                    "LOG_LEVEL": "WARNING",
                }
                fleet = Fleet(environment, folder, http)
                try:
                    await fleet.start()
                    ends, took, codes = await soak(fleet, given.minutes * 60, given.at_once)
                finally:
                    await fleet.stop()
            answers, gaps = twice(direct)
            count, created, kept = sum(ends.values()), flowise.created, len(flowise.flows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    took.sort()
    show("sessions, with their outcomes", f"{count}: {dict(ends)}")
    show("lost", str(count - ends["accepted"]))
    show("flows made twice, answers taken twice", f"{created - count}, {answers}")
    show("flows on the server, sessions with gaps in their events", f"{kept}, {gaps}")
    show("5xx, and all statuses", f"{sum(n for s, n in fleet.statuses.items() if s >= 500)}, {dict(fleet.statuses)}")
    show("requests that went to the other API", str(fleet.refused))
    show("processes replaced, with exit code 0", f"{len(codes)}, {codes.count(0)}")
    show("seconds of a session, median and longest", f"{took[len(took) // 2]:.1f}, {took[-1]:.1f}")


if __name__ == "__main__":
    asyncio.run(main())
