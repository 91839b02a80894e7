"""Flows that a person makes and changes by hand: previewed, built, tested and accepted, and no model is asked."""

from typing import Any

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, make_flow, nodes_of, ok

COLDER = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.2}
MOVED = {"op_type": "SetPosition", "node_id": "chatOpenAI_0", "x": 7, "y": 9}


def connected(source: str, target: str, anchor: str) -> dict[str, Any]:
    return {"op_type": "Connect", "source_node_id": source, "target_node_id": target, "target_anchor": anchor}


async def test_a_flow_is_changed_by_hand_on_a_draft_and_goes_live_when_it_is_accepted(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    row = await make_flow(flowise_client)
    service = await shared_service()
    async with http_of(service) as http:
        body: dict[str, Any] = {"chatflow_id": row.id}
        opened = await ok(await http.post("/flows/preview", json=body))
        assert (opened["stale"], opened["edits"], opened["capability"]) == (False, [], None)
        wrong = connected("chatOpenAI_0", "conversationChain_0", "noSuchInput")
        body |= {"base_sha256": opened["sha256"], "ops": [COLDER, MOVED, wrong]}
        drawn = await ok(await http.post("/flows/preview", json=body))
        # What cannot be done is said at its op; the rest is drawn.
        assert [(one["op_index"], one["severity"]) for one in drawn["findings"] if one["op_index"] is not None] == [
            (2, "error")
        ]
        (model,) = [one for one in drawn["preview"]["nodes"] if one["node"]["id"] == "chatOpenAI_0"]
        assert (model["state"], model["node"]["x"], model["node"]["y"]) == ("changed", 7, 9)
        assert [(one["op_type"], one["field"], one["after"]) for one in drawn["edits"][:1]] == [
            ("SetParam", "Temperature", "0.2")
        ]
        assert drawn["capability"]["nodes"]["chatOpenAI_0"]["action"] == "change"
        assert await flowise_client.get_chatflow(row.id) == row

        begin: dict[str, Any] = {"target": row.id, "base_sha256": opened["sha256"]}
        refused = await http.post("/sessions", json={**begin, "ops": [wrong]})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        other = await http.post("/sessions", json={**begin, "base_sha256": "0" * 64, "ops": [COLDER]})
        assert (other.status_code, other.json()["code"]) == (409, "stale_base")

        planned = await ok(await http.post("/sessions?wait=60", json={**begin, "ops": [COLDER, MOVED]}))
        assert planned["interrupt"]["type"] == "plan_approval"
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested
        assert (await flowise_client.get_chatflow(row.id)).flow_data == row.flow_data
        await answer(http, tested, action="accept")
        live = nodes_of(await flowise_client.get_chatflow(row.id))["chatOpenAI_0"]
        assert str(live["data"]["inputs"]["temperature"]) == "0.2"
        assert (live["position"]["x"], live["position"]["y"]) == (7, 9)
