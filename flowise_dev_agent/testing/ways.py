"""Ways through an agentflow: each branch, each simulated call that fails or answers nothing, both answers of a person,
the limit of a loop. Code finds a test for each from the flow and the traces, and names what no test took.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.plan import Decision, Expectation, TestCase
from flowise_dev_agent.schemas.verdict import NOT_THE_FLOW, ProbeKind, Trace, Trial
from flowise_dev_agent.testing.answers import SIMULATED_FAILURE, put, sample_answer, steps_of
from flowise_dev_agent.testing.cases import MOST_HELD, next_id
from flowise_dev_agent.testing.limits import Limit, counts_on, rounds_of
from flowise_dev_agent.testing.simulation import Simulation, simulated_steps
from flowise_dev_agent.texts import Text, in_brief, text

#: Steps of the largest flow whose ways are looked for.
_MOST_STEPS: Final = 20
_MOST_TRIES: Final = 400
_SAID_CHARS: Final = 240
_CONDITION, _SCENARIOS, _LOOP = "conditionAgentflow", "conditionAgentAgentflow", "loopAgentflow"
_VARIABLE: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_ANSWER_OF: Final = re.compile(r"(\w+)\.output\.http\.data\.([\w.\[\]]+)")
#: Marks that people write, in any language, and that break a text that is put together of them.
_HARD: Final = '\n"1\' {2} \\ 3"'


class Probe(TestCase):
    """Conversation of a test in which a stand-in (its number) fails or answers nothing, or a loop goes to its limit."""

    stand_in: int
    kind: ProbeKind


@dataclass(frozen=True)
class TrialRun:
    """Finished conversation: its test, its result, its trace, and the nodes where it waited for a person."""

    case: TestCase
    trial: Trial
    trace: Trace
    #: (node that waited for a person, decision), in order.
    decisions: tuple[tuple[str, Decision], ...] = ()


def session_of(prefix: str, case: TestCase, number: int) -> str:
    """Id of a conversation in Flowise. Its end tells the stand-ins which test it is, and which of them fails."""
    probed = f"{case.kind}{case.stand_in}" if isinstance(case, Probe) else ""
    return f"{prefix}-{case.id}{probed}-{number}"


# --- branches --------------------------------------------------------------------------------------------------------


def answered_branches(graph: GraphIR, tests: Sequence[TestCase]) -> list[TestCase]:
    """Tests for branches that depend on the answer of a simulated step and that no test's answer takes. The copy of a
    flow has to know their answers.
    """
    if not tests or _is_large(graph):
        return []
    added: list[TestCase] = []
    for node in _conditions(graph):
        branches = _Branches(node, graph, tests[0], answerable=simulated_steps(graph, tests))
        if not branches.by_answer:
            continue
        taken = {branches.taken_by(test) for test in tests}
        for branch, case in branches.solved():
            if branch not in taken and len(tests) + len(added) < MOST_HELD:
                added.append(_renumbered(case, [*tests, *added]))
    return added


def more_ways(held: Sequence[TrialRun], graph: GraphIR, simulation: Simulation) -> list[TestCase]:
    """Next tests for what no conversation has shown yet, none if all was tried or the tests are used up."""
    cases = [one.case for one in held]
    found: list[TestCase] = []
    tried = {_key(case) for case in cases}
    if cases and not _is_large(graph):
        wanted = itertools.chain(
            _untaken_branches(held, graph),
            _untouched(held, graph),
            _hard_message(held, simulation),
            _limits(held, simulation),
            _probes(held, simulation),
        )
        for case in wanted:
            if _key(case) not in tried and len(cases) + len(found) < MOST_HELD:
                tried.add(_key(case))
                found.append(_renumbered(case, [*cases, *found]))
    return found


def _key(case: TestCase) -> str:
    return case.model_dump_json(exclude={"id", "expect", "human_feedback"})


def _renumbered(case: TestCase, others: Sequence[TestCase]) -> TestCase:
    return case.model_copy(update={"id": next_id(others), "expect": Expectation()})


def _is_large(graph: GraphIR) -> bool:
    steps = [node for node in graph.nodes if node.is_agentflow and not node.is_note]
    return not steps or len(steps) > _MOST_STEPS


def _untaken_branches(held: Sequence[TrialRun], graph: GraphIR) -> Iterator[TestCase]:
    ran = _ran(held)
    for node in _conditions(graph):
        targets = {edge.output_name: edge.target for edge in graph.edges if edge.source == node.id}
        if node.id in ran:
            for branch, case in _Branches(node, graph, held[0].case).solved():
                if targets.get(str(branch), node.id) not in ran:
                    yield case
    for node in graph.nodes:
        targets = {edge.output_name: edge.target for edge in graph.edges if edge.source == node.id}
        if node.name == _SCENARIOS and node.id in ran and held[0].case.input == "chat":
            for branch, row in enumerate(_rows(node, "conditionAgentScenarios")):
                if row.get("scenario") and targets.get(str(branch), node.id) not in ran:
                    yield TestCase(id="t1", turns=[str(row["scenario"])])


def _ran(held: Iterable[TrialRun]) -> set[str]:
    return {step.node_id for one in held for step in one.trace.steps}


def _untouched(held: Sequence[TrialRun], graph: GraphIR) -> Iterator[TestCase]:
    """The first form without its switches: Flowise sends none that nobody has touched."""
    first = held[0].case
    rows = [row for node in graph.nodes for row in _rows(node, "formInputTypes") if row.get("type") == "boolean"]
    left = {str(row.get("name")) for row in rows}
    if first.input == "form" and first.payload and left.intersection(first.payload):
        payload = {name: one for name, one in first.payload.items() if name not in left}
        # A form without any entry is no form.
        yield first.model_copy(update={"payload": payload or {"": ""}})


def _hard_message(held: Sequence[TrialRun], simulation: Simulation) -> Iterator[TestCase]:
    """The first conversation with a message that breaks what is put together of it."""
    first = held[0].case
    if first.input == "chat" and simulation.types:
        yield first.model_copy(update={"turns": [first.turns[0] + _HARD, *first.turns[1:]]})


def _probes(held: Sequence[TrialRun], simulation: Simulation) -> Iterator[TestCase]:
    """First all failures, then all empty answers, each in the first conversation that used the stand-in."""
    kinds: tuple[ProbeKind, ...] = ("error", "empty")
    for kind, number in itertools.product(kinds, range(len(simulation.stand_ins))):
        base = _base(held, simulation, number)
        if base and not any(one.trial.category for one in held if one.case is base.case):
            yield Probe(**base.case.model_dump(), stand_in=number, kind=kind)


def _limits(held: Sequence[TrialRun], simulation: Simulation) -> Iterator[TestCase]:
    """Each loop that no conversation has brought to its limit, in the first one that came to where it is decided."""
    for number, limit in enumerate(simulation.limits):
        base = _reached(held, limit)
        if base and not base.trial.category and _rounds(held)[limit.node_id] < limit.rounds:
            yield Probe(**base.case.model_dump(), stand_in=number, kind="limit")


def _reached(held: Sequence[TrialRun], limit: Limit) -> TrialRun | None:
    plain = (one for one in held if not isinstance(one.case, Probe))
    return next((one for one in plain if any(step.node_id == limit.fork for step in one.trace.steps)), None)


def _rounds(held: Iterable[TrialRun]) -> Counter[str]:
    """Most runs of each step in one conversation."""
    found: Counter[str] = Counter()
    for one in held:
        # `|` of counters keeps the larger count.
        found |= Counter(step.node_id for step in one.trace.steps)
    return found


def _base(held: Sequence[TrialRun], simulation: Simulation, number: int) -> TrialRun | None:
    plain = (one for one in held if not isinstance(one.case, Probe))
    return next((one for one in plain if simulation.uses(number, one.trace)), None)


# --- conditions ------------------------------------------------------------------------------------------------------


def _conditions(graph: GraphIR) -> Iterator[FlowNode]:
    return (node for node in graph.nodes if node.name == _CONDITION)


def _rows(node: FlowNode, name: str) -> list[Mapping[str, Any]]:
    value = node.inputs.get(name)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _number(value: object) -> float:
    with suppress(ValueError):
        return float(str(value))
    return 0


#: Operations of a condition, as Flowise compares.
_OPERATIONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "contains": lambda one, other: str(other) in str(one),
    "notContains": lambda one, other: str(other) not in str(one),
    "startsWith": lambda one, other: str(one).startswith(str(other)),
    "endsWith": lambda one, other: str(one).endswith(str(other)),
    "equal": lambda one, other: one == other,
    "notEqual": lambda one, other: one != other,
    "larger": lambda one, other: _number(one) > _number(other),
    "largerEqual": lambda one, other: _number(one) >= _number(other),
    "smaller": lambda one, other: _number(one) < _number(other),
    "smallerEqual": lambda one, other: _number(one) <= _number(other),
    "isEmpty": lambda one, _: one == "",
    "notEmpty": lambda one, _: one != "",
}


class _Branches:
    """Branches of a condition whose rows compare what a test gives: its message, a field of its form or webhook, or an
    answer of a simulated step, with fixed values.
    """

    def __init__(self, node: FlowNode, graph: GraphIR, base: TestCase, answerable: Iterable[str] = ()) -> None:
        self._base, self._answerable, self._graph = base, frozenset(answerable), graph
        self._rows = _rows(node, "conditions")
        self._read: list[str] = []
        for row in self._rows:
            found = _VARIABLE.fullmatch(without_markup(str(row.get("value1") or "")))
            fixed = not _VARIABLE.search(str(row.get("value2") or ""))
            if found and fixed and row.get("operation") in _OPERATIONS and self._is_given(found[1]):
                self._read.append(found[1])
        self.by_answer = self._solvable and any(map(_ANSWER_OF.fullmatch, self._read))

    @property
    def _solvable(self) -> bool:
        return bool(self._rows) and len(self._read) == len(self._rows)

    def _is_given(self, variable: str) -> bool:
        answer = _ANSWER_OF.fullmatch(variable)
        return (
            (answer is not None and answer[1] in self._answerable)
            or (variable == "question" and self._base.input == "chat")
            or (variable.startswith("$form.") and self._base.input == "form")
            or (variable.startswith("$webhook.body.") and self._base.input == "webhook")
        )

    def solved(self) -> Iterator[tuple[int, TestCase]]:
        """Branches with a test that takes each; the last one is that of none of the rows."""
        found: dict[int, TestCase] = {}
        names = list(dict.fromkeys(self._read)) if self._solvable else []
        tries = itertools.product(*(self._candidates(name) for name in names))
        for values in itertools.islice(tries, _MOST_TRIES) if names else ():
            given = dict(zip(names, values, strict=True))
            found.setdefault(self._branch(given), self._case(given))
        yield from found.items()

    def taken_by(self, test: TestCase) -> int | None:
        """Branch that the answers of a test take; None if it gives none."""
        given: dict[str, Any] = {}
        for name in self._read:
            found = _ANSWER_OF.fullmatch(name)
            value: Any = (test.answers or {}).get(found[1]) if found else None
            for step in steps_of(found[2]) if found else ():
                if isinstance(value, list):
                    value = value[step] if isinstance(step, int) and step < len(value) else None
                else:
                    value = value.get(str(step)) if isinstance(value, dict) else None
            if value is None:
                return None
            given[name] = value
        return self._branch(given)

    def _candidates(self, name: str) -> list[JsonValue]:
        fixed = [row for row, read in zip(self._rows, self._read, strict=True) if read == name]
        found: list[JsonValue] = []
        for row in fixed:
            value = row.get("value2")
            if row.get("type") == "number" or row.get("operation") in ("larger", "smaller"):
                number = _number(value)
                found += [int(one) if one == int(one) else one for one in (number - 1, number, number + 1)]
            else:
                found += [value or "", f"{value} please"]
        empty = [] if name == "question" else [""]
        return [*dict.fromkeys(one for one in found if one != "" or empty), "Hello", *empty]

    def _branch(self, given: Mapping[str, object]) -> int:
        for number, (row, name) in enumerate(zip(self._rows, self._read, strict=True)):
            one, other = given[name], row.get("value2") or ""
            if row.get("type") == "number":
                one, other = _number(one), _number(other)
            elif row.get("type") == "string":
                one, other = str(one), str(other)
            if _OPERATIONS[row["operation"]](one, other):
                return number
        return len(self._rows)

    def _case(self, given: Mapping[str, Any]) -> TestCase:
        update: dict[str, Any] = {}
        for name, value in given.items():
            if name == "question":
                update["turns"] = [str(value)]
            elif found := _ANSWER_OF.fullmatch(name):
                answers = update.setdefault("answers", dict(self._base.answers or {}))
                answers[found[1]] = self._answer(found[1], answers, found[2], value)
            else:
                payload = update.setdefault("payload", deepcopy(self._base.payload or {}))
                path = name.removeprefix("$form.").removeprefix("$webhook.body.")
                put(payload, steps_of(path), value, anew=True)
        return self._base.model_copy(update=update)

    def _answer(self, node_id: str, answers: Mapping[str, JsonValue], path: str, value: Any) -> JsonValue:
        known = answers.get(node_id)
        answer: Any = deepcopy(known) if isinstance(known, dict) else sample_answer(node_id, self._graph.to_flow_data())
        put(answer, steps_of(path), value, anew=True)
        return answer


# --- what was found out ----------------------------------------------------------------------------------------------


def told_ways(held: Sequence[TrialRun], graph: GraphIR, simulation: Simulation) -> list[Text]:
    """Lines on what the flow did where a simulated call failed or answered nothing, then on ways that none took."""
    if _is_large(graph) or all(one.trial.category in NOT_THE_FLOW for one in held):
        return []
    # Two steps may do the same.
    return [*dict.fromkeys([*_told_probes(held, simulation), *_untaken(held, graph, simulation)])]


def _was_probed(run: TrialRun, probe: Probe, simulation: Simulation) -> bool:
    """True if the stand-in came to its turn. What failed inside an agent or an iteration is no step of the trace.

    A run that ended by the server, such as at an address that Flowise refuses, shows nothing of the stand-in.
    """
    if run.trial.category in NOT_THE_FLOW and SIMULATED_FAILURE not in run.trial.error:
        return False
    if probe.kind == "limit":
        limit = simulation.limits[probe.stand_in]
        return bool(run.trial.category) or _rounds([run])[limit.node_id] >= limit.rounds
    return SIMULATED_FAILURE in run.trial.error or simulation.uses(probe.stand_in, run.trace)


def _told_probes(held: Sequence[TrialRun], simulation: Simulation) -> Iterator[Text]:
    for one in held:
        if not isinstance(one.case, Probe) or not _was_probed(one, one.case, simulation):
            continue
        if one.case.kind == "limit":
            yield text(
                "way.limit.ends" if one.trial.category else "way.limit.says",
                step=simulation.limits[one.case.stand_in].title,
                said=in_brief(one.trial.worded("error") or one.trial.answer, _SAID_CHARS),
            )
            continue
        base = _base(held, simulation, one.case.stand_in)
        same = base is not None and base.trial.answer == one.trial.answer
        quiet = "same" if one.trial.answer.strip() else "quiet"
        outcome = "ends" if one.trial.category else quiet if same else "says"
        yield text(
            f"way.{one.case.kind}.{outcome}",
            action=simulation.stand_ins[one.case.stand_in].action,
            said=in_brief(one.trial.worded("error") or one.trial.answer, _SAID_CHARS),
        )


def _untaken(held: Sequence[TrialRun], graph: GraphIR, simulation: Simulation) -> Iterator[Text]:
    taken: set[tuple[str, int]] = set()
    loops = _rounds(held)
    for one in held:
        taken |= {(node, 0 if decision == "proceed" else 1) for node, decision in one.decisions}
        for step in one.trace.steps:
            rows = step.output.get("conditions") if isinstance(step.output, dict) else None
            for branch, row in enumerate(rows if isinstance(rows, list) else ()):
                if isinstance(row, dict) and row.get("isFulfilled"):
                    taken.add((step.node_id, branch))
        if isinstance(one.case, Probe) and one.case.kind == "limit":
            limit = simulation.limits[one.case.stand_in]
            ends = (limit.fork, limit.node_id)
            branches = [edge.output_name or "" for edge in graph.edges if (edge.source, edge.target) == ends]
            taken |= {(limit.fork, int(branch)) for branch in branches if branch.isdigit()}
    reached = {node for node, _ in taken}
    for edge in graph.edges:
        branch = edge.output_name or ""
        if edge.source in reached and branch.isdigit() and (edge.source, int(branch)) not in taken:
            titles = [node.label or node.id for end in (edge.source, edge.target) if (node := graph.node(end))]
            yield text("way.branch", step=titles[0], target=titles[-1])
    for node in graph.nodes:
        if node.name != _LOOP or node.id not in loops or not counts_on(node, graph):
            continue
        if loops[node.id] < (limit := rounds_of(node)):
            yield text("way.limit", step=node.label or node.id, count=limit)
    probed = {
        (one.case.stand_in, one.case.kind)
        for one in held
        if isinstance(one.case, Probe) and _was_probed(one, one.case, simulation)
    }
    kinds: tuple[ProbeKind, ...] = ("error", "empty")
    left = [
        stand_in.action
        for number, stand_in in enumerate(simulation.stand_ins)
        if any((number, kind) not in probed for kind in kinds)
    ]
    if left:
        yield text("way.untested", actions=[*dict.fromkeys(left)])
