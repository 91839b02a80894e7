"""Every list that the service answers with has an end."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.unit.api.service_double import EngineDouble

#: Compared with the service in `test_openapi.py`: making it takes seconds, in each process and at each collection.
DOCUMENT: Final = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text(encoding="utf-8"))
MOST: Final = 500
#: Lists without pages, and what ends each.
ENDS: Final = {
    "one statement has a LIMIT": {"list_keys", "list_owners", "list_shares", "list_session_deliveries", "get_shared"},
    "an owner has at most 500 patterns": {"export_patterns"},
    "a session has so many files, plans, iterations and artifacts": {
        *("list_attachments", "list_session_turns", "list_session_versions"),
        *("get_session", "get_session_design", "get_session_preview"),
    },
    "a flow has so many nodes": {
        *("compare_flow_versions", "flow_ops", "get_version_graph", "get_shared_version"),
    },
    "a test has at most 10 conversations, each tried at most 10 times": {"get_flow_test"},
    "a trace is cut where it is stored": {"get_session_trace", "get_flow_test_trace"},
    "the settings name them": {"list_certificate_keys", "get_settings", "list_instances", "list_knowledge", "get_info"},
    "what is shown of them is cut": {"get_flow_reach"},
    "Flowise has them": {
        *("list_credentials", "list_credential_types", "list_document_stores", "list_variables", "get_node"),
    },
    "the first gaps are named": {"verify_audit"},
    "a test set has at most 50 tests, of a guard the newest results are shown": {"get_test_set", "get_guard"},
    "there are four scopes": {"get_current_key"},
}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def lists() -> Iterator[tuple[str, dict[str, Any]]]:
    """Operations whose answer has a list, with their parameters by name."""
    for path, item in DOCUMENT["paths"].items():
        content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        answer = resolved(content.get("application/json", {}).get("schema", {}))
        if any(resolved(part).get("type") == "array" for part in answer.get("properties", {}).values()):
            yield path, item["get"]


def limit_of(operation: dict[str, Any]) -> dict[str, Any] | None:
    return next((one["schema"] for one in operation.get("parameters", []) if one["name"] == "limit"), None)


PAGED: Final = {path: limit for path, operation in lists() if (limit := limit_of(operation))}


def test_every_list_has_pages_or_an_end_of_its_own() -> None:
    without = {operation["operationId"] for path, operation in lists() if path not in PAGED}
    assert without == set().union(*ENDS.values())
    assert all(1 == limit["minimum"] <= limit["default"] <= limit["maximum"] <= MOST for limit in PAGED.values())


def _is_needed(parameter: dict[str, Any]) -> bool:
    return parameter["in"] == "query" and parameter.get("required", False)


@pytest.mark.parametrize("path", sorted(PAGED))
async def test_a_page_has_at_least_one_and_at_most_so_many_entries(
    path: str, http: httpx2.AsyncClient, engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in ("artifacts", "audit"):
        monkeypatch.setattr(engine, service, None, raising=False)  # nobody gets that far
    names = {"memory_id": "1", "flowchart_node_id": "plan_v2"}
    id_ = "3a010001-0000-4000-8000-000000000000"
    address = "/".join(names.get(part[1:-1], id_) if part.startswith("{") else part for part in path.split("/"))
    required = {one["name"]: "a" for one in DOCUMENT["paths"][path]["get"].get("parameters", []) if _is_needed(one)}
    for limit in (0, -1, PAGED[path]["maximum"] + 1):
        refused = await http.get(address, params={"limit": limit, **required})
        assert refused.status_code == 422, (limit, refused.text)
        assert [one["pointer"] for one in refused.json()["errors"]] == ["/limit"]
