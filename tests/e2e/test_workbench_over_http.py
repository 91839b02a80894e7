"""The workbench over HTTP: the picture of a plan is what is then written, and a person changes both by hand."""

from typing import Any

import httpx2

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, ok, start
from tests.e2e.scripted import REQUIREMENT, SUPPORT, connect, model_environment, script

WINDOW = "Let it remember only the last messages"


def drawn(preview: dict[str, Any]) -> tuple[set[tuple[str, str, str]], set[tuple[str, str]], set[tuple[str, str]]]:
    """The nodes, the connections that are certain, and those that code expects."""
    nodes = {
        (one["node"]["id"], one["node"]["name"], one["node"]["label"])
        for one in preview["nodes"]
        if one["state"] != "removed"
    }
    edges = [one for one in preview["edges"] if one["state"] != "removed"]

    def ends(*, expected: bool) -> set[tuple[str, str]]:
        return {(one["edge"]["source"], one["edge"]["target"]) for one in edges if one["expected"] is expected}

    return nodes, ends(expected=False), ends(expected=True)


async def written(http: httpx2.AsyncClient, chatflow_id: str) -> tuple[set[tuple[str, str, str]], set[tuple[str, str]]]:
    graph = (await ok(await http.get(f"/flows/{chatflow_id}/graph")))["graph"]
    nodes = {(one["id"], one["name"], one["label"]) for one in graph["nodes"]}
    return nodes, {(one["source"], one["target"]) for one in graph["edges"]}


async def test_the_picture_of_a_plan_is_what_is_written_and_both_are_changed_by_hand(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    window = {"node_id": "bufferWindowMemory_0", "node_name": "bufferWindowMemory", "purpose": "the memory"}
    there = [one | {"existing": True} for one in SUPPORT["plan"]["nodes"] if one["node_name"] != "bufferMemory"]
    plan = {**SUPPORT["plan"], "operation": "update", "nodes": [*there, window], "removals": ["bufferMemory_0"]}
    ops = [
        {"op_type": "RemoveNode", "node_id": "bufferMemory_0"},
        {"op_type": "AddNode", "node_name": "bufferWindowMemory", "node_id": "bufferWindowMemory_0"},
        connect("bufferWindowMemory_0", "conversationChain_0", "memory"),
    ]
    intent = {**SUPPORT["classify"], "operation": "update"}
    script(standin, {**SUPPORT, "classify": intent, "plan": plan, "patch": {"ops": ops}}, when=WINDOW)
    script(standin, SUPPORT)
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        planned = await start(http, REQUIREMENT)
        path = f"/sessions/{planned['thread_id']}"
        plan = await ok(await http.get(f"{path}/preview"))
        assert (plan["source"], {one["state"] for one in plan["nodes"]}) == ("plan", {"new"})
        nodes, certain, expected = drawn(plan)
        model = next(one for one in plan["nodes"] if one["node"]["name"] == "chatOpenAI")
        assert model["model"] == "gpt-4o"

        # A mistake leaves the question open.
        node_id = model["node"]["id"]
        wrong = {"action": "approve", "edits": {"values": [{"node_id": node_id, "param": "temperature", "value": "x"}]}}
        body = {"interrupt_id": planned["interrupt"]["id"], "answer": wrong}
        refused = await http.post(f"{path}/resume", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_answer")
        assert refused.json()["details"]["findings"][0]["code"] == "NOT_A_NUMBER"

        edits = {"values": [{"node_id": node_id, "param": "temperature", "value": 0.35}], "removals": []}
        tested = await answer(http, planned, action="approve", edits=edits)
        assert tested["interrupt"]["type"] == "result_review"
        made = await ok(await http.get(f"{path}/preview"))
        assert made["source"] == "flow"
        there, edges = await written(http, tested["chatflow_id"])
        assert there == nodes == drawn(made)[0]
        assert certain <= edges
        assert edges == certain | expected == drawn(made)[1]
        assert '"temperature":0.35' in (await flowise_client.get_chatflow(tested["chatflow_id"])).flow_data

        warmer = {"op_type": "SetParam", "node_id": node_id, "param_name": "temperature", "value": 0.9}
        again = await answer(http, tested, action="iterate", ops=[warmer])
        assert again["interrupt"]["type"] == "result_review"
        assert '"temperature":0.9' in (await flowise_client.get_chatflow(tested["chatflow_id"])).flow_data
        done = await answer(http, again, action="accept")

        turns = (await ok(await http.get(f"{path}/turns")))["turns"]
        assert [one["kind"] for one in turns if one["who"] == "person"] == [
            "requirement",
            "approval",
            "edits",
            "decision",
        ]
        assert turns[0]["words"] == REQUIREMENT

        planned = await start(http, WINDOW, target=done["chatflow_id"], operation="update")
        assert planned["interrupt"]["type"] == "plan_approval", planned["interrupt"]["message"]
        plan = await ok(await http.get(f"/sessions/{planned['thread_id']}/preview"))
        states = {one["node"]["name"]: one["state"] for one in plan["nodes"]}
        assert states["bufferWindowMemory"] == "new"
        assert states["chatOpenAI"] == "existing"
        before = {one["id"]: (one["x"], one["y"]) for one in (await graph(http, done["chatflow_id"]))["nodes"]}
        placed = {one["node"]["id"]: (one["node"]["x"], one["node"]["y"]) for one in plan["nodes"] if one["placed"]}
        assert placed == before
        nodes, certain, expected = drawn(plan)
        tested = await answer(http, planned, action="approve")
        await answer(http, tested, action="accept")
        there, edges = await written(http, done["chatflow_id"])
        assert there == nodes
        assert certain <= edges <= certain | expected

        talk = await ok(await http.get(f"/flows/{done['chatflow_id']}/conversation"))
        assert [one["turns"][0]["words"] for one in talk["sessions"]] == [REQUIREMENT, WINDOW]
        versions = (await ok(await http.get(f"/flows/{done['chatflow_id']}/versions")))["versions"]
        assert [one["name"] for one in versions] == [f"v{number}" for number in range(len(versions), 0, -1)]
        compared = await ok(
            await http.get(f"/flows/{done['chatflow_id']}/compare?before=v1&after={versions[0]['name']}")
        )
        assert "bufferWindowMemory" in {one["name"] for one in compared["diff"]["added"]}
        await http.delete(f"/sessions/{planned['thread_id']}")
    await flowise_client.delete_chatflow(done["chatflow_id"])


async def graph(http: httpx2.AsyncClient, chatflow_id: str) -> dict[str, Any]:
    return (await ok(await http.get(f"/flows/{chatflow_id}/graph")))["graph"]
