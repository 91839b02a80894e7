"""The chat entry on a real Flowise: several messages, from the sentence to the accepted chatflow."""

import json
from typing import Any

import httpx2

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, http_of
from tests.e2e.scripted import REQUIREMENT, SUPPORT, model_environment, script


async def said(http: httpx2.AsyncClient, message: str, **body: Any) -> list[dict[str, Any]]:
    response = await http.post("/process-conversation", json={"message": message, **body}, timeout=120)
    assert response.status_code == 200, response.text
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


async def test_a_chat_builds_a_chatflow_and_only_a_plain_yes_approves(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, {**SUPPORT, "plan": [SUPPORT["plan"], {**SUPPORT["plan"], "flow_name": "Parcel Desk"}]})
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        planned = await said(http, REQUIREMENT)
        session = planned[0]["session_id"]
        assert planned[-1]["response_type"] == "MESSAGE"
        assert "Conversation Chain" in planned[-1]["message"]
        changed = await said(http, "Yes, but call it Parcel Desk", session_id=session)
        assert "Parcel Desk" in changed[-1]["message"]
        assert "approve" in changed[-1]["message"]
        assert (await http.get(f"/sessions/{session}")).json()["chatflow_id"] is None
        built = await said(http, "yes", session_id=session)
        history = built[0]["status_change"]["stage_state"]["history"]
        assert [pair["user"] for pair in history][1] == "Yes, but call it Parcel Desk"
        stages = [frame["status_change"]["current_stage"] for frame in built if "status_change" in frame]
        assert stages == ["clarification", "workflow_generation", "conversion_generation"]
        assert "passed" in built[-1]["message"]
        done = await said(http, "accept", session_id=session)
    assert [frame["response_type"] for frame in done[-2:]] == ["WORKFLOW", "STATUS_CHANGE"]
    workflow = json.loads(done[-2]["workflow"])
    assert workflow["name"] == "Parcel Desk"
    assert "chatOpenAI" in {node["data"]["name"] for node in workflow["flowData"]["nodes"]}
    assert done[-1]["status_change"]["stage_state"]["chatflow_id"] == workflow["id"]
    assert (await flowise_client.get_chatflow(workflow["id"])).deployed is True
