"""Lines are part of the approval: nothing leads around a guard, into a step that acts, or changes an order unsaid."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.approval.amending import amended
from flowise_dev_agent.approval.binding import beyond_approval, capability_of
from flowise_dev_agent.approval.lines import before_approval, rerouted
from flowise_dev_agent.approval.manual_edits import with_ops
from flowise_dev_agent.approval.ops import compiled, completed
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Disconnect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetParam,
    SetParent,
    compile_ops,
)
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.permissions import capability_words
from flowise_dev_agent.planning.plan_checks import checked_amendment, checked_plan
from flowise_dev_agent.planning.planned_lines import Line, lines_of, with_following_lines, without_way
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.schemas.plan import AmendAnswer, LineChange, NamedConnection, Plan
from flowise_dev_agent.texts import say
from tests.support.requests import UPDATE, plan_request
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value


def node(id_: str, **params: Any) -> PatchOp:
    return AddNode(node_name=id_.rpartition("_")[0], node_id=id_, params=params)


def line(source: str, target: str, branch: str | None = None) -> PatchOp:
    return Connect(source_node_id=source, source_anchor=branch, target_node_id=target)


def cut(source: str, target: str, branch: str | None = None) -> PatchOp:
    return Disconnect(source_node_id=source, source_anchor=branch, target_node_id=target)


START, DRAFT, CHECK, ASK = "startAgentflow_0", "llmAgentflow_0", "llmAgentflow_1", "humanInputAgentflow_0"
CODE, CALL, SORT, NO = "customFunctionAgentflow_0", "httpAgentflow_0", "conditionAgentflow_0", "directReplyAgentflow_0"
LATE = "directReplyAgentflow_1"
#: start > draft > check > sort -0> ask -0> code > call, ask -1> no, sort -1> late
FLOW: list[PatchOp] = [
    *(node(id_) for id_ in (START, DRAFT, CHECK, ASK, CODE, CALL, NO, LATE)),
    node(SORT, conditions=[{"type": "string", "value1": "{{ question }}", "operation": "contains", "value2": "order"}]),
    line(START, DRAFT),
    line(DRAFT, CHECK),
    line(CHECK, SORT),
    line(SORT, ASK, "0"),
    line(SORT, LATE, "1"),
    line(ASK, CODE, "0"),
    line(ASK, NO, "1"),
    line(CODE, CALL),
]
POLITE = contract(planned(DRAFT), values=[value(DRAFT, "llmUserMessage", "x")], credential_requirements=[])
REPLY, NEXT = "directReplyAgentflow_2", "llmAgentflow_3"
NEW = "llmAgentflow_2"
#: Plans that put steps into the flow, and leave out the lines that follow.
BETWEEN = contract(planned(NEW, existing=False), disconnections=[{"source": DRAFT, "target": CHECK}])
TWO = contract(*(planned(id_, existing=False) for id_ in (NEW, NEXT)), disconnections=BETWEEN.disconnections)
LOOP = "loopAgentflow_0"
LOOPED = contract(planned(DRAFT), planned(LOOP, existing=False))
#: A rejection goes back to the draft.
AGAIN = contract(
    *LOOPED.nodes,
    values=[value(LOOP, "loopBackToNode", DRAFT)],
    connections=[{"source": ASK, "output": "1", "target": LOOP}],
    disconnections=[{"source": ASK, "output": "1", "target": NO}],
)


def whole(plan: Plan, base: GraphIR, catalogue: NodeStore) -> Plan:
    """Plan for a flow of this kind, with the lines that follow."""
    return with_following_lines(plan.model_copy(update={"flow_kind": base.kind}), base, catalogue.schemas)


def outside(ops: list[PatchOp], plan: Plan, catalogue: NodeStore, flow: list[PatchOp] = FLOW) -> list[str]:
    base = compile_ops(GraphIR.empty(), flow, catalogue.schemas).graph
    plan = whole(plan, base, catalogue)
    after = compile_ops(base, ops, catalogue.schemas).graph
    capability = capability_of(plan, catalogue.schemas, base)
    found = rerouted(plan, capability, base, after, catalogue.schemas)
    assert all((one.code, one.severity) == ("OUTSIDE_PLAN", "error") for one in found)
    return [one.detail for one in found]


INJECTIONS: dict[str, tuple[Plan, list[PatchOp]]] = {
    "around the approval into a call": (POLITE, [line(DRAFT, CALL)]),
    "around the approval into code": (POLITE, [line(DRAFT, CODE)]),
    "around the condition into the approval": (POLITE, [line(DRAFT, ASK)]),
    "around the condition into a reply": (POLITE, [line(DRAFT, LATE)]),
    "from the start": (POLITE, [line(START, CALL)]),
    "a rejection runs the call": (POLITE, [line(ASK, CALL, "1")]),
    "the branches of the approval change places": (
        POLITE,
        [cut(ASK, CODE, "0"), cut(ASK, NO, "1"), line(ASK, CODE, "1"), line(ASK, NO, "0")],
    ),
    "the other branch of the condition": (POLITE, [line(SORT, CODE, "1")]),
    "a line goes and another one leads around": (POLITE, [cut(ASK, CODE), line(DRAFT, CODE)]),
    "through a new step of the plan": (BETWEEN, [node(NEW), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, CALL)]),
    "a new step leads to another step as well": (
        BETWEEN,
        [node(NEW), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, CHECK), line(NEW, LATE)],
    ),
    "a new step leads to another step instead": (
        contract(planned(NEW, existing=False), connections=[{"source": CALL, "target": NEW}]),
        [node(NEW), line(DRAFT, NEW)],
    ),
    "a new step is put around the approval": (
        contract(planned(NEW, existing=False), disconnections=[{"source": ASK, "output": "0", "target": CODE}]),
        [node(NEW), cut(ASK, CODE, "0"), line(CHECK, NEW), line(NEW, CODE)],
    ),
    "a new step takes the rejection": (
        contract(planned(NEW, existing=False), disconnections=[{"source": ASK, "output": "0", "target": CODE}]),
        [node(NEW), cut(ASK, CODE, "0"), line(ASK, NEW, "1"), line(NEW, CODE)],
    ),
    "a new step has two possible places": (
        contract(planned(NEW, existing=False), planned(CHECK), planned(CODE)),
        [node(NEW), cut(CODE, CALL), line(CODE, NEW), line(NEW, CALL)],
    ),
    "a new step runs inside an iteration": (
        contract(
            *(planned(id_, existing=False) for id_ in (NEW, "iterationAgentflow_0")),
            connections=[{"source": CALL, "target": NEW}, {"source": NEW, "target": "iterationAgentflow_0"}],
        ),
        [
            *(node(id_) for id_ in (NEW, "iterationAgentflow_0")),
            SetParent(node_id=NEW, parent_id="iterationAgentflow_0"),
            line(CALL, "iterationAgentflow_0"),
        ],
    ),
    "through two new steps of the plan": (
        TWO,
        [node(NEW), node(NEXT), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, NEXT), line(NEXT, CODE)],
    ),
    "two new steps in another order": (
        TWO,
        [node(NEW), node(NEXT), cut(DRAFT, CHECK), line(DRAFT, NEXT), line(NEXT, NEW), line(NEW, CHECK)],
    ),
    "a new loop that jumps behind the approval": (
        LOOPED,
        [node(LOOP, loopBackToNode=f"{CALL}-HTTP"), line(DRAFT, LOOP)],
    ),
    "a loop back that the plan does not say": (
        LOOPED,
        [node(LOOP, loopBackToNode=DRAFT), cut(ASK, NO, "1"), line(ASK, LOOP, "1")],
    ),
    "another order": (
        POLITE,
        [
            cut(START, DRAFT),
            cut(DRAFT, CHECK),
            cut(CHECK, SORT),
            line(START, CHECK),
            line(CHECK, DRAFT),
            line(DRAFT, SORT),
        ],
    ),
    "a check is taken out of the way": (POLITE, [cut(DRAFT, CHECK)]),
    "straight past a step into a call": (
        contract(planned(ASK), values=[value(ASK, "humanInputDescription", "Really?")]),
        [line(ASK, CALL, "0")],
    ),
}


@pytest.mark.parametrize("name", INJECTIONS)
def test_p85_p112_a_line_that_the_plan_does_not_say_is_outside_of_it(name: str, catalogue: NodeStore) -> None:
    plan, ops = INJECTIONS[name]
    assert outside(ops, plan, catalogue)


EDITS: dict[str, tuple[Plan, list[PatchOp]]] = {
    "a field": (POLITE, [SetParam(node_id=DRAFT, param_name="llmUserMessage", value="x")]),
    "a step in between": (
        BETWEEN,
        [node(NEW), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, CHECK)],
    ),
    "a step between the approval and the call": (
        contract(planned(NEW, existing=False), disconnections=[{"source": CODE, "target": CALL}]),
        [node(NEW), cut(CODE, CALL), line(CODE, NEW), line(NEW, CALL)],
    ),
    "two steps in between": (
        TWO,
        [node(NEW), node(NEXT), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, NEXT), line(NEXT, CHECK)],
    ),
    "a step in between, half said": (
        BETWEEN.model_copy(update={"connections": [NamedConnection(source=DRAFT, target=NEW)]}),
        [node(NEW), cut(DRAFT, CHECK), line(DRAFT, NEW), line(NEW, CHECK)],
    ),
    "a step at the end": (contract(planned(CALL), planned(REPLY, existing=False)), [node(REPLY), line(CALL, REPLY)]),
    "a step in the place of another": (
        contract(planned(NEW, existing=False), removals=[CHECK]),
        [RemoveNode(node_id=CHECK), node(NEW), line(DRAFT, NEW), line(NEW, SORT)],
    ),
    "a step that replaces another": (
        contract(planned("agentAgentflow_0", existing=False), removals=[CHECK]),
        [ReplaceNode(node_id=CHECK, node_name="agentAgentflow", new_node_id="agentAgentflow_0")],
    ),
    "a step is removed": (contract(removals=[CHECK]), [RemoveNode(node_id=CHECK), line(DRAFT, SORT)]),
    "a line that the plan says": (
        contract(planned(DRAFT), connections=[{"source": DRAFT, "target": CALL}]),
        [line(DRAFT, CALL)],
    ),
    "a loop back that the plan says": (
        AGAIN,
        [node(LOOP, loopBackToNode=DRAFT), cut(ASK, NO, "1"), line(ASK, LOOP, "1")],
    ),
    "an order that the plan says": (
        contract(
            planned(DRAFT),
            connections=[{"source": s, "target": t} for s, t in ((START, CHECK), (CHECK, DRAFT), (DRAFT, SORT))],
            disconnections=[{"source": s, "target": t} for s, t in ((START, DRAFT), (DRAFT, CHECK), (CHECK, SORT))],
        ),
        INJECTIONS["another order"][1],
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_p85_ordinary_edits_and_what_the_plan_says_are_covered(name: str, catalogue: NodeStore) -> None:
    plan, ops = EDITS[name]
    assert outside(ops, plan, catalogue) == []


def test_p85_a_tool_of_a_chatflow_is_given_to_another_agent_only_by_the_plan(catalogue: NodeStore) -> None:
    flow = [*CHAT, node("toolAgent_1"), node("requestsGet_0")]
    flow += [
        Connect(source_node_id="requestsGet_0", target_node_id="toolAgent_1", target_anchor="tools"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_1", target_anchor="model"),
    ]
    plan = contract(planned("toolAgent_0"), values=[value("toolAgent_0", "systemMessage", "x")])
    given = Connect(source_node_id="requestsGet_0", target_node_id="toolAgent_0", target_anchor="tools")
    assert any("reaches out" in detail for detail in outside([given], plan, catalogue, flow))
    taken = Disconnect(source_node_id="bufferMemory_0", target_node_id="toolAgent_0", target_anchor="memory")
    assert any("goes" in detail for detail in outside([taken], plan, catalogue, flow))


def test_p85_p112_the_approval_shows_lines_and_what_runs_before_a_person_agrees(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    plan = whole(EDITS["a line that the plan says"][0], base, catalogue)
    capability = capability_of(plan, catalogue.schemas, base)
    assert capability.lines == [LineChange(source=DRAFT, target=CALL, change="add")]
    assert capability.before_approval == [CALL]
    words = capability_words(capability, names={DRAFT: "Draft", CALL: "Call"})
    assert "Call runs before the approval of a person." in words
    assert "A new line leads from Draft to Call." in words
    past = contract(removals=[ASK], connections=[{"source": SORT, "output": "0", "target": CODE}])
    assert capability_of(whole(past, base, catalogue), catalogue.schemas, base).before_approval == [CODE, CALL]
    narrow = capability_of(whole(POLITE, base, catalogue), catalogue.schemas, base)
    assert (narrow.lines, narrow.before_approval) == ([], [])
    beyond = beyond_approval(capability, narrow.model_copy(update={"nodes": capability.nodes}))
    assert beyond is not None
    assert (beyond.lines, beyond.before_approval) == (capability.lines, [CALL])


async def test_p85_lines_of_a_model_are_checked_and_those_of_a_person_are_not(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    plan = whole(POLITE, base, catalogue)
    plan = plan.model_copy(update={"capability": capability_of(plan, catalogue.schemas, base)})
    ops, found = completed([line(DRAFT, CALL)], plan, base, catalogue.schemas)
    assert found == []
    for by_model in (True, False):
        made = await compiled(ops, plan, base, catalogue.schemas, credentials={}, unbound=[], by_model=by_model)
        assert ("OUTSIDE_PLAN" in {one.code for one in made.lacking}) is by_model


HTTP = "httpAgentflow_1"


def test_p85_a_new_step_that_acts_before_a_person_is_asked_is_in_the_approval(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph

    def early(id_: str, source: str, branch: str, target: str) -> list[str]:
        cut_ = [{"source": source, "output": branch, "target": target}]
        plan = whole(contract(planned(id_, existing=False), disconnections=cut_), base, catalogue)
        return capability_of(plan, catalogue.schemas, base).before_approval

    assert early(HTTP, DRAFT, "", CHECK) == [HTTP]
    assert early(HTTP, SORT, "1", LATE) == []
    assert early(HTTP, CODE, "", CALL) == []
    assert early(NEXT, DRAFT, "", CHECK) == []


def test_p85_a_planned_line_is_of_one_branch_and_shown_with_it(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    by_rejection = contract(planned(ASK), connections=[{"source": ASK, "output": "reject", "target": CALL}])
    by_rejection = whole(by_rejection, base, catalogue)
    capability = capability_of(by_rejection, catalogue.schemas, base)
    assert capability.lines == [LineChange(source=ASK, output="1", target=CALL, change="add")]
    assert outside([line(ASK, CALL, "1")], by_rejection, catalogue) == []
    assert outside([line(ASK, CALL, "0")], by_rejection, catalogue)
    wanted = by_rejection.model_copy(update={"capability": capability})
    assert any("(rejected) to HTTP" in one for one in plan_details(wanted, base, schemas=catalogue.schemas).allows)
    with pytest.raises(UnusableOutputError, match="which branch of 'humanInputAgentflow_0'"):
        checked_plan(
            contract(planned(ASK), connections=[{"source": ASK, "target": CALL}]),
            plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base)),
        )


def test_a_line_out_of_the_one_branch_that_leads_nowhere_needs_no_name(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    request = plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base))
    rows = [{"type": "string", "value1": "{{ question }}", "operation": "contains", "value2": word} for word in "ab"]
    lines: list[dict[str, str]] = [{"source": SORT, "target": NO}]
    more = contract(planned(SORT), values=[value(SORT, "conditions", rows)], connections=lines)
    assert [one.output for one in checked_plan(more, request).connections] == ["1"]
    after = planned_flow(checked_plan(more, request), base, catalogue.schemas).graph
    led = [(edge.output_name, edge.target) for edge in after.edges if edge.source == SORT]
    assert sorted(led) == [("0", ASK), ("1", NO), ("2", LATE)]
    with pytest.raises(UnusableOutputError, match="which branch"):
        checked_plan(contract(planned(SORT), connections=lines), request)
    # Whether an approval or a rejection leads there is nothing that code decides.
    asked = compile_ops(base, [cut(ASK, NO)], catalogue.schemas).graph
    open_ = contract(planned(ASK), connections=[{"source": ASK, "target": LATE}])
    with pytest.raises(UnusableOutputError, match="which branch"):
        checked_plan(open_, plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(asked)))


def test_p85_a_line_that_goes_is_of_one_branch_and_shown_with_it(catalogue: NodeStore) -> None:
    both = [*FLOW, line(ASK, CALL, "0"), line(ASK, CALL, "1")]
    base = compile_ops(GraphIR.empty(), both, catalogue.schemas).graph
    wanted = contract(planned(ASK), disconnections=[{"source": ASK, "output": "1", "target": CALL}])
    capability = capability_of(wanted, catalogue.schemas, base)
    assert capability.lines == [LineChange(source=ASK, output="1", target=CALL, change="remove")]
    assert outside([cut(ASK, CALL, "1")], wanted, catalogue, both) == []
    assert outside([cut(ASK, CALL, "0")], wanted, catalogue, both)
    wanted = wanted.model_copy(update={"capability": capability})
    assert any("(rejected) to HTTP" in one for one in plan_details(wanted, base, schemas=catalogue.schemas).allows)


@pytest.mark.parametrize("output", ["bogus", "2", "approve"])
def test_p85_a_line_that_goes_names_a_branch_that_is_there(output: str, catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    wanted = contract(planned(ASK), disconnections=[{"source": ASK, "output": output, "target": CODE}])
    with pytest.raises(UnusableOutputError, match="no branch"):
        checked_plan(wanted, plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base)))


def test_p85_a_line_that_goes_is_said_once_in_all_its_spellings(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    cuts = [{"source": ASK, "output": output, "target": CODE} for output in ("0", "proceed", "Proceed", "")]
    cuts += [{"source": DRAFT, "output": output, "target": CHECK} for output in ("", "0", "anything")]
    checked = checked_plan(
        contract(planned(ASK), disconnections=cuts),
        plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base)),
    )
    assert [one.ends for one in checked.disconnections] == [(ASK, "0", CODE), (DRAFT, "", CHECK)]


def test_p85_an_amendment_cuts_the_branch_that_it_names(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    rejected = {"source": ASK, "output": "1", "target": CODE}
    plan = whole(contract(planned(ASK), connections=[rejected]), base, catalogue)
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue, target=None, flow=GraphView(base))

    def lines_after(output: str) -> set[str]:
        cut_ = NamedConnection(source=ASK, output=output, target=CODE)
        answer = checked_amendment(AmendAnswer(disconnections=[cut_], reason="x"), request)
        wider = amended(plan, answer, [], catalogue.schemas)
        return {
            one.output for one in lines_of(planned_flow(wider, base, catalogue.schemas).graph) if one.target == CODE
        }

    assert lines_after("proceed") == {"1"}
    assert lines_after("reject") == {"0"}
    with pytest.raises(UnusableOutputError, match="no branch"):
        lines_after("bogus")


@pytest.mark.parametrize("by_hand", [True, False])
def test_p85_lines_close_over_a_new_step_that_is_taken_back(by_hand: bool, catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph

    def left(plan: Plan, *ids: str) -> tuple[list[str], set[Line], set[Line]]:
        plan = whole(plan, base, catalogue)
        narrower = (
            with_ops(plan, [RemoveNode(node_id=id_) for id_ in ids], base, catalogue.schemas)
            if by_hand
            else amended(plan, AmendAnswer(removals=[*ids], reason="x"), [], catalogue.schemas)
        )
        after, before = lines_of(planned_flow(narrower, base, catalogue.schemas).graph), lines_of(base)
        return without_way(narrower, base, catalogue.schemas), after - before, before - after

    assert left(BETWEEN, NEW) == ([], set(), set())
    assert left(TWO, NEW, NEXT) == ([], set(), set())
    one = {Line(DRAFT, "", NEXT), Line(NEXT, "", CHECK)}
    assert left(TWO, NEW) == ([], one, {Line(DRAFT, "", CHECK)})
    behind = contract(planned(NEW, existing=False), disconnections=[{"source": ASK, "output": "0", "target": CODE}])
    assert left(behind, NEW) == ([], set(), set())


def test_p85_a_title_hides_no_type(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    named = planned("customFunctionAgentflow_1", existing=False).model_copy(update={"label": "Approved by security"})
    wanted = contract(named)
    wanted = wanted.model_copy(update={"capability": capability_of(wanted, catalogue.schemas, base)})
    allows = plan_details(wanted, base, schemas=catalogue.schemas).allows
    assert "Approved by security (Custom Function) runs code." in allows


def test_p85_a_target_of_a_loop_is_a_line_of_the_plan(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    capability = capability_of(whole(AGAIN, base, catalogue), catalogue.schemas, base)
    assert LineChange(source=LOOP, target=DRAFT, change="add") in capability.lines
    later = beyond_approval(capability, capability_of(whole(LOOPED, base, catalogue), catalogue.schemas, base))
    assert later is not None
    assert capability.lines[-1] in later.lines


def test_p85_a_loop_of_the_flow_gets_the_target_of_the_plan_and_no_other(catalogue: NodeStore) -> None:
    flow = [*FLOW, node(LOOP, loopBackToNode=CHECK), line(ASK, LOOP, "1")]
    wanted = contract(planned(LOOP), values=[value(LOOP, "loopBackToNode", DRAFT)])
    assert outside([SetParam(node_id=LOOP, param_name="loopBackToNode", value=DRAFT)], wanted, catalogue, flow) == []
    base = compile_ops(GraphIR.empty(), flow, catalogue.schemas).graph
    assert [(one.target, one.change) for one in capability_of(wanted, catalogue.schemas, base).lines] == [
        (DRAFT, "add"),
        (CHECK, "remove"),
    ]
    assert outside([SetParam(node_id=LOOP, param_name="loopBackToNode", value=CALL)], wanted, catalogue, flow)


def test_p85_a_planned_line_of_a_branch_that_the_plan_adds_or_moves_is_of_that_branch(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), FLOW, catalogue.schemas).graph
    row = {"type": "string", "value1": "{{ question }}", "operation": "contains", "value2": "return"}
    values = [value(SORT, f"conditions[1].{name}", part) for name, part in row.items()]
    for output in ("2", "else"):
        moved = contract(
            planned(SORT),
            values=values,
            connections=[{"source": SORT, "output": output, "target": LATE}],
            disconnections=[{"source": SORT, "output": "1", "target": LATE}],
        )
        request = plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base))
        checked = checked_plan(moved, request)
        capability = capability_of(checked, catalogue.schemas, base)
        added = next(one for one in capability.lines if one.change == "add")
        assert (added.output, added.target) == ("2", LATE)
        wanted = checked.model_copy(update={"capability": capability})
        shown = plan_details(wanted, base, schemas=catalogue.schemas).allows
        # Else leads there as before, by another number.
        assert not any("Direct Reply" in one for one in shown), shown


# --- random flows ----------------------------------------------------------------------------------------------------

LLMS = [f"llmAgentflow_{number}" for number in range(4)]
#: Outputs of a step: of the approval and of the condition, whose else is the last, several.
OUTPUTS = {ASK: ("0", "1"), SORT: ("0", "1")}
STEPS = [ASK, SORT, *LLMS]
#: Lines from an earlier step to a later one.
LINES = [(START, "", one) for one in STEPS] + [
    (source, output, target)
    for number, source in enumerate(STEPS)
    for output in OUTPUTS.get(source, ("",))
    for target in STEPS[number + 1 :]
]


def connection(one: tuple[str, str, str]) -> NamedConnection:
    return NamedConnection(source=one[0], output=one[1], target=one[2])


def reached(lines: set[tuple[str, str, str]], *, without: tuple[str, str] = ("", "")) -> set[str]:
    found, queue = set[str](), [START]
    while queue:
        if (step := queue.pop()) not in found:
            found.add(step)
            queue += [target for source, output, target in lines if source == step and (source, output) != without]
    return found


@given(st.sets(st.sampled_from(LINES), max_size=14), st.data())
def test_what_an_approval_says_of_lines_is_what_the_compiled_flows_show(
    catalogue: NodeStore, before: set[tuple[str, str, str]], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(before)), max_size=4)) if before else set[tuple[str, str, str]]()
    come = data.draw(st.sets(st.sampled_from(LINES), max_size=4)) - before
    rows = [
        {"type": "number", "value1": "{{ $form.age }}", "operation": "larger", "value2": str(number)}
        for number in (70, 40)
    ]
    shifts = data.draw(st.booleans())
    after = {(source, output, target) for source, output, target in (before - gone) | come}
    base = compile_ops(
        GraphIR.empty(),
        [
            *map(node, [START, ASK, *LLMS]),
            node(SORT, conditions=rows[:1]),
            *(line(a, b, o or None) for a, o, b in before),
        ],
        catalogue.schemas,
    ).graph
    # A condition in front of else makes it another number, and moves no line.
    values = [value(SORT, f"conditions[1].{name}", one) for name, one in rows[1].items()] if shifts else []
    new_else = {(SORT, "1"): (SORT, "2")} if shifts else {}
    plan = contract(
        planned(SORT),
        flow_kind="AGENTFLOW",
        values=values,
        disconnections=[*map(connection, gone)],
        connections=[
            connection((*new_else.get((source, output), (source, output)), target)) for source, output, target in come
        ],
        credential_requirements=[],
    )
    told = before_approval(plan, base, catalogue.schemas)
    truth = {
        step
        for branch in OUTPUTS[ASK]
        for step in reached(before) - reached(before, without=(ASK, branch))
        if step in reached(after, without=(ASK, branch))
    }
    assert set(told) == truth
    wanted = plan.model_copy(update={"capability": capability_of(plan, catalogue.schemas, base)})
    shown = plan_details(wanted, base, schemas=catalogue.schemas)
    names = {
        (ASK, "0"): " (approved)",
        (ASK, "1"): " (rejected)",
        (SORT, "0"): " (age is more than 70)",
        (SORT, "1"): " (otherwise)",
    }
    types = {START: "Start", ASK: "Human Input", SORT: "Condition", **{one: shown.names[one] for one in LLMS}}

    def words(code: str, lines: set[tuple[str, str, str]]) -> set[str]:
        return {say(code, source=types[a] + names.get((a, o), ""), target=types[b]) for a, o, b in lines}

    said = {one for one in shown.allows if " line " in one}
    assert said == words("plan.allows.line_add", come) | words("plan.allows.line_remove", gone)
