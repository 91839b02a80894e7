"""Phase F, second half: test the written flow and judge its answers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from langgraph.runtime import Runtime
from pydantic import TypeAdapter

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.agent.budget import asks_for_budget, budget_of, over_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import Domains, EvaluateRequest
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.stages import Stage, StageEvent, next_stage
from flowise_dev_agent.agent.state import AgentState, KeptIteration, ReviewState, TestsState, Update, WriteState
from flowise_dev_agent.agent.test_copy import remove_copy, to_test
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.agent.tools import shorten
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.planning.passes.images import uploads
from flowise_dev_agent.planning.passes.mappings import kept_to
from flowise_dev_agent.planning.passes.personal_data import without_personal_data
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.schemas.base import kept
from flowise_dev_agent.schemas.event_data import TestData
from flowise_dev_agent.schemas.plan import Plan, TestCase
from flowise_dev_agent.schemas.verdict import FLOW_BUGS, Trace, Trial, Verdict
from flowise_dev_agent.settings import LimitSettings
from flowise_dev_agent.testing.before_after import failed_alike
from flowise_dev_agent.testing.checks import comparable
from flowise_dev_agent.testing.trials import Patience, TrialConversation, TrialRun, hold_all
from flowise_dev_agent.testing.ways import session_of

#: Characters of an answer that the state and the review carry; the full texts are a blob.
ANSWER_LIMIT = 1_000
#: Predictions of one suite that run at the same time.
PARALLEL_PREDICTIONS = 4
_FULL_LIMIT = 1_000_000
#: Earlier iterations that are kept beside the newest.
_MOST_KEPT = 9
_RESULTS: Final = TypeAdapter(list[Trial])


async def test_v2(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> Update:
    """Run every test conversation `trials` times, each in its own session; before a change, once on the unchanged flow.

    Wherever the flow waits for a person it is decided both ways.
    """
    emit = Emitter(runtime, "test_v2")
    context = runtime.context
    before = state.write.stage is Stage.BASELINE
    chatflow_id = str(state.write.draft_id or state.write.chatflow_id)
    if state.write.draft_id and not before:
        # The tested bytes of a draft go live, so they are read right before the tests.
        flow = await context.publisher.read(chatflow_id)
    else:
        flow = await context.publisher.current(chatflow_id)
    flow_data = flow.flow_data
    suite = domains.tests(
        tested_plan(state),
        flow_data,
        trials=1 if before else state.request.test_trials,
    )
    if state.tests.real and not before:
        # Each call is one that the person asked for: no test of the code's own.
        given = max(1, len(tested_plan(state).tests))
        suite = replace(suite, cases=suite.cases[:given], real=state.tests.real)
    asked = await to_test(state, context, domains, emit, flow, suite)
    images = await uploads(context.files, flow_data)
    titles = {node.node_id: node.label for node in state.plan.current.nodes if node.label}
    gate = asyncio.Semaphore(PARALLEL_PREDICTIONS)
    patience = Patience()

    async def hold(case: TestCase, number: int) -> TrialRun:
        turn = "before" if before else state.iteration
        session = session_of(f"fda-test-{context.session_id}-{turn}", case, number)
        async with gate:
            why_not = suite.not_testable.get(case.id) or asked.forbidden
            conversation = TrialConversation(
                asked.chatflow_id,
                flow_data,
                case,
                number,
                session,
                why_not,
                images,
                asked.simulation,
                timeout=patience.seconds,
            )
            run = await domains.primary.run_trial(context, conversation)
            patience.note(run)
        if state.intent.operation == "update" and not state.write.draft_id and not asked.copy_id:
            # Best effort: without the permission the conversation stays in the live flow's chat history.
            with suppress(FlowiseError):
                await domains.primary.forget(context, chatflow_id, session)
        held = comparable(run.trial, case.expect, flow_data, titles) if before else run.trial
        trial, pii_fields = kept_to(held, run.trace, state.plan.current.mappings), state.plan.current.pii_fields
        trace = without_personal_data(run.trace, pii_fields, state.plan.current.pii_tools)
        said = trace.turns[-1].answer if pii_fields and trace.turns else trial.answer
        if not before:
            trial = trial.model_copy(update={"trace_sha256": await context.blobs.put(trace.model_dump_json())})
        emit.put(
            TestData(
                question=shorten(trial.question, 300),
                trial=number,
                before=before,
                passed=trial.passed,
                category=trial.category,
                answer=shorten(said or trial.error, 300),
                duration_ms=trial.duration_ms,
            ),
            f"{'before: ' if before else ''}{'ok' if trial.passed else trial.category}: {shorten(trial.question, 80)}",
        )
        return replace(run, trial=trial)

    def more(runs: Sequence[TrialRun]) -> list[TestCase]:
        return [] if asked.forbidden else domains.primary.more_tests(flow_data, runs, asked.simulation)

    runs = await hold_all(suite.cases, hold, trials=suite.trials, more=None if before or suite.real else more)
    # Answers may hold secrets of the flow, which neither judges nor people need.
    results = [Trial(**redacted(run.trial.model_dump())) for run in runs]
    shown = [result.shortened(ANSWER_LIMIT) for result in results]
    if before:
        stage = next_stage(state.write.stage, StageEvent.BASELINE_TESTED)
        return {"tests": TestsState(baseline=shown, copy_id=asked.copy_id), "write": WriteState(stage=stage)}
    judged = sum(result.probe is None for result in results)
    full = _RESULTS.dump_json([result.shortened(_FULL_LIMIT) for result in results[:judged]]).decode()
    answers_sha = await context.blobs.put(full)
    tested = payload_sha256(flow_data)
    return {
        "tests": TestsState(
            results=shown[:judged],
            probes=shown[judged:],
            ways=[] if suite.real else [*map(kept, domains.primary.told_ways(flow_data, runs, asked.simulation))],
            answers_sha=answers_sha,
            tested_sha=tested,
            copy_id=asked.copy_id,
        )
    }


test_v2.__test__ = False  # type: ignore[attr-defined]  # a node, not a pytest function


@asks_for_budget
async def evaluate(
    state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains, tools: SessionToolbox
) -> Update:
    """Evaluate the tests: code decides failures, the reasoner judges content; then iterate or ask the person."""
    emit = Emitter(runtime, "evaluate")
    context = runtime.context
    results = _RESULTS.validate_json(await context.blobs.get(str(state.tests.answers_sha)))
    traces = [
        Trace.model_validate_json(await context.blobs.get(str(trial.trace_sha256)))
        for trial in (*results, *state.tests.probes)
    ]
    result = await domains.evaluate(
        context,
        EvaluateRequest(
            requirement=state.request.requirement,
            clarifications=tuple(state.intent.clarifications),
            later=tuple(state.intent.later),
            plan=tested_plan(state),
            results=tuple(results),
            traces=tuple(traces[: len(results)]),
            beside=tuple(traces[len(results) :]),
            flow_data=await context.blobs.get(str(state.write.current_sha)),
            original=await context.blobs.get(state.write.original_sha) if state.write.original_sha else None,
            model=state.request.model,
            on_delta=emit.delta,
            budget=budget_of(state, context.limits),
            tools=tools,
        ),
    )
    emit.reasoned("judge", result)
    await remove_copy(state, context)
    # Its words go into the result, the history and webhooks.
    verdict = Verdict(**redacted(result.value.model_dump()))
    verdict = verdict.model_copy(update={"ways": [one.words for one in state.tests.ways]})
    step, iteration = next_step(state, verdict, context.limits)
    if verdict.category in FLOW_BUGS:
        await pattern_reuse.count_failure(state, context)
    return {
        "review": ReviewState(verdict=verdict, next_step=step, iterations=_with_this(state, verdict)),
        "tests": TestsState(copy_id=None),
        "iteration": iteration,
        "usage": state.usage.plus("judge", result),
    }


def _with_this(state: AgentState, verdict: Verdict) -> list[KeptIteration]:
    """Tested iterations including the current one, which replaces its earlier result."""
    this = KeptIteration(
        iteration=state.iteration,
        headline=verdict.headline or "not_tested",
        shown=[item.text for item in verdict.criteria if item.state == "shown"],
        flow_sha=str(state.write.current_sha),
        tested_sha=str(state.tests.tested_sha),
        reason=kept(verdict.worded("reason")) if verdict.reason else None,
    )
    others = [one for one in state.review.iterations if one.iteration != this.iteration]
    return [*others[-_MOST_KEPT:], this]


def tested_plan(state: AgentState) -> Plan:
    """Plan with the person's own test questions, if any, instead of its tests."""
    questions = state.tests.questions
    return state.plan.current.with_questions(questions) if questions else state.plan.current


def next_step(state: AgentState, verdict: Verdict, limits: LimitSettings) -> tuple[Literal["iterate", "review"], int]:
    """Next step and its iteration. Iterate only for flow bugs, within the limits, and not if the person edited by hand,
    the last iteration got the same verdict, or the same tests failed before the change.
    """
    iteration, previous = state.iteration, state.review.verdict
    if state.patch.own or failed_alike(state.tests.baseline or [], state.tests.results):
        return "review", iteration
    same_again = previous is not None and (previous.reason, previous.category) == (verdict.reason, verdict.category)
    if verdict.done or verdict.category not in FLOW_BUGS or same_again:
        return "review", iteration
    if iteration + 1 >= limits.max_iterations or over_budget(state, limits):
        return "review", iteration
    return "iterate", iteration + 1
