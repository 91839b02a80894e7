"""The design of a new flow, from what a person said or from a form."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from flowise_dev_agent.contracts.designs import DesignForm
from flowise_dev_agent.contracts.plan import Design, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import Pattern, PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design import providers
from flowise_dev_agent.reasoning.rules.design.agent import design_agent
from flowise_dev_agent.reasoning.rules.design.clauses import Clause, clauses, law, leaves, missing, stepwise, technical
from flowise_dev_agent.reasoning.rules.design.details import STRUCTURED, Field
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, prompt_of
from flowise_dev_agent.reasoning.rules.design.providers import CHATS
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import select, tool_asked, usable
from flowise_dev_agent.reasoning.rules.design.steps import design_steps
from flowise_dev_agent.reasoning.rules.design.values import Said, dimensions, named_fields, parameters, prompt_field
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, FUNCTIONS, means, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF, LITTLE, MAYBE, PERHAPS, RATHER, SURE
from flowise_dev_agent.reasoning.rules.language.text import Span, capital, masked, mentioned, normalised, signals
from flowise_dev_agent.reasoning.rules.render import telling

#: A wish with fewer words of its own than these, and something vague in it, says nothing.
_FEW_WORDS, _FEWEST_WORDS = 5, 2
_FLOW = pattern("steps", "a_flow")
_BOT, _WORDS = re.compile(r"(?i)bot|flow|\d"), re.compile(r"\w{4,}")
#: A sentence that ends with what is vague.
_CARELESS = re.compile(rf"(?i)(?<![^.!?\n])[^.!?\n]*?(?:{words('vague').pattern})(?:\s\w+){{0,2}}(?=[.!?\n]|$)")
#: The question that the service asks after a plan that declines; its answer is another requirement.
_INSTEAD = "This cannot be built as described. What should be built instead?"
#: A tool that a clause may ask for -> the row of the table of tools.
_TOOLS = {"web_search": "webSearch", "calculator": "calculator", "date_time": "currentDateTime"}
#: Kinds of signals that make a flow one of steps, and how much of a text is read for them.
_STEPS, _READ_FOR_STEPS = frozenset({"team", "approval", "sequence", "form", "schedule"}), 2_000
_REMEMBERED = frozenset({"memory", "memory_store"})
_LOADERS = {"text": "plainText", "pdf": "pdfFile", "csv": "csvFile", "docx": "docxFile", "store": "documentStore"}


@dataclass(frozen=True)
class Asked:
    """A requirement with its answers: `purpose` is told to the model, `details` are used for what was asked alone."""

    text: str
    purpose: str = ""
    details: str = ""
    answered: bool = False


def asked(requirement: str, clarifications: Sequence[tuple[str, str]]) -> Asked:
    """A requirement with the answers to its questions, by what was asked."""
    found = Asked(requirement)
    for question, answer in clarifications:
        plain = answer.strip()
        if question == _INSTEAD:
            found = Asked(plain)
        elif plain.casefold().strip(" .!") in wordset("nothing_more") or words("go_on").fullmatch(plain.strip(" .!")):
            continue
        elif question in (say("question_vague", code) for code in FUNCTION_WORDS):
            found = replace(found, purpose=f"{found.purpose}\n{plain}")
        elif question.endswith("?"):
            found = replace(found, details=f"{found.details}\n{plain}")
        else:
            found = replace(found, text=f"{found.text}\n{plain}")
    return Asked(*map(normalised, (found.text, found.purpose, found.details)), answered=bool(clarifications))


def open_question(said: Asked, reading: Reading, language: str, *, described: bool) -> str | None:
    """The one question whose answer settles what the text leaves open; None when nothing is, or it was answered."""
    if said.answered:
        return None
    steps = _steps_said(reading, [*clauses(reading.text, change=False)])
    if not (steps or reading.requested or reading.unknown) and (key := left_open(reading)):
        return say(key, language)
    named, models = providers.chat_providers(reading.text), providers.model_ids(reading.text)
    if not steps and (len({one.chat for _, one in named}) > 1 or len({*models}) > 1):
        said_so = (reading.text[start:].split(maxsplit=1)[0] for start, _ in named)
        return say("question_model", language, names=", ".join(dict.fromkeys(s.strip(".,;:!?'’\"") for s in said_so)))
    calls = any("requestsGet" in names for names in reading.tools) or mentioned(reading.text, words("calls_address"))
    asks = calls and not (reading.address or reading.requests or described)
    return say("question_address", language) if asks else None


def left_open(reading: Reading) -> str | None:
    """The question that "something smart" leaves open, or a text that is spoken of and not named."""
    found = [*clauses(reading.text, change=False)]
    vague = [Span(*one.words) for one in found if one.sense.concepts.get("vague", 0) > MAYBE]
    told = (one for one in leaves(found) if one.sense.told > HALF)
    if vague and all(any(span.meets(one.start, one.end) for span in vague) for one in told):
        return "question_vague"
    known = FUNCTIONS | wordset("everyday") | wordset("generic")
    prompt = prompt_of(reading.text, reading.spans)
    # "Whatever works": who says so says nothing of the bot beside it, whatever else there is to know of them.
    careless = None if reading.chat or re.search(r"\d", prompt) else _CARELESS.search(prompt)
    told = re.findall(r"[^\W\d_]{2,}", careless[0] if careless else prompt)
    plain = [one for one in told if not (is_empty(one) or one.casefold() in known or words("vague").fullmatch(one))]
    # "AI for my shop": nobody says what is to be done.
    named = reading.chat or reading.agent or _BOT.search(reading.text)
    least = _FEW_WORDS if mentioned(reading.text, words("vague")) else 1 if named else _FEWEST_WORDS
    structure = reading.transform or reading.tools or reading.knowledge or reading.structured or reading.denied_words
    asks = structure or reading.unknown or any(one.names or one.params for one in reading.spans)
    if len(plain) < least and not (structure if told else asks):
        return "question_vague"
    return "question_knowledge" if words("not_there").search(reading.text) and not reading.knowledge else None


def design_new(request: PlanRequest, world: World) -> Design:
    """A flow that is not there yet; one of steps is declined, see `FormStep`. Raises DeclinedError."""
    said = asked(request.requirement, request.clarifications)
    reading = _with_files(read(said.text, world.store, new=True), request.file_loaders)
    found = [*clauses(reading.text, change=False)]
    reading = _with_asked(reading, found, forgets=_forgets(found, request, world))
    if world.ready:
        # Requests to an address are what the ready ones do.
        taken = {schema.name for schema in world.ready.values()}
        tools = tuple(names for names in reading.tools if not (taken & {*names} or "requests" in names[0]))
        reading = replace(reading, requests=(), tools=tools)
    foreign = [names[0] for names in reading.tools if not usable(names, world)]
    if steps := _steps_said(reading, found):
        parts = "; ".join(f"«{one}»" for one in steps)
        return declined(request, world.say("declined_steps", parts=parts), flow_kind="AGENTFLOW")
    if any(name in world.store.schemas for name in foreign):
        return design_agent(request, reading, said.text, world)
    # What was too vague to build from is answered, and no more said.
    vague = left_open(reading) == "question_vague"
    own = "" if vague and said.answered else None
    # An answer may ask for parts, too: "calculate with fractions".
    if said.purpose or said.details:
        rows = "JSON fields: " if reading.structured and not reading.fields else ""
        reading = _with_answers(reading, read(normalised(f"{said.purpose}\n{rows}{said.details}"), world.store))
    elif vague and not said.answered:
        raise world.decline("question_vague")
    return designed(request, said.text, reading, world, own=own, purpose=said.purpose)


def _steps_said(reading: Reading, found: Sequence[Clause]) -> list[str]:
    """The clauses in which steps are heard that a chatflow does not have."""
    heard = stepwise(found, reading.spans, flow=_FLOW.search(reading.text) is not None)
    # A "flow" that gives back fields in their form is one task.
    task = reading.fields and STRUCTURED.search(reading.text)
    signs = [] if task else _step_signs(_asks_alone(reading, found))
    # How it is now asks for no step: "they ring us fifty times every day".
    said = (one for one in leaves(found) if one in heard or (max(one.sense.part, one.sense.told) > LITTLE and any(
            one.start <= place < one.end for place in signs)))  # fmt: skip
    return list(dict.fromkeys(one.said for one in said))


def _step_signs(reading: Reading) -> list[int]:
    """Where words say that steps follow one another, that a person approves, or how a flow of steps starts."""
    # A node type asked for by name is a part of a chatflow.
    named = reading.requested or reading.prompt_text or reading.system_text
    # A request to an address is a step, where no tool and no chain makes it.
    used = reading.tools or reading.requests or reading.loaders or reading.agent or (reading.chat and reading.knowledge)
    kinds = {"team"} if named else _STEPS if used else _STEPS | {"call"}
    return [match.start() for match, kind in signals(reading.text[:_READ_FOR_STEPS])
            if kind in kinds and (kind != "call" or "://" in match[0])]  # fmt: skip


def _asks_alone(reading: Reading, found: Sequence[Clause]) -> Reading:
    """Of a bot that talks or has tools the text without what it is told, in which no steps are looked for: "it waits
    for a yes before it books"."""
    text = reading.text
    for one in law(found) if reading.tools or reading.chat or reading.agent else ():
        text = masked(text, one.start, one.end)
    return replace(reading, text=text)


def remembered(found: Sequence[Clause]) -> tuple[list[Clause], list[Clause]]:
    """The clauses by which a conversation is remembered, and those by which nothing of it is."""
    named = [one for one in found if _REMEMBERED & {*one.asks(), *["memory"] * (
             one.off and one.sense.concepts.get("memory", 0) > RATHER)}]  # fmt: skip
    forgets, recalls = (pattern("reading", name).search for name in ("forgets", "recalls"))
    # How it is now is no wish: "it has no memory at all".
    off = [one for one in found if ((one.off and one in named) or forgets(one.said)) and one.sense.complaint < HALF]
    # Of a sentence that says both each clause says one.
    off = [
        one
        for one in off
        if not any(one.whole and one.start <= inner.start < one.end for inner in off if not inner.whole)
    ]
    on = [one for one in found if (one in named or recalls(one.said)) and one.sense.off < PERHAPS and one not in off
          and not words("remove").search(one.said) and not any(
              other.start < one.end and one.start < other.end for other in off)]  # fmt: skip
    return on, off


def _forgets(found: Sequence[Clause], request: PlanRequest, world: World) -> bool:
    """Whether a wish says that nothing of a conversation is kept. Raises DeclinedError, a question, where it says the
    opposite, too; an answer settles it."""
    on, off = remembered(found)
    if not (on and off):
        return bool(off)
    question = world.say("question_both", one=on[0].said, two=off[-1].said)
    if question not in (answers := dict(request.clarifications)):
        raise DeclinedError(question)
    said = [one for one in clauses(answers[question], change=False) if _REMEMBERED & {*one.asks()}]
    return all(one.off for one in said)


def _with_asked(reading: Reading, found: Sequence[Clause], *, forgets: bool) -> Reading:
    """A reading with the tools, sources and no memory that clauses ask for in words that the rules do not know."""
    # "Tiene que saber esto" asks for no clock.
    asked = {name for one in found for name in one.asks() if not one.off
             and (name != "date_time" or one.sense.concepts[name] > HALF)}  # fmt: skip
    there, alone = {name for names in reading.tools for name in names}, reading.structured or reading.transform
    tools = [means("tools", key) for concept, key in _TOOLS.items() if concept in asked and not alone]
    new = tuple(names for names in tools if not there & {*names} and not reading.denied & {*names})
    no_memory = reading.no_memory or forgets
    spans = tuple(replace(one, denied=one.denied or (forgets and "@Memory" in one.names)) for one in reading.spans)
    return replace(
        reading, tools=(*reading.tools, *new), no_memory=no_memory, memory=None if no_memory else reading.memory,
        spans=spans,
        sources=reading.sources or ("show_sources" in asked and reading.knowledge) or None,
    )  # fmt: skip


def _with_files(reading: Reading, loaders: tuple[str, ...]) -> Reading:
    """A reading of a text that came with files: what a bot answers from, unless the text asks for something else."""
    if not loaders or reading.transform or reading.structured or "documentStore" in reading.loaders:
        return reading
    return replace(reading, knowledge=True, loaders=loaders, promised=False, stored=False)


def _with_answers(reading: Reading, more: Reading) -> Reading:
    """A reading with what its answers ask for besides; of two models that were named the one that was chosen stays."""
    either = ("knowledge", "topics", "loaders", "urls", "memory", "fields")
    joined = {name: getattr(reading, name) or getattr(more, name) for name in either}
    found = replace(reading, tools=tuple(dict.fromkeys([*reading.tools, *more.tools])), **joined)
    if more.provider is None and more.model is None:
        return found
    chosen = more.provider or reading.provider
    others = (CHATS - {chosen.chat} if chosen else CHATS) | {"modelName", "model"}
    spans = tuple(replace(one, denied=one.denied or bool((one.params | one.names) & others)) for one in reading.spans)
    return replace(found, provider=chosen, model=more.model or reading.model, spans=spans)


def designed(
    request: PlanRequest, text: str, reading: Reading, world: World, *, own: str | None = None, purpose: str = ""
) -> Design:
    """A chatflow of what was read. The model is told `own`, or where it is None the text without its structure, and
    the `purpose`."""
    try:
        ids = fresh_ids(select(reading, world), {}, request.pattern)
    except DeclinedError:
        # What cannot be built at all is the reason, and not what its words seemed to ask for.
        Account(reading.text, [], {}, []).check(world)
        raise
    nodes = world.schemas(ids)
    whole = {**nodes, **world.ready}
    spans = spans_of(reading, whole)
    made = technical([*clauses(reading.text, change=False)], spans, whole) if own is None else []
    # A wish that only names parts is what the bot is for.
    spans += made if reading.knowledge or prompt_of(reading.text, [*spans, *made]) else []
    prompt = f"{prompt_of(reading.text, spans) if own is None else own}\n{purpose}".strip()
    if reading.system_text:
        # Rules beside a prompt that is given word for word hold, too.
        reading = replace(reading, system_text="\n".join([reading.system_text, *rules_beside(reading)]))
    values = values_of(nodes, reading, reading.system_text or prompt, world)
    values += dimensions(values, nodes)
    account = Account(reading.text, spans, whole, [*values, *request.ready_values], ready=bool(world.ready), shown=text)
    account.check(world, tells=True)
    _check_missing(account, request, world)
    taken = request.pattern.nodes if request.pattern else {}
    told = {"prefix", "description", "template"}
    prompts = [f"{v.node_id}.{v.param}" for v in values if v.param in {prompt_field(nodes[v.node_id]), *told}]
    design = Design(
        goal=telling.short(text), operation=request.intent.operation, flow_name=request.intent.title, values=values,
        nodes=telling.planned(nodes, world, existing={id_ for id_ in ids if taken.get(id_) == ids[id_]}),
        credential_requirements=required_types(nodes.values(), world.available),
        parts=account.parts(world, prompts=prompts, given=reading.system_text is not None),
    )  # fmt: skip
    return telling.told(design, nodes, Said(reading, prompt), world)


def values_of(nodes: Mapping[str, NodeSchema], reading: Reading, prompt: str, world: World) -> list[PlannedValue]:
    """The values of new nodes; of several of one type each gets its own subject, address or file."""
    found, seen = list[PlannedValue](), Counter[str]()
    for node_id, schema in nodes.items():
        topic, url = (dict(enumerate(own)).get(seen[schema.name]) for own in (reading.topics, reading.urls))
        files = tuple(one for one in reading.files if one[0] == schema.name)[seen[schema.name] :]
        seen[schema.name] += 1
        said = Said(replace(reading, files=files), prompt, topic, url)
        own = parameters(schema, said, language=world.language)
        requests = [one for one in reading.requests if one.node == schema.name][seen[schema.name] - 1 :][:1]
        own |= requests[0].values(seen[schema.name]) if requests else {}
        found += [PlannedValue(node_id=node_id, param=name, value=value) for name, value in own.items()]
    return found[:100]


def _check_missing(account: Account, request: PlanRequest, world: World) -> None:
    """Raises DeclinedError: what no flow does; else a question about parts without which it is another flow than was
    wished for, unless it was answered."""
    never = [one.said for one, name in account.unmet if name == "impossible" and one.sense.concepts[name] > HALF]
    if never:
        raise world.decline("declined_impossible", parts="; ".join(f"«{one}»" for one in dict.fromkeys(never)))
    answered = " ".join(question for question, _ in request.clarifications)
    files = {word for one in request.attachments for word in _WORDS.findall(one.name.casefold())}
    # What becomes of attached files is planned after the flow.
    asked = [one for one in missing(account.unmet)
             if one not in answered and not files & {*_WORDS.findall(one.casefold())}]  # fmt: skip
    if asked:
        raise world.decline("question_rest", parts="; ".join(f"«{one}»" for one in asked))


def rules_beside(reading: Reading) -> list[str]:
    """The clauses beside a prompt that is given which surely tell the bot something."""
    # What is hidden from reading ends a sentence.
    told = (one for one in leaves([*clauses(re.sub("\x00+", ".", reading.text), change=False)])
            if one.sense.told > SURE and one.sense.part < HALF and not words("any_bot").search(one.said))  # fmt: skip
    return [capital(one.said) for one in told]


def spans_of(reading: Reading, nodes: Mapping[str, NodeSchema]) -> list[Span]:
    """What the reading recognised, and the fields of these nodes that the text names by their titles."""
    schemas = {schema.name: schema for schema in nodes.values()}.values()
    titles = (item for schema in schemas for item in named_fields(schema, reading).items())
    return [*reading.spans, *(Span(start, end, params=frozenset({name})) for name, (_, start, end) in titles)]


def declined(request: PlanRequest, reason: str, **more: Any) -> Design:
    """A design that says why there is none."""
    goal, intent = telling.short(request.requirement), request.intent
    return Design(goal=goal, operation=intent.operation, flow_name=intent.title, declined=reason, **more)


def fresh_ids(names: Sequence[str], existing: Mapping[str, object], pattern: Pattern | None = None) -> dict[str, str]:
    """Id -> node name; a node of the pattern of the same type is taken over, each once."""
    ids, free = dict[str, str](), dict(pattern.nodes) if pattern else {}
    taken = {*existing, *free}
    for name in names:
        reused = next((id_ for id_, other in free.items() if other == name), None)
        free.pop(reused or "", None)
        ids[reused or next(id_ for n in count() if (id_ := f"{name}_{n}") not in {*ids, *taken})] = name
    return ids


def design_form(request: PlanRequest, form: DesignForm, world: World) -> Design:
    """The flow of a form. Raises DeclinedError, which says which part of it this Flowise does not have."""
    if form.kind == "steps":
        return design_steps(request, form, world)
    provider, model = providers.named_model(form.model, world)
    memory = None if form.memory == "none" or form.kind == "task" else form.memory
    numbers = {} if form.temperature is None else {"temperature": form.temperature}
    numbers |= {"memory_window": memory} if isinstance(memory, int) else {}
    abouts = tuple(source.about for source in form.sources if source.about)
    reading = Reading(
        text="", language=world.language, provider=provider, model=model, no_memory=memory is None,
        memory="bufferMemory" if memory == "all" else "bufferWindowMemory" if memory else None,
        tools=tuple(tool_asked(name, world) for name in form.tools), chat=form.kind == "chat",
        knowledge=bool(form.sources), besides=bool(form.tools),
        topics=abouts if len(abouts) == 1 else (), transform=form.kind == "task", structured=bool(form.fields),
        inline_text="\n\n".join(source.text for source in form.sources if source.text) or None,
        urls=tuple(source.url for source in form.sources if source.kind == "web"),
        loaders=tuple(dict.fromkeys(_LOADERS[source.kind] for source in form.sources if source.kind != "web")),
        fields=tuple(Field(one.name, one.type, one.description or one.name) for one in form.fields),
        denied_words=tuple(form.refused_words),
        numbers=numbers,
    )  # fmt: skip
    made = designed(request, form.as_text(), reading, world, own=form.prompt or "")
    return made.model_copy(update={"flow_name": form.name})
