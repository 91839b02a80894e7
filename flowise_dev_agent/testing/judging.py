"""Verdict on a flow: the evidence of a model's votes, what code can tell, and the headline that follows from both."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.field_kinds import PROSE
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.patch.model.sequential import TOLD
from flowise_dev_agent.schemas.plan import Criterion, Expectation, Part, Plan
from flowise_dev_agent.schemas.verdict import (
    NOT_THE_FLOW,
    CriterionVerdict,
    Evidence,
    Headline,
    Level,
    PartVerdict,
    TestedIteration,
    Trace,
    Trial,
    Verdict,
)
from flowise_dev_agent.testing.checks import Shown, TestedFlow, squeezed, unmet_by
from flowise_dev_agent.testing.plan_change import PlanChange, holds
from flowise_dev_agent.testing.tool_names import spelt, without_number
from flowise_dev_agent.texts import in_brief, listed, sentences, text

NOT_JUDGED: Final = text("verdict.not_judged")
_NO_EVIDENCE: Final = text("verdict.no_evidence")
_SHORTEST_QUOTE: Final = 2
_QUOTE_CHARS: Final = 200
#: Levels from the weakest.
_STRENGTH: Final[Sequence[Level]] = ("setting", "person", "simulated", "verified")


# --- criteria --------------------------------------------------------------------------------------------------------


def judged(
    verdict: Verdict,
    plan: Plan,
    results: Sequence[Trial],
    traces: Sequence[Trace],
    flow_data: str,
    *,
    by_model: bool,
    beside: Sequence[Trace] = (),
    original: str | None = None,
    tools: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """Verdict with a state for each criterion and part, and the headline that follows.

    `verdict.criteria` holds the votes of the model, if one has judged (`by_model`). `beside` are traces that count for
    the steps they reached alone. `original` is the flow before the session, None for a new one. `tools` as in
    `TestedFlow.of`.
    """
    agreed = {item.id for item in plan.criteria}
    plan = to_judge(plan) if by_model else plan
    expects = {case.id: case.expect for case in plan.tests}
    graph = GraphIR.from_flow_data(flow_data)
    flow = TestedFlow.of(graph, tools)
    shown = [
        Shown(number, trial, trace, expects.get(trial.test or "", Expectation()), flow)
        for number, (trial, trace) in enumerate(zip(results, traces, strict=True), start=1)
    ]
    votes = {vote.id: vote for vote in verdict.criteria}
    verdict = verdict.model_copy(update={"failed_trials": _failed_trials(verdict, len(results))})
    failed = set(verdict.failed_trials)
    unjudged = text("verdict.not_judged_after_failure") if any(trial.category for trial in results) else NOT_JUDGED
    change = PlanChange(plan, GraphIR.from_flow_data(original) if original else GraphIR.empty(), graph)
    parts_by_id = {part.id: part for part in plan.parts}
    criteria: list[CriterionVerdict] = []
    left = {part.id for part in plan.not_done}
    for item in plan.criteria:
        if item.part in left:
            continue  # the person knows that it is not done
        # What only a setting shows, no trial does.
        trials = [] if item.settings and not item.tests and not item.not_tested else _trials_of(item, shown)
        if trials or not item.settings:
            found = _criterion(item, trials, votes.get(item.id), failed, None if by_model else unjudged)
            found = _seen_anyhow(found, item)
            part = parts_by_id.get(item.part or "")
            found = _filled_in(found, trials, part, change)
            # Nodes that stay or go show themselves.
            settled = part and not part.values and item.not_tested and found.state != "shown"
            if part and settled and (read := change.read_off(part)):
                found, trials = found.model_copy(update={"state": "shown", "reason": read}), []
            # What no trial could show, the flow itself may.
            if found.state in ("not_tested", "not_shown") and item.settings and not item.not_tested:
                read = _by_settings(item, change)
                found, trials = (read, []) if read.state == "shown" else (found, trials)
        else:
            found = _by_settings(item, change)
        criteria.append(_with_level(found, trials))
    parts = [_part(part, criteria, change) for part in plan.parts]
    criteria = [one for one in criteria if one.id in agreed]
    criteria += _unreached(graph, [*traces, *beside], first=len(criteria) + 1)
    headline = _headline(verdict, criteria, parts, results)
    simulated = list(dict.fromkeys(one for trial in results for one in trial.simulated))
    called = list(dict.fromkeys(one for trial in results for one in trial.called))
    update = {
        "criteria": criteria,
        "parts": parts,
        "headline": headline,
        "simulated": simulated,
        "called": called,
    }
    return verdict.model_copy(update=update)


def to_judge(plan: Plan) -> Plan:
    """Plan whose tests also have to show what is only said to a model: each such criterion, and each part that a prompt
    carries and that no criterion is about, in the person's words. A criterion without a test may be shown by any.
    """
    tests = [case.id for case in plan.tests]
    if not tests:
        return plan
    criteria = [
        one.model_copy(update={"tests": tests})
        if not one.tests and (not one.settings if one.not_tested else all(map(PROSE.search, one.settings)))
        else one
        for one in plan.criteria
    ]
    about = {one.part for one in criteria}
    shown_by = {path for one in criteria for path in one.settings}
    number = max((int(one.id[1:]) for one in criteria), default=0)
    for part in plan.parts:
        said = [path for path in part.values if PROSE.search(path) and path not in shown_by]
        if part.state == "covered" and part.id not in about and said:
            number += 1
            criteria.append(Criterion(id=f"c{number}", text=part.quote, part=part.id, tests=tests))
    return plan.model_copy(update={"criteria": criteria})


def _with_level(verdict: CriterionVerdict, trials: Sequence[Shown]) -> CriterionVerdict:
    """Verdict with the strength of what was shown: a trial in which something was simulated shows no more than that."""
    if verdict.state != "shown":
        return verdict
    level: Level = "verified"
    if verdict.judged_by == "person":
        level = "person"
    elif not trials:
        level = "setting"
    elif any(item.trial.simulated for item in trials):
        level = "simulated"
    return verdict.model_copy(update={"level": level})


def _weakest(verdicts: Iterable[CriterionVerdict]) -> Level | None:
    levels = {one.level for one in verdicts}
    return next((level for level in _STRENGTH if level in levels), None)


def as_judged(results: Sequence[Trial], verdict: Verdict) -> list[Trial]:
    """Trials with those marked as failed that only the judge found wrong."""
    failed = set() if verdict.done else set(verdict.failed_trials)
    return [
        trial.model_copy(
            update={"passed": False, "category": verdict.category, "error": verdict.worded("reason")},
        )
        if trial.passed and number in failed
        else trial
        for number, trial in enumerate(results, start=1)
    ]


def _failed_trials(verdict: Verdict, count: int) -> list[int]:
    """Failed trials of a verdict, with those that show that a criterion failed."""
    shown_by = [proof.trial for vote in verdict.criteria if vote.state == "failed" for proof in vote.evidence]
    found = {*verdict.failed_trials, *([] if verdict.done else shown_by)}
    return sorted(number for number in found if 1 <= number <= count)


def _by_settings(criterion: Criterion, change: PlanChange) -> CriterionVerdict:
    """Verdict on a criterion that only says how the flow is set: the flow holds all these settings, or not.

    A new text for a model is no such setting, and a placeholder is none; a text of the flow that was edited is one.
    """
    named = {path: change.wanted(path) for path in criterion.settings}
    lacking = [path for path, one in named.items() if one is None or not holds(change.after, one)]
    held = [one for one in named.values() if one and not stands_in(one.value)]
    texts = [one for one in held if PROSE.search(one.param)]
    if lost := sorted(named.keys() & change.ignored):
        fields = ", ".join(change.field_in_words(path) for path in lost)
        shown, reason = False, text("verdict.setting_ignored", fields=fields)
    elif lacking:
        fields = ", ".join(dict.fromkeys(change.field_in_words(path) for path in lacking))
        shown, reason = False, text("verdict.setting_not_held", fields=fields)
    elif len(held) < len(named):
        shown, reason = False, text("verdict.answer_is_placeholder")
    elif any(not change.is_edited(one) for one in texts):
        shown, reason = False, text("verdict.in_prompt")
    elif texts:
        shown, reason = True, text("verdict.text_held")
    else:
        shown, reason = True, text("verdict.setting_held", setting=listed([change.value_in_words(one) for one in held]))
    return CriterionVerdict(
        id=criterion.id, text=criterion.text, state="shown" if shown else "not_shown", reason=reason
    )


def _filled_in(
    verdict: CriterionVerdict, trials: Iterable[Shown], part: Part | None, change: PlanChange
) -> CriterionVerdict:
    """Verdict that does not count as shown what a placeholder carries: one on the way of the answer that shows it, or
    any of its part if nothing of the part is on that way.
    """
    missing = change.placeholders(part) if part and verdict.state == "shown" else []
    if part is None or not missing:
        return verdict
    # A quotation of a step has its way only up to there.
    quoted = [(proof.trial, proof.node_id) for proof in verdict.evidence]
    way = {
        node_id
        for item in trials
        for number, until in quoted or [(item.number, None)]
        if number == item.number
        for node_id in item.way(change.after, until)
    }
    on_way = change.placeholders(part, way)
    if not on_way and not way.isdisjoint({*part.nodes, *(path.partition(".")[0] for path in part.values)}):
        return verdict
    reason = text("interrupt.to_be_filled_in", placeholders="; ".join(on_way or missing))
    return verdict.model_copy(update={"state": "not_shown", "judged_by": "code", "reason": reason})


def _trials_of(criterion: Criterion, shown: Sequence[Shown]) -> list[Shown]:
    """Trials of the tests that the criterion names; all trials if none of these tests ran."""
    named = [item for item in shown if item.trial.test in criterion.tests]
    return named or list(shown)


def _criterion(
    criterion: Criterion,
    trials: Sequence[Shown],
    vote: CriterionVerdict | None,
    failed: set[int],
    unjudged: str | None,
) -> CriterionVerdict:
    def given(
        state: Literal["shown", "not_shown", "failed", "not_tested"],
        reason: str,
        evidence: Sequence[Evidence] = (),
        judge: Literal["code", "model", "person"] = "code",
    ) -> CriterionVerdict:
        return CriterionVerdict(
            id=criterion.id,
            text=criterion.text,
            state=state,
            judged_by=judge,
            evidence=list(evidence),
            reason=in_brief(reason, 500),
        )

    if criterion.not_tested and not criterion.tests:
        return given("not_tested", criterion.not_tested)
    held = [item for item in trials if item.trial.passed or item.trial.category]
    if not held:
        return given("not_tested", trials[0].trial.worded("error") if trials else text("verdict.no_test"))
    broken = next((item for item in held if item.trial.category and item.trial.category not in NOT_THE_FLOW), None)
    if broken:
        return given("failed", broken.trial.worded("error"))
    blocked = next((item for item in held if item.trial.category), None)
    kept = [item for item in vote.evidence if is_quoted(item, held)] if vote else []
    if blocked and vote and vote.state == "shown" and kept:
        # What a conversation showed before something outside the flow ended it, stays shown.
        return given("shown", vote.worded("reason"), kept, vote.judged_by)
    if blocked:
        return given("not_tested", blocked.trial.worded("error"))
    if criterion.by_answer:
        return given("shown", text("verdict.all_answered"))
    if vote and vote.state == "failed":
        return given("failed", vote.worded("reason"), vote.evidence, "model")
    if any(MARK in item.trial.answer for item in held):
        return given("not_shown", text("verdict.answer_is_placeholder"))
    if any(item.gave_up for item in held) and not any(_is_beside_fallback(one, criterion, held) for one in kept):
        return given("not_shown", text("verdict.answer_is_fallback"))
    if any(MARK in source.text for item in held for source in item.trace.sources):
        return given("not_shown", text("verdict.source_is_placeholder"))
    if vote:
        if vote.state == "shown" and not kept:
            return given("not_shown", _NO_EVIDENCE, judge="model")
        if vote.state == "shown" and failed.intersection(item.number for item in held):
            return given("not_shown", text("verdict.test_failed"), kept, "model")
        return given("shown" if vote.state == "shown" else "not_shown", vote.worded("reason"), kept, vote.judged_by)
    if unjudged is None:
        return given("not_shown", text("verdict.not_voted"), judge="model")
    unmet = [one.text for item in held for one in unmet_by(item.trial, item.trace, item.expect, item.flow)]
    if unmet:
        return given("not_shown", sentences(*unmet))
    evidence = [proof for item in held if (proof := _proof(item, criterion.text))]
    if len(evidence) == len(held):
        return given("shown", "", evidence)
    return given("not_shown", unjudged)


def _seen_anyhow(verdict: CriterionVerdict, criterion: Criterion) -> CriterionVerdict:
    """Verdict on a criterion that by the plan no test shows: only what a judge saw all the same counts."""
    by_judge = verdict.state == "shown" or (verdict.state, verdict.judged_by) == ("failed", "model")
    if not criterion.not_tested or by_judge:
        return verdict
    update = {"state": "not_tested", "reason": criterion.not_tested, "evidence": [], "judged_by": "code"}
    return verdict.model_copy(update=update)


def _is_beside_fallback(evidence: Evidence, criterion: Criterion, trials: Iterable[Shown]) -> bool:
    """True for a quotation that is no text of a flow that gave up, unless this text is what the criterion is about."""
    quote = squeezed(evidence.quote)
    given_up = [squeezed(item.trial.answer) for item in trials if item.gave_up]
    return not any(quote in said and said not in squeezed(criterion.text) for said in given_up)


def is_quoted(evidence: Evidence, trials: Iterable[Shown]) -> bool:
    """True if the quote occurs in the trial that it names, or in its trace."""
    quote = squeezed(evidence.quote).strip("\"'“”„«»…. ")
    if len(quote) < _SHORTEST_QUOTE and not quote.isdigit():
        return False
    # A digit counts as a whole number only.
    found = re.compile(rf"(?<!\w){re.escape(quote)}(?!\w)" if quote.isdigit() else re.escape(quote))
    for item in trials:
        if item.number != evidence.trial:
            continue
        texts = [item.trial.answer, *(turn.answer for turn in item.trace.turns)]
        # What a stand-in said is made up: it proves nothing.
        steps = [step for step in item.trace.steps if evidence.node_id in (None, step.node_id)]
        acts = (*steps, *item.trace.used_tools)
        texts += [one.model_dump_json(exclude={"output"} if one.simulated else None) for one in acts]
        texts += [source.model_dump_json() for source in item.trace.sources]
        return any(found.search(squeezed(text)) for text in texts)
    return False


def _proof(item: Shown, text: str) -> Evidence | None:
    """Evidence that the expectations of a trial are met; None if code can check none of them.

    A step that ran proves nothing about its answer; a used tool proves only statements about that tool.
    """
    expect = item.expect
    if expect.contains:
        at = item.trial.answer.casefold().find(expect.contains[0].casefold())
        if at < 0:
            return None  # said before the end: only a judge can tell if that is what the statement is about
        quote = item.trial.answer[at : at + len(expect.contains[0])]
    elif expect.sources and item.trace.sources:
        quote = item.trace.sources[0].text
    elif expect.fields:
        quote = expect.fields[0]
    elif any(without_number(tool) in spelt(text) for tool in expect.tools):
        quote = item.trial.used_tools[0]
    else:
        return None
    return Evidence(trial=item.number, quote=quote[:_QUOTE_CHARS])


def unreached_steps(graph: GraphIR, traces: Iterable[Trace]) -> list[str]:
    """Ids of the steps of an agentflow or a sequence that no test reached. Steps inside an iteration and loops are not
    counted: a trace need not show them.
    """
    ran = {step.node_id for trace in traces for step in trace.steps}
    return [
        node.id
        for node in graph.nodes
        if ran and (node.is_agentflow or node.name in TOLD) and not node.is_note and not node.parent
        if node.id not in ran and node.name not in ("startAgentflow", "loopAgentflow")
    ]


def _unreached(graph: GraphIR, traces: Iterable[Trace], first: int) -> list[CriterionVerdict]:
    labels = {node.id: node.label for node in graph.nodes}
    return [
        CriterionVerdict(
            id=f"c{number}",
            text=text("verdict.step_runs", step=labels[node]),
            state="not_tested",
            reason=text("verdict.step_not_reached"),
        )
        for number, node in enumerate(unreached_steps(graph, traces), start=first)
    ]


# --- parts and headline ----------------------------------------------------------------------------------------------


def _part(part: Part, verdicts: Sequence[CriterionVerdict], change: PlanChange) -> PartVerdict:
    def given(
        state: Literal["done", "assumed", "not_shown", "missing", "not_possible"],
        reason: str,
        level: Level | None = None,
    ) -> PartVerdict:
        return PartVerdict(id=part.id, quote=part.worded("quote"), state=state, reason=reason, level=level)

    match part.state:
        case "assumed" | "not_possible":
            return given(part.state, part.reason)
        case "background":
            return given("done", part.reason)
        case "asked" | "not_understood":
            return given("missing", part.reason or text("verdict.not_planned"))
        case "covered":
            pass
    plan = change.plan
    # A removed node is verified by its absence.
    ids = {*(node.id for node in change.after.nodes), *plan.removals}
    if absent := [node for node in part.nodes if node not in ids]:
        return given("missing", text("verdict.nodes_missing", nodes=", ".join(map(change.title, absent))))
    if stay := [node for node in part.nodes if change.stays(node)]:
        return given("missing", text("verdict.nodes_stay", nodes=", ".join(map(change.title, stay))))
    if lost := [path for path in part.values if path in change.ignored]:
        return given("not_shown", text("verdict.setting_ignored", fields=", ".join(map(change.field_in_words, lost))))
    by_id = {verdict.id: verdict for verdict in verdicts}
    own = [by_id[item.id] for item in plan.criteria if item.part == part.id and item.id in by_id]
    edited = {path for item in plan.criteria if _state(by_id.get(item.id)) == "shown" for path in item.settings}
    said = [value for value in part.values if PROSE.search(value) and value not in edited]
    if not own and said:
        if read := change.read_off(part):
            return given("done", read, "setting")
        # One part may hold several requirements: some become nodes and values, the rest only text.
        return given("not_shown", text("verdict.in_prompt" if said == part.values else "verdict.in_prompt_partly"))
    if open_ := next((item for item in own if item.state != "shown"), None):
        if not any(item.state == "failed" for item in own) and (read := change.read_off(part)):
            return given("done", read, "setting")
        return given("not_shown", open_.worded("reason") or open_.worded("text"))
    if not own and not change.carries(part):
        return given("not_shown", text("verdict.nothing_carries"))
    if missing := change.placeholders(part):
        return given("not_shown", text("interrupt.to_be_filled_in", placeholders="; ".join(missing)))
    return given("done", part.reason, _weakest(own) or "setting")


def _state(verdict: CriterionVerdict | None) -> str:
    return verdict.state if verdict else ""


def _headline(
    verdict: Verdict, criteria: Sequence[CriterionVerdict], parts: Sequence[PartVerdict], results: Sequence[Trial]
) -> Headline:
    failed = set() if verdict.done else set(verdict.failed_trials)
    causes = [
        result.category or (verdict.category if number in failed else None)
        for number, result in enumerate(results, start=1)
        if result.passed or result.category
    ]
    if all(cause in NOT_THE_FLOW for cause in causes):
        return "not_tested"
    if any(cause and cause not in NOT_THE_FLOW for cause in causes):
        return "fails"
    if not verdict.done:
        return "runs" if verdict.category in NOT_THE_FLOW else "fails"
    shown = bool(criteria) and all(item.state == "shown" for item in criteria)
    return "works" if shown and all(part.state in ("done", "assumed") for part in parts) else "runs"


def best_of(iterations: Sequence[TestedIteration]) -> TestedIteration | None:
    """Best iteration by what its tests showed; the newest of equals."""
    ranks = {"works": 2, "runs": 1, "not_tested": 0, "fails": -1}
    return max(iterations, key=lambda one: (ranks[one.headline], len(one.shown), one.iteration), default=None)


def lost(before: TestedIteration, now: Verdict) -> list[str]:
    """Criteria that an iteration met and this verdict includes as not met."""
    return [item.text for item in now.criteria if item.state != "shown" and item.text in before.shown]
