"""A database that answers but takes no writes makes the service not ready."""

import psycopg
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database, migrate
from flowise_dev_agent.persistence.queue_stats import read_database_health


async def test_a_database_that_only_reads_is_not_ready(database_dsn: str) -> None:
    await migrate(database_dsn)
    async with Database(database_dsn, min_size=1, max_size=2, connect_timeout=2) as database:
        assert (await read_database_health(database, silent=5)).pending_migrations == []
    name = psycopg.conninfo.conninfo_to_dict(database_dsn)["dbname"]
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as connection:
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
    async with Database(database_dsn, min_size=1, max_size=2, connect_timeout=2) as database:
        with pytest.raises(DatabaseUnavailableError, match="takes no writes"):
            await read_database_health(database, silent=5)
