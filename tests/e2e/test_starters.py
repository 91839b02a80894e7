"""Each starter, with what it needs filled in, becomes a flow that answers on a real Flowise."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import psycopg
import pytest

from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.document_stores import LoaderSpec, VectorSpec
from flowise_dev_agent.flowise.models import HumanAnswer
from flowise_dev_agent.forms.starters import choose, needs_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.schemas.designs import DesignForm
from tests.e2e.people import SharedService, answer, http_of, ok
from tests.fixtures.receiver import running_receiver

pytestmark = pytest.mark.nightly

TEXT = "The museum opens at nine. Returns are taken within thirty days."
#: Sentence, starter, and what fills in its needs.
CHATS: list[tuple[str, str]] = [
    ("Ein Assistent für das Museum {Berlin}", "assistant"),
    ("Un bot qui connaît notre politique de retour", "text"),
    ("Un bot que responde con nuestra página web", "website"),
    ("Answer from a document store", "store"),
    ("Un agente con calculadora", "tools"),
    ("Traduire mes lettres en anglais", "rewrite"),
    ("Angaben herauslesen", "extract"),
]


async def built(
    service_http: Any, form: DesignForm, questions: list[str] | None = None, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The session at its review, and its test results by question."""
    body = {"design": form.model_dump(mode="json"), "test_questions": questions, **more}
    planned = await ok(await service_http.post("/sessions?wait=60", json=body))
    assert planned["interrupt"]["type"] == "plan_approval", planned["interrupt"]
    assert planned["interrupt"]["reason"] != "declined", planned["interrupt"]["message"]
    tested = await answer(service_http, planned, action="approve")
    assert tested["interrupt"], tested
    assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]
    return tested, {test["question"]: test for test in tested["interrupt"]["data"]["tests"]}


def completed(form: DesignForm, *steps: dict[str, Any], **parts: Any) -> DesignForm:
    """The form with these parts, and its calls with these."""
    changed = form.model_dump(mode="json") | parts
    for step, own in zip([one for one in changed["steps"] if one["kind"] == "call"], steps, strict=False):
        step |= own
    return DesignForm.model_validate(changed)


@pytest.mark.parametrize(("sentence", "starter"), CHATS)
async def test_a_starter_becomes_a_chatflow_that_answers(
    sentence: str,
    starter: str,
    shared_service: SharedService,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    catalogue: NodeStore,
    vectors: VectorSpec,
    stores_of_the_test: None,
) -> None:
    found = choose(sentence, catalogue)
    assert found.starter == starter
    service = await shared_service()
    async with http_of(service) as http:
        with a_page() as address:
            store = await a_store(flowise_client, vectors) if starter == "store" else ""
            needed: dict[str, dict[str, Any]] = {
                "text": {"sources": [{"kind": "text", "text": TEXT}]},
                "website": {"sources": [{"kind": "web", "url": address}]},
                "store": {"sources": [{"kind": "store", "store": store}]},
                "extract": {"fields": [{"name": "sender"}, {"name": "amount", "type": "number"}]},
            }
            form = completed(found.form, **needed.get(starter, {}))
            assert needs_of(starter, form) == ()
            tested, tests = await built(http, form, ["When does the museum open?"])
            (test,) = tests.values()
            assert test["passed"] is True, test
            # The person's sentence reached the model, its braces as brackets.
            said = sentence.replace("{", "(").replace("}", ")")
            asked = [one for one in standin.requests if said in one.prompt]
            assert asked, [one.prompt[:200] for one in standin.requests]
            if starter in needed and starter != "extract":
                assert "opens at nine" in asked[-1].prompt
        await answer(http, tested, action="rollback")


async def test_answers_come_from_a_file_that_goes_with_the_session(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn, catalogue: NodeStore
) -> None:
    found = choose("Answer questions from a CSV file", catalogue)
    assert (found.starter, found.needs) == ("file", ("attachments",))
    service = await shared_service()
    async with http_of(service) as http:
        file = ("hours.csv", "place,opens\nmuseum,at nine\nlibrary,at ten\n", "text/csv")
        stored = (await http.post("/attachments", files={"file": file})).json()
        tested, tests = await built(http, found.form, ["When does the museum open?"], attachments=[stored["id"]])
        assert all(test["passed"] for test in tests.values()), tests
        assert any("at nine" in one.prompt and found.form.prompt is not None for one in standin.requests)
        await answer(http, tested, action="rollback")


async def test_a_database_is_asked_by_the_agent(
    shared_service: SharedService,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    postgres_server: PostgresServer,
    catalogue: NodeStore,
) -> None:
    name = f"shop_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.create_database(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (total int)")
        connection.execute("INSERT INTO orders VALUES (40), (2)")
    parts = postgres_server.connection_parts(name)
    url = f"postgresql://{parts['user']}@localhost/{name}?host={parts['host']}"
    await flowise_client.create_credential(name="Shop", type_="PostgresUrl", fields={"postgresUrl": url})
    found = choose("Fragen an unsere Datenbank", catalogue)
    assert (found.starter, found.needs) == ("database", ())
    query = StandInToolCall("query", {"sql": "SELECT sum(total) AS total FROM orders"})
    standin.script(
        lambda request: bool(request.tools) and request.messages[-1].role != "tool", Reply(tool_calls=(query,))
    )
    service = await shared_service()
    async with http_of(service) as http:
        tested, tests = await built(http, found.form, ["Wie hoch ist die Summe?"])
        (test,) = tests.values()
        assert "42" in test["answer"], test
        await answer(http, tested, action="rollback")
    postgres_server.drop_database(name)


async def test_messages_are_sorted_and_each_branch_is_answered(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, catalogue: NodeStore
) -> None:
    found = choose("Nachrichten sortieren und beantworten", catalogue)
    assert (found.starter, found.needs) == ("sort", ())
    service = await shared_service()
    async with http_of(service) as http:
        tested, tests = await built(http, found.form)
        # The stand-in does not sort by meaning: what no message reached is asked with the branch's name.
        assert len(tests) >= 4
        assert all(test["passed"] for test in tests.values()), tests
        answered = {step.title for step in found.form.steps if step.kind == "answer" and any(
            step.prompt[:30] in one.prompt for one in standin.requests)}  # fmt: skip
        assert len(answered) == 4
        await answer(http, tested, action="rollback")


async def test_what_a_person_approves_is_sent(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, catalogue: NodeStore
) -> None:
    found = choose("Rédiger une réponse et demander mon approbation", catalogue)
    assert (found.starter, found.needs) == ("approve", ("steps.2.url",))
    service = await shared_service()
    async with http_of(service) as http:
        with running_receiver() as receiver:
            tested, _ = await built(http, completed(found.form, {"url": receiver.url("/send")}))
            receiver.received.clear()
            standin.script("Tu prépares quelque chose", Reply("Bonjour Ada"))
            id_, session = tested["chatflow_id"], str(uuid.uuid4())
            waits = await flowise_client.predict(id_, "Réponds à Ada", session_id=session)
            assert waits.action is not None
            at = waits.action["data"]["nodeId"]
            sent = await flowise_client.predict(
                id_, None, session_id=session, human=HumanAnswer(type="proceed", start_node_id=at)
            )
            assert [json.loads(one.body) for one in receiver.received] == [{"text": "Bonjour Ada"}]
            assert sent.answer.endswith("Bonjour Ada")
        await answer(http, tested, action="rollback")


async def test_data_is_fetched_and_reported(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, catalogue: NodeStore
) -> None:
    found = choose("Cada mañana un informe de las cotizaciones", catalogue)
    assert (found.starter, found.needs) == ("report", ("steps.0.url",))
    service = await shared_service()
    async with http_of(service) as http:
        with a_page() as address:
            form = completed(found.form, {"url": address})
            planned = await ok(await http.post("/sessions?wait=60", json={"design": form.model_dump(mode="json")}))
            # Nobody but its schedule can start it; the same steps are asked with a message.
            tested = await answer(http, planned, action="approve")
            assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]
            await answer(http, tested, action="rollback")
            tested, tests = await built(http, completed(form, start="chat", schedule=None), ["Redacta el informe."])
            assert all(test["passed"] for test in tests.values()), tests
            assert any(
                "opens at nine" in one.prompt and "Redactas un informe" in one.prompt for one in standin.requests
            )
        await answer(http, tested, action="rollback")


# --- What starters need --------------------------------------------------------------------------------------------


@contextmanager
def a_page() -> Iterator[str]:
    """The address of a page with the text."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f"<html><body><p>{TEXT}</p></body></html>".encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


async def a_store(client: FlowiseClient, vectors: VectorSpec) -> str:
    """The name of a document store that has the text."""
    name = f"Museum {uuid.uuid4().hex[:6]}"
    store = await client.create_document_store(name, "of a test")
    loader = LoaderSpec(
        id=str(uuid.uuid4()), loader_id="plainText", loader_name="Plain Text", loader_config={"text": TEXT}
    )
    await client.save_loader(store.id, loader)
    await client.process_loader(store.id, loader, timeout=30)
    await client.insert_vectors(store.id, vectors, timeout=30)
    return name
