"""Ways through a flow: which tests code adds, and what it says of those that nothing took."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import Decision, TestCase
from flowise_dev_agent.schemas.verdict import Trace, TraceStep, Trial
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED, Simulation, simulated
from flowise_dev_agent.testing.ways import Probe, TrialRun, answered_branches, more_ways, session_of, told_ways
from tests.fixtures.editor_flows import add, connect

HELLO = TestCase(id="t1", turns=["Hello"])


def flow(catalogue: NodeStore, rows: Any, *, start: dict[str, Any] | None = None, branches: int = 2) -> GraphIR:
    """A call, a condition and a reply for each branch."""
    ops: list[PatchOp] = [
        add("startAgentflow", **(start or {"startInputType": "chatInput"})),
        add("httpAgentflow", method="POST", url="https://api.example.com/x"),
        add("conditionAgentflow"),
        SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=rows),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "conditionAgentflow_0"),
    ]
    for number in range(branches):
        reply = f"directReplyAgentflow_{number}"
        ops += [
            add("directReplyAgentflow", number, directReplyMessage="Done."),
            connect("conditionAgentflow_0", reply, output=str(number)),
        ]
    return GraphIR.from_flow_data(compile_ops(GraphIR.empty(), ops, catalogue.schemas).flow_data)


def row(value1: str, operation: str, value2: str, type_: str = "string") -> dict[str, str]:
    return {"type": type_, "value1": value1, "operation": operation, "value2": value2}


def held(
    case: TestCase,
    *nodes: str,
    taken: int = 0,
    answer: str = "Done.",
    error: str = "",
    decisions: Sequence[tuple[str, Decision]] = (),
) -> TrialRun:
    conditions: Any = {"conditions": [{"isFulfilled": number == taken} for number in range(2)]}
    steps = [TraceStep(node_id=one, output=conditions if one.startswith("condition") else None) for one in nodes]
    probe = case.kind if isinstance(case, Probe) else None
    category = "LOGIC" if error else None
    trial = Trial(
        question="", passed=not error, answer=answer, error=error, category=category, test=case.id, probe=probe
    )
    return TrialRun(case, trial, Trace(steps=steps), tuple(decisions))


STEPS = ("startAgentflow_0", "httpAgentflow_0", "conditionAgentflow_0")


def added(graph: GraphIR, case: TestCase, *replies: str) -> list[TestCase]:
    return more_ways([held(case, *STEPS, *replies)], graph, NOTHING_SIMULATED)


@pytest.mark.parametrize(
    ("rows", "turns"),
    [
        ([row("{{ question }}", "contains", "refund")], ["refund"]),
        ([row("{{ question }}", "equal", "yes")], ["yes"]),
        ([row("<p>{{ question }}</p>", "startsWith", "/help")], ["/help"]),
        ([row("{{ question }}", "larger", "10", "number")], ["11"]),
        ([row("{{ question }}", "regex", "^a+$")], []),
        ([row("{{ llmAgentflow_0 }}", "contains", "refund")], []),
        ([row("{{ question }}", "contains", "{{ $vars.word }}")], []),
    ],
)
def test_a_branch_gets_a_message_that_takes_it(catalogue: NodeStore, rows: Any, turns: list[str]) -> None:
    found = added(flow(catalogue, rows), HELLO, "directReplyAgentflow_1")
    assert [one.turns for one in found] == [[one] for one in turns]


def test_each_branch_of_several_is_reached_also_the_one_of_none(catalogue: NodeStore) -> None:
    rows = [row("{{ question }}", "contains", "apple"), row("{{ question }}", "contains", "a")]
    found = added(flow(catalogue, rows, branches=3), HELLO)
    assert [one.turns for one in found] == [["apple"], ["a"], ["Hello"]] or len(found) == 2
    assert {"apple", "a"} <= {one.turns[0] for one in found}
    # Behind a wider condition the narrower one is never taken, and no message is made up for it.
    blocked = added(flow(catalogue, rows[::-1], branches=3), HELLO, "directReplyAgentflow_2")
    assert [one.turns for one in blocked] == [["a"]]


@pytest.mark.parametrize(
    ("start", "variable", "case"),
    [
        ("formInput", "{{ $form.amount }}", TestCase(id="t1", turns=["x"], input="form", payload={"amount": 1})),
        ("webhookTrigger", "{{ $webhook.body.order.amount }}", TestCase(id="t1", turns=["x"], input="webhook")),
    ],
)
def test_a_field_is_given_a_value_that_takes_the_branch(
    catalogue: NodeStore, start: str, variable: str, case: TestCase
) -> None:
    graph = flow(catalogue, [row(variable, "larger", "100", "number")], start={"startInputType": start})
    (found,) = added(graph, case, "directReplyAgentflow_1")
    assert found.payload in ({"amount": 101}, {"order": {"amount": 101}})


def test_a_branch_behind_an_answer_gets_an_answer_unless_a_test_has_it(catalogue: NodeStore) -> None:
    graph = flow(catalogue, [row("{{ httpAgentflow_0.output.http.data.items[0].qty }}", "larger", "5", "number")])
    found = answered_branches(graph, [HELLO])
    assert [one.answers for one in found] == [
        {"httpAgentflow_0": {"items": [{"qty": 4}]}},
        {"httpAgentflow_0": {"items": [{"qty": 6}]}},
    ]
    given = HELLO.model_copy(update={"answers": {"httpAgentflow_0": {"items": [{"qty": 9}]}}})
    assert [one.answers for one in answered_branches(graph, [given])] == [{"httpAgentflow_0": {"items": [{"qty": 4}]}}]


def acting(catalogue: NodeStore) -> tuple[GraphIR, Simulation]:
    graph = flow(catalogue, [row("{{ question }}", "contains", "refund")])
    return graph, simulated(graph, catalogue.schemas, [HELLO])


def test_what_is_simulated_fails_and_answers_nothing_once_each(catalogue: NodeStore) -> None:
    graph, simulation = acting(catalogue)
    runs = [held(HELLO, *STEPS, "directReplyAgentflow_1", taken=1)]
    found: list[TestCase] = []
    while more := more_ways(runs, graph, simulation):
        found += more
        runs += [held(one, *STEPS, "directReplyAgentflow_0") for one in more]
    assert [one.turns[0].splitlines()[0] for one in found] == ["refund", "Hello", "Hello", "Hello"]
    assert "\n" in found[1].turns[0]
    probes = [one for one in found if isinstance(one, Probe)]
    assert [(one.kind, one.stand_in) for one in probes] == [("error", 0), ("empty", 0)]
    assert session_of("s", probes[0], 1) == f"s-{probes[0].id}error0-1"
    assert session_of("s", HELLO, 2) == "s-t1-2"


def test_what_no_test_took_is_said_by_name(catalogue: NodeStore) -> None:
    graph, simulation = acting(catalogue)
    runs = [held(HELLO, *STEPS, "directReplyAgentflow_1", taken=1)]
    codes = [one.code for one in told_ways(runs, graph, simulation)]
    assert codes == ["way.branch", "way.untested"]
    assert simulation.actions()[0] in told_ways(runs, graph, simulation)[1]


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        ("Done.", "", "way.error.same"),
        ("It failed.", "", "way.error.says"),
        ("", "NodeVM: The simulated call failed.", "way.error.ends"),
    ],
)
def test_what_a_failure_led_to_is_told(catalogue: NodeStore, answer: str, error: str, code: str) -> None:
    graph, simulation = acting(catalogue)
    probe = Probe(**HELLO.model_dump(), stand_in=0, kind="error")
    runs = [held(HELLO, *STEPS), held(probe, *(() if error else STEPS), answer=answer, error=error)]
    assert code in [one.code for one in told_ways(runs, graph, simulation)]


def test_a_run_that_the_server_refused_says_nothing_of_what_was_simulated(catalogue: NodeStore) -> None:
    graph, simulation = acting(catalogue)
    probe = Probe(**HELLO.model_dump(), stand_in=0, kind="error")
    refused = held(probe, *STEPS, answer="", error="Access to this host is denied by policy.")
    runs = [held(HELLO, *STEPS), replace(refused, trial=refused.trial.model_copy(update={"category": "EXTERNAL"}))]
    assert [one.code for one in told_ways(runs, graph, simulation)] == ["way.branch", "way.untested"]


def test_of_a_flow_whose_answer_is_empty_a_failure_is_told_to_nobody(catalogue: NodeStore) -> None:
    graph, simulation = acting(catalogue)
    probe = Probe(**HELLO.model_dump(), stand_in=0, kind="error")
    runs = [held(HELLO, *STEPS, answer=""), held(probe, *STEPS, answer="")]
    assert "way.error.quiet" in [one.code for one in told_ways(runs, graph, simulation)]


def test_a_decision_of_a_person_is_a_way(catalogue: NodeStore) -> None:
    ops: list[PatchOp] = [
        add("startAgentflow"),
        add("humanInputAgentflow", humanInputDescriptionType="fixed", humanInputDescription="Go on?"),
        *(add("directReplyAgentflow", number, directReplyMessage="Done.") for number in (0, 1)),
        connect("startAgentflow_0", "humanInputAgentflow_0"),
        *(connect("humanInputAgentflow_0", f"directReplyAgentflow_{n}", output=str(n)) for n in (0, 1)),
    ]
    graph = GraphIR.from_flow_data(compile_ops(GraphIR.empty(), ops, catalogue.schemas).flow_data)
    node = "humanInputAgentflow_0"
    once = held(HELLO, "startAgentflow_0", node, decisions=[(node, "proceed")])
    assert [one.code for one in told_ways([once], graph, NOTHING_SIMULATED)] == ["way.branch"]
    twice = held(HELLO, "startAgentflow_0", node, decisions=[(node, "reject"), (node, "proceed")])
    assert told_ways([twice], graph, NOTHING_SIMULATED) == []


def test_a_large_flow_and_a_chatflow_are_left_alone(catalogue: NodeStore) -> None:
    chat = GraphIR.from_flow_data(json.dumps({"nodes": [], "edges": []}))
    assert more_ways([held(HELLO)], chat, NOTHING_SIMULATED) == []
    assert answered_branches(chat, [HELLO]) == []


FUNCTION = add("customFunctionAgentflow", customFunctionJavascriptFunction="return $flow.input")
PERSON = add("humanInputAgentflow", humanInputDescriptionType="fixed", humanInputDescription="Go on?")


def looping(catalogue: NodeStore, step: AddNode = FUNCTION) -> tuple[GraphIR, Simulation]:
    """A reply that is asked for again until it is good, three times at most."""
    again: list[Any] = [row(f"{{{{ {step.node_id} }}}}", "contains", "again")]
    ops: list[PatchOp] = [
        add("startAgentflow"),
        step,
        add("conditionAgentflow"),
        SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=again),
        add("loopAgentflow", loopBackToNode=step.node_id, maxLoopCount=3, fallbackMessage="Enough."),
        add("directReplyAgentflow", directReplyMessage="Good."),
        connect("startAgentflow_0", step.node_id),
        connect(step.node_id, "conditionAgentflow_0", output="0" if step is PERSON else ""),
        connect("conditionAgentflow_0", "loopAgentflow_0", output="0"),
        connect("conditionAgentflow_0", "directReplyAgentflow_0", output="1"),
    ]
    graph = GraphIR.from_flow_data(compile_ops(GraphIR.empty(), ops, catalogue.schemas).flow_data)
    return graph, simulated(graph, catalogue.schemas, [HELLO], limits=True)


def test_a_loop_that_no_test_brought_to_its_limit_gets_a_test_that_does(catalogue: NodeStore) -> None:
    graph, simulation = looping(catalogue)
    assert simulation.is_copy
    steps = ("startAgentflow_0", "customFunctionAgentflow_0", "conditionAgentflow_0")
    plain = held(HELLO, *steps, "directReplyAgentflow_0", taken=1)
    (probe,) = more_ways([plain], graph, simulation)
    assert isinstance(probe, Probe)
    assert session_of("s", probe, 1) == f"s-{probe.id}limit0-1"
    ended = held(probe, *steps, *["loopAgentflow_0"] * 3, answer="Enough.")
    assert more_ways([plain, ended], graph, simulation) == []
    assert [one.code for one in told_ways([plain, ended], graph, simulation)] == ["way.limit.says"]
    # One that went round by itself needs no other.
    again = held(HELLO, *steps, *["loopAgentflow_0"] * 3)
    assert more_ways([again], graph, simulation) == []


def test_a_loop_that_waits_for_a_person_in_each_round_has_no_limit_to_tell(catalogue: NodeStore) -> None:
    graph, simulation = looping(catalogue, PERSON)
    assert not simulation.limits
    once = held(HELLO, "startAgentflow_0", PERSON.node_id, "conditionAgentflow_0", "loopAgentflow_0")
    assert "way.limit" not in [one.code for one in told_ways([once], graph, simulation)]


def test_a_flow_without_a_loop_needs_no_copy_for_its_limit(catalogue: NodeStore) -> None:
    graph = flow(catalogue, [row("{{ question }}", "contains", "a")])
    plain = simulated(graph, catalogue.schemas, [HELLO])
    assert simulated(graph, catalogue.schemas, [HELLO], limits=True) == plain


def test_a_form_is_sent_once_without_its_switches(catalogue: NodeStore) -> None:
    rows = [{"type": "boolean", "label": "Rush", "name": "rush"}, {"type": "string", "label": "N", "name": "n"}]
    start = {"startInputType": "formInput", "formInputTypes": rows}
    graph = flow(catalogue, [row("{{ llmAgentflow_0 }}", "contains", "x")], start=start)
    case = TestCase(id="t1", turns=["x"], input="form", payload={"rush": True, "n": "Ada"})
    (found,) = added(graph, case, "directReplyAgentflow_0")
    assert found.payload == {"n": "Ada"}
    assert added(graph, found, "directReplyAgentflow_0") == []
