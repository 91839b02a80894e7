"""Credentials and uploaded files of a flow that goes to another server."""

import json

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, Credential
from flowise_dev_agent.flows.credential_mapping import map_credentials, refuse_missing_files

DEV_OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
DEV_SERP = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c002"
FLOW = json.dumps({"nodes": [{"id": "a", "data": {"credential": DEV_OPENAI}}], "edges": []})


def credential(id_: str, name: str, type_: str = "openAIApi") -> Credential:
    return Credential(id=id_, name=name, credential_name=type_)


def test_a_credential_is_mapped_by_name_and_type_before_by_type_alone() -> None:
    source = [credential(DEV_OPENAI, "main")]
    text, (item,) = map_credentials(FLOW, source, [credential("x", "other"), credential("y", "main")], where="prod")
    assert (json.loads(text)["nodes"][0]["data"]["credential"], item.by) == ("y", "name")
    text, (item,) = map_credentials(FLOW, source, [credential("x", "other")], where="prod")
    assert (json.loads(text)["nodes"][0]["data"]["credential"], item.by) == ("x", "type")


def test_credentials_without_a_counterpart_are_named_and_unused_ones_do_not_matter() -> None:
    source = [credential(DEV_OPENAI, "main"), credential(DEV_SERP, "search", "serpApi")]
    with pytest.raises(InvalidInputError, match=r"'main' \(openAIApi\)"):
        map_credentials(FLOW, source, [credential("x", "a"), credential("y", "b")], where="prod")
    map_credentials(FLOW, source, [credential("x", "a")], where="prod")


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
