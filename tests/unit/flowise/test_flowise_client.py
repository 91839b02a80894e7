"""The client's reading of Flowise: every error shape it has, what is retried, what is never sent twice."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseNotFoundError,
    FlowiseRateLimitedError,
    FlowiseRejectedError,
    FlowiseServerError,
    FlowiseTimeoutError,
    FlowiseUnexpectedResponseError,
    FlowiseUnreachableError,
)
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.flowise import transport as transport_module

ENDPOINT = "http://flowise.test:3000"
KEY = "secret-key-value"
ID = "3f1b1a52-9a0e-4a53-8d28-7e3c1f2d9b10"
ROW = {
    "id": ID,
    "name": "n",
    "flowData": "{}",
    "type": "CHATFLOW",
    "category": "a; b",
    "deployed": None,
    "isPublic": None,
    "updatedDate": "2026-01-01T00:00:00.000Z",
    "mcpServerConfig": None,
}
Handler = Callable[[httpx2.Request], httpx2.Response]


class Server:
    """Answers with the given responses in turn (the last one for ever) and remembers the requests."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_BACKOFF_SECS", 0.0)


def client_of(server: Handler, **options: Any) -> FlowiseClient:
    return FlowiseClient(f"{ENDPOINT}/", SecretStr(KEY), transport=httpx2.MockTransport(server), **options)


def as_json(body: Any, status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, json=body)


def flowise_error(status: int, message: str) -> httpx2.Response:
    return as_json({"statusCode": status, "success": False, "message": message, "stack": {"at": "x.js"}}, status)


HTML = httpx2.Response(200, html="<!DOCTYPE html><html><head><title>Flowise</title></head></html>")


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (as_json({"error": "Unauthorized Access"}, 401), FlowiseAuthError, "Unauthorized Access"),
        (as_json({"message": "Forbidden"}, 403), FlowiseAuthError, "Forbidden"),
        (flowise_error(404, f"Chatflow {ID} not found in the database!"), FlowiseNotFoundError, "not found"),
        (flowise_error(400, "Invalid Chatflow ID"), FlowiseRejectedError, "Invalid Chatflow ID"),
        (flowise_error(500, "Error: it broke"), FlowiseServerError, "it broke"),
        (
            flowise_error(500, f"Error: chatflowsService.deleteChatflow - Chatflow {ID} not found in the database!"),
            FlowiseNotFoundError,
            "not found",
        ),
        (httpx2.Response(429, text="Too many", headers={"retry-after": "60"}), FlowiseRateLimitedError, "Too many"),
        (
            httpx2.Response(502, html="<html><title>Bad Gateway</title></html>"),
            FlowiseConnectionLostError,
            "Bad Gateway",
        ),
        (httpx2.Response(504, html="<html><title>Too late</title></html>"), FlowiseTimeoutError, "Too late"),
        (httpx2.Response(413, text=""), FlowiseRejectedError, "no explanation"),
        (httpx2.Response(308, headers={"location": "https://x/"}), FlowiseUnexpectedResponseError, "https://x/"),
        (HTML, FlowiseUnexpectedResponseError, "text/html"),
        (httpx2.Response(200, content=b""), FlowiseUnexpectedResponseError, "empty body"),
        (
            httpx2.Response(200, content=b"", headers={"content-type": "application/json"}),
            FlowiseUnexpectedResponseError,
            "empty body",
        ),
        (
            httpx2.Response(200, content=b"{", headers={"content-type": "application/json"}),
            FlowiseUnexpectedResponseError,
            "broken JSON",
        ),
        (as_json({"id": ID}), FlowiseUnexpectedResponseError, "flowData"),
        (as_json([]), FlowiseUnexpectedResponseError, "unexpected shape"),
        (httpx2.ConnectError("refused"), FlowiseUnreachableError, "cannot be reached"),
        (httpx2.ConnectTimeout("slow"), FlowiseUnreachableError, "cannot be reached"),
        (httpx2.ReadError("reset"), FlowiseConnectionLostError, "broke"),
        (httpx2.RemoteProtocolError("gone"), FlowiseConnectionLostError, "broke"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_p12_failures_are_classified(
    answer: httpx2.Response | Exception, error: type[FlowiseError], words: str, method: str
) -> None:
    server = Server(answer)
    async with client_of(server) as client:
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "GET": lambda: client.get_chatflow(ID),
            "POST": lambda: client.create_chatflow(ChatflowCreate(name="n", flow_data="{}")),
            "PUT": lambda: client.update_chatflow(ID, flow_data="{}"),
        }
        with pytest.raises(FlowiseError) as caught:
            await calls[method]()
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert ENDPOINT in str(caught.value)
    assert KEY not in str(caught.value) + repr(caught.value.details)
    assert "x.js" not in str(caught.value)
    if method != "GET":
        assert len(server.requests) == 1, "a write is never sent twice"


@pytest.mark.parametrize("first", [httpx2.ConnectError("x"), httpx2.ReadError("x"), httpx2.Response(503, text="x")])
async def test_get_is_tried_three_times(first: httpx2.Response | Exception) -> None:
    server = Server(first, first, as_json(ROW))
    async with client_of(server) as client:
        assert (await client.get_chatflow(ID)).name == "n"
    assert len(server.requests) == 3


async def test_get_gives_up_after_three_tries() -> None:
    server = Server(httpx2.ConnectError("x"))
    async with client_of(server) as client:
        with pytest.raises(FlowiseUnreachableError):
            await client.list_credentials()
    assert len(server.requests) == 3


async def test_a_login_in_the_address_is_sent_and_shown_nowhere() -> None:
    server = Server(flowise_error(500, "no"))
    client = FlowiseClient("http://ada:p%40ss@flowise:3000/", None, transport=httpx2.MockTransport(server))
    with pytest.raises(FlowiseError) as caught:
        await client.list_chatflows()
    assert "Basic " + base64.b64encode(b"ada:p@ss").decode() == server.requests[0].headers["authorization"]
    assert client.endpoint == "http://flowise:3000"
    assert "ada" not in f"{caught.value.message} {caught.value.details}"


async def test_headers_for_a_proxy_go_with_each_request_beside_the_key() -> None:
    server = Server(httpx2.Response(200, json={"version": "3.1.4"}))
    await client_of(server, headers={"X-Gate": SecretStr("open")}).version()
    sent = server.requests[0].headers
    assert (sent["x-gate"], sent["authorization"]) == ("open", f"Bearer {KEY}")


async def test_get_does_not_repeat_what_will_not_change() -> None:
    server = Server(flowise_error(500, "Error: nodesService - Node nope not found"))
    async with client_of(server) as client:
        with pytest.raises(FlowiseNotFoundError):
            await client.get_node("nope")
    assert len(server.requests) == 1


@pytest.mark.parametrize(("seconds", "requests"), [("0", 2), ("3600", 1)])
async def test_rate_limit_is_waited_for_only_when_it_is_short(seconds: str, requests: int) -> None:
    server = Server(httpx2.Response(429, text="slow down", headers={"retry-after": seconds}), as_json([]))
    async with client_of(server) as client:
        if requests == 1:
            with pytest.raises(FlowiseRateLimitedError):
                await client.list_tools()
        else:
            assert await client.list_tools() == []
    assert len(server.requests) == requests


async def test_flow_data_is_passed_on_byte_for_byte() -> None:
    text = '{ "nodes": [],\n  "ü": "\\u00e9 ✓" ,"edges":[]}'
    server = Server(as_json({**ROW, "flowData": text}))
    async with client_of(server) as client:
        row = await client.create_chatflow(ChatflowCreate(name="n", flow_data=text, category="fda:1"))
    sent = json.loads(server.requests[0].content)
    assert sent == {
        "name": "n",
        "flowData": text,
        "type": "CHATFLOW",
        "category": "fda:1",
        "deployed": False,
        "isPublic": False,
    }
    assert row.flow_data == text
    assert server.requests[0].url == f"{ENDPOINT}/api/v1/chatflows"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_update_sends_only_what_was_given() -> None:
    server = Server(as_json(ROW))
    async with client_of(server) as client:
        await client.update_chatflow(ID, flow_data="{}", category=None)
        with pytest.raises(ValueError, match="flowdata"):
            await client.update_chatflow(ID, flowdata="{}")
    assert json.loads(server.requests[0].content) == {"flowData": "{}", "category": None}


async def test_tag_is_found_on_any_page_and_matched_whole() -> None:
    rows = [{**ROW, "id": f"id-{n}", "category": "fda:10"} for n in range(120)]
    rows[3]["category"] = "x;fda:1"
    rows[117]["category"] = " fda:1 ; y"
    asked: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        page, limit = int(request.url.params["page"]), int(request.url.params["limit"])
        asked.append(request.url.params["page"])
        return as_json({"data": rows[(page - 1) * limit : page * limit], "total": len(rows)})

    async with client_of(handler) as client:
        found = await client.find_chatflow_by_category_tag("fda:1")
    assert [row.id for row in found] == ["id-3", "id-117"]
    assert asked == ["1", "2", "3"]


async def test_rows_that_move_between_pages_come_once() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        page = int(request.url.params["page"])
        data = [{**ROW, "id": f"id-{n}"} for n in (range(50) if page == 1 else range(49, 60))]
        return as_json({"data": data, "total": 60})

    async with client_of(handler) as client:
        ids = [row.id async for row in client.iter_chatflows()]
    assert ids == [f"id-{n}" for n in range(60)]


async def test_prediction_carries_the_session_and_reads_text_json_and_tools() -> None:
    server = Server(
        as_json({"text": "hi", "chatId": "s", "sessionId": "s", "usedTools": [{"tool": "calc", "error": "x"}, None]}),
        as_json({"json": {"b": "ü"}, "usedTools": None}),
        as_json({"text": 168}),
    )
    async with client_of(server) as client:
        first, second, third = [await client.predict(ID, "q", session_id="s") for _ in range(3)]
    sent = json.loads(server.requests[0].content)
    assert sent == {"question": "q", "chatId": "s", "overrideConfig": {"sessionId": "s"}, "streaming": False}
    assert (first.answer, first.session_id, first.used_tools) == ("hi", "s", [{"tool": "calc", "error": "x"}])
    assert second.answer == '{"b": "ü"}'
    assert third.answer == "168"  # what a function returned
    assert first.chat_id == "s"


async def test_prediction_errors_keep_the_cause_and_are_not_taken_for_a_missing_flow() -> None:
    cause = "Error: predictionsServices.buildChatflow - Tool 3 not found"
    protected = "Error: predictionsServices.buildChatflow - Unauthorized"
    server = Server(flowise_error(500, cause), flowise_error(500, protected))
    async with client_of(server) as client:
        with pytest.raises(FlowiseServerError, match="Tool 3 not found") as caught:
            await client.predict(ID, "q", session_id="s")
        with pytest.raises(FlowiseAuthError):
            await client.predict(ID, "q", session_id="s")
    assert caught.value.details == {"status": 500, "call": f"POST /prediction/{ID}", "flowise_message": cause}


async def test_text_that_no_database_can_hold_is_replaced() -> None:
    body = b'{"text": "a\\u0000b \\ud83d\\ude00 \\ud83d", "usedTools": [{"t": "\\udc00"}]}'
    server = Server(httpx2.Response(200, content=body, headers={"content-type": "application/json"}))
    async with client_of(server) as client:
        answer = await client.predict(ID, "q", session_id="s")
    assert answer.text == "a\ufffdb 😀 \ufffd"
    assert answer.used_tools == [{"t": "\ufffd"}]


async def test_ids_cannot_leave_their_path_segment() -> None:
    server = Server(flowise_error(400, "Invalid Chatflow ID"))
    async with client_of(server) as client:
        with pytest.raises(FlowiseRejectedError):
            await client.get_chatflow("../credentials?x")
    assert server.requests[0].url.raw_path == b"/api/v1/chatflows/..%2Fcredentials%3Fx"


async def test_every_request_is_counted_without_ids() -> None:
    calls: list[str] = []
    server = Server(httpx2.ConnectError("x"), as_json(ROW))
    async with client_of(server, on_call=calls.append) as client:
        await client.get_chatflow(ID)
        await client.delete_chatflow(ID)
    assert calls == ["GET /chatflows/:id", "GET /chatflows/:id", "DELETE /chatflows/:id"]


async def test_credentials_keep_nothing_but_id_name_type_and_times() -> None:
    row = {"id": "c", "name": "n", "credentialName": "openAIApi", "encryptedData": "xyz", "workspaceId": "w"}
    row["updatedDate"] = "2026-01-01T00:00:00.000Z"
    async with client_of(Server(as_json([row]))) as client:
        (credential,) = await client.list_credentials()
    assert credential.model_dump() == {
        "id": "c",
        "name": "n",
        "credential_name": "openAIApi",
        "created_date": None,
        "updated_date": "2026-01-01T00:00:00.000Z",
    }


async def test_a_custom_tool_and_a_variable_are_sent_with_what_flowise_needs_and_their_id_comes_back() -> None:
    server = Server(as_json({"id": "t", "name": "n"}), as_json({"id": "v", "name": "n"}))
    async with client_of(server) as client:
        assert await client.create_tool("n", {"func": "return 1"}) == "t"
        assert await client.create_variable("n", {"value": "kind"}) == "v"
    tool, variable = [json.loads(request.content) for request in server.requests]
    assert tool == {
        "name": "n",
        "description": "",
        "color": "#7e57c2",
        "iconSrc": "",
        "schema": "[]",
        "func": "return 1",
    }
    assert variable == {"name": "n", "value": "kind", "type": "static"}


async def test_a_credential_is_sent_as_flowise_takes_it_and_only_its_public_side_is_kept() -> None:
    row = {"id": "c", "name": "n", "credentialName": "openAIApi", "encryptedData": "xyz"}
    server = Server(
        as_json([{"name": "openAIApi", "inputs": [{"name": "openAIApiKey"}, {"name": "org", "optional": True}]}]),
        as_json(row),
    )
    async with client_of(server) as client:
        (type_,) = await client.list_credential_types()
        assert {field.name: field.required for field in type_.inputs} == {"openAIApiKey": True, "org": False}
        made = await client.create_credential(name="n", type_="openAIApi", fields={"openAIApiKey": "k"})
    assert (made.id, made.credential_name) == ("c", "openAIApi")
    assert json.loads(server.requests[1].content) == {
        "name": "n",
        "credentialName": "openAIApi",
        "plainDataObj": {"openAIApiKey": "k"},
    }


async def test_an_unchanged_node_list_is_asked_for_by_its_etag() -> None:
    nodes = [{"name": "calculator"}]
    first = httpx2.Response(200, json=nodes, headers={"etag": 'W/"1"'})
    server = Server(first, httpx2.Response(304))
    async with client_of(server) as client:
        listed = await client.list_nodes()
        again = await client.list_nodes(listed.etag)

        assert (listed.nodes, listed.etag, listed.unchanged) == (tuple(nodes), 'W/"1"', False)
        assert (again.nodes, again.etag, again.unchanged) == ((), 'W/"1"', True)
        assert [request.headers.get("if-none-match") for request in server.requests] == [None, 'W/"1"']
        with pytest.raises(FlowiseUnexpectedResponseError):
            await client.list_nodes()


def test_repr_and_errors_never_show_the_key() -> None:
    assert KEY not in repr(client_of(Server(HTML)))


async def test_client_accepts_the_api_path_in_the_endpoint() -> None:
    server = Server(as_json({"version": "3.1.4"}))
    async with FlowiseClient(f"{ENDPOINT}/api/v1/", None, transport=httpx2.MockTransport(server)) as client:
        assert await client.version() == "3.1.4"
        assert client.endpoint == ENDPOINT
    assert server.requests[0].url == f"{ENDPOINT}/api/v1/version"


async def test_total_time_is_bounded_even_when_bytes_keep_coming() -> None:
    class Dripping(httpx2.AsyncByteStream):
        async def __aiter__(self):
            import asyncio

            while True:
                yield b" "
                await asyncio.sleep(0.01)

    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=Dripping(), headers={"content-type": "application/json"})

    async with client_of(handler, prediction_timeout=0.05) as client:
        with pytest.raises(FlowiseTimeoutError, match=r"within 0\.05 s"):
            await client.predict(ID, "q", session_id="s")


async def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_MAX_BODY_BYTES", 100)
    async with client_of(Server(as_json({"version": "x" * 200}))) as client:
        with pytest.raises(FlowiseUnexpectedResponseError, match="more than"):
            await client.version()
