"""Rules on connections. The server uses references, the editor draws edges: both must match."""

from collections.abc import Iterator
from typing import Any

from flowise_dev_agent.patch.model.definitions import split_types, type_set
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import referenced, sole_reference
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import AGENTFLOW, ANCHORED, MULTIAGENT, Connection, FlowContext, rule


@rule("DANGLING_EDGE", "DUPLICATE_EDGE")
def edge_ends(flow: FlowContext) -> Iterator[Finding]:
    """Each edge joins two existing nodes, and no edge occurs twice.

    A flow runs all the same, unless the edge comes from no node, or is all that leads on from its end. An agentflow
    runs then, too, but it takes a step twice to which the same edge leads twice.
    """
    seen: set[tuple[str, str, str, str]] = set()
    for edge in flow.graph.edges:
        there = [end for end in (edge.source, edge.target) if flow.graph.node(end)]
        if len(there) < 2:
            leads_on = not there or (there[0] == edge.source and bool(flow.successors.get(edge.source)))
            make = warning if leads_on or flow.kind == AGENTFLOW else error
            yield make(
                "DANGLING_EDGE",
                f"An edge from {edge.source!r} to {edge.target!r} ends at no node.",
                where=there[0] if there else "",
                field=edge.input_name if edge.target in there else "",
                hint="Leave the edge out.",
            )
        if edge.ends in seen:
            make = error if flow.kind == AGENTFLOW else warning
            text = f"{edge.source} is connected twice to the same input."
            yield make("DUPLICATE_EDGE", text, where=edge.target, field=edge.input_name, hint="Remove one of them.")
        seen.add(edge.ends)


@rule("BAD_SOURCE_HANDLE", "BAD_TARGET_HANDLE", kinds=ANCHORED)
def handles(flow: FlowContext) -> Iterator[Finding]:
    """Handles match the stored anchors exactly; otherwise the editor cannot draw the edge.

    The server reads references, and handles only where they are the ways out of a fork.
    """
    for connection in flow.connections:
        if connection.output is None and isinstance(connection.source.data.get("outputAnchors"), list):
            forks = any(output.independent for output in connection.source.outputs)
            yield (error if forks else warning)(
                "BAD_SOURCE_HANDLE",
                f"The edge to {connection.target.id} starts at a handle that the node does not have.",
                where=connection.source.id,
                field=connection.edge.output_name,
                hint=_reconnect(connection),
            )
        stored = connection.target.data
        complete = isinstance(stored.get("inputAnchors"), list) and isinstance(stored.get("inputParams"), list)
        if connection.input is None and complete:
            yield warning(
                "BAD_TARGET_HANDLE",
                f"The edge from {connection.source.id} ends at a handle that the node does not have.",
                where=connection.target.id,
                field=connection.edge.input_name,
                hint=_reconnect(connection),
            )


def _reconnect(connection: Connection) -> str:
    return f"Disconnect {connection.source.id} from {connection.target.id} and Connect it again."


@rule("TYPE_MISMATCH", kinds=ANCHORED)
def types(flow: FlowContext) -> Iterator[Finding]:
    """Output and input share a class, by the editor's test."""
    for connection in flow.connections:
        if connection.output is None or connection.input is None:
            continue
        kind = str(connection.input.get("type") or "")
        if type_set(kind).isdisjoint(connection.output.types):
            needed = split_types(kind)
            yield error(
                "TYPE_MISMATCH",
                f"{connection.source.id} gives {' | '.join(connection.output.types)}, not {' | '.join(needed)}.",
                where=connection.target.id,
                field=connection.input_name,
                hint="Connect a node that gives this type.",
            )


@rule("UNKNOWN_OUTPUT", "OUTPUT_SELECTION_MISMATCH", kinds=ANCHORED)
def outputs(flow: FlowContext) -> Iterator[Finding]:
    """Edges leave from the selected output.

    A node with several outputs gives the selected one, whatever the edge says.
    """
    for node in flow.nodes:
        if not node.multi_output or not isinstance(node.data.get("outputs"), dict):
            continue
        if all(output.independent for output in node.outputs):
            continue
        names = [output.name for output in node.outputs]
        if node.selected_output and node.selected_output not in names:
            yield error(
                "UNKNOWN_OUTPUT",
                f"The selected output {node.selected_output!r} is not one of {', '.join(names)}.",
                where=node.id,
                field="outputs",
            )
            continue
        for connection in flow.connections_out_of.get(node.id, ()):
            chosen = connection.output
            if connection.source is not node or chosen is None or chosen.independent:
                continue
            if chosen.name != node.selected_output:
                yield error(
                    "OUTPUT_SELECTION_MISMATCH",
                    f"The edge to {connection.target.id} takes {chosen.name!r}, "
                    f"but the node is set to give {node.selected_output!r}.",
                    where=node.id,
                    field="outputs",
                )


@rule("SINGLE_ANCHOR_IS_LIST", "LIST_ANCHOR_NOT_LIST", "BAD_REFERENCE", "ANCHOR_OCCUPIED", kinds=ANCHORED)
def anchor_values(flow: FlowContext) -> Iterator[Finding]:
    """Anchors hold only references: one text, or a list of texts."""
    for node in flow.nodes:
        arriving = flow.connections_by_input.get(node.id, {})
        for anchor in _anchors(flow, node):
            name, value = str(anchor["name"]), node.inputs.get(anchor["name"])
            if value != "" and not is_empty(value):
                problem = _anchor_problem(node.id, anchor, value)
                if problem is not None:
                    yield problem
            connections = arriving.get(name, [])
            if (
                len(connections) > 1
                and not anchor.get("list")
                and len({connection.source.id for connection in connections}) > 1
            ):
                yield error(
                    "ANCHOR_OCCUPIED",
                    f"{', '.join(one.source.id for one in connections)} are connected to an input that takes one.",
                    where=node.id,
                    field=name,
                )


def _anchor_problem(node_id: str, anchor: InputEntry, value: Any) -> Finding | None:
    name, is_list = str(anchor["name"]), bool(anchor.get("list"))
    items = value if isinstance(value, list) else [value]
    if is_list and not isinstance(value, list) and not (anchor["type"] == "Document" and sole_reference(value)):
        # One loader gives a list of documents all the same.
        return error(
            "LIST_ANCHOR_NOT_LIST",
            "A list of references is needed; with a plain text the server connects nothing, without an error.",
            where=node_id,
            field=name,
        )
    if not is_list and isinstance(value, list):
        return error("SINGLE_ANCHOR_IS_LIST", "One reference is needed, not a list.", where=node_id, field=name)
    if not all(map(sole_reference, items)):
        return error(
            "BAD_REFERENCE",
            "The input must contain only references to nodes.",
            where=node_id,
            field=name,
            hint="A reference looks like {{chatOpenAI_0.data.instance}}.",
        )
    return None


@rule("REF_TO_MISSING_NODE", "REF_WITHOUT_EDGE", "EDGE_WITHOUT_REF", kinds=ANCHORED)
def references(flow: FlowContext) -> Iterator[Finding]:
    """Each reference has an edge and each edge a reference."""
    for node in flow.nodes:
        by_input = flow.connections_by_input.get(node.id, {})
        found = {name: ids for name, value in node.inputs.items() if value and (ids := referenced(value))}
        for name, ids in found.items():
            wired = [connection.source.id for connection in by_input.get(name, ())]
            if ids != wired:
                yield from _unmatched_references(flow, node, name, ids, wired)
        for name, connections in by_input.items():
            if not name:
                continue  # reported as BAD_TARGET_HANDLE
            ids = found.get(name, [])
            if ids != [connection.source.id for connection in connections]:
                yield from _unmatched_edges(flow, node, name, ids, connections)


def _unmatched_references(
    flow: FlowContext, node: FlowNode, name: str, ids: list[str], wired: list[str]
) -> Iterator[Finding]:
    anchors = node.definitions.anchor_names
    for source_id in dict.fromkeys(ids):
        if flow.graph.node(source_id) is None:
            # Of a text the server leaves the reference as it is, and the model reads that.
            make = error if name in anchors else warning
            text = f"The input refers to {source_id!r}, which is not in the flow."
            yield make("REF_TO_MISSING_NODE", text, where=node.id, field=name)
        elif source_id not in wired and (flow.kind != MULTIAGENT or name in anchors):
            # The texts of a sequential flow read the answer of any agent.
            yield error(
                "REF_WITHOUT_EDGE",
                f"The input refers to {source_id}, but no edge leads from there.",
                where=node.id,
                field=name,
                hint=f"Use Connect from {source_id} to `{name}` of {node.id}.",
            )


def _unmatched_edges(
    flow: FlowContext, node: FlowNode, name: str, ids: list[str], connections: list[Connection]
) -> Iterator[Finding]:
    if any(flow.graph.node(node_id) is None for node_id in ids):
        return  # reported as REF_TO_MISSING_NODE
    definition = connections[0].input
    is_list = bool(definition and definition.get("list"))
    wired = {connection.source.id for connection in connections}
    if not is_list and wired & set(ids):
        return  # a second edge on a single input is ANCHOR_OCCUPIED
    if not is_list and isinstance(node.inputs.get(name), list):
        return  # SINGLE_ANCHOR_IS_LIST
    # Without an optional one the node runs.
    make = warning if definition and definition.get("optional") else error
    for source_id in dict.fromkeys(connection.source.id for connection in connections):
        if source_id not in ids:
            yield make(
                "EDGE_WITHOUT_REF",
                f"An edge leads here from {source_id}, but the input does not refer to it: the server ignores it.",
                where=node.id,
                field=name,
                hint=f"Use Connect from {source_id} to `{name}` of {node.id}.",
            )


def _anchors(flow: FlowContext, node: FlowNode) -> list[InputEntry]:
    """The stored anchors, or the schema's if the node has lost its own."""
    if isinstance(node.data.get("inputAnchors"), list):
        return node.anchors
    return flow.definitions(node).anchors


@rule("REQUIRED_ANCHOR_UNCONNECTED", kinds=ANCHORED)
def required_anchors(flow: FlowContext) -> Iterator[Finding]:
    """Required inputs are connected.

    Without them the node fails or silently does less than expected (an agent without tools).
    """
    for node in flow.nodes:
        for anchor in flow.visible_anchors(node):
            name = str(anchor["name"])
            if anchor.get("optional") or not is_empty(node.inputs.get(name)) or flow.is_connected(node, name):
                continue
            yield error(
                "REQUIRED_ANCHOR_UNCONNECTED",
                f"{node.name} needs something connected to `{name}` ({anchor['type']}).",
                where=node.id,
                field=name,
                hint=f"Add a node that gives {anchor['type']} and Connect it to `{name}`.",
            )
