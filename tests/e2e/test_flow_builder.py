"""The shipped agentflow that builds flows from inside Flowise: its tools are this service's, called by the real
Flowise."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, SharedService, http_of, ok

pytestmark = pytest.mark.nightly

REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"
SAID = "Please have a support bot with memory built, says the heron"


@pytest.fixture
def set_variable(flowise: FlowiseAccess) -> Iterator[Any]:
    """Sets variables of Flowise until the end of the test."""
    with httpx2.Client(
        base_url=f"{flowise.endpoint}/api/v1",
        headers={"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"},
        trust_env=False,
    ) as http:
        made: list[str] = []

        def set_one(name: str, value: str) -> None:
            answer = http.post("/variables", json={"name": name, "value": value, "type": "static"})
            made.append(answer.raise_for_status().json()["id"])

        yield set_one
        for one in made:
            http.delete(f"/variables/{one}").raise_for_status()


async def test_the_shipped_agentflow_starts_a_session_over_mcp_and_shows_its_plan(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, set_variable: Any
) -> None:
    service = await shared_service(**LOCKED)
    set_variable("flowiseDevAgentUrl", service.url)
    set_variable("flowiseDevAgentKey", KEY)
    (openai,) = [one.id for one in await flowise_client.list_credentials() if one.credential_name == "openAIApi"][:1]
    body = json.loads((files("flowise_dev_agent") / "flows" / "build_flows.json").read_text("utf-8"))
    bound = {"op_type": "BindCredential", "node_id": "agentAgentflow_0", "credential_id": openai}
    body["ops"].append({**bound, "credential_type": "openAIApi", "path": "agentModelConfig"})
    standin.script(
        SAID,
        Reply(tool_calls=(StandInToolCall("start_session", {"requirement": REQUIREMENT, "wait_secs": 60}),)),
        times=1,
    )
    async with http_of(service, KEY) as http:
        made = await ok(await http.post("/flows/import?wait=60", json=body))
        before = {row["thread_id"] for row in (await ok(await http.get("/sessions?limit=50")))["sessions"]}

        answered = await flowise_client.predict(made["chatflow_id"], SAID, session_id="builder")

        rows = [
            row
            for row in (await ok(await http.get("/sessions?limit=50")))["sessions"]
            if row["thread_id"] not in before
        ]
        ours = [row for row in rows if row["requirement"] == REQUIREMENT]
        assert [row["status"] for row in ours] == ["pending_interrupt"], answered
        audit = (await ok(await http.get("/audit", params={"session": ours[0]["thread_id"]})))["rows"]
        assert audit[-1]["door"] == "mcp"
        assert ours[0]["thread_id"] in answered.answer
        await http.post(f"/sessions/{ours[0]['thread_id']}/cancel")
        await flowise_client.delete_chatflow(made["chatflow_id"])
