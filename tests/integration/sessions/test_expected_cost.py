"""What a session will probably cost, from those that were like it."""

from dataclasses import replace
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.schemas.usage import ExpectedCost
from flowise_dev_agent.sessions.service import ExpectedCosts
from tests import runtime_world
from tests.fixtures.database import superuser
from tests.runtime_world import World, running_engine, script

OURS, THEIRS = (Caller(name, ALL_SCOPES, owner=name) for name in ("sales", "legal"))


def costs(database: Database, dsn: str) -> ExpectedCosts:
    agent = replace(
        runtime_world.make_agent(World(dsn)), planned_with=lambda model: None if model == "none" else model or "gpt"
    )
    return ExpectedCosts(database, agent)


async def record(database: Database, owner: str, usd: float, seconds: float, **columns: Any) -> None:
    totals = {"usd": usd, "phase_durations_ms": {"plan": seconds * 900, "patch": seconds * 100}}
    row = {"planned_with": "gpt", "operation_mode": "create", "outcome": "accepted", "totals": totals} | columns
    async with superuser(database) as connection:
        await connection.execute(
            "INSERT INTO sessions"
            " (id, owner, requirement, request, instance_id, status, planned_with, operation_mode, outcome, totals)"
            " VALUES (gen_random_uuid(), %(owner)s, 'x', '{}', 'main', 'completed', %(planned_with)s,"
            " %(operation_mode)s, %(outcome)s, %(totals)s)",
            {**row, "owner": owner, "totals": Jsonb(row["totals"])},
        )


async def test_the_average_of_the_same_kind_model_and_owner_is_expected(database: Database, database_dsn: str) -> None:
    expected = costs(database, database_dsn)
    await record(database, "sales", 0.02, 30)
    await record(database, "sales", 0.04, 50)
    await record(database, "sales", 0.30, 90, operation_mode="update")
    await record(database, "sales", 9.0, 900, outcome="rolled_back")
    await record(database, "sales", 9.0, 900, planned_with="claude")
    await record(database, "legal", 9.0, 900)
    with acting_for(OURS):
        made = await expected.of("create", None)
        assert (made.sessions, made.usd, made.seconds) == (2, pytest.approx(0.03), pytest.approx(40))
        assert (await expected.of(None, None)).sessions == 3
        assert (await expected.of("copy", None)) == ExpectedCost(free=False, sessions=0)
        assert (await expected.of(None, "none")) == ExpectedCost(free=True, sessions=0)
        # A model without a known price has a time only.
        await record(database, "sales", 0, 40, planned_with="own", totals={"unpriced_calls": 3})
        assert (await expected.of(None, "own")).usd is None
    with acting_for(THEIRS):
        assert (await expected.of("create", None)).usd == pytest.approx(9.0)


async def test_a_session_records_what_it_was_planned_with(
    database: Database, database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = replace(runtime_world.make_agent(World(database_dsn)), planned_with=lambda model: "openai gpt-4o")
    monkeypatch.setattr(runtime_world, "make_agent", lambda world: agent)
    async with running_engine(database_dsn, worker=False) as engine:
        with acting_for(OURS):
            await engine.service.start(script("end:accepted"))
            rows = await database.fetch_all("SELECT planned_with FROM sessions")
    assert [row["planned_with"] for row in rows] == ["openai gpt-4o"]
