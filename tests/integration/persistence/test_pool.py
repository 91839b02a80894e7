"""Connections that the server has ended are found out before they are used."""

import psycopg

from flowise_dev_agent.persistence import Database


async def test_p42_connections_that_the_server_has_ended_are_replaced_before_use(
    database: Database, database_dsn: str
) -> None:
    for _ in range(3):
        async with database.connection() as one, database.connection() as other:
            pids = [connection.info.backend_pid for connection in (one, other)]
        with psycopg.connect(database_dsn, autocommit=True, connect_timeout=5) as admin:
            for pid in pids:
                # Returns once the backend is gone.
                assert admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchone() == (True,)
        assert await database.fetch_one("SELECT 1 AS one") == {"one": 1}
