"""What the page reads beside sessions, on a real Flowise: flows by words, pictures, differences, tries."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, make_flow, ok, start
from tests.e2e.scripted import COLDER, change, model_environment, script
from tests.runtime_world import until


@pytest.fixture
async def http(shared_service: SharedService, standin: ModelStandIn) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a running service, whose model makes the flow colder."""
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    async with http_of(await shared_service(**model_environment(standin))) as http:
        yield http


async def get(http: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    return await ok(await http.get(path))


async def test_a_change_is_seen_before_it_is_written_on_the_draft_and_between_versions(
    http: httpx2.AsyncClient, flowise_client: FlowiseClient
) -> None:
    row = await make_flow(flowise_client)
    credentials = [item.id for item in await flowise_client.list_credentials()]
    view = await start(http, COLDER, target=row.id, review_patch=True)
    path = f"/sessions/{view['thread_id']}"
    planned = await get(http, f"{path}/change")
    assert planned["diff"]["summary"] == "no difference"
    assert {node["kind"] for node in planned["before"]["nodes"]} == {"node", "note"}

    reviewed = await answer(http, view, action="approve")
    assert reviewed["interrupt"]["reason"] == "diff_requested"
    proposed = await get(http, f"{path}/change")
    (changed,) = proposed["diff"]["changed"]
    assert ("temperature", "0.2") in {(field["name"], field["after"]) for field in changed["fields"]}
    assert [op["op_type"] for op in proposed["ops"]] == ["SetParam"]
    assert proposed["meanwhile"] is None
    assert not any(id_ in str(proposed["before"]) + str(proposed["after"]) for id_ in credentials)

    tested = await answer(http, reviewed, action="continue")
    on_draft = await get(http, f"{path}/change")
    draft = await get(http, f"/flows/{on_draft['draft_id']}/graph")
    assert draft["flow"]["draft"]
    assert draft["graph"] == on_draft["after"]
    done = await answer(http, tested, action="accept")
    assert done["outcome"] == "accepted"
    live = await get(http, f"/flows/{row.id}/graph")
    assert live["graph"] == (await get(http, f"{path}/change"))["after"]
    assert live["graph"] == await get(http, f"{path}/versions/v2.0/graph")

    reference = f"{view['thread_id']}:v1.0"
    between = await get(http, f"/flows/{row.id}/compare?before={reference}&after=live")
    assert between["diff"]["changed"][0]["id"] == changed["id"]
    assert (between["before_label"], between["after_label"]) == ("v1.0", "now in Flowise")
    same = await get(http, f"/flows/{row.id}/compare?before={reference}&after={reference}")
    assert same["diff"]["summary"] == "no difference"
    unknown = await http.get(f"/flows/{row.id}/compare?before={uuid4()}:v1.0")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "version_not_found")

    renamed = await ok(await http.patch(f"{path}/name", json={"session_name": "Colder answers"}))
    assert renamed["session_name"] == "Colder answers"
    summary = (await get(http, f"{path}/summary"))["summary"]
    assert summary.startswith("# Colder answers\n")
    (value,) = done["plan"]["contract"]["values"]
    assert (value["node_id"], value["param"], str(value["value"])) == ("chatOpenAI_0", "temperature", "0.2")
    assert "## Approved plan\n\n### " in summary
    for part in ("## Requirement", "> Set the temperature", "```diff", "## Writes", "Promoted the draft", "## Tests"):
        assert part in summary


@pytest.mark.nightly
async def test_p07_what_someone_else_changed_is_shown_beside_the_sessions_own_change(
    http: httpx2.AsyncClient, flowise_client: FlowiseClient
) -> None:
    row = await make_flow(flowise_client)
    view = await start(http, COLDER, target=row.id)
    await flowise_client.update_chatflow(row.id, flow_data=row.flow_data.replace('"mine"', '"theirs"'))
    view = await answer(http, view, action="approve")
    assert view["interrupt"]["reason"] == "stale_base"
    change = await get(http, f"/sessions/{view['thread_id']}/change")
    (note,) = change["meanwhile"]["diff"]["changed"]
    assert [(field["before"], field["after"]) for field in note["fields"]] == [("mine", "theirs")]
    assert change["diff"]["summary"] == "1 field changed"
    assert [op["op_type"] for op in change["ops"]] == ["SetParam"]


async def test_flows_are_found_drawn_and_tried_out(http: httpx2.AsyncClient, flowise_client: FlowiseClient) -> None:
    row = await make_flow(flowise_client)

    async def listed() -> list[Any]:
        return (await get(http, f"/flows?query={row.name.split()[-1]}"))["flows"]

    # The service keeps the list for two seconds, which another test may have asked for a moment ago.
    found = await until(listed, "the flow is listed")
    assert [flow["id"] for flow in found] == [row.id]
    assert (found[0]["categories"], found[0]["nodes"]) == (["mine"], 3)
    assert (await get(http, "/flows?query=nothing-of-this-name"))["flows"] == []
    small = await get(http, f"/flows/{row.id}/graph?params=false")
    assert all(node["params"] == [] for node in small["graph"]["nodes"])
    assert (await http.get(f"/flows/{uuid4()}/graph")).status_code == 404
    assert (await http.get(f"/flows/{row.id}/graph?instance=elsewhere")).status_code == 422

    first = await ok(await http.post(f"/flows/{row.id}/chat", json={"question": "Hello heron"}))
    assert "heron" in first["answer"]
    body = {"question": "Hello again", "chat_id": first["chat_id"]}
    second = await ok(await http.post(f"/flows/{row.id}/chat", json=body))
    assert second["chat_id"] == first["chat_id"]
    gone = await http.delete(f"/flows/{row.id}/chat/{first['chat_id']}")
    assert gone.status_code == 204
    missing = await http.post(f"/flows/{uuid4()}/chat", json={"question": "hi"})
    assert (missing.status_code, missing.json()["code"]) == (404, "flowise_not_found")
