"""Announced writes as rows: what is opened again, what stays done, and what is settled with another one."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.errors import SessionConflictError
from flowise_dev_agent.persistence import Database, WriteIntent, WriteIntents


@pytest.fixture
async def session_id(database: Database) -> UUID:
    """A session that nothing runs for."""
    id_ = uuid4()
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status)"
            " VALUES (%s, 'r', '{}', 'i', 'failed')",
            (id_,),
        )
    return id_


async def opened(database: Database, session_id: UUID, key: UUID, **values: Any) -> WriteIntent:
    defaults: dict[str, Any] = {
        "op": "update",
        "iteration": 0,
        "target_id": "flow",
        "payload_sha256": "after",
        "base_sha256": "before",
        "tag": "t",
    }
    return await WriteIntents(database).open(None, key=key, session_id=session_id, **{**defaults, **values})


async def test_a_failed_write_is_open_again_and_new_while_nothing_of_it_can_have_landed(
    database: Database, session_id: UUID
) -> None:
    key, intents = uuid4(), WriteIntents(database)
    assert (await opened(database, session_id, key)).is_new
    again = await opened(database, session_id, key)
    assert (again.status, again.is_new) == ("open", False)
    await intents.finish(None, key, status="failed", result={"code": "flowise_rejected"})
    refused = await opened(database, session_id, key)
    assert (refused.status, refused.result, refused.is_new) == ("open", None, True)
    await intents.finish(None, key, status="failed", result={"chatflow_id": "c", "expected": "after"})
    differed = await opened(database, session_id, key)
    assert (differed.status, differed.is_new) == ("open", False)
    await intents.finish(None, key, status="done", result={"chatflow_id": "c"})
    await intents.finish(None, key, status="failed", result={})
    done = await opened(database, session_id, key)
    assert (done.status, done.result) == ("done", {"chatflow_id": "c"})


async def test_open_writes_of_the_same_text_to_the_same_flow_are_settled_together(
    database: Database, session_id: UUID
) -> None:
    lost, other_flow, other_text, late = (uuid4() for _ in range(4))
    await opened(database, session_id, lost, base_sha256="earlier")
    await opened(database, session_id, other_flow, target_id="another")
    await opened(database, session_id, other_text, payload_sha256="another")
    await opened(database, session_id, late)
    intents = WriteIntents(database)
    await intents.finish(None, late, status="done", result={"chatflow_id": "flow"})
    found = {item.key: item.status for item in await intents.list_for(session_id)}
    assert found == {lost: "done", late: "done", other_flow: "open", other_text: "open"}


async def test_without_a_lease_nothing_is_announced_while_the_session_is_at_work(
    database: Database, session_id: UUID
) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE sessions SET status = 'running' WHERE id = %s", (session_id,))
    with pytest.raises(SessionConflictError, match="nothing was written"):
        await opened(database, session_id, uuid4())
    assert await WriteIntents(database).list_for(session_id) == []
