"""A database that answers but takes no writes makes the service not ready."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import psycopg.conninfo
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database, migrate
from flowise_dev_agent.persistence.queue_stats import read_database_health
from flowise_dev_agent.persistence.schema import Fit


async def test_a_database_that_only_reads_is_not_ready(database_dsn: str) -> None:
    await migrate(database_dsn)
    async with Database(database_dsn, min_size=1, max_size=2, connect_timeout=2) as database:
        assert (await read_database_health(database, silent=5)).fit == Fit(pending=[], newer=[])
    name = psycopg.conninfo.conninfo_to_dict(database_dsn)["dbname"]
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as connection:
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
    async with Database(database_dsn, min_size=1, max_size=2, connect_timeout=2) as database:
        with pytest.raises(DatabaseUnavailableError, match="takes no writes"):
            await read_database_health(database, silent=5)


@pytest.fixture
def volume(database_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A volume of 1 MB on which the database can keep a tablespace."""
    path = Path("/dev/shm") / tmp_path_factory.mktemp("full").name  # noqa: S108 - Postgres may not look into the home
    path.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    try:
        if not mount or not unmount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "x", path]).returncode:
            pytest.skip("no right to mount a volume")
        with psycopg.connect(database_dsn) as connection:
            row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        owner = Path(row[0]).stat() if row else path.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
        yield path
        subprocess.run([unmount, "-l", path], check=True)
    finally:
        path.rmdir()


@pytest.mark.nightly  # needs the right to mount a volume, which `make test` must not ask for
async def test_a_database_without_room_is_not_ready(database_dsn: str, volume: Path) -> None:
    await migrate(database_dsn)
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as connection:
        name = connection.info.dbname
        for statement in (
            f"CREATE TABLESPACE {volume.name} LOCATION '{volume}'",
            f"GRANT CREATE ON TABLESPACE {volume.name} TO PUBLIC",
            f'ALTER DATABASE "{name}" SET temp_tablespaces = {volume.name}',
        ):
            await connection.execute(statement.encode())
    async with Database(database_dsn, min_size=1, max_size=2, connect_timeout=2) as database:
        assert await read_database_health(database, silent=5)
        filler, room = volume / "filler", os.statvfs(volume)
        filler.write_bytes(b"x" * (room.f_bavail * room.f_frsize))
        with pytest.raises(DatabaseUnavailableError, match="takes no writes"):
            await read_database_health(database, silent=5)
        filler.unlink()
        assert await read_database_health(database, silent=5)
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as connection:
        await connection.execute(f'ALTER DATABASE "{name}" RESET temp_tablespaces'.encode())
        await connection.execute(f"DROP TABLESPACE {volume.name}".encode())
