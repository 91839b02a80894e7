"""The topology of docker-compose.scale.yml as processes of this machine, and what it must be able to do."""

import asyncio
import re
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path
from uuid import UUID

import httpx2
import yaml

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.schemas.requests import ResumeSession
from tests.chaos.fake_flowise import FakeFlowise
from tests.e2e.service import ServiceProcess, until_settled
from tests.support.sessions import new_flow

KEY = "flowise-key"
COMPOSE = yaml.safe_load((Path(__file__).resolve().parents[2] / "docker-compose.scale.yml").read_text())


class Composed:
    """A process as the compose file starts it, on a port of its own, and the script of its health check."""

    def __init__(self, name: str, environment: dict[str, str], folder: Path) -> None:
        spec = COMPOSE["services"][name]
        folder.mkdir()
        # What it says about addresses and secrets is for containers.
        own = {key: str(value) for key, value in spec["environment"].items() if key.startswith("POSTGRES_POOL")}
        command, port = list(spec["command"]), "8000"
        if "--metrics-port" in command:
            index = command.index("--metrics-port") + 1
            port, command[index] = command[index], "0"
        self.process = ServiceProcess({**own, **environment}, folder, *command)
        self._check, self._port = spec["healthcheck"]["test"][-1], port

    async def healthy(self) -> bool:
        """What the container's health check would say."""
        found = re.search(r"http://\S+:(\d+)/metrics", self.process.log())
        port = found[1] if found else str(self.process.port)
        script = self._check.replace(f":{self._port}/", f":{port}/")
        check = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=DEVNULL)
        return await check.wait() == 0

    async def metrics(self) -> str:
        """What a worker tells Prometheus."""
        found = re.search(r"http://\S+/metrics", self.process.log())
        assert found, self.process.log()
        async with httpx2.AsyncClient(timeout=10) as http:
            return (await http.get(found[0])).text


async def serves(dsn: str, direct_dsn: str, folder: Path, *, sessions: int) -> list[str]:
    """Lead `sessions` through two API processes and two workers; the metrics of the workers afterwards.

    They are started by one API process, answered and followed through the other, and end with all of it on SIGTERM.
    """
    with FakeFlowise(api_key=KEY) as flowise:
        environment = {
            "POSTGRES_DSN": dsn,
            "POSTGRES_DIRECT_DSN": direct_dsn,
            "FLOWISE_API_ENDPOINT": f"http://127.0.0.1:{flowise.port}",
            "FLOWISE_API_KEY": KEY,
        }
        names = ["worker", "worker", "api", "api"]
        made = [Composed(name, environment, folder / f"{name}-{number}") for number, name in enumerate(names)]
        apis, workers = made[2:], made[:2]
        try:
            for one in made:
                await one.process.launch()
            for one in apis:
                await one.process.answering()
            async with AgentClient(apis[0].process.url) as client, AgentClient(apis[1].process.url) as other:
                await asyncio.gather(*(_accepted(client, other) for _ in range(sessions)))
                health = await other.health()
                assert health.queue is not None
                assert (health.feed, health.worker, health.queue.workers) == ("listening", None, 2)
            assert await asyncio.gather(*(one.healthy() for one in made)) == [True] * 4
            metrics = [await worker.metrics() for worker in workers]
            assert await asyncio.gather(*(one.process.stop() for one in made)) == [0] * 4
            assert not await made[0].healthy()
        finally:
            for one in made:
                await one.process.kill()
        assert len(flowise.flows) == flowise.created == sessions
    return metrics


async def _accepted(client: AgentClient, other: AgentClient) -> None:
    started = await client.start(new_flow())
    followed = asyncio.create_task(_types(client, started.thread_id))
    for question, action in (("plan_approval", "approve"), ("result_review", "accept")):
        view = await until_settled(other, started.thread_id)
        assert view.interrupt is not None, view.error
        assert view.interrupt.type == question
        await other.resume(started.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action}))
    view = await until_settled(other, started.thread_id)
    assert (view.status, view.outcome) == ("completed", "accepted")
    types = await asyncio.wait_for(followed, 60)
    assert (types.count("interrupt"), types[-1]) == (2, "done")


async def _types(client: AgentClient, session_id: UUID) -> list[str]:
    return [event.type async for event in client.events(session_id)]
