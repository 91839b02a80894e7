"""Rules of nodes whose form follows from their fields: branches of conditions, and configs of models and tools."""

from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.compile.edges import remove_edge
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.flow_data import InputEntry, Inputs, Values
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.item_fields import FIELD, as_item_fields
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.nested import complete_config, nested_components, value_at, with_value
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import Connect
from flowise_dev_agent.patch.model.outputs import Output
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.suggest import closest
from flowise_dev_agent.patch.model.values import is_empty, normalize, without_markup
from flowise_dev_agent.patch.model.visibility import row_fields, with_defaults

#: Types of fields that hold several options.
_OPTION_LISTS: Final = frozenset({"multiOptions", "asyncMultiOptions"})
#: Type of models whose answer in fields is lost when it is streamed: the step fails with "Failed to parse".
_NOT_STREAMED: Final = "chatAnthropic"


def connect_agentflow_nodes(batch: Batch, op: Connect, source: FlowNode, target: FlowNode) -> None:
    for node in (source, target):
        if not node.is_agentflow or node.is_note:
            batch.fail(
                "KIND_MISMATCH",
                f"{node.name} is not an agentflow node and cannot be connected to one.",
                where=node.id,
                hint="In an agentflow models, tools and stores are inside the nodes, as values of their fields.",
            )
            return
    if target.name == v2.START:
        batch.fail(
            "UNKNOWN_ANCHOR",
            "Nothing runs before the start node.",
            where=target.id,
            name="target_node_id",
            hint=f"Connect {target.id} to {source.id} instead, or leave this op out.",
        )
        return
    output = _branch(batch, op, source)
    if output is None or batch.edges.has((source.id, output.handle, target.id, target.id)):
        return
    inside = bool(source.parent) and source.parent == target.parent
    batch.edges.add(FlowEdge(v2.make_edge(source.data, output.handle, target.data, inside_iteration=inside)))


def _branch(batch: Batch, op: Connect, source: FlowNode) -> Output | None:
    outputs = source.outputs
    if len(outputs) == 1:
        return outputs[0]  # whatever it is called
    wanted = op.source_anchor
    if wanted is not None and (output := source.output_called(wanted)):
        return output
    allowed = [output.label for output in outputs]
    if wanted is None and outputs:
        message = f"{source.id} has {len(outputs)} branches; say which one leads to {op.target_node_id}."
    elif outputs:
        message = f"{source.id} has no branch {wanted!r}."
    else:
        message = f"Nothing can follow {source.id}: {source.name} ends its branch."
    example = dump_json(
        {
            "op_type": "Connect",
            "source_node_id": source.id,
            "source_anchor": allowed[0] if allowed else "",
            "target_node_id": op.target_node_id,
        }
    )
    batch.fail(
        "UNKNOWN_OUTPUT",
        message,
        where=source.id,
        name="source_anchor",
        allowed=closest(wanted or "", allowed) or allowed[:3],
        hint=f"For example {example}" if allowed else "Connect another node.",
    )
    return None


def derive_fields(batch: Batch) -> None:
    """Run once all plain fields of the batch are set, before anything that needs branches or configs."""
    for node in sorted((batch.nodes[one] for one in batch.changed & batch.nodes.keys()), key=lambda node: node.id):
        node_id = node.id
        if not node.is_agentflow:
            _derive_conditions(batch, node)
            continue
        _type_rows(batch, node_id)
        _end_code(batch, node_id)
        _type_body(batch, node_id)
        _derive_branches(batch, node_id)
        _derive_configs(batch, node_id)


def complete_conditions(batch: Batch) -> None:
    """Set an empty field on which another one hangs, where a value of the batch counts with one choice only.

    A description of an approval counts only with the type "fixed": without it the editor shows it not at all.
    """
    for node_id in sorted(batch.changed & batch.nodes.keys()):
        node = batch.nodes[node_id]
        old = batch.base.node(node_id)
        before = old.inputs if old else {}
        read = with_defaults(node.params, node.inputs)
        wanted: dict[str, set[str]] = {}
        for entry in node.params:
            value = node.inputs.get(entry["name"])
            if is_empty(value) or value in (entry.get("default"), before.get(entry["name"])):
                continue
            for master, choice in (entry.get("show") or {}).items():
                if master in node.params_by_name and is_empty(read.get(master)):
                    choices = choice if isinstance(choice, list) else [choice]
                    wanted.setdefault(master, set()).update(str(one) for one in choices)
        for master, choices in wanted.items():
            definition = node.params_by_name[master][0]
            if len(choices) == 1 and definition["type"] == "options":
                value, problem = normalize(definition, next(iter(choices)))
                if problem is None:
                    batch.set_input(node_id, master, value)


def name_loop_targets(batch: Batch) -> None:
    """The editor knows the target of a loop by id and title: a bare id, and one with another title, gets the title."""
    for node_id in sorted(batch.changed & batch.nodes.keys()):
        node = batch.nodes[node_id]
        target = node.inputs.get(v2.LOOP_TARGET)
        if node.name == v2.LOOP and isinstance(target, str) and (meant := batch.nodes.get(v2.loop_target_id(target))):
            batch.set_input(node_id, v2.LOOP_TARGET, f"{meant.id}-{meant.label}")


def derived_inputs(definitions: Sequence[InputEntry], inputs: Inputs, schemas: Schemas) -> Inputs:
    """The inputs with the config of every chosen model and tool complete; the same object when they are."""
    for nested in list(nested_components(definitions, inputs)):
        schema = schemas.get(nested.component)
        if schema is None:
            continue  # the validator says so
        config = _with_lists_as_text(complete_config(nested, schema), schema)
        if config != nested.config:
            inputs = with_value(inputs, nested.steps, config)
    return inputs


def _with_lists_as_text(config: Inputs, schema: NodeSchema) -> Inputs:
    """The config with lists of options as JSON text: Flowise parses them, and takes a list for no option at all."""
    lists = {
        entry["name"]: normalize(entry, config[entry["name"]])[0]
        for entry in schema.input_definitions
        if entry["type"] in _OPTION_LISTS and isinstance(config.get(entry["name"]), list)
    }
    return {**config, **lists} if lists else config


def _derive_configs(batch: Batch, node_id: str) -> None:
    node = batch.nodes[node_id]
    inputs = derived_inputs(node.params, node.inputs, batch.schemas)
    if any(rows for name, rows in node.inputs.items() if name.endswith("StructuredOutput")):
        for nested in list(nested_components(node.params, inputs)):
            if nested.component == _NOT_STREAMED and value_at(inputs, (*nested.steps, "streaming")) is not False:
                inputs = with_value(inputs, (*nested.steps, "streaming"), value=False)
    if inputs is not node.inputs:
        batch.edit(node_id).set_inputs(inputs)


def _type_rows(batch: Batch, node_id: str) -> None:
    """Store the switches in rows as booleans, and what is compared as text as texts: the server compares switches
    strictly, and fails on a text that is none. A state begins empty if no value is given. Items of a list have fields.
    """
    node = batch.nodes[node_id]
    for entry in node.params:
        rows = node.inputs.get(entry["name"])
        if entry["type"] != "array" or not isinstance(rows, list):
            continue
        least = {"value": ""} if entry["name"] == v2.START_STATE else {}
        typed = [
            least | row | _switches(row_fields(entry, number, row, node.inputs), row) if isinstance(row, dict) else row
            for number, row in enumerate(rows)
        ]
        if typed != rows:
            batch.set_input(node_id, entry["name"], typed)


def _switches(parts: Sequence[InputEntry], row: Values) -> Inputs:
    typed: Inputs = {}
    for part in parts:
        name = str(part["name"])
        if name in row and part["type"] == "boolean":
            typed[name] = normalize({"name": name, "type": "boolean"}, row[name])[0]
        elif part["type"] == "string" and isinstance(row.get(name), bool | int | float):
            typed[name] = dump_json(row[name])
        elif name == FIELD and name in row:
            typed[name] = as_item_fields(row[name])
    return typed


def _end_code(batch: Batch, node_id: str) -> None:
    """End a line of code that may be a comment: the server puts its own code behind it."""
    node = batch.nodes[node_id]
    for entry in node.params:
        code = node.inputs.get(entry["name"])
        if entry["type"] == "code" and isinstance(code, str) and "//" in code.rpartition("\n")[2]:
            batch.set_input(node_id, entry["name"], f"{code}\n")


def _type_body(batch: Batch, node_id: str) -> None:
    """Give a body its type where it can be one only: without a type the server sends none."""
    inputs = batch.nodes[node_id].inputs
    body = inputs.get("body")
    if batch.nodes[node_id].name != v2.HTTP or not is_empty(inputs.get("bodyType")) or inputs.get("method") == "GET":
        return
    text = without_markup(body) if isinstance(body, str) else ""
    if text.startswith(("{", "[")) and not text.startswith("{{"):
        batch.set_input(node_id, "bodyType", "json")


def _derive_branches(batch: Batch, node_id: str) -> None:
    node = batch.nodes[node_id]
    expected, present = v2.branch_count(node.name, node.inputs), len(node.outputs)
    if expected is None or expected == present:
        return
    batch.edit(node_id).set_output_anchors(v2.branch_anchors(node_id, node.name, expected))
    has_else = node.name == v2.CONDITION
    stay = {f"{node_id}-output-{number}" for number in range(min(expected, present) - has_else)}
    for edge in batch.edges.out_of(node_id):
        if has_else and edge.source_handle == f"{node_id}-output-{present - 1}":
            batch.edges.replace(edge, _at_branch(batch, edge, f"{node_id}-output-{expected - 1}"))
        elif edge.source_handle not in stay:
            remove_edge(batch, edge)


def _derive_conditions(batch: Batch, node: FlowNode) -> None:
    """Give a condition of a sequential flow the branches that its rows or its code state."""
    labels = sequential.branch_labels(node) if sequential.is_condition(node) else []
    if not labels or set(labels) == {output.label for output in node.outputs}:
        return
    changed = batch.edit(node.id)
    changed.set_output_anchors(sequential.branch_anchors(node, labels))
    stay = {output.handle for output in changed.outputs}
    for edge in batch.edges.out_of(node.id):
        if edge.source_handle not in stay:
            remove_edge(batch, edge)


def _at_branch(batch: Batch, edge: FlowEdge, handle: str) -> FlowEdge:
    """The same edge, leaving from another branch."""
    source, target = batch.nodes[edge.source], batch.nodes.get(edge.target)
    if target is None:
        return edge
    inside = edge.raw.get("zIndex") == v2.EDGE_INSIDE_ITERATION
    moved = v2.make_edge(source.data, handle, target.data, inside_iteration=inside)
    drawn = v2.edge_data(source.data, handle, target.data)
    return FlowEdge({**edge.raw, **moved, "data": {**edge.raw.get("data", {}), **drawn}})
