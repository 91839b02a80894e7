"""What a wish calls a flow, a copy or a node, and what of it is to stay as it is."""

import re
from collections.abc import Set

from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty
from flowise_dev_agent.reasoning.rules.design.providers import chat_providers
from flowise_dev_agent.reasoning.rules.design.wording import asks, says, sentences, words_of
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, constants, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF, LIKELY, LITTLE, sense
from flowise_dev_agent.reasoning.rules.language.text import NUL, concepts, masked, quoted, quoted_spans, squeeze

_FLOW, _COPYING = pattern("naming", "flow"), ("called", "in_copy", "noun", "otherwise", "untouched")
_CALLED, _IN_COPY, _NOUN, _OTHERWISE, _UNTOUCHED = (pattern("copying", name) for name in _COPYING)
_TELLS = re.compile(r"(?i)\d|://|@|\s(?:for|für|pour|para|per|voor|dla)\s")
#: "Copy the flow ... as Y": "as" alone says nothing.
_COPIED_AS = re.compile(rf"(?i)(?:{words('copy').pattern})[^.;:\n]{{0,90}}?\s{pattern('copying', 'as').pattern}")
#: How Flowise names a flow.
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_QUOTES, _LONGEST_NAME = "\"“”„«»「」' ", 100
_ALSO = re.compile(r"(?:^|(?<=[.!?\n])|(?<=[.!?]\s))((?:[^\W\d]+\s?){1,3})$")
_AND = re.compile(rf"\s(?:{'|'.join(wordset('ands'))})\s")
_CONTACT, _GOES_ON_TO = pattern("exchange", "contact"), re.compile(r"(?:[^.!?\n]|[.!?](?!\s))*")
#: "The Rosengarten one".
_IT = re.compile(r"(?i)(?<!\w)(?:ones?)(?!\w)")
_HOW = re.compile(r"(?<=\w)\s([^\W\d_]{3,})\s?(?=[.,;:!?\n]|$)")
#: What was named before is called so.
_THAT = re.compile(r"(?i)(?:\w+\s){0,2}?(?:call|name) it\s")
_PLACES = re.compile(rf"(?i)(?<!\w)(?:{'|'.join(form for forms in constants('places').values() for form in forms)})")
#: A name within a sentence.
_NAME, _ENDED = re.compile(r"(?<=\w\s)[A-Z]\w{3,}"), re.compile(r"[.!?] $")
_GOES_ON = re.compile(r"(?:,| [–—-])\s\w")
_SCOPE, _COURTESY, _KEEPS = (pattern("change", name) for name in ("scope", "courtesy", "keeps"))
_REMAINS, _OUT, _CLAUSE = (pattern("change", name) for name in ("remains", "out", "clause"))
#: "Change the name to "X"".
_TO = re.compile(r"(?i)\s(?:to|in|zu|auf|en|à|a|per|para|naar|na)\s[\"“„«']")
_WITH = re.compile(r"(?i)(?:with|mit|avec|con|com|met|z)\s")
_OTHERWISE_SAME, _BECAUSE = (pattern("naming", name) for name in ("otherwise", "because"))


def names_in(request: PlanRequest) -> frozenset[str]:
    """The words by which the parts of a flow go: of the titles of its nodes, and of their addresses."""
    inputs = (str(one) for node in (request.base.nodes if request.base else ()) for one in node.inputs.values())
    held = (*request.labels.values(), *(one for one in inputs if one.startswith("http")))
    return frozenset(re.findall(r"[^\W_]{4,}", " ".join(held).casefold()))


def stays(said: str, names: Set[str] = frozenset()) -> bool:
    """Whether a clause says of a part of the flow that it stays as it is."""
    remains = _REMAINS.search(said)
    if not (remains or _KEEPS.match(said)) or _OUT.search(said) or words("remove").search(said) or '"' in said:
        return False
    # "Keep the answers of the tool short" tells the bot something.
    named = concepts(said, "parts", "own", "sources") or any(name in said.casefold() for name in names)
    about = sense(said, change=True)
    # "Keep Claude for the route."
    model = about.told < LITTLE and chat_providers(said) and not re.search(r"\d", said)
    return bool(model or (named and (remains or about.keep > LIKELY)))


def keeps_prompt(said: str) -> bool:
    """Whether a clause says that nothing of the prompt changes."""
    named = any("prompt" in one.names for one in concepts(said, "own"))
    # "Keep the prompt in German" says how it is to be.
    qualified = _OTHERWISE_SAME.search(said) or words("languages").search(said)
    return named and sense(said, change=True).keep > HALF and not qualified


def keeps_flow(said: str, target: str) -> bool:
    """Whether a sentence says that the flow of this name stays as it is. An id says no name: any name stands for it."""
    own = {word for word in words_of(target) if not is_empty(word)} & {*words_of(said)}
    own = own or (_ID.fullmatch(target) and _NAME.search(said.strip()))
    named = own and (words("any_bot").search(said) or words("flow").search(said) or _IT.search(said))
    return bool(named) and sense(said, change=True).keep > HALF and not concepts(said, "parts", "sources")


def without_scope(text: str, names: Set[str] = frozenset(), *, ends: bool = False) -> str:
    """The text without what is to stay as it is ("leave the rest alone", "keep the memory"), and without thanks; with
    `ends` the marks stay that end a sentence in front of another one."""
    quotes, clauses = quoted_spans(text), (one for one in _CLAUSE.finditer(text) if stays(one[0], names))
    for match in [*_SCOPE.finditer(text), *clauses, *_COURTESY.finditer(text)]:
        # What goes on with a reason is no wish.
        because = match.re is not _COURTESY and _GOES_ON.match(text[match.end() :])
        # "Keep everything else short" says how it is to be.
        how = match.re is _SCOPE and _HOW.match(text, match.end())
        if not (how and how[1].casefold() not in FUNCTIONS) and not any(
            one < match.start() < two for one, two in quotes
        ):
            # "The source and the rest stay": so does what is named before "and".
            also = _ALSO.search(text, 0, match.start()) if match.re is _SCOPE and _AND.match(match[0]) else None
            start = also.start(1) if also else match.start()
            closes = ends and _ENDED.search(text, start, match.end() + 1) and text[:start].rstrip()[-1:].isalnum()
            end = match.end() - bool(closes)
            text = text[:start] + (NUL if because else " ") * (end - start) + text[end:]
    return text


def take_flow_name(text: str) -> tuple[str, str]:
    """(the name that a wish gives the flow, the text with a NUL for what said so); an empty name where it gives
    none."""
    match = _FLOW.search(text)
    if match is None:
        return _renamed(text)
    begin = next(at for at, to, _ in sentences(text, quoted_spans(text)) if match.start("name") < to)
    if _THAT.match(match[0].strip()) and _PLACES.search(text, begin, match.start()):
        # "A new collection, call it X": that is no flow.
        return "", text
    name, end = match["name"], match.end()
    # "Front desk and answer briefly" is a name and another wish.
    ends = re.finditer(r"\s(?:and|und|y|et|e)\s", name) if name[:1] not in "\"“„«'" else ()
    if cut := next((one for one in ends if asks(wish := name[one.end() :]) or words("insists").match(wish)), None):
        name, end = name[: cut.start()], match.start("name") + cut.start()
    end = because.end() if (because := _BECAUSE.match(text, end)) else end
    return squeeze(name.strip(_QUOTES + NUL))[:_LONGEST_NAME], f"{text[: match.start()]}{NUL}{text[end:]}"


def _renamed(text: str) -> tuple[str, str]:
    """The same where a sentence with one quotation says that the flow is renamed, or that the name changes to it."""
    for start, end, _ in sentences(text, quoted_spans(text)):
        said, names = text[start:end], quoted(text[start:end])
        renames = words("rename").search(said)
        flow = renames and (
            words("flow").search(said) or words("any_bot").search(said) or _TO.match(said, renames.end())
        )
        place, odd = words("flow").search(said), len(names) > 1 and len(names) % 2
        # "Rename the flow to "A" and the step "B" to "C"".
        first = place if place and odd and not says(said[place.end() : said.index(names[0])]) else None
        if flow and (len(names) == 1 or first):
            begin = start + (first.start() if first else 0)
            return names[0], masked(text, begin, text.index(names[0], start) + len(names[0]) + 1)
    return "", text


def _copy_named(text: str) -> re.Match[str] | None:
    """Where a copy gets its name; one that it is made with, beside an address or a number to call, is the bot's."""
    found = _FLOW.search(text) or _OTHERWISE.search(text) or _CALLED.search(text) or _COPIED_AS.search(text)
    goes_on = _GOES_ON_TO.match(text, found.end()) if found and _WITH.match(found[0]) else None
    return None if goes_on and _CONTACT.search(goes_on[0]) else found


def copy_name(text: str) -> str | None:
    """What the copy is to be called, None when the text does not say."""
    match = _copy_named(text)
    return squeeze(match.group("name").strip(_QUOTES) if match else "")[:_LONGEST_NAME] or None


def wish_for_copy(text: str, original: str | None) -> str:
    """What `text` wants to be different in the copy, with NULs for what asks for it and names it. `original` is the
    name of the flow to copy, which says nothing about the copy: a copy of the "Sales bot" is not told to be one."""
    rest = re.sub(re.escape(original), NUL, text, flags=re.IGNORECASE) if original else text
    rest = match.re.sub(NUL, rest) if (match := _copy_named(rest)) else rest
    for one in leaves([*clauses(rest, change=True)]):
        # Whom it is for is told.
        if _NOUN.search(one.said) and one.sense.part > one.sense.told and not _TELLS.search(one.said):
            rest = masked(rest, *one.words)
    rest = _IN_COPY.sub(" ", rest)
    for taken in (_UNTOUCHED, _ID, words("copy")):
        rest = taken.sub(NUL, rest)
    return without_scope(rest)
