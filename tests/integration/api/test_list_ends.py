"""Lists without pages end although there is more in the database."""

from typing import LiteralString

from flowise_dev_agent.persistence import Database
from tests.fixtures.database import superuser
from tests.integration.api.test_keys import SHARED, Keys

#: Address, how many it lists, and a statement that makes one more.
LISTS: list[tuple[str, int, LiteralString]] = [
    (
        "/keys",
        1_000,
        "INSERT INTO api_keys (id, name, scopes, sha256, created_by)"
        " SELECT gen_random_uuid(), 'key ' || n, '{read}', n, 'a test' FROM generate_series(1, 1001) AS n",
    ),
    (
        "/owners",
        1_000,
        "INSERT INTO owners (id, name) SELECT 'owner' || n, 'Owner ' || n FROM generate_series(1, 1001) AS n",
    ),
    (
        "/shares",
        500,
        "INSERT INTO shares (id, owner, chatflow_id, title, made_by, ends_at)"
        " SELECT gen_random_uuid(), 'default', 'f', 'A flow', 'a test', now() + interval '1 day'"
        " FROM generate_series(1, 501)",
    ),
    (
        "/sessions/{session}/deliveries",
        200,
        "INSERT INTO webhook_deliveries (id, owner, session_id, event_seq, type, body, status)"
        " SELECT gen_random_uuid(), owner, id, n, 'session.completed', '{}', 'delivered'"
        " FROM sessions, generate_series(1000, 1200) AS n",
    ),
]


async def test_each_list_ends(keys: Keys, database: Database) -> None:
    http = keys.client(SHARED)
    started = await http.post("/sessions", json={"requirement": "end:accepted"})
    for path, most, statement in LISTS:
        async with superuser(database) as connection:
            added = await connection.execute(statement)
        assert added.rowcount == most + 1
        answer = await http.get(path.format(session=started.json()["thread_id"]))
        assert len(answer.json()[path.rpartition("/")[2]]) == most
