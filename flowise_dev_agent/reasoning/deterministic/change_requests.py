"""What a person has asked for so far, read together: the requirement, answers, and wishes kept in the plan."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.deterministic.chaining import handed_on
from flowise_dev_agent.reasoning.deterministic.field_values import field_values
from flowise_dev_agent.reasoning.deterministic.parameters import SYSTEM_PARAMS, parameters
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read

#: Marks a wish of the person among the steps of a plan: later plans and the op writer read it from there.
WISH: Final = "↪ "


def wishes_of(plan: PlanContract | None, new: str | None = None) -> list[str]:
    """What was asked for after the requirement, oldest first, each once."""
    earlier = [step.removeprefix(WISH) for step in plan.steps if step.startswith(WISH)] if plan else []
    return list(dict.fromkeys([*earlier, new] if new else earlier))


def full_reading(request: PlanRequest | PatchRequest, wishes: list[str], store: NodeStore) -> Reading:
    """The requirement with everything that was said since; of contradicting words the later ones count."""
    answers = [answer for _, answer in request.clarifications]
    reading = read("\n".join([request.requirement, *answers, *wishes]), store)
    if answers and not (reading.persona.role or reading.persona.behaviour or reading.persona.prompt):
        # An answer to "what should it help with?" is rarely a whole sentence about the bot.
        reading = replace(reading, persona=replace(reading.persona, behaviour=tuple(answers)))
    return reading


def change_reading(request: PlanRequest | PatchRequest, wishes: list[str], text: str) -> Reading:
    """What `text` asks to change. The system prompt of a flow of our own is put together anew, role and all wishes."""
    change = read(text, request.nodes)
    operation = request.plan.operation if isinstance(request, PatchRequest) else request.intent.operation
    persona = change.persona
    if operation == "create" and (persona.role or persona.behaviour) and not persona.prompt:
        return replace(change, persona=full_reading(request, wishes, request.nodes).persona)
    return change


def values_of(
    request: PlanRequest | PatchRequest,
    node_id: str,
    nodes: Mapping[str, NodeSchema],
    reading: Reading,
    language: str,
    *,
    asked_only: bool = False,
) -> dict[str, Any]:
    """As `parameters`; a way to behave is added to a prompt that a person wrote and does not take its place."""
    alike = [id_ for id_, schema in nodes.items() if schema.name == nodes[node_id].name]
    ordinal = alike.index(node_id)
    schema = nodes[node_id]
    values = parameters(schema, reading, language=language, asked_only=asked_only, ordinal=ordinal)
    values |= field_values(schema, reading.text)
    if not asked_only:
        return values | handed_on(nodes, node_id)
    theirs = {name: request.texts.get(f"{node_id}.{name}", "").strip() for name in (*SYSTEM_PARAMS, "template")}
    if schema.name == "promptTemplate" and reading.prompt_text:
        values["template"] = reading.prompt_text
    if reading.persona.prompt or reading.persona.role:
        return values
    behaviour = " ".join(reading.persona.behaviour)
    if schema.name == "promptTemplate" and behaviour and theirs["template"] and behaviour not in theirs["template"]:
        values.setdefault("template", f"{behaviour}\n{theirs['template']}")
    for name in SYSTEM_PARAMS:
        if name in values and theirs[name] and str(values[name]) not in theirs[name]:
            values[name] = f"{theirs[name]}\n{values[name]}"
    return values


def existing_nodes(request: PlanRequest) -> dict[str, NodeSchema]:
    """The nodes of the flow that is there, {} when there is none yet."""
    names = dict(request.existing)
    if not names and request.flow_summary and request.previous:
        names = {node.node_id: node.node_name for node in request.previous.nodes}
    return schemas_of(names, request.nodes)


def schemas_of(names: Mapping[str, str], store: NodeStore) -> dict[str, NodeSchema]:
    """Node id -> schema, from node id -> name; without types that the server does not have."""
    return {node_id: schema for node_id, name in names.items() if (schema := store.get(name))}
