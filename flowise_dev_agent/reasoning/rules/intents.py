"""First look at a requirement: what is to be done, how clear it is, what to call it."""

import re

from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, Operation
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.build import whole_text
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.steps import is_stepwise
from flowise_dev_agent.reasoning.rules.language import words
from flowise_dev_agent.reasoning.rules.language.text import detect_language, mentioned, normalised, quoted, squeeze
from flowise_dev_agent.reasoning.wording import split

_ARTICLES = frozenset(
    [
        "a",
        "an",
        "the",
        "some",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "un",
        "una",
        "uno",
        "une",
        "des",
        "uma",
        "um",
        "my",
        "our",
        "simple",
        "basic",
        "small",
        "new",
        "einfache",
        "einfachen",
        "neue",
        "neuen",
        "kleine",
        "kleinen",
        "sencillo",
        "sencilla",
        "simples",
        "nouveau",
        "nouvelle",
        "nuevo",
        "nueva",
        "novo",
        "nova",
        "to",
    ]
)
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
    text, purpose = whole_text(request.requirement, request.clarifications)
    reading = read(text)
    operation = request.forced or _operation(reading.text, request.target)
    said = bool(purpose or prompt_of(reading.text, reading.spans))
    ambiguity = _ambiguity(reading, operation, said=said, answered=bool(request.clarifications))
    language = detect_language(normalised(request.requirement))
    keys = ("question_purpose", "question_knowledge", "question_tools") if ambiguity >= 5 else ()
    return Intent(
        operation=operation,
        ambiguity=ambiguity,
        questions=[say(key, language) for key in keys],
        parts=split(request.requirement),
        title=title(text, language, new=operation == "create"),
        target_hint=request.target or (_hint(text) if operation != "create" else None),
        language=language,
    )


def title(text: str, language: str, *, new: bool = True) -> str:
    """The first words that say something, at most six."""
    rest = _without_lead(text[:_TITLE_READ]) if new else squeeze(text[:_TITLE_READ])
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


def _ambiguity(reading: Reading, operation: Operation, *, said: bool, answered: bool) -> int:
    if operation != "create":
        return 2
    if reading.requested or reading.unknown or is_stepwise(reading):
        # Clear enough, if only to be declined.
        return 1
    if said or reading.names_structure:
        return 2 if said and reading.names_structure else 3
    # Whoever was asked and answered is not asked the same again.
    return 4 if answered else 8


def _hint(text: str) -> str | None:
    names = [name for name in quoted(text) if len(name) <= 80]
    if names:
        return names[0]
    match = _HINT.search(text)
    return squeeze(match.group(1)) if match and len(match.group(1).split()) > 1 else None


def _without_lead(text: str) -> str:
    """The text without "Please build me a simple"."""
    parts = squeeze(text).split(" ")
    while len(parts) > 1 and (parts[0].strip(",.:").casefold() in words.LEADS | _ARTICLES):
        parts.pop(0)
    return " ".join(parts)
