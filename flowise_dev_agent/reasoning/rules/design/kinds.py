"""What a clause of a flow of steps does: a task, or one of a few kinds, known by its closed words or by the second
reader."""

import re
from collections.abc import Iterator, Sequence

from flowise_dev_agent.reasoning.rules.design.clauses import STEPS, clause_of
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
from flowise_dev_agent.reasoning.rules.language.text import quoted, quoted_spans, signals, squeeze, to_number

_WORD = re.compile(r"[^\W_][\w'’-]*")
#: What is whole, whatever marks are in it: brackets and bodies of requests.
_WHOLE = re.compile(r"\([^()\n]{0,300}\)|\{[^\n]{0,400}\}|https?://\S+")
_CLOSED = re.compile(r"[.!?]\s?[\"”»'’]")
_SEPARATED = re.compile(r"^((?:\s\w+){0,2}?)\s?(?:[:,]|->|=>|→)\s?")
_LONGEST_NAME, _HEAD, _MOST_PIECES = 4, 8, 120
#: How probable it has to be that a clause is for the model, or is an approval.
_HALF, _LIKELY, _SURE = 0.5, 0.7, 0.9
#: The kinds of clauses, the first that fits.
_KINDS = ("limit", "otherwise", "case", "branch", "each", "call", "approve", "sort", "says", "who")
#: Kinds that a stretch behind a comma or "and" can begin.
_BEGINS = {*_KINDS, "off"} - {"sort", "says"}
#: Structure that is no task of a model.
_STRUCTURE = {"branch", "loop", "call", "team"}


def found(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).search(text)


def kind_of(text: str, names: Sequence[str] = ()) -> str:
    """What a clause does in a flow; "" for one that only says more, or is a task of a model."""
    text = straight(text)
    if unwanted(text):
        return "off"
    special = {"branch": mention(text, names), "sort": branch_names(text)}
    kind = next((name for name in _KINDS if (special[name] if name in special else found(name, text))), "")
    # "If not OK" and "if it is not clear which one" are conditions on their own.
    head = found("case", text) if kind == "otherwise" else None
    if repeats(text) or (head and (found("verdict_first", text[head.end() :]) or found("unclear", text))):
        return "case"
    about = sense(text, change=False)
    by_whom = found("by_other", text) or (found("agent_noun", text) and about.part > _HALF)
    heard = "each" if about.concepts.get("for_each", 0) > _LIKELY and not found("does", text) else ""
    heard = heard or ("who" if by_whom else "approve" if len(text.split()) > 2 and asks(text, "approval") else "")
    return kind or heard


def unwanted(text: str) -> bool:
    """Whether a clause names a part of such flows that is not wanted: "no approval needed"."""
    clause = clause_of(text, 0, len(text), change=False)
    needless = found("needless", text) and (found("approve", text) or "approval" in clause.asks())
    return not found("case", text) and bool(needless or (clause.off and STEPS.intersection(clause.asks())))


def asks(text: str, concept: str) -> bool:
    """Whether the second reader takes a clause for this part of a flow."""
    return concept in clause_of(text, 0, len(text), change=False).asks()


def branch_names(text: str) -> list[str]:
    """The branches that a clause sorts into, none where it names fewer than two."""
    asked, verb = found("which", text), found("sorts", text)
    text = pattern("steps", "answers_each").sub("", text).rstrip("? ")
    each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(text[verb.end() :])] if verb else []
    into = asked or found("into", text)
    if not (asked or verb) or not (into or ":" in text or len(each) > 1):
        return []
    listing = re.sub(r"^[^:(]{0,60}:\s", "", text[into.start("list") :] if into else text)
    # What is in brackets explains a branch.
    plain = re.sub(r"\([^()]*\)", lambda one: one[0].replace(",", "\x01"), listing)
    parts = (squeeze(part.replace("\x01", ",")) for part in pattern("steps", "listed").split(plain))
    bare = (pattern("steps", "article").sub("", re.sub(r"^\W+|[^\w)]+$", "", part)) for part in parts)
    names = each if len(each) > 1 else [pattern("steps", "kinds").sub("", name) for name in bare if name]
    return [] if len(names) < 2 or any(len(short(name).split()) > _LONGEST_NAME for name in names) else names


def choice_in(text: str) -> list[str]:
    """The names of what is chosen among, where they are listed: "3 products (A, B, C)", and "which product it is"."""
    asked = [one["noun"] for one in pattern("steps", "which_one").finditer(text)]
    listed = (
        one
        for one in pattern("steps", "choice_of").finditer(text)
        if found("branches", one["noun"]) or any(alike(one["noun"], a) for a in asked)
    )
    names = [*map(squeeze, next((pattern("steps", "listed").split(one["list"]) for one in listed), []))]
    return names if len(names) > 1 and all(0 < len(one.split()) <= _LONGEST_NAME for one in names) else []


def short(name: str) -> str:
    """A branch without what explains it in brackets."""
    return re.sub(r"\s?\(.*", "", name)


def clauses(text: str, names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(clause, what is in front of it: "sentence", "then" or a mere comma, ""). A stretch behind a comma or "and" that
    does nothing of its own belongs to what it follows. `names` are those of branches."""
    whole = [*quoted_spans(text), *(match.span() for match in _WHOLE.finditer(text))]
    kept, start, border = list[tuple[str, str]](), 0, "sentence"
    cuts = (one for one in pattern("steps", "break").finditer(text)
            if not any(begin < one.start() and one.end() <= end for begin, end in whole))  # fmt: skip
    for cut in [*[*cuts][:_MOST_PIECES], None]:
        # The mark that closes a quotation belongs to it.
        closing = _CLOSED.match(cut.group()) if cut else None
        end = cut.start() + (closing.end() if closing else 0) if cut else len(text)
        before = kept[-1][0] if kept else ""
        names = branch_names(before) or names
        if kept and _goes_on(text[start:end], before, border, names):
            start, border = text.rindex(before, 0, start), kept.pop()[1]
        kept.append((text[start:end], border))
        if cut:
            start, border = cut.end(), "sentence" if cut["sentence"] else "then" if cut["then"] else ""
    return [(one, to) for clause, to in kept if re.search(r"\w", one := _bare(clause))]


def _bare(clause: str) -> str:
    """A clause without its marks and the words that only put it in order."""
    for name in ("as_flow", "opening", "then", "depending"):
        clause = pattern("steps", name).sub("", clause.strip(" ,.;:!•*-\x00"))
    return clause


def straight(clause: str) -> str:
    """With who does it first: "daarna vertaalt een agent het"."""
    return pattern("steps", "inverted").sub(r"\g<who> \g<verb>", clause)


def _goes_on(piece: str, before: str, border: str, names: Sequence[str]) -> bool:
    """Whether a stretch belongs to the clause in front of it."""
    if border != "sentence" and (_unfinished(before, names) or found("before_first", before)):
        return not found("otherwise", piece)
    # "Vraag dan de maat": what is done has begun before "then".
    if border == "then" and (case := parted(before)) and " " not in case[1]:
        return True
    if border or outcome(piece) or found("before_first", piece):
        return False
    kind = kind_of(piece, names)
    # "It knows that delivery costs 5 and is free over 50 euros."
    if kind == "case" and found("fact", piece):
        return True
    # "I want to see it and approve it."
    first = before.split()[0].casefold() if before.strip() else ""
    if kind == "approve" and (kind_of(before, names) == kind or first in wordset("speakers")):
        return True
    called = kind_of(before, names) == "call" and (found("task", piece) or not found("calling", piece))
    return kind not in _BEGINS and not (called and found("does", piece))


def _unfinished(clause: str, names: Sequence[str]) -> bool:
    """Whether what is done is still to come: "if it is late", "if not", "for late parcels"."""
    few = found("heads", clause) and len(clause.split()) <= _LONGEST_NAME
    if few and mention(clause, names) and not (found("does", clause) or quoted(clause)):
        return True
    if agreed := outcome(clause):
        return not agreed[1]
    bare = re.fullmatch(r"\W*", pattern("steps", "otherwise").sub("", clause, count=1))
    return bool(bare) or (bool(found("case", clause) or found("each", clause)) and not parted(clause))


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both."""
    if not (head := found("case", text) or found("each", text)):
        return None
    rest = text[head.end() :]
    # What is done begins behind a comma, or in front of it with an order ("ask for the date, the size"), else with a
    # verb, or behind the number that is compared.
    behind = [found(one, rest) for one in ("case_ends", "says_behind", "modal_first", "back_first", "by_model")]
    ends = [one for one in [*behind, next(_verbs("orders", rest), None)] if one] or [*_verbs("then_does", rest)]
    number = found("compares", rest)
    cut = min((one.start() for one in ends), default=number.end() if number else 0)
    do = pattern("steps", "then").sub("", rest[cut:].strip(" ,:"))
    return (squeeze(rest[:cut]).rstrip(" ,:"), do) if cut > 1 and do else None


def _verbs(name: str, text: str) -> Iterator[re.Match[str]]:
    """Where a task begins: a verb, and no noun that is like one ("della lista")."""
    return (match for match in pattern("steps", name).finditer(text) if (before := text[: match.start()].strip())
            and not found("subject", before) and before.split()[-1].casefold() not in FUNCTIONS)  # fmt: skip


def mention(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """(the branch that a clause begins with, what it says of it)."""
    for token in [*_WORD.finditer(text)][:_HEAD] if names and not found("before_first", text) else ():
        word, behind = token.group(), text[token.start() :]
        exact = [name for name in names if re.match(rf"(?i){re.escape(short(name))}(?!\w)", behind)]
        fitting = exact or [name for name in names if alike(word, name)]
        if not fitting and found("rest", behind):
            fitting = [name for name in names if found("rest", name)] or names[-1:]
        if len(fitting) == 1:
            behind = behind[len(short(exact[0])) :] if exact else text[token.end() :]
            while (more := _WORD.search(behind)) and (alike(more[0], fitting[0]) or found("kinds_alone", more[0])):
                behind = behind[more.end() :]
            if cut := _SEPARATED.match(behind):
                return fitting[0], behind[cut.end() :]
            if word == fitting[0] and (states := found("states", behind.strip())):
                return word, f"{word}: {behind.strip()[states.end() :]}"
            # "For late parcels it says sorry": what is done there begins with no noun.
            whole = found("heads", text) and not (found("case", text) or found("task", behind.strip()))
            return (fitting[0], text if whole else behind.strip()) if behind.strip() else None
        if content_words([word]) and not found("heads", behind):
            return None
    return None


def alike(text: str, other: str) -> bool:
    """Whether two texts have forms of one word: "emergencies" and "emergency"."""
    return any(_one(a, b) for a in _WORD.findall(text.casefold()) for b in _WORD.findall(other.casefold()))


def _one(word: str, other: str) -> bool:
    stem = max(4, min(len(word), len(other)) - 2)
    return word.removesuffix("s")[:stem] == other.removesuffix("s")[:stem] and abs(len(word) - len(other)) <= 4


def content_words(said: Sequence[str], *others: str) -> list[str]:
    """The words that say something, and are none of these others."""
    known = FUNCTIONS.union(others)
    return [one for one in said if not (is_empty(one) or one.casefold() in known)]


def outcome(text: str) -> tuple[str, str] | None:
    """("yes" or "no", what is done then) where a clause says what happens after an approval, and of nothing else."""
    match = found("outcome", text)
    # "A manager must approve" is the approval itself.
    if not match or found("modal", match[0]):
        return None
    way = "no" if match["no"] else "yes"
    said, do = _WORD.findall(text[: match.start(way)])[1:], text[match.end() :]
    if "," in do and not re.search(r"://|(?<!\w)[\"“„«']", do.partition(",")[0]):
        more, do = do.split(",", 1)
        said += _WORD.findall(more)
    return None if content_words(said, *wordset("approving")) else (way, do.strip(" ,:"))


def repeats(clause: str) -> str:
    """Whether something is done anew "while" or "until" a condition holds."""
    match = found("repeats", clause)
    return ("until" if match["until"] else "while") if match and found("anew", match["do"]) else ""


def repeated(clause: str) -> tuple[str, str] | None:
    """(the condition, what is done anew, with how often)."""
    if not repeats(clause) or not (match := found("repeats", clause)):
        return None
    case, *limit = re.split(pattern("steps", "times"), match["case"], maxsplit=1)
    return case, match["do"] if not limit else clause


def step_named(clause: str) -> int:
    """The number of the step that something goes back to, 0 where none is named by one."""
    said = [one["which"] for one in pattern("steps", "back_to").finditer(clause)]
    ordinals = [n for n, name in enumerate(("first", "second", "third"), 1) if any(map(words(name).fullmatch, said))]
    return next((int(one) for one in said if one.isdigit()), next(iter(ordinals), 0))


def is_again(do: str) -> bool:
    """Whether a draft is made again."""
    return bool(found("anew", do)) and not quoted(do)


def times(clause: str) -> int | None:
    """How often at most something is done again."""
    return round(to_number(limit[1])) if (limit := found("times", clause)) else None


def lead_in(text: str) -> re.Match[str] | None:
    """What only says that a flow is wanted, where something follows."""
    return led if (led := found("lead", text)) and not only_structure(text[led.end() :]) else None


def only_structure(about: str) -> bool:
    """Whether nothing but words of structure is said."""
    said = content_words([one.strip(".,:;!?()") for one in about.split()], *NUMBER_WORDS)
    return all(any(texts.concepts(one, "parts", "own", "steps")) or found("a_flow", one) for one in said)


def is_task(clause: str, *, freely: bool = False, named: bool = False, ordered: bool = False) -> bool:
    """Whether a clause tells a model what to do: by a verb, where the second reader hears no mere words for the bot or
    such words are to do as well (`freely`); on a `named` branch, and where it says what comes next (`ordered`), a fact
    is one, too."""
    about = sense(clause, change=False)
    by_model = found("by_model", clause) or found("agent_noun", clause) or asks(clause, "step")
    by_model = by_model and not found("a_flow", clause)
    does = (found(one, clause) for one in ("task", "ordered", "at_end"))
    does = any(does) or (found("does", clause) and (freely or about.told < _SURE) and not is_given(clause))
    does = does or ((named or ordered) and not words("human").search(clause)) or (by_model and about.part > _HALF)
    # Who does it is a model, or the second reader takes it for a step.
    kinds = {kind for match, kind in signals(clause) if kind != "team" or match[0].count(" ") > 3}
    # "Bookings are answered by an agent that knows the rates."
    facts = () if ordered or (named and by_model) else ("fact", "inner")
    told = any(found(name, clause) for name in ("no_task", "unread", "from_there", "nothing", *facts))
    return bool(does) and not (kinds & _STRUCTURE or told)


def is_given(clause: str) -> bool:
    """Whether a clause says what a person gives to the flow: "the user pastes a list"."""
    came = None if found("task", clause) else found("incoming", clause)
    if came is None or " " in came[1]:
        return bool(came or words("pasted").search(clause))
    return not found("does", clause[: came.start(1)] + clause[came.end() :])


def own_words(clause: str, *lists: str) -> list[str]:
    """The words of a clause that say more than that an answer is approved, goes out or is made again."""
    plain, known = clause.casefold(), " ".join(word for name in lists for word in wordset(name))
    shapes = [*(pattern("steps", name) for name in ("times", "skeleton", "approve")), words("answer_out")]
    for one in (*shapes, *map(words, ("first", "second", "third"))):
        plain = one.sub(" ", plain)
    return [one for one in content_words(_WORD.findall(plain)) if not (one.isdigit() or alike(one, known))]
