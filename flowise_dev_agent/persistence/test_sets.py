"""Repository of the test sets of flows, and of marks that people give to the tests of a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Connection, Database, jsonb

#: Accepted sessions whose tests a set takes over at a time.
_MOST_SESSIONS: Final = 20
_PUT: Final = """
    INSERT INTO test_sets (instance_id, chatflow_id, tests, updated_at)
    VALUES (%s, %s, %s, COALESCE(%s::timestamptz, now()))
    ON CONFLICT (owner, instance_id, chatflow_id) DO UPDATE SET tests = excluded.tests, updated_at = excluded.updated_at
"""


@dataclass(frozen=True)
class TestSetRow:
    """A stored set. Tests of sessions that were accepted after `updated_at` are not in it yet."""

    __test__ = False  # not a pytest class

    tests: list[dict[str, Any]]
    updated_at: datetime


@dataclass(frozen=True)
class AcceptedTests:
    """Tests of the plan of an accepted session."""

    tests: list[dict[str, Any]]
    created_at: datetime
    updated_at: datetime


class TestSets:
    """Repository of test sets, one per flow and owner."""

    __test__ = False  # not a pytest class

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, instance_id: str, chatflow_id: str) -> TestSetRow | None:
        """The stored set of a flow."""
        return await self._database.row(
            TestSetRow,
            "SELECT tests, updated_at FROM test_sets WHERE instance_id = %s AND chatflow_id = %s",
            (instance_id, chatflow_id),
        )

    async def accepted(self, instance_id: str, chatflow_id: str, since: datetime | None) -> list[AcceptedTests]:
        """Tests of the sessions of a flow that were accepted after `since`, oldest first."""
        rows = await self._database.rows(
            AcceptedTests,
            "SELECT plan -> 'contract' -> 'tests' AS tests, created_at, updated_at FROM sessions"
            " WHERE instance_id = %s AND chatflow_id = %s AND outcome = 'accepted'"
            " AND jsonb_typeof(plan -> 'contract' -> 'tests') = 'array'"
            " AND updated_at > COALESCE(%s::timestamptz, '-infinity')"
            " ORDER BY updated_at DESC LIMIT %s",
            (instance_id, chatflow_id, since, _MOST_SESSIONS),
        )
        return rows[::-1]

    async def put(
        self, instance_id: str, chatflow_id: str, tests: Sequence[Mapping[str, Any]], *, until: datetime | None = None
    ) -> None:
        """Store a set. `until`: it has the tests of sessions accepted up to then; None: a person gave it now."""
        async with self._database.transaction() as connection:
            await connection.execute(_PUT, (instance_id, chatflow_id, jsonb(list(tests)), until))
            if until is None:
                await record(connection, Fact("test_set.put", instance_id=instance_id, chatflow_id=chatflow_id))

    async def mark(
        self, session_id: UUID, result: Mapping[str, Any], version: str | None, *, number: int, good: bool
    ) -> bool:
        """Store the result of a session with a person's mark of its test `number`; False if the session has changed
        since it was read.
        """
        async with self._database.transaction() as connection:
            changed = await _marked(connection, session_id, result, version)
            if changed:
                await record(
                    connection, Fact(f"test.mark_{'good' if good else 'wrong'}", session_id, words=str(number))
                )
        return changed


async def _marked(connection: Connection, session_id: UUID, result: Mapping[str, Any], version: str | None) -> bool:
    done = await connection.execute(
        "UPDATE sessions SET result = %s WHERE id = %s AND status IN ('waiting', 'completed')"
        " AND xmin::text = COALESCE(%s, xmin::text)",
        (jsonb(result), session_id, version),
    )
    return done.rowcount == 1
