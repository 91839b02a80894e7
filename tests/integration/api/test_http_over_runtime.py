"""The HTTP floor over the real session service on a real Postgres; only the agent is a script."""

import asyncio
import json
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.client import AgentClient, ServiceError
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from tests.runtime_world import World


async def test_p01_of_concurrent_answers_one_runs_and_the_others_get_409(
    http: httpx2.AsyncClient, world: World
) -> None:
    view = (await http.post("/sessions", json={"requirement": "ask:q work:a end:accepted"})).json()
    path = f"/sessions/{view['thread_id']}/resume"
    body = {"interrupt_id": view["interrupt"]["id"], "answer": {"ok": True}}
    responses = await asyncio.gather(*(http.post(path, json=body) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [200] + [409] * 7
    assert {response.json()["code"] for response in responses if response.status_code == 409} == {"session_conflict"}
    assert await world.effects(view["thread_id"]) == ["a"]


async def test_p67_a_repeated_start_with_its_key_is_the_same_session(http: httpx2.AsyncClient, world: World) -> None:
    body, headers = {"requirement": "work:a ask:q"}, {"Idempotency-Key": "start-1"}
    responses = await asyncio.gather(*(http.post("/sessions", json=body, headers=headers) for _ in range(4)))
    assert {response.status_code for response in responses} == {200}
    (session_id,) = {response.json()["thread_id"] for response in responses}
    assert await world.effects(session_id) == ["a"]
    other = await http.post("/sessions", json={"requirement": "work:b"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")


async def streamed(http: httpx2.AsyncClient, path: str, body: object, key: str) -> list[tuple[str, str]]:
    """(id, event) of every frame of a POST stream that has ended."""
    async with http.stream("POST", path, json=body, headers={"Idempotency-Key": key}) as response:
        assert response.status_code == 200
        return [(frame.id, frame.event) async for frame in httpx2.EventSource(response) if frame.data]


async def test_p67_a_repeated_answer_with_its_key_streams_the_same_events_again(http: httpx2.AsyncClient) -> None:
    start = {"requirement": "ask:one work:a ask:two work:b end:accepted"}
    begun = await streamed(http, "/sessions/stream", start, "s")
    assert begun[-1][1] == "interrupt"
    assert await streamed(http, "/sessions/stream", start, "s") == begun
    (view,) = (await http.get("/sessions")).json()["sessions"]
    path, body = f"/sessions/{view['thread_id']}/stream", {"response": "ok"}
    first = await streamed(http, path, body, "one")
    assert (first[-1][1], first[0][0]) == ("interrupt", str(len(begun) + 1))
    assert await streamed(http, path, body, "one") == first
    last = await streamed(http, path, body, "two")
    assert last[-1][1] == "done"
    # Also long after, when the session has gone on and ended.
    assert await streamed(http, path, body, "one") == first


async def test_p67_a_taken_thread_id_leaves_that_session_as_it_is(http: httpx2.AsyncClient) -> None:
    body = {"requirement": "ask:q", "thread_id": str(uuid4())}
    first = (await http.post("/sessions", json=body)).json()
    second = await http.post("/sessions", json=body | {"requirement": "work:b"})
    assert (second.status_code, second.json()["code"]) == (409, "session_exists")
    assert (await http.get(f"/sessions/{body['thread_id']}")).json() == first


async def test_p60_p61_what_does_not_answer_the_open_question(http: httpx2.AsyncClient) -> None:
    view = (await http.post("/sessions", json={"requirement": "ask:q"})).json()
    path = f"/sessions/{view['thread_id']}/resume"
    wrong = await http.post(path, json={"interrupt_id": "another", "answer": {"ok": True}})
    assert (wrong.status_code, wrong.json()["details"]["interrupt_id"]) == (409, view["interrupt"]["id"])
    for body in ({"response": ""}, {"response": " \n"}, {}, {"answer": {"ok": True}}, {"response": "x", "answer": {}}):
        assert (await http.post(path, json=body)).status_code == 422, body
    assert (await http.get(f"/sessions/{view['thread_id']}")).json() == view
    await http.post(path, json={"interrupt_id": view["interrupt"]["id"], "answer": {"ok": True}})
    late = await http.post(path, json={"response": "yes"})
    assert (late.status_code, late.json()["details"]["status"]) == (409, "completed")


async def test_p62_odd_but_storable_text_goes_through_unharmed(http: httpx2.AsyncClient) -> None:
    for text in ("ask:\N{PILE OF POO}", "ask:\u2028", "ask:\ufffd\u200f", "ask:\x01\x1f\x7f"):
        view = (await http.post("/sessions", json={"requirement": text})).json()
        assert (view["status"], view["requirement"]) == ("pending_interrupt", text)


async def test_p68_unknown_ids_are_404_on_every_route(http: httpx2.AsyncClient) -> None:
    id_ = uuid4()
    for method, path, body in (
        ("GET", f"/sessions/{id_}", None),
        ("DELETE", f"/sessions/{id_}", None),
        ("GET", f"/sessions/{id_}/stream", None),
        ("POST", f"/sessions/{id_}/stream", {"response": "yes"}),
        ("POST", f"/sessions/{id_}/resume", {"response": "yes"}),
        ("POST", f"/sessions/{id_}/cancel", None),
        ("POST", f"/sessions/{id_}/retry", None),
    ):
        response = await http.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (404, "session_not_found"), (method, path)
    assert (await http.get("/sessions")).json()["sessions"] == []


async def test_p46_pages_follow_the_cursor_and_refuse_another(http: httpx2.AsyncClient) -> None:
    started = [(await http.post("/sessions?wait=0", json={"requirement": "ask:q"})).json()["thread_id"] for _ in "abc"]
    first = (await http.get("/sessions?limit=2")).json()
    second = (await http.get("/sessions", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["thread_id"] for one in first["sessions"] + second["sessions"]] == started[::-1]
    assert second["next_cursor"] is None
    for cursor in ("x", "[]", "W10", "\u2603", "%00"):
        response = await http.get("/sessions", params={"cursor": cursor})
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input"), cursor


async def test_the_post_streams_end_at_the_question_and_at_the_end(http: httpx2.AsyncClient) -> None:
    start = await http.post("/sessions/stream", json={"requirement": "work:a ask:q work:b end:accepted"})
    kinds = [line.removeprefix("event: ") for line in start.text.split("\n") if line.startswith("event: ")]
    assert kinds[-1] == "interrupt"
    assert kinds.count("interrupt") == 1
    path = start.headers["location"]
    first = next(json.loads(line[6:]) for line in start.text.split("\n") if line.startswith("data: "))
    assert path == f"/sessions/{first['session_id']}"
    view = (await http.get(path)).json()
    body = {"interrupt_id": view["interrupt"]["id"], "answer": {"ok": True}}
    rest = await http.post(f"{path}/stream", json=body)
    kinds = [line.removeprefix("event: ") for line in rest.text.split("\n") if line.startswith("event: ")]
    assert kinds[-1] == "done"
    assert "interrupt" not in kinds
    ids = [int(line[4:]) for line in (start.text + rest.text).split("\n") if line.startswith("id: ")]
    assert ids == list(range(1, len(ids) + 1))


async def test_the_client_goes_through_a_session(url: str) -> None:
    async with AgentClient(url) as client:
        started = await client.start(StartSession(requirement="work:a ask:q end:accepted"))
        view = await client.wait(started.thread_id, 20)
        assert view.interrupt is not None
        answer = ResumeSession(interrupt_id=view.interrupt.id, answer={"ok": True})
        done = await client.resume(started.thread_id, answer, wait=20)
        assert (done.status, done.outcome) == ("completed", "accepted")
        assert [event.type async for event in client.events(started.thread_id)][-1] == "done"
        assert [one.thread_id for one in (await client.list(status="completed")).sessions] == [started.thread_id]
        await client.delete(started.thread_id)
        with pytest.raises(ServiceError) as caught:
            await client.get(started.thread_id)
        assert (caught.value.status, caught.value.problem_code) == (404, "session_not_found")


async def test_a_failed_session_tells_why_and_can_be_retried(http: httpx2.AsyncClient) -> None:
    view = (await http.post("/sessions", json={"requirement": "fail"})).json()
    assert view["status"] == "error"
    assert {"code", "detail"} <= set(view["error"])
    assert (await http.post(f"/sessions/{view['thread_id']}/retry")).json()["status"] == "error"
    assert (await http.post(f"/sessions/{view['thread_id']}/cancel")).status_code == 409


async def test_a_summary_is_a_page_for_a_browser_in_which_nothing_is_markup(url: str, http: httpx2.AsyncClient) -> None:
    said = "ask:<script>alert(1)</script> ask:[here](javascript:alert(1)) ask:![x](http://evil.example/x)"
    session = (await http.post("/sessions", json={"requirement": said})).json()["thread_id"]
    path = f"/sessions/{session}/summary"
    shown = await http.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>" in shown.text
    assert "&lt;script&gt;alert(1)" in shown.text
    assert [tag for tag in ("<script", "<a ", "<img") if tag in shown.text] == []
    plain = await http.get(path)
    assert (plain.json()["summary"].startswith("# "), plain.headers["vary"]) == (True, "Accept")
    async with AgentClient(url) as client:
        assert await client.summary_page(session) == shown.text
