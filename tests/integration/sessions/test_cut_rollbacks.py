"""A rollback while its connections are cut, from the first to the last byte of what they carry.

It is asked for again until it is answered, as a client does. Then the flow, the intents, the outcome and the events of
the session say the same.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Literal
from uuid import UUID

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam
from flowise_dev_agent.persistence import Database, WriteIntents
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow
from tests.chaos.fake_flowise import FakeFlowise
from tests.writing_world import BOT, Servers, writing_service

Side = Literal["sent", "answered"]
SIDES: tuple[Side, ...] = ("sent", "answered")
SECRET = "flowise-key"
COLDER = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.3)
#: A read of Flowise is tried three times.
MOST_CUTS = 4
MOST_TRIES = 40


class Line:
    """A line to a server. `carried` counts the bytes of a side; it is cut when `ends` of them have gone through, which
    happens `cuts` times."""

    def __init__(self, **target: Any) -> None:
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.whole()

    def whole(self) -> None:
        self.carried: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.cuts, self.side, self.ends = 0, SIDES[0], 0

    def cut(self, side: Side, ends: int, cuts: int) -> None:
        self.whole()
        self.side, self.ends, self.cuts = side, ends, cuts

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self._cut()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if "path" in self._target:
                far_reader, far_writer = await asyncio.open_unix_connection(**self._target)
            else:
                far_reader, far_writer = await asyncio.open_connection(**self._target)
            ends = {writer, far_writer}
            self._open |= ends
            with suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self._carry("sent", reader, far_writer), self._carry("answered", far_reader, writer)
                )
            self._open -= ends
            for end in ends:
                end.close()

    async def _carry(self, side: Side, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                left = self.ends - self.carried[side] if self.cuts and side == self.side else len(data)
                self.carried[side] += len(data)
                writer.write(data[: max(0, left)])
                if left < len(data):
                    await writer.drain()
                    self.cuts -= 1
                    self.carried = dict.fromkeys(SIDES, 0)
                    return self._cut()
                await writer.drain()
        writer.close()
        return None

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()


class Rig:
    """A flow that a session changed, and the lines to its server and to the database."""

    def __init__(self, runtime: Runtime, flowise: FakeFlowise, lines: dict[str, Line], intents: WriteIntents) -> None:
        self.runtime, self.flowise, self.lines, self._intents = runtime, flowise, lines, intents
        self.texts: dict[str, str] = {}
        self.session_id = UUID(int=0)

    async def prepare(self) -> None:
        self.texts["v1.0"] = self.flowise.flows[BOT]["flowData"]
        taken = await self.runtime.flow_writer.apply(BOT, ApplyToFlow(ops=[COLDER]))
        assert taken.session_id is not None
        await self.runtime.service.wait(taken.session_id, 30)
        self.session_id, self.texts["v2.0"] = taken.session_id, self.flowise.flows[BOT]["flowData"]

    async def carried(self) -> dict[tuple[str, Side], int]:
        """The bytes of a rollback that nothing cuts, by line and side."""
        for line in self.lines.values():
            line.whole()
        await self.runtime.versions.rollback(self.session_id, "v1.0")
        return {(name, side): line.carried[side] for name, line in self.lines.items() for side in SIDES}

    async def roll_back(self, label: str) -> list[str]:
        """Ask until it is answered; the codes of what it was answered before."""
        codes: list[str] = []
        for _ in range(MOST_TRIES):
            try:
                await self.runtime.versions.rollback(self.session_id, label)
            except AgentError as error:
                codes.append(error.code)
            else:
                return codes
        raise AssertionError(f"never answered: {codes}")

    async def problems(self, label: str) -> Iterator[str]:
        """Differences from what the rollback left."""
        found: list[str] = []
        if self.flowise.flows[BOT]["flowData"] != self.texts[label]:
            found.append("the flow has another text")
        left = [item for item in await self._intents.list_for(self.session_id) if item.status == "open"]
        found += [f"left open: {item.op}" for item in left]
        view = await self.runtime.service.get(self.session_id)
        if view.outcome != {"v1.0": "rolled_back", "v2.0": "accepted"}[label]:
            found.append(f"the outcome is {view.outcome}")
        return iter(found)


@pytest.fixture
async def rig(database_dsn: str, database: Database, servers: Servers) -> AsyncIterator[Rig]:
    given = conninfo_to_dict(database_dsn)
    socket = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"
    with FakeFlowise(api_key=SECRET, latency=0) as flowise:
        text = servers.dev.flows[BOT].flow_data
        flowise.flows[BOT] = flowise.flows.pop(flowise.add("Bot", text)) | {"id": BOT}
        lines = {"flowise": Line(host="127.0.0.1", port=flowise.port), "database": Line(path=socket)}
        async with lines["flowise"].listening() as far, lines["database"].listening() as near:
            client: Any = FlowiseClient(f"http://127.0.0.1:{far}", SecretStr(SECRET))
            servers.dev = client
            async with writing_service(make_conninfo(database_dsn, host="127.0.0.1", port=near), servers) as runtime:
                rig = Rig(runtime, flowise, lines, WriteIntents(database))
                await rig.prepare()
                yield rig
            await client.aclose()


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])])
async def test_p02_a_rollback_is_settled_wherever_a_connection_is_cut(rig: Rig, count: int) -> None:
    sizes, random = await rig.carried(), Random(count)  # noqa: S311 - to be repeated
    problems: list[str] = []
    print(sizes)
    for number in range(count):
        name, side = [*sizes][number % len(sizes)]
        label = ("v2.0", "v1.0")[number % 2]
        at = round(sizes[name, side] * (number // len(sizes)) / max(1, count // len(sizes) - 1))
        rig.lines[name].cut(side, at, random.randint(1, MOST_CUTS))
        codes = await rig.roll_back(label)
        rig.lines[name].whole()
        print(name, side, at, codes)
        problems += [f"{name}, {side} {at}, {codes}: {one}" for one in await rig.problems(label)]
    assert problems == []
