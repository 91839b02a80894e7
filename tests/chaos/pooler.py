"""A real pgbouncer in transaction mode before the database. It must be installed: `make chaos` runs this."""

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.runtime.requests import StartSession
from tests.chaos.fake_flowise import FakeFlowise
from tests.e2e.service import ServiceProcess, until_settled

REQUIREMENT = "A customer support chatbot with GPT-4o and memory"
KEY = "flowise-key"
COMPOSE = yaml.safe_load((Path(__file__).resolve().parents[2] / "docker-compose.scale.yml").read_text())


@pytest.fixture
async def pgbouncer(database_dsn: str, tmp_path: Path) -> AsyncIterator[str]:
    """DSN of a pgbouncer in transaction mode before the database."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    assert program, "Install pgbouncer (apt-get install pgbouncer) for this test."
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parts = conninfo_to_dict(database_dsn)
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    (folder / "users.txt").write_text('"postgres" ""\n')
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={parts['host']} port={parts['port']} user={parts['user']}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"auth_file = {folder / 'users.txt'}\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\n"
    )
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    # It refuses to run as root, and only the server's own user may enter the folder of an embedded one's socket.
    user = ["-u", _owner(str(parts["host"]))] if os.geteuid() == 0 else []
    process: Process = await asyncio.create_subprocess_exec(program, *user, str(config), stderr=DEVNULL)
    try:
        yield f"host=127.0.0.1 port={port} user=postgres dbname={parts['dbname']}"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _owner(host: str) -> str:
    return Path(host).owner() if host.startswith("/") else "nobody"


def service_of_compose(name: str, environment: dict[str, str], folder: Path) -> tuple[ServiceProcess, str]:
    """A process as the compose file starts it, on a port of its own, and the script of its health check."""
    spec = COMPOSE["services"][name]
    folder.mkdir()
    # What it says about addresses and secrets is for containers.
    own = {key: str(value) for key, value in spec["environment"].items() if key.startswith("POSTGRES_POOL")}
    command = list(spec["command"])
    process = ServiceProcess({**own, **environment}, folder, *command)
    port = "8000"
    if "--metrics-port" in command:
        index = command.index("--metrics-port") + 1
        port, command[index] = command[index], str(process.port)
        process = ServiceProcess({**own, **environment}, folder, *command)
        process.port = int(command[index])
    return process, spec["healthcheck"]["test"][-1].replace(f":{port}/", f":{process.port}/")


async def healthy(script: str) -> bool:
    check = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=DEVNULL)
    return await check.wait() == 0


async def test_the_composed_topology_serves_behind_a_transaction_pooler(
    database_dsn: str, pgbouncer: str, tmp_path: Path
) -> None:
    with FakeFlowise(api_key=KEY) as flowise:
        environment = {
            "POSTGRES_DSN": pgbouncer,
            "POSTGRES_DIRECT_DSN": database_dsn,
            "FLOWISE_API_ENDPOINT": f"http://127.0.0.1:{flowise.port}",
            "FLOWISE_API_KEY": KEY,
        }
        made = [
            service_of_compose(name, environment, tmp_path / f"{name}-{number}")
            for name in ("api", "worker")
            for number in range(2)
        ]
        apis, workers = [process for process, _ in made[:2]], [process for process, _ in made[2:]]
        try:
            for process in workers:
                await process.launch()
            for process in apis:
                await process.start()
            async with AgentClient(apis[0].url) as client, AgentClient(apis[1].url) as other:
                requests = [StartSession(requirement=REQUIREMENT) for _ in range(8)]
                started = await asyncio.gather(*(client.start(request) for request in requests))
                for one in started:
                    view = await until_settled(other, one.thread_id)
                    assert view.interrupt is not None, view.error
                    assert view.interrupt.type == "plan_approval"
                health = await other.health()
                assert (health["feed"], health["queue"]["workers"]) == ("listening", 2)
            assert [await healthy(script) for _, script in made] == [True] * 4
            codes = await asyncio.gather(*(process.stop() for process, _ in made))
            assert codes == [0] * 4
            assert [await healthy(script) for _, script in made] == [False] * 4
        finally:
            for process, _ in made:
                await process.kill()
