"""A sentence that names Workday, over both domains: a real MCP server plays Workday, the real Flowise calls it."""

import json
from collections.abc import Iterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from tests.e2e.people import SharedService, answer, http_of, ok
from tests.e2e.scripted import AGENT, model_environment, script
from tests.e2e.test_api_tools import TicketApi
from tests.fixtures.workday import TOKEN, WorkdayServer

QUESTION = "Where does Grace Hopper work?"


@pytest.fixture
def variables(flowise: FlowiseAccess, workday: WorkdayServer) -> Iterator[None]:
    """What the blueprint reads in Flowise: where Workday's server is, and how to be let in."""
    with httpx2.Client(
        base_url=f"{flowise.endpoint}/api/v1",
        headers={"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"},
        trust_env=False,
    ) as http:
        given = (("workdayMcpUrl", workday.url), ("workdayToken", TOKEN))
        made = [http.post("/variables", json={"name": n, "value": v, "type": "static"}) for n, v in given]
        ids = [one.raise_for_status().json()["id"] for one in made]
        yield
        for one in ids:
            http.delete(f"/variables/{one}").raise_for_status()


@pytest.mark.usefixtures("variables")
async def test_a_session_over_two_domains_calls_workdays_tool_and_shows_its_personal_data(
    shared_service: SharedService, standin: ModelStandIn, workday: WorkdayServer
) -> None:
    script(standin, AGENT)
    service = await shared_service(**model_environment(standin))
    standin.script(QUESTION, Reply(tool_calls=(StandInToolCall("searchForWorker", {"name": "Grace Hopper"}),)), times=1)
    async with http_of(service) as http:
        body = {
            "requirement": "Build an assistant with GPT-4o that looks up workers in Workday",
            "test_questions": [QUESTION],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        data = planned["interrupt"]["data"]
        assert data["contract"]["domain_targets"] == ["flowise", "workday"]
        assert data["contract"]["pii_fields"] == ["worker.location", "worker.name"]
        assert TOKEN not in str(data)

        tested = await answer(http, planned, action="approve")

    assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
    (test,) = tested["interrupt"]["data"]["tests"]
    assert (test["passed"], test["used_tools"]) == (True, ["searchForWorker"]), test
    assert workday.called == [("searchForWorker", {"name": "Grace Hopper"})]
    assert "worker 21042 in Zurich" in test["answer"]


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
async def test_a_session_over_three_domains_keeps_the_names_of_people_out_of_the_trace(
    shared_service: SharedService, standin: ModelStandIn, workday: WorkdayServer
) -> None:
    script(standin, AGENT)
    service = await shared_service(**model_environment(standin))
    question = "Where does Grace Hopper work, and what is the status of ticket 7?"
    calls = (
        StandInToolCall("searchForWorker", {"name": "Grace Hopper"}),
        StandInToolCall("getticket", {"queryParams": {"id": "7"}}),
    )
    standin.script(question, Reply(tool_calls=calls), times=1)
    with TicketApi() as tickets:
        async with http_of(service) as http:
            stored = (await http.post("/attachments", files={"file": ("tickets.json", tickets.description)})).json()
            body = {
                "requirement": "Build an assistant with GPT-4o that looks up workers in Workday "
                "and calls our ticket API for the status of a ticket",
                "attachments": [stored["id"]],
                "test_questions": [question],
            }
            planned = await ok(await http.post("/sessions?wait=60", json=body))
            contract = planned["interrupt"]["data"]["contract"]
            assert sorted(contract["domain_targets"]) == ["flowise", "openapi", "workday"]
            (passes,) = [one for one in contract["findings"] if one["code"] == "PII_PASSES"]
            assert "worker.name" in passes["message"]

            tested = await answer(http, planned, action="approve")
            assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
            (test,) = tested["interrupt"]["data"]["tests"]
            assert test["passed"] is True, test
            trace = await ok(await http.get(f"/sessions/{tested['thread_id']}/traces/{test['trace_sha256']}"))

    assert sorted(test["used_tools"]) == ["getticket", "searchForWorker"]
    assert workday.called == [("searchForWorker", {"name": "Grace Hopper"})]
    assert tickets.called == [("GET", "/v1/tickets/7")]
    assert "[personal data]" in str(trace)
    # Workday told the place in a plain text.
    assert "Grace Hopper" not in str(trace)
    assert "Zurich" not in str(trace)


class TicketsOfPeople(BackgroundServer):
    """An API that takes the id of a worker; `asked` holds those that it got."""

    def __init__(self) -> None:
        super().__init__("Tickets of people")
        self.asked: list[str | None] = []

    def app(self) -> Starlette:
        async def tickets(request: Request) -> JSONResponse:
            self.asked.append(request.query_params.get("workerId"))
            return JSONResponse({"open": 3})

        return Starlette(routes=[Route("/v1/tickets", tickets)])

    @property
    def description(self) -> bytes:
        worker = {"name": "workerId", "in": "query", "required": True, "schema": {"type": "string"}}
        operation = {"operationId": "getTickets", "summary": "Open tickets of a worker", "parameters": [worker]}
        return json.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "Tickets", "version": "1"},
                "servers": [{"url": f"{self.endpoint}/v1"}],
                "paths": {"/tickets": {"get": operation}},
            }
        ).encode()


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(("passed_on", "passes"), [("21042", True), ("30000", False)], ids=["its id", "made up"])
async def test_a_field_of_one_domain_becomes_the_input_of_another_while_the_flow_runs(
    shared_service: SharedService, standin: ModelStandIn, workday: WorkdayServer, passed_on: str, passes: bool
) -> None:
    script(standin, AGENT)
    service = await shared_service(**model_environment(standin), MAX_ITERATIONS="1")
    question = f"How many open tickets has Grace Hopper ({passes})?"
    told = "The worker.id that getMyInfo or searchForWorker or getWorkers of Workday gives."
    found: list[bool] = []

    def searches(request: RecordedRequest) -> bool:
        if question not in request.prompt or "is worker 21042" in request.prompt:
            return False
        found.append(any(told in json.dumps(tool.schema) for tool in request.tools))
        return True

    search = StandInToolCall("searchForWorker", {"name": "Grace Hopper"})
    standin.script(searches, Reply(tool_calls=(search,)), times=1)
    count = StandInToolCall("gettickets", {"queryParams": {"workerId": passed_on}})
    standin.script(
        lambda request: question in request.prompt and "is worker 21042" in request.prompt,
        Reply(tool_calls=(count,)),
        times=1,
    )
    with TicketsOfPeople() as tickets:
        async with http_of(service) as http:
            stored = (await http.post("/attachments", files={"file": ("tickets.json", tickets.description)})).json()
            body = {
                "requirement": "Build an assistant with GPT-4o that looks up workers in Workday "
                "and calls our ticket API for the tickets of a worker",
                "attachments": [stored["id"]],
                "test_questions": [question],
            }
            planned = await ok(await http.post("/sessions?wait=60", json=body))
            contract = planned["interrupt"]["data"]["contract"]
            mapping = {"source": "workday.worker.id", "target": "openapi__getTickets.workerId", "personal": False}
            assert contract["mappings"] == [mapping], planned["interrupt"]["message"]
            tested = await answer(http, planned, action="approve")
    assert tickets.asked[:1] == [passed_on]
    assert found[:1] == [True]
    tests = [one for one in tested["interrupt"]["data"]["tests"] if question in one["question"]]
    assert tests[0]["passed"] is passes, tests
    assert ("a workerId that is neither workday.worker.id nor in the question" in tests[0]["error"]) is not passes
