"""Lines of an agentflow in its plan: checked, and completed where they follow without a choice.

`connections` and `disconnections` are the whole change of lines against the flow as it is. What the two lead to is
approved, and nothing else is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from flowise_dev_agent.forms.step_plans import INSIDE
from flowise_dev_agent.patch import FlowNode, GraphIR, Schemas
from flowise_dev_agent.patch.model.agentflow import (
    BRANCHES_FROM,
    BRANCHING,
    HUMAN_INPUT,
    ITERATION,
    LOOP,
    NOTE_NAMES,
    START,
)
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.ways import following, reached_from, ways_of
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.schemas.plan import NamedConnection, Plan


class Line(NamedTuple):
    """Line between two steps. `output` is a branch by number, INSIDE from an iteration to a step in it, LOOP for a
    jump back, else empty.
    """

    source: str
    output: str
    target: str


def lines_of(flow: GraphIR) -> set[Line]:
    """Lines between the steps of an agentflow, steps inside an iteration and jumps of loops too."""
    nodes = {node.id: node for node in flow.nodes if node.is_agentflow and not node.is_note}
    return {
        *(
            Line(one.source, one.output_name if nodes[one.source].name in BRANCHING else "", one.target)
            for one in flow.edges
            if one.source in nodes and one.target in nodes
        ),
        *(Line(node.parent, INSIDE, node.id) for node in nodes.values() if node.parent in nodes),
        *(Line(one.source, LOOP, one.target) for one in ways_of(flow) if one.handle == LOOP),
    }


# --- checks -----------------------------------------------------------------------------------------------------------


def checked_lines(plan: Plan, base: GraphIR, schemas: Schemas) -> tuple[list[NamedConnection], list[str]]:
    """New lines of a plan, each once, by ids and with its branch by number, and problems with those that cannot be. A
    loop jumps back by its own field, and what the flow has already is left out.
    """
    types = {node.id: node.name for node in base.nodes} | {node.node_id: node.node_name for node in plan.nodes}
    lines = _by_ids(plan, base, types)
    unknown = dict.fromkeys(end for one in lines for end in (one.source, one.target) if end not in types)
    problems = [f"`connections` names '{id_}', which is neither planned nor in the flow." for id_ in unknown]
    lines = [one for one in lines if {one.source, one.target} <= types.keys() and types[one.source] != LOOP]
    if not lines:
        return [], problems
    flow = planned_flow(plan.model_copy(update={"connections": lines}), base, schemas).graph
    lines = [_by_number(one, flow) for one in _with_free_branches(lines, flow)]
    whole = plan.model_copy(update={"connections": lines})
    lines = [*{_line(one): one for one in lines}.values()]
    drawn = lines_of(planned_flow(whole, base, schemas).graph)
    problems += [
        _open_branch(one, flow) or f"`connections`: no line can lead from '{one.source}' to '{one.target}'."
        for one in lines
        if _line(one) not in drawn
    ]
    stays = lines_of(planned_flow(plan.model_copy(update={"connections": []}), base, schemas).graph)
    return [one for one in lines if _line(one) not in stays], problems


def _line(one: NamedConnection) -> Line:
    return Line(one.source, one.output, one.target)


def _by_ids(plan: Plan, base: GraphIR, types: Mapping[str, str]) -> list[NamedConnection]:
    """Connections with ids in the place of titles, where one node alone has the title."""
    titled: dict[str, set[str]] = {}
    for id_, title in [(node.id, node.label) for node in base.nodes] + [(one.node_id, one.label) for one in plan.nodes]:
        titled.setdefault(title.casefold(), set()).add(id_)

    def called(name: str) -> str:
        ids = titled.get(name.casefold(), set())
        return next(iter(ids)) if name not in types and len(ids) == 1 else name

    return [
        one.model_copy(update={"source": called(one.source), "target": called(one.target), "input": ""})
        for one in plan.connections
    ]


def _by_number(one: NamedConnection, flow: GraphIR) -> NamedConnection:
    source = flow.node(one.source)
    if source is None or one.output == INSIDE:
        return one
    output = source.output_called(one.output) if len(source.outputs) > 1 else None
    return one.model_copy(update={"output": output.name if output else ""})


def _open_branch(one: NamedConnection, flow: GraphIR) -> str:
    """Problem with a line out of a step with several branches that names none of them."""
    source = flow.node(one.source)
    if source is None or one.output or len(source.outputs) < 2:
        return ""
    names = ", ".join(output.label for output in source.outputs)
    return f"`connections`: say in `output` which branch of '{one.source}' leads to '{one.target}': {names}."


def _with_free_branches(lines: Sequence[NamedConnection], flow: GraphIR) -> list[NamedConnection]:
    """Lines of which the one out of a step without a branch names the one that leads nowhere yet. An approval is the
    plan's to say.
    """
    led = {(edge.source, edge.output_name) for edge in flow.edges}
    found: list[NamedConnection] = []
    for one in lines:
        source = flow.node(one.source)
        free = [output.name for output in source.outputs if (one.source, output.name) not in led] if source else []
        if source and source.name in BRANCHES_FROM and not one.output and len(free) == 1:
            one = one.model_copy(update={"output": free[0]})
            led.add((one.source, one.output))
        found.append(one)
    return found


# --- completion -------------------------------------------------------------------------------------------------------


def with_following_lines(plan: Plan, base: GraphIR, schemas: Schemas) -> Plan:
    """Plan of an agentflow with the lines that it leaves out and that leave no choice.

    New steps run in the order of the plan, behind the start of a new flow, in the one line that the plan takes away, in
    the place of the one step that goes, or behind the one output that leads nowhere. What is left of a row closes over
    a step that goes. A new step whose neighbours are inside an iteration is inside it, too.
    """
    if plan.flow_kind != "AGENTFLOW":
        return plan
    for complete in (_in_places, _in_a_row, _closed, _inside):
        more = [
            NamedConnection(source=one.source, output=one.output, target=one.target)
            for one in complete(plan, base, planned_flow(plan, base, schemas).graph)
        ]
        plan = plan.model_copy(update={"connections": [*plan.connections, *dict.fromkeys(more)]})
    return plan


def without_way(plan: Plan, base: GraphIR, schemas: Schemas) -> list[str]:
    """Ids of the steps that nothing leads to after the plan: new ones, and those that a line led to before."""
    if plan.flow_kind != "AGENTFLOW":
        return []
    flow = planned_flow(plan, base, schemas).graph
    led, before = ({one.target for one in lines_of(graph) if one.output != LOOP} for graph in (flow, base))
    return [
        node.id
        for node in flow.nodes
        if node.id not in led and node.name not in (START, *NOTE_NAMES)
        if node.id in before or (node.id in plan.new_nodes and base.node(node.id) is None)
    ]


def ask_for_lines(plan: Plan, base: GraphIR, schemas: Schemas) -> list[str]:
    """Problem for the planner with the steps that nothing leads to."""
    ids = without_way(plan, base, schemas)
    if not ids:
        return []
    known = [node.node_id for node in plan.nodes if node.node_id not in ids] or [node.id for node in base.nodes]
    line = {"source": known[0] if known else f"{START}_0", "output": "", "target": ids[0]}
    return [
        f"`connections` has no line to {', '.join(map(repr, ids))}: give all new lines of the plan, such as "
        f"{dump_json(line)}; `output` is the number of a branch."
    ]


def _in_places(plan: Plan, base: GraphIR, flow: GraphIR) -> Iterator[Line]:
    """Lines of the one new step that takes the place of the one step that goes."""
    steps, gone = _new_steps(plan, base, flow), [node for id_ in plan.removals if (node := base.node(id_))]
    if not len(steps) == len(gone) == 1 or plan.connections or plan.disconnections:
        return
    (new,), (old,) = steps, gone
    if len(new.outputs) == len(old.outputs) and (len(new.outputs) < 2 or new.name == old.name):
        for one in sorted(lines_of(base)):
            if old.id in (one.source, one.target) and one.output != LOOP:
                yield one._replace(**{end: new.id for end in ("source", "target") if getattr(one, end) == old.id})


def _in_a_row(plan: Plan, base: GraphIR, flow: GraphIR) -> Iterator[Line]:
    """Lines that connect new steps one after the other, and these with the flow."""
    steps = _new_steps(plan, base, flow)
    lines = lines_of(flow)
    loose = [node for node in steps if not any(node.id in (one.source, one.target) for one in lines)]
    if not base.nodes:
        start = [node for node in flow.nodes if node.name == START and not plan.connections]
        steps = [*start, *steps]
    elif plan.removals:
        return
    row: list[Line] = []
    if len(loose) == len([one for one in steps if one.name != START]):
        if not all(_leads_on(one) for one in steps[:-1]):
            return
        row = [Line(one.id, "", two.id) for one, two in pairwise(steps)]
    into = [*_into_flow(plan, base, flow, steps, {*lines, *row})] if base.nodes else []
    if not base.nodes or not row or any(one.target == steps[0].id for one in into):
        yield from (*row, *into)


def _into_flow(plan: Plan, base: GraphIR, flow: GraphIR, steps: Sequence[FlowNode], lines: set[Line]) -> Iterator[Line]:
    """Lines from the flow to the one new step that none leads to, and from the one that leads nowhere back to it."""
    led, left = {one.target for one in lines}, {(one.source, one.output) for one in lines}
    cut = {
        one
        for one in lines_of(base)
        if any((one.source, one.target) == (gone.source, gone.target) for gone in plan.disconnections)
    } - lines
    heads = [node for node in steps if node.id not in led]
    ends = [node for node in steps if _leads_on(node) and (node.id, "") not in left]
    open_ = {(one.source, one.output) for one in cut if (one.source, one.output) not in left}
    if not cut:
        open_ = {*_open_outputs(plan, base, flow, left)}
    if len(heads) == 1 and len(open_) == 1:
        ((source, output),) = open_
        yield Line(source, output, heads[0].id)
    lost = {one.target for one in cut if one.target not in led}
    if len(ends) == 1 and len(lost) == 1:
        yield Line(ends[0].id, "", *lost)


def _open_outputs(plan: Plan, base: GraphIR, flow: GraphIR, left: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Outputs of the steps that the plan changes which lead nowhere, no approval, and no branch whose neighbours come
    together again: a new step may have to, too.
    """
    after = following(ways_of(base))
    for one in plan.nodes:
        node = flow.node(one.node_id)
        if node is None or base.node(node.id) is None or node.name in (HUMAN_INPUT, ITERATION):
            continue
        ways = [reached_from([edge.target], after) for edge in base.edges if edge.source == node.id]
        if sum(map(len, ways)) > len(frozenset[str]().union(*ways)):
            continue
        for output in node.outputs:
            way = (node.id, output.name if node.name in BRANCHING else "")
            if way not in left:
                yield way


def _closed(plan: Plan, base: GraphIR, flow: GraphIR) -> Iterator[Line]:
    """Lines from before each step that goes to the one behind it, where the plan leads neither of them elsewhere."""
    lines, gone = lines_of(base), {*plan.removals}
    led, left = {one.target for one in plan.connections}, {(one.source, one.output) for one in plan.connections}
    joined = {(one.source, one.target) for one in lines_of(flow)}
    behind = {id_: {one.target for one in lines if one.source == id_ and one.output != LOOP} for id_ in gone}
    for one in sorted(lines):
        target, seen = one.target, set[str]()
        while target in gone and len(behind[target]) == 1 and target not in seen:
            seen.add(target)
            (target,) = behind[target]
        closes = seen and not {one.source, target} & gone and one.output not in (INSIDE, LOOP)
        if closes and not (target in led or (one.source, one.output) in left or (one.source, target) in joined):
            joined.add((one.source, target))
            yield one._replace(target=target)


def _inside(plan: Plan, base: GraphIR, flow: GraphIR) -> Iterator[Line]:
    """Lines from an iteration to the new steps that lines connect with steps inside it, and with none outside."""
    parents = {node.id: node.parent for node in flow.nodes}
    free = {node.id for node in _new_steps(plan, base, flow) if node.name != ITERATION}
    joined = [one for one in lines_of(flow) if one.output != INSIDE]
    neighbours: dict[str, list[str]] = {}
    for source, _, target in joined:
        neighbours.setdefault(source, []).append(target)
        neighbours.setdefault(target, []).append(source)
    ways = {id_: [other for other in ends if other in free] for id_, ends in neighbours.items() if id_ in free}
    while free:
        together = reached_from([next(iter(free))], ways)
        around = {parents[end] for id_ in together for end in neighbours.get(id_, ()) if end not in together}
        if len(around) == 1 and (parent := around.pop()):
            yield from (Line(parent, INSIDE, id_) for id_ in sorted(together))
        free -= together


def _new_steps(plan: Plan, base: GraphIR, flow: GraphIR) -> list[FlowNode]:
    """New steps in the order of the plan, without those inside an iteration."""
    nodes = [flow.node(one.node_id) for one in plan.nodes]
    return [
        node
        for node in nodes
        if node and base.node(node.id) is None and node.is_agentflow and not node.is_note
        if node.name != START and not node.parent
    ]


def _leads_on(node: FlowNode) -> bool:
    """True for a step with one way on; which steps are inside an iteration is the plan's to say."""
    return len(node.outputs) == 1 and node.name not in (ITERATION, LOOP)
