"""Evaluate tests: checks by code, evidence of the model's votes, and the headline that follows from both."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.agentflow import CONDITION_AGENT
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.placeholders import MARK
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Criterion, Expectation, Part, Plan, TestCase
from flowise_dev_agent.schemas.verdict import (
    CriterionVerdict,
    Evidence,
    Headline,
    PartVerdict,
    TestedIteration,
    Trace,
    Trial,
    Verdict,
    VerdictCategory,
)
from flowise_dev_agent.testing import playbook
from flowise_dev_agent.testing.tool_names import RuntimeNames, runtime_names, spelt, without_number
from flowise_dev_agent.texts import sentences, text

NOT_JUDGED: Final = text("verdict.not_judged")
_NO_EVIDENCE: Final = text("verdict.no_evidence")
#: Variables in Flowise's syntax, also with one brace missing.
_VARIABLE: Final = re.compile(r"\{\{[^{}]{1,200}\}\}|\{\s*\$(?:flow|form|vars|webhook|iteration)\b[^{}]{0,200}\}")
#: Fields that a model reads: their presence in the flow proves nothing.
_PROSE: Final = re.compile(r"(?:prompt|messages?|\]\.content|instructions|template|prefix)$", re.IGNORECASE)
_SHORTEST_QUOTE: Final = 2
_QUOTE_CHARS: Final = 200
_MODELS: Final = frozenset(("Chat Models", "LLMs"))
_MODEL_FIELD: Final = re.compile(r"(?<!embedding)model$", re.IGNORECASE)


@dataclass(frozen=True)
class Unmet:
    """Expectation that an answer and its trace do not meet.

    `hard`: code is certain. Otherwise only a judge can tell if other words mean the same.
    """

    text: str
    hard: bool


@dataclass(frozen=True)
class Shown:
    """Trial with its trace and the expectations of its test."""

    number: int
    trial: Trial
    trace: Trace
    expect: Expectation
    #: Tools of the flow.
    names: RuntimeNames


def checked(trial: Trial, trace: Trace, case: TestCase, flow_data: str, *, stand_in: bool) -> Trial:
    """Trial with the problems that code finds in its answer and trace, unless the request itself failed.

    Answers of a stand-in say nothing about what a real model would do, so that they break no expectation.
    """
    if trial.category or not trial.passed:
        return trial
    category, error = _seen(trial, trace, flow_data)
    if category is None and not stand_in:
        names = runtime_names(GraphIR.from_flow_data(flow_data)) if case.expect.tools else {}
        wrong = [unmet.text for unmet in unmet_by(trial, trace, case.expect, names) if unmet.hard]
        category, error = ("LOGIC", sentences(*wrong)) if wrong else (None, "")
    return trial.model_copy(update={"passed": False, "category": category, "error": error}) if category else trial


def as_expected(trial: Trial, trace: Trace, case: TestCase, flow_data: str) -> Trial:
    """Like `checked`, for a test that a person wrote: every unmet expectation is a failure."""
    trial = checked(trial, trace, case, flow_data, stand_in=True)
    names = runtime_names(GraphIR.from_flow_data(flow_data)) if case.expect.tools else {}
    unmet = [one.text for one in unmet_by(trial, trace, case.expect, names)] if trial.passed else []
    return (
        trial.model_copy(update={"passed": False, "category": "LOGIC", "error": sentences(*unmet)}) if unmet else trial
    )


def _seen(trial: Trial, trace: Trace, flow_data: str) -> tuple[VerdictCategory | None, str]:
    for step in trace.steps:
        if step.error or step.status == "ERROR":
            error = step.error or text("verdict.no_explanation")
            failure = text("verdict.step_failed", step=step.label or step.node_id, error=error)
            return _category_of(failure), failure
    for tool in trace.used_tools:
        if tool.error:
            failure = text("verdict.tool_failed", tool=tool.tool, error=tool.error)
            return _category_of(failure), failure
    last = trace.steps[-1] if trace.steps else None
    if last and last.name == CONDITION_AGENT and trial.answer.lstrip().startswith("{"):
        return "LOGIC", text("verdict.condition_is_answer", step=last.label or last.node_id)
    # Only variables of the flow itself count: an answer about templates is correct.
    for variable in _VARIABLE.findall(trial.answer):
        if json.dumps(variable, ensure_ascii=False)[1:-1] in flow_data:
            return "LOGIC", text("verdict.variable_shown", variable=variable)
    return None, ""


def _category_of(failure: str) -> VerdictCategory:
    known = playbook.known(failure)
    return known.category if known else "LOGIC"


def unmet_by(trial: Trial, trace: Trace, expect: Expectation, names: RuntimeNames) -> list[Unmet]:
    """Unmet expectations of a trial; `names` maps the flow's tools to their runtime names."""
    ran = {step.node_id for step in trace.steps}
    used = [without_number(tool) for tool in trial.used_tools]
    sources = " ".join(source.model_dump_json() for source in trace.sources).casefold()
    said = trial.answer.casefold()
    found: list[Unmet] = []
    if trace.steps:
        found += [
            Unmet(text("verdict.step_not_run", step=node), hard=True) for node in expect.branch if node not in ran
        ]
    found += [
        Unmet(text("verdict.tool_not_used", tool=tool), hard=True)
        for tool in expect.tools
        if not any(name in one or one in name for name in _called(tool, names) for one in used if one)
    ]
    if expect.sources and not trace.sources:
        found.append(Unmet(text("verdict.no_document"), hard=True))
    elif expect.sources:
        missing = [source for source in expect.sources if source.casefold() not in sources]
        found += [Unmet(text("verdict.source_not_found", source=source), hard=False) for source in missing]
    fields = _fields(trial.answer)
    found += [
        Unmet(text("verdict.field_missing", name=name), hard=False) for name in expect.fields if name not in fields
    ]
    found += [
        Unmet(text("verdict.text_missing", words=words), hard=False)
        for words in expect.contains
        if words.casefold() not in said
    ]
    found += [
        Unmet(text("verdict.text_excluded", words=words), hard=True)
        for words in expect.excludes
        if words.casefold() in said
    ]
    return found


def remarks_on(
    trial: Trial, trace: Trace, expect: Expectation, names: RuntimeNames, *, stand_in: bool = False
) -> list[str]:
    """Remarks on a trial for the judge: unmet expectations, and the one that only a judge can check.

    The answers, tools and branches of a stand-in model cause no remark.
    """
    if stand_in:
        expect = Expectation(sources=expect.sources)
    told = [unmet.text for unmet in unmet_by(trial, trace, expect, names)]
    return [*told, text("verdict.language", language=expect.language)] if expect.language else told


def uses_models(graph: GraphIR) -> bool:
    """True if a model is part of the flow, as a node or inside one."""
    return any(
        node.category in _MODELS
        or any(_MODEL_FIELD.search(nested.param) for nested in nested_components(node.params, node.inputs))
        for node in graph.nodes
    )


def _called(tool: str, names: RuntimeNames) -> set[str]:
    return {without_number(tool), *names.get(spelt(tool), ())}


def _fields(answer: str) -> set[str]:
    """Field names of a JSON answer, including nested ones as `outer.inner`."""
    try:
        value = json.loads(answer)
    except ValueError:
        return set()
    names: set[str] = set()

    def collect(item: object, prefix: str, depth: int) -> None:
        if isinstance(item, dict) and depth < 5:
            for key, inner in item.items():
                names.update((str(key), f"{prefix}{key}"))
                collect(inner, f"{prefix}{key}.", depth + 1)

    collect(value, "", 0)
    return names


# --- criteria --------------------------------------------------------------------------------------------------------


def judged(
    verdict: Verdict,
    plan: Plan,
    results: Sequence[Trial],
    traces: Sequence[Trace],
    flow_data: str,
    *,
    by_model: bool,
) -> Verdict:
    """Verdict with a state for each criterion and part, and the headline that follows.

    `verdict.criteria` holds the votes of the model, if one has judged (`by_model`).
    """
    expects = {case.id: case.expect for case in plan.tests}
    graph = GraphIR.from_flow_data(flow_data)
    names = runtime_names(graph)
    shown = [
        Shown(number, trial, trace, expects.get(trial.test or "", Expectation()), names)
        for number, (trial, trace) in enumerate(zip(results, traces, strict=True), start=1)
    ]
    votes = {vote.id: vote for vote in verdict.criteria}
    failed = set(verdict.failed_trials)
    criteria = [
        _criterion(item, _trials_of(item, shown), votes.get(item.id), failed, by_model) for item in plan.criteria
    ]
    criteria += _unreached(graph, traces, first=len(criteria) + 1)
    parts = [_part(part, criteria, plan, graph) for part in plan.parts]
    headline = _headline(verdict, criteria, parts, results)
    return verdict.model_copy(update={"criteria": criteria, "parts": parts, "headline": headline})


def _trials_of(criterion: Criterion, shown: Sequence[Shown]) -> list[Shown]:
    """Trials of the tests that the criterion names; all trials if none of these tests ran."""
    named = [item for item in shown if item.trial.test in criterion.tests]
    return named or list(shown)


def _criterion(
    criterion: Criterion,
    trials: Sequence[Shown],
    vote: CriterionVerdict | None,
    failed: set[int],
    by_model: bool,
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
            reason=shortened(reason, 500),
        )

    if criterion.not_tested and not criterion.tests:
        return given("not_tested", criterion.not_tested)
    held = [item for item in trials if item.trial.passed or item.trial.category]
    if not held:
        return given("not_tested", trials[0].trial.worded("error") if trials else text("verdict.no_test"))
    broken = next((item for item in held if item.trial.category), None)
    if broken:
        return given("failed", broken.trial.worded("error"))
    if vote and vote.state == "failed":
        return given("failed", vote.worded("reason"), vote.evidence, "model")
    if any(MARK in item.trial.answer for item in held):
        return given("not_shown", text("verdict.answer_is_placeholder"))
    if any(MARK in source.text for item in held for source in item.trace.sources):
        return given("not_shown", text("verdict.source_is_placeholder"))
    if vote:
        kept = [item for item in vote.evidence if is_quoted(item, held)]
        if vote.state == "shown" and not kept:
            return given("not_shown", _NO_EVIDENCE, judge="model")
        if vote.state == "shown" and failed.intersection(item.number for item in held):
            return given("not_shown", text("verdict.test_failed"), kept, "model")
        return given("shown" if vote.state == "shown" else "not_shown", vote.worded("reason"), kept, vote.judged_by)
    if by_model:
        return given("not_shown", text("verdict.not_voted"), judge="model")
    unmet = [one.text for item in held for one in unmet_by(item.trial, item.trace, item.expect, item.names)]
    if unmet:
        return given("not_shown", sentences(*unmet))
    evidence = [proof for item in held if (proof := _proof(item, criterion.text))]
    if len(evidence) == len(held):
        return given("shown", "", evidence)
    return given("not_shown", NOT_JUDGED)


def is_quoted(evidence: Evidence, trials: Iterable[Shown]) -> bool:
    """True if the quote occurs in the trial that it names, or in its trace."""
    quote = _squeezed(evidence.quote).strip("\"'“”„«»…. ")
    if len(quote) < _SHORTEST_QUOTE:
        return False
    for item in trials:
        if item.number != evidence.trial:
            continue
        texts = [item.trial.answer, *(turn.answer for turn in item.trace.turns)]
        texts += [step.model_dump_json() for step in item.trace.steps if evidence.node_id in (None, step.node_id)]
        texts += [part.model_dump_json() for part in (*item.trace.used_tools, *item.trace.sources)]
        return any(quote in _squeezed(text) for text in texts)
    return False


def _squeezed(text: str) -> str:
    """Normalise a text for comparison: drop spaces, line ends, escapes and case."""
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split()).casefold()


def _proof(item: Shown, text: str) -> Evidence | None:
    """Evidence that the expectations of a trial are met; None if code can check none of them.

    A step that ran proves nothing about its answer; a used tool proves only statements about that tool.
    """
    expect = item.expect
    if expect.contains:
        at = item.trial.answer.casefold().find(expect.contains[0].casefold())
        quote = item.trial.answer[at : at + len(expect.contains[0])]
    elif expect.sources:
        quote = item.trace.sources[0].text
    elif expect.fields:
        quote = expect.fields[0]
    elif any(without_number(tool) in spelt(text) for tool in expect.tools):
        quote = item.trial.used_tools[0]
    else:
        return None
    return Evidence(trial=item.number, quote=quote[:_QUOTE_CHARS])


def unreached_steps(graph: GraphIR, traces: Iterable[Trace]) -> list[str]:
    """Ids of the steps of an agentflow that no test reached. Steps inside an iteration and loops are not counted: a
    trace need not show them.
    """
    ran = {step.node_id for trace in traces for step in trace.steps}
    return [
        node.id
        for node in graph.nodes
        if ran and node.is_agentflow and not node.is_note and not node.parent
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


def _part(part: Part, verdicts: Sequence[CriterionVerdict], plan: Plan, graph: GraphIR) -> PartVerdict:
    def given(state: Literal["done", "assumed", "not_shown", "missing", "not_possible"], reason: str) -> PartVerdict:
        return PartVerdict(id=part.id, quote=part.quote, state=state, reason=reason)

    match part.state:
        case "assumed" | "not_possible":
            return given(part.state, part.reason)
        case "asked" | "not_understood":
            return given("missing", part.reason or text("verdict.not_planned"))
        case "covered":
            pass
    # A removed node is verified by its absence.
    ids = {*(node.id for node in graph.nodes), *plan.removals}
    if absent := [node for node in part.nodes if node not in ids]:
        return given("missing", text("verdict.nodes_missing", nodes=", ".join(absent)))
    by_id = {verdict.id: verdict for verdict in verdicts}
    own = [by_id[item.id] for item in plan.criteria if item.part == part.id and item.id in by_id]
    said = [value for value in part.values if _PROSE.search(value)]
    if not own and said:
        # One part may hold several requirements: some become nodes and values, the rest only text.
        return given("not_shown", text("verdict.in_prompt" if said == part.values else "verdict.in_prompt_partly"))
    open_ = next((item for item in own if item.state != "shown"), None)
    return given("not_shown", open_.worded("reason") or open_.worded("text")) if open_ else given("done", part.reason)


def _headline(
    verdict: Verdict, criteria: Sequence[CriterionVerdict], parts: Sequence[PartVerdict], results: Sequence[Trial]
) -> Headline:
    if not any(result.passed or result.category for result in results):
        return "not_tested"
    if not verdict.done:
        return "fails"
    shown = bool(criteria) and all(item.state == "shown" for item in criteria)
    return "works" if shown and all(part.state in ("done", "assumed") for part in parts) else "runs"


def best_of(iterations: Sequence[TestedIteration]) -> TestedIteration | None:
    """Best iteration by what its tests showed; the newest of equals."""
    ranks = {"works": 2, "runs": 1, "not_tested": 0, "fails": -1}
    return max(iterations, key=lambda one: (ranks[one.headline], len(one.shown), one.iteration), default=None)


def lost(before: TestedIteration, now: Verdict) -> list[str]:
    """Criteria that an iteration met and this verdict includes as not met."""
    return [item.text for item in now.criteria if item.state != "shown" and item.text in before.shown]
