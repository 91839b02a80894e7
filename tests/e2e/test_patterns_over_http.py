"""The second similar form starts from the first flow, and its flow answers on a real Flowise just the same."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, http_of
from tests.support.sessions import ASSISTANT

pytestmark = pytest.mark.nightly


@pytest.fixture
async def http(shared_service: SharedService) -> AsyncIterator[httpx2.AsyncClient]:
    async with http_of(await shared_service()) as http:
        yield http


async def build(http: httpx2.AsyncClient, **form: Any) -> tuple[dict[str, Any], str]:
    """Approve and accept; (the flow's row as the session tells it, the stream of its events)."""
    view = (await http.post("/sessions?wait=60", json={"design": {**ASSISTANT, **form}})).json()
    for given in ({"action": "approve"}, {"action": "accept"}):
        body = {"interrupt_id": view["interrupt"]["id"], "answer": given}
        view = (await http.post(f"/sessions/{view['thread_id']}/resume?wait=90", json=body)).json()
    assert (view["status"], view["outcome"]) == ("completed", "accepted"), view
    events = await http.get(f"/sessions/{view['thread_id']}/stream")
    return view, events.text


async def test_an_accepted_flow_becomes_the_base_of_the_next_similar_one(
    http: httpx2.AsyncClient, flowise_client: FlowiseClient
) -> None:
    await build(http)
    listed = await http.get("/patterns")
    assert listed.status_code == 200, listed.text
    (pattern,) = listed.json()["patterns"]
    assert (pattern["category"], pattern["success_count"]) == ("conversational", 1)
    view, events = await build(http, memory=4, prompt=f"{ASSISTANT['prompt']} Be brief.")
    assert f"Start from pattern {pattern['id']}" in events
    assert '"pattern_used":true' in events.replace(" ", "")
    row = await flowise_client.get_chatflow(view["chatflow_id"])
    assert "bufferWindowMemory_0" in row.flow_data
    assert "bufferMemory_0" not in row.flow_data
    assert (await flowise_client.predict(row.id, "My chain is loose", session_id="p")).answer.strip()
    counts = [item["success_count"] for item in (await http.get("/patterns")).json()["patterns"]]
    assert sorted(counts) == [1, 2]
