"""Phase F, second half: test the written flow, judge the answers, let the person decide."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import TypeAdapter

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.agent.budget import asks_for_budget, budget_of, over_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import with_edits
from flowise_dev_agent.agent.domain import Domains, EvaluateRequest
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.stages import Stage, StageEvent, next_stage
from flowise_dev_agent.agent.state import (
    AgentState,
    CheckState,
    KeptIteration,
    PatchState,
    PlanState,
    ReviewState,
    TestsState,
    Update,
    WriteState,
)
from flowise_dev_agent.agent.test_copy import remove_copy, to_test
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.agent.tools import shorten
from flowise_dev_agent.approval.manual_edits import ops_of
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.patch.model.labels import in_words, titled
from flowise_dev_agent.planning.details import titles_of
from flowise_dev_agent.planning.passes.images import uploads
from flowise_dev_agent.planning.passes.mappings import kept_to
from flowise_dev_agent.planning.passes.personal_data import without_personal_data
from flowise_dev_agent.planning.remarks import is_remark
from flowise_dev_agent.planning.to_do import to_do
from flowise_dev_agent.publish import changes
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.schemas.base import kept
from flowise_dev_agent.schemas.change import Difference, RepairedValue
from flowise_dev_agent.schemas.event_data import TestData
from flowise_dev_agent.schemas.interrupts import FlowLink, Option, ResultReviewData, ResultReviewInterrupt
from flowise_dev_agent.schemas.plan import Plan, TestCase
from flowise_dev_agent.schemas.verdict import (
    FLOW_BUGS,
    NOT_THE_FLOW,
    Level,
    Regression,
    TestedIteration,
    Trace,
    Trial,
    Verdict,
)
from flowise_dev_agent.settings import LimitSettings
from flowise_dev_agent.testing.checks import comparable
from flowise_dev_agent.testing.judging import as_judged, best_of, lost
from flowise_dev_agent.testing.trials import Patience, TrialConversation, TrialRun, hold_all
from flowise_dev_agent.testing.ways import session_of
from flowise_dev_agent.texts import in_brief, lines, sentences, text

#: Characters of an answer that the state and the review carry; the full texts are a blob.
ANSWER_LIMIT = 1_000
#: Predictions of one suite that run at the same time.
PARALLEL_PREDICTIONS = 4
_FULL_LIMIT = 1_000_000
#: Earlier iterations that are kept beside the newest.
_MOST_KEPT = 9
#: Most reasons for what was not shown that the message of a review tells; its verdict has all.
_MOST_REASONS = 3
#: Levels of what is shown that a test in which everything ran is above.
_WEAKER: Final[Sequence[Level]] = ("simulated", "person", "setting")
#: Most lines of a review on ways through the flow; its verdict has all.
_MOST_WAYS: Final = 5
#: Most values changed by repairs that a review lists.
_MOST_REPAIRED = 20
#: Characters of foreign words in the status of a test.
_ERROR_CHARS: Final = 200
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


async def hitl_review_v2(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Show the tested flow and wait; with words for a flow of ops that is now written, go on with them."""
    if words := state.words_to_come:
        answer = {"type": "result_review", "action": "iterate", "feedback": words}
        return {"answer": answer, **_with_feedback(state, words)}
    difference = await _difference(state, runtime.context)
    titles, left = await _to_do(state, runtime.context)
    repaired = await _repaired(state, runtime.context)
    review = _result_review(state, runtime.context, difference, repaired, titles, left)
    answer: dict[str, Any] = interrupt(review.in_language(state.language).as_value())
    stage = state.write.stage
    match answer["action"]:
        case "accept" if _is_unwritten(state):
            return {"answer": answer, "outcome": "accepted"}
        case "accept" if state.intent.operation != "update":
            return {"answer": answer, **_accepted(state, answer, next_stage(stage, StageEvent.NEW_FLOW_ACCEPTED))}
        case "accept" if state.is_staged:
            return {"answer": answer, **_accepted(state, answer, next_stage(stage, StageEvent.DRAFT_ACCEPTED))}
        case "accept":
            return {"answer": answer, "outcome": "accepted"}
        case "rollback":
            return {"answer": answer, "write": WriteState(stage=next_stage(stage, StageEvent.ROLLED_BACK))}
        case "iterate" if ops := ops_of(answer):
            base = await flow_so_far(state, runtime.context)
            plan, credentials = await with_edits(state, runtime.context, ops, base)
            return {
                "answer": answer,
                "plan": PlanState(
                    contract=plan,
                    approved=True,
                    agreed=plan.capability,
                    agreed_values=plan.values,
                    agreed_iteration=state.iteration + 1,
                    feedback=None,
                ),
                "credentials": credentials,
                "patch": PatchState(ops=ops, samples=[], nothing_to_change=None, own=True),
                "check": CheckState(
                    flow_sha=None, findings=[], error_keys=[], validated_sha=None, retries=0, repairs=0, given_up=None
                ),
                "write": WriteState(reviewed_sha=None),
                "review": ReviewState(verdict=None, next_step=None),
                "iteration": state.iteration + 1,
            }
        case _:
            words = answer["feedback"]
            return {"answer": answer, "intent": state.with_words(words), **_with_feedback(state, words)}


def _with_feedback(state: AgentState, words: str) -> Update:
    """Update for words on a written flow, which are planned next."""
    return {
        "plan": PlanState(feedback=words),
        "patch": PatchState(own=False),
        "review": ReviewState(verdict=None),
        "iteration": state.iteration + 1,
    }


def _accepted(state: AgentState, answer: Mapping[str, Any], stage: Stage) -> Update:
    """Update for an accepted result: the newest iteration, or an earlier one that the answer names."""
    wanted = next((one for one in state.review.iterations if one.iteration == answer.get("iteration")), None)
    if wanted is None:
        return {"write": WriteState(stage=stage)}
    return {
        "write": WriteState(stage=stage, current_sha=wanted.flow_sha),
        "tests": TestsState(tested_sha=wanted.tested_sha),
    }


def _is_unwritten(state: AgentState) -> bool:
    """True if there was nothing to change: the flow is unchanged since before the session."""
    write = state.write
    return state.patch.nothing_to_change is not None and not write.draft_id and write.current_sha == write.original_sha


async def _difference(state: AgentState, context: AgentContext) -> Difference | None:
    """Difference between the original flow, if there was one, and the current one, over all iterations."""
    write = state.write
    if state.plan.current.leaves_nodes and write.original_sha == write.current_sha:
        return state.check.change
    before, after = [
        GraphIR.from_flow_data(await context.blobs.get(sha256)) if sha256 else GraphIR.empty()
        for sha256 in (write.original_sha, write.current_sha)
    ]
    return changes(before, after)


async def _repaired(state: AgentState, context: AgentContext) -> list[RepairedValue]:
    """Values that repairs changed since the approval, with what they were changed for."""
    since = [one for one in state.review.iterations if one.iteration >= state.plan.agreed_iteration]
    found: list[RepairedValue] = []
    for before, after in pairwise(since):
        old, new = [GraphIR.from_flow_data(await context.blobs.get(one.flow_sha)) for one in (before, after)]
        found += [
            RepairedValue(
                node=node.label or node.name,
                field=in_words(field.name),
                before=field.before,
                after=field.after,
                reason=before.reason.words if before.reason else "",
            )
            for node in changes(old, new).changed
            for field in node.fields
        ]
    return found[:_MOST_REPAIRED]


async def _to_do(state: AgentState, context: AgentContext) -> tuple[dict[str, str], list[str]]:
    """Titles of the nodes of the flow as it was written, by id, and things that only the person can do for it."""
    plan, schemas = state.plan.current, (await context.knowledge.nodes()).schemas
    graph = GraphIR.from_flow_data(await context.blobs.get(str(state.write.current_sha)))
    titles = titles_of(plan, graph, schemas)
    return titles, to_do(plan, graph, titles, schemas, state.credentials.skipped)


def _result_review(
    state: AgentState,
    context: AgentContext,
    difference: Difference | None,
    repaired: Sequence[RepairedValue],
    titles: Mapping[str, str],
    left: Sequence[str],
) -> ResultReviewInterrupt:
    plan, write = state.plan.current, state.write
    verdict = state.review.verdict.in_titles(titles) if state.review.verdict else None
    results, baseline = state.tests.results, state.tests.baseline or []
    chatflow_id = str(write.chatflow_id)
    # Only code has judged the answers before the change, so that what a judge found is not compared.
    judged = as_judged(results, verdict) if verdict else results
    reason, said = outcome_of(verdict, judged)
    if state.patch.nothing_to_change is not None:
        # Of a repair it says only why the result stays as it is.
        if _is_unwritten(state):
            reason, said = "nothing_to_change", [text("interrupt.nothing_changed")]
        said = [*said, state.patch.nothing_to_change]
    if verdict:
        said += [text("interrupt.not_done", listed=one) for one in verdict.not_done()[:_MOST_REASONS]]
    if left:
        said[1:1] = [text("interrupt.to_do"), *left]
    if added := sum(trial.test not in {case.id for case in tested_plan(state).tests} for trial in judged):
        said.append(text("interrupt.added_tests", count=added))
    if failed_alike(baseline, judged):
        said.append(text("interrupt.failed_before"))
    if verdict and (counted := verdict.pass_k) and counted.k > 1:
        said.append(
            text("interrupt.passed_in_all", passed=counted.passed, questions=counted.questions, count=counted.k)
        )
    if verdict and verdict.simulated:
        said.append(text("interrupt.simulated", actions="; ".join(verdict.simulated)))
    if verdict and verdict.called:
        said.append(text("interrupt.called", actions="; ".join(verdict.called)))
    said += [one.words for one in state.tests.ways[:_MOST_WAYS]]
    found = regressions(baseline, judged)
    worse = len({item.question for item in found if item.worse})
    if worse:
        said.append(text("interrupt.went_better", number=worse))
    if repaired:
        said.append(text("interrupt.changed_since_approval"))
        for one in repaired:
            before, after = one.before or "–", one.after or "–"
            changed = text("interrupt.value_changed", node=one.node, field=one.field, before=before, after=after)
            said.append(sentences(changed, one.worded("reason")))
    said += dict.fromkeys(one.words for one in state.check.findings if is_remark(one))
    iterations = _acceptable(state)
    before = best_of(iterations[:-1])
    if state.review.verdict and before and (gone := lost(before, state.review.verdict)):
        listed = "; ".join(titled(one, titles) for one in gone)
        said.append(text("interrupt.shown_before", iteration=before.iteration, listed=listed))
        said.append(text("interrupt.accept_earlier"))
    draft_id = write.draft_id
    return ResultReviewInterrupt(
        reason=reason,
        message=lines(*filter(None, said)),
        options=_options(state, judged),
        data=ResultReviewData(
            chatflow=FlowLink(
                id=chatflow_id,
                name=write.chatflow_name or "",
                url=context.chatflow_url(chatflow_id, plan.flow_kind),
            ),
            verdict=verdict,
            draft=FlowLink(id=draft_id, url=context.chatflow_url(draft_id, plan.flow_kind)) if draft_id else None,
            write_mode=write.mode,
            tests=judged,
            baseline=baseline,
            regressions=found,
            repaired=list(repaired),
            iterations=iterations,
            change=difference,
            notes=[note.words for note in state.plan.notes],
            usage=state.usage.spent,
            warnings=[item for item in state.check.findings if item.severity == "warning"],
            to_do=list(left),
            placeholders=plan.placeholders,
            degraded=state.usage.degraded,
        ),
    )


def _acceptable(state: AgentState) -> list[TestedIteration]:
    """Iterations to choose from; empty if a live flow was changed directly, since `accept` then writes nothing."""
    if state.intent.operation == "update" and not state.is_staged:
        return []
    views = [
        TestedIteration(iteration=one.iteration, headline=one.headline, shown=one.shown)
        for one in state.review.iterations
    ]
    return views if len(views) > 1 else []


def outcome_of(
    verdict: Verdict | None, results: Sequence[Trial]
) -> tuple[Literal["tests_passed", "tests_failed", "not_tested", "nothing_to_change"], list[str]]:
    """Reason of the review, and sentences on the test results."""
    if verdict is None:
        return "tests_failed", [text("interrupt.needs_a_look")]
    if verdict.headline == "not_tested":
        why = "interrupt.not_tested" if verdict.done else "interrupt.could_not_be_tested"
        return "not_tested", [text(why), verdict.worded("reason"), verdict.worded("fix")]
    if verdict.headline == "fails" or not (verdict.done or verdict.headline):
        return "tests_failed", [text("interrupt.needs_a_look"), verdict.worded("reason"), verdict.worded("fix")]
    passed = sum(result.passed for result in results)
    # What no test shows for real is told apart.
    known = [
        text(f"interrupt.shown_by.{level}", listed=found) for level in _WEAKER if (found := verdict.shown_by(level))
    ]
    if verdict.headline == "works":
        return "tests_passed", [text("interrupt.works", passed=passed, count=len(results)), *known]
    listed = verdict.not_shown()
    answered = text("interrupt.answers", passed=passed, count=len(results))
    shown = [text("interrupt.not_shown", listed=one) for one in listed[:_MOST_REASONS]]
    said = [sentences(answered, verdict.what_was_shown()), *known]
    if verdict.done:
        return "tests_passed", [*said, *shown]
    return "tests_failed", [*said, verdict.worded("reason"), verdict.worded("fix"), *shown]


def _options(state: AgentState, judged: Sequence[Trial]) -> list[Option]:
    iterate = option("iterate")
    if _is_unwritten(state):
        return [option("accept", "accept_unchanged"), iterate]
    what = "new" if state.intent.operation != "update" else "draft" if state.is_staged else "change"
    untested = what == "draft" and not any(trial.passed for trial in judged)
    accept = option("accept", "accept_draft_untested" if untested else f"accept_{what}")
    return [accept, iterate, option("rollback", f"rollback_{what}")]


# --- before and after a change ----------------------------------------------------------------------------------------


def regressions(before: Sequence[Trial], after: Sequence[Trial]) -> list[Regression]:
    """Compare answers before and after the change, per question executed both times; the first bad trial after the
    change counts.
    """
    found: list[Regression] = []
    for was in before:
        trials = [trial for trial in after if trial.question == was.question and _is_held(trial)]
        if trials and _is_held(was):
            found += _differences(was, next((trial for trial in trials if not trial.passed), trials[0]))
    return found


def failed_alike(before: Sequence[Trial], after: Sequence[Trial]) -> bool:
    """True if every failing trial also failed before the change for the same cause.

    False when nothing fails, or when there is nothing to compare with.
    """
    failed = [trial for trial in after if trial.category]
    return bool(failed) and all(any(_is_alike(was, now) for was in before) for now in failed)


def _is_alike(was: Trial, now: Trial) -> bool:
    """True for two failures of one cause; only a judge sees that of an answer, which is the same on both sides."""
    if was.question != now.question:
        return False
    same_answer = now.category in NOT_THE_FLOW and bool(now.answer) and was.answer == now.answer
    return same_answer or (was.category is not None and _status(was) == _status(now))


def _differences(was: Trial, now: Trial) -> list[Regression]:
    def found(kind: Literal["status", "error", "shape", "tools"], before: str, after: str) -> list[Regression]:
        worse = was.passed and not now.passed and now.category not in NOT_THE_FLOW
        made = Regression(question=was.question, kind=kind, worse=worse, before=before, after=after)
        return [made] if before != after else []

    if _is_alike(was, now):
        return []
    if was.passed != now.passed:
        return found("status", _status(was), _status(now))
    if not now.passed:
        return found("error", _status(was), _status(now))
    return found("shape", _shape(was.answer), _shape(now.answer)) + found("tools", _tools(was), _tools(now))


def _is_held(trial: Trial) -> bool:
    return trial.passed or trial.category is not None


def _status(trial: Trial) -> str:
    """Status of a trial: works, or its error, which names the cause."""
    return text("regression.works") if trial.passed else in_brief(trial.worded("error"), _ERROR_CHARS)


def _shape(answer: str) -> str:
    try:
        return "JSON" if isinstance(json.loads(answer), dict | list) else text("regression.text")
    except ValueError:
        return text("regression.text")


def _tools(trial: Trial) -> str:
    return ", ".join(sorted(set(trial.used_tools)))
