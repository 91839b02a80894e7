"""Over HTTP without a model: a form, a starter, a plain copy, a new name, and a change in words that is declined."""

from typing import Any

import httpx2

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, ok


async def started(http: httpx2.AsyncClient, **body: Any) -> Any:
    return await ok(await http.post("/sessions?wait=60", json=body))


async def accepted(http: httpx2.AsyncClient, planned: Any) -> Any:
    """The session after its plan and its result were approved."""
    tested = await answer(http, planned, action="approve")
    assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]
    return await answer(http, tested, action="accept")


async def test_a_new_flow_needs_no_model(shared_service: SharedService, flowise_client: FlowiseClient) -> None:
    service = await shared_service()
    async with http_of(service) as http:
        form = {"name": "Bakery", "prompt": "You sell bread.", "memory": 5}
        planned = await started(http, design=form)
        assert (planned["interrupt"]["reason"], planned["interrupt"]["data"]["form"]["name"]) == (
            "plan_ready",
            "Bakery",
        )
        done = await accepted(http, planned)
        assert (await flowise_client.get_chatflow(done["chatflow_id"])).name == "Bakery"

        matched = await started(http, requirement="Answer questions from our website")
        question = matched["interrupt"]
        assert (question["type"], question["reason"]) == ("plan_approval", "starter")
        assert [one["value"] for one in question["options"]] == ["request_changes", "cancel"]
        form = question["data"]["form"]
        form["sources"][0]["url"] = flowise_client.endpoint
        planned = await answer(http, matched, action="request_changes", design=form)
        assert planned["interrupt"]["reason"] == "plan_ready"
        done = await accepted(http, planned)
        assert flowise_client.endpoint in (await flowise_client.get_chatflow(done["chatflow_id"])).flow_data


async def test_a_copy_and_a_new_name_need_no_words_and_a_change_in_words_needs_a_model(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service = await shared_service()
    async with http_of(service) as http:
        form = {"name": "Original", "prompt": "You sell bread."}
        original = (await accepted(http, await started(http, design=form)))["chatflow_id"]
        before = await flowise_client.get_chatflow(original)

        declined = await started(http, requirement="Use Claude instead", target=original)
        question = declined["interrupt"]
        assert (question["type"], question["reason"]) == ("plan_approval", "declined")
        ended = await answer(http, declined, action="cancel")
        assert ended["outcome"] == "declined"

        copied = await accepted(http, await started(http, operation="copy", target=original, new_name="Second"))
        copy = await flowise_client.get_chatflow(copied["chatflow_id"])
        assert (copy.name, copy.flow_data) == ("Second", before.flow_data)

        await accepted(http, await started(http, operation="update", target=original, new_name="Renamed"))
        after = await flowise_client.get_chatflow(original)
        assert (after.name, after.flow_data) == ("Renamed", before.flow_data)

        refused = await http.post("/sessions", json={"new_name": "X", "operation": "create", "target": original})
        assert refused.status_code == 422
