"""What a session says of the flow that it made: each criterion shown by a real trace, or not, and why.

The flows and the model inside them are those of `scripts/bench/cases/verdicts.yaml`.
"""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import AddNode, Connect
from scripts.bench.verdict_cases import Case, ScriptedModel
from scripts.bench.verdicts import read_cases
from tests.e2e.people import SharedService, answer, http_of, ok, start
from tests.e2e.scripted import SUPPORT, model_environment, script

_CASES = {case.id: case for case in read_cases()}
#: (criterion, number of the trial, quote, step)
Quote = tuple[str, int, str, str | None]


def judgement(*quotes: Quote) -> dict[str, Any]:
    """A model that finds each criterion shown by a quote."""
    votes = [
        {"id": id_, "state": "shown", "evidence": [{"trial": trial, "quote": quote, "node_id": node}]}
        for id_, trial, quote, node in quotes
    ]
    return {"done": True, "criteria": votes, "notes": []}


def answers_for(case: Case, side: str, judge: Mapping[str, Any], **plan: Any) -> dict[str, Any]:
    """What a model that knows what it does answers in each phase."""
    spec = case.flow(side)
    ops = spec.ops("", {})
    values = [
        {"node_id": op.node_id, "param": param, "value": value}
        for op in ops
        if isinstance(op, AddNode)
        for param, value in op.params.items()
    ]
    agreed = case.plan()
    nodes = list(spec.nodes)
    planned = {
        "goal": case.requirement,
        "flow_name": case.id,
        "nodes": [
            {"node_id": node, "node_name": node.rpartition("_")[0], "purpose": str(spec.nodes[node].get("label", node))}
            for node in nodes
        ],
        "connections": [
            {"source": op.source_node_id, "output": op.source_anchor or "", "target": op.target_node_id, "input": ""}
            for op in ops
            if isinstance(op, Connect) and not op.target_anchor
        ],
        "steps": ["Add and connect the nodes."],
        "credential_requirements": ["openAIApi"],
        "values": values,
        "criteria": [item.model_dump(mode="json") for item in agreed.criteria],
        "tests": [test.model_dump(mode="json") for test in agreed.tests],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": nodes[-1:]} for n in range(1, 20)],
        **plan,
    }
    written = [op.model_dump(mode="json", exclude_defaults=True) | {"op_type": op.op_type} for op in ops]
    return {"classify": SUPPORT["classify"], "plan": planned, "patch": {"ops": written}, "judge": judge}


async def reviewed(
    http: httpx2.AsyncClient,
    standin: ModelStandIn,
    case: Case,
    judge: Mapping[str, Any],
    side: str = "right",
    **plan: Any,
) -> dict[str, Any]:
    """The session of the requirement, approved, at the review of the result."""
    standin.reset()
    script(standin, answers_for(case, side, judge, **plan))
    standin.script(lambda request: request.kind == "chat", ScriptedModel(case.rules(side)))
    view = await start(http, case.requirement, operation="create")
    assert view["interrupt"], view["error"]
    assert view["interrupt"]["type"] == "plan_approval", view["interrupt"]
    view = await answer(http, view, action="approve")
    assert view["interrupt"], view["error"]
    assert view["interrupt"]["type"] == "result_review", view["interrupt"]
    return view


async def trace_of(http: httpx2.AsyncClient, view: dict[str, Any], number: int) -> dict[str, Any]:
    trial = view["interrupt"]["data"]["tests"][number - 1]
    return await ok(await http.get(f"/sessions/{view['thread_id']}/traces/{trial['trace_sha256']}"))


def states(view: dict[str, Any]) -> list[str]:
    return [item["state"] for item in view["interrupt"]["data"]["verdict"]["criteria"]]


def headline(view: dict[str, Any]) -> str:
    return view["interrupt"]["data"]["verdict"]["headline"]


@pytest.mark.parametrize(
    ("id_", "quotes", "ran"),
    [
        (
            "released-by-editor",
            [
                ("c1", 1, "The summer party is on 4 July", "llmAgentflow_0"),
                ("c2", 1, "Publish this text?", None),
                ("c3", 1, "Published: The summer party", None),
                ("c4", 2, "Not published.", None),
            ],
            [["humanInputAgentflow_0", "directReplyAgentflow_0"], ["humanInputAgentflow_0", "directReplyAgentflow_1"]],
        ),
        (
            "leave-form",
            [
                ("c1", 1, "leave of 6 days", None),
                ("c2", 1, "Dear Anna", None),
                ("c3", 1, "6 days", "llmAgentflow_0"),
            ],
            [["startAgentflow_0", "llmAgentflow_0"]],
        ),
        (
            "b03-cook-lost-memory",
            [
                ("c1", 1, "no nuts and no shellfish", None),
                ("c2", 1, "ginger and soy chicken stir-fry", None),
                ("c3", 1, "Of course, Rosa", None),
            ],
            [["startAgentflow_0", "llmAgentflow_0"]],
        ),
    ],
    ids=["a person decides both ways", "a form", "memory over turns"],
)
async def test_a_session_says_works_when_each_criterion_was_shown(
    shared_service: SharedService,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    id_: str,
    quotes: list[Quote],
    ran: list[list[str]],
) -> None:
    del flowise_client  # deletes what the test leaves on the server
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view = await reviewed(http, standin, _CASES[id_], judgement(*quotes))
        assert set(states(view)) == {"shown"}
        assert headline(view) == "works", view["interrupt"]["message"]
        assert view["interrupt"]["reason"] == "tests_passed"
        for number, nodes in enumerate(ran, start=1):
            trace = await trace_of(http, view, number)
            assert set(nodes) <= {step["node_id"] for step in trace["steps"]}
        turns = [len((await trace_of(http, view, n + 1))["turns"]) for n in range(len(_CASES[id_].tests))]
        assert turns == [len(test.turns) + len(test.human) for test in _CASES[id_].tests]
        people = [trial["human"] for trial in view["interrupt"]["data"]["tests"]]
        assert people == [test.human for test in _CASES[id_].tests]
