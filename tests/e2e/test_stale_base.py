"""A person edits the flow on a real Flowise while a session changes it: keep both, overwrite, or stop."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from tests.e2e.people import SharedService, answer, http_of, make_flow, ok, start
from tests.e2e.scripted import COLDER, change, model_environment, script
from tests.e2e.service import ServiceProcess
from tests.e2e.test_update_over_http import temperature


@pytest.fixture
async def service(shared_service: SharedService, standin: ModelStandIn) -> ServiceProcess:
    """A service whose model makes the flow colder."""
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    return await shared_service(**model_environment(standin))


async def edit_as_a_person(client: FlowiseClient, row: Chatflow) -> None:
    document = json.loads(row.flow_data)
    model = next(node for node in document["nodes"] if node["data"]["name"] == "chatOpenAI")
    model["data"]["inputs"]["modelName"] = "gpt-4-turbo"
    await client.update_chatflow(row.id, flow_data=json.dumps(document))


async def stopped_at_the_write(http: httpx2.AsyncClient, client: FlowiseClient, row: Chatflow) -> dict[str, Any]:
    """A session whose first write finds the flow changed."""
    view = await start(http, COLDER, target=row.id)
    await edit_as_a_person(client, row)
    return await stopped(http, view, action="approve")


async def stopped_at_the_promotion(http: httpx2.AsyncClient, client: FlowiseClient, row: Chatflow) -> dict[str, Any]:
    """A session that finds the flow changed when its tested draft is accepted."""
    view = await answer(http, await start(http, COLDER, target=row.id), action="approve")
    assert view["interrupt"]["type"] == "result_review"
    await edit_as_a_person(client, row)
    return await stopped(http, view, action="accept")


async def stopped(http: httpx2.AsyncClient, view: dict[str, Any], **given: Any) -> dict[str, Any]:
    view = await answer(http, view, **given)
    assert (view["interrupt"]["type"], view["interrupt"]["reason"]) == ("patch_review", "stale_base")
    assert "gpt-4-turbo" in view["interrupt"]["data"]["meanwhile"]["text"]
    return view


async def flows_of(client: FlowiseClient) -> set[str]:
    return {row.id async for row in client.iter_chatflows()}


async def stops(
    http: httpx2.AsyncClient, client: FlowiseClient
) -> AsyncIterator[tuple[dict[str, Any], set[str], Chatflow]]:
    """Both ways to stop, each with the flows before it and the flow as the person left it."""
    for stop_at in (stopped_at_the_write, stopped_at_the_promotion):
        row = await make_flow(client, deployed=True)
        before = await flows_of(client)
        view = await stop_at(http, client, row)
        yield view, before, await client.get_chatflow(row.id)


async def test_p07_keeping_both_changes_at_the_write_and_at_the_promotion(
    service: ServiceProcess, flowise_client: FlowiseClient
) -> None:
    row = await make_flow(flowise_client)
    async with http_of(service) as http:
        view = await start(http, COLDER, target=row.id)
        await flowise_client.update_chatflow(row.id, flow_data=row.flow_data.replace('"mine"', '"theirs"'))
        view = await answer(http, view, action="approve")
        assert view["interrupt"]["reason"] == "stale_base"
        view = await answer(http, view, action="rebase")
        assert view["interrupt"]["type"] == "result_review"
        await edit_as_a_person(flowise_client, await flowise_client.get_chatflow(row.id))
        view = await answer(http, view, action="accept")
        assert (view["interrupt"]["type"], view["interrupt"]["reason"]) == ("patch_review", "stale_base")
        assert "gpt-4-turbo" in view["interrupt"]["data"]["meanwhile"]["text"]
        view = await answer(http, view, action="rebase")
        assert view["interrupt"]["type"] == "result_review"
        view = await answer(http, view, action="accept")
    assert view["outcome"] == "accepted"
    live = await flowise_client.get_chatflow(row.id)
    assert temperature(live) == "0.2"
    assert "gpt-4-turbo" in live.flow_data
    assert '"theirs"' in live.flow_data


@pytest.mark.nightly
async def test_p07_overwriting_takes_the_persons_change_back_and_keeps_it_as_a_version(
    service: ServiceProcess, flowise_client: FlowiseClient
) -> None:
    async with http_of(service) as http:
        async for view, before, theirs in stops(http, flowise_client):
            view = await answer(http, view, action="overwrite")
            if view["interrupt"]:
                assert view["interrupt"]["type"] == "result_review"
                assert await flowise_client.get_chatflow(theirs.id) == theirs
                view = await answer(http, view, action="accept")
            assert (view["status"], view["outcome"]) == ("completed", "accepted")
            live = await flowise_client.get_chatflow(theirs.id)
            assert (temperature(live), "gpt-4-turbo" in live.flow_data, live.deployed) == ("0.2", False, True)
            assert await flows_of(flowise_client) == before
            path = f"/sessions/{view['thread_id']}"
            versions = (await ok(await http.get(f"{path}/versions")))["versions"]
            assert [item["reason"] for item in versions] == ["before_promote", "promote"]
            await ok(await http.post(f"{path}/rollback?version={versions[0]['label']}"))
            assert (await flowise_client.get_chatflow(theirs.id)).flow_data == theirs.flow_data


@pytest.mark.nightly
async def test_p07_stopping_leaves_the_flow_as_the_person_made_it_and_no_draft(
    service: ServiceProcess, flowise_client: FlowiseClient
) -> None:
    async with http_of(service) as http:
        async for view, before, theirs in stops(http, flowise_client):
            view = await answer(http, view, action="cancel")
            assert (view["status"], view["outcome"], view["interrupt"]) == ("cancelled", "cancelled", None)
            assert await flowise_client.get_chatflow(theirs.id) == theirs
            assert await flows_of(flowise_client) == before
            versions = await ok(await http.get(f"/sessions/{view['thread_id']}/versions"))
            assert versions["versions"] == []
