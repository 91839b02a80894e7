"""Rules on AGENTFLOW (V2) flows as a whole: start, branches, loops and iterations."""

from collections.abc import Iterator

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.suggest import closest
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule

_ITERATED = "iterationInput"


@rule("NO_START_NODE", "MULTIPLE_START_NODES", "UNREACHED_NODE", kinds=(AGENTFLOW,))
def start(flow: FlowContext) -> Iterator[Finding]:
    """One start node, and an incoming edge at every other node: the server treats a node without one as a start."""
    if not flow.nodes:
        return
    starts = [node for node in flow.nodes if node.name == v2.START]
    if not starts:
        yield error("NO_START_NODE", "The flow has no start node.", hint="Add a startAgentflow and connect it.")
    if len(starts) > 1:
        yield error(
            "MULTIPLE_START_NODES",
            f"The flow has {len(starts)} start nodes: {', '.join(node.id for node in starts)}.",
            where=starts[1].id,
            hint="Remove all but one.",
        )
    for node in flow.nodes:
        inside = node.raw.get("extent") == "parent"
        if node.name == v2.START or node.id in flow.connections_into or inside:
            continue
        yield error(
            "UNREACHED_NODE",
            f"Nothing leads to {node.id}; the server refuses to run a flow with such a node.",
            where=node.id,
            hint="Connect a node to it, or remove it.",
        )


@rule("BAD_SOURCE_HANDLE", "BAD_TARGET_HANDLE", "BRANCHES_OUTDATED", kinds=(AGENTFLOW,))
def handles(flow: FlowContext) -> Iterator[Finding]:
    """Valid handles. The handle alone selects the branch: with a wrong one every branch runs. Others are only drawn."""
    for node in flow.nodes:
        wanted, present = v2.branch_count(node.name, node.inputs), len(node.outputs)
        if wanted is not None and wanted != present:
            name = v2.BRANCHES_FROM[node.name]
            # A branch too many does no harm as long as nothing follows it: it would always run.
            taken = {one.edge.source_handle for one in flow.connections_out_of.get(node.id, ())}
            surplus = present > wanted and taken.isdisjoint(output.handle for output in node.outputs[wanted:])
            make = warning if surplus else error
            yield make(
                "BRANCHES_OUTDATED",
                f"{node.id} has {present} branches, but {wanted} follow from `{name}`.",
                where=node.id,
                field=name,
                hint=f"Use SetParam on `{name}` of {node.id}.",
            )
    for connection in flow.connections:
        if connection.output is None and isinstance(connection.source.data.get("outputAnchors"), list):
            make = error if connection.source.name in v2.BRANCHING else warning
            yield make(
                "BAD_SOURCE_HANDLE",
                f"The edge to {connection.target.id} starts at no output; of branches the server would run all.",
                where=connection.source.id,
                field=connection.edge.output_name,
                hint=f"Disconnect {connection.source.id} from {connection.target.id} and Connect it with its branch.",
            )
        if connection.edge.target_handle != connection.target.id:
            yield warning(
                "BAD_TARGET_HANDLE",
                f"The edge from {connection.source.id} ends at no handle of the node.",
                where=connection.target.id,
                field="targetHandle",
                hint=f"Disconnect {connection.source.id} from {connection.target.id} and Connect it again.",
            )


@rule("BAD_PARENT", kinds=(AGENTFLOW,))
def iterations(flow: FlowContext) -> Iterator[Finding]:
    """Only iterations contain nodes, one level deep; a contained node has both `parentNode` and `extent`."""
    for node in flow.nodes:
        if not node.parent:
            continue
        holder = flow.graph.node(node.parent)
        problem = ""
        if holder is None or holder.name != v2.ITERATION:
            problem = f"{node.id} is inside {node.parent!r}, which is not an iteration of this flow."
        elif node.name in (v2.ITERATION, v2.HUMAN_INPUT):
            problem = f"{node.name} cannot run inside an iteration."
        elif node.raw.get("extent") != "parent":
            problem = f"{node.id} is inside {holder.id} without `extent`, so the server also runs it on its own."
        if problem:
            yield error("BAD_PARENT", problem, where=node.id, field="parentNode", hint="Use SetParent.")


@rule("EDGE_ACROSS_ITERATION", kinds=(AGENTFLOW,))
def borders(flow: FlowContext) -> Iterator[Finding]:
    """No edges across the border of an iteration: the server does not follow them."""
    for connection in flow.connections:
        if connection.source.parent != connection.target.parent:
            yield error(
                "EDGE_ACROSS_ITERATION",
                f"The edge from {connection.source.id} to {connection.target.id} crosses the border of an iteration.",
                where=connection.target.id,
                hint="Connect to the iteration itself, or move both nodes to the same side with SetParent.",
            )


@rule("EMPTY_FLOW", "EMPTY_ITERATION", kinds=(AGENTFLOW,))
def something_to_do(flow: FlowContext) -> Iterator[Finding]:
    """At least one step after the start and inside each iteration; otherwise the answer is empty."""
    if flow.nodes and all(node.name == v2.START for node in flow.nodes):
        yield error(
            "EMPTY_FLOW", "Nothing follows the start.", where=flow.nodes[0].id, hint="Add a node and Connect it to it."
        )
    holders = {node.parent for node in flow.nodes}
    for node in flow.nodes:
        if node.name == v2.ITERATION and node.id not in holders:
            yield warning(
                "EMPTY_ITERATION",
                "The iteration contains no nodes, so it does nothing.",
                where=node.id,
                hint="Put nodes into it with SetParent.",
            )


@rule("BAD_JSON", kinds=(AGENTFLOW,))
def iterated(flow: FlowContext) -> Iterator[Finding]:
    """The input of an iteration is a list, as text or from another node. The server accepts JSON5 and more."""
    for node in flow.nodes:
        value = node.inputs.get(_ITERATED)
        if node.name != v2.ITERATION or not isinstance(value, str) or has_variable(value):
            continue
        text = without_markup(value)
        if text and not text.startswith("["):
            yield error(
                "BAD_JSON",
                f"`{_ITERATED}` must be a list.",
                where=node.id,
                field=_ITERATED,
                hint='For example ["one", "two"], or the output of a node that returns a list.',
            )


@rule("LOOP_TARGET_UNKNOWN", kinds=(AGENTFLOW,))
def loops(flow: FlowContext) -> Iterator[Finding]:
    """Loop targets exist. A loop to a missing node answers with its own description."""
    for node in flow.nodes:
        target = node.inputs.get(v2.LOOP_TARGET)
        if node.name != v2.LOOP or not isinstance(target, str) or not target:
            continue
        target_id = v2.loop_target_id(target)
        meant = flow.graph.node(target_id)
        if meant is not None and meant.parent != node.parent:
            yield error(
                "LOOP_TARGET_UNKNOWN",
                f"The loop goes back to {target_id}, over the border of an iteration: it ends there.",
                where=node.id,
                field=v2.LOOP_TARGET,
                hint="Go back to a step on the same side, or move the loop with SetParent.",
            )
        if meant is None:
            near = closest(target_id, [other.id for other in flow.nodes])
            options = tuple(f"{other.id}-{other.label}" for other in flow.nodes if other.id in near)
            yield Finding(
                code="LOOP_TARGET_UNKNOWN",
                severity="error",
                detail=f"The loop goes back to {target_id!r}, which is not in the flow.",
                where=node.id,
                field=v2.LOOP_TARGET,
                allowed=options,
                hint="The target is written as the node's id, a dash and its title.",
            )
