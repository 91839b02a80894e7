"""The clauses of a flow of steps, and what each of them does: by the words that it begins with, or by the second
reader."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from flowise_dev_agent.reasoning.rules.design.clauses import STEPS, clause_of
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty
from flowise_dev_agent.reasoning.rules.design.providers import chat_providers
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF
from flowise_dev_agent.reasoning.rules.language.text import quoted_spans, squeeze, to_number

#: What is whole, whatever marks are in it: brackets, bodies of requests, addresses.
_WHOLE = re.compile(r"\([^()\n]{0,300}\)|\{[^\n]{0,400}\}|https?://\S+(?<![.,;])")
#: A word, and what is said of a decision in front of what is done then.
_WORD, _MORE = re.compile(r"[^\W_][\w'’-]*"), re.compile(r"[^,:/\"“„«']{0,80},")
_LONGEST_NAME, _LONGEST_BRANCH, _MOST_PIECES = 4, 6, 120
#: The kinds of clauses, the first that fits; a branch by its name comes before them.
_KINDS = ("limit", "loop", "otherwise", "case", "each", "call", "approve", "sort", "says", "who", "task")
#: Kinds that begin behind a mere comma or "and", too.
_BEGINS = {"off", "way", *_KINDS} - {"sort", "says", "task"}


class Piece(NamedTuple):
    """A clause, how it begins and where it is: a "sentence", the "next" one ("Then ..."), "then" within one, or ""
    behind a mere comma."""

    said: str
    border: str
    start: int
    end: int


def found(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).search(text)


def kind_of(text: str, names: Sequence[str] = ()) -> str:
    """What a clause does in a flow with branches of these names; "" for one that only says more."""
    if unwanted(text):
        return "off"
    if (way := way_of(text, names)) and way[1]:
        return "way"
    tests = {"sort": branch_names, "loop": repeats}
    kind = next((one for one in _KINDS if (tests[one](text) if one in tests else found(one, text))), "")
    heard = clause_of(text, 0, len(text), change=False).asks() if len(text.split()) > 2 else []
    if "approval" in heard and kind in ("", "task", "who"):
        return "approve"
    if kind in ("", "who") and _is_given(text):
        return "given"
    return kind or ("who" if _by_model(text) else "each" if "for_each" in heard else "")


def _by_model(text: str) -> bool:
    """Whether a model does something that is named: "Claude Haiku translates it"."""
    said = text.casefold().split()[:_LONGEST_NAME]
    does = next((n for n, word in enumerate(said) if n and found("task", word)), 0)
    return does > 0 and not FUNCTIONS & {*said[:does]} and any(start == 0 for start, _ in chat_providers(text))


def _is_given(text: str) -> bool:
    """Whether a clause says what a person gives to the flow: "the user pastes a list"."""
    came = found("incoming", text)
    given = came and not found("does", text[: came.start(1)] + text[came.end() :])
    return bool(given or words("pasted").search(text) or pattern("facts", "ours").match(text))


def unwanted(text: str) -> bool:
    """Whether a clause names a part of such flows that is not wanted: "no approval needed"."""
    clause = clause_of(text, 0, len(text), change=False)
    needless = found("needless", text) and (found("approve", text) or "approval" in clause.asks())
    off = clause.sense.off > HALF and STEPS.intersection(clause.asks())
    return not found("case", text) and bool(needless or off)


def pieces(text: str) -> list[Piece]:
    """The clauses of a text. A stretch behind a comma or "and" that does nothing of its own belongs to what it
    follows, and so does what is done in a case or on a branch."""
    whole = [*quoted_spans(text), *(match.span() for match in _WHOLE.finditer(text))]
    cuts = [one for one in pattern("steps", "break").finditer(text)
            if not any(begin < one.start() and one.end() <= end for begin, end in whole)]  # fmt: skip
    kept, start, border, names = list[Piece](), 0, "sentence", list[str]()
    for cut in [*cuts[:_MOST_PIECES], None]:
        end = cut.start() if cut else len(text)
        if kept and _goes_on(text[start:end], kept[-1].said, border, names):
            _, border, start, _ = kept.pop()
        said = text[start:end]
        border = "next" if border == "sentence" and kept and found("then", said) else border
        if re.search(r"\w", plain := bare(said)):
            kept.append(Piece(plain, border, start, end))
        names = branch_names(plain) or names
        if cut:
            start, border = cut.end(), "sentence" if cut["sentence"] else "then" if cut["then"] else ""
    return kept


def bare(clause: str) -> str:
    """A clause without its marks and the words that only put it in order."""
    for name in ("as_flow", "then"):
        clause = pattern("steps", name).sub("", clause.strip(" ,.;:!?•*-\x00"))
    return clause


def _goes_on(piece: str, before: str, border: str, names: Sequence[str]) -> bool:
    """Whether a stretch belongs to the clause in front of it."""
    if border != "sentence" and _unfinished(before, names):
        return not found("otherwise", piece)
    if border or outcome(piece) or pattern("steps", "own_hands").match(bare(piece)):
        return False
    kind, former = kind_of(piece, names), kind_of(before, names)
    return kind == former == "approve" or not (kind in _BEGINS or (former == "call" and kind == "task"))


def _unfinished(clause: str, names: Sequence[str]) -> bool:
    """Whether what is done is still to come: "if it is late", "for billing", "otherwise"."""
    if agreed := outcome(clause):
        return not agreed[1]
    if kind_of(clause, names) == "otherwise":
        return not re.search(r"\w", pattern("steps", "otherwise").sub("", clause, count=1))
    way, head = way_of(clause, names), found("case", clause) or found("each", clause)
    return not way[1] if way else bool(head and not parted(clause))


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both: behind a comma, a colon
    or "then", or from an order on ("ask for the date")."""
    case = found("case", text)
    if not (head := case or found("each", text)):
        return None
    # A condition has verbs of its own: the last order ends it. An item is a noun, or was named before.
    rest, verbs = text[head.end() - 1 :], pattern("steps", "orders" if case else "then_does")
    ends = [one.start() for one in verbs.finditer(rest)
            if rest[: one.start()].rpartition(" ")[2].casefold() not in FUNCTIONS][-1 if case else 0 :]  # fmt: skip
    ends += [one.start() for name in ("case_ends", "back_behind") for one in pattern("steps", name).finditer(rest)]
    cut = min(filter(None, ends), default=len(rest) if case or not ends else 0)
    do = pattern("steps", "then").sub("", rest[cut:].strip(" ,:"))
    return (squeeze(rest[:cut]).rstrip(" ,:"), do) if do else None


# --- Branches


def branch_names(text: str) -> list[str]:
    """The branches that a clause sorts into: behind a colon, "into" or "if it is", in brackets, or with who answers
    them; none where it names fewer than two."""
    if not (verb := found("sorts", text)):
        return []
    text = pattern("steps", "answers_each").sub("", text).rstrip("? ")
    each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(text[verb.end() :])]
    # What else is found out is no branch: "... or other, and says how urgent it is".
    lists = [_listed(pattern("steps", "list_ends").split(one["list"])[0])
             for name in ("colon", "into", "inside") if (one := found(name, text))]  # fmt: skip
    fits = (one for one in [each, *lists] if all(len(short(name).split()) <= _LONGEST_BRANCH for name in one))
    return next((one for one in fits if len(one) > 1), [])


def _listed(listing: str) -> list[str]:
    """The names of a list; what is in brackets explains one."""
    parts = (re.sub(r"^\W+|[^\w)]+$", "", squeeze(part)) for part in pattern("steps", "listed").split(listing))
    named = (pattern("steps", "kinds").sub("", pattern("steps", "article").sub("", one)) for one in parts)
    return [one for one in named if one]


def way_of(text: str, names: Sequence[str]) -> tuple[list[str], str] | None:
    """(the branches that a clause begins with, what it says is done there): "for billing and refunds: ask for the
    number"."""
    behind, named = text, list[str]()
    while names:
        behind = pattern("steps", "heads").sub("", behind)
        exact = [one for one in names if re.match(rf"(?i){re.escape(short(one))}(?!\w)", behind)]
        word = _WORD.match(behind)
        fitting = exact or [one for one in names if word and alike(word[0], one)]
        if not word or len(fitting) != 1 or fitting[0] in named:
            return None
        named += fitting
        behind = behind[len(short(exact[0])) if exact else word.end() :].lstrip()
        while (more := _WORD.match(behind)) and (alike(more[0], fitting[0]) or found("kinds", f" {more[0]}")):
            behind = behind[more.end() :].lstrip()
        both = found("and_way", behind)
        if not both:
            return named, re.sub(r"^(?:[:,]|->|=>|→)\s?", "", behind)
        behind = behind[both.end() :]
    return None


def short(name: str) -> str:
    """A branch without what explains it in brackets."""
    return re.sub(r"\s?\(.*", "", name)


# --- What is done again


def outcome(text: str) -> tuple[str, str] | None:
    """("yes" or "no", what is done then) where a clause says what happens after an approval, and of nothing else."""
    match = found("outcome", text)
    # "A manager must approve" is the approval itself.
    if not match or found("modal", match[0]):
        return None
    way, more = "no" if match["no"] else "yes", _MORE.match(text, match.end())
    end = more.end() if more else match.end()
    return None if own_words(text[:end]) else (way, text[end:].strip(" ,:"))


def repeats(text: str) -> re.Match[str] | None:
    """What is done anew until a condition holds, or as long as it does."""
    match = found("repeats", text)
    return match if match and found("anew", match["do"]) else None


def is_again(do: str) -> bool:
    """Whether a draft is made again."""
    return bool(found("anew", do)) and not quoted_spans(do)


def times(text: str) -> int | None:
    """How often at most something is done again."""
    return round(to_number(limit[1])) if (limit := found("times", text)) else None


# --- Words


def alike(text: str, other: str) -> bool:
    """Whether two texts have forms of one word: "emergencies" and "emergency"."""
    said, others = ([one for one in _WORD.findall(any_.casefold()) if len(one) > 2] for any_ in (text, other))
    return any(_one(a, b) for a in said for b in others)


def _one(word: str, other: str) -> bool:
    stem = max(4, min(len(word), len(other)) - 2)
    return word.removesuffix("s")[:stem] == other.removesuffix("s")[:stem] and abs(len(word) - len(other)) <= 4


def content_words(said: Sequence[str], *others: str) -> list[str]:
    """The words that say something, and are none of these others."""
    known = FUNCTIONS.union(others)
    return [one for one in said if not (is_empty(one) or one.casefold() in known)]


def only_structure(about: str) -> bool:
    """Whether nothing but words of structure is said."""
    said = content_words([one.strip(".,:;!?()") for one in about.split()], *NUMBER_WORDS)
    return all(any(texts.concepts(one, "parts", "own", "steps")) or found("a_flow", one) for one in said)


def own_words(clause: str) -> list[str]:
    """The words of a clause that say more than that an answer is approved, goes out or is made again."""
    plain, lists = clause.casefold(), ("approving", "replying", "everyday")
    known = " ".join(word for name in lists for word in wordset(name))
    shapes = [pattern("steps", name) for name in ("times", "skeleton", "approve")]
    for one in (*shapes, *map(words, ("answer_out", "first", "second", "third"))):
        plain = one.sub(" ", plain)
    said = content_words(_WORD.findall(plain), *known.split())
    return [one for one in said if not (one.isdigit() or alike(one, known))]
