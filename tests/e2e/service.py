"""The service as its own process, which may be killed, frozen and started again."""

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import UUID

from pydantic import SecretStr

from flowise_dev_agent.cli import main
from flowise_dev_agent.client import AgentClient, ServiceError, ServiceUnreachableError
from flowise_dev_agent.ops import runtime
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.settings import (
    DatabaseSettings,
    DomainSettings,
    FlowiseSettings,
    LimitSettings,
    ReasoningSettings,
    RetentionSettings,
    ServerSettings,
    TracingSettings,
)
from flowise_dev_agent.timings import Timings
from tests.forked import Forked

_READY_SECS = 240
#: For tests that kill, freeze or stop what a session needs: what takes production seconds is noticed within one.
QUICK = Timings(heartbeat=0.2, stalled=1.2, recovery=0.2, drain=1.0, poll=0.5, backoff=0.2, backoff_max=1.0)
#: Every variable of the settings, so that a developer's own environment cannot reach the service under test.
OWN_VARIABLES = frozenset(
    str(field.alias)
    for group in (
        DatabaseSettings,
        DomainSettings,
        FlowiseSettings,
        LimitSettings,
        ReasoningSettings,
        RetentionSettings,
        ServerSettings,
        TracingSettings,
    )
    for field in group.model_fields.values()
)


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path, timings: Timings) -> None:
    """The product's command line, in a process of its own, its output in `service.log` of `folder`."""
    with (folder / "service.log").open("ab") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    # A folder without .env, which the settings would read.
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["flowise-dev-agent", *command]
    runtime.Timings = lambda: timings
    main()


class ServiceProcess:
    """`flowise-dev-agent serve` on a free port of this machine, with the options given; or another command.

    A test that must know the port beforehand gives `AGENT_API_PORT`. Not bound to the event loop that started it.
    """

    def __init__(
        self, environment: Mapping[str, str], folder: Path, *command: str, timings: Timings | None = None
    ) -> None:
        self._command = command or ("serve",)
        self._folder = folder
        self._timings = timings or Timings()
        self.port = int(environment.get("AGENT_API_PORT") or free_port())
        inherited = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
        self._environment = {
            **inherited,
            "REASONING_ENGINE": "deterministic",
            "RATE_LIMIT_SESSIONS_PER_MIN": "0",
            "AGENT_API_PORT": str(self.port),
            # Where it keeps what is not in the database.
            "XDG_DATA_HOME": str(folder / "data"),
            **environment,
        }
        self._process: Forked | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def dsn(self) -> str:
        """Of its database."""
        return self._environment["POSTGRES_DSN"]

    async def start(self) -> None:
        """Start it and return once it answers."""
        await self.launch()
        await self.answering()

    async def launch(self) -> None:
        """Start it."""
        self._process = Forked(_run, self._command, self._environment, self._folder, self._timings)
        await self._process.start()

    async def answering(self) -> None:
        """Return once it answers."""
        assert self._process is not None
        key = self._environment.get("AGENT_API_KEY")
        async with AgentClient(self.url, SecretStr(key) if key else None) as client:
            await until_it_answers(client, self._process, self.log)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        if self._process is None:
            return 0
        self.send(number)
        async with asyncio.timeout(30):
            code = await self.ended()
        self._process = None
        return code

    async def ended(self) -> int:
        """Wait until it ends by itself or by a signal; the exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        await self.stop(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal and go on; one that has ended is left alone."""
        assert self._process is not None
        self._process.send_signal(number)

    def close(self) -> None:
        """Kill it, outside of any event loop."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def log(self) -> str:
        return (self._folder / "service.log").read_text()


class _Process(Protocol):
    """What a test started."""

    @property
    def running(self) -> bool: ...


async def until_it_answers(client: AgentClient, process: _Process, log: Callable[[], str]) -> None:
    """Return once the service of a process answers."""
    async with asyncio.timeout(_READY_SECS):
        while True:
            assert process.running, log()
            try:
                await client.list(limit=1)
            except ServiceUnreachableError:
                await asyncio.sleep(0.05)
            except ServiceError as error:
                # It is there, and its database does not answer yet.
                if error.status != 503:
                    raise
                await asyncio.sleep(0.05)
            else:
                return


async def until_settled(client: AgentClient, session_id: UUID, patience: float = 120) -> SessionView:
    """The session at its next question or its end."""
    view = await client.wait(session_id, patience)
    assert not view.in_progress, f"{view.status} {view.phase}"
    return view


async def all_events(client: AgentClient, session_id: UUID) -> list[SessionEvent]:
    """Every stored event of a session that has ended."""
    return [event async for event in client.events(session_id) if event.seq]


def free_port() -> int:
    """A port below those of outgoing connections, so that nobody takes it before the service does."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
