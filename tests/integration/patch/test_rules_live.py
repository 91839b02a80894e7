"""Rules whose proof needs more than one question: a person's answer, and the server's own word on a schedule."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.patch import GraphIR, Schemas, compile_ops
from tests.fixtures.trial_flows import TRIAL_FLOWS

pytestmark = pytest.mark.nightly


class Server:
    """Stores trial flows and asks the server about them."""

    def __init__(self, http: httpx2.AsyncClient, access: FlowiseAccess, schemas: Schemas) -> None:
        self.http = http
        self._access = access
        self._schemas = schemas
        self.made: list[str] = []

    async def create(self, name: str) -> str:
        trial = next(flow for flow in TRIAL_FLOWS if flow.name == name)
        ops = trial.build(self._access.credentials)
        text = compile_ops(GraphIR.empty(), ops, self._schemas).flow_data
        body = {"name": name, "type": trial.kind, "flowData": text}
        answer = (await self.http.post("/chatflows", json=body)).raise_for_status()
        self.made.append(answer.json()["id"])
        return self.made[-1]


@pytest.fixture
async def server(flowise: FlowiseAccess, schemas: Schemas) -> AsyncIterator[Server]:
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    url = f"{flowise.endpoint}/api/v1"
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        server = Server(http, flowise, schemas)
        yield server
        for flow in server.made:
            await http.delete(f"/chatflows/{flow}")


@pytest.mark.parametrize(
    ("name", "answer"), [("the question after a person", ""), ("the question of the start after a person", "my order")]
)
async def test_the_question_is_empty_after_a_person_has_answered(name: str, answer: str, server: Server) -> None:
    flow, session = await server.create(name), str(uuid4())
    body = {"chatId": session, "overrideConfig": {"sessionId": session}}
    await server.http.post(f"/prediction/{flow}", json={**body, "question": "my order"})
    after = await server.http.post(f"/prediction/{flow}", json={**body, "humanInput": {"type": "proceed"}})
    assert after.json()["text"].strip() == answer


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a schedule", ""),
        ("a schedule of 9:05", "On Time must be in HH:mm format"),
        ("a schedule of 25:00", "out-of-range"),
        ("a schedule of 8", "Invalid day of week value: 8"),
        ("a schedule of monday", "Invalid day of week value: monday"),
    ],
)
async def test_a_schedule_that_the_server_cannot_read_never_runs(name: str, reason: str, server: Server) -> None:
    flow = await server.create(name)
    status = (await server.http.get(f"/chatflows/{flow}/schedule/status")).json()
    assert status["canEnable"] is (not reason)
    assert reason in status.get("reason", "")


@pytest.mark.parametrize(
    ("name", "with_it", "without_it"),
    [
        ("a field that a request may lack", "Order 42", "Order {{ $webhook.body.id }}"),
        ("a field that each request has", "Order 42", None),
    ],
    ids=["may lack", "has"],
)
async def test_a_field_of_a_webhook_stays_in_the_text_unless_it_is_required(
    name: str, with_it: str, without_it: str | None, server: Server
) -> None:
    flow = await server.create(name)
    answer = await server.http.post(f"/webhook/{flow}", json={"id": 42})
    assert answer.json()["text"] == with_it
    lacking = await server.http.post(f"/webhook/{flow}", json={})
    assert lacking.json().get("text") == without_it
