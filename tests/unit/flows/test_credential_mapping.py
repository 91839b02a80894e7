"""Credentials and uploaded files of a flow that goes to another server."""

import json

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, Credential
from flowise_dev_agent.flows.credential_mapping import bind, map_credentials, map_references, refuse_missing_files
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from tests.unit.patch.test_cases import case

DEV_OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
DEV_SERP = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c002"
FLOW = json.dumps({"nodes": [{"id": "a", "data": {"credential": DEV_OPENAI}}], "edges": []})

SETTINGS = FlowSettings(analytic=json.dumps({"langSmith": {"credentialId": DEV_OPENAI}}))


def credential(id_: str, name: str, type_: str = "openAIApi") -> Credential:
    return Credential(id=id_, name=name, credential_name=type_)


def test_a_credential_is_mapped_by_name_and_type_before_by_type_alone() -> None:
    source = [credential(DEV_OPENAI, "main")]
    text, settings, (item,) = map_credentials(
        FLOW, SETTINGS, source, [credential("x", "other"), credential("y", "main")], where="prod"
    )
    assert (json.loads(text)["nodes"][0]["data"]["credential"], item.by) == ("y", "name")
    assert json.loads(settings.analytic or "") == {"langSmith": {"credentialId": "y"}}
    text, settings, (item,) = map_credentials(FLOW, SETTINGS, source, [credential("x", "other")], where="prod")
    assert (json.loads(text)["nodes"][0]["data"]["credential"], item.by) == ("x", "type")


def test_credentials_without_a_counterpart_are_named_and_unused_ones_do_not_matter() -> None:
    source = [credential(DEV_OPENAI, "main"), credential(DEV_SERP, "search", "serpApi")]
    with pytest.raises(InvalidInputError, match=r"'main' \(openAIApi\)"):
        map_credentials(FLOW, SETTINGS, source, [credential("x", "a"), credential("y", "b")], where="prod")
    map_credentials(FLOW, SETTINGS, source, [credential("x", "a")], where="prod")


def test_a_flow_with_an_uploaded_file_goes_only_where_one_is() -> None:
    row = Chatflow(id="1", name="Files", flow_data=file_flow("a.txt"))
    refuse_missing_files(file_flow("a.txt"), row)
    with pytest.raises(InvalidInputError, match="'File' holds an uploaded file"):
        refuse_missing_files(file_flow("a.txt"), None)
    with pytest.raises(InvalidInputError, match="nothing was written"):
        refuse_missing_files(file_flow("a.txt"), Chatflow(id="1", name="Bot", flow_data=FLOW))


def file_flow(name: str) -> str:
    data = {"id": "f", "label": "File", "inputs": {"txtFile": f'FILE-STORAGE::["{name}"]'}}
    return json.dumps({"nodes": [{"id": "f", "data": data}], "edges": []})


CASE = json.dumps(case("I1-import-without-credentials")["flow_data"])
MAIN, OTHER = (f"11111111-2222-4333-8444-55555555555{number}" for number in range(2))


def _credential_of(text: str) -> str:
    return next(node["data"]["credential"] for node in json.loads(text)["nodes"] if node["id"] == "chatOpenAI_0")


def test_p116_a_flow_from_elsewhere_gets_the_credentials_of_its_server(schemas: Schemas) -> None:
    one, two = credential(MAIN, "main"), credential(OTHER, "other")
    text, (got,) = bind(CASE, schemas, [one], {})
    assert (_credential_of(text), got.by, got.nodes, got.target_name) == (MAIN, "type", ["OpenAI"], "main")
    assert bind(text, schemas, [one, two], {}) == (text, [])
    assert bind(CASE, schemas, [one, two], {}) == (CASE, [])
    for key in ("openAIApi", "chatOpenAI_0"):
        text, (got,) = bind(CASE, schemas, [one, two], {key: OTHER})
        assert (_credential_of(text), got.by) == (OTHER, "request")
    foreign = json.loads(CASE)
    for node in foreign["nodes"]:
        node["data"]["credential"] = DEV_OPENAI
    text, (got,) = bind(json.dumps(foreign), schemas, [one, two], {DEV_OPENAI: OTHER})
    assert _credential_of(text) == OTHER
    kept = json.dumps(foreign).replace(DEV_OPENAI, OTHER)
    text, (got,) = bind(CASE, schemas, [one, two], {}, kept)
    assert (_credential_of(text), got.by) == (OTHER, "node")
    with pytest.raises(InvalidInputError, match="has no credential"):
        bind(CASE, schemas, [one], {"openAIApi": OTHER})


def test_what_a_flow_refers_to_is_found_by_name_where_there_is_one_of_it() -> None:
    text = json.dumps({"selectedTool": DEV_SERP})
    named = {DEV_SERP: "weather"}
    found, (reference,) = map_references(text, named, {"custom tool": {MAIN: "weather"}})
    assert (json.loads(found), reference.name, reference.target_id) == ({"selectedTool": MAIN}, "weather", MAIN)
    assert map_references(text, named, {"custom tool": {MAIN: "weather", OTHER: "weather"}}) == (text, [])
    assert map_references(text, named, {"custom tool": {DEV_SERP: "weather"}}) == (text, [])
