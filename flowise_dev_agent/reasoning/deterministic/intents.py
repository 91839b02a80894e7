"""First look at a requirement: what is to be done, how clear it is, what to call it."""

import re

from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, Operation
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.persona import without_lead
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read
from flowise_dev_agent.reasoning.deterministic.text import mentioned, quoted, squeeze
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.wording import split

_TITLE_WORDS = 6
_TITLE_READ = 400
_TITLE_END = re.compile(r"[.!?](?:\s|$)|[;:()\n]|\s-\s")
_SCHEME = re.compile(r"https?://")
_HINT = re.compile(
    r"\b(?:my|our|the|this|meinen?|unseren?|den|mi|nuestro|el|mon|notre|le|meu|nosso|o)\s+((?:[\w'’&-]+\s+)"
    r"{0,4}?(?:chat ?flow|flow|chatbot|bot|agent|chain|flujo|flux|fluxo))\b",
    re.IGNORECASE,
)


def classify(request: ClassifyRequest) -> Intent:
    """Operation, ambiguity with questions, title and language, by words alone."""
    answers = [answer for _, answer in request.clarifications]
    reading = read("\n".join([request.requirement, *answers]))
    own = read(request.requirement)
    operation = request.forced or _operation(own.text, request.target)
    ambiguity = _ambiguity(reading, operation, answered=bool(answers))
    language = own.language
    keys = ("question_purpose", "question_knowledge", "question_tools") if ambiguity >= 5 else ()
    return Intent(
        operation=operation,
        ambiguity=ambiguity,
        questions=[say(key, language) for key in keys],
        title=title(request.requirement, language),
        target_hint=request.target or (_hint(own.text) if operation != "create" else None),
        language=language,
        parts=split(request.requirement),
    )


def title(text: str, language: str) -> str:
    """The first words that say something, at most six."""
    rest = without_lead(text[:_TITLE_READ])
    stretch = _TITLE_END.split(_SCHEME.sub("", rest), maxsplit=1)[0].strip() or squeeze(rest)
    said = re.sub(r"[\"“”„«»]", "", stretch).split()
    chosen = said[:_TITLE_WORDS]
    if len(said) > len(chosen):
        # Rather a whole thought than the beginning of the next.
        ends = [number for number, word in enumerate(chosen, start=1) if word.endswith(",")]
        chosen = chosen[: ends[-1]] if ends and ends[-1] > 1 else chosen
    while len(chosen) > 1 and chosen[-1].lower() in words.LOOSE_ENDS:
        chosen.pop()
    found = " ".join(chosen).strip(" ,'’\"“”-")[:120]
    return f"{found[:1].upper()}{found[1:]}" if re.search(r"\w", found) else say("default_title", language)


def _operation(text: str, target: str | None) -> Operation:
    about_flow = bool(target) or mentioned(text, words.THIS_FLOW) or mentioned(text, words.FLOW)
    if mentioned(text, words.COPY):
        return "copy"
    if about_flow and words.QUESTION.match(text) and text.rstrip().endswith("?"):
        return "question"
    if target:
        return "update"
    changes = mentioned(text, words.CHANGE) or mentioned(text, words.ADD_TO)
    new = bool(re.match(r"\s*(?:please\s+)?(?:" + words.CREATE.pattern + ")", text, re.IGNORECASE))
    if mentioned(text, words.THIS_FLOW) and not new:
        return "update"
    return "update" if changes and not new and _starts_with_change(text) else "create"


def _starts_with_change(text: str) -> bool:
    """A requirement for a new flow may well speak of replacing; one that begins with it means an existing one."""
    head = " ".join(text.split()[:4])
    return bool(words.CHANGE.search(head) or words.ADD_TO.search(text))


def _ambiguity(reading: Reading, operation: Operation, *, answered: bool) -> int:
    if operation != "create":
        return 2
    if reading.names_node or reading.multi_agent:
        # Clear enough, if only to be declined.
        return 1
    if reading.is_specific:
        return 2 if reading.persona.role or reading.transform or reading.knowledge or reading.tools else 3
    # Whoever was asked and answered is not asked the same again.
    return 4 if answered else 8


def _hint(text: str) -> str | None:
    names = [name for name in quoted(text) if len(name) <= 80]
    if names:
        return names[0]
    match = _HINT.search(text)
    return squeeze(match.group(1)) if match and len(match.group(1).split()) > 1 else None
