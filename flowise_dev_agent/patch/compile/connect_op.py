"""The Connect op: writes output selection, reference, edge and handles of one connection together."""

from typing import Any

from flowise_dev_agent.patch.compile.agentflow import connect_agentflow_nodes
from flowise_dev_agent.patch.compile.batch import Batch, next_id
from flowise_dev_agent.patch.compile.edges import chatflow_edge
from flowise_dev_agent.patch.compile.node_ops import select_output
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES, type_set
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import Connect, corrected_op
from flowise_dev_agent.patch.model.outputs import Output
from flowise_dev_agent.patch.model.references import reference, referenced, sole_reference
from flowise_dev_agent.patch.model.suggest import closest, resolve_case
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.model.visibility import is_visible


def connect(batch: Batch, op: Connect) -> None:
    source = batch.node(op.source_node_id, "source_node_id")
    target = batch.node(op.target_node_id, "target_node_id")
    if source is None or target is None:
        return
    if source.is_agentflow or target.is_agentflow:
        connect_agentflow_nodes(batch, op, source, target)
        return
    definition = _target_input(batch, op, source, target)
    if definition is None:
        return
    output = _source_output(batch, op, source, definition)
    if output is None:
        return
    handle = str(definition.get("id") or "")
    if batch.edges.has((source.id, output.handle, target.id, handle)):
        return
    if not _write_reference(batch, source, target, definition, handle):
        return
    if source.multi_output and not output.independent and not _select_output(batch, source, output):
        return
    batch.edges.add(chatflow_edge(source.id, output.handle, target.id, handle))


def _target_input(batch: Batch, op: Connect, source: FlowNode, target: FlowNode) -> InputEntry | None:
    """The input that the op names, else the only free one that fits the source."""
    by_name = target.connectable
    if name := op.target_anchor if op.target_anchor in by_name else resolve_case(op.target_anchor, by_name):
        first, *others = by_name[name]
        if not others:
            return first
        return next((entry for entry in (first, *others) if is_visible(entry, target.inputs)), first)
    given = {kind for output in source.outputs for kind in output.types}
    fitting = [entry for entry in target.anchors if given & type_set(str(entry.get("type") or ""))]
    free = [entry for entry in fitting if entry.get("list") or is_empty(target.inputs.get(entry["name"]))]
    if len(free) == 1:
        return free[0]
    names = [str(entry["name"]) for entry in free or fitting] or list(by_name)
    near = closest(op.target_anchor, names) or tuple(names[:3])
    batch.fail(
        "UNKNOWN_ANCHOR",
        f"{target.name} has no input {op.target_anchor!r} that takes a connection."
        if op.target_anchor
        else f"Say which input of {target.id} the connection goes to.",
        where=target.id,
        name=op.target_anchor or "target_anchor",
        allowed=near,
        hint=f"For example {corrected_op(op, 'target_anchor', near[0])}" if near else "It takes no connections.",
    )
    return None


def _source_output(batch: Batch, op: Connect, source: FlowNode, definition: InputEntry) -> Output | None:
    """The output that the op names, else the one that fits the input."""
    wanted = type_set(str(definition.get("type") or ""))
    fitting = [output for output in source.outputs if not wanted.isdisjoint(output.types)]
    if len(fitting) == 1:
        return fitting[0]  # whatever the op calls it
    if op.source_anchor is not None:
        chosen = _named_output(batch, op, source)
        if chosen is None or chosen in fitting:
            return chosen
    elif fitting:
        return next((output for output in fitting if output.name == source.selected_output), fitting[0])
    gives = ", ".join(f"{output.name} ({' | '.join(output.types)})" for output in source.outputs) or "nothing"
    right = [output.name for output in fitting]
    batch.fail(
        "TYPE_MISMATCH",
        f"{source.name} cannot go into `{definition['name']}` of {op.target_node_id}: it gives {gives}, "
        f"{' or '.join(sorted(wanted))} is needed.",
        where=op.target_node_id,
        name=str(definition["name"]),
        allowed=right,
        hint=f"Take its output {right[0]!r}. For example {corrected_op(op, 'source_anchor', right[0])}"
        if right
        else "Connect a node that gives this type.",
    )
    return None


def _named_output(batch: Batch, op: Connect, source: FlowNode) -> Output | None:
    names = [output.name for output in source.outputs]
    if name := resolve_case(op.source_anchor or "", names):
        return next(output for output in source.outputs if output.name == name)
    near = closest(op.source_anchor or "", names) or tuple(names[:3])
    batch.fail(
        "UNKNOWN_OUTPUT",
        f"{source.name} has no output {op.source_anchor!r}.",
        where=source.id,
        name="source_anchor",
        allowed=near,
        hint=f"Use one of {', '.join(names)}, or leave source_anchor out." if names else "It has no outputs.",
    )
    return None


def _select_output(batch: Batch, source: FlowNode, output: Output) -> bool:
    """Select the output of a multi-output node.

    A second, different use would silently change the first, so it is an error.
    """
    for edge in batch.edges.out_of(source.id):
        if edge.source_handle != output.handle:
            used = next((other.name for other in source.outputs if other.handle == edge.source_handle), "another")
            batch.fail(
                "OUTPUT_CONFLICT",
                f"{source.id} gives its output {used!r} to {edge.target} and cannot give {output.name!r} as well.",
                where=source.id,
                name="source_anchor",
                allowed=(used,),
                hint=f"Add a second node, for example {next_id(source.id, batch.nodes)!r}, for the other output.",
            )
            return False
    if batch.nodes[source.id].selected_output != output.name:
        select_output(batch, source.id, output.name)
    return True


def _write_reference(batch: Batch, source: FlowNode, target: FlowNode, definition: InputEntry, handle: str) -> bool:
    """Put the source's reference into the target's input: the server wires nodes by references, not by edges."""
    name = definition["name"]
    value = target.inputs.get(name)
    if definition["type"] in PARAM_TYPES:
        return _check_variable(batch, source, target, definition, value)
    ref = reference(source.id)
    if definition.get("list"):
        items = list(value) if isinstance(value, list) else []
        if not items or (ref not in items and source.id not in referenced(items)):
            items.insert(_place(items, ref) if name == "tools" else len(items), ref)
            batch.set_input(target.id, name, items)
        return True
    occupant = sole_reference(value)
    others = [edge.source for edge in batch.edges.into(target.id) if edge.target_handle == handle]
    if (occupant and occupant != source.id) or others:
        batch.fail(
            "ANCHOR_OCCUPIED",
            f"`{name}` of {target.id} takes one connection and has {others[0] if others else occupant!r} already.",
            where=target.id,
            name=str(name),
            hint="Connect only one node to it, or Disconnect the other one.",
        )
        return False
    batch.set_input(target.id, name, ref)
    return True


def _check_variable(batch: Batch, source: FlowNode, target: FlowNode, definition: InputEntry, value: Any) -> bool:
    """Require the reference in a text field that accepts variables: only the author knows its place in the text."""
    name = definition["name"]
    ref = reference(source.id)
    if source.id in referenced(value):
        return True
    if definition.get("type") == "string" and is_empty(value):
        batch.set_input(target.id, str(name), ref)
        return True
    example = {"op_type": "SetParam", "node_id": target.id, "param_name": name, "value": {"<variable>": ref}}
    batch.fail(
        "REFERENCE_MISSING",
        f"`{name}` of {target.id} is a text; say with SetParam where in it {ref} belongs.",
        where=target.id,
        name=str(name),
        hint=f"For example {dump_json(example)}",
    )
    return False


def _place(items: list[Any], ref: str) -> int:
    """Position of a new tool in the list, in the editor's order: tools that read come before tools that write."""
    order = _tool_order(ref)
    return next((index for index, item in enumerate(items) if _tool_order(str(item)) > order), len(items))


def _tool_order(item: str) -> int:
    if "requestsGet" in item or "readFile" in item:
        return 0
    return 1 if "requestsPost" in item or "writeFile" in item else 2
