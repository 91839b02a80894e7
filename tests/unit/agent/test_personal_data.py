"""Personal data is named where it can pass to another domain, and masked in what is kept."""

import json

import pytest
from pydantic import JsonValue

from flowise_dev_agent.planning.passes.personal_data import MASK, passes, without_personal_data
from flowise_dev_agent.planning.requests import ReadyTool
from flowise_dev_agent.schemas.verdict import Trace, TracedSource, TracedTool, TracedTurn, TraceStep

NAME, PLACE = "Grace Hopper", "Zurich"
ROOM = f"{NAME} sits in {PLACE}, room B12."
FIELDS = ["worker.name", "worker.location"]


def tool(domain: str, *pii: str, url: str = "https://tickets.example.com/v1") -> ReadyTool:
    return ReadyTool(
        domain=domain,
        name="t",
        title="T",
        about="",
        node_name="requestsGet",
        values={"requestsGetUrl": url},
        pii_fields=pii,
    )


def test_a_plan_with_personal_data_of_one_domain_and_tools_of_another_says_so() -> None:
    (finding,) = passes([tool("workday", *FIELDS), tool("openapi")])

    assert (finding.code, finding.severity) == ("PII_PASSES", "warning")
    assert "workday (worker.name, worker.location) can pass to openapi (tickets.example.com)" in finding.message


@pytest.mark.parametrize(
    "tools",
    [[tool("workday", *FIELDS)], [tool("workday", *FIELDS), tool("workday")], [tool("workday"), tool("openapi")]],
    ids=["one tool", "one domain", "nothing personal"],
)
def test_without_a_second_domain_or_personal_data_nothing_is_said(tools: list[ReadyTool]) -> None:
    assert passes(tools) == []


@pytest.mark.parametrize(
    "output",
    [
        {"worker": {"Name": NAME, "location": PLACE, "id": 21042}},
        json.dumps([{"name": NAME, "location": PLACE, "id": 21042}]),
    ],
    ids=["object", "text"],
)
def test_a_trace_keeps_no_value_of_a_personal_field_anywhere(output: JsonValue) -> None:
    trace = Trace(
        turns=[TracedTurn(said="Where is 21042?", answer=f"{NAME} works in {PLACE}.")],
        steps=[TraceStep(node_id="a", name="agentAgentflow", output={"content": f"{NAME}: {PLACE}"})],
        used_tools=[TracedTool(tool="searchForWorker", input={"name": NAME}, output=output)],
        sources=[TracedSource(text=f"About {NAME}", metadata={"name": NAME})],
        state={"last": NAME},
    )

    kept = without_personal_data(trace, FIELDS)

    assert NAME not in kept.model_dump_json()
    assert PLACE not in kept.model_dump_json()
    assert "21042" in kept.model_dump_json()
    assert (kept.steps[0].name, kept.used_tools[0].tool) == ("agentAgentflow", "searchForWorker")
    assert kept.turns[0].answer == f"{MASK} works in {MASK}."


@pytest.mark.parametrize(
    "output",
    [
        f"{NAME} sits in {PLACE}, room B12.",
        json.dumps([{"type": "text", "text": f"{NAME} sits in {PLACE}, room B12."}]),
    ],
    ids=["text", "MCP"],
)
def test_a_plain_text_of_a_tool_about_people_goes_with_its_names_and_numbers_elsewhere(output: str) -> None:
    trace = Trace(
        turns=[TracedTurn(said="Where is she?", answer=f"She is in {PLACE}: room B12.")],
        steps=[TraceStep(node_id="a", name="agentAgentflow", output={"content": f"{NAME}: B12"})],
        used_tools=[
            TracedTool(tool="search_for_worker", input={"id": 7}, output=output),
            TracedTool(tool="calculator", input={"input": "1+1"}, output="It is 2."),
        ],
    )

    kept = without_personal_data(trace, FIELDS, ["searchForWorker"])

    for value in (*NAME.split(), PLACE, "B12", "sits in"):
        assert value not in kept.model_dump_json()
    assert kept.turns[0].answer == f"She is in {MASK}: room {MASK}."
    assert kept.used_tools[1].output == "It is 2."
    assert NAME in without_personal_data(trace, FIELDS, ["other"]).model_dump_json()


def test_a_trace_of_a_plan_without_personal_data_stays_as_it_is() -> None:
    trace = Trace(used_tools=[TracedTool(tool="t", output={"name": NAME})])
    assert without_personal_data(trace, []) is trace
