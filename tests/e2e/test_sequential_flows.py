"""Changes of sequential flows and teams on a real Flowise: planned, tested on a draft, accepted, and asked."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx2

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from tests.e2e.people import SharedService, answer, http_of, nodes_of, start
from tests.e2e.scripted import DONE, connect, model_environment, script
from tests.fixtures.fresh_flows import FRESH, Editor

Json = dict[str, Any]
(_, branched), (_, team) = FRESH["two steps with a condition between"], FRESH["a team"]


async def drawn(draw: Callable[[Editor], None], access: FlowiseAccess, client: FlowiseClient) -> Chatflow:
    """A flow of a person, as Flowise's editor makes it."""
    headers = {"Authorization": f"Bearer {access.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{access.endpoint}/api/v1", headers=headers, trust_env=False) as http:
        types = {entry["name"]: entry for entry in (await http.get("/nodes")).json()}
    draw(canvas := Editor(types, access.credentials))
    row = ChatflowCreate(name=f"Steps {uuid4().hex[:6]}", flow_data=canvas.text(), type="MULTIAGENT")
    return await client.get_chatflow((await client.create_chatflow(row)).id)


def planned(*ops: Json, nodes: list[Json], parts: int = 8, **plan: Any) -> Json:
    """A model that plans a change of a flow and writes its ops."""
    shown = [node["node_id"] for node in nodes]
    return {
        "classify": {"operation": "update", "ambiguity": 0, "questions": [], "title": "Change it"},
        "plan": {
            "goal": "Change the flow.",
            "flow_name": "any",
            "nodes": nodes,
            "success_criteria": ["It answers."],
            "test_questions": ["What is 12 times 14?"],
            "parts": [{"id": f"p{n}", "state": "covered", "nodes": shown} for n in range(1, parts + 1)],
            **plan,
        },
        "patch": {"ops": [*ops]},
        "judge": DONE,
    }


def changes(node_id: str) -> Json:
    return {"node_id": node_id, "node_name": node_id.rpartition("_")[0], "purpose": "changes", "existing": True}


def value(node_id: str, param: str, said: Any) -> Json:
    return {"node_id": node_id, "param": param, "value": said}


def model_of(standin: ModelStandIn, prompt: str) -> str:
    """The model that the last request with a prompt went to."""
    return next(one.model for one in reversed(standin.requests) if prompt in one.prompt)


async def test_prompt_and_model_of_a_sequence_are_changed(
    shared_service: SharedService, flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await drawn(branched, flowise, flowise_client)
    goodbye = "Say goodbye like a pirate."
    values = [value("seqLLMNode_0", "systemMessagePrompt", goodbye), value("chatOpenAI_0", "modelName", "gpt-4o")]
    script(standin, planned(nodes=[changes("seqLLMNode_0"), changes("chatOpenAI_0")], values=values))
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view = await start(http, "Let it say goodbye like a pirate, with gpt-4o", target=row.id)
        said = view["interrupt"]["data"]["plan"]
        assert all(name in said for name in ("Yes", "closer", "End"))
        tested = await answer(http, view, action="approve")
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review"
        assert all(test["passed"] for test in review["tests"])
        draft = await flowise_client.get_chatflow(review["draft"]["id"])
        assert draft.type == "MULTIAGENT"
        assert f"/agentcanvas/{draft.id}" in review["draft"]["url"]
        assert (await flowise_client.get_chatflow(row.id)).flow_data == row.flow_data
        done = await answer(http, tested, action="accept")
        assert done["outcome"] == "accepted"
    live = await flowise_client.get_chatflow(row.id)
    assert live.type == "MULTIAGENT"
    assert nodes_of(live)["seqLLMNode_0"]["data"]["inputs"]["systemMessagePrompt"] == goodbye
    assert (await flowise_client.predict(live.id, "Hello", session_id=uuid4().hex)).answer
    assert model_of(standin, goodbye) == "gpt-4o"


def hands_out(request: RecordedRequest) -> Reply:
    """A supervisor that asks the reviewer once."""
    done = "Reviewed." in request.prompt
    given = {"reasoning": "", "next": "FINISH" if done else "reviewer", "instructions": "Reviewed, and done."}
    return Reply(tool_calls=(StandInToolCall("route", given),))


async def test_a_worker_is_added_to_a_team(
    shared_service: SharedService, flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await drawn(team, flowise, flowise_client)
    new = {"node_id": "worker_2", "node_name": "worker", "purpose": "Checks the code."}
    values = [value("worker_2", "workerName", "Reviewer"), value("worker_2", "workerPrompt", "Review the code.")]
    ops = [
        {"op_type": "AddNode", "node_name": "worker", "node_id": "worker_2"},
        connect("supervisor_0", "worker_2", "supervisor"),
    ]
    script(standin, planned(*ops, nodes=[new], values=values))
    standin.script(lambda request: any(tool.name == "route" for tool in request.tools), hands_out)
    standin.script(lambda request: "Review the code." in request.prompt, Reply(text="Reviewed."))
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view = await start(http, "Add a worker that reviews the code", target=row.id)
        assert "Reviewer" in view["interrupt"]["data"]["plan"]
        tested = await answer(http, view, action="approve")
        assert tested["interrupt"]["type"] == "result_review"
        assert all(test["passed"] for test in tested["interrupt"]["data"]["tests"])
        await answer(http, tested, action="accept")
    live = await flowise_client.get_chatflow(row.id)
    assert nodes_of(live)["worker_2"]["data"]["inputs"]["supervisor"] == "{{supervisor_0.data.instance}}"
    assert "eviewed" in (await flowise_client.predict(live.id, "Hello", session_id=uuid4().hex)).answer


def with_a_refusal(canvas: Editor) -> None:
    """The sequence with a second branch, which refuses."""
    branched(canvas)
    condition = canvas.data("seqCondition_0")
    rows = json.loads(condition["inputs"]["conditionUI"])
    condition["inputs"]["conditionUI"] = json.dumps([*rows, {**rows[0], "value": "zzz", "output": "No"}])
    (anchor,) = condition["outputAnchors"]
    no = {**anchor["options"][0], "id": "seqCondition_0-output-no-Condition", "name": "no", "label": "No"}
    anchor["options"] = [*anchor["options"], no]
    refuses = canvas.add("seqLLMNode", llmNodeName="refuser", systemMessagePrompt="Refuse.")
    canvas.join("seqCondition_0", refuses, "sequentialNode", "no")
    canvas.join(refuses, canvas.add("seqEnd"), "sequentialNode")


async def test_a_branch_of_a_condition_is_removed(
    shared_service: SharedService, flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await drawn(with_a_refusal, flowise, flowise_client)
    rows = json.loads(nodes_of(row)["seqCondition_0"]["data"]["inputs"]["conditionUI"])
    gone = ["seqLLMNode_1", "seqEnd_2"]
    values = [value("seqCondition_0", "conditionUI", json.dumps(rows[:1]))]
    script(standin, planned(nodes=[changes("seqCondition_0")], values=values, removals=gone))
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view = await start(http, "Take the branch that refuses away", target=row.id)
        assert "refuser" in view["interrupt"]["data"]["plan"]
        tested = await answer(http, view, action="approve")
        assert tested["interrupt"]["type"] == "result_review"
        assert all(test["passed"] for test in tested["interrupt"]["data"]["tests"])
        await answer(http, tested, action="accept")
    live = await flowise_client.get_chatflow(row.id)
    assert not nodes_of(live).keys() & {*gone}
    (anchor,) = nodes_of(live)["seqCondition_0"]["data"]["outputAnchors"]
    assert [option["label"] for option in anchor["options"]] == ["End", "Yes"]
    assert (await flowise_client.predict(live.id, "Hello", session_id=uuid4().hex)).answer
