"""A Flowise server and a model that are connected at the page: tried, kept encrypted, used by every process."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.cli.doctor import examine
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply
from flowise_dev_agent.devkit.standin.protocol import StandInFailure
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.ops import connections as module
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.settings import (
    DatabaseSettings,
    FlowiseSettings,
    ReasoningSettings,
    ServerSettings,
    Settings,
    load_settings,
)
from tests.chaos.fake_flowise import FakeFlowise
from tests.fixtures.database import stored_text
from tests.runtime_world import running_engine, script, until
from tests.support.sessions import ASSISTANT

FLOWISE_KEY, MODEL_KEY, SHARED = "Merry-plain-key-of-flowise", "Merry-plain-key-of-a-model", "the-shared-key"
FIRST, SECOND = (base64.b64encode(bytes([number] * 32)).decode() for number in (1, 2))


@pytest.fixture(scope="module")
def server() -> Iterator[FakeFlowise]:
    with FakeFlowise(api_key=FLOWISE_KEY) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*module._FLOWISE_VARIABLES, *module._MODEL_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    # What follows is seen at a run or a look of its own, not by chance.
    monkeypatch.setattr(module, "_LOOK_SECS", 3_600)


def settings(secrets_key: str | None = FIRST, **groups: Any) -> Settings:
    return load_settings(
        **{
            "database": DatabaseSettings(secrets_key=SecretStr(secrets_key) if secrets_key else None),
            "flowise": FlowiseSettings(),
            "reasoning": ReasoningSettings(),
            "server": ServerSettings(rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(SHARED)),
            **groups,
        }
    )


def client(chosen: Settings, engine: Runtime) -> httpx2.AsyncClient:
    transport = StreamingASGITransport(create_app(chosen, engine))
    headers = {"Authorization": f"Bearer {SHARED}"}
    return httpx2.AsyncClient(base_url="http://localhost", transport=transport, headers=headers, timeout=60)


@asynccontextmanager
async def service(dsn: str, database: Database, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A service with the connections of `settings(**options)`, as somebody with all rights."""
    chosen = settings(**options)
    async with running_engine(dsn, connections=Connections(chosen, database)) as engine, client(chosen, engine) as http:
        yield http


async def test_a_flowise_is_tried_kept_and_used_and_its_key_is_in_no_answer_and_no_table(
    database_dsn: str, database: Database, server: FakeFlowise, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    endpoint = f"http://127.0.0.1:{server.port}"
    async with service(database_dsn, database) as http:
        before = (await http.get("/connections")).json()
        assert (before["storable"], before["flowise"]["source"], before["flowise"]["has_key"]) == (True, "none", False)
        bodies = {
            "flowise_unreachable": {"endpoint": "http://127.0.0.1:9", "api_key": FLOWISE_KEY},
            "flowise_auth": {"endpoint": endpoint, "api_key": f"{FLOWISE_KEY}-wrong"},
            "invalid_request": {"endpoint": f"http://ada:{FLOWISE_KEY}@127.0.0.1", "api_key": FLOWISE_KEY},
        }
        for code, body in bodies.items():
            refused = await http.put("/connections/flowise", json=body)
            assert (refused.json()["code"], FLOWISE_KEY in refused.text) == (code, False)
            assert (await http.get("/connections")).json() == before
        stored = await http.put("/connections/flowise", json={"endpoint": endpoint, "api_key": FLOWISE_KEY})
        assert stored.status_code == 200, stored.text
        assert stored.json() == (await http.get("/connections")).json()
        shown = stored.json()["flowise"]
        assert (shown["source"], shown["has_key"], shown["changed_by"]) == ("stored", True, "AGENT_API_KEY")
        assert shown["endpoint"] == endpoint
        audit_log = (await http.get("/audit")).text
    assert "connection.store" in audit_log
    assert FLOWISE_KEY not in stored.text + audit_log + caplog.text + await stored_text(database_dsn)


@asynccontextmanager
async def whole_service(
    dsn: str, secrets_key: str | None = FIRST, *, worker: bool = False
) -> AsyncIterator[httpx2.AsyncClient]:
    """A service with the real agent, as somebody with all rights."""
    secret = SecretStr(secrets_key) if secrets_key else None
    chosen = settings(database=DatabaseSettings(dsn=SecretStr(dsn), secrets_key=secret))
    async with Runtime.open(chosen, worker=worker) as engine, client(chosen, engine) as http:
        yield http


async def connected(database: Database, server: FakeFlowise, standin: ModelStandIn | None = None) -> Connections:
    """A process that has stored a Flowise, and a model, under the first key."""
    connections = Connections(settings(), database)
    flowise = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
    await connections.connect_flowise(module.ConnectFlowise.model_validate(flowise))
    if standin:
        model = {"engine": "openai", "base_url": standin.base_url_openai, "api_key": MODEL_KEY, "model": "gpt-x"}
        await connections.connect_model(module.ConnectModel.model_validate(model))
    return connections


async def test_what_was_stored_goes_over_to_the_next_key_and_the_one_before_may_go(
    database_dsn: str, database: Database, server: FakeFlowise
) -> None:
    async with running_engine(database_dsn):
        former = await connected(database, server)
        rotated, later = Connections(settings(f"{SECOND},{FIRST}"), database), Connections(settings(SECOND), database)
        await rotated.refresh()
        for connections in (rotated, later, former):
            # A process that has the former key only goes on with what it knows.
            view = await connections.view()
            assert view.flowise.source == "stored"
            assert (await connections.instances.client().list_chatflows(limit=1)).total == 0
        view = await later.disconnect("flowise")
        assert (view.flowise.source, view.flowise.endpoint) == ("none", "http://localhost:3000")
        for connections in (rotated, later, former):
            await connections.aclose()


@pytest.mark.parametrize("secrets_key", [SECOND, None], ids=["another key", "no key"])
async def test_what_cannot_be_read_is_said_and_nothing_else_is_used_in_its_place(
    database_dsn: str, database: Database, server: FakeFlowise, standin: ModelStandIn, secrets_key: str | None
) -> None:
    async with running_engine(database_dsn):
        await (await connected(database, server, standin)).aclose()
    async with whole_service(database_dsn, secrets_key) as http:
        view = (await http.get("/connections")).json()
        assert [(view[kind]["source"]) for kind in ("flowise", "model")] == ["unreadable"] * 2
        assert (view["flowise"]["endpoint"], view["flowise"]["has_key"]) == (None, False)
        health = (await http.get("/health")).json()
        assert health["flowise"]["default"]["error"]["code"] == "connection_unreadable"
        assert health["reasoning"]["error"]["code"] == "connection_unreadable"
        assert [one["state"] for one in (await http.get("/instances")).json()["instances"]] == ["unavailable"]
        assert (await http.get("/knowledge")).status_code == 200
        start = {"requirement": "A support chatbot"}
        for method, path, body in (("GET", "/flows", None), ("POST", "/sessions", start)):
            refused = await http.request(method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (503, "connection_unreadable"), path
        # With a server, but without the model that was connected, nothing is planned either.
        assert (await http.delete("/connections/flowise")).json()["flowise"]["endpoint"] == "http://localhost:3000"
        refused = await http.post("/sessions", json=start)
        assert refused.json()["details"] == {"connection": "model"}
        await http.delete("/connections/model")
        assert (await http.get("/health")).json()["reasoning"]["error"] is None
        assert (await http.post("/sessions?wait=0", json=start)).status_code == 202


async def test_another_flowise_is_connected_over_open_sessions_only_by_force_and_they_do_not_go_on_there(
    database_dsn: str, server: FakeFlowise
) -> None:
    first = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
    with FakeFlowise(api_key=FLOWISE_KEY) as other:
        second = {"endpoint": f"http://127.0.0.1:{other.port}", "api_key": FLOWISE_KEY}
        async with whole_service(database_dsn) as http:
            await http.put("/connections/flowise", json=first)
            begun = await http.post("/sessions?wait=0", json={"requirement": "A support chatbot"})
            session = begun.json()["thread_id"]
            # Another key of the same server concerns nobody.
            assert (await http.put("/connections/flowise", json=first)).status_code == 200
            for method, body in (("PUT", {"json": second}), ("DELETE", {})):
                refused = await http.request(method, "/connections/flowise", **body)
                assert (refused.status_code, refused.json()["code"]) == (409, "sessions_open"), method
                assert refused.json()["details"]["sessions"] == 1
            assert (await http.get("/connections")).json()["flowise"]["endpoint"] == first["endpoint"]
            forced = await http.put("/connections/flowise", json=second | {"force": True})
            assert forced.json()["flowise"]["endpoint"] == second["endpoint"]
        async with whole_service(database_dsn, worker=True) as http:
            ended = await until(lambda: at_rest(http, session), "the session ends")
            assert (ended["status"], ended["error"]["code"]) == ("error", "server_changed")
            moved = await http.put("/connections/flowise", json=first | {"force": True})
            assert moved.status_code == 200
            # Now the other one is said to be the same.
            assert (await http.put("/connections/flowise", json=second | {"same_server": True})).status_code == 200
            await http.post(f"/sessions/{session}/retry")
            asks = await until(lambda: at_rest(http, session), "the session asks")
            assert (asks["status"], asks["error"]) == ("pending_interrupt", None)
        assert other.created == 0


async def test_a_session_that_begins_while_another_flowise_is_tried_is_not_left_behind(
    database_dsn: str, server: FakeFlowise, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
    tried, begun = asyncio.Event(), asyncio.Event()
    list_chatflows = FlowiseClient.list_chatflows
    with FakeFlowise(api_key=FLOWISE_KEY) as other:

        async def slowly(self: FlowiseClient, **options: Any) -> Any:
            if str(other.port) in self.endpoint:
                tried.set()
                await begun.wait()
            return await list_chatflows(self, **options)

        monkeypatch.setattr(FlowiseClient, "list_chatflows", slowly)
        async with whole_service(database_dsn) as http:
            await http.put("/connections/flowise", json=first)
            second = {"endpoint": f"http://127.0.0.1:{other.port}", "api_key": FLOWISE_KEY}
            change = asyncio.create_task(http.put("/connections/flowise", json=second))
            await tried.wait()
            started = await http.post("/sessions?wait=0", json={"requirement": "A support chatbot"})
            assert started.status_code == 202
            begun.set()
            refused = await change
            assert (refused.status_code, refused.json()["code"]) == (409, "sessions_open")
            assert (await http.get("/connections")).json()["flowise"]["endpoint"] == first["endpoint"]


async def test_a_plan_that_was_approved_for_one_server_is_not_written_to_another(
    database_dsn: str, server: FakeFlowise
) -> None:
    first = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
    made = server.created
    with FakeFlowise(api_key=FLOWISE_KEY) as other:
        second = {"endpoint": f"http://127.0.0.1:{other.port}", "api_key": FLOWISE_KEY}
        async with whole_service(database_dsn) as http, whole_service(database_dsn, worker=True) as working:
            await http.put("/connections/flowise", json=first)
            view = (await http.post("/sessions", json={"design": ASSISTANT})).json()
            assert view["interrupt"]["type"] == "plan_approval", view
            path = f"/sessions/{view['thread_id']}"
            moved = await working.put("/connections/flowise", json=second | {"force": True})
            assert moved.json()["flowise"]["endpoint"] == second["endpoint"]
            # The process that is asked has not looked since.
            answer = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": "approve"}}
            await http.post(f"{path}/resume?wait=0", json=answer)
            ended = await until(lambda: at_rest(http, view["thread_id"]), "the session ends")
            assert (ended["status"], ended["error"]["code"]) == ("error", "server_changed")
            await http.put("/connections/flowise", json=first | {"force": True})
            await http.post(f"{path}/retry")
            await until(lambda: at_rest(http, view["thread_id"]), "the session goes on where it was approved")
        assert (server.created > made, other.created, other.flows) == (True, 0, {})


@pytest.mark.parametrize(
    "body",
    [
        {"endpoint": "http://127.0.0.1:9\n.evil.example"},
        {"endpoint": "file:///etc/passwd"},
        {"endpoint": "http://[::1"},
        {"endpoint": "http://127.0.0.1:99999"},
        {"endpoint": f"http://{'a' * 70_000}.example"},
        {"endpoint": "http://127.0.0.1:9", "api_key": "a\r\nX-Owner: other"},
        {"endpoint": "http://127.0.0.1:9", "api_key": "\u4e2d\u6587"},
        {"endpoint": "http://127.0.0.1:9", "api_key": "k" * 70_000},
        {"endpoint": "http://127.0.0.1:9", "formerly": ["http://127.0.0.1:9"]},
        {"endpoint": ["http://127.0.0.1:9"]},
    ],
    ids=str,
)
async def test_a_hostile_connection_is_refused_by_its_kind_and_nothing_is_kept(
    database_dsn: str, database: Database, body: dict[str, Any]
) -> None:
    async with service(database_dsn, database) as http:
        refused = await http.put("/connections/flowise", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), refused.text[:300]
        assert (await http.get("/connections")).json()["flowise"]["source"] == "none"
        assert "connection.store" not in (await http.get("/audit")).text


async def at_rest(http: httpx2.AsyncClient, session: str) -> dict[str, Any] | None:
    view = (await http.get(f"/sessions/{session}")).json()
    return None if view["status"] == "in_progress" else view


async def test_doctor_looks_at_what_was_connected(
    database_dsn: str,
    database: Database,
    server: FakeFlowise,
    standin: ModelStandIn,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def lines(secrets_key: str) -> dict[str, dict[str, Any]]:
        of = DatabaseSettings(dsn=SecretStr(database_dsn), secrets_key=SecretStr(secrets_key))
        await examine(settings(database=of), as_json=True)
        return {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}

    async with running_engine(database_dsn):
        await (await connected(database, server, standin)).aclose()
    said = await lines(FIRST)
    assert f"http://127.0.0.1:{server.port}" in said["Flowise 'default'"]["text"]
    assert said["Reasoning"]["text"].startswith("openai answers with gpt-x, ")
    said = await lines(SECOND)
    assert [said[name]["code"] for name in ("Flowise 'default'", "Reasoning")] == ["connection_unreadable"] * 2


async def test_a_run_uses_what_was_stored_after_its_process_started(
    database_dsn: str, database: Database, server: FakeFlowise, standin: ModelStandIn
) -> None:
    of_worker, elsewhere = Connections(settings(), database), Connections(settings(), database)
    async with running_engine(database_dsn, connections=of_worker) as engine:
        assert of_worker.reasoning.engine == "deterministic"
        body = module.ConnectFlowise.model_validate(
            {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
        )
        await elsewhere.connect_flowise(body)
        model = {"engine": "openai", "base_url": standin.base_url_openai, "api_key": MODEL_KEY, "model": "gpt-x"}
        await elsewhere.connect_model(module.ConnectModel.model_validate(model))
        assert of_worker.reasoning.engine == "deterministic"
        view = await engine.service.start(script("work:a", "end:accepted"))
        await engine.service.wait(view.thread_id, 20)
        assert (of_worker.reasoning.engine, of_worker.reasoning.general_model) == ("openai", "gpt-x")
        assert of_worker.instances.endpoint() == f"http://127.0.0.1:{server.port}"
        assert type(of_worker.reasoner).__name__ == "PhasedReasoner"
    await of_worker.aclose()
    await elsewhere.aclose()
    assert {request.api_key for request in standin.requests} == {MODEL_KEY}
    assert MODEL_KEY not in await stored_text(database_dsn)


async def test_a_model_that_refuses_its_key_is_not_kept(
    database_dsn: str, database: Database, standin: ModelStandIn
) -> None:
    standin.script(lambda request: True, StandInFailure("status", status=401))
    async with service(database_dsn, database) as http:
        body = {"engine": "openai", "base_url": standin.base_url_openai, "api_key": MODEL_KEY}
        refused = await http.put("/connections/model", json=body)
        assert (refused.status_code, refused.json()["code"]) == (502, "model_auth")
        assert refused.json()["texts"]["hint"]["code"] == "error.wrong_model_key"
        assert MODEL_KEY not in refused.text
        assert len(standin.requests) == 1
        without = await http.put("/connections/model", json={"engine": "claude"})
        assert (without.status_code, without.json()["code"]) == (422, "invalid_input")
        assert (await http.get("/connections")).json()["model"]["source"] == "none"
        assert (await http.get("/info")).json()["reasoning"]["engine"] == "deterministic"


async def test_a_connected_model_is_checked_at_once(
    database_dsn: str, database: Database, standin: ModelStandIn
) -> None:
    standin.script(lambda request: bool(request.tools), StandInFailure.http(422, "no idea what you mean"))
    standin.script("The first word is", Reply(json={"first": "larch", "last": "heron"}))
    standin.script(lambda request: bool(request.json_schema), Reply(json={"first": "a", "last": "z"}))
    async with service(database_dsn, database) as http:
        body = {"engine": "openai", "base_url": standin.base_url_openai, "api_key": MODEL_KEY, "model": "gpt-x"}
        stored = await http.put("/connections/model", json=body)
        assert (stored.status_code, stored.json()["model"]["source"]) == (200, "stored"), stored.text
        assert len(standin.requests) <= 5
        [model] = (await http.get("/info")).json()["models"]
    assert (model["checked"]["schema_held"], model["checked"]["reads_whole_prompt"]) == (True, True)
    assert "interrupt.lost_tools" in [one["code"] for one in model["texts"].values()]


async def test_a_check_without_a_result_keeps_no_model_from_being_connected(
    database_dsn: str, database: Database, standin: ModelStandIn
) -> None:
    standin.script("Answer with", StandInFailure.http(403, "not this"))
    async with service(database_dsn, database) as http:
        body = {"engine": "openai", "base_url": standin.base_url_openai, "api_key": MODEL_KEY, "model": "gpt-x"}
        stored = await http.put("/connections/model", json=body)
        assert (stored.status_code, stored.json()["model"]["source"]) == (200, "stored"), stored.text
        assert (await http.get("/info")).json()["models"][0]["checked"] is None
    assert len(standin.requests) == 2


async def test_the_environment_comes_first_and_without_a_secrets_key_nothing_is_kept(
    database_dsn: str, database: Database, server: FakeFlowise
) -> None:
    body = {"endpoint": f"http://127.0.0.1:{server.port}", "api_key": FLOWISE_KEY}
    async with service(database_dsn, database, secrets_key=None) as http:
        refused = await http.put("/connections/flowise", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "connection_not_storable")
        assert "SECRETS_KEY" in refused.json()["hint"]
    async with service(database_dsn, database) as http:
        assert (await http.put("/connections/flowise", json=body)).status_code == 200
    groups = {
        "flowise": FlowiseSettings.model_validate({"FLOWISE_API_ENDPOINT": "http://127.0.0.1:9"}),
        "reasoning": ReasoningSettings(engine_choice="deterministic"),
    }
    async with service(database_dsn, database, **groups) as http:
        view = (await http.get("/connections")).json()
        assert (view["flowise"]["source"], view["flowise"]["endpoint"]) == ("environment", "http://127.0.0.1:9")
        assert view["model"]["source"] == "environment"
        for path, wanted in (("flowise", body), ("model", {"engine": "claude", "api_key": MODEL_KEY})):
            refused = await http.put(f"/connections/{path}", json=wanted)
            assert (refused.status_code, refused.json()["code"]) == (409, "connection_not_storable"), path


async def test_only_admin_connects(database_dsn: str, database: Database) -> None:
    async with service(database_dsn, database) as http:
        key = (await http.post("/keys", json={"name": "Grace", "scopes": ["build", "approve"]})).json()["key"]
        mine = {"Authorization": f"Bearer {key}"}
        assert (await http.get("/connections", headers=mine)).status_code == 200
        for method, path in (("PUT", "flowise"), ("PUT", "model"), ("DELETE", "flowise"), ("DELETE", "model")):
            body = {"json": {"endpoint": "http://127.0.0.1:9", "engine": "openai"}} if method == "PUT" else {}
            refused = await http.request(method, f"/connections/{path}", headers=mine, **body)
            assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), (method, path)


@pytest.mark.parametrize("key", ["short", "!" * 44, f"{FIRST},short"])
def test_a_secrets_key_that_is_not_one_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("SECRETS_KEY", key)
    with pytest.raises(ConfigurationError) as raised:
        load_settings()
    assert "SECRETS_KEY must be" in str(raised.value)
    assert key not in str(raised.value)


async def test_info_tells_what_is_lost_with_the_model_and_asks_no_provider(
    database_dsn: str, database: Database, standin: ModelStandIn
) -> None:
    own: dict[str, Any] = {
        "OPENAI_BASE_URL": standin.base_url_openai,
        "OPENAI_API_KEY": MODEL_KEY,
        "REASONING_MODEL": "a-model-of-our-own",
    }
    async with service(database_dsn, database, reasoning=ReasoningSettings(**own)) as http:
        about = await http.get("/info")
    [model] = about.json()["models"]
    assert (model["model"], model["checked"], [code["code"] for code in model["texts"].values()]) == (
        "a-model-of-our-own",
        None,
        ["model.unpriced"],
    )
    assert (standin.requests, MODEL_KEY in about.text, standin.base_url_openai in about.text) == ([], False, False)
