"""A rollback whose process is lost between any two steps is finished by another one, or is none at all."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.errors import FlowiseConnectionLostError, FlowiseRejectedError, FlowiseUnreachableError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam
from flowise_dev_agent.persistence import Database, Sessions, Versions, WriteIntents
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, FlowWriteResult, ImportFlow
from flowise_dev_agent.schemas.versions import TakenBack
from tests.unit.publish.fakes import FakeServer
from tests.writing_world import BOT, Servers, writing_service

ANNA = Caller("anna", ALL_SCOPES, owner="default")
#: What a rollback consists of; the process is lost before one of them.
STEPS: tuple[tuple[type, str], ...] = (
    *((FakeServer, name) for name in ("get_chatflow", "update_chatflow", "delete_chatflow")),
    *((WriteIntents, name) for name in ("list_for", "open", "finish", "end")),
    (Versions, "record"),
    (Sessions, "record_rollback"),
)


class Lost(BaseException):
    """The end of a process."""


@pytest.fixture
async def runtime(database_dsn: str, servers: Servers) -> AsyncIterator[Runtime]:
    async with writing_service(database_dsn, servers) as runtime:
        yield runtime


@contextmanager
def lost_before(number: int) -> Iterator[None]:
    """The process is lost before this step of what is in the block."""
    left = iter(range(number, -1, -1))
    with pytest.MonkeyPatch.context() as patch:

        def step(kind: type, name: str) -> None:
            made = getattr(kind, name)

            async def counted(*given: Any, **named: Any) -> Any:
                if next(left, None) == 0:
                    raise Lost
                return await made(*given, **named)

            patch.setattr(kind, name, counted)

        for kind, name in STEPS:
            step(kind, name)
        yield


class Desk:
    """A session that wrote a flow, and what is known of its rollbacks."""

    def __init__(self, runtime: Runtime, servers: Servers, database: Database, dsn: str) -> None:
        self.runtime, self._server, self._database, self._dsn = runtime, servers.dev, database, dsn
        self.session_id, self.flow_id, self.former = UUID(int=0), BOT, ""
        self._colder = (number / 100 for number in range(1, 100))

    async def write(self, taken: FlowWriteResult) -> None:
        assert taken.session_id is not None
        await self.runtime.service.wait(taken.session_id, 30)
        done = await self.runtime.flow_writer.result(taken.session_id)
        self.session_id, self.flow_id = taken.session_id, done.chatflow_id or ""

    async def change(self) -> None:
        self.former = self._server.flows[BOT].flow_data
        colder = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=next(self._colder))
        await self.write(await self.runtime.flow_writer.apply(BOT, ApplyToFlow(ops=[colder])))

    async def make(self) -> None:
        body = ImportFlow(name="Second", flow_data=self._server.flows[BOT].flow_data)
        await self.write(await self.runtime.flow_writer.import_flow(body))
        made = self._server.flows[self.flow_id]
        self._server.flows[made.id] = made.model_copy(update={"deployed": True})

    def sql(self, statement: Any, *given: Any) -> list[Any]:
        with psycopg.connect(self._dsn) as connection:
            found = connection.execute(statement, given)
            return found.fetchall() if found.description else []

    def wait(self) -> None:
        """Time goes by."""
        self.sql("UPDATE write_intents SET updated_at = updated_at - interval '11 minutes'")

    async def open(self) -> list[str]:
        return [one.op for one in await WriteIntents(self._database).list_for(self.session_id) if one.status == "open"]

    async def asked(self) -> bool:
        """True if a rollback was announced."""
        return any(one.op == "rollback" for one in await WriteIntents(self._database).list_for(self.session_id))

    async def told(self) -> tuple[str | None, int, list[str]]:
        """The outcome, the events of rollbacks, and who asked for one as the ledger has it."""
        view = await self.runtime.service.get(self.session_id)
        events = await self.runtime.service.event_page(self.session_id)
        written = [event for event in events.events if event.type == "write"]
        actors = self.sql("SELECT actor FROM audit_log WHERE action = 'rollback' AND session_id = %s", self.session_id)
        return view.outcome, len(written) - 1, [actor for (actor,) in actors]


@pytest.fixture
def desk(runtime: Runtime, servers: Servers, database: Database, database_dsn: str) -> Desk:
    return Desk(runtime, servers, database, database_dsn)


@pytest.mark.parametrize("created", [None, "delete", "undeploy"])
async def test_p02_a_rollback_that_is_lost_before_any_step_is_finished_once_for_whoever_asked(
    desk: Desk, servers: Servers, created: TakenBack | None
) -> None:
    lost, number = True, 0
    while lost:
        await (desk.make() if created else desk.change())
        before = servers.dev.flows[desk.flow_id]
        with acting_for(ANNA), lost_before(number):
            try:
                await desk.runtime.versions.rollback(desk.session_id, None, created=created)
            except Lost:
                number += 1
            else:
                lost = False
        asked = await desk.asked()
        assert await desk.runtime.versions.pass_once() == 0
        desk.wait()
        assert await desk.runtime.versions.pass_once() == (lost and asked)
        assert await desk.open() == []
        after = servers.dev.flows.get(desk.flow_id)
        if asked:
            assert await desk.told() == ("rolled_back", 1, ["anna"])
            assert is_back(before, after, created)
            assert created or (after and after.flow_data) == desk.former
        else:
            assert (after, await desk.told()) == (before, ("accepted", 0, []))
    assert number >= 6


def is_back(before: Chatflow, after: Chatflow | None, created: TakenBack | None) -> bool:
    """The flow was changed once, as asked."""
    if created == "delete" or after is None:
        return created == "delete" and after is None
    if created == "undeploy":
        return (after.deployed, after.flow_data) == (False, before.flow_data)
    return int(after.updated_date[-7:-5]) - int(before.updated_date[-7:-5]) == 1


@pytest.mark.parametrize("what", ["text", "settings"])
async def test_p07_a_rollback_that_was_lost_leaves_what_somebody_saved_since(
    desk: Desk, servers: Servers, what: str
) -> None:
    await desk.change()
    with lost_before(5), pytest.raises(Lost):
        await desk.runtime.versions.rollback(desk.session_id, None)
    assert await desk.open() == ["rollback", "update"]
    row = servers.dev.flows[BOT]
    theirs = row.model_copy(
        update={
            "updated_date": "2027-01-01T00:00:00.000Z",
            "flow_data": row.flow_data.replace(
                '"Buffer Memory"', '"My memory"' if what == "text" else '"Buffer Memory"'
            ),
            "chatbot_config": '{"starterPrompts":{}}' if what == "settings" else row.chatbot_config,
        }
    )
    servers.dev.flows[BOT] = theirs
    desk.wait()
    assert await desk.runtime.versions.pass_once() == 0
    assert (await desk.open(), servers.dev.flows[BOT]) == ([], theirs)
    assert await desk.told() == ("accepted", 0, [])


async def test_p03_a_rollback_whose_answer_was_lost_waits_for_its_server(desk: Desk, servers: Servers) -> None:
    await desk.change()
    changed = servers.dev.flows[BOT].flow_data
    away = servers.dev.lose(FlowiseUnreachableError)

    def lost() -> None:
        servers.dev.before["get"] = away
        raise FlowiseConnectionLostError("lost")

    servers.dev.after["update"] = lost
    with pytest.raises(FlowiseConnectionLostError):
        await desk.runtime.versions.rollback(desk.session_id, None)
    assert servers.dev.flows[BOT].flow_data != changed
    servers.dev.before["get"] = away
    for finished in (0, 1):
        desk.wait()
        assert await desk.open() == ["rollback", "update"]
        assert await desk.runtime.versions.pass_once() == finished
    assert await desk.open() == []
    assert await desk.told() == ("rolled_back", 1, ["service"])


async def test_p09_a_rollback_that_is_refused_leaves_nothing_to_finish(desk: Desk, servers: Servers) -> None:
    await desk.change()
    changed = servers.dev.flows[BOT]
    servers.dev.before["update"] = servers.dev.lose(FlowiseRejectedError)
    with pytest.raises(FlowiseRejectedError):
        await desk.runtime.versions.rollback(desk.session_id, None)
    desk.wait()
    assert (await desk.open(), await desk.runtime.versions.pass_once()) == ([], 0)
    assert (servers.dev.flows[BOT], await desk.told()) == (changed, ("accepted", 0, []))
