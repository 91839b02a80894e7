"""The client against a server that answers as the service does."""

import json
from collections.abc import Callable
from uuid import UUID

import httpx2
import pytest
from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.client import AgentClient, ServiceError, ServiceUnreachableError, SyncAgentClient
from flowise_dev_agent.client import events as events_module
from flowise_dev_agent.client import transport as transport_module
from flowise_dev_agent.patch import SetLabel
from flowise_dev_agent.schemas.connections import ConnectFlowise
from flowise_dev_agent.schemas.credentials import NewCredential
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, ImportFlow, PromoteFlow
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from tests.unit.api.service_double import WRITE, event, view, written

SESSION = UUID(int=1)
OP = {"op_type": "SetLabel", "node_id": "a", "label": "b"}
Handler = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_RECONNECT_SECS", 0)
    monkeypatch.setattr(transport_module, "PAUSE_SECS", 0)


def client(handler: Handler, key: str | None = None, *, reconnects: int = 30) -> AgentClient:
    transport = httpx2.MockTransport(handler)
    return AgentClient("http://agent", SecretStr(key) if key else None, reconnects=reconnects, transport=transport)


def settled(status: str = "pending_interrupt") -> httpx2.Response:
    return httpx2.Response(200, text=view(SESSION, status).model_dump_json())


def sse(*events: object) -> httpx2.Response:
    text = "retry: 2000\n\n: keepalive\n\n"
    for item in events:
        text += f"event: {item.type}\ndata: {item.model_dump_json()}\n\n"  # type: ignore[attr-defined]
    return httpx2.Response(200, text=text, headers={"content-type": "text/event-stream"})


async def test_start_sends_only_what_was_set_with_the_key() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return settled()

    async with client(handler, "s3cret") as agent:
        answer = await agent.start(StartSession(requirement="r"), wait=5, idempotency_key="k")
    (request,) = seen
    assert answer.status == "pending_interrupt"
    assert json.loads(request.content) == {"requirement": "r"}
    assert request.url.params["wait"] == "5"
    assert request.headers["authorization"] == "Bearer s3cret"
    assert request.headers["idempotency-key"] == "k"


async def test_a_list_sends_its_filters_and_nothing_else() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"sessions": [], "next_cursor": None})

    async with client(handler) as agent:
        await agent.list(status="error", instance="dev", chatflow="c1", text="bot", cursor="x")
        await agent.list()
    assert dict(seen[0].url.params) == {
        "status": "error",
        "instance": "dev",
        "chatflow": "c1",
        "query": "bot",
        "limit": "20",
        "cursor": "x",
    }
    assert dict(seen[1].url.params) == {"limit": "20"}


async def test_look_ups_send_what_was_given_and_read_what_comes() -> None:
    seen: list[httpx2.Request] = []
    answers: dict[str, object] = {
        "/flows": {"flows": [], "total": 0, "searched": 3},
        "/knowledge/search": {"instance": "dev", "flowise_version": "3", "nodes": [], "templates": []},
        f"/sessions/{SESSION}/change": None,
    }

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=answers[request.url.path])

    async with client(handler) as agent:
        assert (await agent.find_flows("order", instance="dev")).searched == 3
        assert (await agent.search_catalogue("memory")).instance == "dev"
        assert await agent.change(SESSION) is None
    assert dict(seen[0].url.params) == {"query": "order", "instance": "dev", "limit": "20"}
    assert dict(seen[1].url.params) == {"query": "memory", "limit": "10"}


async def test_writes_send_what_was_set_where_it_belongs_and_read_what_comes() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.method == "GET":
            document = {"id": "f", "name": "Bot", "type": "CHATFLOW", "flow_data": "{}", "sha256": "a", "updated": "u"}
            return httpx2.Response(200, json={"ops": [OP]} if request.url.path.endswith("/ops") else document)
        return httpx2.Response(202, text=written("in_progress").model_dump_json())

    async with client(handler) as agent:
        assert (await agent.export_flow("f", instance="dev")).name == "Bot"
        assert [op.op_type for op in (await agent.flow_ops("f")).ops] == ["SetLabel"]
        given = ImportFlow(flow_data="{}", name="Bot")
        assert (await agent.import_flow(given, instance="dev", wait=3, idempotency_key="k")).session_id == WRITE
        await agent.apply_to_flow("f", ApplyToFlow(ops=[SetLabel(node_id="a", label="b")]))
        assert (await agent.promote_flow("f", PromoteFlow(target="prod"), wait=3)).status == "in_progress"
    assert [(one.url.path, dict(one.url.params)) for one in seen] == [
        ("/flows/f/export", {"instance": "dev"}),
        ("/flows/f/ops", {}),
        ("/flows/import", {"wait": "3", "instance": "dev"}),
        ("/flows/f/apply", {"wait": "0"}),
        ("/flows/f/promote", {"wait": "3"}),
    ]
    assert [json.loads(one.content) for one in seen[2:]] == [
        json.loads(given.model_dump_json()),
        {"flow_data": None, "ops": [OP], "reach": None, "base_sha256": None, "dry_run": False},
        {"source": None, "target": "prod", "name": None, "target_chatflow_id": None, "dry_run": False},
    ]
    assert seen[2].headers["idempotency-key"] == "k"


async def test_a_problem_keeps_the_words_of_the_service() -> None:
    problem = {"code": "session_conflict", "detail": "Answered.", "hint": "Look.", "details": {"status": "completed"}}
    async with client(lambda _: httpx2.Response(409, json=problem)) as agent:
        with pytest.raises(ServiceError) as caught:
            await agent.resume(SESSION, ResumeSession(response="yes"))
    error = caught.value
    assert (error.status, error.problem_code, error.message, error.hint) == (
        409,
        "session_conflict",
        "Answered.",
        "Look.",
    )
    assert error.details == {"status": "completed"}


@pytest.mark.parametrize("answer", [httpx2.Response(502, text="<html>"), httpx2.Response(500, json=["x"])])
async def test_an_answer_that_is_no_problem_document_is_still_an_error(answer: httpx2.Response) -> None:
    async with client(lambda _: answer) as agent:
        with pytest.raises(ServiceError, match=str(answer.status_code)):
            await agent.get(SESSION)


async def test_nothing_there_is_said_with_the_address() -> None:
    async with AgentClient("http://127.0.0.1:1") as agent:
        with pytest.raises(ServiceUnreachableError, match=r"http://127\.0\.0\.1:1"):
            await agent.health()


async def test_events_come_back_where_they_were_cut() -> None:
    answers = [sse(event(SESSION, 1, "node_start"), event(SESSION, None, "token")), sse(event(SESSION, 2, "done"))]
    asked: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.params["after_seq"])
        return answers.pop(0)

    async with client(handler) as agent:
        seen = [(one.seq, one.type) async for one in agent.events(SESSION)]
    assert seen == [(1, "node_start"), (None, "token"), (2, "done")]
    assert asked == ["0", "1"]


async def test_events_survive_a_restart_of_the_service() -> None:
    answers: list[httpx2.Response | Exception] = [
        httpx2.ConnectError("down"),
        httpx2.ReadError("cut"),
        sse(event(SESSION, 1, "done")),
    ]

    def handler(_: httpx2.Request) -> httpx2.Response:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with client(handler) as agent:
        assert [one.type async for one in agent.events(SESSION)] == ["done"]


async def test_events_give_up_on_a_service_that_stays_away() -> None:
    calls = 0

    def handler(_: httpx2.Request) -> httpx2.Response:
        nonlocal calls
        calls += 1
        raise httpx2.ConnectError("down")

    async with client(handler, reconnects=3) as agent:
        with pytest.raises(ServiceUnreachableError):
            await anext(agent.events(SESSION))
    assert calls == 4


async def test_without_reconnects_events_end_with_their_stream() -> None:
    async with client(lambda _: sse(event(SESSION, 1, "node_start")), reconnects=0) as agent:
        assert [one.seq async for one in agent.events(SESSION)] == [1]


async def test_events_of_an_unknown_session_are_an_error_not_a_loop() -> None:
    problem = {"code": "session_not_found", "detail": "No."}
    async with client(lambda _: httpx2.Response(404, json=problem)) as agent:
        with pytest.raises(ServiceError) as caught:
            await anext(agent.events(SESSION))
    assert caught.value.status == 404


async def test_wait_reads_the_session_again_after_what_settles_it() -> None:
    views = [settled("in_progress"), settled("pending_interrupt")]

    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/stream"):
            return sse(event(SESSION, 1, "node_start"), event(SESSION, 2, "interrupt"))
        return views.pop(0)

    async with client(handler) as agent:
        assert (await agent.wait(SESSION, timeout=5)).status == "pending_interrupt"


async def test_wait_gives_the_session_as_it_is_when_time_is_over() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        return sse() if request.url.path.endswith("/stream") else settled("in_progress")

    async with client(handler) as agent:
        assert (await agent.wait(SESSION, timeout=0.05)).status == "in_progress"


async def test_secrets_are_sent_as_they_are() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(400, json={"detail": "Seen."})

    async with client(handler) as agent:
        for call in (
            agent.create_credential(NewCredential(name="n", type="t", fields={"key": SecretStr("k1")})),
            agent.connect_flowise(ConnectFlowise(endpoint=HttpUrl("http://flowise:3000"), api_key=SecretStr("k2"))),
        ):
            with pytest.raises(ServiceError, match="Seen"):
                await call
    assert [json.loads(one.content) for one in seen] == [
        {"name": "n", "type": "t", "fields": {"key": "k1"}},
        {"endpoint": "http://flowise:3000/", "api_key": "k2"},
    ]


# --- repetitions -----------------------------------------------------------------------------------------------------

BUSY = {"code": "unavailable", "detail": "The service is stopping."}


async def test_a_call_that_starts_nothing_is_repeated_while_the_service_is_away() -> None:
    answers = [httpx2.ConnectError("down"), httpx2.Response(503, json=BUSY), settled()]

    def handler(_: httpx2.Request) -> httpx2.Response:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with client(handler) as agent:
        assert (await agent.get(SESSION)).status == "pending_interrupt"
    assert answers == []


async def test_a_start_is_repeated_under_one_key_so_that_it_starts_once() -> None:
    answers = [httpx2.Response(503, json=BUSY), settled()]
    keys: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        return answers.pop(0)

    async with client(handler) as agent:
        await agent.start(StartSession(requirement="r"))
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("problem", "header"), [(503, None), (409, None), (429, "3600")], ids=["still away", "a conflict", "a long pause"]
)
async def test_what_does_not_pass_is_said(problem: int, header: str | None) -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(problem, json=BUSY, headers={"retry-after": header} if header else {})

    async with client(handler) as agent:
        with pytest.raises(ServiceError, match="stopping"):
            await agent.get(SESSION)
    assert len(seen) == (3 if problem == 503 else 1)


async def test_a_call_that_could_do_something_twice_is_not_repeated() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        raise httpx2.ReadError("cut")

    async with client(handler) as agent:
        with pytest.raises(ServiceUnreachableError):
            await agent.rollback(SESSION)
    assert len(seen) == 1


# --- without async ---------------------------------------------------------------------------------------------------


def test_calls_without_async_give_the_same_answers_and_errors() -> None:
    answers = [settled(), httpx2.Response(404, json={"code": "session_not_found", "detail": "No."})]
    transport = httpx2.MockTransport(lambda _: answers.pop(0))
    with SyncAgentClient("http://agent", transport=transport) as agent:
        assert agent.get(SESSION).status == "pending_interrupt"
        with pytest.raises(ServiceError) as caught:
            agent.get(SESSION)
    assert caught.value.problem_code == "session_not_found"


def test_events_without_async_are_an_iterator_that_may_be_left_early() -> None:
    transport = httpx2.MockTransport(lambda _: sse(event(SESSION, 1, "node_start"), event(SESSION, 2, "done")))
    with SyncAgentClient("http://agent", transport=transport) as agent:
        assert [one.type for one in agent.events(SESSION)] == ["node_start", "done"]
        events = agent.events(SESSION)
        assert next(events).seq == 1
        events.close()


def test_a_client_without_async_says_how_it_is_used() -> None:
    with pytest.raises(RuntimeError, match="with"):
        SyncAgentClient("http://agent").get(SESSION)
