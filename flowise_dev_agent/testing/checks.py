"""Checks by code of one trial: what its answer and trace show to be wrong, and what the flow still lacks."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self, cast

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.agentflow import CONDITION_AGENT
from flowise_dev_agent.patch.model.field_kinds import PROSE
from flowise_dev_agent.patch.model.labels import field_label, in_words
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.patch.model.sequential import TOLD, is_step
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Expectation, TestCase
from flowise_dev_agent.schemas.verdict import (
    NOT_THE_FLOW,
    Trace,
    Trial,
    VerdictCategory,
)
from flowise_dev_agent.testing import playbook
from flowise_dev_agent.testing.effects import TOOL_CATEGORIES
from flowise_dev_agent.testing.tool_names import RuntimeNames, runtime_names, spelt, without_number
from flowise_dev_agent.texts import sentences, text

#: Variables in Flowise's syntax, also with one brace missing.
_VARIABLE: Final = re.compile(r"\{\{[^{}]{1,200}\}\}|\{\s*\$(?:flow|form|vars|webhook|iteration)\b[^{}]{0,200}\}")
_SERVER_VARIABLE: Final = re.compile(r"\{\{\s*\$vars\.([A-Za-z_]\w{0,99})")
_NODE_ID: Final = re.compile(r"\w{1,200}_\d{1,9}")
_QUOTE_CHARS: Final = 200
_MODELS: Final = frozenset(("Chat Models", "LLMs"))
_MODEL_FIELD: Final = re.compile(r"(?<!embedding)model$", re.IGNORECASE)
#: Switch of a chain, tool or knowledge source that hands on the documents it found. Without it a reply has none.
_SOURCES_SWITCH: Final = "returnSourceDocuments"
#: Field of a text to answer from.
_TEXT: Final = "text"
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
    #: Titles of the nodes, by id.
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Answers that the flow gives when it gave up.
    fallbacks: frozenset[str] = frozenset()
    #: Steps of a sequence that no reply shows, such as its conditions and ends.
    silent: frozenset[str] = frozenset()
    #: What a reply cannot show (steps of a chatflow, hidden documents) counts as not met.
    strict: bool = False

    @classmethod
    def of(cls, graph: GraphIR, tools: Mapping[str, str] = MappingProxyType({})) -> Self:
        """View of a flow; `tools` are the names of its custom tools by id. Documents made of a placeholder are none."""
        settings = [one for node in graph.nodes for one in settings_in(node.inputs)]
        sources = any(name == _SOURCES_SWITCH and str(value).lower() == "true" for name, value in settings)
        given_up = [str(value) for name, value in settings if name == _FALLBACK_FIELD and value]
        return cls(
            names=runtime_names(graph, tools),
            shows_sources=sources and not any(stands_in(value) for _, value in settings),
            nodes={node.id: node.label or node.id for node in graph.nodes},
            silent=frozenset(node.id for node in graph.nodes if is_step(node) and node.name not in TOLD),
            fallbacks=frozenset(squeezed(one) for one in (*given_up, *_GAVE_UP)),
        )


def settings_in(value: object) -> Iterator[tuple[str, object]]:
    """Name and value of all fields, those of rows and nested settings included; rows may be stored as JSON text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with suppress(ValueError):
            yield from settings_in(json.loads(value))
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            yield name, inner
            yield from settings_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from settings_in(inner)


@dataclass(frozen=True)
class Shown:
    """Trial with its trace and the expectations of its test."""

    number: int
    trial: Trial
    trace: Trace
    expect: Expectation
    flow: TestedFlow

    def way(self, graph: GraphIR, until: str | None = None) -> set[str]:
        """Ids of the nodes on the way of the answer, or of a step of it (`until`).

        A chatflow tells no steps: there it is all but the tools that were not used, and what only these need.
        """
        steps = [step.node_id for step in self.trace.steps]
        if steps:
            ran = set(steps[: len(steps) - steps[::-1].index(until)] if until in steps else steps)
            return ran | {node.id for node in graph.nodes if node.parent in ran}
        used = self.used
        unused = {
            node.id
            for node in graph.nodes
            if node.category in TOOL_CATEGORIES and not _is_used(node.id, used, self.flow.names)
        }
        found, needed = set[str](), [node.id for node in graph.nodes]
        needed = [one for one in needed if not any(edge.source == one for edge in graph.edges)]
        while needed:
            if (node_id := needed.pop()) not in found | unused:
                found.add(node_id)
                needed += [edge.source for edge in graph.edges if edge.target == node_id]
        return found

    @property
    def used(self) -> list[str]:
        """Normalised names of what was used. A tool that is a step of its own is used when it runs."""
        ran = {step.node_id for step in self.trace.steps}
        return [without_number(tool) for tool in (*self.trial.used_tools, *ran)]

    @property
    def gave_up(self) -> bool:
        """True if the answer is the flow's text for having given up, which no test expects."""
        answer = squeezed(self.trial.answer)
        expected = any(squeezed(words) in answer for words in self.expect.contains)
        return answer in self.flow.fallbacks and not expected


def checked(
    trial: Trial,
    trace: Trace,
    case: TestCase,
    flow_data: str,
    *,
    stand_in: bool,
    variables: Collection[str] | None = None,
    asked: str = "",
    tools: Mapping[str, str] = MappingProxyType({}),
) -> Trial:
    """Trial with the problems that code finds in its answer and trace.

    A failure where something is left to fill in is no bug of the flow; `variables` are the names that the server has,
    if known, `asked` is the flow that ran in place of this one: what it simulates needs nothing, and `tools` as in
    `TestedFlow.of`. Answers of a stand-in say nothing about what a real model would do, so that they break no
    expectation.
    """
    graph = GraphIR.from_flow_data(flow_data)
    category, error = trial.category, trial.worded("error")
    if trial.passed and not category:
        category, error = _seen(trial, trace, case, flow_data)
    # Of a failed run Flowise may report no steps: then any node can be the cause.
    broken = {step.node_id for step in trace.steps if step.error or step.status == "ERROR"}
    told = trial.passed or bool(broken)
    # What is outside the flow breaks a step by itself; anything else may follow from a step before it.
    ran = broken if category in NOT_THE_FLOW else {step.node_id for step in trace.steps} if told else set[str]()
    if category and (missing := unfilled(GraphIR.from_flow_data(asked or flow_data), variables, ran)):
        category, error = "CONFIG", text("verdict.unfilled", missing=missing, error=error)
    if not trial.passed:
        return trial.model_copy(update={"category": category, "error": error}) if category else trial
    if category is None and not stand_in:
        flow = TestedFlow.of(graph, tools)
        wrong = [unmet.text for unmet in unmet_by(trial, trace, case.expect, flow) if unmet.hard]
        category, error = ("LOGIC", sentences(*wrong)) if wrong else (None, "")
    return trial.model_copy(update={"passed": False, "category": category, "error": error}) if category else trial


def comparable(trial: Trial, expect: Expectation, flow_data: str, titles: Mapping[str, str]) -> Trial:
    """Trial of a flow before its change; not counted as executed if it failed for want of added steps (`titles`)."""
    nodes = {node.id for node in GraphIR.from_flow_data(flow_data).nodes}
    lacking = [node for node in (*expect.branch, *expect.tools) if _NODE_ID.fullmatch(node) and node not in nodes]
    if trial.category != "LOGIC" or not lacking:
        return trial
    why = text("not_tested.added_later", steps=", ".join(titles.get(one, one) for one in lacking))
    return trial.model_copy(update={"category": None, "error": why})


def as_expected(
    trial: Trial, trace: Trace, case: TestCase, flow_data: str, tools: Mapping[str, str] = MappingProxyType({})
) -> Trial:
    """Like `checked`, for a test that a person wrote: every unmet expectation is a failure."""
    trial = checked(trial, trace, case, flow_data, stand_in=True)
    flow = replace(TestedFlow.of(GraphIR.from_flow_data(flow_data), tools), strict=True)
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
    if case.expect != Expectation() and "reject" in case.human and trial.simulated and not trial.human:
        return "LOGIC", text("verdict.acted_unasked", actions="; ".join(trial.simulated))
    last = trace.steps[-1] if trace.steps else None
    if last and last.name == CONDITION_AGENT and trial.answer.lstrip().startswith("{"):
        return "LOGIC", text("verdict.condition_is_answer", step=last.label or last.node_id)
    # Only variables of the flow itself count: an answer about templates is correct, and so is one that was asked for.
    asked = " ".join((*case.turns, *case.expect.contains))
    for variable in _VARIABLE.findall(trial.answer):
        if variable not in asked and json.dumps(variable, ensure_ascii=False)[1:-1] in flow_data:
            return "LOGIC", text("verdict.variable_shown", variable=variable)
    return None, ""


def unfilled(graph: GraphIR, variables: Collection[str] | None, ran: Collection[str] = ()) -> list[str]:
    """Placeholders in settings of the nodes that ran (of all if none is known), and variables that the server lacks:
    what is behind them cannot run.
    """
    found: list[str] = []
    for node in graph.nodes:
        if ran and node.id not in ran:
            continue
        found += placeholders_of(node)
        for _, value in settings_in(node.inputs):
            if isinstance(value, str) and not stands_in(value) and variables is not None:
                found += [f"{{{{$vars.{one}}}}}" for one in _SERVER_VARIABLE.findall(value) if one not in variables]
    return list(dict.fromkeys(found))


def keep_from_running(graph: GraphIR) -> list[str]:
    """Placeholders in required settings of a chatflow, without which it cannot be built: an address, a store, a page. A
    tool and a step of an agentflow fail only where they are used, and a text is one with a placeholder, too.
    """
    return [
        named_placeholder(node, entry["name"], value)
        for node in graph.nodes
        if not node.is_agentflow and node.category not in TOOL_CATEGORIES
        for entry in node.params
        if not entry.get("optional") and entry["name"] != _TEXT and not PROSE.search(entry["name"])
        for value in [node.inputs.get(entry["name"])]
        if isinstance(value, str) and value.startswith(MARK)
    ]


def placeholders_of(node: FlowNode) -> list[str]:
    """Placeholders in the settings of a node; in a prompt, one does not keep it from running."""
    return [
        named_placeholder(node, name, value)
        for name, value in settings_in(node.inputs)
        if stands_in(value) and not PROSE.search(name)
    ]


def named_placeholder(node: FlowNode, name: str, value: object) -> str:
    """Place and words of a placeholder, as people see them."""
    title, field = node.label or node.id, field_label(node.params, name) or in_words(name)
    place = title if title == field else f"{title}, {field}"
    return f"{place}: {shortened(_placeholder(str(value)), _QUOTE_CHARS)}"


def _placeholder(value: str) -> str:
    """Text of a placeholder; a file is named by its mark."""
    return value if value.startswith(MARK) else f"{MARK}]"


def _category_of(failure: str) -> VerdictCategory:
    """Category of a failure inside a reply; an unknown one goes to the person with the server's words."""
    known = playbook.known(failure)
    return known.category if known else "UNKNOWN"


def unmet_by(trial: Trial, trace: Trace, expect: Expectation, flow: TestedFlow) -> list[Unmet]:
    """Unmet expectations of a trial. Documents are expected only of a flow that shows them.

    Texts and fields are expected in any answer of the conversation; excluded are texts of the last one.
    """
    ran = {step.node_id for step in trace.steps}
    used = Shown(0, trial, trace, expect, flow).used
    sources = " ".join(source.model_dump_json() for source in trace.sources).casefold()
    said = trial.answer.casefold()
    found: list[Unmet] = []
    if trace.steps or flow.strict:
        found += [
            # A made-up answer may lead another way.
            Unmet(text("verdict.step_not_run", step=flow.nodes.get(node, node)), hard=not trial.simulated)
            for node in expect.branch
            if node not in ran and node not in flow.silent
        ]
    found += [
        Unmet(text("verdict.tool_not_used", tool=flow.nodes.get(tool, tool)), hard=True)
        for tool in expect.tools
        if not _is_used(tool, used, flow.names)
    ]
    if expect.sources and not trace.sources:
        found += [Unmet(text("verdict.no_document"), hard=True)] if flow.shows_sources or flow.strict else []
    elif expect.sources:
        # A source knows its file and not its node.
        named = [source for source in expect.sources if source not in flow.nodes]
        missing = [source for source in named if source.casefold() not in sources]
        found += [Unmet(text("verdict.source_not_found", source=source), hard=False) for source in missing]
    answers = [trial.answer, *(turn.answer for turn in trace.turns)]
    fields: dict[str, bool] = {}
    for name, filled in (one for answer in answers for one in _fields(answer)):
        fields[name] = filled or fields.get(name, False)
    found += [
        Unmet(text("verdict.field_empty" if name in fields else "verdict.field_missing", name=name), hard=False)
        for name in expect.fields
        if not fields.get(name)
    ]
    found += [
        Unmet(text("verdict.text_missing", words=words), hard=False)
        for words in expect.contains
        if not any(words.casefold() in answer.casefold() for answer in answers)
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
    if trial.simulated:
        told.append(text("verdict.simulated", actions="; ".join(trial.simulated)))
    return [*told, text("verdict.language", language=expect.language)] if expect.language else told


def uses_models(graph: GraphIR) -> bool:
    """True if a model is part of the flow, as a node or inside one."""
    return any(
        node.category in _MODELS
        or any(_MODEL_FIELD.search(nested.param) for nested in nested_components(node.params, node.inputs))
        for node in graph.nodes
    )


def _is_used(tool: str, used: Collection[str], names: RuntimeNames) -> bool:
    called = {without_number(tool), *names.get(spelt(tool), ())}
    return any(name in one or one in name for name in called for one in used if one)


def _fields(answer: str) -> Iterator[tuple[str, bool]]:
    """Names of the fields of a JSON answer, nested ones also as `outer.inner`, and if they have a value."""
    with suppress(ValueError):
        yield from _named(json.loads(answer), "", 0)


def _named(item: object, prefix: str, depth: int) -> Iterator[tuple[str, bool]]:
    if isinstance(item, dict) and depth < 5:
        for key, inner in cast("Mapping[str, object]", item).items():
            filled = inner is not None and not (isinstance(inner, str) and not inner.strip())
            yield key, filled
            yield f"{prefix}{key}", filled
            yield from _named(inner, f"{prefix}{key}.", depth + 1)


def squeezed(text: str) -> str:
    """Normalise a text for comparison: drop spaces, line ends, escapes and case."""
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split()).casefold()
