"""Plans that concern several domains."""

import json
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.domains import flowise
from flowise_dev_agent.agent.domains.candidates import candidates
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.agent.domains.tool_domain import ToolDomain
from flowise_dev_agent.agent.graph import build_graph
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.planning.requests import ReadyTool
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_ready_tools import agent_plan, model_ops


async def test_a_plan_for_a_domain_that_is_not_there_is_refused_with_a_finding() -> None:
    bench = Bench(ops(), credentials("1"))
    bench.reasoner.plans = [plan(domain_targets=["flowise", "servicenow"])]

    await bench.start()
    question = await bench.answer(action="approve")

    assert question["type"] == "patch_review"
    state = await bench.state()
    assert [(one.code, one.severity) for one in state.check.findings] == [("UNKNOWN_DOMAIN", "error")]
    assert "'servicenow', which is not installed" in state.check.findings[0].detail
    assert not bench.flowise.flows


async def test_p86_what_fits_is_looked_up_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time it takes seconds of a busy machine, in which a worker on the loop would count as lost."""
    bench = Bench(ops(), credentials("1"))
    threads: list[int] = []

    def find(*given: Any, **more: Any) -> tuple[NodeSchema, ...]:
        threads.append(threading.get_ident())
        return candidates(*given, **more)

    monkeypatch.setattr(flowise, "candidates", find)
    await bench.start()
    assert threads
    assert threading.get_ident() not in threads


class Broken(ToolDomain):
    name = "tickets"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        raise self._error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("s3cret"), "The domain “tickets” could not be asked: KeyError"),
        (
            InvalidInputError("The tickets are not there."),
            "The domain “tickets” could not be asked: The tickets are not",
        ),
    ],
    ids=["foreign", "own"],
)
async def test_a_domain_that_fails_is_told_at_the_plan_and_ends_nothing(error: Exception, said: str) -> None:
    bench = Bench(ops(), credentials(OPENAI))
    domains = [FlowiseCapability(), Broken(error)]
    bench.graph = build_graph(domains, bench.graph.checkpointer)

    question = await bench.start()

    assert question["type"] == "plan_approval"
    (finding,) = [one for one in question["data"]["contract"]["findings"] if one["code"] == "DOMAIN_FAILED"]
    assert finding["severity"] == "warning"
    assert finding["message"].startswith(said)
    assert (await bench.answer(action="approve"))["type"] == "result_review"


class Ready(ToolDomain):
    def __init__(self, name: str, *pii_fields: str) -> None:
        self.name = name
        self._pii_fields = pii_fields

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        return [
            ReadyTool(
                domain=self.name,
                name="get",
                title=self.name,
                about="",
                node_name="requestsGet",
                values={"requestsGetUrl": f"https://{self.name}.example.com"},
                pii_fields=self._pii_fields,
            )
        ]


async def test_the_approval_says_that_personal_data_of_a_domain_can_pass_to_another() -> None:
    bench = Bench(model_ops(), credentials(OPENAI))
    domains = [FlowiseCapability(), Ready("people", "worker.name"), Ready("tickets")]
    bench.graph = build_graph(domains, bench.graph.checkpointer)
    bench.reasoner.plans = [agent_plan()]

    question = await bench.start("An assistant")

    contract = question["data"]["contract"]
    assert contract["domain_targets"] == ["flowise", "people", "tickets"]
    (finding,) = [one for one in contract["findings"] if one["code"] == "PII_PASSES"]
    assert "people (worker.name) can pass to tickets (tickets.example.com)" in finding["message"]


async def test_the_value_of_a_personal_field_is_in_the_answer_but_in_no_trace_and_no_event() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.plans = [plan(pii_fields=["worker.name"])]
    used = {"tool": "search", "toolInput": {}, "toolOutput": '{"name": "Grace Hopper"}'}
    await bench.start()

    async def predict(*_: object, **__: object) -> Prediction:
        return Prediction.model_validate({"text": "It is Grace Hopper.", "usedTools": [used]})

    bench.flowise.predict = predict
    review = await bench.answer(action="approve")

    tests = review["data"]["tests"]
    assert "Grace Hopper" in tests[0]["answer"]
    trace = await bench.context().blobs.get(tests[0]["trace_sha256"])
    assert "It is [personal data]." in trace
    assert "Grace Hopper" not in trace
    told = [event for event in bench.events if event["type"] == "test"]
    assert told
    assert "Grace Hopper" not in str(told)


async def test_marked_values_of_people_are_in_no_trace_event_or_log_and_no_judge_sees_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    marks = ["Quillfeather", "Zanzibarstadt", "K8812-X", "qf@mark.test"]
    said = f"Worker Ida {marks[0]} sits in {marks[1]}, badge {marks[2]}, {marks[3]}."
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.plans = [plan(pii_fields=["worker.name", "worker.mail"], pii_tools=["search", "lookup"])]
    used = [
        {"tool": "search", "toolInput": {}, "toolOutput": said},
        {"tool": "lookup", "toolInput": {}, "toolOutput": json.dumps({"worker": {"mail": marks[3]}})},
    ]
    caplog.set_level(logging.DEBUG)
    await bench.start()

    async def predict(*_: object, **__: object) -> Prediction:
        return Prediction.model_validate({"text": f"It is {said}", "usedTools": used})

    bench.flowise.predict = predict
    review = await bench.answer(action="approve")
    await bench.answer(action="accept")

    test, *_ = review["data"]["tests"]
    assert said in test["answer"]
    trace = await bench.context().blobs.get(test["trace_sha256"])
    told = [event for event in bench.events if event["type"] not in ("interrupt", "done")]
    judged = [request.traces for request in bench.reasoner.seen["judge"]]
    assert judged
    for mark in marks:
        assert mark not in trace
        assert mark not in str(told), next(event for event in told if mark in str(event))
        assert mark not in str(judged)
        assert mark not in caplog.text
