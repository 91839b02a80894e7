"""Lines of a flow against the approved plan.

Those of an agentflow are exactly those of its plan. In other flows the order of nodes, and the guards before them,
change only by the plan: a node that the change adds or removes is passed through, and what counts are the lines between
the nodes that stay. A guard is a human input or a condition; a step is behind a branch of it if no way leads there
without that branch.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Self

from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, Schemas
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.reach import holds_code, reached, tools_in
from flowise_dev_agent.patch.model.ways import Way, following, reached_from, ways_of
from flowise_dev_agent.planning.planned_lines import lines_of
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.schemas.plan import Capability, LineChange, NamedConnection, Plan

#: Steps that reach out, run code, or start something that does.
_ACTS: Final = frozenset(
    {
        *("httpAgentflow", "customFunctionAgentflow", "toolAgentflow", "executeFlowAgentflow", "agentAgentflow"),
        *("seqExecuteFlow", "seqToolNode", "seqAgent", "worker"),
    }
)
#: Steps that choose a branch.
_BRANCHING: Final = v2.BRANCHING | sequential.CONDITIONS
_TOOLS: Final = frozenset({"Tools", "Tools (MCP)"})
_STEPS: Final = "AGENTFLOW"
_HINT: Final = (
    "Leave the lines of the flow as they are. If the plan cannot be met without it, answer with `amend` and name the "
    "line in `connections`: the person is asked then."
)

_HINT_OF_STEPS: Final = (
    "Code makes the lines of the plan: leave out `Connect` and `SetParent`. If the plan cannot be met so, answer with "
    "`amend`: lines that lack in `connections`, those that go in `disconnections`. The person is asked then."
)


def line_changes(plan: Plan, base: GraphIR, schemas: Schemas) -> list[LineChange]:
    """Lines that a plan adds and takes away, jumps of loops too, in flows other than agentflows between nodes that are
    there. `output` is a guard's branch, of an added line as the plan leaves the branches.
    """
    has_steps, new = plan.flow_kind == _STEPS, plan.new_nodes
    if plan.operation == "create" and not has_steps:
        return []
    added = [one for one in plan.connections if has_steps or not {one.source, one.target} & new]
    after = planned_flow(plan, base, schemas).graph if added else base
    outputs = [(one, node.output_called(one.output) if (node := after.node(one.source)) else None) for one in added]
    return [
        *(
            LineChange(source=one.source, output=output.name if output else "", target=one.target, change="add")
            for one, output in outputs
        ),
        *(
            LineChange(source=one.source, output=output, target=one.target, change="remove")
            for one in plan.disconnections
            for output in dict.fromkeys(_branch_of(edge, base) for edge in lines_named(one, base)) or [""]
        ),
        *_jumps(plan, base),
    ]


def _jumps(plan: Plan, base: GraphIR) -> Iterator[LineChange]:
    """Jumps that the plan's targets of loops, new ones too, add and take away."""
    for one in plan.values:
        loop = base.node(one.node_id)
        if one.param == v2.LOOP_TARGET:
            old = v2.loop_target_id(str(loop.inputs.get(v2.LOOP_TARGET) or "")) if loop else ""
            new = v2.loop_target_id(str(one.value or ""))
        elif one.param == sequential.LOOP_TO:
            former = loop.inputs.get(sequential.LOOP_TO) if loop else ""
            old, new = (sequential.id_called(str(name or ""), base.nodes) for name in (former, one.value))
        else:
            continue
        if old != new and base.node(new):
            yield LineChange(source=one.node_id, target=new, change="add")
        if old != new and base.node(old):
            yield LineChange(source=one.node_id, target=old, change="remove")


def lines_named(wanted: NamedConnection, graph: GraphIR) -> list[FlowEdge]:
    """Lines of a flow with these ends: those of the named output, if there are any."""
    lines = [
        edge
        for edge in graph.edges
        if (edge.source, edge.target) == (wanted.source, wanted.target) and wanted.input in ("", edge.input_name)
    ]
    return [edge for edge in lines if edge.output_name == wanted.output] or lines


def _branch_of(edge: FlowEdge, graph: GraphIR) -> str:
    source = graph.node(edge.source)
    return edge.output_name if source and source.name in _BRANCHING else ""


def before_approval(plan: Plan, base: GraphIR, schemas: Schemas) -> list[str]:
    """Ids of steps that run before the approval of a person once the plan is carried out: those that now run after
    it, and new ones that act.
    """
    if plan.flow_kind != _STEPS or not base.nodes:
        return []
    after = planned_flow(plan, base, schemas).graph
    now, planned = _Ways.of(base, plan), _Ways.of(after, plan)
    found: set[str] = set()
    for guard, branch in now.guards:
        if now.names[guard] == v2.HUMAN_INPUT:
            found |= now.behind(guard, branch) & planned.free_of(guard, branch)
    return sorted(found | _early(plan, base, after, schemas))


def _early(plan: Plan, base: GraphIR, after: GraphIR, schemas: Schemas) -> set[str]:
    """New steps that act, with a human input after them and none before."""
    ways = _Ways.of(after, plan)
    asks = [(guard, branch) for guard, branch in ways.guards if ways.names[guard] == v2.HUMAN_INPUT]
    approved = {step for guard, branch in asks for step in ways.behind(guard, branch)}
    people = {guard for guard, _ in asks}
    return {
        node.id
        for node in after.nodes
        if node.id in ways.names and node.id not in approved and base.node(node.id) is None
        if _acts(node, schemas) and people & ways.after(node.id)
    }


def rerouted(plan: Plan, capability: Capability, base: GraphIR, after: GraphIR, schemas: Schemas) -> list[Finding]:
    """Findings for lines of a compiled flow that the approved plan does not cover."""
    if plan.flow_kind == _STEPS:
        problems, hint = _beside_plan(plan, base, after, schemas), _HINT_OF_STEPS
    elif plan.operation == "create":
        return []
    else:
        problems, hint = _problems(plan, capability, base, after, schemas), _HINT
    return [
        Finding(
            code="OUTSIDE_PLAN",
            severity="error",
            detail=f"The approved plan does not cover the lines of the flow: {text}.",
            where=where,
            hint=hint,
        )
        for where, text in dict.fromkeys(problems)
    ]


def _beside_plan(plan: Plan, base: GraphIR, after: GraphIR, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """Steps and problems of an agentflow whose lines are not those of its plan."""
    ids = {node.id: id_ for id_, node in places(plan, base, after).items()}
    drawn = {
        one._replace(source=ids.get(one.source, one.source), target=ids.get(one.target, one.target))
        for one in lines_of(after)
    }
    said = lines_of(planned_flow(plan, base, schemas).graph)
    for changes, does in ((drawn - said, "leads"), (said - drawn, "goes")):
        for one in sorted(changes):
            branch = f" ({one.output})" if one.output else ""
            yield one.target, f"the line from '{one.source}'{branch} to '{one.target}' {does}"


def places(plan: Plan, before: GraphIR, after: GraphIR) -> dict[str, FlowNode]:
    """Map each planned node to its node in the flow: the one of its id, else one in the place of another type.

    Of several of one type, the first of the plan takes the place of the first of its removals.
    """
    order = {node_id: place for place, node_id in enumerate(plan.removals)}
    found = {node.node_id: there for node in plan.nodes if (there := after.node(node.node_id))}
    own = {node.id for node in found.values()}
    free = [
        node
        for node in sorted(after.nodes, key=lambda node: order.get(node.id, len(order)))
        if node.id not in own and ((old := before.node(node.id)) is None or old.name != node.name)
    ]
    for node in plan.nodes:
        if node.node_id not in found and (there := next((one for one in free if one.name == node.node_name), None)):
            found[node.node_id] = there
            free.remove(there)
    return found


def _problems(
    plan: Plan, capability: Capability, base: GraphIR, after: GraphIR, schemas: Schemas
) -> Iterator[tuple[str, str]]:
    """Nodes and problems of lines between the nodes that stay."""
    added_by = {
        (one.source, _branch(source, one.output, plan), one.target)
        for one in capability.lines
        if one.change == "add" and (source := base.node(one.source))
    }
    stay = {node.id for node in base.nodes} & {node.id for node in after.nodes}
    stored, direct = _lines(base, plan), _lines(after, plan)
    before, now = _between(stored, stay), _between(direct, stay)
    later = following(before)
    said = {(one.source, one.target) for one in capability.lines if one.change == "add"}
    unsaid = {one for one in direct if one.handle != v2.LOOP or (one.source, one.target) not in said}
    for line in sorted(_between(unsaid, stay) - before):
        if (line.source, line.handle, line.target) in added_by:
            continue
        if line.handle != v2.LOOP and line.source in reached_from(later.get(line.target, ()), later):
            yield line.target, f"'{line.source}' ran after '{line.target}', and now runs before it"
        acting = after.node(line.source if line.input else line.target)
        if line in direct and acting and _acts(acting, schemas):
            yield (
                line.target,
                f"a new line leads from '{line.source}' to '{line.target}', and '{acting.id}' reaches out",
            )
    fed = {(one.target, one.input) for one in direct if one.source not in stay}
    for line in sorted((before & stored) - now):
        if not _is_taken(line, capability.lines) and not (line.input and (line.target, line.input) in fed):
            yield line.target, f"the line from '{line.source}' to '{line.target}' goes"
    yield from _led_around(_Ways.of(base, plan), _Ways.as_planned(capability.lines, plan, base), _Ways.of(after, plan))


def _led_around(before: "_Ways", planned: "_Ways", now: "_Ways") -> Iterator[tuple[str, str]]:
    for guard, branch in before.guards:
        if guard not in now.names or guard not in planned.names:
            continue
        around = before.behind(guard, branch) - planned.free_of(guard, branch)
        for step in sorted(around & now.free_of(guard, branch)):
            yield step, f"a way leads to '{step}' around '{guard}'{f', branch {branch}' if branch else ''}"


class _Ways:
    """Lines of a flow, and which steps are behind which branch of a guard. `names` are types of nodes, by id."""

    def __init__(self, lines: set[Way], names: Mapping[str, str]) -> None:
        self.names, self._lines = names, lines
        entered = {one.target for one in lines if one.handle != v2.LOOP}
        # A step that no line leads to does not run: where it will be is not known before its new lines are.
        begins = [id_ for id_, name in names.items() if name in (v2.START, sequential.START)]
        self._starts = begins or [id_ for id_ in names if id_ not in entered]
        self.guards = sorted({(one.source, one.handle) for one in lines if names.get(one.source) in _BRANCHING})

    @classmethod
    def of(cls, graph: GraphIR, plan: Plan) -> Self:
        """Ways of a flow as it is."""
        return cls(_lines(graph, plan), {node.id: node.name for node in graph.nodes if not node.is_note})

    @classmethod
    def as_planned(cls, changes: Iterable[LineChange], plan: Plan, base: GraphIR) -> Self:
        """Ways of a flow with the changed lines of a plan, without the nodes that it removes."""
        lines = _lines(base, plan)
        nodes = {node.id: node for node in base.nodes if not node.is_note}
        for one in changes:
            if one.change == "remove":
                lines = {line for line in lines if not _is_taken(line, [one])}
            elif one.source in nodes and one.target in nodes:
                lines.add(Way(one.source, _branch(nodes[one.source], one.output, plan), one.target))
        names = {id_: node.name for id_, node in nodes.items() if id_ not in plan.removals}
        return cls(_between(lines, names), names)

    def after(self, step: str) -> frozenset[str]:
        """Ids of the steps that a way leads to from this one."""
        later = following(self._lines, jumps=True)
        return reached_from(later.get(step, ()), later)

    def behind(self, guard: str, branch: str) -> frozenset[str]:
        """Ids of the steps that run only after this branch."""
        return reached_from(self._starts, following(self._lines, jumps=True)) - self.free_of(guard, branch)

    def free_of(self, guard: str, branch: str) -> frozenset[str]:
        """Ids of the steps that a way leads to without this branch."""
        others = [one for one in self._lines if (one.source, one.handle) != (guard, branch)]
        return reached_from(self._starts, following(others, jumps=True))


def _acts(node: FlowNode, schemas: Schemas) -> bool:
    """True for a node that reaches out, runs code or holds tools, and for one of an unknown type."""
    schema = schemas.get(node.name)
    if schema is None or node.name in _ACTS or schema.category in _TOOLS or holds_code(schema):
        return True
    return any(reached(name, value, schema) for name, value in node.inputs.items()) or any(tools_in(node.inputs))


def _is_taken(line: Way, changes: Iterable[LineChange]) -> bool:
    """True for a line that the changes take away: of a guard, that of the branch."""
    return any(
        (one.change, one.source, one.target) == ("remove", line.source, line.target)
        and (not one.output or line.handle in ("", one.output))
        for one in changes
    )


def _lines(graph: GraphIR, plan: Plan) -> set[Way]:
    """Ways of a flow; the handle of a guard is its branch, and others have none. Lines between steps have no input."""
    nodes = {node.id: node for node in graph.nodes}
    return {
        one._replace(
            handle=_branch(nodes[one.source], one.handle, plan),
            input="" if one.input in sequential.LEADS else one.input,
        )
        for one in ways_of(graph)
    }


def _branch(node: FlowNode, handle: str, plan: Plan) -> str:
    """Number or name of a guard's branch; none where the plan changes its branches. A jump back stays one."""
    if v2.LOOP in (handle, node.name):
        return v2.LOOP
    if node.name not in _BRANCHING:
        return ""
    rows = sequential.BRANCHES_FROM if node.name in sequential.CONDITIONS else v2.BRANCHES_FROM.get(node.name, ())
    if rows and any(one.node_id == node.id and one.param.startswith(rows) for one in plan.values):
        return ""
    return next((one.name for one in node.outputs if one.handle == handle), handle.rpartition("-")[2])


def _between(lines: Iterable[Way], stay: Collection[str]) -> set[Way]:
    """Lines between the nodes that stay, each way through other nodes as one line."""
    leaving: dict[str, list[Way]] = {}
    for one in lines:
        leaving.setdefault(one.source, []).append(one)
    found: set[Way] = set()
    for first in (one for source in stay for one in leaving.get(source, ())):
        seen, queue = set[str](), [first]
        while queue:
            one = queue.pop()
            if one.target in stay:
                found.add(Way(first.source, first.handle, one.target, one.input))
            elif one.target not in seen:
                seen.add(one.target)
                queue += leaving.get(one.target, ())
    return found
