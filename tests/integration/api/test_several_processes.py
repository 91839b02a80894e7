"""Two API processes and a worker on one database: what one of them is told holds in the other at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.access.shares import ShareSigner
from flowise_dev_agent.api import create_app
from flowise_dev_agent.settings import DatabaseSettings, ServerSettings, load_settings
from tests.integration.api.test_keys import SHARED, Keys
from tests.integration.api.test_shares import SECRETS
from tests.runtime_world import World, running_engine, until

#: Answers of two clients that do not know of each other.
ROUNDS = 10


@pytest.fixture
async def processes(database_dsn: str) -> AsyncIterator[list[Keys]]:
    """Two processes that serve; a third one works."""
    server = ServerSettings(rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(SHARED))
    settings = load_settings(server=server, database=DatabaseSettings(secrets_key=SecretStr(SECRETS)))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running_engine(database_dsn))
        apps: list[Keys] = []
        for _ in range(2):
            opened = running_engine(database_dsn, worker=False, signer=ShareSigner.from_settings(settings))
            app = create_app(settings, await stack.enter_async_context(opened))
            await stack.enter_async_context(app.router.lifespan_context(app))
            apps.append(Keys(app))
        yield apps


async def asked(http: httpx2.AsyncClient, words: str = "ask:q work:done end:accepted") -> tuple[str, str]:
    """A session that waits, and its question."""
    view = (await http.post("/sessions", json={"requirement": words})).json()
    return f"/sessions/{view['thread_id']}", view["interrupt"]["id"]


async def ended(http: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    async def at_rest() -> dict[str, Any] | None:
        view = (await http.get(path)).json()
        return None if view["status"] == "in_progress" else view

    return await until(at_rest, "the session ends")


async def test_of_two_answers_at_once_exactly_one_is_taken(processes: list[Keys], world: World) -> None:
    first, second = (one.client(SHARED) for one in processes)
    for _ in range(ROUNDS):
        path, question = await asked(first)
        answers = [
            http.post(f"{path}/resume", json={"interrupt_id": question, "response": words})
            for http, words in ((first, "yes"), (second, "no"))
        ]
        found = Counter(answer.status_code for answer in await asyncio.gather(*answers))
        assert found == {200: 1, 409: 1}
        assert (await ended(second, path))["outcome"] == "accepted"
    done = await world.fetch("SELECT count(*) FROM effects WHERE name = 'done' GROUP BY session_id")
    assert done == [(1,)] * ROUNDS


async def test_an_answer_that_is_repeated_at_the_other_process_is_the_same_answer(processes: list[Keys]) -> None:
    first, second = (one.client(SHARED) for one in processes)
    path, question = await asked(first)
    body, headers = {"interrupt_id": question, "response": "yes"}, {"Idempotency-Key": "one-answer"}
    answers = await asyncio.gather(
        *(http.post(f"{path}/resume", json=body, headers=headers) for http in (first, second))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert (await ended(first, path))["outcome"] == "accepted"


async def test_a_cancel_and_an_answer_at_once_leave_one_end(processes: list[Keys]) -> None:
    first, second = (one.client(SHARED) for one in processes)
    ends: Counter[str] = Counter()
    for _ in range(ROUNDS):
        path, question = await asked(first)
        await asyncio.gather(
            first.post(f"{path}/resume", json={"interrupt_id": question, "response": "yes"}),
            second.post(f"{path}/cancel"),
        )
        view = await ended(second, path)
        assert view == (await first.get(path)).json()
        events = (await first.get(f"{path}/events")).json()["events"]
        assert [event["type"] for event in events].count("done") == 1
        ends[view["status"]] += 1
    assert ends.keys() <= {"completed", "cancelled"}


async def test_a_key_that_is_revoked_at_one_process_opens_nothing_at_the_other(processes: list[Keys]) -> None:
    made = await processes[0].make("Ada", "build")
    for one in processes:
        assert await one.who(made["key"]) == "Ada"
    rotated = (await processes[0].client(SHARED).post(f"/keys/{made['id']}/rotate", json={})).json()
    assert [await processes[1].who(key) for key in (made["key"], rotated["key"])] == [401, "Ada"]
    assert (await processes[1].client(SHARED).delete(f"/keys/{rotated['id']}")).status_code == 204
    assert [await one.who(rotated["key"]) for one in processes] == [401, 401]


async def test_a_link_that_is_revoked_at_one_process_shows_nothing_at_the_other(processes: list[Keys]) -> None:
    first, second = (one.client(SHARED) for one in processes)
    path, _ = await asked(first)
    shared = await first.post("/shares", json={"subject": "session", "id": path.rpartition("/")[2]})
    made = shared.json()
    headers = {"Authorization": f"Share {made['link'].rpartition('/')[2]}"}
    visit = second.build_request("GET", "/shared", headers=headers)
    assert (await second.send(visit)).status_code == 200
    assert (await first.delete(f"/shares/{made['id']}")).status_code == 204
    assert (await second.send(visit)).status_code == 410
