"""Connect: output selection, reference, edge and handles of one connection, written together."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.patch.batch import Batch, connect_example, next_id
from flowise_dev_agent.patch.graph import FlowEdge, FlowNode, Output, dump_json
from flowise_dev_agent.patch.ops import Connect
from flowise_dev_agent.patch.references import reference, referenced, sole_reference
from flowise_dev_agent.patch.schema import PARAM_TYPES, split_types
from flowise_dev_agent.patch.suggest import closest, resolve_case
from flowise_dev_agent.patch.values import is_empty
from flowise_dev_agent.patch.visibility import is_visible


def connect(batch: Batch, op: Connect) -> None:
    source = batch.node(op.source_node_id, "source_node_id")
    target = batch.node(op.target_node_id, "target_node_id")
    if source is None or target is None:
        return
    definition = _target_input(batch, op, target)
    if definition is None:
        return
    output = _source_output(batch, op, source, definition)
    if output is None:
        return
    edge = _edge(source, output, target, definition)
    if any(_same_ends(edge, other) for other in batch.edges):
        return
    if not _write_reference(batch, source, target, definition):
        return
    if source.multi_output and not output.independent and not _select_output(batch, source, output):
        return
    batch.edges.append(edge)
    batch.summary.connect(source.id, output.name if source.multi_output else "", target.id, definition["name"])


def _target_input(batch: Batch, op: Connect, target: FlowNode) -> Mapping[str, Any] | None:
    entries = [*target.anchors, *(entry for entry in target.params if entry.get("acceptVariable"))]
    names = [entry["name"] for entry in entries]
    name = resolve_case(op.target_anchor, names)
    if name is not None:
        same_named = [entry for entry in entries if entry["name"] == name]
        return next((entry for entry in same_named if is_visible(entry, target.inputs)), same_named[0])
    near = closest(op.target_anchor, names) or tuple(names[:3])
    batch.fail(
        "UNKNOWN_ANCHOR",
        f"{target.name} has no input {op.target_anchor!r} that takes a connection.",
        where=target.id,
        name=op.target_anchor,
        allowed=near,
        hint=f"For example {connect_example(op.source_node_id, target.id, near[0])}"
        if near
        else "It takes no connections.",
    )
    return None


def _source_output(batch: Batch, op: Connect, source: FlowNode, definition: Mapping[str, Any]) -> Output | None:
    wanted = set(split_types(str(definition.get("type") or "")))
    fitting = [output for output in source.outputs if wanted & set(output.types)]
    if op.source_anchor is not None:
        chosen = _named_output(batch, op, source)
        if chosen is None or chosen in fitting:
            return chosen
    elif fitting:
        selected = [output for output in fitting if output.name == source.selected_output]
        return (selected or fitting)[0]
    gives = ", ".join(f"{output.name} ({' | '.join(output.types)})" for output in source.outputs) or "nothing"
    batch.fail(
        "TYPE_MISMATCH",
        f"{source.name} cannot go into `{definition['name']}` of {op.target_node_id}: it gives {gives}, "
        f"{' or '.join(sorted(wanted))} is needed.",
        where=op.target_node_id,
        name=str(definition["name"]),
        allowed=[output.name for output in fitting],
        hint=f"Take its output {fitting[0].name!r}." if fitting else "Connect a node that gives this type.",
    )
    return None


def _named_output(batch: Batch, op: Connect, source: FlowNode) -> Output | None:
    names = [output.name for output in source.outputs]
    name = resolve_case(op.source_anchor or "", names)
    if name is None and len(source.outputs) == 1:
        only = source.outputs[0]
        # With a single output any of its own words for it is clear enough.
        if resolve_case(op.source_anchor or "", [only.label, "output", *only.types]):
            name = only.name
    if name is not None:
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
    """A node gives one of its outputs; a second, different use would silently change the first."""
    for edge in batch.edges:
        if edge.source == source.id and edge.source_handle != output.handle:
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
    current = batch.nodes[source.id]
    if current.selected_output != output.name:
        batch.change(current, outputs={**(current.data.get("outputs") or {}), "output": output.name})
    return True


def _write_reference(batch: Batch, source: FlowNode, target: FlowNode, definition: Mapping[str, Any]) -> bool:
    """Put the source's reference into the target's input, which is what the server wires by."""
    name = definition["name"]
    value = target.inputs.get(name)
    if definition["type"] in PARAM_TYPES:
        return _check_variable(batch, source, target, definition, value)
    ref = reference(source.id)
    if definition.get("list"):
        items = list(value) if isinstance(value, list) else []
        if source.id not in referenced(items):
            items.append(ref)
            if name == "tools":
                # The editor's own order: tools that read come before tools that write.
                items.sort(key=_tool_order)
        batch.change(target, inputs={**target.inputs, name: items})
        return True
    occupant = sole_reference(value)
    others = [
        edge.source for edge in batch.edges if edge.target == target.id and edge.target_handle == definition["id"]
    ]
    if (occupant and occupant != source.id) or others:
        batch.fail(
            "ANCHOR_OCCUPIED",
            f"`{name}` of {target.id} takes one connection and has {others[0] if others else occupant!r} already.",
            where=target.id,
            name=str(name),
            hint="Connect only one node to it.",
        )
        return False
    batch.change(target, inputs={**target.inputs, name: ref})
    return True


def _check_variable(
    batch: Batch, source: FlowNode, target: FlowNode, definition: Mapping[str, Any], value: Any
) -> bool:
    """Fields that accept variables keep their own text, in which the reference must stand where it belongs."""
    name = definition["name"]
    ref = reference(source.id)
    if source.id in referenced(value):
        return True
    if definition.get("type") == "string" and is_empty(value):
        batch.change(target, inputs={**target.inputs, name: ref})
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


def _tool_order(item: str) -> int:
    if "requestsGet" in item or "readFile" in item:
        return 0
    return 1 if "requestsPost" in item or "writeFile" in item else 2


def _edge(source: FlowNode, output: Output, target: FlowNode, definition: Mapping[str, Any]) -> FlowEdge:
    handle = str(definition["id"])
    return FlowEdge(
        {
            "source": source.id,
            "sourceHandle": output.handle,
            "target": target.id,
            "targetHandle": handle,
            "type": "buttonedge",
            "id": f"{source.id}-{output.handle}-{target.id}-{handle}",
        }
    )


def _same_ends(one: FlowEdge, other: FlowEdge) -> bool:
    return (one.source, one.source_handle, one.target, one.target_handle) == (
        other.source,
        other.source_handle,
        other.target,
        other.target_handle,
    )
