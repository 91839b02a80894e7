"""The embedded Postgres: databases from templates, one user per data folder, nothing left behind."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres, PostgresServer
from flowise_dev_agent.errors import ConfigurationError
from tests.support.folders import server_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    path = server_folder("pg")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def processes_on(folder: Path) -> list[int]:
    data = str(folder / "data")
    return [process.pid for process in psutil.process_iter(["cmdline"]) if data in (process.info["cmdline"] or [])]


def test_database_from_a_template_has_its_tables_and_is_a_copy(postgres_server: PostgresServer) -> None:
    postgres_server.create_database("devkit_template")
    with psycopg.connect(postgres_server.dsn("devkit_template")) as connection:
        connection.execute("CREATE TABLE t (n int)")
    copy = postgres_server.create_database("devkit_copy", template="devkit_template")
    with psycopg.connect(copy) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    with psycopg.connect(postgres_server.dsn("devkit_template")) as connection:
        rows = connection.execute("SELECT * FROM t").fetchall()
    assert rows == []
    postgres_server.drop_database("devkit_copy")
    postgres_server.drop_database("devkit_template")
    assert not postgres_server.has_database("devkit_copy")


@pytest.mark.nightly
def test_stop_leaves_no_process_and_the_data_is_there_on_the_next_start(folder: Path) -> None:
    with EmbeddedPostgres(folder / "data") as server:
        server.create_database("kept")
        assert processes_on(folder)
    assert processes_on(folder) == []
    with EmbeddedPostgres(folder / "data") as server:
        assert server.has_database("kept")


@pytest.mark.nightly
def test_a_data_folder_in_use_is_refused_with_the_owner_named(folder: Path) -> None:
    with EmbeddedPostgres(folder / "data"), pytest.raises(ConfigurationError, match="in use by process"):
        EmbeddedPostgres(folder / "data").start()


def test_the_server_of_a_killed_process_is_taken_over_and_ended(folder: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path;"
        "from flowise_dev_agent.devkit.postgres import EmbeddedPostgres;"
        "s = EmbeddedPostgres(Path(sys.argv[1])).start(); print(s.pid, flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, folder / "data"], capture_output=True, text=True, check=False)
    orphan = int(done.stdout)
    with EmbeddedPostgres(folder / "data") as server:
        assert server.pid == orphan
    assert processes_on(folder) == []


@pytest.mark.nightly
def test_a_server_that_need_not_be_durable_does_not_wait_for_the_disk(folder: Path) -> None:
    with EmbeddedPostgres(folder / "data", durable=False) as server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("off",)


def test_folder_that_cannot_be_used_is_a_sentence(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot use"):
        EmbeddedPostgres(folder / "file" / "data").start()
    (folder / "data").mkdir()
    (folder / "data" / "stranger").write_text("")
    with pytest.raises(ConfigurationError, match="did not start"):
        EmbeddedPostgres(folder / "data").start()
