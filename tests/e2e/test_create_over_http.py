"""The main job over HTTP, as a person with curl does it: a sentence in, a tested chatflow on a real Flowise out."""

import json

import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import MakeService, SharedService, answer, events_of, http_of, ok, start
from tests.e2e.scripted import CHOSEN, REQUIREMENT, model_environment, script
from tests.support.sessions import ASSISTANT

KEY = "e2e-key"


async def test_a_session_from_the_sentence_to_the_accepted_chatflow(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service = await shared_service()
    async with http_of(service) as http:
        planned = await start(http)
        question = planned["interrupt"]
        assert (planned["status"], question["type"]) == ("pending_interrupt", "plan_approval")
        assert planned["chatflow_id"] is None
        assert {option["value"] for option in question["options"]} == {"approve", "request_changes", "cancel"}
        assert "Conversation Chain" in question["data"]["plan"]
        assert question["response_schema"]["oneOf"]

        tested = await answer(http, planned, action="approve")
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review"
        assert review["verdict"]["done"] is True
        assert len(review["tests"]) >= 2
        for test in review["tests"]:
            # What the model behind Flowise really said, not that something was said.
            assert test["question"].splitlines()[-1] in test["answer"]
            assert test["passed"] is True
        before = await flowise_client.get_chatflow(tested["chatflow_id"])
        assert before.deployed is False

        done = await answer(http, tested, action="accept")
        assert (done["status"], done["outcome"], done["interrupt"]) == ("completed", "accepted", None)
        assert done["chatflow_id"] == tested["chatflow_id"]
        assert done["result"]["tests"] == review["tests"]
        assert done["result"]["verdict"]["done"] is True
        assert done["chatflow_url"] == f"{flowise_client.endpoint}/canvas/{done['chatflow_id']}"

        events = await events_of(http, done)
        assert events[-1]["type"] == "done"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))

        repeated = await http.post(f"/sessions/{done['thread_id']}/resume", json={"response": "yes"})
        assert (repeated.status_code, repeated.json()["code"]) == (409, "session_conflict")

    flow = await flowise_client.get_chatflow(done["chatflow_id"])
    names = {node["data"]["name"] for node in json.loads(flow.flow_data)["nodes"]}
    assert {"chatOpenAI", "conversationChain", "bufferMemory"} <= names
    assert flow.deployed is True
    assert not any(tag.startswith("fda:") for tag in flow.tags)
    prediction = await flowise_client.predict(flow.id, "Where is my parcel?", session_id="e2e")
    assert "Where is my parcel?" in prediction.answer


async def test_p65_p66_the_key_and_the_rate_limit_hold_in_the_real_service(make_service: MakeService) -> None:
    service = make_service(AGENT_API_KEY=KEY, RATE_LIMIT_SESSIONS_PER_MIN="1")
    await service.start()
    async with http_of(service) as http:
        assert (await http.post("/sessions", json={"design": ASSISTANT})).status_code == 401
        assert (await http.get("/live")).status_code == 200
    async with http_of(service, KEY) as http:
        assert (await http.post("/sessions?wait=0", json={"design": ASSISTANT})).status_code == 202
        assert (await http.post("/sessions?wait=0", json={"design": ASSISTANT})).status_code == 429
        health = await ok(await http.get("/health"))
        assert health["flowise"]["default"]["state"] == "ok"
        assert KEY not in json.dumps(health)
    assert KEY not in service.log()


@pytest.mark.nightly
async def test_a_wrong_flowise_key_is_said_at_the_start_and_in_the_session(make_service: MakeService) -> None:
    service = make_service(FLOWISE_API_KEY="wrong")
    await service.start()
    assert "Flowise instance 'default'" in service.log()
    async with http_of(service) as http:
        health = (await http.get("/health")).json()
        assert health["flowise"]["default"]["error"]["code"] == "flowise_auth"


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["claude", "openai"])
async def test_the_same_with_a_model_behind_the_real_sdk(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn, engine: str
) -> None:
    """The stand-in speaks the provider's protocol; its answers follow the schemas that the engine asks with."""
    before = {row.id async for row in flowise_client.iter_chatflows()}
    phases = script(standin, CHOSEN)
    service = await shared_service(**model_environment(standin, engine))
    async with http_of(service) as http:
        view = await start(http, REQUIREMENT)
        assert view["degraded"] == []
        assert view["interrupt"]["type"] == "plan_approval"
        view = await answer(http, view, action="approve")
        assert view["interrupt"]["type"] == "result_review"
        view = await answer(http, view, action="accept")
    assert (view["outcome"], view["degraded"]) == ("accepted", [])
    assert view["totals"]["model_calls"] == 4
    assert [phase.calls for phase in phases.values()] == [1, 1, 1, 1]
    assert view["totals"]["input_tokens"] > 0
    assert {row.id async for row in flowise_client.iter_chatflows()} - before == {view["chatflow_id"]}
