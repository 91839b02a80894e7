"""The ops of a plan by rules, for what is new, what stays and what takes the place of something."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.patch import (
    AddNode,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetParam,
    UpgradeNode,
)
from flowise_dev_agent.reasoning.contracts import (
    PatchRequest,
)
from flowise_dev_agent.reasoning.deterministic.agentflow import design
from flowise_dev_agent.reasoning.deterministic.chaining import links
from flowise_dev_agent.reasoning.deterministic.change_requests import change_reading, values_of
from flowise_dev_agent.reasoning.deterministic.edits import further_inputs, pairs_of, renamed
from flowise_dev_agent.reasoning.deterministic.naming import take_names
from flowise_dev_agent.reasoning.deterministic.parameters import SYSTEM_PARAMS, system_prompt
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.wiring import Wiring, wire


def onto_flow(
    request: PatchRequest,
    wishes: list[str],
    reading: Reading,
    language: str,
    *,
    added: Mapping[str, NodeSchema],
    existing: Mapping[str, NodeSchema],
) -> tuple[list[PatchOp], Wiring]:
    """The ops that add, set, replace and remove what is asked for, in an empty flow or in a person's."""
    pairs = pairs_of(request.plan, existing, added)
    gone = [node_id for node_id in request.plan.removals if node_id in request.existing and node_id not in pairs]
    replaced = {id_: added[id_] for id_ in pairs.values()}
    new = {id_: schema for id_, schema in added.items() if id_ not in replaced}
    stays = {id_: schema for id_, schema in existing.items() if id_ not in request.plan.removals}
    ops: list[PatchOp] = [
        AddNode(node_name=schema.name, node_id=node_id, params=values_of(request, node_id, new, reading, language))
        for node_id, schema in new.items()
    ]
    ops += [RemoveNode(node_id=node_id) for node_id in gone]
    ops += [ReplaceNode(node_id=old, node_name=replaced[id_].name, new_node_id=id_) for old, id_ in pairs.items()]
    if stays:
        said = [take_names(text, stays) for text in wishes or [request.requirement]]
        change = change_reading(request, wishes, "\n".join(text for _, text in said))
        ops += [SetLabel(node_id=id_, label=name) for names, _ in said for id_, name in names.items()]
        ops += [
            SetParam(node_id=node_id, param_name=name, value=value)
            for nodes, asked_only in ((stays, True), (replaced, False))
            for node_id in nodes
            for name, value in values_of(request, node_id, nodes, change, language, asked_only=asked_only).items()
        ]
    ops += _prompts_moved(request, pairs, existing, added, reading, ops, language)
    # A field that the stored version of a node does not have yet comes with its upgrade.
    old = [f.where for f in request.findings if f.code == "UNKNOWN_PARAM" and f.where in stays]
    ops[:0] = [UpgradeNode(node_id=node_id) for node_id in dict.fromkeys(old)]
    present = {**stays, **replaced}
    for old, id_ in pairs.items():
        ops += further_inputs(id_, existing[old], present)
    wiring = wire({**new, **present}, fixed=list(present), occupied=renamed(request.occupied, pairs))
    ops += [c for c in wiring.connections if c.source_node_id in new or c.target_node_id in new]
    return [*ops, *links(new)], wiring


def _prompts_moved(
    request: PatchRequest,
    pairs: Mapping[str, str],
    existing: Mapping[str, NodeSchema],
    added: Mapping[str, NodeSchema],
    reading: Reading,
    ops: Sequence[PatchOp],
    language: str,
) -> list[PatchOp]:
    """The system prompt of a chain or an agent goes on with what takes its place, under the name that it has there."""
    found: list[PatchOp] = []
    for old, new in pairs.items():
        target = next((p.name for p in added[new].params if p.name in SYSTEM_PARAMS), None)
        source = next((p.name for p in existing[old].params if p.name in SYSTEM_PARAMS), None)
        given = any(isinstance(op, SetParam) and (op.node_id, op.param_name) == (new, target) for op in ops)
        if target is None or source in (None, target) or given:
            continue
        own = system_prompt(reading, language) if request.plan.operation == "create" else None
        if text := request.texts.get(f"{old}.{source}") or own:
            found.append(SetParam(node_id=new, param_name=target, value=text))
    return found


def agentflow_ops(request: PatchRequest, reading: Reading, language: str) -> list[PatchOp]:
    """The ops of an approved plan for a flow of steps; the plan of a model may be one that no rule makes."""
    chosen = dict.fromkeys(request.plan.credential_requirements, 1)
    made = design(reading, request.nodes, chosen, language)
    planned = {(node.node_id, node.node_name) for node in request.plan.nodes}
    if made.declined or {(op.node_id, op.node_name) for op in made.nodes} != planned:
        raise ModelOutputError("The rules know no way to build the AgentFlow of this plan.")
    return [*made.nodes, *made.links]
