"""Rules on sequential flows and teams (MULTIAGENT): start and end, names, loops, and the branches of conditions."""

from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.suggest import closest
from flowise_dev_agent.patch.validate.context import MULTIAGENT, FlowContext, rule

_CATEGORY: Final = "Sequential Agents"
_SUPERVISOR: Final = "supervisor"
_END: Final = "seqEnd"
#: Name of a condition, which several may have.
_CONDITION: Final = "conditionName"


@rule("NO_START_NODE", "MULTIPLE_START_NODES", "NO_END_NODE", kinds=(MULTIAGENT,))
def ends(flow: FlowContext) -> Iterator[Finding]:
    """One start, and an end or a loop; a team of a supervisor needs neither."""
    steps = [node for node in flow.nodes if node.category == _CATEGORY]
    starts = [node for node in steps if node.name == sequential.START]
    if steps and not starts:
        yield error("NO_START_NODE", "The flow has no start node.", hint="Add a seqStart and connect it.")
    if len(starts) > 1:
        names = ", ".join(node.id for node in starts)
        text = f"The flow has {len(starts)} start nodes: {names}."
        yield error("MULTIPLE_START_NODES", text, where=starts[1].id, hint="Remove all but one.")
    if steps and not any(node.name in (_END, sequential.LOOP) for node in steps):
        text = "The flow has neither an end nor a loop; the server refuses to run it."
        yield error("NO_END_NODE", text, hint="Connect a seqEnd to the last step.")


@rule("DUPLICATE_STEP_NAME", "NO_WORKER", kinds=(MULTIAGENT,))
def members(flow: FlowContext) -> Iterator[Finding]:
    """Each step and member of a team has a name of its own, and a supervisor has workers."""
    called: dict[str, str] = {}
    for node in flow.nodes:
        field, name = sequential.name_of(node)
        first = called.setdefault(sequential.folded(name), node.id) if name and field != _CONDITION else node.id
        if first != node.id:
            yield error(
                "DUPLICATE_STEP_NAME",
                f"{node.id} and {first} have the same name {name[:80]!r}; the server refuses to run both.",
                where=node.id,
                field=field,
                hint=f"Use SetParam on `{field}` of {node.id}.",
            )
        if node.name == _SUPERVISOR and not flow.connections_out_of.get(node.id):
            text = "The supervisor has no worker; the flow answers nothing."
            yield error("NO_WORKER", text, where=node.id, hint="Add a worker and connect it.")


@rule("LOOP_TARGET_UNKNOWN", kinds=(MULTIAGENT,))
def loops(flow: FlowContext) -> Iterator[Finding]:
    """Loops lead to the name of a step."""
    names = [name for node in flow.nodes for field, name in [sequential.name_of(node)] if name and field != _CONDITION]
    for node in flow.nodes:
        target = node.inputs.get(sequential.LOOP_TO)
        if (
            node.name == sequential.LOOP
            and isinstance(target, str)
            and target.strip()
            and not sequential.id_called(target, flow.nodes)
        ):
            yield error(
                "LOOP_TARGET_UNKNOWN",
                f"The loop goes back to {target[:80]!r}, which is the name of no step.",
                where=node.id,
                field=sequential.LOOP_TO,
                allowed=closest(target, names) or names[:3],
            )


@rule("BRANCHES_OUTDATED", "BRANCH_LEADS_NOWHERE", kinds=(MULTIAGENT,))
def branches(flow: FlowContext) -> Iterator[Finding]:
    """Each branch that a condition states is there and leads on: the run fails as soon as another one is taken."""
    for node in flow.nodes:
        if not sequential.is_condition(node):
            continue
        stated, there = sequential.branch_labels(node), {output.label: output for output in node.outputs}
        if lacking := [label for label in stated if label not in there]:
            yield error(
                "BRANCHES_OUTDATED",
                f"{node.id} has no branch {', '.join(map(repr, lacking[:5]))}, which its condition names.",
                where=node.id,
                field="condition",
                hint="Set the rows of the condition again.",
            )
        taken = {one.edge.source_handle for one in flow.connections_out_of.get(node.id, ())}
        for label in stated:
            if label in there and there[label].handle not in taken:
                yield warning(
                    "BRANCH_LEADS_NOWHERE",
                    f"Branch {label!r} of {node.id} leads nowhere; the run fails when it is taken.",
                    where=node.id,
                    field=label,
                    hint="Connect a step, or a seqEnd.",
                )
