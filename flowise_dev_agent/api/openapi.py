"""The OpenAPI document: stable operation ids, the shared problem components and the key."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from pydantic import TypeAdapter

from flowise_dev_agent.api.responses import add_codes, components, illustrate
from flowise_dev_agent.schemas.process_conversation import ChatFrame

_OF_SESSION: Final = (
    *("get_session", "get_session_summary", "get_session_change", "get_session_preview", "get_session_design"),
    *("list_session_turns", "list_session_events", "list_session_decisions", "list_session_artifacts"),
    *("list_session_versions", "list_session_deliveries", "rename_session", "cancel_session", "delete_session"),
)
_OF_FLOW: Final = (
    *("get_flow_graph", "get_flow_summary", "get_flow_conversation", "export_flow", "flow_ops"),
    *("list_flow_versions", "list_numbered_versions"),
)
#: By operation: what of its response is which parameter of which other operations.
LINKS: Final[Mapping[str, Sequence[tuple[str, str, Sequence[str]]]]] = {
    "start_session": [("$response.body#/thread_id", "session_id", _OF_SESSION)],
    "list_sessions": [("$response.body#/sessions/0/thread_id", "session_id", _OF_SESSION)],
    "list_session_artifacts": [("$response.body#/items/0/id", "artifact_id", ["get_session_artifact"])],
    "import_flow": [("$response.body#/session_id", "session_id", ["get_session", "rollback_session"])],
    "restore_version": [("$response.body#/session_id", "session_id", ["get_session", "rollback_session"])],
    "apply_to_flow": [("$response.body#/session_id", "session_id", ["get_session", "rollback_session"])],
    "find_flows": [("$response.body#/flows/0/id", "chatflow_id", _OF_FLOW)],
    "start_flow_test": [("$response.body#/id", "test_id", ["get_flow_test"])],
    "start_flow_text_test": [("$response.body#/id", "test_id", ["get_flow_test"])],
    "add_attachment": [("$response.body#/id", "attachment_id", ["get_attachment", "delete_attachment"])],
    "list_nodes": [("$response.body#/nodes/0/name", "name", ["get_node"])],
    "import_patterns": [("$response.body#/imported/0", "pattern_id", ["delete_pattern"])],
    "create_key": [("$response.body#/id", "key_id", ["rotate_key", "revoke_key"])],
    "list_keys": [("$response.body#/keys/0/id", "key_id", ["rotate_key", "revoke_key"])],
}


_JSON: Final = frozenset({"application/json", "text/event-stream"})


def complete(app: FastAPI) -> None:
    """Add to the generated document what FastAPI does not know of."""
    generate = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = generate()
        parts = document["components"]
        frames = TypeAdapter[ChatFrame](ChatFrame).json_schema(ref_template="#/components/schemas/{model}")
        parts["schemas"].update({**frames.pop("$defs"), "ChatFrame": frames})
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "AGENT_API_KEY"}}
        for item in document["paths"].values():
            for operation in item.values():
                _complete(operation)
        shared = components()
        parts["schemas"].update(shared["schemas"])
        parts["responses"] = shared["responses"]
        document["security"] = [{"key": []}]
        return document

    app.openapi = openapi


def _complete(operation: dict[str, Any]) -> None:
    """Add the parts common to all operations: errors of bodies, frames of streams, links, examples."""
    if "requestBody" in operation:
        add_codes(operation["responses"], "bad_request", "body_too_large")
    if any(one["name"] == "if-match" for one in operation.get("parameters", [])):
        add_codes(operation["responses"], "precondition_failed")
    for parameter in operation.get("parameters", []):
        parameter["schema"] = _never_null(parameter["schema"])
    for response in operation["responses"].values():
        if (frames := response.get("content", {}).get("text/event-stream")) is not None:
            frames["schema"] = _frame(frames["schema"])
    for found, param, targets in LINKS.get(operation["operationId"], ()):
        for status in operation["responses"].keys() & {"200", "201", "202"}:
            operation["responses"][status]["links"] = operation["responses"][status].get("links", {}) | {
                target: {"operationId": target, "parameters": {param: found}} for target in targets
            }
    if example := _examples().get(operation["operationId"]):
        _illustrate(operation, example)


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: it is left out, and null is a word like any other."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return {key: value for key, value in schema.items() if key != "anyOf"} | kinds[0]
    return schema | {"anyOf": kinds} if kinds else schema


def _illustrate(operation: dict[str, Any], example: dict[str, Any]) -> None:
    """Put a request and its response into an operation."""
    given = example["parameters"]
    for parameter in operation.get("parameters", []):
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    if "body" in example:
        for content in operation["requestBody"]["content"].values():
            content["example"] = example["body"]
    responses = operation["responses"]
    if "response" not in example:
        return
    status, shown = str(example["status"]), {"example": example["response"]}
    if "$ref" in responses[status]:
        # A problem, which several operations share.
        illustrate(responses[status]["$ref"], example["response"])
        return
    contents = responses[status]["content"]
    # A text is of the first type that is one: the others have to be asked for.
    texts = [name for name in contents if name not in _JSON]
    for name in texts[:1] if isinstance(example["response"], str) else contents.keys() & _JSON:
        contents[name].update(shown)


@cache
def _examples() -> dict[str, Any]:
    """Recorded responses of the service by operation (`tests/e2e/test_examples.py` records them)."""
    return json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))


def _frame(data: dict[str, Any]) -> dict[str, Any]:
    """A server-sent event whose `data` is this as JSON."""
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    properties = {"event": {"type": "string"}, "id": {"type": "string"}, "data": text}
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


def rendered(app: FastAPI) -> str:
    """Text of the committed `docs/openapi.json`: keys sorted for readable diffs, without the examples of
    `examples.json`."""
    document = _without_examples(app.openapi())
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _without_examples(value: Any, *, keys_are_names: bool = False) -> Any:
    """`value` without the keys `example` and `examples`; below `properties` and `schemas` a key is a name."""
    if isinstance(value, list):
        return [_without_examples(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_examples(item, keys_are_names=key in {"properties", "schemas"} and not keys_are_names)
        for key, item in value.items()
        if keys_are_names or key not in {"example", "examples"}
    }
