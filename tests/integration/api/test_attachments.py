"""Files that go with a requirement: over HTTP, on a real Postgres."""

from typing import Any
from uuid import uuid4

import httpx2

from flowise_dev_agent.persistence import Database, Queue, Retention, Sessions
from flowise_dev_agent.settings import RetentionSettings


async def upload(http: httpx2.AsyncClient, name: str = "handbook.md", content: bytes = b"# Leave\n31 days") -> Any:
    return await http.post("/attachments", files={"file": (name, content)})


async def start(http: httpx2.AsyncClient, *ids: str, **more: Any) -> Any:
    return await http.post("/sessions", json={"requirement": "end:accepted", "attachments": list(ids), **more})


async def test_a_file_is_stored_shown_and_given_to_one_session(http: httpx2.AsyncClient) -> None:
    stored = await upload(http)
    view = stored.json()

    assert stored.status_code == 201
    assert (view["session_id"], view["media_type"]) == (None, "text/markdown")
    assert (view["facts"]["name"], view["facts"]["first_lines"]) == ("handbook.md", "# Leave\n31 days")
    session = (await start(http, view["id"])).json()["thread_id"]
    known = (await http.get(f"/attachments/{view['id']}")).json()
    assert (known["session_id"], known["text"]) == (session, None)
    read = await http.get(f"/attachments/{view['id']}", params={"text": True})
    assert read.json()["text"].splitlines()[:2] == ["# Leave", "31 days"]
    listed = (await http.get("/attachments", params={"session_id": session})).json()["attachments"]
    assert [one["id"] for one in listed] == [view["id"]]


async def test_a_session_is_not_started_with_files_that_it_cannot_have(http: httpx2.AsyncClient) -> None:
    first, twin = [(await upload(http)).json()["id"] for _ in range(2)]
    used = (await upload(http, "used.md")).json()["id"]
    await start(http, used)

    unknown = await start(http, str(uuid4()))
    taken = await start(http, used)
    alike = await start(http, first, twin)
    many = await start(http, *(str(uuid4()) for _ in range(11)))

    assert [(one.status_code, one.json()["code"]) for one in (unknown, taken, alike, many)] == [
        (404, "attachment_not_found"),
        (422, "invalid_input"),
        (422, "invalid_input"),
        (422, "invalid_request"),
    ]
    assert (await http.get(f"/attachments/{first}")).json()["session_id"] is None


async def test_a_file_in_use_goes_with_its_session_only(http: httpx2.AsyncClient) -> None:
    used, unused = [(await upload(http, name)).json()["id"] for name in ("a.md", "b.md")]
    session = (await start(http, used)).json()["thread_id"]

    assert (await http.delete(f"/attachments/{used}")).status_code == 422
    assert (await http.delete(f"/attachments/{unused}")).status_code == 204
    assert (await http.get(f"/attachments/{unused}")).status_code == 404
    assert (await http.delete(f"/sessions/{session}")).status_code in (200, 204)
    assert (await http.get(f"/attachments/{used}")).status_code == 404


async def test_what_is_no_file_of_ours_is_refused(http: httpx2.AsyncClient) -> None:
    picture = await upload(http, "a.png", b"\x89PNG\x00")
    too_large = await upload(http, "a.txt", b"x" * (21 * 1024 * 1024))
    nothing = await http.post("/attachments", json={})

    assert [(one.status_code, one.json()["code"]) for one in (picture, too_large, nothing)] == [
        (422, "invalid_input"),
        (413, "body_too_large"),
        (422, "invalid_request"),
    ]


async def test_files_that_no_session_uses_expire(
    http: httpx2.AsyncClient, database: Database, database_dsn: str
) -> None:
    old, fresh, used = [(await upload(http, name)).json()["id"] for name in ("a.md", "b.md", "c.md")]
    await start(http, used)
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE attachments SET expires_at = now() - interval '1 s' WHERE id = ANY(%s)", ([old, used],)
        )

    removed = await Retention(database, Sessions(database, Queue(database_dsn)), RetentionSettings()).pass_once()

    assert removed["attachments"] == 1
    assert [(await http.get(f"/attachments/{one}")).status_code for one in (old, fresh, used)] == [404, 200, 200]


async def test_a_file_can_come_with_an_answer(http: httpx2.AsyncClient) -> None:
    first = (await upload(http)).json()["id"]
    twin, later = (await upload(http)).json()["id"], (await upload(http, "later.md")).json()["id"]
    body = {"requirement": "ask:q end:accepted", "attachments": [first]}
    asked = (await http.post("/sessions?wait=20", json=body)).json()
    session = asked["thread_id"]
    path, given = f"/sessions/{session}/resume", {"interrupt_id": asked["interrupt"]["id"], "response": "go on"}

    refused = await http.post(path, json={**given, "attachments": [twin]})
    still_asks = (await http.get(f"/sessions/{session}")).json()
    taken = await http.post(path, json={**given, "attachments": [later]})

    assert (refused.status_code, "same name" in refused.json()["detail"]) == (422, True)
    assert still_asks["interrupt"]["id"] == given["interrupt_id"]
    assert taken.status_code in (200, 202), taken.text
    listed = (await http.get("/attachments", params={"session_id": session})).json()["attachments"]
    assert [one["id"] for one in listed] == [first, later]


async def test_the_files_of_a_session_that_is_over_go_by_their_age(http: httpx2.AsyncClient, database_dsn: str) -> None:
    stored = (await upload(http)).json()["id"]
    session = (
        await http.post("/sessions?wait=20", json={"requirement": "end:accepted", "attachments": [stored]})
    ).json()
    assert session["status"] == "completed"
    async with Database(database_dsn) as database:
        async with database.connection() as connection:
            await connection.execute("UPDATE sessions SET updated_at = now() - interval '10 days'")
        sessions = Sessions(database, Queue(database_dsn))
        kept = await Retention(database, sessions, RetentionSettings(RETENTION_ATTACHMENTS_DAYS=11)).pass_once()
        gone = await Retention(database, sessions, RetentionSettings(RETENTION_ATTACHMENTS_DAYS=9)).pass_once()

    assert (kept["attachments"], gone["attachments"]) == (0, 1)
    assert (await http.get(f"/attachments/{stored}")).status_code == 404
