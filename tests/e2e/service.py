"""The service as its own process, which may be killed, frozen and started again."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from pydantic import SecretStr

from flowise_dev_agent.client import AgentClient, ServiceUnreachableError
from flowise_dev_agent.runtime.sessions.views import SessionEvent, SessionView
from flowise_dev_agent.settings import (
    DatabaseSettings,
    FlowiseSettings,
    LimitSettings,
    ReasoningSettings,
    RetentionSettings,
    ServerSettings,
    TracingSettings,
)

_ROOT = Path(__file__).resolve().parents[2]
_READY_SECS = 240
#: Every variable of the settings, so that a developer's own environment cannot reach the service under test.
_OWN_VARIABLES = frozenset(
    str(field.alias)
    for group in (
        DatabaseSettings,
        FlowiseSettings,
        LimitSettings,
        ReasoningSettings,
        RetentionSettings,
        ServerSettings,
        TracingSettings,
    )
    for field in group.model_fields.values()
)


class ServiceProcess:
    """`flowise-dev-agent serve` on a free port of this machine, with the options given; or another command."""

    def __init__(self, environment: Mapping[str, str], folder: Path, *command: str) -> None:
        self._command = command or ("serve",)
        self._folder = folder
        self.port = _free_port()
        inherited = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
        self._environment = {
            **inherited,
            # The code under test, whatever the environment has installed.
            "PYTHONPATH": str(_ROOT),
            "REASONING_ENGINE": "deterministic",
            "RATE_LIMIT_SESSIONS_PER_MIN": "0",
            "AGENT_API_PORT": str(self.port),
            **environment,
        }
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and return once it answers."""
        await self.launch()
        await self.answering()

    async def launch(self) -> None:
        """Start it."""
        log = (self._folder / "service.log").open("ab")
        with log:
            # In a folder without .env, which the settings would read.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "flowise_dev_agent",
                *self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def answering(self) -> None:
        """Return once it answers."""
        assert self._process is not None
        key = self._environment.get("AGENT_API_KEY")
        async with (
            AgentClient(self.url, SecretStr(key) if key else None) as client,
            asyncio.timeout(_READY_SECS),
        ):
            while True:
                assert self._process.returncode is None, self.log()
                try:
                    await client.list(limit=1)
                except ServiceUnreachableError:
                    await asyncio.sleep(0.05)
                else:
                    return

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        if self._process is None:
            return 0
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        async with asyncio.timeout(30):
            code = await self._process.wait()
        self._process = None
        return code

    async def ended(self) -> int:
        """Wait until it ends by itself or by a signal; the exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        await self.stop(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal and go on."""
        assert self._process is not None
        self._process.send_signal(number)

    def log(self) -> str:
        return (self._folder / "service.log").read_text()


async def until_settled(client: AgentClient, session_id: UUID, patience: float = 120) -> SessionView:
    """The session at its next question or its end."""
    view = await client.wait(session_id, patience)
    assert not view.in_progress, f"{view.status} {view.phase}"
    return view


async def all_events(client: AgentClient, session_id: UUID) -> list[SessionEvent]:
    """Every stored event of a session that has ended."""
    return [event async for event in client.events(session_id) if event.seq]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
