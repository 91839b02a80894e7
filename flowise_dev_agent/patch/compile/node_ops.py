"""Ops on fields of single nodes: AddNode, SetParam, UnsetParam, SetLabel, SetOutput."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.patch.compile.agentflow import derived_inputs
from flowise_dev_agent.patch.compile.batch import Batch, connect_example, next_id, suggestion
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.json_text import as_dict, dump_json
from flowise_dev_agent.patch.model.nested import (
    CREDENTIAL_KEY,
    Steps,
    is_path,
    parse_path,
    unknown_component,
    value_at,
    with_bound,
    with_value,
    without_value,
)
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import AddNode, PatchOp, SetLabel, SetOutput, SetParam, UnsetParam
from flowise_dev_agent.patch.model.references import NODE_ID
from flowise_dev_agent.patch.model.suggest import ALIKE, closest, resolve_case
from flowise_dev_agent.patch.model.values import normalize, row_example

#: Number of field names listed in an UNKNOWN_PARAM finding.
_FIELDS_SHOWN: Final = 12

# --- AddNode -----------------------------------------------------------------------------------------------------


def add_node(batch: Batch, op: AddNode) -> None:
    if not usable_id(batch, op.node_id, op.node_name):
        return
    schema = batch.schema(op.node_name, op.node_id)
    if schema is None:
        batch.failed.add(op.node_id)
        return
    node = batch.make_node(schema, op.node_id)
    batch.added.add(op.node_id)
    if op.label:
        node.data["label"] = op.label
    if op.description and schema.is_agentflow:
        node.data["description"] = op.description
    for name, value in op.params.items():
        if is_path(name) and name not in node.params_by_name:
            batch.deferred.append((batch.index, op, name, value))
        else:
            _set_value(batch, op.node_id, name, value)


def usable_id(batch: Batch, node_id: str, node_name: str) -> bool:
    """True if a node may be stored under this id; reports the error otherwise."""
    if not NODE_ID.fullmatch(node_id):
        batch.failed.add(node_id)
        batch.fail(
            "BAD_NODE_ID",
            f"{node_id!r} cannot be a node id: only letters, digits and _ are allowed.",
            name="node_id",
            hint=f"For example {node_name}_0.",
        )
        return False
    if node_id in batch.nodes:
        batch.fail(
            "NODE_EXISTS",
            f"A node {node_id!r} exists already.",
            where=node_id,
            name="node_id",
            hint=f"Use SetParam and Connect on it, or add another node as {next_id(node_id, batch.nodes)!r}.",
        )
        return False
    return True


# --- SetParam, UnsetParam ----------------------------------------------------------------------------------------


def set_param(batch: Batch, op: SetParam) -> None:
    if batch.node(op.node_id, "node_id"):
        _set_value(batch, op.node_id, op.param_name, op.value)
        _show_tab(batch, op)


def _show_tab(batch: Batch, op: SetParam) -> None:
    """Choose the tab of the field that was set: the server reads that of the chosen one only."""
    node = batch.nodes[op.node_id]
    for entry in node.params:
        key = f"{entry.get('tabIdentifier')}_{node.id}"
        tabs = [tab["name"] for tab in entry.get("tabs") or ()]
        if op.param_name in tabs and node.inputs.get(key, tabs[0]) != op.param_name:
            batch.set_input(node.id, key, op.param_name)


def set_deferred_param(batch: Batch, op: AddNode, name: str, value: Any) -> None:
    """Set a field of AddNode inside a model or tool, which exists only after all plain fields are set."""
    if batch.node(op.node_id, "node_id"):  # another op may have replaced the node
        _set_value(batch, op.node_id, name, value)


def unset_param(batch: Batch, op: UnsetParam) -> None:
    node = batch.node(op.node_id, "node_id")
    if node is None:
        return
    steps = _steps(node, op.param_name)
    names = {key: node.params_by_name.get(key, ()) for key in node.inputs if key not in node.definitions.anchor_names}
    if steps is None or len(steps) == 1:
        name = resolve_case(op.param_name, names)
        if name is None and op.param_name in node.params_by_name:
            return  # nothing is set
        if name is None:
            _no_such_param(batch, node, op.param_name, names)
            return
        del batch.edit(node.id).inputs[name]
    else:
        if not isinstance(value_at(node.inputs, steps[:-1]), Mapping):
            _no_such_param(batch, node, op.param_name, names)
            return
        if value_at(node.inputs, steps) is None:
            return
        batch.edit(node.id).set_inputs(without_value(node.inputs, steps))


def _steps(node: FlowNode, name: str) -> Steps | None:
    return (name,) if name in node.params_by_name or not is_path(name) else parse_path(name)


def _set_value(batch: Batch, node_id: str, param_name: str, value: Any) -> None:
    node = batch.nodes[node_id]
    found = _definitions(batch, node, param_name)
    if found is None:
        return
    steps, definitions = found
    value = with_bound(value, _config_before(node, steps))
    if value is None:
        batch.fail(
            "NOT_A_VALUE",
            f"`{param_name}` cannot be null.",
            where=node_id,
            name=param_name,
            hint="Use UnsetParam to clear it.",
        )
        return
    stored, problem = value, None
    # The server runs its own version of an old node: what it offers counts too.
    schema = batch.schemas.get(node.name)
    current = schema.definitions.params_by_name.get(str(steps[-1]), []) if schema and len(steps) == 1 else []
    for definition in (*definitions, *current):
        stored, problem = normalize(definition, value)
        if problem is None:
            break
    if problem:
        batch.fail(
            problem.code,
            f"`{param_name}` of {node_id}: {problem.message}",
            where=node_id,
            name=param_name,
            allowed=problem.allowed,
            hint=f"For example {_setting(batch.op, node_id, param_name, problem.example)}",
        )
        return
    first, *inner = steps
    if inner:
        inputs = with_value(node.inputs, steps, stored)
        if any(definition.get("loadConfig") for definition in definitions):
            # The settings of the component before go at once, not after those of this one are set.
            inputs = derived_inputs(node.params, inputs, batch.schemas)
        batch.edit(node_id).set_inputs(inputs)
    else:
        batch.set_input(node_id, str(first), stored)


def _config_before(node: FlowNode, steps: Steps) -> Any:
    """The value at a path; None for the config of another component than the one chosen now."""
    before, around = value_at(node.inputs, steps), value_at(node.inputs, steps[:-1])
    owner = str(steps[-1]).removesuffix("Config")
    if isinstance(before, Mapping) and isinstance(around, Mapping) and owner in before:
        return before if before[owner] == around.get(owner) else None
    return before


def _setting(op: PatchOp | None, node_id: str, name: str, value: Any) -> str:
    """An op that sets a field, as JSON text: an AddNode with the field, if `op` is one."""
    if isinstance(op, AddNode):
        return dump_json({"op_type": "AddNode", "node_name": op.node_name, "node_id": node_id, "params": {name: value}})
    return dump_json({"op_type": "SetParam", "node_id": node_id, "param_name": name, "value": value})


def _definitions(batch: Batch, node: FlowNode, param_name: str) -> tuple[Steps, Sequence[InputEntry]] | None:
    """Path and definitions of a field; reports the existing fields if there is none."""
    by_name = node.params_by_name
    if same_named := by_name.get(param_name):
        return (param_name,), same_named
    if is_path(param_name):
        return _nested_definitions(batch, node, param_name)
    if name := resolve_case(param_name, by_name):
        return (name,), by_name[name]
    if definition := node.definitions.undeclared(node.id).get(param_name):
        return (param_name,), [definition]
    _no_such_param(batch, node, param_name, by_name)
    return None


def _nested_definitions(batch: Batch, node: FlowNode, path: str) -> tuple[Steps, Sequence[InputEntry]] | None:
    steps = parse_path(path)
    definitions: Sequence[InputEntry] = node.params
    container: Any = node.inputs
    for index, step in enumerate(steps or ()):
        if isinstance(step, int):
            if container in (None, ""):
                # A list without a row.
                container = []
            if isinstance(container, list) and step > len(container):
                count = f"{len(container)} row{'' if len(container) == 1 else 's'}"
                _no_such_row(
                    batch, node, path, f"`{path}` of {node.id}: there is no [{step}], but {count} from [0] on."
                )
                return None
            # An index just past the last row adds a row.
            container = ([*container, {}])[step] if isinstance(container, list) else None
        else:
            if not isinstance(container, Mapping):
                break
            matching = [entry for entry in definitions if entry.get("name") == step]
            owner = step.removesuffix("Config")
            component = container.get(owner) if owner != step else None
            if matching and index == len(steps or ()) - 1:
                return steps or (), matching
            if matching:
                definitions = matching[0].get("array") or ()
            elif isinstance(component, str) and (schema := batch.schemas.get(component)):
                definitions = schema.input_definitions
            elif isinstance(component, str) and owner != step and _is_component(definitions, owner):
                _no_component(batch, node, path, owner, component)
                return None
            else:
                break
            container = container.get(step)
            if container is None and definitions and not matching:
                container = {}  # the settings of a model or tool that was just chosen
    _no_such_param(batch, node, path, _by_name(definitions))
    return None


def _is_component(definitions: Sequence[InputEntry], name: str) -> bool:
    return any(entry.get("name") == name and entry.get("loadConfig") for entry in definitions)


def _no_component(batch: Batch, node: FlowNode, path: str, owner: str, component: str) -> None:
    """Report settings of a model or tool that is not chosen or not known to the server."""
    if component:
        message, hint, near = unknown_component(owner, component, batch.schemas)
    else:
        message, near = f"`{owner}` of {node.id} is not chosen yet.", ()
        hint = f"Set `{owner}` to a node type before its settings."
    example = _setting(batch.op, node.id, owner, near[0] if near else "<type>")
    batch.fail(
        "UNKNOWN_NODE_NAME",
        message,
        where=node.id,
        name=path,
        allowed=near,
        hint=f"{hint} For example {example}",
    )


def _no_such_row(batch: Batch, node: FlowNode, path: str, why: str) -> None:
    name = path.partition("[")[0]
    definition = next(iter(node.params_by_name.get(name, ())), None)
    rows = [row_example(definition)] if definition else [{"<field>": "<value>"}]
    example = _setting(batch.op, node.id, name, rows)
    batch.fail(
        "UNKNOWN_PARAM",
        why,
        where=node.id,
        name=path,
        hint=f"Name a field of a row that is there or of the next one, or set all rows at once: {example}",
    )


def _by_name(definitions: Iterable[InputEntry]) -> dict[str, list[InputEntry]]:
    found: dict[str, list[InputEntry]] = {}
    for entry in definitions:
        found.setdefault(str(entry.get("name")), []).append(entry)
    return found


def _no_such_param(batch: Batch, node: FlowNode, param_name: str, fields: Mapping[str, Sequence[InputEntry]]) -> None:
    anchors = [entry["name"] for entry in node.anchors]
    if param_name.endswith("]"):
        _no_such_row(batch, node, param_name, f"`{param_name}` of {node.id} is a whole row, not a field.")
    elif anchor := resolve_case(param_name, anchors):
        batch.fail(
            "PARAM_IS_ANCHOR",
            f"`{anchor}` of {node.id} takes a connection, not a value.",
            where=node.id,
            name=anchor,
            hint=f"Use {connect_example('<source node id>', node.id, anchor)}",
        )
    elif node.credential_param and resolve_case(param_name, ["credential", CREDENTIAL_KEY, "credentialId"]):
        batch.fail(
            "PARAM_IS_CREDENTIAL",
            f"The credential of {node.id} is bound, not set.",
            where=node.id,
            name="credential",
            hint=f'Use {{"op_type":"BindCredential","node_id":"{node.id}","credential_id":"<uuid>"}}',
        )
    elif _is_newer_field(batch, node, param_name):
        batch.fail(
            "UNKNOWN_PARAM",
            f"{node.id} was stored before {node.name} had the field {param_name!r}.",
            where=node.id,
            name=param_name,
            hint=f'Upgrade it in the same patch: {{"op_type":"UpgradeNode","node_id":"{node.id}"}}',
        )
    else:
        value = _value_of(batch.op, param_name)
        names = [name for name, entries in fields.items() if _takes(entries, value)]
        near = closest(param_name.rpartition(".")[2], names, least=ALIKE)
        others = f" Its fields: {', '.join([*fields][:_FIELDS_SHOWN])}." if fields else ""
        batch.fail(
            "UNKNOWN_PARAM",
            f"{node.name} has no field {param_name!r}.",
            where=node.id,
            name=param_name,
            allowed=near,
            hint=f"Use one of its fields{suggestion(near)}, or leave it out." if near else f"Leave it out.{others}",
        )


def _value_of(op: PatchOp | None, name: str) -> Any:
    """The value that the op gives to the field; None if it gives none."""
    match op:
        case SetParam():
            return op.value
        case AddNode():
            return op.params.get(name)
        case _:
            return None


def _takes(definitions: Sequence[InputEntry], value: Any) -> bool:
    return value is None or any(normalize(entry, value)[1] is None for entry in definitions)


def _is_newer_field(batch: Batch, node: FlowNode, param_name: str) -> bool:
    schema = batch.schemas.get(node.name)
    return schema is not None and any(entry["name"] == param_name for entry in schema.input_definitions)


# --- SetLabel, SetOutput -----------------------------------------------------------------------------------------


def set_label(batch: Batch, op: SetLabel) -> None:
    node = batch.node(op.node_id, "node_id")
    if node is None or node.label == op.label:
        return
    # Loops name their target by id and title.
    old, new = f"{node.id}-{node.label}", f"{node.id}-{op.label}"
    for other in list(batch.nodes.values()):
        if other.name == v2.LOOP and other.inputs.get(v2.LOOP_TARGET) == old:
            batch.set_input(other.id, v2.LOOP_TARGET, new)
    batch.edit(node.id).data["label"] = op.label


def set_output(batch: Batch, op: SetOutput) -> None:
    node = batch.node(op.node_id, "node_id")
    if node is None:
        return
    names = [output.name for output in node.outputs if not output.independent] if node.multi_output else []
    name = resolve_case(op.output, names)
    if name is None:
        near = closest(op.output, names) or tuple(names[:3])
        batch.fail(
            "UNKNOWN_OUTPUT",
            f"{node.name} has no output {op.output!r} to choose.",
            where=node.id,
            name="output",
            allowed=near,
            hint=f"Use one of {', '.join(names)}." if names else "It gives only one thing; leave this op out.",
        )
        return
    select_output(batch, node.id, name)


def select_output(batch: Batch, node_id: str, name: str) -> None:
    node = batch.edit(node_id)
    if node.selected_output != name:
        node.data["outputs"] = {**as_dict(node.data.get("outputs")), "output": name}
