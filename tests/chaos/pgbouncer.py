"""A real pgbouncer in transaction mode before the database. It must be installed: `make chaos` runs this.

tests/e2e/test_processes.py tries the same behind a pooler of its own, wherever the tests run.
"""

import asyncio
import os
import shutil
import socket
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.e2e.topology import serves


@pytest.fixture
async def pgbouncer(database_dsn: str, tmp_path: Path) -> AsyncIterator[str]:
    """DSN of a pgbouncer in transaction mode before the database."""
    async with running_pgbouncer(database_dsn, tmp_path, connections=4) as dsn:
        yield dsn


@asynccontextmanager
async def running_pgbouncer(database_dsn: str, folder: Path, *, connections: int) -> AsyncGenerator[str]:
    """Start one that keeps so many connections, in a subfolder; its DSN."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    assert program, "Install pgbouncer (apt-get install pgbouncer) for this test."
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parts = conninfo_to_dict(database_dsn)
    folder = folder / "pgbouncer"
    folder.mkdir()
    (folder / "users.txt").write_text('"postgres" ""\n')
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={parts['host']} port={parts['port']} user={parts['user']}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"auth_file = {folder / 'users.txt'}\npool_mode = transaction\n"
        f"default_pool_size = {connections}\nmax_client_conn = 400\n"
    )
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    # It refuses to run as root, and only the server's own user may enter the folder of an embedded one's socket.
    user = ["-u", _owner(str(parts["host"]))] if os.geteuid() == 0 else []
    process: Process = await asyncio.create_subprocess_exec(program, *user, str(config), stderr=DEVNULL)
    try:
        yield f"host=127.0.0.1 port={port} user=postgres dbname={parts['dbname']}"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _owner(host: str) -> str:
    return Path(host).owner() if host.startswith("/") else "nobody"


async def test_the_composed_topology_serves_behind_a_transaction_pooler(
    database_dsn: str, pgbouncer: str, tmp_path: Path
) -> None:
    await serves(pgbouncer, database_dsn, tmp_path, sessions=8)
