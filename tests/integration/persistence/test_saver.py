"""The fence: who lost the lease writes no checkpoint, no event and no intent."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Interrupt

from flowise_dev_agent.errors import LeaseLostError
from flowise_dev_agent.persistence import (
    Claim,
    Database,
    Events,
    FencedSaver,
    Lease,
    NewEvent,
    Queue,
    Runs,
    Sessions,
    WriteIntents,
)
from flowise_dev_agent.persistence.runs import RunResult
from flowise_dev_agent.persistence.saver import Standing, plain_serializer, standing


async def add_run(database: Database, *, epoch: int = 1) -> tuple[uuid.UUID, Lease]:
    """A session with a running run."""
    session_id, run_id = uuid.uuid4(), uuid.uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status)"
            " VALUES (%s, 'r', '{}', 'i', 'running')",
            (session_id,),
        )
        await connection.execute(
            "INSERT INTO runs (id, session_id, kind, status, epoch) VALUES (%s, %s, 'start', 'running', %s)",
            (run_id, session_id, epoch),
        )
    return session_id, Lease(run_id, epoch)


async def take_over(database: Database, lease: Lease) -> Lease:
    async with database.connection() as connection:
        await connection.execute("UPDATE runs SET epoch = epoch + 1 WHERE id = %s", (lease.run_id,))
    return Lease(lease.run_id, lease.epoch + 1)


def config(session_id: uuid.UUID) -> Any:
    return {"configurable": {"thread_id": str(session_id), "checkpoint_ns": ""}}


def going_on(value: Any, **more: Any) -> Any:
    """A checkpoint that a node follows."""
    values = {"x": value, "branch:to:next": None, **more}
    return {**checkpoint(value), "channel_values": values, "channel_versions": dict.fromkeys(values, 1)}


def checkpoint(value: Any) -> Any:
    return {**empty_checkpoint(), "channel_values": {"x": value}, "channel_versions": {"x": 1}}


async def rows(database: Database) -> list[int]:
    found = await database.fetch_all(
        "SELECT (SELECT count(*) FROM checkpoints) + (SELECT count(*) FROM checkpoint_blobs)"
        " + (SELECT count(*) FROM checkpoint_writes) + (SELECT count(*) FROM session_events)"
        " + (SELECT count(*) FROM write_intents) AS n"
    )
    return [row["n"] for row in found]


async def test_the_owner_writes_and_reads_checkpoints(database: Database) -> None:
    session_id, lease = await add_run(database)
    saver = FencedSaver(database, lease)
    saved = await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})
    await saver.aput_writes(saved, [("x", {"b": 2})], "task")
    found = await saver.aget_tuple(config(session_id))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": {"a": 1}}
    assert [write[2] for write in found.pending_writes or []] == [{"b": 2}]


class Counting(FencedSaver):
    """Counts what it reads from Postgres."""

    reads = 0

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        self.reads += not pipeline
        async with super()._cursor(pipeline=pipeline) as cursor:
            yield cursor


def stock(database: Database) -> AsyncPostgresSaver:
    """The library's saver, which must understand what ours stores."""
    return AsyncPostgresSaver(database.pool, serde=plain_serializer())


async def test_the_librarys_saver_reads_what_ours_stores_and_the_other_way_round(database: Database) -> None:
    session_id, lease = await add_run(database)
    first = checkpoint({"a": 1}) | {
        "channel_values": {
            "x": {"a": [1, None]},
            "text": "t",
            "none": None,
            "number": 1.5,
            "list": [],
            "branch:to:next": None,
        },
        "channel_versions": {
            "x": "1.a",
            "text": "1.b",
            "none": "1.c",
            "number": "1.d",
            "list": "1.e",
            "branch:to:next": "1.f",
        },
    }
    metadata: Any = {"source": "loop", "step": 3}
    ours = FencedSaver(database, lease)
    saved = await ours.aput(config(session_id), first, metadata, first["channel_versions"])
    theirs = await stock(database).aget_tuple(config(session_id))
    assert theirs is not None
    assert theirs.checkpoint == first
    assert theirs.metadata == metadata
    assert (theirs.config, theirs.parent_config, theirs.pending_writes) == (saved, None, [])
    assert await ours.aget_tuple(config(session_id)) == theirs

    # A second one shares the blobs of what did not change, and knows its parent.
    second: Any = {
        **first,
        "id": empty_checkpoint()["id"],
        "channel_values": {**first["channel_values"], "x": {"b": 2}},
    }
    second["channel_versions"] = {**first["channel_versions"], "x": "2.a"}
    last = await ours.aput(saved, second, metadata, {"x": "2.a"})
    theirs = await stock(database).aget_tuple(last)
    assert theirs is not None
    assert theirs.checkpoint == second
    assert theirs.parent_config == saved
    assert await FencedSaver(database, lease).aget_tuple(last) == theirs


async def test_what_a_task_wrote_becomes_rows_only_where_the_next_checkpoint_does_not_say_it(
    database: Database,
) -> None:
    session_id, lease = await add_run(database)
    saver = FencedSaver(database, lease)
    saved = await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})

    async def stored() -> list[tuple[str, str]]:
        found = await database.fetch_all("SELECT task_id, channel FROM checkpoint_writes ORDER BY task_id, idx")
        return [(row["task_id"], row["channel"]) for row in found]

    await saver.aput_writes(saved, [("x", 1)], "quick")
    assert await stored() == []
    saved = await saver.aput(saved, checkpoint({"a": 2}), {}, {"x": 2})
    assert await stored() == []
    # Beside a task that asks, one that is done must not run again.
    await saver.aput_writes(saved, [("x", 1)], "done")
    await saver.aput_writes(saved, [(INTERRUPT, "?")], "asks")
    assert await stored() == [("asks", INTERRUPT), ("done", "x")]
    # Nor one that is done after the other has asked.
    await saver.aput_writes(saved, [("x", 1)], "late")
    found = await saver.aget_tuple(config(session_id))
    assert await stored() == [("asks", INTERRUPT), ("done", "x"), ("late", "x")]
    assert found is not None
    assert {(task, channel) for task, channel, _ in found.pending_writes or []} == set(await stored())


async def test_a_checkpoint_that_can_wait_is_stored_with_the_next_one_or_with_what_refers_to_it(
    database: Database,
) -> None:
    session_id, lease = await add_run(database)
    steps: list[tuple[Any, Any]] = []

    def can_wait(ended: Any, following: Any) -> bool:
        steps.append((set(ended), set(following)))
        return following == {"quick"}

    def at(node: str, versions: dict[str, int], **values: Any) -> Any:
        return {
            **empty_checkpoint(),
            "channel_values": {f"branch:to:{node}": None, **values},
            "channel_versions": {f"branch:to:{node}": 1, **versions},
        }

    async def stored() -> list[str]:
        found = await database.fetch_all("SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id")
        return [row["checkpoint_id"] for row in found]

    saver = FencedSaver(database, lease, fresh=True, can_wait=can_wait)
    first = at("slow", {"x": 1}, x={"a": 1})
    saved = await saver.aput(config(session_id), first, {}, {"x": 1})
    second = at("quick", {"x": 2, "y": 1}, x={"a": 2}, y={"b": 1})
    saved = await saver.aput(saved, second, {}, {"x": 2, "y": 1})
    assert await stored() == [first["id"]]
    await saver.aput_writes(saved, [("y", {"b": 2})], "quick")
    third = at("slow", {"x": 2, "y": 2}, x={"a": 2}, y={"b": 2})
    last = await saver.aput(saved, third, {}, {"y": 2})
    assert await stored() == [first["id"], third["id"]]
    assert steps == [(set(), {"slow"}), ({"slow"}, {"quick"}), ({"slow", "quick"}, {"slow"})]
    # What changed in the one that was never stored is there, and the next one follows one that is.
    theirs = await stock(database).aget_tuple(last)
    assert theirs is not None
    assert theirs.checkpoint == third
    assert theirs.parent_config is not None
    assert theirs.parent_config.get("configurable", {})["checkpoint_id"] == first["id"]

    fourth = at("quick", {"x": 3, "y": 2}, x={"a": 3}, y={"b": 2})
    saved = await saver.aput(last, fourth, {}, {"x": 3})
    await saver.aput_writes(saved, [(RESUME, "an answer")], "quick")
    assert await stored() == [first["id"], third["id"]]
    await saver.aput_writes(saved, [(INTERRUPT, "?")], "quick")
    assert await stored() == [first["id"], third["id"], fourth["id"]]
    theirs = await stock(database).aget_tuple(config(session_id))
    assert theirs == await saver.aget_tuple(config(session_id))
    assert theirs is not None
    assert {channel for _, channel, _ in theirs.pending_writes or []} == {RESUME, INTERRUPT}


async def test_the_latest_checkpoint_is_read_once_and_each_reader_gets_its_own(database: Database) -> None:
    session_id, lease = await add_run(database)
    saver = Counting(database, lease, fresh=True)
    assert await saver.aget_tuple(config(session_id)) is None
    await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})
    first = await saver.aget_tuple(config(session_id))
    assert first is not None
    first.checkpoint["channel_versions"]["x"] = 99
    again = await saver.aget_tuple(config(session_id))
    assert again is not None
    assert again.checkpoint["channel_versions"]["x"] == 1
    assert saver.reads == 0
    later = Counting(database, lease)
    assert await later.aget_tuple(config(session_id)) == await later.aget_tuple(config(session_id)) == again
    assert later.reads == 1


async def test_the_last_checkpoint_leaves_only_itself_and_only_under_the_lease(database: Database) -> None:
    session_id, lease = await add_run(database)
    other_id, other_lease = await add_run(database)
    await FencedSaver(database, other_lease).aput(config(other_id), going_on({"c": 1}), {}, {"x": 1})
    others = (await rows(database))[0]
    saver = FencedSaver(database, lease)
    first = going_on({"a": 1}, kept={"b": 1})
    saved = await saver.aput(config(session_id), first, {}, {"x": 1, "kept": 1})
    await saver.aput_writes(saved, [(INTERRUPT, "?")], "asks")
    last: Any = {
        **checkpoint({"a": 2}),
        "channel_values": {"x": {"a": 2}, "kept": {"b": 1}},
        "channel_versions": {"x": 2, "kept": 1},
    }
    before = await rows(database)
    stale = FencedSaver(database, Lease(lease.run_id, lease.epoch - 1))
    with pytest.raises(LeaseLostError):
        await stale.aput(saved, last, {}, {"x": 2})
    assert await rows(database) == before
    await saver.aput(saved, last, {}, {"x": 2})
    assert await rows(database) == [others + 3]
    theirs = await stock(database).aget_tuple(config(session_id))
    assert theirs is not None
    assert theirs.checkpoint == last
    assert (theirs.parent_config, theirs.pending_writes) == (None, [])


async def test_where_a_thread_is_follows_from_its_checkpoint_and_what_was_written_after_it(database: Database) -> None:
    session_id, lease = await add_run(database)
    saver = FencedSaver(database, lease)
    saved = await saver.aput(config(session_id), going_on({"a": 1}), {}, {"x": 1})
    question = Interrupt(value={"type": "t"}, id="q")
    await saver.aput_writes(saved, [(INTERRUPT, [question])], "task")

    async def place() -> Standing:
        found = await FencedSaver(database, lease).aget_tuple(config(session_id))
        assert found is not None
        return standing(found)

    assert await place() == Standing({"x": {"a": 1}}, {"next"}, [question])
    # The answer is not yet the end of the node; what it returns is.
    await saver.aput_writes(saved, [(RESUME, ["yes"])], "task")
    await saver.flush()
    assert (await place()).interrupts == [question]
    await saver.aput_writes(saved, [("x", {"a": 2})], "task")
    await saver.flush()
    assert (await place()).interrupts == []


async def test_who_lost_the_lease_settles_nothing(database: Database, database_dsn: str) -> None:
    session_id, old = await add_run(database)
    new = await take_over(database, old)
    queue = Queue(database_dsn)
    session = await Sessions(database, queue).get(session_id)
    claim = Claim(old, 0, session, kind="start", attempt=0, interrupt_id=None, answer=None, has_webhook=False)
    end = RunResult("failed", NewEvent("error"), error={"code": "x"})
    runs = Runs(database, queue)
    with pytest.raises(LeaseLostError):
        await runs.finalize(claim, end, [NewEvent("node_end")])
    assert (await Sessions(database, queue).get(session_id)) == session
    assert await Events(database).read(session_id, after=0) == []
    # The owner's end has all of it, in order.
    await runs.finalize(replace(claim, lease=new), end, [NewEvent("node_end")], flowise_calls=2)
    settled = await Sessions(database, queue).get(session_id)
    assert (settled.status, settled.event_seq, settled.totals["flowise_calls"]) == ("failed", 2, 2)
    assert [event.type for event in await Events(database).read(session_id, after=0)] == ["node_end", "error"]


async def test_after_a_takeover_nothing_can_be_written_under_the_old_lease(database: Database) -> None:
    session_id, old = await add_run(database)
    saver = FencedSaver(database, old)
    saved = await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})
    new = await take_over(database, old)
    before = await rows(database)

    with pytest.raises(LeaseLostError):
        await saver.aput(config(session_id), checkpoint({"a": 2}), {}, {"x": 2})
    with pytest.raises(LeaseLostError):
        await saver.aput_writes(saved, [(INTERRUPT, 1)], "task")
    with pytest.raises(LeaseLostError):
        await Events(database).append(old, session_id, [NewEvent("write")])
    intents = WriteIntents(database)
    with pytest.raises(LeaseLostError):
        await open_intent(intents, old, session_id)
    assert await rows(database) == before
    assert (await Events(database).heads([session_id]))[session_id] == (0, "running")

    intent = await open_intent(intents, new, session_id)
    with pytest.raises(LeaseLostError):
        await intents.finish(old, intent.key, status="done", result={})
    assert [item.status for item in await intents.list_for(session_id)] == ["open"]


async def open_intent(intents: WriteIntents, lease: Lease, session_id: uuid.UUID, key: uuid.UUID | None = None) -> Any:
    return await intents.open(
        lease,
        key=key or uuid.uuid4(),
        session_id=session_id,
        op="create",
        iteration=0,
        target_id=None,
        payload_sha256="ab" * 32,
        base_sha256=None,
        tag="fda:x:flow",
    )


async def test_an_intent_opened_again_is_the_earlier_one_with_its_result(database: Database) -> None:
    session_id, lease = await add_run(database)
    intents, key = WriteIntents(database), uuid.uuid4()
    first = await open_intent(intents, lease, session_id, key)
    assert (first.status, first.result) == ("open", None)
    await intents.finish(lease, key, status="done", result={"chatflow_id": "c\x00"})
    await intents.finish(lease, key, status="failed", result={})
    again = await open_intent(intents, await take_over(database, lease), session_id, key)
    assert (again.key, again.status, again.result) == (key, "done", {"chatflow_id": "c\ufffd"})


async def test_a_takeover_waits_for_a_write_that_has_passed_the_fence(database: Database) -> None:
    session_id, lease = await add_run(database)
    async with database.transaction() as connection:
        await connection.execute("SELECT assert_owner(%s, %s)", (lease.run_id, lease.epoch))
        locked = await database.fetch_one(
            "SELECT 1 AS free FROM runs WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", (lease.run_id,)
        )
    assert locked is None
    assert session_id is not None
