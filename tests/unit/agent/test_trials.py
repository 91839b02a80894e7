"""Conversations with a written flow: turns, forms, webhooks, decisions of a person, and the trace of each."""

from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseServerError, FlowiseTimeoutError
from flowise_dev_agent.flowise.models import HumanAnswer, Prediction
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, TraceStep, Trial, Verdict
from flowise_dev_agent.testing.cases import cases_for, why_not_testable
from flowise_dev_agent.testing.checks import checked
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED
from flowise_dev_agent.testing.traces import TRACE_BYTES, Exchange, trace_of
from flowise_dev_agent.testing.trials import (
    MOST_DECISIONS,
    ConversationRunner,
    TrialConversation,
    undriven,
)
from flowise_dev_agent.testing.ways import TrialRun, more_ways
from tests.unit.agent.rig import BenchFlowise, plan
from tests.unit.agent.test_judgement import bench

ASK = Prediction.model_validate({"text": "Send this?", "action": {"data": {"nodeId": "humanInputAgentflow_0"}}})
KEY = "sk-" + "a1B2" * 8


def step(node: str, **data: Any) -> dict[str, Any]:
    return {"nodeId": node, "nodeLabel": node, "status": "FINISHED", "data": {"name": node[:-2], **data}}


def reply(*steps: dict[str, Any], text: str = "ok") -> Prediction:
    return Prediction.model_validate({"text": text, "agentFlowExecutedData": list(steps)})


def approval(question: str | None, session: str, human: HumanAnswer | None) -> Prediction:
    """A flow that asks a person and says what came of it."""
    return Prediction(text=f"{human.type} {human.feedback}".strip()) if human else ASK


async def hold(flowise: Any, case: TestCase, **more: Any) -> Any:
    return await ConversationRunner(flowise, TrialConversation("flow", "{}", case, 1, "s", **more)).run()


def start(**inputs: Any) -> GraphIR:
    node = {"id": "startAgentflow_0", "data": {"id": "startAgentflow_0", "name": "startAgentflow", "inputs": inputs}}
    return GraphIR({"nodes": [node], "edges": []})  # type: ignore[typeddict-item,list-item]


# --- conversations ---------------------------------------------------------------------------------------------------


async def test_all_turns_of_a_test_are_one_conversation() -> None:
    flowise = BenchFlowise()
    run = await hold(flowise, TestCase(id="t1", turns=["I am Eva", "Who am I?"]))
    assert flowise.asked == [("I am Eva", "s"), ("Who am I?", "s")]
    assert run.trial.question == "I am Eva\nWho am I?"
    assert run.trial.answer == "Answer to: Who am I?"
    assert [turn.answer for turn in run.trace.turns] == ["Answer to: I am Eva", "Answer to: Who am I?"]


@pytest.mark.parametrize("outcome", ["proceed", "reject"])
async def test_the_decision_of_a_test_is_given_with_its_remark_and_driven_to_the_end(outcome: Any) -> None:
    flowise = BenchFlowise()
    flowise.waits = approval
    run = await hold(flowise, TestCase(id="t1", turns=["Hi"], human=[outcome], human_feedback=["warmer"]))
    assert (run.trial.answer, run.trial.human) == (f"{outcome} warmer", [outcome])
    assert flowise.given[-1]["human"].start_node_id == "humanInputAgentflow_0"
    assert "Send this?" in run.trace.turns[0].answer


async def test_only_an_answer_that_somebody_reads_may_not_be_empty() -> None:
    """Found with a warning that a schedule sends on cold days only: its quiet days failed the test."""
    flowise = BenchFlowise()
    flowise.waits = lambda *_: Prediction(text="")
    talk = await hold(flowise, TestCase(id="t1", turns=["Hi"]))
    assert (talk.trial.passed, talk.trial.category) == (False, "LOGIC")
    quiet = await hold(flowise, TestCase(id="t1", turns=["Run."], input="schedule"))
    assert (quiet.trial.passed, quiet.trial.answer) == (True, "")
    # A webhook that only hands on what it is sent ends with a request, which has no text.
    hook = TestCase(id="t1", turns=["x"], input="webhook", payload={"a": 1})
    assert not (await hold(flowise, hook)).trial.passed
    flowise.waits = lambda *_: reply(step("httpAgentflow_0"), text=" ")
    assert (await hold(flowise, hook)).trial.passed


async def test_after_a_rejection_the_next_draft_is_approved() -> None:
    flowise = BenchFlowise()
    replies = [ASK, ASK, Prediction(text="sent")]
    flowise.waits = lambda *_: replies.pop(0)
    run = await hold(flowise, TestCase(id="t1", turns=["Hi"], human=["reject"]))
    assert run.decisions == (("humanInputAgentflow_0", "reject"), ("humanInputAgentflow_0", "proceed"))
    assert (run.trial.answer, run.trial.passed) == ("sent", True)


async def test_a_flow_that_asks_a_person_without_end_fails() -> None:
    flowise = BenchFlowise()
    flowise.waits = lambda *_: ASK
    run = await hold(flowise, TestCase(id="t1", turns=["Hi"]))
    assert (run.trial.passed, run.trial.category) == (False, "LOGIC")
    assert len(flowise.asked) == MOST_DECISIONS + 1


async def test_what_is_out_of_reach_is_not_waited_for_in_each_test() -> None:
    made = bench()
    questions = [f"Question {number}" for number in range(10)]
    made.flowise.answers = {one: FlowiseTimeoutError("No answer.") for one in questions[:9]}
    made.reasoner.plans = [plan(test_questions=questions)]
    await made.start()
    review = await made.answer(action="approve")
    waits = [given["timeout"] for given in made.flowise.given]
    assert waits[0] is None
    assert waits[6:] == [15.0] * 4
    assert [test["passed"] for test in review["data"]["tests"]].count(True) == 1


async def test_p98_what_a_plan_does_not_decide_is_decided_both_ways() -> None:
    made = bench()
    made.flowise.waits = approval
    made.reasoner.plans = [plan(test_questions=["Refund me", "Hello"])]
    await made.start()
    review = await made.answer(action="approve")
    told = [(test["test"], test["human"], test["answer"]) for test in review["data"]["tests"]]
    assert told == [("t1", ["proceed"], "proceed"), ("t2", ["proceed"], "proceed"), ("t3", ["reject"], "reject")]


async def test_decisions_that_the_plan_tests_are_not_tested_again() -> None:
    flowise = BenchFlowise()
    flowise.waits = approval
    cases = [TestCase(id="t1", turns=["Hi"], human=["reject"])]
    runs = [await hold(flowise, cases[0])]
    (added,) = undriven(cases, runs)
    assert (added.id, added.human) == ("t2", ["proceed"])
    cases.append(added)
    assert undriven(cases, [*runs, await hold(flowise, added)]) == []


def two_approvals(question: str | None, session: str, human: HumanAnswer | None) -> Prediction:
    """A flow that asks the office, and the manager when the office refuses; the manager's remark ends it."""
    if human is None or human.start_node_id == "humanInputAgentflow_1":
        return Prediction(text=f"{human.type} {human.feedback}".strip()) if human else ASK
    again = {"text": "Escalate?", "action": {"data": {"nodeId": "humanInputAgentflow_1"}}}
    return Prediction(text="sent") if human.type == "proceed" else Prediction.model_validate(again)


async def test_each_question_of_a_test_gets_its_own_decision() -> None:
    flowise = BenchFlowise()
    flowise.waits = two_approvals
    case = TestCase(id="t1", turns=["Hi"], human=["reject", "reject"], human_feedback=["too long", "no"])
    run = await hold(flowise, case)
    assert (run.trial.answer, run.trial.human) == ("reject no", ["reject", "reject"])
    assert [turn.said for turn in run.trace.turns] == ["Hi", "[reject] too long", "[reject] no"]
    assert [turn.answer for turn in run.trace.turns] == ["Send this?", "Escalate?", "reject no"]
    assert run.decisions == (("humanInputAgentflow_0", "reject"), ("humanInputAgentflow_1", "reject"))


async def test_an_approval_behind_a_refusal_is_decided_both_ways() -> None:
    made = bench()
    made.flowise.waits = two_approvals
    made.reasoner.plans = [plan(test_questions=["Refund me"])]
    await made.start()
    review = await made.answer(action="approve")
    told = [(test["human"], test["answer"]) for test in review["data"]["tests"]]
    assert told == [(["proceed"], "sent"), (["reject", "proceed"], "proceed"), (["reject", "reject"], "reject")]


def test_one_decision_of_an_older_plan_is_a_list_of_one() -> None:
    given = [TestCase.model_validate({"id": "t1", "turns": ["Hi"], "human": one}).human for one in ("reject", None)]
    assert given == [["reject"], []]


def test_the_one_remark_of_an_older_plan_goes_with_the_last_decision() -> None:
    older = {"id": "t1", "turns": ["Hi"], "human": ["reject", "proceed"], "human_feedback": "fine now"}
    assert TestCase.model_validate(older).human_feedback == ["", "fine now"]
    assert TestCase.model_validate({**older, "human": "reject", "human_feedback": ""}).human_feedback == []


@pytest.mark.parametrize("started", ["formInput", "webhookTrigger"])
def test_a_form_and_a_webhook_are_sent_once_and_no_later_turn_is_told(started: str) -> None:
    case = TestCase(id="t1", turns=["My name is Eva", "Who am I?"])
    (held,) = cases_for([case], start(startInputType=started))
    assert held.turns == ["My name is Eva"]


async def test_a_form_is_filled_in_with_what_it_asks_for() -> None:
    rows = [
        {"type": "string", "name": "name"},
        {"type": "number", "name": "age"},
        {"type": "boolean", "name": "new"},
        {"type": "options", "name": "size", "addOptions": [{"option": "small"}]},
    ]
    (case,) = cases_for(
        plan(test_questions=["Eva is 41"]).tests, start(startInputType="formInput", formInputTypes=rows)
    )
    flowise = BenchFlowise()
    await hold(flowise, case)
    assert flowise.given == [{"form": {"name": "Eva is 41", "age": 41, "new": True, "size": "small"}, "timeout": None}]


async def test_a_webhook_gets_the_fields_that_the_flow_reads() -> None:
    graph = start(
        startInputType="webhookTrigger", webhookDefaultInput="{{ $webhook.body.order.id }} {{$webhook.body.who}}"
    )
    (case,) = cases_for(plan(test_questions=["42"]).tests, graph)
    flowise = BenchFlowise()
    run = await hold(flowise, case)
    assert flowise.given == [{"webhook": {"order": {"id": "42"}, "who": "42"}, "timeout": None}]
    assert run.trial.passed


@pytest.mark.parametrize(
    ("inputs", "word"),
    [
        ({"startInputType": "scheduleInput"}, "schedule"),
        ({"startInputType": "webhookTrigger", "webhookEnableAuth": True}, "signature"),
        ({"startInputType": "webhookTrigger", "webhookMethod": "GET"}, "POST"),
        ({"startInputType": "webhookTrigger", "webhookResponseMode": "async"}, "later"),
    ],
)
async def test_a_flow_that_cannot_be_started_from_here_is_not_asked(inputs: dict[str, Any], word: str) -> None:
    graph = start(**inputs)
    (case,) = cases_for(plan(test_questions=["Hi"]).tests, graph)
    why = why_not_testable(case, graph)
    flowise = BenchFlowise()
    run = await hold(flowise, case, not_testable=why)
    assert word in run.trial.error
    assert (run.trial.passed, run.trial.category, flowise.asked) == (False, None, [])


def test_each_branch_that_says_which_message_takes_it_gets_a_test() -> None:
    inputs = {"conditionAgentScenarios": [{"scenario": "billing"}, {"scenario": "technical"}, {"scenario": "rest"}]}
    name = "conditionAgentAgentflow_0"
    node = {
        "id": name,
        "data": {"id": name, "name": "conditionAgentAgentflow", "category": "Agent Flows", "inputs": inputs},
    }
    edges = [{"source": name, "sourceHandle": f"{name}-output-{n}", "target": f"llm_{n}"} for n in range(3)]
    graph = GraphIR({"nodes": [node], "edges": edges})  # type: ignore[typeddict-item,list-item]
    case = TestCase(id="t1", turns=["My bill is wrong"])
    first = ran(case, name, "llm_0")
    added = more_ways([first], graph, NOTHING_SIMULATED)
    assert [(one.id, one.turns) for one in added] == [("t2", ["technical"]), ("t3", ["rest"])]
    assert more_ways([first, *(ran(one, name) for one in added)], graph, NOTHING_SIMULATED) == []
    assert more_ways([ran(case)], graph, NOTHING_SIMULATED) == []
    assert more_ways([first] * 20, graph, NOTHING_SIMULATED) == []


def ran(case: TestCase, *nodes: str) -> TrialRun:
    """A conversation that came to these steps."""
    trial = Trial(question="", passed=True, test=case.id)
    return TrialRun(case, trial, Trace(steps=[TraceStep(node_id=node) for node in nodes]))


# --- traces ----------------------------------------------------------------------------------------------------------


def test_a_trace_has_steps_tools_sources_state_and_tokens() -> None:
    tool = {"tool": "calculator", "toolInput": {"input": "1+1"}, "toolOutput": "2"}
    source = {"pageContent": "Returns within 30 days.", "metadata": {"source": "returns.txt"}}
    output = {"content": "2", "usedTools": [tool], "sourceDocuments": [source], "usageMetadata": {"total_tokens": 5}}
    trace = trace_of([Exchange(["Hi"], reply(step("start_0"), step("agent_0", output=output, state={"a": "b"})))])
    assert [item.node_id for item in trace.steps] == ["start_0", "agent_0"]
    assert trace.steps[1].output == {"content": "2", "sourceDocuments": [source]}
    assert [(item.tool, item.output) for item in trace.used_tools] == [("calculator", "2")]
    assert [(item.text, item.metadata) for item in trace.sources] == [(source["pageContent"], source["metadata"])]
    assert (trace.state, trace.tokens, trace.cut) == ({"a": "b"}, {"total": 5}, False)


def test_an_item_that_failed_in_an_iteration_fails_the_test() -> None:
    """Flowise takes the error for the item's result and calls the step finished."""
    results = ["A short line", "Error in iteration 2: Error in LLM node: fetch failed"]
    made = reply(step("iterationAgentflow_0", output={"iterationResults": results, "content": "\n".join(results)}))
    trace = trace_of([Exchange(["Hi"], made, [made.answer])])
    case = TestCase(id="t1", turns=["Hi"])
    seen = checked(
        Trial(question="Hi", passed=True, answer=made.answer), trace, case, '{"nodes":[],"edges":[]}', stand_in=False
    )
    assert (seen.passed, seen.category) == (False, "EXTERNAL")
    fine = reply(step("iterationAgentflow_0", output={"iterationResults": ["Error in iteration was the subject"]}))
    assert trace_of([Exchange(["Hi"], fine, ["ok"])]).steps[0].error == ""


def test_p102_a_trace_holds_no_secrets() -> None:
    headers = {"authorization": "Basic abc", "X-Api-Key": "abc", "password": "abc"}
    made = reply(step("http_0", input={"headers": headers, "text": f"use {KEY}"}), text=KEY)
    text = trace_of([Exchange([KEY], made, [KEY])]).model_dump_json()
    assert KEY not in text
    assert '"abc"' not in text
    assert "Basic" not in text


@pytest.mark.parametrize(
    "made",
    [
        reply(*(step(f"llm_{n}", output={"content": "x" * 50_000}) for n in range(30))),
        reply(*(step(f"llm_{n}", output={str(k): k for k in range(900)}) for n in range(500))),
        reply(step("llm_0", output={"content": "é" * 2_000_000}), text="y" * 500_000),
    ],
)
def test_a_large_trace_is_cut_and_says_so(made: Prediction) -> None:
    trace = trace_of([Exchange(["Hi"], made, [made.answer])])
    text = trace.model_dump_json()
    assert len(text.encode()) <= TRACE_BYTES
    assert trace.cut
    assert Trace.model_validate_json(text) == trace


async def test_the_trace_of_a_failed_turn_shows_the_step_that_failed() -> None:
    flowise = BenchFlowise()
    flowise.in_turn = [FlowiseServerError("Error: boom")]
    flowise.failed_steps = [{"nodeId": "code_0", "status": "ERROR", "data": {"name": "code", "error": "boom"}}]
    run = await hold(flowise, TestCase(id="t1", turns=["Hi"]))
    assert (run.trial.passed, run.trial.answer) == (False, "")
    assert [(item.node_id, item.error) for item in run.trace.steps] == [("code_0", "boom")]
    assert "The step 'code_0' failed: " in run.trial.error


async def test_an_address_that_cannot_be_reached_ends_no_other_test() -> None:
    made = bench()
    made.flowise.answers = {"Hello": FlowiseServerError("x", details={"flowise_message": "connect ECONNREFUSED"})}
    made.reasoner.verdicts = [Verdict(done=True)]
    await made.start()
    review = await made.answer(action="approve")
    (asked,) = made.reasoner.seen["judge"]
    assert [(one.passed, one.category) for one in asked.trials] == [(False, "EXTERNAL"), (True, None)]
    assert review["data"]["verdict"]["headline"] == "runs"
    assert "ECONNREFUSED" in review["message"]


async def test_each_trial_of_a_review_names_its_stored_trace() -> None:
    made = bench()
    await made.start()
    review = await made.answer(action="approve")
    for test in review["data"]["tests"]:
        trace = Trace.model_validate_json(made.blobs.rows[test["trace_sha256"]])
        assert [turn.said for turn in trace.turns] == [test["question"]]
