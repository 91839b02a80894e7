"""Phase F, second half: ask the written flow, judge the answers, let the person decide."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent import pattern_reuse as patterns
from flowise_dev_agent.agent.budget import asks_for_budget, budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import EvaluateRequest, TrialResult
from flowise_dev_agent.agent.domains import Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.nodes.apply import is_staged
from flowise_dev_agent.agent.nodes.check import over_budget
from flowise_dev_agent.agent.regression import failed_alike, regressions
from flowise_dev_agent.agent.state import AgentState, degraded_marker
from flowise_dev_agent.agent.tools import shorten
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.publish import changes
from flowise_dev_agent.reasoning.contracts import FLOW_BUGS, PlanContract, Verdict
from flowise_dev_agent.settings import LimitSettings

#: Characters of an answer that the state and the review carry; the full texts are a blob.
ANSWER_LIMIT = 1_000
#: Predictions of one suite that run at the same time.
PARALLEL_PREDICTIONS = 4


async def test_v2(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> dict[str, Any]:
    """Ask every question `trials` times, each in a session of its own; before a change once, as the flow still is."""
    emit = Emitter(runtime, "test_v2")
    context = runtime.context
    request = state["request"]
    before = state["stage"] == "baseline"
    suite = domains.primary.generate_tests(
        PlanContract(**(state["plan"] or {})),
        questions=request.get("test_questions"),
        trials=1 if before else request.get("test_trials") or 1,
    )
    chatflow_id = str(state["draft_id"] or state["chatflow_id"])
    tested = payload_sha256((await context.flowise.get_chatflow(chatflow_id)).flow_data)
    gate = asyncio.Semaphore(PARALLEL_PREDICTIONS)

    async def ask(index: int, question: str, number: int) -> TrialResult:
        turn = "before" if before else state["iteration"]
        session = f"fda-test-{state['session_id']}-{turn}-{index}-{number}"
        async with gate:
            result = await domains.primary.run_trial(context, chatflow_id, question, number, session)
        if state["operation_mode"] == "update" and not state["draft_id"]:
            await _forget(context, chatflow_id, session)
        emit.event(
            "test",
            f"{'before: ' if before else ''}{'ok' if result.category is None else result.category}: "
            f"{shorten(question, 80)}",
            question=shorten(question, 300),
            trial=number,
            before=before,
            passed=result.category is None,
            category=result.category,
            answer=shorten(result.answer or result.error, 300),
            duration_ms=result.duration_ms,
        )
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ask(index, question, number))
            for index, question in enumerate(suite.questions)
            for number in range(1, suite.trials + 1)
        ]
    results = [task.result() for task in tasks]
    if before:
        return {"baseline_tests": [result.as_json(ANSWER_LIMIT) for result in results], "stage": "apply"}
    full = await context.blobs.put(json.dumps([result.as_json(limit=1_000_000) for result in results], sort_keys=True))
    return {
        "tests": [result.as_json(ANSWER_LIMIT) for result in results],
        "tested_sha": tested,
        "artifacts": {"flowise": {"tests": full}},
    }


test_v2.__test__ = False  # type: ignore[attr-defined]  # a node, not a pytest function


async def _forget(context: AgentContext, chatflow_id: str, session: str) -> None:
    """Take a test out of the chat history of a flow in use; a key that may not do so leaves it there."""
    with suppress(FlowiseError):
        await context.flowise.delete_messages(chatflow_id, session)


@asks_for_budget
async def evaluate(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> dict[str, Any]:
    """Code decides what failed, the reasoner judges content; then iterate or show the person."""
    emit = Emitter(runtime, "evaluate")
    context = runtime.context
    raw: list[dict[str, Any]] = json.loads(await context.blobs.get(state["artifacts"]["flowise"]["tests"]))
    results = tuple(
        TrialResult(
            question=item["question"],
            number=item["trial"],
            answer=item["answer"],
            category=item["category"],
            error=item["error"],
            duration_ms=item["duration_ms"],
            used_tools=tuple(item["used_tools"]),
        )
        for item in raw
    )
    result = await domains.primary.evaluate(
        context,
        EvaluateRequest(
            requirement=state["requirement"],
            plan=PlanContract(**(state["plan"] or {})),
            results=results,
            model=state["request"].get("model"),
            on_delta=emit.delta,
            budget=budget_of(state, context.limits),
        ),
    )
    emit.reasoned("judge", result)
    verdict = result.value
    step, iteration = next_step(state, verdict, context.limits)
    if verdict.category in FLOW_BUGS:
        await patterns.failed(state, context)
    return {
        "verdict": verdict.model_dump(),
        "next_step": step,
        "iteration": iteration,
        "usage": result.usage.model_dump(),
        "degraded": degraded_marker("judge", result.degraded),
    }


def next_step(state: Mapping[str, Any], verdict: Verdict, limits: LimitSettings) -> tuple[str, int]:
    """("iterate" or "review", the iteration that follows). Only flow bugs iterate, only within the ceilings, not for
    the very verdict that the last iteration could not mend, and not for what failed before the change just as well."""
    iteration: int = state["iteration"]
    if failed_alike(state["baseline_tests"] or [], state["tests"]):
        return "review", iteration
    previous: Mapping[str, Any] = state["verdict"] or {}
    same_again = previous.get("reason") == verdict.reason and previous.get("category") == verdict.category
    if verdict.done or verdict.category not in FLOW_BUGS or same_again:
        return "review", iteration
    if iteration + 1 >= limits.max_iterations or over_budget(state, limits):
        return "review", iteration
    return "iterate", iteration + 1


async def hitl_review_v2(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Show the tested flow and wait."""
    difference = await _difference(state, runtime.context)
    answer: dict[str, Any] = interrupt(_result_review(state, runtime.context, difference))
    match answer["action"]:
        case "accept" if state["operation_mode"] != "update":
            return {"answer": answer, "stage": "accept"}
        case "accept" if is_staged(state):
            return {"answer": answer, "stage": "promote"}
        case "accept":
            return {"answer": answer, "outcome": "accepted"}
        case "rollback":
            return {"answer": answer, "stage": "rollback"}
        case _:
            return {
                "answer": answer,
                "feedback": answer["feedback"],
                "verdict": None,
                "iteration": state["iteration"] + 1,
            }


async def _difference(state: AgentState, context: AgentContext) -> dict[str, Any] | None:
    """What the session changed in the flow that it was given, all iterations together."""
    artifacts: dict[str, str] = state["artifacts"]["flowise"]
    if "original_flow" not in artifacts:
        return state["change"]
    before, after = [await context.blobs.get(artifacts[key]) for key in ("original_flow", "current_flow")]
    return changes(GraphIR.from_flow_data(before), GraphIR.from_flow_data(after))


def _result_review(state: AgentState, context: AgentContext, difference: dict[str, Any] | None) -> dict[str, Any]:
    verdict: dict[str, Any] = state["verdict"] or {}
    plan: dict[str, Any] = state["plan"] or {}
    chatflow_id = str(state["chatflow_id"])
    passed = sum(test["passed"] for test in state["tests"])
    if verdict.get("done"):
        reason, message = (
            "tests_passed",
            f"The chatflow works: {passed} of {len(state['tests'])} test questions passed.",
        )
    else:
        reason = "tests_failed"
        message = f"The chatflow needs a look. {verdict.get('reason', '')} {verdict.get('fix', '')}".strip()
    if failed_alike(state["baseline_tests"] or [], state["tests"]):
        message += " It failed in the same way before the change."
    counted: dict[str, Any] = verdict.get("pass_k") or {}
    if counted.get("k", 1) > 1:
        message += f" {counted['passed']} of {counted['questions']} passed in each of {counted['k']} trials."
    if plan["placeholders"]:
        message += f" Still to be filled in: {'; '.join(plan['placeholders'])}."
    found = regressions(state["baseline_tests"] or [], state["tests"])
    worse = len({item["question"] for item in found if item["worse"]})
    if worse:
        message += f" Questions that went better before the change: {worse}."
    draft_id = state["draft_id"]
    return build_interrupt(
        "result_review",
        reason=reason,
        message=message,
        options=_options(state),
        data={
            "chatflow": {
                "id": chatflow_id,
                "name": state["chatflow_name"],
                "url": context.chatflow_url(chatflow_id, plan["flow_kind"]),
            },
            "verdict": verdict,
            "draft": {"id": draft_id, "url": context.chatflow_url(draft_id, plan["flow_kind"])} if draft_id else None,
            "write_mode": state["write_mode"],
            "tests": state["tests"],
            "baseline": state["baseline_tests"] or [],
            "regressions": found,
            "change": difference,
            "notes": state["notes"],
            "usage": state["usage"],
            "warnings": [item for item in state["findings"] if item["severity"] == "warning"],
            "placeholders": plan["placeholders"],
            "degraded": state["degraded"],
        },
    )


def _options(state: AgentState) -> list[dict[str, str]]:
    if state["operation_mode"] != "update":
        accept, undo = "Deploy the chatflow.", "Delete the chatflow that this session made."
    elif is_staged(state):
        accept, undo = (
            "Put the tested change into the flow in use.",
            "Delete the draft; the flow in use was not touched.",
        )
    else:
        accept, undo = "Keep the change.", "Put the flow back to what it was."
    return [
        option("accept", "Accept", accept),
        option("iterate", "Change it", "Say what should be different."),
        option("rollback", "Roll back", undo),
    ]
