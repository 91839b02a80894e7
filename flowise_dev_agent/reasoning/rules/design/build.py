"""The design of a new flow from what a person said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from flowise_dev_agent.contracts.plan import Design, PlannedNode, PlannedValue
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import Pattern, PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.chaining import handed_on, links
from flowise_dev_agent.reasoning.rules.design.field_values import named_fields
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import select, usable
from flowise_dev_agent.reasoning.rules.design.sequence import split_tasks
from flowise_dev_agent.reasoning.rules.design.steps import design_steps, is_stepwise
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters, prompt_field
from flowise_dev_agent.reasoning.rules.language import words
from flowise_dev_agent.reasoning.rules.language.scan import Span
from flowise_dev_agent.reasoning.rules.language.text import mentioned, normalised
from flowise_dev_agent.reasoning.rules.render import telling

#: The question that the service asks after a plan that declines; its answer is another requirement.
INSTEAD = "This cannot be built as described. What should be built instead?"
_NOTHING_MORE = frozenset(
    {"no", "none", "nothing", "nope", "nein", "keine", "nichts", "nada", "ninguno", "non", "rien", "aucun", "não"}
)


def whole_text(requirement: str, clarifications: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """(what is to be built, the purpose that a question was answered with)."""
    text, purpose = requirement, ""
    for question, answer in clarifications:
        plain = answer.strip()
        if question == INSTEAD:
            text, purpose = plain, ""
        elif plain.casefold().strip(" .!") in _NOTHING_MORE:
            continue
        elif any(question == say("question_purpose", language) for language in words.FUNCTION_WORDS):
            purpose = f"{purpose}\n{plain}".strip()
        else:
            text = f"{text}\n{plain}"
    return normalised(text), normalised(purpose)


def design_new(request: PlanRequest) -> Design:
    """A flow that is not there yet: a chatflow, or steps where the text speaks of steps."""
    language = request.intent.language
    text, purpose = whole_text(request.requirement, request.clarifications)
    reading = read(text, request.nodes)
    foreign = [names[0] for names in reading.tools if not usable(names, request.nodes)]
    only_agents = any(name in request.nodes.schemas for name in foreign)
    if is_stepwise(reading) or only_agents:
        return design_steps(request, text, reading, language)
    # A purpose may ask for parts, too: "calculate with fractions".
    if purpose:
        reading = _with_purpose(reading, read(purpose, request.nodes))
    prompt = "\n".join(filter(None, [prompt_of(reading.text, reading.spans), purpose]))
    if not (prompt or reading.names_structure or mentioned(text, words.ANY_BOT) or reading.agent or reading.chat):
        return declined(request, say("declined_nothing", language))
    return designed(request, text, reading, prompt, language, split_tasks(text))


def designed(
    request: PlanRequest, text: str, reading: Reading, prompt: str, language: str, tasks: Sequence[str] = ()
) -> Design:
    """A chatflow of what was read. `prompt` is what the model is told, `tasks` are several that follow one another."""
    selection = select(reading, request.nodes, request.credential_types, language=language, stages=len(tasks))
    if selection.declined:
        return declined(request, selection.declined)
    ids = fresh_ids(selection.names, {}, request.pattern)
    nodes = {id_: request.nodes.schemas[name] for id_, name in ids.items()}
    values = values_of(nodes, reading, prompt, language, tasks)
    account = Account(reading.text, spans_of(reading, nodes), nodes, values)
    if refusal := account.refusal(language):
        return declined(request, refusal)
    prompts = [f"{value.node_id}.{value.param}" for value in values if _holds_prompt(nodes, value)]
    design = Design(
        goal=telling.short(text),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        nodes=[
            PlannedNode(
                node_id=id_,
                node_name=schema.name,
                purpose=telling.purpose(schema, language),
                existing=request.pattern is not None and request.pattern.nodes.get(id_) == schema.name,
            )
            for id_, schema in nodes.items()
        ],
        values=values,
        credential_requirements=required_types(nodes.values(), request.credential_types),
        connections=links(nodes),
        parts=account.parts(language, prompts=prompts),
        base_sha256=None,
    )
    return telling.told(design, nodes, Said(reading, prompt), language)


def values_of(
    nodes: Mapping[str, NodeSchema], reading: Reading, prompt: str, language: str, tasks: Sequence[str] = ()
) -> list[PlannedValue]:
    """The values of new nodes; of several of one type each gets its own subject, address or task."""
    found: list[PlannedValue] = []
    for node_id, schema in nodes.items():
        alike = [id_ for id_, other in nodes.items() if other.name == schema.name]
        ordinal = alike.index(node_id)
        said = Said(
            reading,
            tasks[ordinal] if len(tasks) > 1 and ordinal < len(tasks) else prompt,
            topic=reading.topics[ordinal] if ordinal < len(reading.topics) else None,
            url=reading.urls[ordinal] if ordinal < len(reading.urls) else None,
            later=len(tasks) > 1 and ordinal > 0,
        )
        values = {**parameters(schema, said, language=language), **handed_on(nodes, node_id)}
        found += [PlannedValue(node_id=node_id, param=name, value=value) for name, value in values.items()]
    return found[:100]


def spans_of(reading: Reading, nodes: Mapping[str, NodeSchema]) -> list[Span]:
    """What the reading recognised, and the fields of these nodes that the text names by their titles."""
    found = list(reading.spans)
    for schema in {schema.name: schema for schema in nodes.values()}.values():
        for name, (_, start, end) in named_fields(schema, reading.text).items():
            found.append(Span(start, end, params=frozenset({name})))
    return found


def declined(request: PlanRequest, reason: str) -> Design:
    """A design that says why there is none."""
    return Design(
        goal=telling.short(request.requirement),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        declined=reason,
    )


def fresh_ids(names: Sequence[str], existing: Mapping[str, object], pattern: Pattern | None = None) -> dict[str, str]:
    """Id -> node name; a node of the pattern of the same type is taken over, each once."""
    ids: dict[str, str] = {}
    free = dict(pattern.nodes) if pattern else {}
    for name in names:
        reused = next((id_ for id_, other in free.items() if other == name), None)
        if reused is not None:
            del free[reused]
            ids[reused] = name
            continue
        number = 0
        while (node_id := f"{name}_{number}") in ids or node_id in existing or (pattern and node_id in pattern.nodes):
            number += 1
        ids[node_id] = name
    return ids


def schemas_of(names: Mapping[str, str], store: NodeStore) -> dict[str, NodeSchema]:
    """Node id -> schema, from node id -> name; without types that the server does not have."""
    return {node_id: schema for node_id, name in names.items() if (schema := store.get(name))}


def _holds_prompt(nodes: Mapping[str, NodeSchema], value: PlannedValue) -> bool:
    return value.param in (prompt_field(nodes[value.node_id]), "prefix", "description", "template")


def _with_purpose(reading: Reading, purpose: Reading) -> Reading:
    return replace(
        reading,
        tools=tuple(dict.fromkeys([*reading.tools, *purpose.tools])),
        knowledge=reading.knowledge or purpose.knowledge,
        topics=reading.topics or purpose.topics,
        loaders=reading.loaders or purpose.loaders,
        urls=reading.urls or purpose.urls,
        memory=reading.memory or purpose.memory,
    )
