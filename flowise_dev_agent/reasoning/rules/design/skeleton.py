"""The skeleton of a flow of steps: kinds, order, branches, limits and addresses. What a step is told are the person's
own words, so only the skeleton has to be understood."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile

from flowise_dev_agent.reasoning.rules.design.prompt import behaves, is_empty
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted, quoted_spans, signals, squeeze, to_number

_WORD = re.compile(r"[^\W_][\w'’-]*")
#: What is whole, whatever marks are in it: brackets and bodies of requests.
_WHOLE = re.compile(r"\([^()\n]{0,300}\)|\{[^\n]{0,400}\}|https?://\S+")
_CLOSED = re.compile(r"[.!?]\s?[\"”»'’]")
_SEPARATED = re.compile(r"^((?:\s\w+){0,2}?)\s?(?:[:,]|->|=>|→)\s?")
_LONGEST_TEXT, _LONGEST_NAME, _HEAD, _MOST_PIECES = 3_000, 4, 8, 120


@dataclass
class Step:
    """One step in the person's words. `ways`: by the name of a branch or a condition, or "yes" and "no" of an approval;
    `of`: what a list is made of, what a person approves, or until when something is repeated."""

    kind: str
    text: str
    ways: dict[str, list["Step"]] = field(default_factory=dict[str, list["Step"]])
    of: str = ""
    limit: int | None = None


def matches(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).match(text)


def found(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).search(text)


def approval(text: str) -> re.Match[str] | None:
    return next((match for match, kind in signals(text) if kind == "approval"), None)


def kind_of(text: str) -> str:
    """What a clause does in a flow; "" for one that only says more, or is a task of a model."""
    if matches("if_not", text):
        return "again" if found("anew", text) or found("times", text) else "otherwise"
    names = ("case", "otherwise", "each", "approve", "sort", "call", "again", "times", "says", "who", "check")
    special = {"approve": approval, "sort": branch_names}
    kind = next((name for name in names if (special.get(name) or partial(matches, name))(text)), "")
    return "again" if kind == "times" else kind


def branch_names(text: str) -> list[str]:
    """The branches that a clause sorts into, none where it names fewer than two."""
    if not (verb := found("sorts", text)):
        return []
    text = pattern("steps", "answers_each").sub("", text)
    each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(text[verb.end() :])]
    into = found("into", text)
    listing = re.sub(r"^[^:(]{0,60}:\s", "", into["list"] if into else text[verb.end() :].strip())
    # What is in brackets explains a branch.
    plain = re.sub(r"\([^()]*\)", lambda one: one[0].replace(",", "\x01"), listing)
    parts = (squeeze(part.replace("\x01", ",")) for part in pattern("steps", "listed").split(plain))
    bare = (pattern("steps", "article").sub("", re.sub(r"^\W+|[^\w)]+$", "", part)) for part in parts)
    names = each if len(each) > 1 else [pattern("steps", "kinds").sub("", name) for name in bare if name]
    odd = any(len(name.split()) > _LONGEST_NAME or found("no_topic", name) for name in map(short, names))
    odd = odd or any(" " in name and matches("does", name) for name in names)
    return [] if len(names) < 2 or odd or not (into or ":" in text or len(each) > 1) else names


def short(name: str) -> str:
    """A branch without what explains it in brackets."""
    return re.sub(r"\s?\(.*", "", name)


def clauses(text: str) -> list[tuple[str, str]]:
    """(clause, what is in front of it: "sentence", "then" or a mere comma, ""). A stretch behind a comma or "and" that
    does nothing of its own belongs to what it follows."""
    kept: list[tuple[int, int, str]] = []
    names: list[str] = []
    for start, end, border in _pieces(text):
        before = text[kept[-1][0] : kept[-1][1]] if kept else ""
        names = branch_names(before) or names
        more = not border and not _begins(text[start:end], before, names)
        late = border != "sentence" and _unfinished(before) and not matches("otherwise", text[start:end])
        if kept and (more or late):
            kept[-1] = (kept[-1][0], end, kept[-1][2])
        else:
            kept.append((start, end, border))
    said = ((text[start:end].strip(" ,.;:!\x00"), border) for start, end, border in kept)
    return [(pattern("steps", "opening").sub("", one), border) for one, border in said if re.search(r"\w", one)]


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    protected = [*quoted_spans(text), *(match.span() for match in _WHOLE.finditer(text))]
    start, border, count = 0, "sentence", 0
    for match in pattern("steps", "break").finditer(text):
        inside = any(begin < match.start() and match.end() <= end for begin, end in protected)
        if inside or (count > _MOST_PIECES and not match["sentence"]):
            continue
        # The mark that closes a quotation belongs to it.
        closing = _CLOSED.match(match.group())
        yield start, match.start() + (closing.end() if closing else 0), border
        border = "sentence" if match["sentence"] else "then" if match["then"] else ""
        start, count = match.end(), count + 1
    yield start, len(text), border


def _unfinished(clause: str) -> bool:
    """Whether what is done is still to come: "if it is late", "if not"."""
    bare = re.fullmatch(r"\W*", pattern("steps", "if_not").sub("", clause, count=1))
    agreed = outcome(clause)
    return bool(bare) or agreed in (("yes", ""), ("no", "")) or (bool(matches("case", clause)) and not parted(clause))


def _begins(piece: str, before: str, names: Sequence[str]) -> bool:
    """Whether a stretch behind a comma or "and" is a step of its own."""
    if _unfinished(before):
        return bool(matches("otherwise", piece))
    kind, last = kind_of(piece), kind_of(before)
    if matches("incoming", before):
        return bool(found("does", piece) or kind)
    if found("sorts", before) and not found("sorts", piece):
        # Between the branches of a list nothing else begins.
        own = branch_names(before)
        return bool(own and " " in piece.strip() and (mention(piece, own) or matches("does", piece) or kind))
    if mention(piece, names) or (last == "approve" and outcome(piece)):
        return True
    if last == "call":
        return not found("calling", piece) or kind in ("approve", "again") or bool(matches("does", piece))
    if kind == "case":
        return last not in ("", "each") or bool(approval(piece))
    allowed = {"each": "approve sort", "approve": "otherwise again", "check": "again approve otherwise"}.get(last, kind)
    return kind == "who" or (kind in allowed.split() and kind != last) or kind == last == "again"


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both."""
    if not (head := matches("case", text) or matches("each", text)):
        return None
    rest = text[head.end() :]
    # What is done begins behind a comma, or in front of it with an order ("ask for the date, the size").
    agrees = approval(rest)
    sure = agrees if agrees and " " in agrees[0] else None
    certain = [found("case_ends", rest), next(_verbs("orders", rest), None), sure]
    ends = certain if any(certain) else [agrees, found("says_behind", rest), *_verbs("then_does", rest)]
    cut = min((one.start() for one in ends if one), default=0)
    do = pattern("steps", "then").sub("", rest[cut:].strip(" ,:"))
    return (squeeze(rest[:cut]), do) if cut > 1 and do else None


def _verbs(name: str, text: str) -> Iterator[re.Match[str]]:
    """Where a task begins: a verb, and no noun that is like one ("della lista")."""
    return (match for match in pattern("steps", name).finditer(text)
            if (before := text[: match.start()].split()) and before[-1].casefold() not in FUNCTIONS)  # fmt: skip


def mention(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """(the branch that a clause begins with, what it says of it)."""
    tokens = list(_WORD.finditer(text))[:_HEAD] if names else []
    for index, token in enumerate(tokens):
        word = token.group()
        fitting = [name for name in names if alike(word, name)]
        if not fitting and matches("rest", text[token.start() :]):
            fitting = [name for name in names if matches("rest", name)] or list(names[-1:])
        if len(fitting) == 1:
            others = [one.group() for one in tokens[index + 1 :]]
            named = takewhile(lambda one, own=fitting[0]: alike(one, own) or matches("kinds_alone", one), others)
            behind = text[tokens[index + len([*named])].end() :]
            cut = _SEPARATED.match(behind)
            if cut and all(is_empty(one) or one.casefold() in FUNCTIONS for one in cut[1].split()):
                return fitting[0], behind[cut.end() :]
            said = behind.strip()
            return (fitting[0], said if index and not matches("case", text) else text) if said else None
        if not (is_empty(word) or word.casefold() in FUNCTIONS or matches("heads", text[token.start() :])):
            return None
    return None


def alike(text: str, other: str) -> bool:
    """Whether two texts have forms of one word: "emergencies" and "emergency"."""
    return any(_one(a, b) for a in _WORD.findall(text.casefold()) for b in _WORD.findall(other.casefold()))


def _one(word: str, other: str) -> bool:
    shorter = min(len(word), len(other))
    if shorter < 4:
        return word == other or (shorter > 2 and other.removesuffix("s") == word.removesuffix("s"))
    stem = max(4, shorter - 2)
    return word[:stem] == other[:stem] and abs(len(word) - len(other)) <= 4


def outcome(text: str) -> tuple[str, str] | None:
    """("yes" or "no", what is done then) where a clause says what happens after an approval."""
    match = matches("outcome", text)
    do = re.sub(r"^[\w'’\s]{0,20},\s", "", text[match.end() :]) if match else ""
    return ("no" if match["no"] else "yes", do.strip(" ,:")) if match else None


def limit_of(clause: str) -> int | None:
    match = found("times", clause)
    return round(to_number(match.group(1))) if match else None


class Skeleton:
    """The steps of a text. `context` is what the flow is for, told to each step; `odd` a clause that does not fit;
    `sent` are clauses that say no more than that an answer goes out or is made again."""

    def __init__(self, text: str, answer: str = "") -> None:
        self._answer = answer
        self.context = self.odd = ""
        self.steps, self.sent = list[Step](), list[str]()
        self._fork: Step | None = None
        self._approval: Step | None = None
        #: Where the next clause of the same sentence goes.
        self._scope = self.steps
        text = text[:_LONGEST_TEXT]
        while " " in text and text.split(maxsplit=1)[0].strip(" ,:").casefold() in wordset("leads"):
            text = text.split(maxsplit=1)[1]
        for introduction in (matches("lead", text), None):
            one = introduction or re.match(r"(?P<about>[^:.,;\n]{1,60}):\s", text)
            if introduction and matches("does", introduction["about"].strip()):
                # "An agentflow writes a letter, ..."
                text = text[introduction.start("about") :].strip()
            elif one and (introduction or not (kind_of(one[1]) or found("sorts", one[1]) or matches("does", one[1]))):
                self._tell(one["about"])
                text = text[one.end() :]
        self.clauses = clauses(text)
        for clause, border in self.clauses:
            self._scope = self.steps if border == "sentence" else self._scope
            self._place(clause, border)

    def _tell(self, about: str) -> None:
        """Note what the flow is for; words of structure say nothing of it."""
        own = [one for one in _WORD.findall(about) if not is_empty(one) and not words("structure").fullmatch(one)]
        if own and not words("team").search(about):
            self.context = f"{self.context}.\n{capital(squeeze(about.strip(' ,')))}".strip(".\n")

    def _place(self, clause: str, border: str) -> None:
        """Put one clause where it belongs."""
        kind, parts = kind_of(clause), parted(clause)
        ending = outcome(clause) if self._approval else None
        sorts = self._fork and self._fork.kind == "fork" and kind != "approve"
        named = mention(clause, [*self._fork.ways]) if self._fork and sorts else None
        if self._approval and ending:
            way, do = ending
            if not quoted(do) and (not do or words("answer_out").search(do) or (way == "no" and found("anew", do))):
                self._approval.limit = limit_of(do) or self._approval.limit
                self.sent.append(clause)
                return
            self._scope, clause, border = self._approval.ways.setdefault(way, []), do, "then"
        elif self._fork and named:
            if not _own(named[1], "replying"):
                return
            self._scope, clause, border = self._fork.ways[named[0]], named[1], "then"
        elif kind == "case" and parts:
            if not (self._fork and self.steps[-1] is self._fork and self._fork.kind == "cases"):
                self._fork = Step("cases", clause)
                self.steps.append(self._fork)
            self._scope, clause, border = self._fork.ways.setdefault(parts[0], []), parts[1], "then"
        elif kind == "otherwise" and self._fork:
            clause = pattern("steps", "if_not").sub("", pattern("steps", "otherwise").sub("", clause), count=1)
            way = next((one for one in self._fork.ways if matches("rest", one)), "")
            self._scope, border = self._fork.ways.setdefault(way, []), "then"
        if clause and not matches("answers", clause):
            self._put(clause, kind_of(clause), border)

    def _put(self, clause: str, kind: str, border: str) -> None:
        """Add what a clause says at the end of where the sentence is."""
        scope, step, does = self._scope, Step(kind, clause), found("does", " ".join(clause.split()[:_HEAD]))
        fact = not does or (behaves(clause) and not matches("does", clause))
        if kind == "sort":
            self.odd = self.odd or (clause if self._fork else "")
            step = self._fork = Step("fork", clause, {name: [] for name in branch_names(clause)})
        elif kind == "approve":
            ways = self._fork.ways.items() if self._fork and self._fork.kind == "fork" else ()
            last, agrees = scope[-1] if len(scope) > 1 else step, approval(clause)
            if not border and last.kind in ("", "check") and agrees and not clause[: agrees.start()].strip():
                # "then a colleague checks and releases it"
                clause = f"{scope.pop().text}, {clause}"
            step = self._approval = Step(kind, clause, of=" ".join(_own(clause, "approving")))
            self.sent += [clause] if words("answer_out").search(clause) else []
            for own in [way for name, way in ways if alike(f"{clause} {self._answer}", name)] or [scope]:
                own.append(step)
            return None
        elif kind == "again":
            last, limit, until = scope[-1] if scope else step, limit_of(clause), found("till", clause)
            repeated = last if last.kind == "again" else self._approval if last.kind != "check" else None
            if repeated and limit and not _own(pattern("steps", "times").sub("", clause), "approving"):
                repeated.limit = limit
                return None
            # What was checked is the condition, and not a step before it.
            checked = pattern("steps", "check").sub("", scope.pop().text) if last.kind == "check" else ""
            step = Step(kind, clause, of=squeeze(checked or (until["until"] if until else "")), limit=limit)
        elif kind == "each":
            step.of, step.text = parted(clause) or (" ".join(clause.split()[2:3]), clause)
        elif not self.steps and (matches("incoming", clause) or (not kind and matches("heads", clause))):
            return self._tell(clause)
        elif scope and fact and not kind and border == "sentence":
            # A fact is told to each step.
            self.context = f"{self.context}.\n{capital(clause)}".strip(".\n")
            # What names a branch is no fact for all of them.
            self.odd = self.odd or (clause if self._fork and any(alike(clause, way) for way in self._fork.ways) else "")
            return None
        return scope.append(step)


def _own(clause: str, name: str) -> list[str]:
    """The words of a clause that say something, and are not of a list."""
    return [one for one in _WORD.findall(clause.casefold()) if not (is_empty(one) or one in wordset(name))]
