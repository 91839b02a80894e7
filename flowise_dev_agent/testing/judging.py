"""Evaluate tests: checks by code, evidence of the model's votes, and the headline that follows from both."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, Self, cast

from flowise_dev_agent.patch import GraphIR, is_same_node
from flowise_dev_agent.patch.model.agentflow import CONDITION_AGENT
from flowise_dev_agent.patch.model.nested import nested_components, parse_path, value_at
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.plan import UPLOADS, Criterion, Expectation, Part, Plan, PlannedValue, TestCase
from flowise_dev_agent.schemas.plan_text import PROSE
from flowise_dev_agent.schemas.verdict import (
    NOT_THE_FLOW,
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
_SERVER_VARIABLE: Final = re.compile(r"\{\{\s*\$vars\.([A-Za-z_]\w{0,99})")
_NODE_ID: Final = re.compile(r"\w{1,200}_\d{1,9}")
_SHORTEST_QUOTE: Final = 2
_QUOTE_CHARS: Final = 200
_MODELS: Final = frozenset(("Chat Models", "LLMs"))
_MODEL_FIELD: Final = re.compile(r"(?<!embedding)model$", re.IGNORECASE)
#: Switch of a chain, tool or knowledge source that hands on the documents it found. Without it a reply has none.
_SOURCES_SWITCH: Final = "returnSourceDocuments"
#: Field with the answer of a flow that gave up, and the answer of Flowise's own agents.
_FALLBACK_FIELD: Final = "fallbackMessage"
_GAVE_UP: Final = ("Agent stopped due to max iterations.",)


@dataclass(frozen=True)
class Unmet:
    """Expectation that an answer and its trace do not meet.

    `hard`: code is certain. Otherwise only a judge can tell if other words mean the same.
    """

    text: str
    hard: bool


@dataclass(frozen=True)
class TestedFlow:
    """View of a flow for the checks of its answers."""

    __test__ = False  # not a pytest class

    #: Runtime names of the tools.
    names: RuntimeNames = field(default_factory=dict[str, frozenset[str]])
    #: Replies have the documents that were found.
    shows_sources: bool = True
    nodes: frozenset[str] = frozenset()
    #: Answers that the flow gives when it gave up.
    fallbacks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, graph: GraphIR) -> Self:
        """View of a flow. Documents made of a placeholder are none."""
        settings = [one for node in graph.nodes for one in _settings(node.inputs)]
        sources = any(name == _SOURCES_SWITCH and str(value).lower() == "true" for name, value in settings)
        given_up = [str(value) for name, value in settings if name == _FALLBACK_FIELD and value]
        return cls(
            names=runtime_names(graph),
            shows_sources=sources and not any(stands_in(value) for _, value in settings),
            nodes=frozenset(node.id for node in graph.nodes),
            fallbacks=frozenset(_squeezed(one) for one in (*given_up, *_GAVE_UP)),
        )


def _settings(value: object) -> Iterator[tuple[str, object]]:
    """Name and value of all fields, those of rows and nested settings included; rows may be stored as JSON text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with suppress(ValueError):
            yield from _settings(json.loads(value))
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            yield name, inner
            yield from _settings(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _settings(inner)


@dataclass(frozen=True)
class Shown:
    """Trial with its trace and the expectations of its test."""

    number: int
    trial: Trial
    trace: Trace
    expect: Expectation
    flow: TestedFlow

    @property
    def gave_up(self) -> bool:
        """True if the answer is the flow's text for having given up, which no test expects."""
        answer = _squeezed(self.trial.answer)
        expected = any(_squeezed(words) in answer for words in self.expect.contains)
        return answer in self.flow.fallbacks and not expected


def checked(
    trial: Trial,
    trace: Trace,
    case: TestCase,
    flow_data: str,
    *,
    stand_in: bool,
    variables: Collection[str] | None = None,
) -> Trial:
    """Trial with the problems that code finds in its answer and trace.

    A failure of a flow with something left to fill in is no bug of it; `variables` are the names that the server has,
    if known. Answers of a stand-in say nothing about what a real model would do, so that they break no expectation.
    """
    graph = GraphIR.from_flow_data(flow_data)
    category, error = trial.category, trial.error
    if trial.passed and not category:
        category, error = _seen(trial, trace, case, flow_data)
    if category and (missing := unfilled(graph, variables)):
        category, error = "CONFIG", text("verdict.unfilled", missing=missing, error=error)
    if not trial.passed:
        return trial.model_copy(update={"category": category, "error": error}) if category else trial
    if category is None and not stand_in:
        flow = TestedFlow.of(graph)
        wrong = [unmet.text for unmet in unmet_by(trial, trace, case.expect, flow) if unmet.hard]
        category, error = ("LOGIC", sentences(*wrong)) if wrong else (None, "")
    return trial.model_copy(update={"passed": False, "category": category, "error": error}) if category else trial


def comparable(trial: Trial, expect: Expectation, flow_data: str) -> Trial:
    """Trial of a flow before its change; not counted as executed if it failed for want of added steps."""
    nodes = {node.id for node in GraphIR.from_flow_data(flow_data).nodes}
    lacking = [node for node in (*expect.branch, *expect.tools) if _NODE_ID.fullmatch(node) and node not in nodes]
    if trial.category != "LOGIC" or not lacking:
        return trial
    why = text("not_tested.added_later", steps=", ".join(lacking))
    return trial.model_copy(update={"category": None, "error": why})


def as_expected(trial: Trial, trace: Trace, case: TestCase, flow_data: str) -> Trial:
    """Like `checked`, for a test that a person wrote: every unmet expectation is a failure."""
    trial = checked(trial, trace, case, flow_data, stand_in=True)
    flow = TestedFlow.of(GraphIR.from_flow_data(flow_data))
    unmet = [one.text for one in unmet_by(trial, trace, case.expect, flow)] if trial.passed else []
    return (
        trial.model_copy(update={"passed": False, "category": "LOGIC", "error": sentences(*unmet)}) if unmet else trial
    )


def _seen(trial: Trial, trace: Trace, case: TestCase, flow_data: str) -> tuple[VerdictCategory | None, str]:
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
    # Only variables of the flow itself count: an answer about templates is correct, and so is one that was asked for.
    asked = " ".join((*case.turns, *case.expect.contains))
    for variable in _VARIABLE.findall(trial.answer):
        if variable not in asked and json.dumps(variable, ensure_ascii=False)[1:-1] in flow_data:
            return "LOGIC", text("verdict.variable_shown", variable=variable)
    return None, ""


def unfilled(graph: GraphIR, variables: Collection[str] | None) -> list[str]:
    """Placeholders in settings of the flow, and variables that the server lacks: what is behind them cannot run."""
    found: list[str] = []
    for node in graph.nodes:
        found += _placeholders(node)
        for _, value in _settings(node.inputs):
            if isinstance(value, str) and not stands_in(value) and variables is not None:
                found += [f"{{{{$vars.{one}}}}}" for one in _SERVER_VARIABLE.findall(value) if one not in variables]
    return list(dict.fromkeys(found))


def _placeholders(node: FlowNode) -> list[str]:
    """Placeholders in the settings of a node; in a prompt, one does not keep it from running."""
    return [
        _named_placeholder(node, name, value)
        for name, value in _settings(node.inputs)
        if stands_in(value) and not PROSE.search(name)
    ]


def _named_placeholder(node: FlowNode, name: str, value: object) -> str:
    return f"{node.label or node.id}, {name}: {shortened(_placeholder(str(value)), _QUOTE_CHARS)}"


def _placeholder(value: str) -> str:
    """Text of a placeholder; a file is named by its mark."""
    return value if value.startswith(MARK) else f"{MARK}]"


def _category_of(failure: str) -> VerdictCategory:
    """Category of a failure inside a reply; an unknown one goes to the person with the server's words."""
    known = playbook.known(failure)
    return known.category if known else "UNKNOWN"


def unmet_by(trial: Trial, trace: Trace, expect: Expectation, flow: TestedFlow) -> list[Unmet]:
    """Unmet expectations of a trial. Documents are expected only of a flow that shows them."""
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
        if not any(name in one or one in name for name in _called(tool, flow.names) for one in used if one)
    ]
    if expect.sources and not trace.sources:
        found += [Unmet(text("verdict.no_document"), hard=True)] if flow.shows_sources else []
    elif expect.sources:
        # A source knows its file and not its node.
        named = [source for source in expect.sources if source not in flow.nodes]
        missing = [source for source in named if source.casefold() not in sources]
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
    trial: Trial, trace: Trace, expect: Expectation, flow: TestedFlow, *, stand_in: bool = False
) -> list[str]:
    """Remarks on a trial for the judge: unmet expectations, and the one that only a judge can check.

    The answers, tools and branches of a stand-in model cause no remark.
    """
    if stand_in:
        expect = Expectation(sources=expect.sources)
    told = [unmet.text for unmet in unmet_by(trial, trace, expect, flow)]
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
    original: str | None = None,
) -> Verdict:
    """Verdict with a state for each criterion and part, and the headline that follows.

    `verdict.criteria` holds the votes of the model, if one has judged (`by_model`). `original` is the flow before the
    session, None for a new one.
    """
    expects = {case.id: case.expect for case in plan.tests}
    graph = GraphIR.from_flow_data(flow_data)
    flow = TestedFlow.of(graph)
    shown = [
        Shown(number, trial, trace, expects.get(trial.test or "", Expectation()), flow)
        for number, (trial, trace) in enumerate(zip(results, traces, strict=True), start=1)
    ]
    votes = {vote.id: vote for vote in verdict.criteria}
    verdict = verdict.model_copy(update={"failed_trials": _failed_trials(verdict, len(results))})
    failed = set(verdict.failed_trials)
    unjudged = text("verdict.not_judged_after_failure") if any(trial.category for trial in results) else NOT_JUDGED
    change = _Change(plan, GraphIR.from_flow_data(original) if original else GraphIR.empty(), graph)
    parts_by_id = {part.id: part for part in plan.parts}
    criteria = [
        _filled_in(
            _by_settings(item, change)
            if item.settings and not item.tests and not item.not_tested
            else _criterion(item, _trials_of(item, shown), votes.get(item.id), failed, None if by_model else unjudged),
            parts_by_id.get(item.part or ""),
            change,
        )
        for item in plan.criteria
    ]
    criteria += _unreached(graph, traces, first=len(criteria) + 1)
    parts = [_part(part, criteria, change) for part in plan.parts]
    headline = _headline(verdict, criteria, parts, results)
    return verdict.model_copy(update={"criteria": criteria, "parts": parts, "headline": headline})


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


def _by_settings(criterion: Criterion, change: "_Change") -> CriterionVerdict:
    """Verdict on a criterion that only says how the flow is set: the flow holds all these settings, or not.

    What is said to a model is no such setting, and a placeholder is none.
    """
    named = [change.wanted(path) for path in criterion.settings]
    held = [one for one in named if one and not PROSE.search(one.param) and _holds(change.after, one)]
    shown = len(held) == len(named) and not any(stands_in(one.value) for one in held)
    setting = ", ".join(f"{one.param}: {_words(one.value)}" for one in held)
    return CriterionVerdict(
        id=criterion.id,
        text=criterion.text,
        state="shown" if shown else "not_shown",
        reason=text("verdict.setting_held", setting=setting) if shown else text("verdict.setting_not_held"),
    )


def _filled_in(verdict: CriterionVerdict, part: Part | None, change: "_Change") -> CriterionVerdict:
    """Verdict that does not count as shown what a placeholder carries."""
    missing = change.placeholders(part) if part and verdict.state == "shown" else []
    if not missing:
        return verdict
    reason = text("interrupt.to_be_filled_in", placeholders="; ".join(missing))
    return verdict.model_copy(update={"state": "not_shown", "judged_by": "code", "reason": reason})


def _holds(graph: GraphIR, value: PlannedValue) -> bool:
    """True if the flow has the planned value. Rows and settings count as held: the plan binds what is compiled."""
    stored = _value_at(graph, f"{value.node_id}.{value.param}")
    if isinstance(value.value, dict | list):
        return bool(stored)
    return stored is not None and _words(stored) == _words(value.value)


def _value_at(graph: GraphIR, path: str) -> JsonValue:
    """Value of a field (`node_id.param`) of a flow."""
    node_id, _, param = path.partition(".")
    node, steps = graph.node(node_id), parse_path(param)
    return value_at(node.inputs, steps) if node and steps else None


def _words(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return f"{float(str(value)):g}"
    except ValueError:
        return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _QUOTE_CHARS)


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
            reason=shortened(reason, 500),
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
    if blocked:
        return given("not_tested", blocked.trial.worded("error"))
    if criterion.by_answer:
        return given("shown", text("verdict.all_answered"))
    if vote and vote.state == "failed":
        return given("failed", vote.worded("reason"), vote.evidence, "model")
    if any(MARK in item.trial.answer for item in held):
        return given("not_shown", text("verdict.answer_is_placeholder"))
    if any(item.gave_up for item in held):
        return given("not_shown", text("verdict.answer_is_fallback"))
    if any(MARK in source.text for item in held for source in item.trace.sources):
        return given("not_shown", text("verdict.source_is_placeholder"))
    if vote:
        kept = [item for item in vote.evidence if is_quoted(item, held)]
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


@dataclass(frozen=True)
class _Change:
    """A plan, and the flow before and after it."""

    plan: Plan
    before: GraphIR
    after: GraphIR

    def stays(self, node_id: str) -> bool:
        """True for a node that the plan removes or replaces and that is still in the flow."""
        old, new = self.before.node(node_id), self.after.node(node_id)
        if new is None or node_id not in self.plan.removals:
            return False
        return new.name == old.name if old else new.name not in {node.node_name for node in self.plan.nodes}

    def wanted(self, path: str) -> PlannedValue | None:
        """Value that a field (`node_id.param`) is to have: the planned one, else the one before the session."""
        planned = next((value for value in self.plan.values if f"{value.node_id}.{value.param}" == path), None)
        if planned or (kept := _value_at(self.before, path)) is None:
            return planned
        node_id, _, param = path.partition(".")
        return PlannedValue(node_id=node_id, param=param, value=kept)

    def placeholders(self, part: Part) -> list[str]:
        """Placeholders of the flow in the nodes and values of a part: what is behind them is not there yet."""
        found: list[str] = []
        for path in part.values:
            node_id, _, param = path.partition(".")
            node, value = self.after.node(node_id), _value_at(self.after, path)
            if node and stands_in(value):
                found.append(_named_placeholder(node, param, value))
        for node_id in part.nodes:
            if node := self.after.node(node_id):
                found += _placeholders(node)
        return list(dict.fromkeys(found))

    def carries(self, part: Part) -> bool:
        """True if a change or a setting of the flow is what the part asks for.

        A node that stays as it was is none, unless the plan keeps it on purpose, or the flow is a copy.
        """
        copies = self.plan.operation == "copy"
        if UPLOADS in part.values and self.plan.uploads is not None:
            return True  # written with the flow, beside its nodes
        values = [
            value
            for value in self.plan.values
            if f"{value.node_id}.{value.param}" in part.values or value.node_id in part.nodes
        ]
        nodes = {*part.nodes, *(value.partition(".")[0] for value in part.values)}
        if not nodes:
            return copies or self.plan.new_name is not None
        return (
            copies
            or any(node_id in self.plan.kept or self._changed(node_id) for node_id in nodes)
            or any(_holds(self.after, value) for value in values)
        )

    def _changed(self, node_id: str) -> bool:
        """True for a node that came or went, or that is not as it was."""
        there = self.before.node(node_id) or self.after.node(node_id)
        return not is_same_node(node_id, self.before, self.after) if there else node_id in self.plan.removals


def _part(part: Part, verdicts: Sequence[CriterionVerdict], change: _Change) -> PartVerdict:
    def given(state: Literal["done", "assumed", "not_shown", "missing", "not_possible"], reason: str) -> PartVerdict:
        return PartVerdict(id=part.id, quote=part.quote, state=state, reason=reason)

    match part.state:
        case "assumed" | "not_possible":
            return given(part.state, part.reason)
        case "asked" | "not_understood":
            return given("missing", part.reason or text("verdict.not_planned"))
        case "covered":
            pass
    plan = change.plan
    # A removed node is verified by its absence.
    ids = {*(node.id for node in change.after.nodes), *plan.removals}
    if absent := [node for node in part.nodes if node not in ids]:
        return given("missing", text("verdict.nodes_missing", nodes=", ".join(absent)))
    if stay := [node for node in part.nodes if change.stays(node)]:
        return given("missing", text("verdict.nodes_stay", nodes=", ".join(stay)))
    by_id = {verdict.id: verdict for verdict in verdicts}
    own = [by_id[item.id] for item in plan.criteria if item.part == part.id and item.id in by_id]
    said = [value for value in part.values if PROSE.search(value)]
    if not own and said:
        # One part may hold several requirements: some become nodes and values, the rest only text.
        return given("not_shown", text("verdict.in_prompt" if said == part.values else "verdict.in_prompt_partly"))
    if open_ := next((item for item in own if item.state != "shown"), None):
        return given("not_shown", open_.worded("reason") or open_.worded("text"))
    if not own and not change.carries(part):
        return given("not_shown", text("verdict.nothing_carries"))
    if missing := change.placeholders(part):
        return given("not_shown", text("interrupt.to_be_filled_in", placeholders="; ".join(missing)))
    return given("done", part.reason)


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
