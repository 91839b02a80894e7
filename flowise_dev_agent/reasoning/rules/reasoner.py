"""The four questions of `Reasoner`, answered by rules over node schemas. No model, no key, no network."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, OpsAnswer, PatchAnswer
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning import contracts
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.reasoning.rules.design import build, change, naming
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.parts import for_request
from flowise_dev_agent.reasoning.rules.design.pending import unheard
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, role_of, ungreeted, without, without_opening
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.design.selection import select
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import CERTAIN, HALF, MAYBE, PERHAPS
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.rules.render.ops import to_ops
from flowise_dev_agent.reasoning.wording import split

_ERROR_ANSWER = re.compile(
    r"^\s*(error: |error \d|[45]\d\d\b[\s:]|missing credentials|cannot read propert|access to this host is denied|"
    r"internal server error|not found\s*$)",
    re.IGNORECASE,
)
_EARLY = 40
_TITLE_WORDS, _TITLE_CHARS, _TITLE_READ = 8, 60, 400
_TITLE_END = re.compile(r"[.!?](?:\s|$)|[;:()（）。！？\n]|\s-\s")


class DeterministicReasoner(Reasoner):
    """Reads a text once into a design and renders that as plan and as ops.

    The same request always gives the same answer. What it does not recognise it declines, in the person's language.
    """

    async def classify(self, request: contracts.ClassifyRequest) -> contracts.Reasoned[contracts.Intent]:
        return _reasoned(_classify(request))

    async def plan(self, request: contracts.PlanRequest) -> contracts.Reasoned[contracts.PlanContract]:
        return _reasoned(for_request(_plan(request), request))

    async def patch(self, request: contracts.PatchRequest) -> contracts.Reasoned[PatchAnswer]:
        return _reasoned(OpsAnswer(ops=to_ops(request)))

    def suggest_node_types(self, text: str, nodes: NodeStore, credential_types: Mapping[str, int]) -> list[str]:
        """Node types for a wish; where the rules would decline it, the parts that they recognise."""
        reading = read(texts.normalised(text), nodes)
        try:
            names = select(reading, World(nodes, credential_types, reading.language))
        except DeclinedError:
            own = (reading.provider.chat if reading.provider else "", reading.vector_store or "", reading.memory or "")
            names = [*reading.requested, *(one[0] for one in reading.tools), *own]
        return [name for name in dict.fromkeys(names) if name in nodes.schemas]

    async def judge(self, request: contracts.JudgeRequest) -> contracts.Reasoned[contracts.Verdict]:
        language = texts.detect_language(request.requirement)
        notes, failed = list[str](), list[str]()
        for trial in request.trials:
            key = "empty" if not trial.answer.strip() else "error" if _ERROR_ANSWER.match(trial.answer) else "ok"
            notes.append(say(f"note_{key}", language, length=len(trial.answer)))
            failed += [f"{trial.question}: {notes[-1]}"] if key != "ok" else []
        if failed:
            return _reasoned(contracts.Verdict(done=False, category="LOGIC", reason="; ".join(failed), notes=notes))
        return _reasoned(contracts.Verdict(done=True, reason=say("judged", language), notes=notes))


def _reasoned(value: Any) -> contracts.Reasoned[Any]:
    return contracts.Reasoned(value, mode="deterministic")


# --- What is to be done -------------------------------------------------------------------------------------------


def _classify(request: contracts.ClassifyRequest) -> contracts.Intent:
    """Operation, the one question that is open, title and language, by words alone."""
    said = build.asked(request.requirement, request.clarifications)
    reading = read(said.text)
    operation = request.forced or _operation(reading.text, request.target)
    language = texts.detect_language(texts.normalised(request.requirement))
    new = operation == "create"
    described = any(one.kind == "openapi" for one in request.attachments)
    question = build.open_question(said, reading, language, described=described) if new else None
    return contracts.Intent(
        operation=operation, ambiguity=7 if question else 2, questions=[question] if question else [],
        language=language, title=_title(f"{said.text}\n{said.purpose}", language, new=new),
        target_hint=request.target or (None if new else _hint(said.text)), parts=split(request.requirement),
    )  # fmt: skip


def _title(text: str, language: str, *, new: bool) -> str:
    """A name that the text gives, else what is wished for, else the first phrase, or whose the flow is."""
    given = naming.take_flow_name(text)[0] if new else ""
    read = texts.squeeze(text[:_TITLE_READ].strip().replace("\n", "; "))
    said = re.sub(r"(?:^|(?<=; ))\d+[.)]\s|https?://|[\"“”„«»]|(?<=\bDr)\.|(?<=\bSt)\.", "", read)
    sentences = [one for one in _TITLE_END.split(said) if one.strip()] or [said]
    roles = [found for one in sentences if new and (found := role_of(one))][:1]
    trade = pattern("naming", "trade").search(roles[0][1] if roles and roles[0][1] else said)
    first = ungreeted(sentences[0])
    # Who speaks of themselves says whose the flow is.
    if not roles and first.partition(" ")[0].casefold() not in wordset("speakers"):
        roles = [(without_opening(first) if new else first, "")]
    phrases = [_phrase(one) for one in [*(role for role, _ in roles), *([trade["trade"]] if trade else []), first]]
    # Hours and prices are no name.
    phrases.sort(key=lambda one: re.search(r"\d", one) is not None)
    named = next((one for one in phrases if _names(one)), "Chatbot" if new and re.search(r"\w", said) else phrases[0])
    title = given[:_TITLE_CHARS] or texts.capital(named[:_TITLE_CHARS])
    return title if re.search(r"\w", title) else say("default_title", language)


def _names(phrase: str) -> bool:
    """Whether a phrase is a name, and no sentence about somebody, and says more than that a bot is wished for."""
    said = re.findall(r"\w+", phrase.casefold())
    says = any(not (is_empty(word) or word in FUNCTIONS) for word in said)
    return says and not pattern("naming", "clause").search(phrase)


def _phrase(stretch: str) -> str:
    """At most eight words of a stretch, without "please build me a simple", and none that begins what is cut off."""
    said = stretch.split()
    while len(said) > 1 and said[0].strip(",.:").casefold() in wordset("leads") | wordset("articles"):
        said.pop(0)
    said = said[: next((n for n, word in enumerate(said, 1) if n > 1 and word[-1] == ","), None)]
    ends = [n for n in range(2, len(said)) if said[n].casefold() in wordset("connectors") | wordset("prepositions")]
    chosen = " ".join(said[: max((end for end in (*ends, len(said)) if end <= _TITLE_WORDS), default=_TITLE_WORDS)])
    loose = wordset("loose_ends") | (FUNCTIONS if len(chosen.split()) < len(said) else frozenset())
    return without(chosen, loose, front=False).strip(" ,'’\"“”-")


def _operation(text: str, target: str | None) -> contracts.Operation:
    wanted, existing = pattern("prompt", "new").search(text), next(texts.mentions(text, words("this_flow")), None)
    # "I want a bot that ...": what is called "this bot" afterwards is the new one.
    this = existing and not (wanted and wanted.start() < existing.start())
    asked = [*clauses(text, change=True)] if target else []
    heard = any(
        one.sense.concepts.get("copy", 0) > HALF
        or (one.sense.part > one.sense.told and pattern("copying", "noun").search(one.said))
        for one in asked
        if not one.off
    )
    # "Leave the Rosengarten bot exactly as it is": the flow itself stays, so what is wished for is another one.
    heard = heard or any(naming.keeps_flow(one.said, target or "") for one in leaves(asked))
    # "The same bot again. Leave the Whitby one as it is."
    same = any(one.sense.concepts.get("copy", 0) > PERHAPS and one.sense.part > HALF for one in asked)
    left = (one for one in leaves(asked) if one.sense.keep > CERTAIN)
    heard = heard or (same and any(not texts.concepts(one.said, "parts", "own", "sources") for one in left))
    # "So that my assistant can copy it": what is said late the second reader has to hear, too.
    unheard = asked and not any(one.sense.concepts.get("copy", 0) > MAYBE for one in asked)
    named = (one for one in texts.mentions(text, words("copy")) if not (
        unheard and one.start() > _EARLY and re.search(r"(?i)\b(?:[ck][oó]p|dupli)", one[0])))  # fmt: skip
    if heard or any(named) or pattern("copying", "of_original").match(text):
        return "copy"
    asks = pattern("words", "question").match(text) and text.rstrip().endswith("?")
    if asks and (target or this or texts.mentioned(text, words("flow"))):
        return "question"
    new = re.match(r"\s*(?:please\s+)?(?:" + words("create").pattern + ")", text, re.IGNORECASE)
    # A requirement for a new flow may well speak of replacing; one that begins with it means an existing one.
    adds = texts.mentioned(text, words("add_to"))
    begins = " ".join(word for word in text.split()[:4] if "-" not in word)
    changes = adds or (texts.mentioned(text, words("change")) and words("change").search(begins))
    return "update" if target or (not new and (this or (changes and not wanted))) else "create"


def _hint(text: str) -> str | None:
    """What the text calls the flow that is to be changed."""
    if names := [name for name in texts.quoted(text) if len(name) <= 80]:
        return names[0]
    match = pattern("words", "flow_hint").search(text)
    return texts.squeeze(match.group(1)) if match and len(match.group(1).split()) > 1 else None


# --- The plan -----------------------------------------------------------------------------------------------------


def _plan(request: contracts.PlanRequest) -> contracts.PlanContract:
    """The plan of a request; pure, so that it can run in a process of its own."""
    previous, is_new = request.previous, request.intent.operation == "create" and not request.existing
    # A flow that exists keeps the name that it has on the server.
    name, rest = naming.take_flow_name(texts.normalised(request.feedback)) if request.feedback and is_new else ("", "")
    if previous is not None and not previous.declined and name:
        previous = previous.model_copy(update={"flow_name": name})
        rest = rest.replace(texts.NUL, " ").strip(" .,;:\n")
        request = replace(request, previous=previous, feedback=rest or None)
        if not rest:
            return previous
    language, known = request.intent.language, request.flow_summary
    if request.intent.operation == "question":
        answer = say("answer_flow", language, summary=known) if known else say("answer_none", language)
        return build.declined(request, "").model_copy(update={"declined": None, "answer": answer}).to_plan()
    try:
        made = _design(request, World(request.nodes, request.credential_types, language, request.ready_nodes))
    except DeclinedError as reason:
        if (kept := unheard(request, reason)) is not None:
            return kept
        made = build.declined(request, str(reason))
    # What was hidden from reading is no value.
    torn = any("\x00" in str(value.value) for value in made.values)
    made = (build.declined(request, say("declined_no_change", language)) if torn else made).to_plan()
    if request.intent.operation != "copy" or made.declined:
        return made
    named = naming.copy_name(request.requirement) or made.flow_name
    return made.model_copy(update={"flow_name": named, "goal": telling.short(request.requirement)})


def _design(request: contracts.PlanRequest, world: World) -> Design:
    if request.design is not None:
        return build.design_form(request, request.design, world)
    wish, previous = change.wish_of(request), request.previous
    if wish is None:
        raise world.decline("declined_failed", reason=request.verdict.reason if request.verdict else "")
    if request.intent.operation == "copy" and not request.feedback:
        wish = naming.wish_for_copy(wish, request.target)
    if request.feedback and previous and previous.flow_kind == "AGENTFLOW" and previous.nodes and not request.existing:
        raise world.decline("declined_steps", parts=f"«{wish}»")
    if request.existing or (previous and previous.flow_kind == "CHATFLOW" and previous.nodes):
        return change.design_change(request, wish, world)
    return build.design_new(request, world)
