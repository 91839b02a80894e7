"""The examples of OpenAPI are what the service answered to a person's first day with it.

`RECORD_EXAMPLES=1 pytest tests/e2e/test_examples.py` writes them again.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx2
import pytest

from flowise_dev_agent import api
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.persistence import Database
from tests.e2e.people import KEY, LOCKED, MakeService, http_of, make_flow, nodes_of
from tests.e2e.service import ServiceProcess, free_port
from tests.fixtures.database import superuser
from tests.fixtures.oidc import CLIENT, SECRET, OidcProvider
from tests.fixtures.receiver import running_receiver
from tests.runtime_world import until

pytestmark = pytest.mark.nightly

FILE: Final = Path(api.__file__).with_name("examples.json")
SECRETS_KEY: Final = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_HEX: Final = re.compile(r"\b[0-9a-f]{32,64}\b")
_PORT: Final = re.compile(r"((?<=127\.0\.0\.1:)|(?<=127\.0\.0\.1%3A))\d+")
_LINK: Final = re.compile(r"(?<=#/shared/)[\w.-]+")
_KEY: Final = re.compile(r"fda_[A-Za-z0-9_-]{43}")
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9+/]{86}==")
_LONG, _MANY = 300, 2
#: Objects of any shape, of which the first members are enough.
_FREE: Final = {"properties", "$defs"}


class Recorder:
    """Asks operations by their ids, and keeps what each was asked and answered first."""

    def __init__(self, http: httpx2.AsyncClient, document: Mapping[str, Any]) -> None:
        self.http = http
        self.examples: dict[str, Any] = {}
        self.operations = {
            one["operationId"]: (method, path, one)
            for path, item in document["paths"].items()
            for method, one in item.items()
        }

    async def ask(self, name: str, body: Any = None, /, *, files: Any = None, headers: Any = None, **given: Any) -> Any:
        """The body of the answer; `given` are the parameters in path and query."""
        method, path, operation = self.operations[name]
        places = {one["name"]: one["in"] for one in operation.get("parameters", [])}
        query = {key: value for key, value in given.items() if places[key] == "query"}
        address = path.format(**{key: value for key, value in given.items() if places[key] == "path"})
        sent: dict[str, Any] = {"params": query, "headers": headers}
        if body is not None:
            sent["json"] = body
        if files is not None:
            sent["files"] = files
        status, answer = await self._answered(method, address, sent)
        example: dict[str, Any] = {"parameters": given, "status": status}
        if body is not None or files is not None:
            example["body"] = body if files is None else {"file": "Opening hours: 9 to 5"}
        if answer is not None:
            example["response"] = shortened(answer)
        self.examples.setdefault(name, example)
        return answer

    async def _answered(self, method: str, address: str, sent: dict[str, Any]) -> tuple[int, Any]:
        async with self.http.stream(method.upper(), address, **sent) as response:
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/event-stream"):
                # The first frame says enough; the service goes on without a reader.
                frame = await anext(frame async for frame in httpx2.EventSource(response) if frame.data)
                return response.status_code, {"event": frame.event, "id": frame.id, "data": frame.data}
            await response.aread()
            if not response.content:
                return response.status_code, None
            is_json = "json" in kind and "jsonl" not in kind
            return response.status_code, response.json() if is_json else response.text[:_LONG]


class Names:
    """Ids, times and hashes that are the same in each recording."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        match value:
            case dict():
                return {self.of(key): self.of(item) for key, item in value.items()}
            case list():
                return [self.of(item) for item in value]
            case str():
                text = _UUID.sub(self._id, value)
                text = _KEY.sub("fda_" + "x" * 43, _TIME.sub("2026-01-02T03:04:05Z", text))
                text = _SIGNATURE.sub("x" * 86 + "==", _LINK.sub("x" * 43, text))
                return _PORT.sub("3000", _HEX.sub(lambda found: "0a" * (len(found[0]) // 2), text))
            case _:
                return value

    def _id(self, found: re.Match[str]) -> str:
        return self._known.setdefault(found[0], f"3a01{len(self._known):04}-0000-4000-8000-000000000000")


def shortened(value: Any) -> Any:
    """The beginning of what is long."""
    match value:
        case dict():
            few = {key: item[:_LONG] for key, item in value.items() if key == "flow_data" and isinstance(item, str)}
            few |= {
                key: dict(list(item.items())[:_MANY])
                for key, item in value.items()
                if key in _FREE and isinstance(item, dict)
            }
            return {key: shortened(item) for key, item in (value | few).items()}
        case list():
            return [shortened(item) for item in value[:_MANY]]
        case str() if len(value) > _LONG and not value.startswith("{"):
            return value[: _LONG - 3] + "..."
        case _:
            return value


def gone(kept: Mapping[str, Any], made: Mapping[str, Any]) -> set[str]:
    """The members of an answer that a program knows from the example and would no longer find. New ones may come."""
    before, now = kept.get("response"), made.get("response")
    if not isinstance(before, dict) or not isinstance(now, dict):
        return set() if type(before) is type(now) else {"everything"}
    return before.keys() - now.keys()


@pytest.fixture
async def left_as_it_was(flowise: FlowiseAccess, flowise_client: FlowiseClient) -> AsyncIterator[None]:
    """What the test makes on the Flowise, which others use, is deleted."""
    flows = {row.id async for row in flowise_client.iter_chatflows()}
    credentials = {row.id for row in await flowise_client.list_credentials()}
    yield
    for row in [row async for row in flowise_client.iter_chatflows() if row.id not in flows]:
        await flowise_client.delete_chatflow(row.id)
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{flowise.endpoint}/api/v1", headers=headers, trust_env=False) as http:
        for row in await flowise_client.list_credentials():
            if row.id not in credentials:
                (await http.delete(f"/credentials/{row.id}")).raise_for_status()


@pytest.fixture
async def store(flowise_client: FlowiseClient) -> AsyncIterator[str]:
    """A document store, of no flow."""
    made = await flowise_client.create_document_store("Handbook", "What people ask about")
    yield made.id
    await flowise_client.delete_document_store(made.id)


async def test_every_operation_has_an_example_that_the_service_gave(
    make_service: MakeService,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    store: str,
    database: Database,
    database_dsn: str,
    tmp_path: Path,
    left_as_it_was: None,
) -> None:
    row = await make_flow(flowise_client, name="Front desk")
    service = make_service(
        **LOCKED,
        SECRETS_KEY=SECRETS_KEY,
        RATE_LIMIT_SESSIONS_PER_MIN="0",
        RATE_LIMIT_CHAT_PER_MIN="0",
        AGENT_WAIT_SECS="60",
    )
    await service.start()
    with running_receiver() as receiver:
        async with http_of(service, KEY) as http:
            document = (await http.get("/openapi.json")).json()
            recorder = Recorder(http, document)
            model = next(name for name in nodes_of(row) if name.startswith("chatOpenAI"))
            await the_first_day(recorder, row.id, model, receiver, store, database)
    with OidcProvider() as provider:
        environment = {
            "AGENT_API_KEY": KEY,
            "POSTGRES_DSN": database_dsn,
            "SECRETS_KEY": SECRETS_KEY,
            "REASONING_ENGINE": "",
            "OIDC_ISSUER": provider.endpoint,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET": SECRET,
            "OIDC_GROUPS": "builders=build",
        }
        port = free_port()
        environment |= {"AGENT_API_PORT": str(port), "PUBLIC_BASE_URL": f"http://127.0.0.1:{port}"}
        service = ServiceProcess(environment, tmp_path, "serve", "--no-worker")
        try:
            await service.start()
            await at_the_page(recorder, service, flowise, standin)
        finally:
            await service.stop()
    names = Names()
    made = {name: names.of(recorder.examples[name]) for name in sorted(recorder.examples)}
    assert sorted(made) == sorted(recorder.operations)
    assert [name for name, one in made.items() if one["status"] >= 400] == []
    if os.environ.get("RECORD_EXAMPLES"):
        FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    differs = {
        name: (kept.get(name), one)
        for name, one in made.items()
        if name not in kept or kept[name]["status"] != one["status"] or gone(kept[name], one)
    }
    assert differs == {}, "run with RECORD_EXAMPLES=1"


async def at_the_page(
    recorder: Recorder, service: ServiceProcess, flowise: FlowiseAccess, standin: ModelStandIn
) -> None:
    """A service without connections, and people who sign in."""
    async with http_of(service, KEY) as recorder.http:
        for name, body in (
            ("connect_flowise", {"endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}),
            ("connect_model", {"engine": "openai", "base_url": standin.base_url_openai, "api_key": "a-key"}),
        ):
            await recorder.ask(name, body)
            recorder.examples[name]["body"] = body | {"api_key": "a-key"}
        await recorder.ask("disconnect_flowise", force=True)
        await recorder.ask("disconnect_model")
    async with http_of(service) as recorder.http:
        at_provider = (await recorder.http.get("/auth/sign-in")).headers["location"]
        async with httpx2.AsyncClient() as elsewhere:
            back = (await elsewhere.get(at_provider)).headers["location"]
        assert (await recorder.http.get(back)).status_code == 303
        await recorder.ask("sign_out", headers={"Origin": service.url})


async def the_first_day(
    recorder: Recorder, flow: str, model: str, receiver: Any, store: str, database: Database
) -> None:
    """Each operation once: a session from its start to its end, then what is done with flows, then the service."""
    ask = recorder.ask
    file = {"file": ("hours.txt", b"Opening hours: 9 to 5", "text/plain")}
    attachment = (await ask("add_attachment", files=file))["id"]
    requirement = "Build a support chatbot with GPT-5.4-mini and memory"
    asked = {"requirement": requirement, "attachments": [], "webhook_url": receiver.url()}
    session = (await ask("start_session", asked))["thread_id"]
    of_session = {"session_id": session}
    for name in ("get_session", "get_session_design", "get_session_preview"):
        await ask(name, **of_session)
    await ask("rename_session", {"session_name": "Support bot"}, **of_session)
    interrupt = recorder.examples["start_session"]["response"]["interrupt"]["id"]
    view = await ask("resume_session", {"interrupt_id": interrupt, "answer": {"action": "approve"}}, **of_session)
    while view["status"] == "pending_interrupt":
        view = await ask("resume_session", {"response": "accept"}, **of_session)
    assert view["outcome"] == "accepted", view
    receiver.wait_for(2)
    delivery = (await ask("list_session_deliveries", **of_session))["deliveries"][0]["id"]
    await ask("replay_delivery", **of_session, delivery_id=delivery)
    streamed = await ask("start_session_stream", {"requirement": requirement})
    other = json.loads(streamed["data"])["session_id"]
    third = (await recorder.http.post("/sessions", json={"requirement": requirement})).json()["thread_id"]
    await ask("resume_session_stream", {"response": "yes"}, session_id=third)
    await failed(database, other)
    await ask("retry_session", session_id=other)
    await ask("cancel_session", session_id=other)
    await ask("process_conversation", {"message": requirement, "origin": "create"})

    of_flow = {"chatflow_id": flow}
    ops = [{"op_type": "SetParam", "node_id": model, "param_name": "temperature", "value": "0.1"}]
    applied = await ask("apply_to_flow", {"ops": ops}, **of_flow)
    await ask("get_flow_reach", **of_flow)
    exported = await ask("export_flow", **of_flow)
    node = {"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}
    await ask("read_flows_of_a_file", {"text": '{"nodes": [], "edges": []}'})
    await ask("import_flow", {"name": "Copy", "ops": [node], "dry_run": True})
    await ask("promote_flow", {"target": "default", "dry_run": True}, **of_flow)
    await ask("preview_flow", {"ops": [node]})
    await ask("validate_flow", {"flow_data": '{"nodes": [], "edges": []}'})
    await ask("put_bookmark", {"note": "Before the fair"}, **of_flow, version="v1")
    await ask("delete_bookmark", **of_flow, version="v1")
    await ask("compare_flow_versions", **of_flow, before="v1")
    await ask("restore_version", {}, **of_flow, version="v1", wait=30)
    await ask("mark_test", {"good": True, "contains": ["Hello"]}, **of_session, number=1)
    await ask("put_guard", {"every_hours": 24, "usd_per_month": 5}, **of_flow)
    await ask("get_guard", **of_flow)
    await ask("delete_guard", **of_flow)
    await ask("put_test_set", {"text": "- turns: [Hello]\n", "format": "yaml"}, **of_flow)
    test = await ask("start_flow_test", {"tests": [{"id": "t1", "turns": ["Hello"]}]}, **of_flow)
    tested = await until(lambda: done_test(recorder.http, test["id"]), "the test is done")
    await ask("start_flow_text_test", {"flow_data": exported["flow_data"], "tests": [{"id": "t1", "turns": ["Hello"]}]})
    chat = await ask("ask_flow", {"question": "Hello"}, **of_flow)
    await ask("delete_chat", **of_flow, chat_id=chat["chat_id"])
    await ask("rollback_session", session_id=applied["session_id"])
    link = (await ask("create_share", {"subject": "flow", "id": flow}))["link"]
    opened = {"Authorization": f"Share {link.rpartition('/')[2]}"}
    version = (await ask("get_shared", headers=opened))["versions"][0]["name"]
    await ask("get_shared_version", headers=opened, version=version)
    shares = (await ask("list_shares"))["shares"]
    await ask("revoke_share", share_id=shares[0]["id"])
    await ask("refresh_document_store", store_id=store)

    await ask("post_credential", {"name": "support", "type": "openAIApi", "fields": {"openAIApiKey": "a-key"}})
    await ask("refresh_knowledge", instance_id="default")
    await ask("list_options", {"param": "modelName"}, name="chatOpenAI")
    await ask("list_icons", names=["bufferMemory", "llmAgentflow"])
    await ask("list_credentials")
    pattern = {"requirement": "a chatbot for support", "name": "Support", "ops": [node]}
    memory = (await ask("import_patterns", {"patterns": [pattern]}))["imported"][0]
    note = (await ask("add_memory", {"text": "Our bots answer in the language of the question."}))["memory_id"]
    await ask("list_memories")
    await ask("delete_memory", memory_id=note)
    key = (await ask("create_key", {"name": "ci", "scopes": ["build"], "owner": "support"}))["id"]
    await ask("rotate_key", {"keep_old_secs": 3600}, key_id=key)
    await ask("list_keys")
    await ask("revoke_key", key_id=key)
    await ask("erase_audit_words", session=other)

    await ask("list_session_artifacts", **of_session)
    kinds = {one["artifact_type"]: one for one in (await recorder.http.get(artifacts_of(session))).json()["items"]}
    kept = kinds["memory"]
    trace = next((one["trace_sha256"] for one in view["result"]["tests"] if one["trace_sha256"]), "0" * 64)
    values: dict[str, Any] = {
        **of_session,
        **of_flow,
        "plan_id": session,
        "milestone_id": session,
        "flowchart_id": session,
        "memory_id": memory,
        "flowchart_node_id": kinds["decision"]["flowchart_node_id"],
        "label": "v1.0",
        "sha256": trace,
        "test_id": test["id"],
        "attachment_id": attachment,
        "name": "chatOpenAI",
        "query": "memory",
        "session": session,
        "version": "v1",
    }
    kind_of = {"get_plan_artifact": "plan", "get_milestone_artifact": "milestone", "get_decision_artifact": "decision"}
    for name, (method, _, operation) in recorder.operations.items():
        if name in recorder.examples or method != "get":
            continue
        needed = {one["name"] for one in operation.get("parameters", []) if one["required"]} - {"artifact_id"}
        given = {one: values[one] for one in needed}
        if "artifact_id" in operation["description"] or "{artifact_id}" in recorder.operations[name][1]:
            given["artifact_id"] = kinds.get(kind_of.get(name, "plan"), kinds["plan"])["id"]
        if "test_id" in given and "sha256" in given:
            given["sha256"] = tested["trials"][0]["trace_sha256"]
        if name == "get_memory_artifact":
            given |= {"memory_id": kept["memory_id"], "artifact_id": kept["id"]}
        await ask(name, **given)
    await ask("delete_attachment", attachment_id=attachment)
    await ask("delete_pattern", pattern_id=memory)
    await ask("delete_session", session_id=str(UUID(other)))


async def done_test(http: httpx2.AsyncClient, test_id: str) -> dict[str, Any] | None:
    view = (await http.get(f"/tests/{test_id}")).json()
    return view if view["status"] == "done" else None


async def failed(database: Database, session: str) -> None:
    """The session asks, and then a step of it fails."""
    async with superuser(database) as connection:
        await connection.execute(
            "UPDATE sessions SET status = 'failed', interrupt = NULL, interrupt_id = NULL, error = %s WHERE id = %s",
            (json.dumps({"code": "flowise_timeout", "detail": "Flowise did not answer."}), session),
        )


def artifacts_of(session: str) -> str:
    return f"/sessions/{session}/artifacts?limit=200"
