"""The committed OpenAPI document."""

from pathlib import Path

from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.api.openapi import rendered
from flowise_dev_agent.settings import Settings

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


def test_committed_document_is_the_one_the_service_serves():
    expected = rendered(create_app(Settings()))
    assert COMMITTED.read_text(encoding="utf-8") == expected, "run `make openapi` and commit docs/openapi.json"


def test_operation_ids_are_names_that_occur_once():
    document = create_app(Settings()).openapi()
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() and name == name.lower() for name in names)
    assert {"start_session", "resume_session", "get_session", "stream_session"} <= set(names)
