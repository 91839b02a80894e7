"""The OpenAPI document: stable operation ids, the shared problem components and the key."""

import json
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

    def openapi() -> dict[str, Any]:
        document = generate()
        shared, parts = problems.components(), document["components"]
        parts["schemas"].update(shared["schemas"])
        frames = TypeAdapter[ChatFrame](ChatFrame).json_schema(ref_template="#/components/schemas/{model}")
        parts["schemas"].update({**frames.pop("$defs"), "ChatFrame": frames})
        parts["responses"] = shared["responses"]
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "AGENT_API_KEY"}}
        document["security"] = [{"key": []}]
        return document

    app.openapi = openapi


def rendered(app: FastAPI) -> str:
    """The document as it is committed in `docs/openapi.json`: sorted keys, so that a diff shows only what changed."""
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
