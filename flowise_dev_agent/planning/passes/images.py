"""Attached images: the flow's models receive them, and its tests send them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from flowise_dev_agent.flowise.models import ImageUpload
from flowise_dev_agent.patch import GraphIR, NodeSchema, Schemas
from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

#: Code of a finding on images that no model of the flow would see.
IMAGES_UNSEEN: Final = "IMAGES_UNSEEN"
MODEL_BLIND: Final = "MODEL_WITHOUT_IMAGES"
_SEEING: Final = (
    "Images reach models such as chatOpenAI, chatAnthropic or chatGoogleGenerativeAI behind a conversationChain, "
    "llmChain or toolAgent, and the LLM and agent steps of agentflows."
)
_SWITCH: Final = "allowImageUploads"
_MODELS: Final = frozenset({"modelName", "model"})
#: Chains and agents that hand images on to their model (Flowise 3.1.4).
_ENDS: Final = frozenset(
    {"llmChain", "conversationChain", "reactAgentChat", "conversationalAgent", "toolAgent", "supervisor", "seqStart"}
)
#: AgentFlow node types that accept images, and their model fields.
_STEPS: Final = {
    "llmAgentflow": ("llmModel", "llmModelConfig"),
    "agentAgentflow": ("agentModel", "agentModelConfig"),
    "conditionAgentAgentflow": ("conditionAgentModel", "conditionAgentModelConfig"),
}
_ALLOWED: Final = re.compile(rf'"{_SWITCH}":\s*true')
#: Models known not to accept images.
_BLIND: Final = re.compile(
    r"gpt-3\.5|gpt-4(?:-\d{4}(?:-preview)?|-32k)?$|o1-(?:mini|preview)|o3-mini|claude-(?:2|instant)|deepseek|mistral-tiny",
    re.IGNORECASE,
)


def images(context: PlanContext) -> PlanContext:
    """Let the models of the flow receive the attached images."""
    plan = with_images(
        context.plan, context.base, context.schemas, context.request.attachments, " ".join(context.words)
    )
    return context.having(plan)


def with_images(plan: Plan, base: GraphIR, schemas: Schemas, attachments: Sequence[AttachmentFacts], said: str) -> Plan:
    """Enable image uploads where the models accept them. A model known not to accept images is replaced by its node's
    default, unless the person named it; a finding reports a flow without a suitable model.
    """
    images = [one.name for one in attachments if one.kind == "image"]
    if not images or plan.declined or plan.answer is not None:
        return plan
    plan = plan.model_copy(
        update={"findings": [one for one in plan.findings if one.code not in (IMAGES_UNSEEN, MODEL_BLIND)]}
    )
    places = [*_in_steps(plan, base, schemas)] if plan.flow_kind == "AGENTFLOW" else [*_in_chat(plan, base, schemas)]
    kept: list[PlannedValue] = []
    blind: list[str] = []
    for value in plan.values:
        place = next(((id_, prefix) for id_, prefix in places if id_ == value.node_id), None)
        is_model = place is not None and value.param in {f"{place[1]}{name}" for name in _MODELS}
        if is_model and _BLIND.search(str(value.value)):
            if str(value.value).casefold() not in said.casefold():
                continue
            blind.append(str(value.value))
        kept.append(value)
    switches = [PlannedValue(node_id=id_, param=f"{prefix}{_SWITCH}", value=True) for id_, prefix in places]
    known = {(one.node_id, one.param) for one in switches}
    findings = [
        error(MODEL_BLIND, f"The model {name} does not see images.", hint=_SEEING, model=name) for name in blind
    ]
    if not blind and not places:
        shown = ", ".join(images)
        findings = [error(IMAGES_UNSEEN, f"No model of this flow would see {shown}.", hint=_SEEING, images=shown)]
    values = [*(one for one in kept if (one.node_id, one.param) not in known), *switches]
    return plan.model_copy(update={"values": values, "findings": [*plan.findings, *findings]})


async def uploads(files: SessionFiles | None, flow_data: str) -> list[ImageUpload]:
    """Images of the session as uploads; empty if the flow accepts none."""
    if files is None or not _ALLOWED.search(flow_data):
        return []
    found: list[ImageUpload] = []
    for one in await files.facts():
        content = await files.content(one.name) if one.kind == "image" else None
        if content is not None:
            found.append(ImageUpload(one.name, content[0], content[1]))
    return found


def _in_chat(plan: Plan, base: GraphIR, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """Yield (node, field prefix) of the models of a chatflow that accept images."""
    nodes = [(node.node_id, node.node_name) for node in plan.nodes if not node.existing]
    nodes += [(node.id, node.name) for node in base.nodes if node.id not in plan.removals]
    if any(name in _ENDS for _, name in nodes):
        for id_, name in dict(nodes).items():
            if _takes_images(schemas.get(name)):
                yield id_, ""


def _in_steps(plan: Plan, base: GraphIR, schemas: Schemas) -> Iterator[tuple[str, str]]:
    chosen = {(one.node_id, one.param): str(one.value) for one in plan.values}
    steps = {node.node_id: node.node_name for node in plan.nodes if not node.existing}
    stays = {node.id: node for node in base.nodes if node.id not in plan.removals}
    for id_, name in {**{id_: node.name for id_, node in stays.items()}, **steps}.items():
        if name in _STEPS:
            field, config = _STEPS[name]
            model = chosen.get((id_, field)) or (str(stays[id_].inputs.get(field)) if id_ in stays else "")
            if _takes_images(schemas.get(model)):
                yield id_, f"{config}."


def _takes_images(schema: NodeSchema | None) -> bool:
    return schema is not None and any(entry["name"] == _SWITCH for entry in schema.input_definitions)
