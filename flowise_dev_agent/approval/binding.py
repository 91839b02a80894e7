"""Bind ops to the approved plan: nothing outside the plan is written, and nothing in the plan is left out.

The approval is a set of nodes, addresses, credential types, code, tools and lines (`Capability`, made by code from the
plan). A flow's text, a tool's text or a pattern can make a model write other ops; they come back as findings.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from flowise_dev_agent.approval.lines import before_approval, line_changes
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    Finding,
    FlowNode,
    GraphIR,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetLabel,
    SetParam,
    UnsetParam,
    is_same_node,
)
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.attached_files import is_filled
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.field_kinds import FieldKind
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.nested import Steps, parse_path, value_at, with_bound, with_value
from flowise_dev_agent.patch.model.reach import (
    Acting,
    acting,
    flows_in,
    holds_code,
    is_setting,
    reached,
    sets_credential,
    tools_in,
)
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.schema import CREDENTIALS_FOR_ANY_ADDRESS
from flowise_dev_agent.patch.model.values import on_one_line
from flowise_dev_agent.schemas.plan import (
    UPLOADS,
    AmendAnswer,
    Capability,
    CredentialBinding,
    NamedConnection,
    NodeCapability,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
    ToolBinding,
)

_TOOLS: Final = frozenset({"Tools", "Tools (MCP)"})
#: Characters of a value in a finding.
_SHOWN: Final = 80
#: Acting values in words.
_HOLDS: Final = {
    FieldKind.CODE: "code",
    FieldKind.COMMAND: "a command",
    FieldKind.FILE: "a file of the server",
    FieldKind.SECRET: "a secret",
    FieldKind.REQUEST: "a part of a request",
}


def capability_of(plan: Plan, schemas: Schemas, base: GraphIR) -> Capability:
    """Capability that the approval of `plan` grants; `base` is the flow that the plan changes.

    Only an address that the plan has is allowed, and so shown: that the person's words name one says neither that it
    may be called nor that it may not.
    """
    nodes: dict[str, NodeCapability] = {}
    for node in plan.nodes:
        named = [value.param for value in plan.values if value.node_id == node.node_id]
        nodes[node.node_id] = NodeCapability(
            node_name=node.node_name,
            action="change" if node.existing else "add",
            # Nodes that a new flow already has come from a pattern or this session, never from a person.
            params=[*named, "settings"] if node.existing and plan.operation != "create" else "all",
        )
    for value in plan.values:
        nodes.setdefault(value.node_id, NodeCapability(node_name="", action="change", params=[value.param, "settings"]))
    for node_id in plan.removals:
        nodes[node_id] = NodeCapability(node_name="", action="remove")
    planned = {node.node_id: schemas.get(node.node_name) for node in plan.nodes}
    tools = [ToolBinding(node_id=id_, name=one.name) for id_, one in planned.items() if one and one.category in _TOOLS]
    tools += [
        ToolBinding(node_id=value.node_id, name=name)
        for value in plan.values
        for name in [*tools_in({value.param: value.value}), *flows_in({value.param: value.value})]
    ]
    acts = [
        (given.node_id, one)
        for given in plan.values
        for one in acting(given.param, given.value, planned.get(given.node_id))
    ]
    inside = {id_ for id_, one in acts if one.kind is FieldKind.CODE}
    called = {one for given in plan.values for one in reached(given.param, given.value, planned.get(given.node_id))}
    return Capability(
        nodes=nodes,
        hosts=sorted({one.origin for one in called if one.clear}),
        commands=_texts(acts, FieldKind.COMMAND),
        files=_texts(acts, FieldKind.FILE),
        credentials=[
            *(CredentialBinding(node_id="*", type=type_) for type_ in plan.credential_requirements),
            # A new node may have an optional credential of its type, for its own address.
            *(
                CredentialBinding(node_id=node.node_id, type=type_)
                for node in plan.nodes
                if not node.existing and (schema := planned.get(node.node_id))
                for type_ in schema.credential_names
                if type_ not in plan.credential_requirements and type_ not in CREDENTIALS_FOR_ANY_ADDRESS
            ),
        ],
        code=[
            *(id_ for id_, schema in planned.items() if schema and _runs_code(plan, nodes[id_], id_, schema)),
            *sorted(inside - planned.keys()),
        ],
        tools=tools,
        effects=[
            *(["document_store"] if plan.document_stores else []),
            *(f"upsert:{id_}" for id_ in _filled(plan, planned)),
            *([f"uploads:{','.join(plan.uploads)}"] if plan.uploads is not None else []),
        ],
        lines=line_changes(plan, base),
        before_approval=before_approval(plan, base, schemas),
    )


def _texts(found: Iterable[tuple[str, Acting]], kind: FieldKind) -> list[str]:
    return sorted({one.text for _, one in found if one.kind is kind})


def _filled(plan: Plan, planned: Mapping[str, NodeSchema | None]) -> list[str]:
    """Ids of the plan's vector stores that receive new or changed documents."""
    changed = {node.node_id for node in plan.nodes if not node.existing} | {value.node_id for value in plan.values}
    loads = any(one and one.category == "Document Loaders" for id_, one in planned.items() if id_ in changed)
    return [
        id_ for id_, one in planned.items() if loads and one and one.category == "Vector Stores" and is_filled(one.name)
    ]


def with_agreed(capability: Capability, agreed: Capability | None) -> Capability:
    """Add to `capability` the hosts and lines of an earlier approval, and all fields of the nodes that the session
    added.
    """
    if agreed is None:
        return capability
    added = {id_ for id_, node in agreed.nodes.items() if node.params == "all"}
    nodes = {
        id_: node.model_copy(update={"params": "all"}) if id_ in added and node.action == "change" else node
        for id_, node in capability.nodes.items()
    }
    return capability.model_copy(
        update={
            "nodes": nodes,
            "hosts": sorted({*capability.hosts, *agreed.hosts}),
            "commands": sorted({*capability.commands, *agreed.commands}),
            "files": sorted({*capability.files, *agreed.files}),
            "lines": [*agreed.lines, *(one for one in capability.lines if one not in agreed.lines)],
            "before_approval": sorted({*capability.before_approval, *agreed.before_approval}),
        }
    )


def amended(
    plan: Plan, answer: AmendAnswer, more_credentials: Iterable[str], schemas: Schemas, *, reason: str = ""
) -> Plan:
    """Apply an amendment of the op writer to the plan: add what it lacks, drop the new nodes that it gives up, for the
    reason given or the amendment's own. The capability is not updated.
    """
    dropped = plan.new_nodes & {*answer.removals}
    if dropped:
        plan = _without_nodes(plan, dropped, reason or answer.reason, schemas)
        answer = answer.model_copy(update={"removals": [id_ for id_ in answer.removals if id_ not in dropped]})
    touched = {*answer.removals, *(node.node_id for node in answer.nodes), *(value.node_id for value in answer.values)}
    known = {node.node_id for node in plan.nodes}
    return plan.model_copy(
        update={
            "nodes": [*plan.nodes, *(node for node in answer.nodes if node.node_id not in known)],
            "removals": [*dict.fromkeys([*plan.removals, *answer.removals])],
            "kept": [id_ for id_ in plan.kept if id_ not in touched],
            "connections": [*plan.connections, *(one for one in answer.connections if one not in plan.connections)],
            "disconnections": [
                *plan.disconnections,
                *(one for one in answer.disconnections if one not in plan.disconnections),
            ],
            "values": _with_values(plan.values, answer.values),
            "credential_requirements": [*dict.fromkeys([*plan.credential_requirements, *more_credentials])],
        }
    )


def _with_values(planned: Sequence[PlannedValue], more: Sequence[PlannedValue]) -> list[PlannedValue]:
    """Planned values with newer ones, so that each field has one value.

    A newer value of a whole field replaces those of its rows; a newer value of a row goes into the planned whole. Null
    takes back what the plan has.
    """
    values = [*planned]
    for new in more:
        steps = parse_path(new.param) or (new.param,)
        if new.value is None:
            values = [one for one in values if one.node_id != new.node_id or not _is_inside(one.param, steps)]
            continue
        at = next((index for index, one in enumerate(values) if _holds(one, new, steps)), None)
        if at is None:
            values = [one for one in values if one.node_id != new.node_id or not _is_inside(one.param, steps)]
            values.append(new)
            continue
        inside = steps[len(parse_path(values[at].param) or ()) :]
        values[at] = values[at].model_copy(update={"value": with_value(values[at].value, inside, new.value)})
    return values


def _holds(one: PlannedValue, new: PlannedValue, steps: Steps) -> bool:
    """True if a planned value is a list or an object that has the place of the newer one."""
    around = parse_path(one.param) or (one.param,)
    if one.node_id != new.node_id or {one.mode, new.mode} != {"set"} or steps[: len(around)] != around:
        return False
    *path, _ = steps[len(around) :] or ("",)
    return len(steps) > len(around) and isinstance(value_at({"": one.value}, ("", *path)), Mapping)


def _is_inside(param: str, steps: Steps) -> bool:
    return (parse_path(param) or (param,))[: len(steps)] == steps


def _without_nodes(plan: Plan, dropped: Collection[str], reason: str, schemas: Schemas) -> Plan:
    """Remove nodes from the plan, with the values, credentials and parts that only they needed."""
    nodes = [node for node in plan.nodes if node.node_id not in dropped]
    values = [value for value in plan.values if value.node_id not in dropped]
    gone = _taken_by([node for node in plan.nodes if node not in nodes], plan.values, schemas)
    stays = _taken_by(nodes, values, schemas)
    fields = {*(f"{value.node_id}.{value.param}" for value in values), UPLOADS}
    parts: list[Part] = []
    for part in plan.parts:
        left = {
            "nodes": [id_ for id_ in part.nodes if id_ not in dropped],
            "values": [field for field in part.values if field in fields],
        }
        if part.state == "covered" and (part.nodes or part.values) and not any(left.values()):
            left |= {"state": "not_possible", "reason": reason}
        parts.append(part.model_copy(update=left))
    tests = [
        test.model_copy(
            update={
                "expect": test.expect.model_copy(
                    update={
                        "tools": [id_ for id_ in test.expect.tools if id_ not in dropped],
                        "branch": [id_ for id_ in test.expect.branch if id_ not in dropped],
                    }
                )
            }
        )
        for test in plan.tests
    ]
    return plan.model_copy(
        update={
            "nodes": nodes,
            "values": values,
            "credential_requirements": [
                type_ for type_ in plan.credential_requirements if type_ in stays or type_ not in gone
            ],
            "connections": [one for one in plan.connections if not {one.source, one.target} & {*dropped}],
            "parts": parts,
            "tests": tests,
        }
    )


def _taken_by(nodes: Sequence[PlannedNode], values: Iterable[PlannedValue], schemas: Schemas) -> set[str]:
    """Credential types of the nodes, and of the models and tools named in their values."""
    ids = {node.node_id for node in nodes}
    names = {node.node_name for node in nodes}
    names |= {text for value in values if value.node_id in ids for text in _words(value.value)}
    return {type_ for name in names if (schema := schemas.get(name)) for type_ in schema.credential_names}


def _words(value: JsonValue) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)


def beyond_approval(capability: Capability, agreed: Capability) -> Capability | None:
    """Part of `capability` that `agreed` does not cover; None if all of it is covered."""
    beyond = Capability(
        nodes={id_: node for id_, node in capability.nodes.items() if not _covers(agreed.nodes.get(id_), node)},
        hosts=[host for host in capability.hosts if host not in agreed.hosts],
        commands=[one for one in capability.commands if one not in agreed.commands],
        files=[one for one in capability.files if one not in agreed.files],
        credentials=[one for one in capability.credentials if one not in agreed.credentials],
        code=[id_ for id_ in capability.code if id_ not in agreed.code],
        tools=[tool for tool in capability.tools if tool not in agreed.tools],
        effects=[effect for effect in capability.effects if effect not in agreed.effects],
        lines=[line for line in capability.lines if line not in agreed.lines],
        before_approval=[id_ for id_ in capability.before_approval if id_ not in agreed.before_approval],
    )
    return None if beyond == Capability() else beyond


def _covers(agreed: NodeCapability | None, wanted: NodeCapability) -> bool:
    if agreed is None or (wanted.node_name and agreed.node_name and wanted.node_name != agreed.node_name):
        return False
    if wanted.action == "change":
        # A node that this session added is in the flow by the next iteration.
        settled = agreed.action in ("add", "replace", "change")
        return settled and (agreed.params == "all" or set(wanted.params) <= set(agreed.params))
    return wanted.action == agreed.action


def outside_plan(
    ops: Sequence[PatchOp], plan: Plan, capability: Capability, schemas: Schemas, base: GraphIR
) -> list[Finding]:
    """Findings for ops that the approved plan does not cover."""
    return [
        Finding(
            code="OUTSIDE_PLAN",
            severity="error",
            detail=f"The approved plan does not cover this op: {problem}.",
            where=_touched(op)[0],
            hint="Leave it out. If the plan cannot be met without it, answer with `amend`: the person is asked then.",
            op_index=index,
            op_type=op.op_type,
        )
        for index, op in enumerate(ops)
        for problem in ([] if _implied(op, ops, plan, base) else _beyond(op, plan, capability, schemas, base))
    ]


def not_met(plan: Plan, before: GraphIR, after: GraphIR) -> list[Finding]:
    """Findings for promises of the approved plan that the compiled flow does not keep."""
    nodes, existed = {node.id: node for node in after.nodes}, {node.id: node for node in before.nodes}
    places, after_ends = _places(plan, before, after), {edge.ends for edge in after.edges}
    problems: list[tuple[str, str, str]] = [
        (node.node_id, f"the plan adds {node.node_name} as '{node.node_id}', and it is not in the flow", "Add it.")
        for node in plan.nodes
        if node.node_id not in existed and node.node_id not in places
    ]
    problems += [
        (node_id, f"the plan removes or replaces '{node_id}', and it is still in the flow", "Remove or replace it.")
        for node_id in plan.removals
        if node_id in nodes and node_id in existed and nodes[node_id].name == existed[node_id].name
    ]
    problems += [
        (
            one.target,
            f"the plan takes the line from '{one.source}' to '{one.target}' away, and it is there",
            "Disconnect.",
        )
        for one in plan.disconnections
        if not after_ends.isdisjoint(edge.ends for edge in _lines(one, before))
    ]
    problems += [
        (node_id, f"the plan keeps '{node_id}' unchanged, and it is not", "Leave it as it is.")
        for node_id in plan.kept
        if node_id in existed and (node_id not in nodes or _differ(existed[node_id], nodes[node_id]))
    ]
    for value in plan.values:
        node = places.get(value.node_id) or nodes.get(value.node_id)
        if node and (text := _unmet_value(value, node, existed.get(value.node_id))):
            problems.append((value.node_id, text, "Set it as the plan says."))
    return [
        Finding(code="PLAN_NOT_MET", severity="error", detail=f"{text[0].upper()}{text[1:]}.", where=where, hint=hint)
        for where, text, hint in problems
    ]


def untouched(plan: Plan, original: GraphIR, after: GraphIR) -> list[Finding]:
    """Warnings for nodes that a plan says it changes and that are as they were, with the same connections."""
    return [
        Finding(
            code="PLANNED_NODE_UNCHANGED",
            severity="warning",
            detail=f"The plan changes '{node.node_id}', and nothing about it or its connections changes.",
            where=node.node_id,
            hint="Change or connect it as the plan says, with all ops of the last answer. If it is right as it is, "
            "give the same ops again.",
        )
        for node in (plan.nodes if plan.operation == "update" else ())
        if node.existing and is_same_node(node.node_id, original, after)
    ]


# --- ops against the capability ---------------------------------------------------------------------------------------


def _touched(op: PatchOp) -> tuple[str, ...]:
    return (op.source_node_id, op.target_node_id) if isinstance(op, Connect | Disconnect) else (op.node_id,)


def _beyond(op: PatchOp, plan: Plan, capability: Capability, schemas: Schemas, base: GraphIR) -> Iterator[str]:
    ids = _touched(op)
    if isinstance(op, ReplaceNode):
        # REMOVAL_NOT_PLANNED covers the removed node; the new node must be of a planned type.
        if op.node_name.casefold() not in {node.node_name.casefold() for node in plan.nodes}:
            yield f"it does not name {op.node_name}, which would replace '{op.node_id}'"
        ids = (op.new_node_id or op.node_id,)
    if isinstance(op, RemoveNode):
        return
    if not any(id_ in capability.nodes for id_ in ids):
        yield f"{' and '.join(ids)} {'are' if len(ids) > 1 else 'is'} not part of it"
        return
    if isinstance(op, AddNode):
        planned = capability.nodes[op.node_id]
        if planned.action != "add":
            yield f"'{op.node_id}' is not planned as a new node"
        elif planned.node_name.casefold() != op.node_name.casefold():
            yield f"'{op.node_id}' is planned as {planned.node_name}, not {op.node_name}"
        if op.label and not _is_title(op.node_id, op.label, plan, base):
            yield f"'{op.node_id}' gets a title that it does not say"
        values: Mapping[str, JsonValue] = op.params
        schema = schemas.get(op.node_name)
    elif isinstance(op, SetParam):
        values, schema = {op.param_name: op.value}, _schema_of(op.node_id, plan, schemas, base)
    elif isinstance(op, BindCredential):
        allowed = {one.type for one in capability.credentials if one.node_id in ("*", op.node_id)}
        schema = _schema_of(op.node_id, plan, schemas, base)
        taken = {op.credential_type} if op.credential_type else set(schema.credential_names if schema else ())
        if taken and not taken & allowed:
            yield f"a credential of type {' or '.join(sorted(taken))} is not in it"
        return
    elif isinstance(op, SetLabel):
        if not _is_title(op.node_id, op.label, plan, base):
            yield f"'{op.node_id}' gets a title that it does not say"
        return
    elif isinstance(op, UnsetParam):
        values, schema = {op.param_name: ""}, _schema_of(op.node_id, plan, schemas, base)
    else:
        return
    yield from _not_named(ids[0], values, plan, capability)
    yield from _reaching_out(ids[0], values, schema, plan, capability, base)


def _is_title(node_id: str, label: str, plan: Plan, base: GraphIR) -> bool:
    """True for the planned or present title of a node, and any of a new node for which the plan has none."""
    node = base.node(node_id)
    planned = next((one.label for one in plan.nodes if one.node_id == node_id), "")
    return label in (planned, node.label if node else "") or (not planned and node_id in plan.new_nodes)


def _implied(op: PatchOp, ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> bool:
    """True for a line that the plan takes away, puts a new node into, or closes over a removed one."""
    if isinstance(op, Disconnect):
        ends = (op.source_node_id, op.target_node_id)
        lines = [one for one in ops if isinstance(one, Connect)]
        fed = {one.target_node_id for one in lines if one.source_node_id == op.source_node_id} & plan.new_nodes
        feeding = {one.source_node_id for one in lines if one.target_node_id == op.target_node_id} & plan.new_nodes
        return any((one.source, one.target) == ends for one in plan.disconnections) or bool(fed and feeding)
    if isinstance(op, Connect):
        behind = {edge.target for edge in base.edges if edge.source == op.source_node_id}
        ahead = {edge.source for edge in base.edges if edge.target == op.target_node_id}
        return bool(behind & ahead & {*plan.removals})
    return False


def _lines(wanted: NamedConnection, graph: GraphIR) -> list[FlowEdge]:
    """Lines of a flow with these ends: those of the named output, if there are any."""
    lines = [
        edge
        for edge in graph.edges
        if (edge.source, edge.target) == (wanted.source, wanted.target) and wanted.input in ("", edge.input_name)
    ]
    return [edge for edge in lines if edge.output_name == wanted.output] or lines


def _not_named(node_id: str, values: Mapping[str, JsonValue], plan: Plan, capability: Capability) -> Iterator[str]:
    """Problems with fields of an existing node that the plan does not name."""
    node = capability.nodes.get(node_id)
    if node is None or node.action != "change" or node.params == "all":
        return
    named = _named(plan, node_id)
    for path, value in values.items():
        if not _is_named(path, named) and not is_setting(path, value):
            fields = ", ".join(sorted(named)) or "none"
            yield f"`{path}` of '{node_id}' is not among the fields that it changes ({fields})"


def _named(plan: Plan, node_id: str) -> set[str]:
    return {value.param for value in plan.values if value.node_id == node_id}


def _is_named(path: str, named: Iterable[str]) -> bool:
    """True if the plan names this field or one that contains it."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in named)


def _runs_code(plan: Plan, node: NodeCapability, node_id: str, schema: NodeSchema) -> bool:
    """True for a new node of a type that runs code, and any node whose planned values hold code."""
    values = [(one.param, one.value) for one in plan.values if one.node_id == node_id]
    runs = (FieldKind.CODE, FieldKind.COMMAND)
    return (node.action != "change" and holds_code(schema)) or any(
        one.kind in runs for path, value in values for one in acting(path, value, schema)
    )


def _reaching_out(
    node_id: str,
    values: Mapping[str, JsonValue],
    schema: NodeSchema | None,
    plan: Plan,
    capability: Capability,
    base: GraphIR,
) -> Iterator[str]:
    """Problems with hosts, code, commands, files, tools and flows in node values that the plan does not allow."""
    known = _known(node_id, plan, schema, base)
    defaults = {entry["name"]: entry.get("default") for entry in schema.input_definitions} if schema else {}
    tools = {one.name for one in capability.tools}
    for path, value in values.items():
        if sets_credential(path, value):
            yield f"`{path}` sets a credential, which only BindCredential may"
        if value == defaults.get(path):
            continue
        for address in reached(path, value, schema):
            if not address.clear:
                yield f"`{path}` holds an address that can be read in more than one way ({_short(address.origin)})"
            elif address.origin not in capability.hosts:
                yield f"`{path}` reaches {_short(address.origin)}"
        for one in acting(path, value, schema):
            writes = one.kind is FieldKind.CODE and one.path == path and node_id in capability.code
            if one.identity not in known and not (writes and "." not in path):
                yield f"`{one.path}` holds {_HOLDS[one.kind]} that it does not name ({_short(one.text)})"
        for tool in tools_in({path: value}):
            if tool not in tools:
                yield f"`{path}` gives the tool {tool}"
        for flow in flows_in({path: value}):
            if flow not in tools:
                yield f"`{path}` starts the flow {flow}"


def _known(node_id: str, plan: Plan, schema: NodeSchema | None, base: GraphIR) -> set[tuple[FieldKind, str]]:
    """Acting values of a node in the plan and in the flow."""
    node = base.node(node_id)
    planned = [(one.param, one.value) for one in plan.values if one.node_id == node_id]
    stored = list(node.inputs.items()) if node else []
    return {one.identity for path, value in [*planned, *stored] for one in acting(path, value, schema)}


def _schema_of(node_id: str, plan: Plan, schemas: Schemas, base: GraphIR) -> NodeSchema | None:
    planned = next((node.node_name for node in plan.nodes if node.node_id == node_id), None)
    stored = next((node.name for node in base.nodes if node.id == node_id), "")
    return schemas.get(planned or stored)


# --- values -----------------------------------------------------------------------------------------------------------


def _places(plan: Plan, before: GraphIR, after: GraphIR) -> dict[str, FlowNode]:
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


def _differ(one: FlowNode, other: FlowNode) -> bool:
    """True if the settings of two states of a node differ; the neighbours of a kept node may change."""
    fields = {*one.inputs, *other.inputs} - {
        name for node in (one, other) for name, value in node.inputs.items() if referenced(value)
    }
    return any(one.inputs.get(name) != other.inputs.get(name) for name in fields)


def _unmet_value(value: PlannedValue, node: FlowNode, former: FlowNode | None) -> str | None:
    steps = parse_path(value.param)
    if steps is None:
        return None
    stored = value_at(node.inputs, steps)
    wanted = value.value
    what = f"`{value.param}` of '{value.node_id}'"
    if value.mode == "append":
        if str(wanted).strip() not in str(stored):
            return f"{what} does not have the text that the plan adds"
        old = value_at(former.inputs, steps) if former else None
        return None if str(old or "").strip() in str(stored) else f"{what} loses the text that was there"
    if node.name == v2.LOOP and value.param == v2.LOOP_TARGET:
        # Code appends the title to the id.
        same = v2.loop_target_id(str(stored)) == v2.loop_target_id(str(wanted))
    else:
        same = held(stored, with_bound(wanted, stored))
    if same:
        return None
    return f"{what} is {_short(stored)}, and the plan says {_short(wanted)}"


def _short(value: Any) -> str:
    text = on_one_line(str(value))
    return f"'{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}'"
