"""Import, apply, promote and export over HTTP: shapes, waiting, limits, problems."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.api.middleware import carries_flow
from flowise_dev_agent.api.problems import MAX_BODY_BYTES, MAX_FLOW_BODY_BYTES
from flowise_dev_agent.errors import StaleBaseError, WriteFailedError
from flowise_dev_agent.patch import SetLabel
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, ImportFlow, PromoteFlow
from tests.unit.api.service_double import WRITE, EngineDouble, written

FLOW = "aaaaaaaa-0000-4000-8000-000000000001"
FLOW_DATA = '{"nodes":[],"edges":[]}'
OP = {"op_type": "SetLabel", "node_id": "a", "label": "b"}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("/flows/import", {"flow_data": FLOW_DATA}),
    (f"/flows/{FLOW}/apply", {"ops": [OP]}),
    (f"/flows/{FLOW}/promote", {"target": "prod"}),
]


@pytest.mark.parametrize(("path", "body"), WRITES)
async def test_a_write_that_goes_on_is_202_and_names_its_session(
    http: httpx2.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    response = await http.post(path, json=body)
    assert (response.status_code, response.json()["status"]) == (202, "in_progress")
    assert response.headers["location"] == f"/sessions/{WRITE}"


@pytest.mark.parametrize(("path", "body"), WRITES)
async def test_a_write_that_ends_while_it_is_waited_for_is_200(
    http: httpx2.AsyncClient, engine: EngineDouble, path: str, body: dict[str, Any]
) -> None:
    engine.service.settle(WRITE, "completed")
    engine.flow_writer.ends = written("completed")
    response = await http.post(f"{path}?wait=5", json=body)
    assert (response.status_code, response.json()["status"]) == (200, "completed")
    assert response.json()["session_id"] == str(WRITE)
    assert engine.service.calls == [("wait", (5.0,))]


@pytest.mark.parametrize(("path", "body"), WRITES)
async def test_a_dry_run_is_200_without_a_session(
    http: httpx2.AsyncClient, engine: EngineDouble, path: str, body: dict[str, Any]
) -> None:
    response = await http.post(f"{path}?wait=5", json={**body, "dry_run": True})
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["session_id"]) == ("checked", None)
    assert "location" not in response.headers
    assert engine.service.calls == []


@pytest.mark.parametrize(("path", "body"), WRITES)
@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [(WriteFailedError("Nothing was written."), 502, "write_failed"), (StaleBaseError("Changed."), 409, "stale_base")],
)
async def test_p09_a_failed_write_is_a_problem(
    http: httpx2.AsyncClient,
    engine: EngineDouble,
    path: str,
    body: dict[str, Any],
    failure: WriteFailedError,
    status: int,
    code: str,
) -> None:
    failure.details = {"written": "no", "session_id": str(WRITE)}
    engine.service.settle(WRITE, "error")
    engine.flow_writer.ends = failure
    response = await http.post(f"{path}?wait=5", json=body)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.json()["details"] == failure.details


async def test_bodies_instances_and_keys_reach_the_writer(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    key = {"Idempotency-Key": "k"}
    there = uuid4()
    imported = {"flow_data": FLOW_DATA, "name": "Bot", "type": "AGENTFLOW"}
    await http.post("/flows/import?instance=dev", json=imported, headers=key)
    await http.post(f"/flows/{FLOW}/apply?instance=dev", json={"ops": [OP], "base_sha256": "ab" * 32}, headers=key)
    promoted = {"source": "dev", "target": "prod", "target_chatflow_id": str(there)}
    await http.post(f"/flows/{FLOW}/promote", json=promoted, headers=key)
    assert engine.flow_writer.calls == [
        ("import", "dev", "k", ImportFlow(flow_data=FLOW_DATA, name="Bot", type="AGENTFLOW")),
        ("apply", FLOW, "dev", "k", ApplyToFlow(ops=[SetLabel(node_id="a", label="b")], base_sha256="ab" * 32)),
        ("promote", FLOW, "k", PromoteFlow(source="dev", target="prod", target_chatflow_id=there)),
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/flows/import", {}),
        ("/flows/import", {"flow_data": FLOW_DATA, "ops": [OP]}),
        ("/flows/import", {"flow_data": FLOW_DATA, "type": "CHATBOT"}),
        ("/flows/import", {"flow_data": FLOW_DATA, "name": " "}),
        ("/flows/import", {"flow_data": {"nodes": [], "edges": []}}),
        ("/flows/import", {"flow_data": FLOW_DATA, "deployed": True}),
        ("/flows/not-an-id/apply", {"ops": [OP]}),
        (f"/flows/{FLOW}/apply", {"ops": []}),
        (f"/flows/{FLOW}/apply", {"ops": [{**OP, "op_type": "Rename"}]}),
        (f"/flows/{FLOW}/apply", {"ops": [OP], "base_sha256": "abc"}),
        (f"/flows/{FLOW}/apply", {"ops": [OP], "name": "Other"}),
        ("/flows/not-an-id/promote", {"target": "prod"}),
        (f"/flows/{FLOW}/promote", {}),
        (f"/flows/{FLOW}/promote", {"target": ""}),
        (f"/flows/{FLOW}/promote", {"target": "prod", "target_chatflow_id": "a/b"}),
        (f"/flows/{FLOW}/promote", {"target": "prod", "deploy": True}),
        (f"/flows/{FLOW}/promote", {"target": "prod", "name": "Other", "target_chatflow_id": FLOW}),
    ],
)
async def test_p64_odd_writes_are_refused_before_anything_is_asked(
    http: httpx2.AsyncClient, engine: EngineDouble, path: str, body: dict[str, Any]
) -> None:
    response = await http.post(path, json=body)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert engine.flow_writer.calls == []


def test_every_route_that_takes_a_flow_or_ops_takes_a_large_body() -> None:
    document = json.loads(Path("docs/openapi.json").read_text("utf-8"))
    for path, methods in document["paths"].items():
        for told in methods.values():
            names = re.findall(r'schemas/(\w+)"', json.dumps(told.get("requestBody", {})))
            fields = {field for name in names for field in document["components"]["schemas"][name]["properties"]}
            if fields & {"flow_data", "ops"} and path.startswith(("/flows", "/patterns")):
                assert carries_flow(path), path


async def test_a_body_with_a_flow_may_be_larger_than_others(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    large = json.dumps({"flow_data": "x" * MAX_BODY_BYTES})
    sent = {"Content-Type": "application/json"}
    for path in ("/flows/import", f"/flows/{FLOW}/apply"):
        assert (await http.post(path, content=large, headers=sent)).status_code == 202
        too_large = await http.post(path, content=b" " * (MAX_FLOW_BODY_BYTES + 1), headers=sent)
        assert (too_large.status_code, too_large.json()["code"]) == (413, "body_too_large")
    assert (await http.post(f"/flows/{FLOW}/promote", content=large, headers=sent)).status_code == 413
    assert len(engine.flow_writer.calls) == 2
