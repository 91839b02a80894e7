"""`ETag` and `If-Match` on a real Postgres: a change that names a state is made of that state, or not at all."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.settings import Settings
from tests.chaos.fake_flowise import FakeFlowise
from tests.integration.api.test_connections import service as connected_service
from tests.integration.api.test_keys import SHARED, service
from tests.integration.api.test_once import PATTERNS
from tests.writing_world import BOT, Servers, writing_service

#: By the decision record 027.
TAKE_IT = {
    *("resume_session", "resume_session_stream", "cancel_session", "retry_session", "rollback_session"),
    *(
        "rename_session",
        "delete_session",
        "apply_to_flow",
        "promote_flow",
        "restore_version",
        "rotate_key",
        "revoke_key",
    ),
    *("connect_flowise", "connect_model", "disconnect_flowise", "disconnect_model", "delete_pattern"),
}
#: By the name of the operation, where the client's call has another one.
CALLS = {"resume_session_stream": "resume_events"} | {
    f"{name}_session": name for name in ("resume", "cancel", "retry", "rollback", "rename", "delete")
}


@pytest.fixture
async def http(database_dsn: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with service(database_dsn) as keys:
        yield keys.client(SHARED)


def only(etag: str) -> dict[str, str]:
    return {"If-Match": etag}


def refused(response: httpx2.Response, etag: str) -> None:
    """It says which state there is now."""
    problem = response.json()
    assert (response.status_code, problem["code"]) == (412, "precondition_failed"), response.text
    assert problem["details"]["etag"] == etag


def test_what_takes_the_header_says_so_and_the_client_can_send_it() -> None:
    document = create_app(Settings()).openapi()
    operations = {one["operationId"]: one for item in document["paths"].values() for one in item.values()}
    takes = {
        name
        for name, operation in operations.items()
        if any(one["name"] == "if-match" for one in operation.get("parameters", []))
    }
    assert takes == TAKE_IT
    assert {name for name, operation in operations.items() if "412" in operation["responses"]} == TAKE_IT
    for name in TAKE_IT:
        call = getattr(AgentClient, CALLS.get(name, name))
        assert "if_match" in inspect.signature(call).parameters, name


async def test_a_session_is_changed_only_in_the_state_that_was_read(http: httpx2.AsyncClient) -> None:
    started = await http.post("/sessions", json={"requirement": "ask:q end:accepted"})
    path = f"/sessions/{started.json()['thread_id']}"
    read = await http.get(path)
    first = read.headers["etag"]
    assert first == read.json()["etag"] == started.headers["etag"]
    renamed = await http.patch(f"{path}/name", json={"session_name": "Support"}, headers=only(first))
    second = renamed.headers["etag"]
    assert renamed.json()["session_name"] == "Support"
    assert second != first
    question = renamed.json()["interrupt"]["id"]
    stale = [
        await http.patch(f"{path}/name", json={"session_name": "Sales"}, headers=only(first)),
        await http.post(f"{path}/resume", json={"response": "yes"}, headers=only(first)),
        await http.post(f"{path}/stream", json={"response": "yes"}, headers=only(first)),
        await http.post(f"{path}/cancel", headers=only(first)),
        await http.post(f"{path}/retry", headers=only(first)),
        await http.post(f"{path}/rollback", headers=only(first)),
        await http.delete(path, headers=only(first)),
        # A weak tag is that of no state.
        await http.delete(path, headers=only(f"W/{second}")),
    ]
    for response in stale:
        refused(response, second)
    assert stale[1].json()["details"]["interrupt_id"] == question
    unchanged = await http.get(path)
    assert (unchanged.headers["etag"], unchanged.json()) == (second, renamed.json())
    # One of several will do.
    answered = await http.post(f"{path}/resume", json={"response": "yes"}, headers=only(f'{first}, {second}, "x"'))
    assert answered.json()["status"] == "completed"
    refused(await http.delete(path, headers=only(second)), answered.headers["etag"])
    assert (await http.delete(path, headers=only(answered.headers["etag"]))).status_code == 204
    assert (await http.delete(path, headers=only("*"))).status_code == 404


async def test_without_the_header_or_with_a_star_the_last_change_counts(http: httpx2.AsyncClient) -> None:
    path = f"/sessions/{(await http.post('/sessions', json={'requirement': 'ask:q'})).json()['thread_id']}/name"
    for headers in ({}, only("*")):
        assert (await http.patch(path, json={"session_name": "A"}, headers=headers)).status_code == 200
    broken = await http.patch(path, json={"session_name": "A"}, headers=only("no-quotes"))
    assert (broken.status_code, broken.json()["code"]) == (412, "precondition_failed")


async def test_of_changes_of_the_same_state_at_the_same_time_one_is_made(http: httpx2.AsyncClient) -> None:
    started = await http.post("/sessions", json={"requirement": "ask:q"})
    path, etag = f"/sessions/{started.json()['thread_id']}/name", started.headers["etag"]
    answers = await asyncio.gather(
        *(http.patch(path, json={"session_name": f"name {one}"}, headers=only(etag)) for one in range(8))
    )
    assert sorted(one.status_code for one in answers) == [200] + [412] * 7


async def test_a_repeated_answer_gets_its_first_result_whatever_the_tag_is_by_then(http: httpx2.AsyncClient) -> None:
    started = await http.post("/sessions", json={"requirement": "ask:q end:accepted"})
    path = f"/sessions/{started.json()['thread_id']}/resume"
    headers = {"Idempotency-Key": "once", **only(started.headers["etag"])}
    for _ in range(2):
        answered = await http.post(path, json={"response": "yes"}, headers=headers)
        assert (answered.status_code, answered.json()["status"]) == (200, "completed")


async def test_a_key_that_somebody_else_rotated_is_not_rotated_and_its_use_changes_no_tag(
    http: httpx2.AsyncClient,
) -> None:
    made = (await http.post("/keys", json={"name": "ci", "scopes": ["read"]})).json()
    await http.get("/keys/current", headers={"Authorization": f"Bearer {made['key']}"})
    (listed,) = (await http.get("/keys")).json()["keys"]
    assert (listed["etag"], listed["last_used_at"] is None) == (made["etag"], False)
    path = f"/keys/{made['id']}"
    rotated = (await http.post(f"{path}/rotate", json={}, headers=only(made["etag"]))).json()
    refused(await http.post(f"{path}/rotate", json={}, headers=only(made["etag"])), rotated["etag"])
    refused(await http.delete(path, headers=only(made["etag"])), rotated["etag"])
    assert (await http.delete(path, headers=only(rotated["etag"]))).status_code == 204


async def test_a_pattern_that_has_changed_is_not_removed(http: httpx2.AsyncClient, database: Database) -> None:
    (id_,) = (await http.post("/patterns/import", json=PATTERNS)).json()["imported"]
    before = (await http.get("/patterns")).json()["patterns"][0]["etag"]
    async with database.connection() as connection:
        await connection.execute("UPDATE patterns SET success_count = success_count + 1 WHERE id = %s", (id_,))
    after = (await http.get("/patterns")).json()["patterns"][0]["etag"]
    refused(await http.delete(f"/patterns/{id_}", headers=only(before)), after)
    assert (await http.delete(f"/patterns/{id_}", headers=only(after))).status_code == 204


async def test_a_connection_that_somebody_else_made_is_not_replaced(database_dsn: str, database: Database) -> None:
    with FakeFlowise(api_key="k") as server:
        async with connected_service(database_dsn, database) as http:
            before = (await http.get("/connections")).headers["etag"]
            body = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": "k"}
            # Both are tried before one is stored.
            both = await asyncio.gather(
                *(http.put("/connections/flowise", json=body, headers=only(before)) for _ in range(2))
            )
            assert sorted(one.status_code for one in both) == [200, 412]
            read = await http.get("/connections")
            after = read.headers["etag"]
            assert (after != before, after) == (True, read.json()["etag"])
            refused(await http.delete("/connections/flowise", headers=only(before)), after)
            assert (await http.delete("/connections/flowise", headers=only(after))).status_code == 200


async def test_a_flow_that_changed_on_the_server_is_not_written_or_copied(
    database_dsn: str, catalogue: NodeStore
) -> None:
    servers = Servers(catalogue)
    ops: list[dict[str, Any]] = [
        {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.3}
    ]
    async with writing_service(database_dsn, servers) as runtime:
        transport = StreamingASGITransport(create_app(Settings(), runtime))
        async with httpx2.AsyncClient(base_url="http://localhost", transport=transport, timeout=30) as http:
            path = f"/flows/{BOT}"
            read = await http.get(f"{path}/export")
            first = read.headers["etag"]
            assert first == read.json()["etag"]
            # A new name only.
            servers.dev.flows[BOT] = servers.dev.flows[BOT].model_copy(update={"name": "Support"})
            second = (await http.get(f"{path}/export")).headers["etag"]
            apply = await http.post(f"{path}/apply?wait=30", json={"ops": ops}, headers=only(first))
            refused(apply, second)
            refused(await http.post(f"{path}/promote", json={"target": "prod"}, headers=only(first)), second)
            assert (await http.get("/sessions")).json()["sessions"] == []
            written = await http.post(f"{path}/apply?wait=30", json={"ops": ops}, headers=only(second))
            assert (written.status_code, written.json()["status"]) == (200, "completed")
