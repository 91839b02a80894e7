"""Capability of a plan: the set of nodes, addresses, credential types, code, tools and lines that its approval grants.

Code makes it from the plan, and compares it with what was agreed before.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from flowise_dev_agent.approval.lines import before_approval, line_changes
from flowise_dev_agent.patch import (
    GraphIR,
    NodeSchema,
    Schemas,
)
from flowise_dev_agent.patch.model.attached_files import is_filled
from flowise_dev_agent.patch.model.field_kinds import FieldKind
from flowise_dev_agent.patch.model.json_text import dump_json, payload_sha256
from flowise_dev_agent.patch.model.reach import (
    Acting,
    acting,
    flows_in,
    holds_code,
    reached,
    tools_in,
)
from flowise_dev_agent.patch.model.schema import CREDENTIALS_FOR_ANY_ADDRESS
from flowise_dev_agent.schemas.custom_tools import PlannedTool
from flowise_dev_agent.schemas.plan import (
    Capability,
    CredentialBinding,
    NodeCapability,
    Plan,
    ToolBinding,
)

_T = TypeVar("_T")
_TOOLS: Final = frozenset({"Tools", "Tools (MCP)"})


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
        for given in plan.values_and_code
        for one in acting(given.param, given.value, planned.get(given.node_id))
    ]
    inside = {id_ for id_, one in acts if one.kind is FieldKind.CODE}
    called = {
        one for given in plan.values_and_code for one in reached(given.param, given.value, planned.get(given.node_id))
    }
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
            *([f"starters:{_hash_of(plan.starter_questions)}"] if plan.starter_questions is not None else []),
            *map(effect_of, plan.new_tools),
        ],
        lines=line_changes(plan, base, schemas),
        before_approval=before_approval(plan, base, schemas),
    )


def effect_of(tool: PlannedTool) -> str:
    """Effect by which an approval covers a new tool, exactly as it is."""
    return f"tool:{tool.key}"


def _texts(found: Iterable[tuple[str, Acting]], kind: FieldKind) -> list[str]:
    return sorted({one.text for _, one in found if one.kind is kind})


def _filled(plan: Plan, planned: Mapping[str, NodeSchema | None]) -> list[str]:
    """Ids of the plan's vector stores that receive new or changed documents."""
    changed = {node.node_id for node in plan.nodes if not node.existing} | {value.node_id for value in plan.values}
    loads = any(one and one.category == "Document Loaders" for id_, one in planned.items() if id_ in changed)
    return [
        id_ for id_, one in planned.items() if loads and one and one.category == "Vector Stores" and is_filled(one.name)
    ]


def _runs_code(plan: Plan, node: NodeCapability, node_id: str, schema: NodeSchema) -> bool:
    """True for a new node of a type that runs code, and any node whose planned values hold code."""
    values = [(one.param, one.value) for one in plan.values_and_code if one.node_id == node_id]
    runs = (FieldKind.CODE, FieldKind.COMMAND)
    return (node.action != "change" and holds_code(schema)) or any(
        one.kind in runs for path, value in values for one in acting(path, value, schema)
    )


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
            "lines": [*agreed.lines, *_beyond(capability.lines, agreed.lines)],
            "before_approval": sorted({*capability.before_approval, *agreed.before_approval}),
        }
    )


def beyond_approval(capability: Capability, agreed: Capability) -> Capability | None:
    """Part of `capability` that `agreed` does not cover; None if all of it is covered."""
    beyond = Capability(
        nodes={id_: node for id_, node in capability.nodes.items() if not _covers(agreed.nodes.get(id_), node)},
        hosts=_beyond(capability.hosts, agreed.hosts),
        commands=_beyond(capability.commands, agreed.commands),
        files=_beyond(capability.files, agreed.files),
        credentials=_beyond(capability.credentials, agreed.credentials),
        code=_beyond(capability.code, agreed.code),
        tools=_beyond(capability.tools, agreed.tools),
        effects=_beyond(capability.effects, agreed.effects),
        lines=_beyond(capability.lines, agreed.lines),
        before_approval=_beyond(capability.before_approval, agreed.before_approval),
    )
    return None if beyond == Capability() else beyond


def _hash_of(texts: Sequence[str]) -> str:
    return payload_sha256(dump_json([*texts]))


def _beyond(wanted: Iterable[_T], agreed: Iterable[_T]) -> list[_T]:
    known = {*agreed}
    return [one for one in wanted if one not in known]


def _covers(agreed: NodeCapability | None, wanted: NodeCapability) -> bool:
    if agreed is None or (wanted.node_name and agreed.node_name and wanted.node_name != agreed.node_name):
        return False
    if wanted.action == "change":
        # A node that this session added is in the flow by the next iteration.
        settled = agreed.action in ("add", "replace", "change")
        return settled and (agreed.params == "all" or set(wanted.params) <= set(agreed.params))
    return wanted.action == agreed.action
