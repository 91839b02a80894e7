"""The committed OpenAPI document."""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.api.openapi import LINKS, rendered
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.settings import Settings

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    """The document that the service serves, examples included."""
    return create_app(Settings()).openapi()


def test_committed_document_is_the_one_the_service_serves():
    expected = rendered(create_app(Settings()))
    assert COMMITTED.read_text(encoding="utf-8") == expected, "run `make openapi` and commit docs/openapi.json"


def test_operation_ids_are_names_that_occur_once():
    names = [operation["operationId"] for path in document()["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() and name == name.lower() for name in names)
    assert {"start_session", "resume_session", "get_session", "stream_session"} <= set(names)


def of_operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for item in document()["paths"].values():
        for operation in item.values():
            yield operation["operationId"], operation


def resolved(response: dict[str, Any]) -> dict[str, Any]:
    name = response.get("$ref", "").rpartition("/")[2]
    return document()["components"]["responses"][name] if name else response


def fits(value: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator({**schema, "components": document()["components"]}).validate(value)


def test_no_parameter_is_said_to_take_null() -> None:
    for name, operation in of_operations():
        for one in operation.get("parameters", []):
            assert not any(kind.get("type") == "null" for kind in one["schema"].get("anyOf", [])), (name, one["name"])


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        ({"response": "yes"}, True),
        ({"response": "yes", "answer": None}, True),
        ({"answer": {"action": "approve"}, "interrupt_id": "a"}, True),
        ({"answer": {"action": "approve"}}, False),
        ({"answer": {"action": "approve"}, "response": "yes"}, False),
        ({"answer": {"action": "approve"}, "interrupt_id": "a", "response": "yes"}, False),
        ({"interrupt_id": "a"}, False),
    ],
)
def test_the_schema_of_an_answer_takes_what_the_route_takes(body: dict[str, Any], is_taken: bool) -> None:
    schema = {"$ref": "#/components/schemas/ResumeSession", "components": document()["components"]}
    assert Draft202012Validator(schema).is_valid(body) is is_taken
    with nullcontext() if is_taken else pytest.raises(ValidationError):
        ResumeSession.model_validate(body)


def test_every_operation_has_an_example_of_its_request_and_its_response_that_fits() -> None:
    for name, operation in of_operations():
        required = [one for one in operation.get("parameters", []) if one["required"]]
        assert [one["name"] for one in required if "example" not in one] == [], name
        for one in operation.get("parameters", []):
            if "example" in one:
                fits(one["example"], one["schema"])
        for content in operation.get("requestBody", {}).get("content", {}).values():
            fits(content["example"], content["schema"])
        shown = [
            content
            for response in map(resolved, operation["responses"].values())
            for content in response.get("content", {}).values()
            if "example" in content
        ]
        # A stream of audit rows has two media types, with an example for each.
        assert shown or "204" in operation["responses"], name
        for content in shown:
            fits(content["example"], content["schema"])


def test_every_error_response_lists_its_codes() -> None:
    for name, operation in of_operations():
        for status, response in operation["responses"].items():
            if status < "400":
                continue
            found = resolved(response)
            schema = found["content"]["application/problem+json"]["schema"]
            codes = schema["allOf"][1]["properties"]["code"]["enum"]
            assert codes, (name, status)
            assert all(f"`{code}`" in found["description"] for code in codes)


def test_links_lead_to_operations_and_parameters_that_exist() -> None:
    operations = dict(of_operations())
    for source, links in LINKS.items():
        for _, param, targets in links:
            for target in targets:
                names = {one["name"] for one in operations[target]["parameters"] if one["in"] == "path"}
                assert param in names, (source, target)
