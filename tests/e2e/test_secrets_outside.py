"""Marked secrets in a person's flows, in what flows answer and in the settings: they leave the service by no way.

Two processes that log everything, a real Flowise with secrets in its flows, and receivers for what is sent out. Only
`export` and `ops` give a flow as it is, by design.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import Reply
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.mcp.prompts import PROMPTS
from tests.e2e.people import answer, http_of, make_flow, ok, start
from tests.e2e.scripted import DONE, model_environment, script
from tests.e2e.service import ServiceProcess, free_port
from tests.e2e.test_mcp import Agent, over_http
from tests.e2e.test_update_over_http import INTENT, _plan, _set
from tests.fixtures.database import stored_text
from tests.fixtures.oidc import CLIENT, OidcProvider
from tests.fixtures.oidc import SECRET as CLIENT_SECRET
from tests.fixtures.receiver import running_receiver

pytestmark = pytest.mark.nightly

_TAIL = "Kq2LmP4vT7wRb1NcY5sHd8JfGzX9aE3uQo"
IN_FLOW = ("name", "label", "prompt", "note", "unknown", "header", "chatbot", "api", "category")
IN_ANSWERS = ("answer", "reason", "fix")
IN_REQUESTS = ("body", "field", "path", "query", "json", "header-value", "chat", "cookie", "state", "argument")
#: What the operator gave to the service.
SETTINGS = {
    "AGENT_API_KEY": f"agent-key-{_TAIL}",
    "WEBHOOK_SECRET": "whsec_bWFya2VkLXNlY3JldC1vZi10aGUtd2ViaG9va3M=",
    "LANGSMITH_API_KEY": f"lsv2_pt_{_TAIL}",
    "SECRETS_KEY": "bWFya2VkLXNlY3JldC1mb3ItdGhlLWtleXMtaW4taXQ=",
    "OIDC_CLIENT_SECRET": CLIENT_SECRET,
}
OPENAI_KEY = f"sk-{_TAIL}"


def secret(place: str) -> str:
    return f"ghp_{(*IN_FLOW, *IN_ANSWERS, *IN_REQUESTS).index(place):02d}{_TAIL}"


class Sink:
    """Takes what the tracing library sends."""

    def __init__(self) -> None:
        self.port = 0
        self.bodies: list[bytes] = []


@contextmanager
def running_sink() -> Iterator[Sink]:
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            sink.bodies.append(self._body())
            self._answer({})

        def do_PATCH(self) -> None:
            self.do_POST()

        def _body(self) -> bytes:
            if length := self.headers["content-length"]:
                return self.rfile.read(int(length))
            parts: list[bytes] = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


async def planted(client: FlowiseClient) -> Chatflow:
    """A person's flow with a secret in each place."""
    row = await make_flow(
        client,
        deployed=True,
        name=f"Merry {secret('name')}",
        category=f"mine;{secret('category')}",
        chatbot_config=json.dumps({"title": secret("chatbot")}),
        api_config=json.dumps({"overrideConfig": {"key": secret("api")}}),
    )
    flow = json.loads(row.flow_data)
    for node in flow["nodes"]:
        if node["data"]["name"] == "chatOpenAI":
            node["data"]["label"] = secret("label")
        if node["data"]["name"] == "conversationChain":
            node["data"]["inputs"]["systemMessagePrompt"] = f"Call us with {secret('prompt')}."
        if node["data"]["name"] == "stickyNote":
            node["data"]["inputs"]["note"] = secret("note")
    flow["theirs"] = {"deep": secret("unknown"), "headers": [{"key": "Authorization", "value": secret("header")}]}
    return await client.update_chatflow(row.id, flow_data=json.dumps(flow))


async def test_p102_marked_secrets_leave_the_service_by_no_way(
    database_dsn: str, flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn, tmp_path: Path
) -> None:
    row = await planted(flowise_client)
    standin.script(
        lambda request: request.kind == "chat" and request.api_key != OPENAI_KEY,
        Reply(text=f"The key is {secret('answer')}"),
    )
    wrong = {**DONE, "done": False, "category": "LOGIC", "reason": secret("reason"), "fix": secret("fix")}
    patches = [_set("chatOpenAI_0", "temperature", value) for value in (0.1, 0.2)]
    plan = _plan("A colder bot", "chatOpenAI_0")
    script(standin, {"classify": INTENT, "plan": plan, "patch": patches, "judge": [wrong, DONE]})
    told: dict[str, str] = {}
    with running_sink() as sink, running_receiver() as receiver, OidcProvider() as provider:
        port = free_port()
        environment = {
            "AGENT_API_PORT": str(port),
            "PUBLIC_BASE_URL": f"http://127.0.0.1:{port}",
            "OIDC_ISSUER": provider.endpoint,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_GROUPS": "builders=build+approve",
            **model_environment(standin),
            **SETTINGS,
            "OPENAI_API_KEY": OPENAI_KEY,
            "POSTGRES_DSN": database_dsn,
            "LOG_LEVEL": "DEBUG",
            "LANGSMITH_TRACING": "true",
            "LANGCHAIN_ENDPOINT": f"http://127.0.0.1:{sink.port}",
            # What is sent can be read.
            "LANGSMITH_DISABLE_RUN_COMPRESSION": "true",
            "WEBHOOK_ALLOW": "127.0.0.0/8",
        }
        for name in ("api", "worker"):
            (tmp_path / name).mkdir()
        api = ServiceProcess(environment, tmp_path / "api", "serve", "--no-worker")
        worker = ServiceProcess({**environment, "AGENT_API_PORT": str(free_port())}, tmp_path / "worker", "worker")
        try:
            await api.start()
            await worker.launch()
            key = SETTINGS["AGENT_API_KEY"]
            async with http_of(api, key) as http:
                # Both processes run already: what is connected now reaches them by the database.
                told["connected"] = await _connect(http, flowise)
                view = await start(http, "Make it colder", target=row.id, webhook_url=receiver.url())
                view = await answer(http, view, action="approve")
                while view["interrupt"]["reason"] != "tests_passed":
                    view = await answer(http, view, action="iterate", feedback="Still too warm")
                    if view["interrupt"]["type"] == "plan_approval":
                        view = await answer(http, view, action="approve")
                told |= await _read(http, view["thread_id"], row.id)
                view = await answer(http, view, action="accept")
                assert view["outcome"] == "accepted"
                told |= {
                    f"{path} at the end": text for path, text in (await _read(http, view["thread_id"], row.id)).items()
                }
                told |= await _mistakes(http)
            signed_in = await _sign_in(api, provider, told)
            async with over_http(api, key) as agent:
                session = view["thread_id"]
                for tool, arguments in (
                    ("get_session", {"session_id": session}),
                    ("list_sessions", {}),
                    ("list_chatflows", {"query": "Merry"}),
                    ("read_chatflow", {"chatflow_id": row.id}),
                    ("read_chatflow", {"chatflow_id": secret("path")}),
                    ("check_flow", {"chatflow_id": row.id}),
                ):
                    told[f"mcp {tool}"] = repr(await agent.call(tool, **arguments))
                for resource in ("plan", "difference", "summary"):
                    told[f"mcp {resource}"] = await agent.read(f"sessions/{session}/{resource}")
                told["mcp chatflow"] = await agent.read(f"chatflows/{row.id}")
                told |= await _prompts(agent, session=session, chatflow=row.id)
            webhooks = receiver.wait_for(2)
            told["webhooks"] = "\n".join(one.body.decode() for one in webhooks)
        finally:
            # What is still to be traced is sent at the end.
            await worker.stop()
            await api.stop()
        told["traces"] = b"\n".join(sink.bodies).decode(errors="replace")
        told["log of the API"], told["log of the worker"] = api.log(), worker.log()
    told["prompts"] = "\n".join(str(request.body) for request in standin.requests if request.api_key == OPENAI_KEY)
    # Each of these ways was really used.
    for subject in ("session", "flow"):
        assert any(way.startswith(f"link of a {subject} v") for way in told), sorted(told)
    assert "apply" in told["traces"] or "patch" in told["traces"]
    assert "DEBUG" in told["log of the API"]
    assert "DEBUG" in told["log of the worker"]
    assert "merry" in told["prompts"].lower()
    secrets = {place: secret(place) for place in (*IN_FLOW, *IN_ANSWERS, *IN_REQUESTS)}
    secrets |= (
        signed_in | SETTINGS | {"OPENAI_API_KEY": OPENAI_KEY, "FLOWISE_API_KEY": flowise.api_key.get_secret_value()}
    )
    found = {
        way: names for way, text in told.items() if (names := [name for name, one in secrets.items() if one in text])
    }
    assert not found, json.dumps(found, indent=1)
    # Nor are they kept, but for the flow itself, as it was.
    kept = (await stored_text(database_dsn)).replace(row.flow_data, "")
    kept_names = [name for name, one in secrets.items() if one in kept and name not in IN_FLOW]
    assert not kept_names, kept_names


async def _connect(http: httpx2.AsyncClient, flowise: FlowiseAccess) -> str:
    """Connect the Flowise as a person does at the page; what the service says to that."""
    body = {"endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}
    answers = [
        await http.put("/connections/flowise", json={**body, "endpoint": "http://127.0.0.1:9"}),
        await http.put("/connections/flowise", json={**body, "more": 1}),
        await http.put("/connections/flowise", json=body),
    ]
    assert [response.status_code for response in answers] == [502, 422, 200], [one.text for one in answers]
    return "\n".join(response.text for response in answers)


#: They give a flow as it is.
_WHOLE = {f"/flows/{{chatflow_id}}/{way}" for way in ("export", "ops", "versions/{version}/export")}


async def _read(http: httpx2.AsyncClient, session_id: str, chatflow_id: str) -> dict[str, str]:
    """What every route that reads says, by its path."""
    document = (await ok(await http.get("/openapi.json")))["paths"]
    view = await ok(await http.get(f"/sessions/{session_id}"))
    shas = [test["trace_sha256"] for test in (view["result"] or {}).get("tests", []) if test["trace_sha256"]]
    values = {"session_id": session_id, "chatflow_id": chatflow_id, "label": "v1.0", "name": "chatOpenAI"}
    values |= {"plan_id": session_id, "milestone_id": session_id, "flowchart_id": session_id, "memory_id": "1"}
    values |= {"flowchart_node_id": "plan_v2", "artifact_id": str(uuid4())}
    values |= {"sha256": shas[0] if shas else "0" * 64, "test_id": str(uuid4()), "attachment_id": str(uuid4())}
    query = {"session_id": session_id, "query": "Merry", "before": f"{session_id}:v1.0", "after": "live"}
    told: dict[str, str] = {}
    for path, operations in document.items():
        if "get" not in operations or path in _WHOLE or path.endswith("/stream"):
            continue
        if path.startswith("/shared"):
            continue  # opened by links alone: see `_shown_by_links`
        needed = {one["name"] for one in operations["get"].get("parameters", []) if one["in"] == "query"}
        response = await http.get(path.format(**values), params={key: query[key] for key in needed & query.keys()})
        assert response.status_code in {200, 404, 409, 422}, (path, response.text)
        told[path] = response.text
    told["audit as CSV"] = (await http.get("/audit/export", params={"format": "csv"})).text
    page = await http.get(f"/sessions/{session_id}/summary", headers={"Accept": "text/html"})
    assert page.text.startswith("<!doctype html>")
    told["summary as HTML"] = page.text
    assert all(session_id in told[way] for way in ("audit as CSV", "/audit/export", "summary as HTML"))
    async with http.stream("GET", f"/sessions/{session_id}/stream") as stream:
        lines: list[str] = []
        async for line in stream.aiter_lines():
            lines.append(line)
            if line.startswith("data:") and json.loads(line[5:])["type"] in {"done", "interrupt"}:
                seq = json.loads(line[5:])["seq"]
                if seq == view["last_event_seq"]:
                    break
    told["stream"] = "\n".join(lines)
    told |= await _shown_by_links(http, session_id, chatflow_id)
    assert sum(len(text) for text in told.values()) > 20_000
    return told


async def _shown_by_links(http: httpx2.AsyncClient, session_id: str, chatflow_id: str) -> dict[str, str]:
    """What links of the session and of the flow show to people without a key."""
    told: dict[str, str] = {}
    for subject, id_ in (("session", session_id), ("flow", chatflow_id)):
        made = await http.post("/shares", json={"subject": subject, "id": id_})
        assert made.status_code == 201, made.text
        headers = {"Authorization": f"Share {made.json()['link'].rpartition('/')[2]}"}
        shown = await http.get("/shared", headers=headers)
        versions = (await ok(shown))["versions"]
        told[f"link of a {subject}"] = shown.text
        for one in versions:
            drawn = await http.get(f"/shared/versions/{one['name']}", headers=headers)
            told[f"link of a {subject} {one['name']}"] = drawn.text
            assert drawn.status_code == 200, drawn.text
            assert "chatOpenAI" in drawn.text
    return told


async def _prompts(agent: Agent, **known: str) -> dict[str, str]:
    """What each prompt says, and what it says to one that carries a secret."""
    told: dict[str, str] = {}
    for prompt in PROMPTS:
        names = [argument.name for argument in prompt.arguments or []]
        given = {name: known.get(name, "A merry bot") for name in names}
        told[f"mcp prompt {prompt.name}"] = await agent.prompt(prompt.name, **given)
        assert all(text in told[f"mcp prompt {prompt.name}"] for text in given.values())
        told[f"mcp prompt {prompt.name}, refused"] = await agent.prompt(
            prompt.name, **{name: f"A bot with {secret('argument')}" for name in names}
        )
        assert "secret_in_text" in told[f"mcp prompt {prompt.name}, refused"]
    assert len(told) >= 12
    return told


async def _sign_in(api: ServiceProcess, provider: OidcProvider, told: dict[str, str]) -> dict[str, str]:
    """A person signs in, looks around and signs out; what only their browser, the service and the provider know."""
    provider.person = {"sub": "u1", "email": "ada@example.org", "groups": ["builders"]}
    async with http_of(api) as person:
        there = await person.get("/auth/sign-in")
        kept = next(value for name, value in person.cookies.items() if name.endswith("-sign-in"))
        state, nonce, verifier, _ = kept.split(".")
        async with httpx2.AsyncClient() as elsewhere:
            back = await elsewhere.get(there.headers["location"])
        code = back.headers["location"].partition("code=")[2]
        arrived = await person.get(back.headers["location"])
        assert arrived.status_code == 303, arrived.text
        cookie = next(value for name, value in person.cookies.items() if name.endswith("-session"))
        token = provider.token(aud=f"{api.url}/mcp")
        told["arrived"] = f"{arrived.headers['location']} {arrived.text}"
        for path in ("/keys/current", "/audit", "/sessions"):
            told[f"{path} of a person"] = (await person.get(path)).text
        assert "ada@example.org" in told["/keys/current of a person"]
        bearer = await person.get("/keys/current", headers={"Authorization": f"Bearer {token}", "Cookie": ""})
        assert bearer.status_code == 200, bearer.text
        told["signed out"] = (await person.post("/auth/sign-out", headers={"Origin": api.url})).text
    known = {"state of the sign-in": state, "nonce": nonce, "verifier": verifier, "code": code}
    return known | {"cookie of a person": cookie, "access token": token}


async def _mistakes(http: httpx2.AsyncClient) -> dict[str, str]:
    """What requests are told that carry a secret where none is taken. They do not go by the address that they sent."""
    answers = {
        "body": await http.post("/sessions", json={"requirement": secret("body")}),
        "field": await http.post("/sessions", json={"requirement": "x", secret("field"): 1}),
        "query": await http.get("/sessions", params={"limit": secret("query")}),
        "json": await http.post("/sessions", content=b'{"requirement": "' + secret("json").encode()),
        "header-value": await http.get("/sessions", headers={"Authorization": f"Bearer {secret('header-value')}"}),
        "chat": await http.post("/process-conversation", json={"message": f"A bot with {secret('chat')}"}),
        "cookie": await http.get("/auth/callback", headers={"Cookie": f"flowise-dev-agent-sign-in={secret('cookie')}"}),
        "state": await http.get("/auth/callback", params={"state": secret("state"), "code": secret("state")}),
    }
    for name, response in answers.items():
        # A chat is told of its mistakes in a frame.
        assert response.status_code in ({200} if name == "chat" else {401, 403, 422}), response.text
    return {f"problem of a {place}": response.text for place, response in answers.items()}
