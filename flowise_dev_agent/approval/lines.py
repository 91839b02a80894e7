"""Lines of a flow against the approved plan: order of steps, and guards before them, change only by the plan.

A step that the change adds or removes is passed through: what counts are the lines between the steps that stay. A
guard is a human input or a condition; a step is behind a branch of it if no way leads there without that branch.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Self

from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, Schemas
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.reach import holds_code, reached, tools_in
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.schemas.plan import Capability, LineChange, Plan

#: Steps that reach out, run code, or start something that does.
_ACTS: Final = frozenset(
    {"httpAgentflow", "customFunctionAgentflow", "toolAgentflow", "executeFlowAgentflow", "agentAgentflow"}
)
_TOOLS: Final = frozenset({"Tools", "Tools (MCP)"})
_HINT: Final = (
    "Leave the lines of the flow as they are. If the plan cannot be met without it, answer with `amend` and name the "
    "line in `connections`: the person is asked then."
)


class Line(NamedTuple):
    """Line between two nodes. `branch` is the output of a guard, `input` the input of a chatflow's node."""

    source: str
    branch: str
    target: str
    input: str = ""


def line_changes(plan: Plan, base: GraphIR) -> list[LineChange]:
    """Lines between nodes of the flow that a plan adds and takes away; `output` is the branch of a guard."""
    if plan.operation == "create":
        return []
    new = plan.new_nodes
    added = [one for one in plan.connections if one.source not in new and one.target not in new]
    outputs = [(one, node.output_called(one.output) if (node := base.node(one.source)) else None) for one in added]
    return [
        *(
            LineChange(source=one.source, output=output.name if output else "", target=one.target, change="add")
            for one, output in outputs
        ),
        *(LineChange(source=one.source, target=one.target, change="remove") for one in plan.disconnections),
    ]


def before_approval(plan: Plan, base: GraphIR, schemas: Schemas) -> list[str]:
    """Ids of steps that run before the approval of a person once the plan is carried out: those that now run after
    it, and new ones that act.
    """
    if plan.operation == "create":
        return []
    now, planned = _Ways.of(base, plan), _Ways.as_planned(line_changes(plan, base), plan, base)
    found: set[str] = set()
    for guard, branch in now.guards:
        if now.names[guard] == v2.HUMAN_INPUT:
            stays = now.behind(guard, branch) & planned.names.keys()
            found |= stays - planned.behind(guard, branch) if guard in planned.names else stays
    return sorted(found | _early(plan, base, planned_flow(plan, base, schemas).graph, schemas))


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
    if plan.operation == "create":
        return []
    problems = _problems(plan, capability, base, after, schemas)
    return [
        Finding(
            code="OUTSIDE_PLAN",
            severity="error",
            detail=f"The approved plan does not cover the lines of the flow: {text}.",
            where=where,
            hint=_HINT,
        )
        for where, text in dict.fromkeys(problems)
    ]


def _problems(
    plan: Plan, capability: Capability, base: GraphIR, after: GraphIR, schemas: Schemas
) -> Iterator[tuple[str, str]]:
    added_by = {
        (one.source, _branch(source, one.output, plan), one.target)
        for one in capability.lines
        if one.change == "add" and (source := base.node(one.source))
    }
    gone_by = {(one.source, one.target) for one in capability.lines if one.change == "remove"}
    stay = {node.id for node in base.nodes} & {node.id for node in after.nodes}
    stored, direct = _lines(base, plan), _lines(after, plan)
    before, now = _between(stored, stay), _between(direct, stay)
    following = _following(one for one in before if one.branch != v2.LOOP)
    for line in sorted(now - before):
        if (line.source, line.branch, line.target) in added_by:
            continue
        if line.branch != v2.LOOP and line.source in _from(following.get(line.target, ()), following):
            yield line.target, f"'{line.source}' ran after '{line.target}', and now runs before it"
        acting = after.node(line.source if line.input else line.target)
        if line in direct and acting and _acts(acting, schemas):
            yield (
                line.target,
                f"a new line leads from '{line.source}' to '{line.target}', and '{acting.id}' reaches out",
            )
    fed = {(one.target, one.input) for one in direct if one.source not in stay}
    for line in sorted((before & stored) - now):
        if (line.source, line.target) not in gone_by and not (line.input and (line.target, line.input) in fed):
            yield line.target, f"the line from '{line.source}' to '{line.target}' goes"
    yield from _led_around(_Ways.of(base, plan), _Ways.as_planned(capability.lines, plan, base), _Ways.of(after, plan))
    for step in sorted(_early(plan, base, after, schemas) - {*capability.before_approval}):
        yield step, f"the new step '{step}' acts before a person is asked"


def _led_around(before: "_Ways", planned: "_Ways", now: "_Ways") -> Iterator[tuple[str, str]]:
    for guard, branch in before.guards:
        if guard not in now.names or guard not in planned.names:
            continue
        around = before.behind(guard, branch) & planned.behind(guard, branch) & now.names.keys()
        for step in sorted(around - now.behind(guard, branch)):
            yield step, f"a way leads to '{step}' around '{guard}'{f', branch {branch}' if branch else ''}"


class _Ways:
    """Lines of a flow, and which steps are behind which branch of a guard. `names` are types of nodes, by id."""

    def __init__(self, lines: set[Line], names: Mapping[str, str]) -> None:
        self.names, self._lines = names, lines
        entered = {one.target for one in lines if one.branch != v2.LOOP}
        self._starts = [id_ for id_ in names if id_ not in entered]
        self.guards = sorted({(one.source, one.branch) for one in lines if names.get(one.source) in v2.BRANCHING})

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
                lines = {line for line in lines if (line.source, line.target) != (one.source, one.target)}
            elif one.source in nodes and one.target in nodes:
                lines.add(Line(one.source, _branch(nodes[one.source], one.output, plan), one.target))
        names = {id_: node.name for id_, node in nodes.items() if id_ not in plan.removals}
        return cls(_between(lines, names), names)

    def after(self, step: str) -> set[str]:
        """Ids of the steps that a way leads to from this one."""
        following = _following(self._lines)
        return _from(following.get(step, ()), following)

    def behind(self, guard: str, branch: str) -> set[str]:
        """Ids of the steps that run only after this branch."""
        free = _from(
            self._starts, _following(one for one in self._lines if (one.source, one.branch) != (guard, branch))
        )
        return self.names.keys() - free


def _acts(node: FlowNode, schemas: Schemas) -> bool:
    """True for a node that reaches out, runs code or holds tools, and for one of an unknown type."""
    schema = schemas.get(node.name)
    if schema is None or node.name in _ACTS or schema.category in _TOOLS or holds_code(schema):
        return True
    return any(reached(name, value, schema) for name, value in node.inputs.items()) or any(tools_in(node.inputs))


def _lines(graph: GraphIR, plan: Plan) -> set[Line]:
    """Lines of a flow, with those into an iteration and back by a loop."""
    if graph.kind != "AGENTFLOW":
        return {Line(one.source, "", one.target, one.input_name) for one in graph.edges}
    nodes = {node.id: node for node in graph.nodes if not node.is_note}
    found = {
        Line(one.source, _branch(nodes[one.source], one.source_handle, plan), one.target)
        for one in graph.edges
        if one.source in nodes and one.target in nodes
    }
    entered, left = {one.target for one in found}, {one.source for one in found}
    inside = [(node.parent, id_) for id_, node in nodes.items() if node.parent]
    after = {parent: [one.target for one in found if one.source == parent] for parent in {one for one, _ in inside}}
    found |= {Line(parent, "", id_) for parent, id_ in inside if id_ not in entered}
    found |= {Line(id_, "", target) for parent, id_ in inside if id_ not in left for target in after[parent]}
    return found | {
        Line(id_, v2.LOOP, target)
        for id_, node in nodes.items()
        if node.name == v2.LOOP and (target := v2.loop_target_id(str(node.inputs.get(v2.LOOP_TARGET) or ""))) in nodes
    }


def _branch(node: FlowNode, handle: str, plan: Plan) -> str:
    """Number of a guard's branch; none where the plan changes its branches."""
    rows = v2.BRANCHES_FROM.get(node.name)
    changes = rows and any(one.node_id == node.id and one.param.startswith(rows) for one in plan.values)
    return handle.rpartition("-")[2] if node.name in v2.BRANCHING and not changes else ""


def _between(lines: Iterable[Line], stay: Collection[str]) -> set[Line]:
    """Lines between the nodes that stay, each way through other nodes as one line."""
    leaving: dict[str, list[Line]] = {}
    for one in lines:
        leaving.setdefault(one.source, []).append(one)
    found: set[Line] = set()
    for first in (one for source in stay for one in leaving.get(source, ())):
        seen, queue = set[str](), [first]
        while queue:
            one = queue.pop()
            if one.target in stay:
                found.add(Line(first.source, first.branch, one.target, one.input))
            elif one.target not in seen:
                seen.add(one.target)
                queue += leaving.get(one.target, ())
    return found


def _following(lines: Iterable[Line]) -> Mapping[str, set[str]]:
    following: dict[str, set[str]] = {}
    for one in lines:
        following.setdefault(one.source, set()).add(one.target)
    return following


def _from(starts: Iterable[str], following: Mapping[str, set[str]]) -> set[str]:
    seen, queue = set[str](), list(starts)
    while queue:
        if (one := queue.pop()) not in seen:
            seen.add(one)
            queue += following.get(one, ())
    return seen
