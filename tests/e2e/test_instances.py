"""Two real Flowise servers: a session works with its own one only, and flows go from one to the other."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from tests.e2e.people import MakeService, answer, events_of, http_of, make_flow, nodes_of, ok, run_command, start
from tests.e2e.scripted import COLDER, REQUIREMENT, SUPPORT, change, model_environment, script

pytestmark = pytest.mark.nightly

#: Nobody listens there; on a port that was free a moment ago somebody may.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def prod_credentials(second_flowise: FlowiseAccess) -> dict[str, str]:
    """The second server's credentials, type -> id: other ids than on the first; one has another name, too."""
    wanted = {"openAIApi": "Key of production", "serpApi": "stand-in serpApi"}
    headers = {"Authorization": f"Bearer {second_flowise.api_key.get_secret_value()}"}
    ids: dict[str, str] = {}
    with httpx2.Client(base_url=f"{second_flowise.endpoint}/api/v1", headers=headers, trust_env=False) as http:
        for row in http.get("/credentials").raise_for_status().json():
            http.delete(f"/credentials/{row['id']}").raise_for_status()
        for type_, name in wanted.items():
            body = {
                "id": str(uuid4()),
                "name": name,
                "credentialName": type_,
                "plainDataObj": {f"{type_}Key": "stand-in"},
            }
            ids[type_] = http.post("/credentials", json=body).raise_for_status().json()["id"]
    return ids


@pytest.fixture
async def prod(second_flowise: FlowiseAccess) -> AsyncIterator[FlowiseClient]:
    """A client of the second server; its chatflows are deleted after the test."""
    async with FlowiseClient(second_flowise.endpoint, second_flowise.api_key) as client:
        yield client
        for row in [row async for row in client.iter_chatflows()]:
            await client.delete_chatflow(row.id)


def instances(**servers: FlowiseAccess | None) -> str:
    """`FLOWISE_INSTANCES`; None is a server that is not there."""
    return json.dumps(
        [
            {"id": id_, "endpoint": access.endpoint, "api_key": access.api_key.get_secret_value()}
            if access
            else {"id": id_, "endpoint": NOWHERE, "api_key": "none"}
            for id_, access in servers.items()
        ]
    )


async def test_p69_the_sessions_instance_serves_schemas_credentials_reads_writes_tests_and_rollback(
    make_service: MakeService,
    second_flowise: FlowiseAccess,
    prod_credentials: dict[str, str],
    prod: FlowiseClient,
    standin: ModelStandIn,
) -> None:
    """The default instance does not exist, so whatever went there instead would fail."""
    script(standin, SUPPORT, when=REQUIREMENT)
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    servers = instances(dev=None, prod=second_flowise)
    service = make_service(FLOWISE_INSTANCES=servers, **model_environment(standin))
    await service.start()
    async with http_of(service) as http:
        unknown = await http.post("/sessions", json={"requirement": "A chatbot", "flowise_instance_id": "staging"})
        assert unknown.status_code == 422
        assert "dev, prod" in unknown.json()["hint"]

        view = await start(http, REQUIREMENT, flowise_instance_id="prod")
        view = await answer(http, view, action="approve")
        assert view["interrupt"]["reason"] == "tests_passed", view["interrupt"]["message"]
        made = await prod.get_chatflow(view["chatflow_id"])
        assert nodes_of(made)["chatOpenAI_0"]["data"]["credential"] == prod_credentials["openAIApi"]
        view = await answer(http, view, action="accept")
        assert (view["instance"], view["chatflow_url"]) == ("prod", f"{second_flowise.endpoint}/canvas/{made.id}")

        made = await prod.get_chatflow(made.id)
        view = await start(http, COLDER, target=made.name, flowise_instance_id="prod")
        view = await answer(http, view, action="approve")
        draft = await prod.get_chatflow(view["interrupt"]["data"]["draft"]["id"])
        assert _temperature(draft) == "0.2"
        assert await prod.get_chatflow(made.id) == made
        view = await answer(http, view, action="accept")
        assert _temperature(await prod.get_chatflow(made.id)) == "0.2"

        path = f"/sessions/{view['thread_id']}"
        await ok(await http.post(f"{path}/rollback?version=v1.0"))
        assert (await prod.get_chatflow(made.id)).flow_data == made.flow_data
        after = await ok(await http.get(path))
        assert after["outcome"] == "rolled_back"
        writes = (await ok(await http.get(f"{path}/events?type=write")))["events"]
        assert writes[-1]["data"]["version"] == "v1.0"
        await ok(await http.post(f"{path}/rollback?version=v2.0"))
        assert (await ok(await http.get(path)))["outcome"] == "accepted"

        listed = (await ok(await http.get("/instances")))["instances"]
        assert [(item["id"], item["default"], item["state"]) for item in listed] == [
            ("dev", True, "unavailable"),
            ("prod", False, "ok"),
        ]
        assert listed[1]["nodes"] > 200
        assert listed[1]["drift"]["differs"] is False


async def test_p69_a_flow_goes_to_production_with_the_credentials_that_are_there(
    make_service: MakeService,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    second_flowise: FlowiseAccess,
    prod_credentials: dict[str, str],
    prod: FlowiseClient,
    tmp_path: Path,
) -> None:
    row = await make_flow(flowise_client, "Tool Agent", bind=("openAIApi", "serpApi"))
    servers = instances(dev=flowise, prod=second_flowise)
    service = make_service(FLOWISE_INSTANCES=servers)
    await service.start()
    async with http_of(service) as http:
        promote = f"/flows/{row.id}/promote"
        done = await ok(await http.post(promote, json={"target": "prod", "name": "The real one"}))
        assert (done["instance"], done["created"], done["name"]) == ("prod", True, "The real one")
        assert {item["type"]: item["by"] for item in done["credentials"]} == {"openAIApi": "type", "serpApi": "name"}
        there = await prod.get_chatflow(done["chatflow_id"])
        for type_, node in (("openAIApi", "chatOpenAI_0"), ("serpApi", "serpAPI_0")):
            assert nodes_of(there)[node]["data"]["credential"] == prod_credentials[type_]
        assert _without_credentials(there) == _without_credentials(row)
        assert (there.deployed, there.category) == (False, row.category)
        assert (await prod.predict(there.id, "What is 6*7?", session_id="p")).answer

        changed = await flowise_client.update_chatflow(row.id, flow_data=row.flow_data.replace('"mine"', '"ours"'))
        over = await ok(await http.post(promote, json={"target": "prod", "target_chatflow_id": there.id}))
        assert (over["created"], over["chatflow_id"]) == (False, there.id)
        assert _without_credentials(await prod.get_chatflow(there.id)) == _without_credentials(changed)
        session = f"/sessions/{over['session_id']}"
        versions = (await ok(await http.get(f"{session}/versions")))["versions"]
        assert [item["reason"] for item in versions] == ["before_promotion", "promotion"]
        view = await ok(await http.get(session))
        assert (view["status"], view["outcome"], view["operation_mode"]) == ("completed", "accepted", "promote")
        assert [event["type"] for event in await events_of(http, view)] == ["write", "done"]
        await ok(await http.post(f"{session}/rollback?version=v1.0"))
        assert (await prod.get_chatflow(there.id)).flow_data == there.flow_data

        lacking = await make_flow(flowise_client, "Conversational Agent", bind=("openAIApi", "serpApi"))
        anthropic = lacking.flow_data.replace(flowise.credentials["serpApi"], flowise.credentials["anthropicApi"])
        await flowise_client.update_chatflow(lacking.id, flow_data=anthropic)
        refused = await http.post(f"/flows/{lacking.id}/promote", json={"target": "prod"})
        assert refused.status_code == 422
        assert "'stand-in anthropicApi' (anthropicApi)" in refused.json()["detail"]
        assert len([item async for item in prod.iter_chatflows()]) == 1

        await run_command(service, tmp_path, "export", there.id, "-o", "before.json", "--instance", "prod")
        said = await run_command(service, tmp_path, "promote", row.id, "--to", "prod", "--onto", there.id, "--yes")
        assert "openAIApi: 'stand-in openAIApi' -> 'Key of production' (by type)" in said
        assert _without_credentials(await prod.get_chatflow(there.id)) == _without_credentials(changed)
        await run_command(service, tmp_path, "import", "before.json", "--onto", there.id, "--yes", "--instance", "prod")
        assert json.loads((await prod.get_chatflow(there.id)).flow_data) == json.loads(there.flow_data)


def _temperature(row: Chatflow) -> str:
    return str(nodes_of(row)["chatOpenAI_0"]["data"]["inputs"]["temperature"])


def _without_credentials(row: Chatflow) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(row.flow_data)
    for node in document["nodes"]:
        node["data"].pop("credential", None)
    return document
