"""Flows made by hand, checked and tested without a session on a real Flowise: over REST, the command line and MCP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, compile_ops
from tests.e2e.people import SharedService, history_of, http_of, make_flow, ok, run_command
from tests.fixtures.editor_flows import add, connect
from tests.fixtures.outside import Outside

SAID = {"turns": ["Hello heron"], "expect": {"contains": ["hello heron"], "excludes": ["[PLACEHOLDER"]}}
UNMET = {"turns": ["Hello heron"], "expect": {"contains": ["an answer that no model gives"], "tools": ["calculator"]}}


async def over(http: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The test once it is over."""
    response = await http.post(path, json=body)
    assert response.status_code == 202, response.text
    view = response.json()
    async with asyncio.timeout(90):
        while view["status"] in ("queued", "running"):
            await asyncio.sleep(0.2)
            view = await ok(await http.get(response.headers["location"]))
    return view


async def test_a_flow_is_validated_and_tested_and_nothing_of_it_stays(
    shared_service: SharedService, flowise_client: FlowiseClient, flowise: FlowiseAccess
) -> None:
    row = await make_flow(flowise_client)
    flows = {found.id async for found in flowise_client.iter_chatflows()}
    service = await shared_service()
    async with http_of(service) as http:
        checked = await ok(await http.post("/flows/validate", json={"flow_data": row.flow_data}))
        assert (checked["validation"]["valid"], checked["validation"]["errors"]) == (True, [])
        broken = row.flow_data.replace('"conversationChain"', '"noSuchNode"')
        wrong = (await ok(await http.post("/flows/validate", json={"flow_data": broken})))["validation"]
        assert (wrong["valid"], wrong["errors"][0]["code"]) == (False, "UNKNOWN_NODE_NAME")
        refused = await http.post("/flows/validate", json={"flow_data": "no flow"})
        assert (refused.status_code, refused.json()["code"]) == (400, "not_a_flow")

        done = await over(http, f"/flows/{row.id}/test", {"tests": [SAID, UNMET], "trials": 2})
        assert [trial["passed"] for trial in done["trials"]] == [True, True, False, False]
        assert (done["status"], done["passed"], done["error"]) == ("done", False, None)
        assert "The tool 'calculator' was not used." in done["trials"][2]["error"]
        trace = await ok(await http.get(f"/tests/{done['id']}/traces/{done['trials'][0]['trace_sha256']}"))
        assert trace["turns"][0]["said"] == "Hello heron"

        sent = await over(http, "/flows/test", {"flow_data": row.flow_data, "tests": [SAID]})
        assert (sent["passed"], sent["chatflow_id"]) == (True, None)
        invalid = await http.post("/flows/test", json={"flow_data": broken})
        assert (invalid.status_code, invalid.json()["code"]) == (422, "invalid_input")
    assert await flowise_client.get_chatflow(row.id) == row
    assert await history_of(flowise, row.id) == []
    assert {found.id async for found in flowise_client.iter_chatflows()} == flows


@pytest.mark.nightly
async def test_the_command_line_says_by_its_exit_code_what_a_flow_showed(
    shared_service: SharedService, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    row, service = await make_flow(flowise_client), await shared_service()
    (tmp_path / "tests.json").write_text(json.dumps([SAID]))
    (tmp_path / "unmet.json").write_text(json.dumps({"tests": [UNMET]}))
    await run_command(service, tmp_path, "export", row.id, "-o", "flow.json")
    assert "Valid: 0 errors" in await run_command(service, tmp_path, "flows", "check", "flow.json")
    assert "1 of 1 passed" in await run_command(
        service, tmp_path, "flows", "test", "flow.json", "--tests", "tests.json"
    )
    assert "1 of 1 passed" in await run_command(service, tmp_path, "flows", "test", row.id, "-q", "Hello heron")
    said = await run_command(service, tmp_path, "flows", "test", row.id, "--tests", "unmet.json", code=3)
    assert "failed: Hello heron" in said
    (tmp_path / "flow.json").write_text((tmp_path / "flow.json").read_text().replace("conversationChain", "noSuchNode"))
    assert "Not valid" in await run_command(service, tmp_path, "flows", "check", "flow.json", code=3)
    await run_command(service, tmp_path, "flows", "check", "no-such-file", code=1)


async def test_a_test_of_a_flow_that_acts_calls_nothing_unless_it_is_to(
    shared_service: SharedService, flowise_client: FlowiseClient, schemas: Schemas
) -> None:
    with Outside() as outside:
        ops: list[PatchOp] = [
            add("startAgentflow"),
            add("httpAgentflow", method="POST", url=f"{outside.endpoint}/orders"),
            add("directReplyAgentflow", directReplyMessage="{{ httpAgentflow_0.output.http.data.order.id }}"),
            connect("startAgentflow_0", "httpAgentflow_0"),
            connect("httpAgentflow_0", "directReplyAgentflow_0"),
        ]
        text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
        row = await flowise_client.create_chatflow(ChatflowCreate(name="acts", flow_data=text, type="AGENTFLOW"))
        flows = {found.id async for found in flowise_client.iter_chatflows()}
        test: dict[str, Any] = {"turns": ["two lamps"], "answers": {"httpAgentflow_0": {"order": {"id": "A-7"}}}}
        test["expect"] = {"contains": ["A-7"]}
        service = await shared_service()
        async with http_of(service) as http:
            done = await over(http, f"/flows/{row.id}/test", {"tests": [test], "ways": True})
            sent = await over(http, "/flows/test", {"flow_data": text, "tests": [test]})
            assert outside.called == []
            real = await over(http, f"/flows/{row.id}/test", {"tests": [test], "real": True})
    assert (done["passed"], done["chatflow_id"], sent["passed"]) == (True, row.id, True)
    assert done["trials"][0]["simulated"] == [f"POST {outside.endpoint}/orders"]
    assert any("answers with an error" in line for line in done["ways"])
    assert (done["summary"]["passed"], done["summary"]["questions"]) == (2, 2)
    assert (real["passed"], real["trials"][0]["answer"], outside.called) == (False, "REAL", ["POST /orders"])
    assert {found.id async for found in flowise_client.iter_chatflows()} == flows


async def test_only_an_address_that_a_person_names_is_called(
    shared_service: SharedService, flowise_client: FlowiseClient, schemas: Schemas
) -> None:
    with Outside() as named, Outside() as other:
        ops: list[PatchOp] = [
            add("startAgentflow"),
            add("httpAgentflow", method="GET", url=f"{other.endpoint}/stock"),
            add("httpAgentflow", 1, method="POST", url=f"{named.endpoint}/orders"),
            add("httpAgentflow", 2, method="POST", url=f"{other.endpoint}/mails"),
            add("directReplyAgentflow", directReplyMessage="{{ httpAgentflow_1.output.http.data.order.id }}"),
            connect("startAgentflow_0", "httpAgentflow_0"),
            connect("httpAgentflow_0", "httpAgentflow_1"),
            connect("httpAgentflow_1", "httpAgentflow_2"),
            connect("httpAgentflow_2", "directReplyAgentflow_0"),
        ]
        text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
        row = await flowise_client.create_chatflow(ChatflowCreate(name="acts", flow_data=text, type="AGENTFLOW"))
        body: dict[str, Any] = {"tests": [{"turns": ["two lamps"], "expect": {"contains": ["REAL"]}}]}
        service = await shared_service()
        async with http_of(service) as http:
            done = await over(http, f"/flows/{row.id}/test", {**body, "real": [f"{named.endpoint}/"]})
            for wrong in ("https://nobody.example", f"{named.endpoint}/orders", "nobody"):
                refused = await http.post(f"/flows/{row.id}/test", json={**body, "real": [wrong]})
                assert refused.status_code == 422, wrong
    (trial,) = done["trials"]
    assert (done["passed"], trial["error"], trial["answer"]) == (True, "", "REAL")
    assert trial["called"] == [f"POST {named.endpoint}/orders"]
    assert trial["simulated"] == [f"GET {other.endpoint}/stock", f"POST {other.endpoint}/mails"]
    assert (named.called, other.called) == (["POST /orders"], [])
