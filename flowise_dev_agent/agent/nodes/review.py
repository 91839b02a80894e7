"""Phase F, the end: show the tested flow and let the person decide."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import with_edits
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.nodes.testing import tested_plan
from flowise_dev_agent.agent.stages import Stage, StageEvent, next_stage
from flowise_dev_agent.agent.state import (
    AgentState,
    CheckState,
    PatchState,
    PlanState,
    ReviewState,
    TestsState,
    Update,
    WriteState,
)
from flowise_dev_agent.approval.manual_edits import ops_of
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.labels import in_words, titled
from flowise_dev_agent.planning.details import titles_of
from flowise_dev_agent.planning.remarks import is_remark
from flowise_dev_agent.planning.to_do import to_do
from flowise_dev_agent.publish import changes
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.change import Difference, RepairedValue
from flowise_dev_agent.schemas.interrupts import FlowLink, Option, ResultReviewData, ResultReviewInterrupt
from flowise_dev_agent.schemas.verdict import Level, TestedIteration, Trial, Verdict
from flowise_dev_agent.testing.before_after import failed_alike, regressions
from flowise_dev_agent.testing.judging import as_judged, best_of, lost
from flowise_dev_agent.texts import lines, sentences, text

#: Most reasons for what was not shown that the message of a review tells; its verdict has all.
_MOST_REASONS = 3
_FAULT_CHARS: Final = 300
#: Levels of what is shown that a test in which everything ran is above.
_WEAKER: Final[Sequence[Level]] = ("simulated", "person", "setting")
#: Most lines of a review on ways through the flow; its verdict has all.
_MOST_WAYS: Final = 5
#: Most values changed by repairs that a review lists.
_MOST_REPAIRED = 20


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
        said += [text("interrupt.fault", fault=shortened(one, _FAULT_CHARS)) for one in verdict.faults[:_MOST_REASONS]]
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
