"""The documented flow of steps, from its form to a flow on a real Flowise that was tested, and back to the form."""

import json
import re
from pathlib import Path
from typing import Any

from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.schemas.designs import DesignForm
from tests.e2e.people import SharedService, answer, http_of, ok
from tests.fixtures.receiver import running_receiver

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def documented() -> dict[str, Any]:
    fences = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (body,) = [json.loads(text) for text in fences if '"design"' in text]
    return body


async def test_the_documented_steps_are_built_and_tested_and_come_back_as_the_form(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    body = documented()
    service = await shared_service()
    async with http_of(service) as http:
        with running_receiver() as receiver:
            (call,) = [step for step in body["design"]["steps"] if step["kind"] == "call"]
            call["url"] = receiver.url("/answers")
            planned = await ok(await http.post("/sessions?wait=60", json=body))
            assert "Flowise may call: http://127.0.0.1:" in planned["interrupt"]["data"]["plan"]
            tested = await answer(http, planned, action="approve")
            assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
            # A test sends nothing: the step ran in a copy, which is gone, and its trace shows what it would have sent.
            assert receiver.received == []
        assert "Simulated in the tests, not really done: POST http://127.0.0.1:" in planned["interrupt"]["data"]["plan"]
        assert [row.name async for row in flowise_client.iter_chatflows() if row.name.endswith("(test)")] == []
        data = tested["interrupt"]["data"]
        (simulated,) = data["verdict"]["simulated"]
        assert simulated.startswith("POST http://127.0.0.1:")
        tests = data["tests"]
        assert "Thank you." in [test["answer"] for test in tests if not test["human"]]
        approved = next(test for test in tests if test["human"] == ["proceed"])
        assert approved["simulated"] == [simulated]
        trace = await ok(await http.get(f"/sessions/{planned['thread_id']}/traces/{approved['trace_sha256']}"))
        (sent,) = [json.loads(step["input"]["body"]) for step in trace["steps"] if step["simulated"]]
        # What would be sent is the draft that the person approved.
        assert approved["answer"].startswith(f"Sent: {sent['text']}")
        assert sent["urgent"] == "true"
        view = await ok(await http.get(f"/sessions/{planned['thread_id']}/design"))
        assert DesignForm.model_validate(view["form"]) == DesignForm.model_validate(body["design"])
        row = await flowise_client.get_chatflow(tested["chatflow_id"])
        assert row.type == "AGENTFLOW"
        await answer(http, tested, action="rollback")


async def test_an_address_that_the_approval_names_is_called_once_in_each_test(shared_service: SharedService) -> None:
    body, service = documented(), await shared_service()
    async with http_of(service) as http:
        with running_receiver() as receiver:
            (call,) = [step for step in body["design"]["steps"] if step["kind"] == "call"]
            call["url"] = receiver.url("/answers")
            named = receiver.url("/answers").removesuffix("/answers")
            planned = await ok(await http.post("/sessions?wait=60", json=body))
            details = planned["interrupt"]["data"]["details"]
            assert (details["addresses"], details["called"]) == ([named], [])
            wrong: dict[str, Any] = {"action": "approve", "real": ["https://nobody.example"]}
            wrong = {"interrupt_id": planned["interrupt"]["id"], "answer": wrong}
            refused = await http.post(f"/sessions/{planned['thread_id']}/resume", json=wrong)
            assert (refused.status_code, named in refused.json()["hint"]) == (422, True)
            tested = await answer(http, planned, action="approve", real=[named])
            data = tested["interrupt"]["data"]
            reached = [test for test in data["tests"] if test["human"] == ["proceed"]]
            assert reached
            assert {tuple(test["called"]) for test in reached} == {(f"POST {call['url']}",)}
            assert (data["verdict"]["called"], data["verdict"]["simulated"]) == ([f"POST {call['url']}"], [])
            assert len(receiver.received) == len(reached)
        view = await ok(await http.get(f"/sessions/{planned['thread_id']}"))
        assert f"Really called in each test, as you said: {named}." in view["plan"]["text"]
        await answer(http, tested, action="rollback")
