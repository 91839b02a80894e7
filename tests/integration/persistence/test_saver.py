"""The fence: who lost the lease writes no checkpoint, no event and no intent."""

import uuid
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from flowise_dev_agent.errors import LeaseLostError
from flowise_dev_agent.persistence import Database, Events, FencedSaver, Lease, NewEvent, WriteIntents


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


def checkpoint(value: Any) -> Any:
    return {
        **empty_checkpoint(),
        "id": str(uuid.uuid4()),
        "channel_values": {"x": value},
        "channel_versions": {"x": 1},
    }


async def rows(database: Database) -> list[int]:
    found = await database.fetch_all(
        "SELECT (SELECT count(*) FROM checkpoints) + (SELECT count(*) FROM checkpoint_blobs)"
        " + (SELECT count(*) FROM checkpoint_writes) + (SELECT count(*) FROM session_events)"
        " + (SELECT count(*) FROM write_intents) AS n"
    )
    return [row["n"] for row in found]


async def test_the_owner_writes_and_reads_checkpoints(database: Database) -> None:
    session_id, lease = await add_run(database)
    saver = FencedSaver(database.pool, lease)
    saved = await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})
    await saver.aput_writes(saved, [("x", {"b": 2})], "task")
    found = await saver.aget_tuple(config(session_id))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": {"a": 1}}
    assert [write[2] for write in found.pending_writes or []] == [{"b": 2}]


async def test_after_a_takeover_nothing_can_be_written_under_the_old_lease(database: Database) -> None:
    session_id, old = await add_run(database)
    saver = FencedSaver(database.pool, old)
    saved = await saver.aput(config(session_id), checkpoint({"a": 1}), {}, {"x": 1})
    new = await take_over(database, old)
    before = await rows(database)

    with pytest.raises(LeaseLostError):
        await saver.aput(config(session_id), checkpoint({"a": 2}), {}, {"x": 2})
    with pytest.raises(LeaseLostError):
        await saver.aput_writes(saved, [("x", 1)], "task")
    with pytest.raises(LeaseLostError):
        await saver.aprune([str(session_id)])
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
