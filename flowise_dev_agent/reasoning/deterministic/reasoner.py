"""The four questions of `Reasoner`, answered by rules over node schemas. No model, no key, no network."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.ops import AddNode, PatchOp, RemoveNode, ReplaceNode, SetLabel, SetParam, UpgradeNode
from flowise_dev_agent.patch.schema import NodeSchema
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    Intent,
    JudgeRequest,
    PatchRequest,
    Pattern,
    PlanContract,
    PlannedNode,
    PlanRequest,
    Reasoned,
    Verdict,
)
from flowise_dev_agent.reasoning.credentials import nested_types, required_types, with_bindings
from flowise_dev_agent.reasoning.deterministic import describing, intents
from flowise_dev_agent.reasoning.deterministic.agentflow import design
from flowise_dev_agent.reasoning.deterministic.copying import as_copy, plain_copy, wish_for_copy
from flowise_dev_agent.reasoning.deterministic.edits import find_edits, further_inputs, missed, pairs_of, renamed
from flowise_dev_agent.reasoning.deterministic.inside import change_inside, is_agentflow, plan_inside
from flowise_dev_agent.reasoning.deterministic.naming import take_names
from flowise_dev_agent.reasoning.deterministic.parameters import SYSTEM_PARAMS, parameters, system_prompt
from flowise_dev_agent.reasoning.deterministic.phrases import say
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read
from flowise_dev_agent.reasoning.deterministic.relay import handed_on, links
from flowise_dev_agent.reasoning.deterministic.seeding import onto_seed, reused_ids
from flowise_dev_agent.reasoning.deterministic.selection import select, unwanted, usable
from flowise_dev_agent.reasoning.deterministic.spoken import spoken_values
from flowise_dev_agent.reasoning.deterministic.wiring import Wiring, wire
from flowise_dev_agent.reasoning.playbook import is_advice
from flowise_dev_agent.reasoning.reasoner import Reasoner

#: Marks a wish of the person among the steps of a plan: later plans and the op writer read it from there.
_WISH = "↪ "
_ERROR_ANSWER = re.compile(
    r"^\s*(error: |missing credentials|cannot read propert|access to this host is denied)", re.IGNORECASE
)
_LONGEST_SHOWN_VALUE = 300


class DeterministicReasoner(Reasoner):
    """Reads requirements by word lists, selects and wires nodes by their schemas.

    The same request always gives the same answer. What it does not recognise it declines, in the person's language.
    """

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        return _reasoned(intents.classify(request))

    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        language = request.intent.language
        if request.intent.operation == "question":
            return _reasoned(_answer(request, language))
        existing = _existing(request)
        if existing and request.intent.operation == "copy":
            wish = wish_for_copy(request.requirement, request.target)
            if wish or request.previous:
                contract = _change(replace(request, requirement=wish), existing, language)
            else:
                contract = plain_copy(request, language)
            return _reasoned(as_copy(contract, request.requirement))
        return _reasoned(_change(request, existing, language) if existing else _create(request, language))

    async def patch(self, request: PatchRequest) -> Reasoned[list[PatchOp]]:
        if request.plan.operation == "copy":
            request = replace(request, requirement=wish_for_copy(request.requirement, request.target))
        schemas = _schemas(request.existing, request.nodes)
        wishes = _wishes(request.plan)
        # The language of the plan, which the person has read.
        language = read(request.requirement).language
        new = {node.node_id: node.node_name for node in request.plan.nodes if node.node_id not in request.existing}
        added = _schemas(new, request.nodes)
        if missing := [name for node_id, name in new.items() if node_id not in added]:
            raise ModelOutputError(f"The plan names nodes that this Flowise does not have: {', '.join(missing)}.")
        reading = _full_reading(request, wishes, request.nodes)
        if is_agentflow(request):
            changed = change_inside(request, wishes or [request.requirement], language)
            ops, wiring = list(changed.ops), Wiring((), (), ())
        elif request.plan.flow_kind == "AGENTFLOW" and not request.existing:
            ops, wiring = _agentflow_ops(request, reading, language), Wiring((), (), ())
        elif request.seed:
            planned = {node.node_id: (schemas | added)[node.node_id] for node in request.plan.nodes}
            ops, wiring = onto_seed(planned, request.seed, reading, language, request.plan.credential_requirements)
        else:
            ops, wiring = _onto_flow(request, wishes, reading, language, added=added, existing=schemas)
        if wiring.unmet or wiring.loose:
            problem = [f"{node}.{anchor}" for node, anchor in wiring.unmet] + list(wiring.loose)
            raise ModelOutputError(f"The rules cannot connect every node of this plan: {', '.join(problem)}.")
        if not ops:
            raise ModelOutputError("The rules find nothing to change for this plan.")
        if len(ops) > request.max_ops:
            raise ModelOutputError(f"The plan takes {len(ops)} ops, at most {request.max_ops} are allowed.")
        return _reasoned(with_bindings(ops, request.nodes.schemas, request.plan.credential_requirements))

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        language = read(request.requirement).language
        notes: list[str] = []
        failed: list[str] = []
        for trial in request.trials:
            if not trial.answer.strip():
                note, wrong = say("note_empty", language), True
            elif _ERROR_ANSWER.match(trial.answer):
                note, wrong = say("note_error", language), True
            else:
                note, wrong = say("note_ok", language, length=len(trial.answer)), False
            notes.append(note)
            if wrong:
                failed.append(f"{trial.question}: {note}")
        if failed:
            return _reasoned(Verdict(done=False, category="LOGIC", reason="; ".join(failed), notes=notes))
        return _reasoned(Verdict(done=True, reason=say("judged", language), notes=notes))


def _onto_flow(
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
        AddNode(node_name=schema.name, node_id=node_id, params=_values(request, node_id, new, reading, language))
        for node_id, schema in new.items()
    ]
    ops += [RemoveNode(node_id=node_id) for node_id in gone]
    ops += [ReplaceNode(node_id=old, node_name=replaced[id_].name, new_node_id=id_) for old, id_ in pairs.items()]
    if stays:
        said = [take_names(text, stays) for text in wishes or [request.requirement]]
        change = _change_reading(request, wishes, "\n".join(text for _, text in said))
        ops += [SetLabel(node_id=id_, label=name) for names, _ in said for id_, name in names.items()]
        ops += [
            SetParam(node_id=node_id, param_name=name, value=value)
            for nodes, asked_only in ((stays, True), (replaced, False))
            for node_id in nodes
            for name, value in _values(request, node_id, nodes, change, language, asked_only=asked_only).items()
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


def _reasoned(value: Any) -> Reasoned[Any]:
    return Reasoned(value, mode="deterministic")


def _create(request: PlanRequest, language: str) -> PlanContract:
    wishes = _wishes(request.previous, request.feedback)
    reading = _full_reading(request, wishes, request.nodes)
    foreign = [names[0] for names in reading.tools if not usable(names, request.nodes)]
    if reading.multi_agent or any(name in request.nodes.schemas for name in foreign):
        return _agentflow(request, reading, foreign, wishes, language)
    unwished = frozenset[str]().union(*(unwanted(wish, request.nodes) for wish in wishes))
    selection = select(reading, request.nodes, request.credential_types, language=language, without=unwished)
    if selection.declined:
        return _declined(request, selection.declined)
    ids = _fresh_ids(selection.names, {}, request.pattern)
    return _contract(request, reading, ids, {}, wishes, language)


def _agentflow(
    request: PlanRequest, reading: Reading, foreign: Sequence[str], wishes: list[str], language: str
) -> PlanContract:
    """A plan for a flow of steps. `foreign` are tools for which a chatflow has no place."""
    made = design(reading, request.nodes, request.credential_types, language)
    if made.declined:
        return _declined(request, made.declined)
    added = {op.node_id: request.nodes.schemas[op.node_name] for op in made.nodes}
    # Steps are built anew: what of another flow's steps fits is a matter of their prompts.
    fresh = replace(request, pattern=None)
    contract = _contract(fresh, reading, {op.node_id: op.node_name for op in made.nodes}, {}, wishes, language)
    labels = {op.node_id: op.label for op in made.nodes if op.label}
    credentials = nested_types(made.nodes, request.nodes.schemas, request.credential_types)
    steps = [say("step_agentflow", language, names=", ".join(foreign))] if foreign and not reading.multi_agent else []
    steps.append(say("step_add", language, nodes=", ".join(labels.get(id_, s.label) for id_, s in added.items())))
    steps += [step for step in contract.steps if step.startswith(_WISH)]
    return contract.model_copy(
        update={
            "flow_kind": "AGENTFLOW",
            "placeholders": [],
            "credential_requirements": credentials,
            "nodes": [
                node.model_copy(update={"purpose": f"{labels[node.node_id]}: {node.purpose}"})
                if node.node_id in labels
                else node
                for node in contract.nodes
            ],
            "steps": [*steps, *(say("step_credential", language, type=name) for name in credentials)],
        }
    )


def _agentflow_ops(request: PatchRequest, reading: Reading, language: str) -> list[PatchOp]:
    """The ops of an approved plan for a flow of steps; the plan of a model may be one that no rule makes."""
    chosen = dict.fromkeys(request.plan.credential_requirements, 1)
    made = design(reading, request.nodes, chosen, language)
    planned = {(node.node_id, node.node_name) for node in request.plan.nodes}
    if made.declined or {(op.node_id, op.node_name) for op in made.nodes} != planned:
        raise ModelOutputError("The rules know no way to build the AgentFlow of this plan.")
    return [*made.nodes, *made.links]


def _change(request: PlanRequest, existing: Mapping[str, NodeSchema], language: str) -> PlanContract:
    """A plan for a flow that is there already: values to set and nodes to add."""
    wish = request.feedback or _fix(request.verdict)
    wishes = _wishes(request.previous, wish)
    if not wish and request.previous is not None:
        reason = request.verdict.reason if request.verdict else ""
        return _declined(request, say("declined_failed", language, reason=reason))
    if is_agentflow(request):
        contract = plan_inside(request, wishes or [request.requirement], language)
        return contract.model_copy(update={"steps": [*contract.steps, *(f"{_WISH}{item}" for item in wishes)]})
    names, text = take_names(wish or request.requirement, existing)
    change = _change_reading(request, wishes, text)
    dropped = unwanted(text, request.nodes)
    edits = find_edits(
        change,
        existing,
        request.nodes,
        request.credential_types,
        dropped=dropped,
        occupied=request.occupied,
        language=language,
    )
    if edits.declined:
        return _declined(request, edits.declined)
    going = [*edits.removed, *edits.replaced]
    stays = {node_id: schema for node_id, schema in existing.items() if node_id not in going}
    new_names = {f"new_{name}": name for name in (*edits.added, *edits.replaced.values())}
    if lacking := missed(edits, existing, {**stays, **_schemas(new_names, request.nodes)}, language):
        return _declined(request, lacking)
    touched = [node_id for node_id in stays if _values(request, node_id, stays, change, language, asked_only=True)]
    touched += [node_id for node_id in names if node_id in stays and node_id not in touched]
    if not touched and not edits.added and not going:
        return _declined(request, say("declined_no_change", language))
    kept = {node_id: schema for node_id, schema in stays.items() if request.previous or node_id in touched}
    ids = _fresh_ids(edits.added, existing)
    if ids:
        new = _schemas(ids, request.nodes)
        partners = wire({**new, **stays}, fixed=list(stays), occupied=request.occupied).connections
        kept |= {op.target_node_id: stays[op.target_node_id] for op in partners if op.target_node_id in stays}
    ids |= _fresh_ids(tuple(edits.replaced.values()), {**existing, **_schemas(ids, request.nodes)})
    contract = _contract(request, change, ids, kept, wishes, language)
    steps = [say("step_remove", language, node=id_, label=existing[id_].label) for id_ in edits.removed] + [
        say(
            "step_replace",
            language,
            node=id_,
            old=existing[id_].label,
            new=request.nodes.schemas[name].label,
        )
        for id_, name in edits.replaced.items()
    ]
    steps += [say("step_set", language, where=f"{id_}.label", value=name) for id_, name in names.items()]
    return contract.model_copy(update={"removals": going, "steps": [*steps, *contract.steps]})


def _fix(verdict: Verdict | None) -> str | None:
    """What a judge wants changed; general advice is none of the person's words and is not read like them."""
    return verdict.fix if verdict and not verdict.done and not is_advice(verdict.fix) else None


def _contract(
    request: PlanRequest,
    reading: Reading,
    new: Mapping[str, str],
    kept: Mapping[str, NodeSchema],
    wishes: list[str],
    language: str,
) -> PlanContract:
    added = _schemas(new, request.nodes)
    values = [
        (f"{node_id}.{name}", value)
        for nodes, asked_only in ((added, False), (kept, True))
        for node_id in nodes
        for name, value in _values(request, node_id, nodes, reading, language, asked_only=asked_only).items()
    ]
    changed = [
        SetParam(node_id=place.partition(".")[0], param_name=place.partition(".")[2], value=v) for place, v in values
    ]
    credentials = required_types(added.values(), request.credential_types)
    credentials += nested_types(changed, request.nodes.schemas, request.credential_types) if kept else []
    steps = [say("step_add", language, nodes=", ".join(schema.label for schema in added.values()))] if added else []
    steps += [_value_step(where, value, language) for where, value in values]
    steps += [say("step_credential", language, type=name) for name in credentials]
    nodes = {**kept, **added}
    return PlanContract(
        goal=say(
            "goal_change" if kept else "goal",
            language,
            requirement=describing.short(wishes[-1] if wishes and kept else request.requirement),
        ),
        operation=request.intent.operation,
        flow_name=request.previous.flow_name if request.previous else request.intent.title,
        nodes=[
            PlannedNode(
                node_id=node_id,
                node_name=schema.name,
                purpose=describing.purpose(schema, language),
                existing=node_id in kept or _in_pattern(request, node_id, schema),
            )
            for node_id, schema in nodes.items()
        ],
        steps=steps + [f"{_WISH}{wish}" for wish in wishes],
        credential_requirements=_merged(request, credentials),
        success_criteria=describing.criteria(reading, added or nodes, language),
        test_questions=describing.questions(reading, nodes, language),
        placeholders=describing.placeholders(dict(values)),
    )


def _values(
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
    values |= spoken_values(schema, reading.text)
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


def _in_pattern(request: PlanRequest, node_id: str, schema: NodeSchema) -> bool:
    return request.pattern is not None and request.pattern.nodes.get(node_id) == schema.name


def _merged(request: PlanRequest, credentials: list[str]) -> list[str]:
    """Credentials that an earlier plan of this flow needed are still needed."""
    earlier = request.previous.credential_requirements if request.previous and _existing(request) else []
    return list(dict.fromkeys([*earlier, *credentials]))


def _value_step(where: str, value: Any, language: str) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(shown) > _LONGEST_SHOWN_VALUE:
        return say("step_set_long", language, where=where, length=len(shown))
    return say("step_set", language, where=where, value=shown)


def _declined(request: PlanRequest, reason: str) -> PlanContract:
    return PlanContract(
        goal=describing.short(request.requirement),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        declined=reason,
    )


def _answer(request: PlanRequest, language: str) -> PlanContract:
    known = request.flow_summary
    return PlanContract(
        goal=describing.short(request.requirement),
        operation="question",
        flow_name=request.intent.title,
        answer=say("answer_flow", language, summary=known) if known else say("answer_none", language),
    )


def _full_reading(request: PlanRequest | PatchRequest, wishes: list[str], store: NodeStore) -> Reading:
    """The requirement with everything that was said since; of contradicting words the later ones count."""
    answers = [answer for _, answer in request.clarifications]
    reading = read("\n".join([request.requirement, *answers, *wishes]), store)
    if answers and not (reading.persona.role or reading.persona.behaviour or reading.persona.prompt):
        # An answer to "what should it help with?" is rarely a whole sentence about the bot.
        reading = replace(reading, persona=replace(reading.persona, behaviour=tuple(answers)))
    return reading


def _change_reading(request: PlanRequest | PatchRequest, wishes: list[str], text: str) -> Reading:
    """What `text` asks to change. The system prompt of a flow of our own is put together anew, role and all wishes."""
    change = read(text, request.nodes)
    operation = request.plan.operation if isinstance(request, PatchRequest) else request.intent.operation
    persona = change.persona
    if operation == "create" and (persona.role or persona.behaviour) and not persona.prompt:
        return replace(change, persona=_full_reading(request, wishes, request.nodes).persona)
    return change


def _wishes(plan: PlanContract | None, new: str | None = None) -> list[str]:
    earlier = [step.removeprefix(_WISH) for step in plan.steps if step.startswith(_WISH)] if plan else []
    return list(dict.fromkeys([*earlier, new] if new else earlier))


def _existing(request: PlanRequest) -> dict[str, NodeSchema]:
    """The nodes of the flow that is there, {} when there is none yet."""
    names = dict(request.existing)
    if not names and request.flow_summary and request.previous:
        names = {node.node_id: node.node_name for node in request.previous.nodes}
    return _schemas(names, request.nodes)


def _schemas(names: Mapping[str, str], store: NodeStore) -> dict[str, NodeSchema]:
    return {node_id: schema for node_id, name in names.items() if (schema := store.get(name))}


def _fresh_ids(
    names: Sequence[str], existing: Mapping[str, NodeSchema], pattern: Pattern | None = None
) -> dict[str, str]:
    ids: dict[str, str] = {}
    for name, reused in zip(names, reused_ids(names, pattern), strict=True):
        if reused is not None:
            ids[reused] = name
            continue
        number = 0
        while (node_id := f"{name}_{number}") in ids or node_id in existing or (pattern and node_id in pattern.nodes):
            number += 1
        ids[node_id] = name
    return ids
