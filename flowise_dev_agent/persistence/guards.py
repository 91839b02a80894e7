"""Repository of guards: flows whose tests are held on a schedule and after changes, and the results over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners, jsonb

#: Results kept of a flow; a year of daily runs.
_KEPT: Final = 400
_COLUMNS: Final = "owner, instance_id, chatflow_id, settings, due_at, running, seen, passed, alarm, told_at"
#: What flow, node types and server are without asking it, and the stores of `seen` where the caller looked at them.
_STATE: Final = """
    jsonb_strip_nulls(jsonb_build_object(
        'flow', (SELECT max(sha256) FROM instance_flows WHERE instance_id = guards.instance_id AND id = chatflow_id),
        'stores', (SELECT jsonb_object_agg(id, COALESCE(%(stores)s::jsonb -> instance_id ->> id, 'gone'))
                   FROM jsonb_object_keys(seen -> 'stores') AS id WHERE %(stores)s::jsonb ? instance_id),
        'nodes', (SELECT fingerprint FROM instance_nodes WHERE instance_id = guards.instance_id),
        'server', (SELECT list.flowise_version FROM instance_nodes AS head
                   JOIN node_catalogues AS list USING (instance_id, fingerprint)
                   WHERE head.instance_id = guards.instance_id)))
"""
_TO_DO: Final = f"""
    SELECT {_COLUMNS}, {_STATE} AS state FROM guards
    WHERE running IS NOT NULL OR due_at <= now() OR alarm IS NOT NULL AND told_at IS NULL
    OR seen <> '{{}}' AND NOT {_STATE} <@ seen
    ORDER BY due_at LIMIT %(limit)s
"""


@dataclass(frozen=True)
class GuardRow:
    """A guarded flow. `seen` and `passed` say what the flow, its stores, the node types and the server were."""

    owner: str
    instance_id: str
    chatflow_id: str
    settings: dict[str, Any]
    due_at: datetime
    running: dict[str, Any] | None
    seen: dict[str, Any]
    passed: dict[str, Any] | None
    alarm: dict[str, Any] | None
    told_at: datetime | None


@dataclass(frozen=True)
class GuardToDo(GuardRow):
    """A guard with something to do, and what flow, stores, node types and server are now."""

    state: dict[str, Any]


@dataclass(frozen=True)
class GuardResultRow:
    """A run of a guard."""

    at: datetime
    result: dict[str, Any]
    usd: float


class Guards:
    """Repository of guards, one per flow and owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, instance_id: str, chatflow_id: str) -> GuardRow | None:
        """The guard of a flow."""
        return await self._database.row(
            GuardRow,
            f"SELECT {_COLUMNS} FROM guards WHERE instance_id = %s AND chatflow_id = %s",
            (instance_id, chatflow_id),
        )

    async def put(self, instance_id: str, chatflow_id: str, settings: Mapping[str, Any]) -> None:
        """Guard a flow, or change how; it is tested at the next pass."""
        async with self._database.transaction() as connection:
            await connection.execute(
                "INSERT INTO guards (instance_id, chatflow_id, settings) VALUES (%s, %s, %s)"
                " ON CONFLICT (owner, instance_id, chatflow_id)"
                " DO UPDATE SET settings = excluded.settings, due_at = now()",
                (instance_id, chatflow_id, jsonb(settings)),
            )
            await record(connection, Fact("guard.put", instance_id=instance_id, chatflow_id=chatflow_id))

    async def remove(self, instance_id: str, chatflow_id: str) -> None:
        """Stop guarding a flow, and forget its results."""
        async with self._database.transaction() as connection:
            await connection.execute(
                "DELETE FROM guards WHERE instance_id = %s AND chatflow_id = %s", (instance_id, chatflow_id)
            )
            await record(connection, Fact("guard.remove", instance_id=instance_id, chatflow_id=chatflow_id))

    async def results(self, instance_id: str, chatflow_id: str, limit: int) -> list[GuardResultRow]:
        """Results of a flow, newest first."""
        return await self._database.rows(
            GuardResultRow,
            "SELECT at, result, usd FROM guard_results WHERE instance_id = %s AND chatflow_id = %s"
            " ORDER BY at DESC, id DESC LIMIT %s",
            (instance_id, chatflow_id, limit),
        )

    async def spent(self, instance_id: str, chatflow_id: str) -> float:
        """US dollars that the runs of a flow have cost in this month."""
        row = await self._database.fetch_one(
            "SELECT COALESCE(sum(usd), 0) AS usd FROM guard_results"
            " WHERE instance_id = %s AND chatflow_id = %s AND at >= date_trunc('month', now())",
            (instance_id, chatflow_id),
        )
        return float(row["usd"]) if row else 0.0

    # --- for the worker ----------------------------------------------------------------------------------------------

    async def on_stores(self) -> list[str]:
        """The instances with guarded flows that use document stores."""
        with across_owners():
            rows = await self._database.fetch_all("SELECT DISTINCT instance_id FROM guards WHERE seen ? 'stores'")
        return [row["instance_id"] for row in rows]

    async def to_do(self, limit: int, stores: Mapping[str, Mapping[str, str]]) -> list[GuardToDo]:
        """Guards of all owners with tests to hold or to read, an alarm to tell, or a change since their last run.

        `stores` has the state of each document store, by instance and id.
        """
        with across_owners():
            return await self._database.rows(GuardToDo, _TO_DO, {"limit": limit, "stores": jsonb(stores)})

    async def begin(self, guard: GuardRow, running: Mapping[str, Any], *, hours: float) -> None:
        """Record the tests that are held now; the next ones are due after `hours`."""
        await self._database.fetch_all(
            "UPDATE guards SET running = %s, due_at = now() + make_interval(secs => %s)"
            " WHERE instance_id = %s AND chatflow_id = %s RETURNING 1",
            (jsonb(running), hours * 3600, guard.instance_id, guard.chatflow_id),
        )

    async def conclude(
        self,
        guard: GuardRow,
        *,
        result: Mapping[str, Any],
        usd: float,
        seen: Mapping[str, Any],
        passed: Mapping[str, Any] | None,
        alarm: Mapping[str, Any] | None,
        hours: float,
    ) -> None:
        """Record a run. Another alarm than before is told anew; `passed` None keeps the former."""
        place = (guard.instance_id, guard.chatflow_id)
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE guards SET running = NULL, seen = %s, passed = COALESCE(%s, passed), alarm = %s,"
                " told_at = CASE WHEN alarm -> 'tests' IS NOT DISTINCT FROM %s::jsonb -> 'tests' THEN told_at END,"
                " due_at = GREATEST(due_at, now() + make_interval(secs => %s))"
                " WHERE instance_id = %s AND chatflow_id = %s",
                (
                    jsonb(seen),
                    None if passed is None else jsonb(passed),
                    None if alarm is None else jsonb(alarm),
                    None if alarm is None else jsonb(alarm),
                    hours * 3600 if guard.running is None else 0.0,
                    *place,
                ),
            )
            await connection.execute(
                "INSERT INTO guard_results (instance_id, chatflow_id, result, usd)"
                " SELECT instance_id, chatflow_id, %s, %s FROM guards WHERE instance_id = %s AND chatflow_id = %s",
                (jsonb(result), usd, *place),
            )
            await connection.execute(
                "DELETE FROM guard_results WHERE id IN (SELECT id FROM guard_results"
                " WHERE instance_id = %s AND chatflow_id = %s ORDER BY at DESC, id DESC OFFSET %s)",
                (*place, _KEPT),
            )

    async def told(self, guard: GuardRow) -> None:
        """Record that the receiver took the alarm."""
        await self._database.fetch_all(
            "UPDATE guards SET told_at = now() WHERE instance_id = %s AND chatflow_id = %s RETURNING 1",
            (guard.instance_id, guard.chatflow_id),
        )
