"""The OpenAPI document: stable operation ids, the shared problem components and the key."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from flowise_dev_agent.api import problems
from flowise_dev_agent.contracts.process_conversation import ChatFrame


def operation_id(route: APIRoute) -> str:
    """The name of the route's function: clients generated from the document keep it when a path changes."""
    return route.name


def complete(app: FastAPI) -> None:
    """Add to the generated document what FastAPI does not know of."""
    generate = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = generate()
        shared, parts = problems.components(), document["components"]
        parts["schemas"].update(shared["schemas"])
        frames = TypeAdapter[ChatFrame](ChatFrame).json_schema(ref_template="#/components/schemas/{model}")
        parts["schemas"].update({**frames.pop("$defs"), "ChatFrame": frames})
        parts["responses"] = shared["responses"]
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "AGENT_API_KEY"}}
        for item in document["paths"].values():
            for operation in item.values():
                _complete(operation)
        document["security"] = [{"key": []}]
        return document

    app.openapi = openapi


def _complete(operation: dict[str, Any]) -> None:
    """What holds for every operation: a body may be unreadable or too large, a stream has frames."""
    if "requestBody" in operation:
        also = {str(status): response for status, response in problems.declared(400, 413).items()}
        operation["responses"] = also | operation["responses"]
    if any(one["name"] == "if-match" for one in operation.get("parameters", [])):
        operation["responses"]["412"] = problems.declared(412)[412]
    for response in operation["responses"].values():
        if (frames := response.get("content", {}).get("text/event-stream")) is not None:
            frames["schema"] = _frame(frames["schema"])


def _frame(data: dict[str, Any]) -> dict[str, Any]:
    """A server-sent event whose `data` is this as JSON."""
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    properties = {"event": {"type": "string"}, "id": {"type": "string"}, "data": text}
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


def rendered(app: FastAPI) -> str:
    """The document as it is committed in `docs/openapi.json`: sorted keys, so that a diff shows only what changed."""
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
