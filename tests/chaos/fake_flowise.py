"""A Flowise of which only what a session needs is there: in memory, over real HTTP, with the committed node schemas.

It stands in for the real one where dozens of sessions are killed and cut off at once; what a real server does to a flow
is the matter of tests/e2e.
"""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.knowledge.snapshot import SNAPSHOT_FILE, schemas_dir

API = "/api/v1"
CREDENTIALS = [{"id": str(uuid4()), "name": "OpenAI", "credentialName": "openAIApi"}]


class FakeFlowise(BackgroundServer):
    """Chatflows by id in `flows`; `created` counts the rows ever made. Answers take `latency` seconds."""

    def __init__(self, *, api_key: str, latency: float = 0.1) -> None:
        super().__init__("fake Flowise")
        self.flows: dict[str, dict[str, Any]] = {}
        self.created = 0
        self._authorization = f"Bearer {api_key}"
        self._latency = latency
        self._ticks = itertools.count()
        self._nodes = (schemas_dir() / SNAPSHOT_FILE).read_bytes()

    @property
    def port(self) -> int:
        return self._port

    def app(self) -> Starlette:
        routes = [
            Route(f"{API}/ping", lambda _: PlainTextResponse("pong")),
            Route(f"{API}/version", lambda _: JSONResponse({"version": "3.1.4"})),
            Route(f"{API}/nodes", self._list_nodes),
            Route(f"{API}/credentials", lambda _: JSONResponse(CREDENTIALS)),
            Route(f"{API}/node-load-method/{{name}}", lambda _: JSONResponse([]), methods=["POST"]),
            Route(f"{API}/chatflows", self._list, methods=["GET"]),
            Route(f"{API}/chatflows", self._create, methods=["POST"]),
            Route(f"{API}/chatflows/{{id}}", self._one, methods=["GET", "PUT", "DELETE"]),
            Route(f"{API}/prediction/{{id}}", self._predict, methods=["POST"]),
            Route(f"{API}/chatmessage/{{id}}", lambda _: JSONResponse({"affected": 0}), methods=["DELETE"]),
        ]
        return Starlette(routes=routes)

    def add(self, name: str, flow_data: str) -> str:
        """A chatflow that a person has made; its id."""
        id_, now = str(uuid4()), self._now()
        row: dict[str, Any] = {"id": id_, "name": name, "flowData": flow_data, "type": "CHATFLOW", "deployed": True}
        self.flows[id_] = row | {"isPublic": False, "createdDate": now, "updatedDate": now}
        return id_

    async def _list_nodes(self, request: Request) -> Response:
        return Response(self._nodes, media_type="application/json")

    async def _list(self, request: Request) -> Response:
        if request.headers.get("authorization") != self._authorization:
            return JSONResponse({"message": "Unauthorized Access"}, 401)
        page, limit = int(request.query_params["page"]), int(request.query_params["limit"])
        rows = sorted(self.flows.values(), key=lambda row: row["updatedDate"], reverse=True)
        return JSONResponse({"data": rows[(page - 1) * limit : page * limit], "total": len(rows)})

    async def _create(self, request: Request) -> Response:
        row = {"deployed": False, "isPublic": False, **await request.json(), "id": str(uuid4())}
        row["createdDate"] = row["updatedDate"] = self._now()
        self.flows[row["id"]] = row
        self.created += 1
        await asyncio.sleep(self._latency)
        return JSONResponse(row)

    async def _one(self, request: Request) -> Response:
        row = self.flows.get(request.path_params["id"])
        if row is None:
            return JSONResponse({"statusCode": 404, "success": False, "message": "Chatflow not found"}, 404)
        if request.method == "PUT":
            row |= await request.json()
            row["updatedDate"] = self._now()
        elif request.method == "DELETE":
            del self.flows[row["id"]]
        return JSONResponse(row)

    async def _predict(self, request: Request) -> Response:
        body = await request.json()
        await asyncio.sleep(self._latency)
        return JSONResponse({"text": f"An answer to: {body['question']}", "chatId": body["chatId"]})

    def _now(self) -> str:
        # A clock that never stands still, as the real one does not between two rows.
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=next(self._ticks))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
