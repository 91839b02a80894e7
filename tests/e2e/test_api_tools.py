"""An API that a person describes becomes a tool that the real Flowise calls."""

import json
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from tests.e2e.people import SharedService, answer, http_of, ok
from tests.e2e.scripted import AGENT, model_environment, script

QUESTION = "What is the status of ticket 7?"


class TicketApi(BackgroundServer):
    """A little API over HTTP; `called` holds the requests so far."""

    def __init__(self) -> None:
        super().__init__("Ticket API")
        self.called: list[tuple[str, str]] = []

    def app(self) -> Starlette:
        async def ticket(request: Request) -> JSONResponse:
            self.called.append((request.method, str(request.url.path)))
            return JSONResponse({"id": request.path_params["id"], "status": "waiting for the customer"})

        return Starlette(routes=[Route("/v1/tickets/{id}", ticket, methods=["GET", "DELETE"])])

    @property
    def description(self) -> bytes:
        path = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        return json.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "Tickets", "version": "1"},
                "servers": [{"url": f"{self.endpoint}/v1"}],
                "paths": {
                    "/tickets/{id}": {
                        "parameters": [path],
                        "get": {"operationId": "getTicket", "summary": "The status of a ticket"},
                        "delete": {"operationId": "deleteTicket", "summary": "Delete a ticket"},
                    }
                },
            }
        ).encode()


@pytest.fixture
def tickets() -> Iterator[TicketApi]:
    with TicketApi() as server:
        yield server


async def test_a_described_api_becomes_a_tool_that_the_flow_calls(
    shared_service: SharedService, standin: ModelStandIn, tickets: TicketApi
) -> None:
    script(standin, AGENT)
    service = await shared_service(**model_environment(standin))
    call = StandInToolCall("getticket", {"queryParams": {"id": "7"}})
    standin.script(QUESTION, Reply(tool_calls=(call,)), times=1)
    async with http_of(service) as http:
        stored = (await http.post("/attachments", files={"file": ("tickets.json", tickets.description)})).json()
        assert stored["facts"]["operations"] == ["GET /tickets/{id}", "DELETE /tickets/{id}"]
        body = {
            "requirement": "Build a bot with GPT-4o that calls our ticket API to tell people the status of a ticket",
            "attachments": [stored["id"]],
            "test_questions": [QUESTION],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        data = planned["interrupt"]["data"]
        assert data["contract"]["domain_targets"] == ["flowise", "openapi"]
        assert [one["node_id"] for one in data["contract"]["nodes"] if "__" in one["node_id"]] == ["openapi__getTicket"]
        assert any(host.startswith("http://127.0.0.1:") for host in data["capability"]["hosts"])

        tested = await answer(http, planned, action="approve")

    assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
    (test,) = tested["interrupt"]["data"]["tests"]
    assert (test["passed"], test["used_tools"]) == (True, ["getticket"])
    assert tickets.called == [("GET", "/v1/tickets/7")]
    assert "waiting for the customer" in test["answer"]
