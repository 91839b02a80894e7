"""Changes of agentflows by rules: what stands inside their nodes, models with their values, instructions and tools."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from flowise_dev_agent.patch import BindCredential, PatchOp, SetLabel, SetParam
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY
from flowise_dev_agent.reasoning.contracts import PatchRequest, PlanContract, PlannedNode, PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.deterministic import describing
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.naming import take_names
from flowise_dev_agent.reasoning.deterministic.parameters import parameters, system_prompt
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read
from flowise_dev_agent.reasoning.deterministic.text import mentioned
from flowise_dev_agent.reasoning.deterministic.toolbox import LackingError, Toolbox, is_tool
from flowise_dev_agent.reasoning.phrases import say

_MODELS = "Chat Models"
_SYSTEM_TEXT = ("Messages[0].content",)


@dataclass(frozen=True)
class Inside:
    """The ops for a wish with the nodes that they change, in words, and the credential types that they need; or the
    sentence that says why the rules cannot do what is asked."""

    ops: Sequence[PatchOp] = ()
    steps: Sequence[str] = ()
    credentials: Sequence[str] = ()
    declined: str | None = None


def is_agentflow(request: PlanRequest | PatchRequest) -> bool:
    """Whether the flow that is there is an agentflow with something inside its nodes."""
    names = request.existing.values()
    return bool(request.inside) and any(
        schema.category == AGENTFLOW_CATEGORY for name in names if (schema := request.nodes.get(name))
    )


def change_inside(request: PlanRequest | PatchRequest, texts: Sequence[str], language: str) -> Inside:
    """What `texts`, the wishes in the order in which they were said, ask for; the flow may hold all but the last."""
    ops: list[PatchOp] = []
    toolbox = Toolbox(request.agents, request.nodes, dict.fromkeys(_at_hand(request), 1), language)
    schemas = {id_: schema for id_, name in request.existing.items() if (schema := request.nodes.get(name))}
    texts = [text for text in texts if text.strip()]
    for number, said in enumerate(texts, start=1):
        names, text = take_names(said, schemas)
        change = read(text, request.nodes)
        try:
            tooled = toolbox.change(text, change, done_before=number < len(texts))
        except LackingError as lacking:
            return Inside(declined=str(lacking))
        if tooled:
            # Who gets a tool is no role to play.
            change = replace(change, persona=replace(change.persona, role=None))
        values = [*_models(request, change, language), *_instructions(request, change, language)]
        if _beyond(request, text, change, tooled=tooled) or not (values or names or tooled):
            return Inside(declined=say("declined_inside", language))
        ops += [*values, *(SetLabel(node_id=node_id, label=name) for node_id, name in names.items())]
    steps = [*toolbox.steps(), *(_step(op, language) for op in ops if isinstance(op, SetParam | SetLabel))]
    ops += toolbox.ops()
    if not ops:
        return Inside(declined=say("declined_as_it_is", language))
    needed = [op.credential_type for op in ops if isinstance(op, BindCredential) and op.credential_type]
    return Inside(ops, steps, tuple(dict.fromkeys(needed)))


def plan_inside(request: PlanRequest, texts: Sequence[str], language: str) -> PlanContract:
    """The plan for these changes, or one that declines."""
    found = change_inside(request, texts, language)
    if found.declined:
        return PlanContract(
            goal=describing.short(request.requirement),
            operation=request.intent.operation,
            flow_name=request.intent.title,
            declined=found.declined,
        )
    changed = [op.node_id for op in found.ops if isinstance(op, SetParam | SetLabel)]
    # What an earlier plan of this flow listed stays in it.
    planned = request.previous.nodes if request.previous else []
    earlier = [node.node_id for node in planned if node.node_id in request.existing]
    return PlanContract(
        goal=say("goal_change", language, requirement=describing.short(texts[-1])),
        operation=request.intent.operation,
        flow_kind="AGENTFLOW",
        flow_name=request.previous.flow_name if request.previous else request.intent.title,
        nodes=[
            PlannedNode(
                node_id=node_id,
                node_name=request.existing[node_id],
                purpose=describing.purpose(request.nodes.schemas[request.existing[node_id]], language),
                existing=True,
            )
            for node_id in dict.fromkeys([*earlier, *changed])
        ],
        steps=[*found.steps, *(say("step_credential", language, type=name) for name in found.credentials)],
        credential_requirements=list(found.credentials),
    )


def _step(op: SetParam | SetLabel, language: str) -> str:
    name, value = (op.param_name, op.value) if isinstance(op, SetParam) else ("label", op.label)
    return say("step_set", language, where=f"{op.node_id}.{name}", value=describing.short(str(value)))


def _at_hand(request: PlanRequest | PatchRequest) -> Collection[str]:
    """The credential types that may be used: those of the instance, then those that the plan was approved with."""
    return request.credential_types if isinstance(request, PlanRequest) else request.plan.credential_requirements


def _models(request: PlanRequest | PatchRequest, change: Reading, language: str) -> list[PatchOp]:
    """The values that are asked for, of each model inside; another model where one of another provider is named."""
    wanted = request.nodes.get(change.provider.chat) if change.provider else None
    ops: list[PatchOp] = []
    for place, component in request.inside.items():
        node_id, _, path = place.partition(".")
        schema = request.nodes.get(component)
        if schema is None or schema.category != _MODELS:
            continue
        other = wanted is not None and wanted.name != schema.name
        if wanted is not None and other:
            ops.append(SetParam(node_id=node_id, param_name=path.removesuffix("Config"), value=wanted.name))
            needed = credential_type(wanted, _at_hand(request))
            if needed:
                ops.append(BindCredential(node_id=node_id, credential_type=needed, path=path))
            schema = wanted
        values = parameters(schema, change, language=language, asked_only=not other)
        ops += [SetParam(node_id=node_id, param_name=f"{path}.{name}", value=value) for name, value in values.items()]
    return ops


def _instructions(request: PlanRequest | PatchRequest, change: Reading, language: str) -> list[PatchOp]:
    """A way to behave, behind the instructions that the one model has; of several the rules do not choose."""
    prompt = system_prompt(change, language)
    places = [place for place in request.texts if place.endswith(_SYSTEM_TEXT)]
    if not prompt or len(places) != 1:
        return []
    (place,) = places
    text = request.texts[place]
    if prompt in text:
        return []
    node_id, _, path = place.partition(".")
    # The editor of agentflows keeps texts as HTML.
    added = f"{text}<p>{prompt}</p>" if text.lstrip().startswith("<p") else f"{text}\n{prompt}"
    return [SetParam(node_id=node_id, param_name=path, value=added)]


def _beyond(request: PlanRequest | PatchRequest, text: str, change: Reading, *, tooled: bool) -> bool:
    """Whether more is asked for than the rules can do inside a node: half of a wish is not carried out."""
    others = [name for name in change.requested if not is_tool(request.nodes.get(name))]
    parts = change.memory or change.no_memory or change.knowledge or others or change.unknown
    return bool(parts) or (mentioned(text, words.REMOVE) and change.provider is None and not tooled)
