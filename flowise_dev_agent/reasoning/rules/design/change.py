"""The design of a change: of a flow that is there, or of a plan that was not written yet."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, Part, PlanContract, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY
from flowise_dev_agent.patch.model.nested import value_at
from flowise_dev_agent.patch.validate.limits import BOUNDS
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.playbook import is_advice
from flowise_dev_agent.reasoning.rules.design import build, naming, parts, prompt, providers, wording
from flowise_dev_agent.reasoning.rules.design.reading import DOCUMENTS, Reading, read
from flowise_dev_agent.reasoning.rules.design.rewording import whole as whole_word
from flowise_dev_agent.reasoning.rules.design.selection import TOOL, Edits, find_edits, tool_row, unwanted
from flowise_dev_agent.reasoning.rules.design.values import Said, exchanged, parameters, prompt_field
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, pattern, words
from flowise_dev_agent.reasoning.rules.language.text import Span, mentions, normalised, signals, squeeze, to_number
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.wiring import ENDING_CATEGORIES, wire

_MODELS = "Chat Models"
_SYSTEM_TEXT = "Messages[0].content"
_ORDINALS = ("first", "second", "third")
_APPENDED = pattern("about", "appended")
_TITLE_WORD = re.compile(r"[^\W\d_]{3,}")
_CLAUSE_END = re.compile(r"[.;!?\n](?:\s|$)")
_REPLY, _HUMAN, _AGENT = "directReplyAgentflow", "humanInputAgentflow", "agentAgentflow"
#: What people call a node of a kind; the title alone names none of several.
_ANY = frozenset({"agent", "llm", "model", "start"})


def wish_of(request: PlanRequest) -> str | None:
    """What is to be different: the person's feedback or a judge's, else the requirement of a first plan."""
    if request.feedback:
        return normalised(request.feedback)
    if request.previous is None:
        # What was said to a plan that is gone still holds.
        return normalised("\n".join([build.asked(request.requirement, request.clarifications).text, *request.later]))
    verdict = request.verdict
    # General advice is none of the person's words and is not read like them.
    fix = verdict.fix if verdict and not verdict.done else ""
    return normalised(fix) if fix and not is_advice(fix) else None


def design_change(request: PlanRequest, wish: str, world: World) -> Design:
    """A change of the chatflow that `request` brings along, else of its previous plan. Raises DeclinedError."""
    planned, pending, there = request.previous, _pending(request), dict(request.existing)
    if planned and pending:
        # What was planned and is not written yet counts as there.
        there |= {node.node_id: node.node_name for node in planned.nodes}
        there = {id_: name for id_, name in there.items() if id_ not in planned.removals}
    existing = world.schemas(there)
    wish, kept = naming.without_kept(_APPENDED.sub("", naming.without_scope(wish)))
    renames = request.existing and request.intent.operation != "copy"
    new_name, wish = naming.take_flow_name(wish) if renames else ("", wish)
    titles = {label.casefold() for label in request.labels.values()}
    if words("rename").search(wish) or wish.partition("→")[0].strip().casefold() in titles:
        raise world.decline("declined_node_name")
    if wording.says_nothing(wish) and not new_name:
        question = world.say("question_different")
        if not (wish := normalised(dict(request.clarifications).get(question, ""))):
            raise DeclinedError(question)
    change = _read(request, wish, world)
    change = replace(change, no_memory=change.no_memory or "bufferMemory" in unwanted(change.text, world))
    wired = {f"{op.target_node_id}.{op.target_anchor}" for op in wire(existing).connections} if pending else set[str]()
    occupied = request.occupied | wired
    inside = any(schema.category == AGENTFLOW_CATEGORY for schema in existing.values())
    edits = Edits() if inside else find_edits(change, existing, occupied, world)
    asked_first, links, cuts = _approval(request, change)
    if asked_first:
        change, edits = replace(change, spans=(*change.spans, asked_first)), replace(edits, added=(_HUMAN,))
    going = [*edits.removed, *edits.replaced]
    stays = {id_: schema for id_, schema in existing.items() if id_ not in going}
    ids = build.fresh_ids(edits.added, existing)
    ids |= build.fresh_ids(tuple(edits.replaced.values()), {**existing, **ids})
    added = world.schemas(ids)
    values = [*build.values_of(added, change, "", world), *_models(request, change, wish, world)]
    for id_, schema in _meant(request, stays, wish, world).items():
        own = parameters(schema, Said(change), language=world.language, asked_only=True)
        values += [PlannedValue(node_id=id_, param=name, value=value) for name, value in own.items()]
    own, come, out = _own_tools(request, change, wish, world)
    values += own
    ranged = _in_range(request, values, world)
    spans = build.spans_of(change, {**stays, **added, **world.schemas(request.inside)})
    gone = [*out, *(existing[node_id] for node_id in going)]
    places, chosen = _prompts(request, change, {**stays, **added}, wish, world)
    moved = _moved(request, edits, existing, added, world)
    ranged = [one for one in ranged if (one.node_id, one.param) not in [(two.node_id, two.param) for two in moved]]
    places |= {f"{value.node_id}.{value.param}": str(value.value) for value in moved}
    # What is quoted may be the value of a field.
    said = wording.pieces(change.text, spans, beside=bool(new_name), copied=request.intent.operation == "copy")
    wishes = wording.lines(change.text, said, {str(one.value) for one in values})
    texts, steps, written = wording.worded(request, wishes, change, places, chosen, world)
    spoken, told = "\n".join(written), [(one.node_id, one.param) for one in texts]
    texts = [*(value for value in moved if (value.node_id, value.param) not in told), *texts]
    ranged, values = [*ranged, *texts], [*values, *texts]
    for node_id in (*going, *(value.node_id for value in values)):
        if (schema := existing.get(node_id)) and schema.category in kept and node_id in request.existing:
            raise world.decline("declined_kept", label=schema.label)
    written += [str(one.value) for one in (*values, *ranged) if one not in texts]
    # What a field held before is often named, too.
    nodes = (request.base.node(one.node_id) if request.base else None for one in values)
    written += [str(node.inputs.get(one.param)) for one, node in zip(values, nodes, strict=True) if node]
    whole = {**stays, **added}
    units = [prompt.Unit(one.start, one.end, one.kind == "part", True) for one in said if one.kind != "remark"]
    account = parts.Account(change.text, spans, whole, [*values, *ranged], gone, written=written, pieces=units)
    account.check(world)
    if not (values or ids or going or new_name):
        raise world.decline("declined_no_change")
    partners = [op.target_node_id for op in wire({**added, **stays}, list(stays), occupied).connections if added]
    touched = dict.fromkeys([*(value.node_id for value in values), *partners])
    shown = {**{id_: stays[id_] for id_ in touched if id_ in stays}, **added}
    new = [*come, *added.values(), *(schema for one in values if (schema := world.store.get(str(one.value))))]
    earlier = planned.credential_requirements if planned else []
    needed = dict.fromkeys([*earlier, *required_types(new, world.available)])
    prompts = [f"{text.node_id}.{text.param}" for text in texts]
    remarks = [squeeze(change.text[one.start : one.end]).strip(" ,;:") for one in said if one.kind == "remark"]
    source = f"feedback:{1 if planned else 0}" if request.feedback else "requirement"
    steps += [world.say("step_remove", node=id_, label=existing[id_].label) for id_ in edits.removed]
    steps += [world.say("step_replace", node=id_, old=existing[id_].label, new=world.schema(name).label)
              for id_, name in edits.replaced.items()]  # fmt: skip
    steps += [world.say("step_rename", old=request.target or "", new=new_name)] if new_name else []
    design = Design(
        goal=world.say("goal_change", requirement=telling.short(wish)), operation=request.intent.operation,
        flow_name=planned.flow_name if planned else request.intent.title, new_name=new_name or None,
        flow_kind="AGENTFLOW" if inside else "CHATFLOW", values=ranged, connections=links, disconnections=cuts,
        nodes=telling.planned(shown, world, existing=set(request.existing)), credential_requirements=list(needed),
        removals=[node_id for node_id in going if node_id in request.existing], steps=steps,
        parts=account.parts(world, source=source, prompts=prompts, remarks=remarks),
    )  # fmt: skip
    design = telling.told(design, shown, Said(change, spoken), world)
    return _merged(planned, design, going, request, world, pending=pending) if planned else design


def _in_range(request: PlanRequest, values: Sequence[PlannedValue], world: World) -> list[PlannedValue]:
    """The values, with the answers about those that no field of their name takes. Raises DeclinedError, a question."""
    found: list[PlannedValue] = []
    for value in values:
        number, (low, high) = value.value, BOUNDS.get(value.param.rpartition(".")[2], (None, None))
        if isinstance(number, int | float) and low is not None and not low <= number <= (high or math.inf):
            most, said = "" if high is None else f" – {high:g}", f"{number:g}"
            question = world.say("question_range", where=value.param, value=said, low=f"{low:g}", high=most)
            if (answer := re.search(NUMBER, dict(request.clarifications).get(question, ""))) is None:
                raise DeclinedError(question)
            value = value.model_copy(update={"value": to_number(answer[0])})
        found.append(value)
    return found


def unheard(request: PlanRequest, reason: DeclinedError) -> PlanContract | None:
    """The plan before, when what the person says to it is not understood: that is told as not done, and nothing is
    lost. None where there is no such plan, or one answer settles it."""
    previous, said = request.previous, request.feedback
    if not previous or previous.declined or not (said and _pending(request)) or str(reason).endswith("?"):
        return None
    part = Part(id="p1", quote=squeeze(said), source="feedback:1", reason=str(reason))
    return previous.model_copy(update={"parts": _numbered("p", [*previous.parts, part][-40:])})


def _pending(request: PlanRequest) -> bool:
    """Whether there is a plan that is not written yet."""
    new = request.previous.new_nodes if request.previous else set[str]()
    return request.previous is not None and request.verdict is None and not (new and new <= request.existing.keys())


def _meant(request: PlanRequest, places: Mapping[str, NodeSchema], wish: str, world: World) -> Mapping[str, NodeSchema]:
    """The places (`node id` or `node id.path`) that a wish means: in nodes that it names, the one of its ordinal from
    left to right, else all. Raises DeclinedError for an ordinal that none has."""
    said = f"{wish}\n{build.asked(request.requirement, request.clarifications).details}"
    named, denied = list[str](), list[str]()
    for place in places:
        names = [whole_word(name) for name in _own_names(request, place.partition(".")[0])]
        if any(name.search(said) for name in names):
            (named if any(True for name in names for _ in mentions(said, name)) else denied).append(place)
    if named or denied:
        # A title may be an everyday word, too: as it is written it is the title.
        exact = [one for one in named if request.labels.get(one.partition(".")[0], "") in wish]
        return {place: places[place] for place in exact or named or places if place not in denied}
    # "The node that writes the mail" is "Write mail", "the one that drafts" the Drafter.
    spoken = {word[:5] for word in set(_TITLE_WORD.findall(wish.casefold())) if any(mentions(wish, whole_word(word)))}
    ids = dict.fromkeys(place.partition(".")[0] for place in places)
    titles = {id_: _TITLE_WORD.findall(name.casefold()) for id_ in ids for name in _own_names(request, id_)[1:]}
    alike = [id_ for id_, own in titles.items() if own and {word[:5] for word in own} <= spoken]
    if len(alike) == 1:
        return {place: schema for place, schema in places.items() if place.partition(".")[0] == alike[0]}
    ordinals = [match.group() for match in mentions(wish, pattern("inside", "ordinal"))]
    answers = [answer for question, answer in request.clarifications if question.endswith("?")]
    # The one that is named first is meant: "the second model, leave the first alone".
    index = next((_ORDINALS.index(n) for one in [*ordinals, *answers] for n in _ORDINALS if words(n).search(one)), None)
    models = [place for place, schema in places.items() if schema.category in (_MODELS, "LLMs")]
    # "The second LLM" counts no agents, and no conditions.
    kind = next((name for name in (_AGENT, "llmAgentflow") if ordinals and name[:3] in ordinals[0].casefold()), "")
    models = [one for one in models if request.existing.get(one.partition(".")[0]) == kind] or models
    if index is None or len(models) < 2:
        return places
    at = {node.id: node.raw.get("position", {}).get("x", 0.0) for node in request.base.nodes} if request.base else {}
    order = sorted(models, key=lambda place: (at.get(place.partition(".")[0], 0.0), len(place), place))
    if index < len(order) and (at or len({places[place].name for place in models}) == 1):
        return {order[index]: places[order[index]]}
    names = (request.labels.get(id_) or id_ for id_ in dict.fromkeys(place.partition(".")[0] for place in models))
    raise world.decline("declined_which", nodes=", ".join(names))


def _own_names(request: PlanRequest, node_id: str) -> list[str]:
    """The id of a node and the title that the person gave it."""
    label, schema = request.labels.get(node_id, ""), request.nodes.get(request.existing.get(node_id, ""))
    said_by_all = {"", *_ANY, schema.label.casefold() if schema else ""}
    return [node_id, *([label] if label.casefold() not in said_by_all else [])]


def _read(request: PlanRequest, text: str, world: World) -> Reading:
    """The wish, in which the names of nodes only say where. Raises DeclinedError where two models could be meant."""
    base = request.base.nodes if request.base else ()
    nodes = [(schema, node.inputs) for node in base if (schema := world.store.get(node.name))]
    change = exchanged(read(text, world.store), nodes)
    new = {provider.chat for _, provider in providers.chat_providers(change.text)} - set(request.existing.values())
    if len(new) > 1:
        raise world.decline("question_model", names=", ".join(sorted(new)))
    named = [whole_word(name) for id_ in request.existing for name in _own_names(request, id_)]
    where = [*named, words("all_of_them"), pattern("inside", "ordinal")]
    places = [match.span() for looked_for in where for match in looked_for.finditer(text)]
    nodes = [*world.schemas(request.existing).values(), *world.schemas(request.inside).values()]
    stored = any(schema.category == "Vector Stores" for schema in nodes)
    if stored and not (change.loaders or change.urls or change.inline_text):
        # It answers from its documents already: a wish that speaks of them says how.
        change = replace(change, spans=tuple(span for span in change.spans if span.names != DOCUMENTS))
    return replace(change, spans=(*change.spans, *(Span(start, end, keep=True) for start, end in places)))


def _prompts(
    request: PlanRequest, change: Reading, nodes: Mapping[str, NodeSchema], wish: str, world: World
) -> tuple[dict[str, str], list[str]]:
    """(the fields `node.field` for words for the model with what a fresh node has in them, those that are named)."""
    if inside := _messages(request):
        fields = {place: schema for place in inside if (schema := nodes.get(place.partition(".")[0]))}
        asks = dict.fromkeys(inside, "")
    else:
        ends = (*ENDING_CATEGORIES, "Prompts")
        fields = {f"{id_}.{field}": schema for id_, schema in nodes.items()
                  if schema.category in ends and (field := prompt_field(schema))}  # fmt: skip
        if change.prompt_text and not change.system_text:
            fields = {place: schema for place, schema in fields.items() if place.endswith(".template")} or fields
        asks = {place: next((str(p.default or "") for p in schema.params if p.name == "responsePrompt"), "")
                for place, schema in fields.items()}  # fmt: skip
    named = list(_meant(request, fields, wish, world))
    # "The agent" is the only one.
    agents = [place for place in fields if request.existing.get(place.partition(".")[0]) == _AGENT]
    only = agents if len(agents) == 1 and words("an_agent").search(wish) else []
    return asks, named if len(named) < len(fields) else only


def _moved(
    request: PlanRequest, edits: Edits, existing: Mapping[str, NodeSchema], added: Mapping[str, NodeSchema],
    world: World,
) -> list[PlannedValue]:  # fmt: skip
    """The prompt of a node goes on with what takes its place, under the name that it has there."""
    found: list[PlannedValue] = []
    for old, name in edits.replaced.items():
        by_name = {schema.name: id_ for id_, schema in added.items()}
        # The words of a chain without a field for them are in its template.
        new = by_name[name] if prompt_field(added[by_name[name]]) else by_name.get("promptTemplate", by_name[name])
        source, target = prompt_field(existing[old]), prompt_field(added[new])
        if source is None or target is None or (source == target and old in request.existing):
            continue
        if text := wording.held(request, f"{old}.{source}"):
            ends = {"responsePrompt": f"{world.say('from_documents')}\n{{context}}", "template": "{text}"}
            behind = ends.get(target, "")
            text += f"\n\n{behind}" if behind and behind[-9:] not in text else ""
            found.append(PlannedValue(node_id=new, param=target, value=text))
    return found


def _merged(
    planned: PlanContract, change: Design, going: Sequence[str], request: PlanRequest, world: World, *, pending: bool
) -> Design:
    """The plan before with a change: values that are added join a text that was planned and not written yet."""
    new = {node.node_id for node in planned.nodes if node.node_id not in request.existing}
    fresh = {(value.node_id, value.param) for value in change.values if value.mode == "set"}
    values = [one for one in planned.values if pending and one.node_id not in going
              and (one.node_id, one.param) not in fresh] + change.values  # fmt: skip
    kept = (node for node in planned.nodes if node.node_id not in going and (pending or node.node_id not in new))
    nodes = {node.node_id: node if pending else node.model_copy(update={"existing": True}) for node in kept}
    nodes |= {id_: node for node in change.nodes if (id_ := node.node_id) not in nodes or node.label}
    removals = [node_id for node_id in planned.removals if node_id in request.existing]
    tests = list({test.turns[0]: test for test in [*planned.tests, *change.tests]}.values())[:10]
    criteria = list({one.text: one for one in [*planned.criteria, *change.criteria]}.values())[:20]
    # A node that is wanted after all stays.
    removals = [id_ for id_ in dict.fromkeys([*removals, *change.removals]) if id_ not in nodes]
    update = {
        "goal": planned.goal if new else change.goal, "nodes": list(nodes.values()), "removals": removals,
        "values": values[:100], "parts": _numbered("p", [*planned.parts, *change.parts][:40]),
        "connections": [*(planned.connections if pending else []), *change.connections],
        "tests": _numbered("t", tests), "criteria": _numbered("c", criteria),
        "placeholders": telling.placeholders(values),
    }  # fmt: skip
    merged = change.model_copy(update=update)
    labels = [world.schema(node.node_name).label for node in nodes.values() if not node.existing]
    return merged.model_copy(update={"steps": telling.steps(labels, merged, world)}) if new else merged


def _numbered(prefix: str, items: Sequence[Any]) -> list[Any]:
    return [item.model_copy(update={"id": f"{prefix}{number}"}) for number, item in enumerate(items, start=1)]


# --- Agentflows: models with their values and instructions inside the nodes ---------------------------------------


def _approval(
    request: PlanRequest, change: Reading
) -> tuple[Span | None, list[DesignConnection], list[DesignConnection]]:
    """A person's step in front of the one reply: the words that ask for it, connections that come, and that go."""
    asks = next((match for match, kind in signals(change.text) if kind == "approval"), None)
    replies = [id_ for id_, name in request.existing.items() if name == _REPLY]
    end = _CLAUSE_END.search(f"{change.text}. ", asks.end()) if asks else None
    # Only in front of the reply: an approval of something else belongs elsewhere.
    about_reply = asks and end and words("about_language").search(change.text, asks.start(), end.start())
    if not (asks and end and about_reply and len(replies) == 1 and request.base) or _HUMAN in request.existing.values():
        return None, [], []
    (human,) = build.fresh_ids((_HUMAN,), request.existing)
    edges = [edge for edge in request.base.edges if edge.target == replies[0]]
    links = [DesignConnection(source=one.source, output=one.output_name, target=human) for one in edges]
    links.append(DesignConnection(source=human, output="proceed", target=replies[0]))
    cuts = [DesignConnection(source=one.source, target=one.target, input=one.input_name) for one in edges]
    return Span(asks.start(), end.start(), frozenset({_HUMAN})), links, cuts


def _messages(request: PlanRequest) -> list[str]:
    """The instructions in the nodes of an agentflow, as `node.path`; short ones are not among the texts."""
    lists = ((node.id, name, rows) for node in (request.base.nodes if request.base else ())
             for name, rows in node.inputs.items() if name.endswith("Messages") and isinstance(rows, list))  # fmt: skip
    found = [f"{id_}.{name}[0].content" for id_, name, rows in lists if rows and isinstance(rows[0], dict)
             and rows[0].get("role") == "system"]  # fmt: skip
    return list(dict.fromkeys([*(place for place in request.texts if place.endswith(_SYSTEM_TEXT)), *found]))


def _own_tools(
    request: PlanRequest, change: Reading, wish: str, world: World
) -> tuple[list[PlannedValue], list[NodeSchema], list[NodeSchema]]:
    """(the tools of agents inside an agentflow as they are to be, those that come, those that go). Raises
    DeclinedError."""
    agents = {id_: schema for id_, schema in world.schemas(request.existing).items() if schema.name == _AGENT}
    dropped, found, come, gone = unwanted(change.text, world), list[PlannedValue](), list[dict[str, Any]](), set[str]()
    for id_ in _meant(request, agents, wish, world):
        node = request.base.node(id_) if request.base else None
        there = {row[TOOL]: row for row in (node.inputs.get("agentTools") or [] if node else [])}
        new = [tool_row(names, change, world) for names in change.tools if not {*names} & {*dropped, *there}]
        gone |= there.keys() & dropped
        if new or there.keys() & dropped:
            rows = [*(row for name, row in there.items() if name not in dropped), *new]
            found.append(PlannedValue(node_id=id_, param="agentTools", value=rows))
            come += new
    if len(found) > 1 and not words("all_of_them").search(wish):
        raise world.decline("declined_which", nodes=", ".join(request.labels.get(one.node_id, "") for one in found))
    return found, [world.schema(row[TOOL]) for row in come], [world.schema(name) for name in gone]


def _models(request: PlanRequest, change: Reading, wish: str, world: World) -> list[PlannedValue]:
    """The values that are asked for, of each model inside; another model where one of another provider is named."""
    wanted = world.store.get(change.provider.chat) if change.provider else None
    places = {place: schema for place, schema in world.schemas(request.inside).items() if schema.category == _MODELS}
    found: list[PlannedValue] = []
    for place, current in _meant(request, places, wish, world).items():
        node_id, _, path = place.partition(".")
        schema = wanted if wanted is not None else current
        other = schema.name != current.name
        if other:
            found.append(PlannedValue(node_id=node_id, param=path.removesuffix("Config"), value=schema.name))
        values = parameters(schema, Said(change), language=world.language, asked_only=not other)
        node = request.base.node(node_id) if other and request.base else None
        old = value_at(node.inputs, (path,)) if node else None
        if isinstance(old, dict):
            # What the wish does not speak of stays: numbers and switches that both have.
            plain = [param.name for param in schema.params if param.type in ("number", "boolean")]
            values = {name: old[name] for name in plain if old.get(name) not in (None, "")} | values
        found += [PlannedValue(node_id=node_id, param=f"{path}.{name}", value=v) for name, v in values.items()]
    return found
