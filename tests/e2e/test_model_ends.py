"""Models that have ended or end soon, on a real Flowise: in flows that exist, and in plans of new ones."""

import json
import re
from pathlib import Path

import pytest

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, make_flow, nodes_of, ok, run_command


async def test_a_flow_on_a_model_that_ended_is_warned_of_with_what_the_server_offers_instead(
    shared_service: SharedService, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    row, service = await make_flow(flowise_client), await shared_service()
    (name,) = re.findall(r'"modelName": ?"(gpt-3[^"]+)"', row.flow_data)
    offered = {one["name"] for one in await flowise_client.node_options("chatOpenAI", "listModels")}
    async with http_of(service) as http:
        said = (await ok(await http.post("/flows/validate", json={"flow_data": row.flow_data})))["validation"]
        (warning,) = [one for one in said["warnings"] if one["code"] == "MODEL_ENDED"]
        assert (said["valid"], warning["params"]["model"]) == (True, name)
        replacement = warning["params"]["replacement"]
        assert replacement in offered
        mended = row.flow_data.replace(f'"{name}"', f'"{replacement}"')
        said = (await ok(await http.post("/flows/validate", json={"flow_data": mended})))["validation"]
        assert not [one for one in said["warnings"] if one["code"].startswith("MODEL_END")]
    async with http_of(service) as http:
        await ok(await http.put(f"/flows/{row.id}/tests", json={"tests": [{"turns": ["Hello"]}]}))
    listed = await run_command(service, tmp_path, "flows", "ending", "--json", "--tests", code=3)
    told = [one for one in json.loads(listed)["flows"] if one["id"] == row.id]
    ends = {"model": name, "day": warning["params"]["day"], "replacement": replacement, "passed": True}
    assert told == [{"id": row.id, "name": row.name, **ends}]
    printed = await run_command(service, tmp_path, "flows", "check", row.id)
    assert warning["params"]["day"] in printed
    assert replacement in printed


@pytest.mark.parametrize("said", ["GPT-4o", "OpenAI"])
async def test_a_new_flow_has_the_asked_model_and_its_end_or_one_that_the_server_offers(
    said: str, shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    offered = {one["name"] for one in await flowise_client.node_options("chatOpenAI", "listModels")}
    async with http_of(await shared_service()) as http:
        design = {"name": f"Help with {said}", "kind": "chat", "model": said}
        planned = await ok(await http.post("/sessions?wait=60", json={"design": design}))
        data = planned["interrupt"]["data"]
        found = {one["code"]: one["params"] for one in data["contract"]["findings"]}
        assert [*found] == (["MODEL_ENDS"] if said == "GPT-4o" else [])
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]
        accepted = await answer(http, tested, action="accept")
    row = await flowise_client.get_chatflow(accepted["chatflow_id"])
    model = nodes_of(row)["chatOpenAI_0"]["data"]["inputs"]["modelName"]
    assert (model == "gpt-4o") is (said == "GPT-4o")
    assert model in offered
    if found:
        assert (found["MODEL_ENDS"]["model"], found["MODEL_ENDS"]["day"]) == ("gpt-4o", "2027-01-14")
        assert found["MODEL_ENDS"]["replacement"] in offered - {"gpt-4o"}
        assert "2027-01-14" in data["plan"]
