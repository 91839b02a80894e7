"""Artifacts of a real session go by the mode of their kind, when the service's own maintenance runs."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import httpx2
import psycopg
import pytest
from procrastinate import App, PsycopgConnector

from flowise_dev_agent.persistence.queue import MAINTENANCE_QUEUE, MAINTENANCE_TASK
from tests.e2e.people import MakeService, answer, http_of, ok, start

pytestmark = pytest.mark.nightly

MODES = {
    "RETENTION_MODE_PLAN": "ttl",
    "RETENTION_MODE_MILESTONE": "max_count",
    "RETENTION_MODE_DECISION": "ttl_max_count",
    "RETENTION_MODE_MEMORY": "forever",
    "RETENTION_TTL_SECONDS": "3600",
    "RETENTION_MAX_COUNT": "1",
}


async def artifacts(http: httpx2.AsyncClient, session: str) -> list[dict[str, Any]]:
    return (await ok(await http.get(f"/sessions/{session}/artifacts?limit=200")))["items"]


async def run_maintenance(dsn: str) -> None:
    """Have the running service do now what it does every ten minutes, and wait for the end of it."""
    app = App(connector=PsycopgConnector(conninfo=dsn))
    async with app.open_async():
        job_id = await app.configure_task(MAINTENANCE_TASK, queue=MAINTENANCE_QUEUE).defer_async(timestamp=0)
    with psycopg.connect(dsn, autocommit=True) as connection:
        async with asyncio.timeout(60):
            # One that succeeded is deleted.
            while row := connection.execute(
                "SELECT status FROM procrastinate_jobs WHERE id = %s", (job_id,)
            ).fetchone():
                assert row[0] in ("todo", "doing")
                await asyncio.sleep(0.2)


def age(dsn: str, session: str, kind: str) -> None:
    """All of a kind but the newest were made two hours ago."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE node_artifacts SET created_at = created_at - interval '2 hours' WHERE session_id = %(session)s"
            " AND kind = %(kind)s AND id <> (SELECT id FROM node_artifacts WHERE session_id = %(session)s"
            " AND kind = %(kind)s ORDER BY created_at DESC, id LIMIT 1)",
            {"session": UUID(session), "kind": kind},
        )


async def test_each_mode_of_retention_removes_what_it_says_from_a_session(make_service: MakeService) -> None:
    service = make_service(**MODES)
    await service.start()
    async with http_of(service) as http:
        view = await start(http, test_questions=["Hello"])
        view = await answer(http, view, action="approve")
        view = await answer(http, view, action="accept")
        session = view["thread_id"]
        before = await artifacts(http, session)
        kinds = Counter(one["artifact_type"] for one in before)
        assert set(kinds) == {"plan", "milestone", "decision", "memory"}
        assert kinds["plan"] > 1
        assert (
            max(Counter(one["flowchart_node_id"] for one in before if one["artifact_type"] == "decision").values()) > 1
        )
        audit_log = (await ok(await http.get(f"/audit?session={session}")))["rows"]
        for kind in ("plan", "memory", "decision"):
            age(service.dsn, session, kind)

        await run_maintenance(service.dsn)

        left = await artifacts(http, session)
        assert (await ok(await http.get(f"/audit?session={session}")))["rows"] == audit_log
        await answer_is_gone(http, session, {one["id"] for one in before} - {one["id"] for one in left})
    of_kind = {kind: [one for one in left if one["artifact_type"] == kind] for kind in kinds}
    # ttl: only the newest is younger than an hour.
    assert len(of_kind["plan"]) == 1
    # max_count: one of each node, the newest.
    newest = {one["flowchart_node_id"]: one["id"] for one in reversed(before) if one["artifact_type"] == "milestone"}
    assert {one["id"] for one in of_kind["milestone"]} == {*newest.values()}
    # ttl_max_count: both.
    assert len(of_kind["decision"]) == 1
    # forever.
    assert len(of_kind["memory"]) == kinds["memory"]


async def answer_is_gone(http: httpx2.AsyncClient, session: str, gone: set[str]) -> None:
    assert gone
    response = await http.get(f"/sessions/{session}/artifacts/{min(gone)}")
    assert (response.status_code, response.json()["code"]) == (404, "artifact_not_found")
