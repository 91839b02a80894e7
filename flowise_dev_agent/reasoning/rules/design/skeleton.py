"""The skeleton of a flow of steps, by a small grammar: a text is sentences, a sentence is clauses, and each clause is a
task or one of a few kinds, known by its closed words. What a step is told are the person's own words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flowise_dev_agent.reasoning.rules.design.prompt import behaves, is_empty
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted, quoted_spans, squeeze, to_number

_WORD = re.compile(r"[^\W_][\w'’-]*")
#: What is whole, whatever marks are in it: brackets and bodies of requests.
_WHOLE = re.compile(r"\([^()\n]{0,300}\)|\{[^\n]{0,400}\}|https?://\S+")
_CLOSED = re.compile(r"[.!?]\s?[\"”»'’]")
_SEPARATED = re.compile(r"^((?:\s\w+){0,2}?)\s?(?:[:,]|->|=>|→)\s?")
NUMBERED = pattern("steps", "numbered")
_LONGEST_TEXT, _LONGEST_NAME, _HEAD, _MOST_PIECES, _NEAR = 3_000, 4, 8, 120, 12
#: Lists of what is said of an answer that goes out.
_SENDING = ("approving", "replying", "everyday")
#: Kinds that a stretch behind a comma or "and" can begin.
_BEGINS = ("limit", "otherwise", "case", "branch", "approve", "again", "call", "who")


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


def kind_of(text: str, names: Sequence[str] = ()) -> str:
    """What a clause does in a flow; "" for one that only says more, or is a task of a model."""
    agrees = found("approve", text) and (found("before_call", text) or not matches("call", text))
    special = {"branch": mention(text, names), "sort": branch_names(text), "approve": agrees}
    order = ("limit", "otherwise", "case", "branch", "each", "approve", "call", "sort", "again", "says", "who")
    return next((name for name in order if (special[name] if name in special else matches(name, text))), "")


def branch_names(text: str) -> list[str]:
    """The branches that a clause sorts into, none where it names fewer than two."""
    asked, verb = matches("which", text), found("sorts", text)
    text = pattern("steps", "answers_each").sub("", text).rstrip("? ")
    each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(text[verb.end() :])] if verb else []
    into = asked or found("into", text)
    listing = re.sub(r"^[^:(]{0,60}:\s", "", text[into.start("list") :] if into else text)
    # What is in brackets explains a branch.
    plain = re.sub(r"\([^()]*\)", lambda one: one[0].replace(",", "\x01"), listing)
    parts = (squeeze(part.replace("\x01", ",")) for part in pattern("steps", "listed").split(plain))
    bare = (pattern("steps", "article").sub("", re.sub(r"^\W+|[^\w)]+$", "", part)) for part in parts)
    names = each if len(each) > 1 else [pattern("steps", "kinds").sub("", name) for name in bare if name]
    odd = any(len(name.split()) > _LONGEST_NAME or found("no_topic", name) for name in map(short, names))
    odd = odd or any(" " in name and matches("does", name) for name in names)
    return [] if not (asked or verb) or len(names) < 2 or odd or not (into or ":" in text or len(each) > 1) else names


def short(name: str) -> str:
    """A branch without what explains it in brackets."""
    return re.sub(r"\s?\(.*", "", name)


def clauses(text: str) -> list[tuple[str, str]]:
    """(clause, what is in front of it: "sentence", "then" or a mere comma, ""). A stretch behind a comma or "and" that
    does nothing of its own belongs to what it follows."""
    whole = [*quoted_spans(text), *(match.span() for match in _WHOLE.finditer(text))]
    cuts = [one for one in pattern("steps", "break").finditer(text)
            if not any(begin < one.start() and one.end() <= end for begin, end in whole)][:_MOST_PIECES]  # fmt: skip
    # The mark that closes a quotation belongs to it.
    ends = [cut.start() + (closing.end() if (closing := _CLOSED.match(cut.group())) else 0) for cut in cuts]
    borders = ["sentence", *("sentence" if cut["sentence"] else "then" if cut["then"] else "" for cut in cuts)]
    kept: list[tuple[int, int, str]] = []
    names: list[str] = []
    for start, end, border in zip([0, *(cut.end() for cut in cuts)], [*ends, len(text)], borders, strict=True):
        before = text[kept[-1][0] : kept[-1][1]] if kept else ""
        names = branch_names(before) or names
        if kept and _goes_on(text[start:end], before, border, names):
            start, _, border = kept.pop()
        kept.append((start, end, border))
    said = ((text[start:end].strip(" ,.;:!\x00"), border) for start, end, border in kept)
    return [(pattern("steps", "opening").sub("", one), border) for one, border in said if re.search(r"\w", one)]


def _goes_on(piece: str, before: str, border: str, names: Sequence[str]) -> bool:
    """Whether a stretch belongs to the clause in front of it."""
    if border != "sentence" and _unfinished(before):
        return not matches("otherwise", piece)
    if border or outcome(piece):
        return False
    kind, last, does = kind_of(piece, names), kind_of(before, names), matches("does", piece)
    if matches("incoming", before):
        return not (kind or found("does", piece))
    if last == "sort":
        return not (names and " " in piece.strip() and (kind or does))
    if last == "call" and (does or not found("calling", piece)):
        return not (kind in _BEGINS or found("does", piece))
    # What several persons do, or one person in several ways, is one approval.
    return kind not in _BEGINS or kind == last == "approve"


def _unfinished(clause: str) -> bool:
    """Whether what is done is still to come: "if it is late", "if not"."""
    if agreed := outcome(clause):
        return not agreed[1]
    bare = re.fullmatch(r"\W*", pattern("steps", "otherwise").sub("", clause, count=1))
    return bool(bare) or (bool(matches("case", clause)) and not parted(clause))


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both."""
    if not (head := matches("case", text) or matches("each", text)):
        return None
    rest = text[head.end() :]
    # What is done begins behind a number, a comma, or in front of it with an order ("ask for the date, the size").
    certain = [found("case_ends", rest), next(_verbs("orders", rest), None)]
    ends = certain if any(certain) else [found("approve", rest), found("says_behind", rest), *_verbs("then_does", rest)]
    over = found("over", rest)
    cut = over.end() if over else min((one.start() for one in ends if one), default=0)
    do = pattern("steps", "then").sub("", rest[cut:].strip(" ,:"))
    return (squeeze(rest[:cut]).rstrip(" ,:"), do) if cut > 1 and do else None


def _verbs(name: str, text: str) -> Iterator[re.Match[str]]:
    """Where a task begins: a verb, and no noun that is like one ("della lista")."""
    return (match for match in pattern("steps", name).finditer(text)
            if (before := text[: match.start()].split()) and before[-1].casefold() not in FUNCTIONS)  # fmt: skip


def mention(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """(the branch that a clause begins with, what it says of it)."""
    tokens = list(_WORD.finditer(text))[:_HEAD] if names else []
    for index, token in enumerate(tokens):
        word, behind = token.group(), text[token.start() :]
        fitting = [name for name in names if alike(word, name)]
        if not fitting and matches("rest", behind):
            fitting = [name for name in names if matches("rest", name)] or list(names[-1:])
        if len(fitting) == 1:
            for more in tokens[index + 1 :]:
                if not (alike(more.group(), fitting[0]) or matches("kinds_alone", more.group())):
                    break
                token = more
            behind = text[token.end() :]
            cut = _SEPARATED.match(behind)
            if cut and all(is_empty(one) or one.casefold() in FUNCTIONS for one in cut[1].split()):
                return fitting[0], behind[cut.end() :]
            said = behind.strip()
            return (fitting[0], said if index and not matches("case", text) else text) if said else None
        if not (is_empty(word) or word.casefold() in FUNCTIONS or matches("heads", behind)):
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
    do = text[match.end() :] if match else ""
    # "If he does not approve it, ..."
    do = do[again.end() :] if (again := found("approve", do)) and again.start() < _NEAR else do
    do = re.sub(r"^[\w'’\s]{0,20},\s", "", do)
    return ("no" if match["no"] else "yes", do.strip(" ,:")) if match else None


def limit_of(clause: str) -> int | None:
    return round(to_number(match[1])) if (match := found("times", clause)) else None


class Skeleton:
    """The steps of a text. `rules` are told to each model: what the flow is for, and how it is to behave; `sent` says
    no more than that an answer goes out; `odd` is a clause that does not fit. Of a list each line or number is a step.
    """

    _fork: Step | None = None
    _approval: Step | None = None

    def __init__(self, text: str, answer: str = "", *, listed: bool = False) -> None:
        self._answer, self.odd = answer, ""
        self.rules, self.steps, self.sent = list[str](), list[Step](), list[str]()
        #: Where a clause goes: a list of steps, which the next one of the same sentence goes on with.
        self._scope = self.steps
        self.listed = listed or len(NUMBERED.findall(text)) > 1
        text = (NUMBERED.sub("\n", text[:_LONGEST_TEXT]) if self.listed else text[:_LONGEST_TEXT]).strip()
        for name in ("lead", "titled", ""):
            while " " in text and text.split(maxsplit=1)[0].strip(" ,:").casefold() in wordset("leads"):
                text = text.split(maxsplit=1)[1]
            one = matches(name, text) if name else None
            about = one["about"].strip() if one else ""
            acts = matches("does", about) or (name == "titled" and (kind_of(about) or found("sorts", about)))
            # "An agentflow writes a letter, ..."
            text = text if not one or (acts and name == "titled") else text[one.start("about") if acts else one.end() :]
            self._tell("" if acts else about)
        lines = text.strip().split("\n") if self.listed else [text.strip()]
        self.clauses = [one for line in lines for one in clauses(line)]
        for clause, border in self.clauses:
            self._scope = self._scope if border != "sentence" else self.steps
            self._place(clause, "then" if self.listed and border == "sentence" else border)

    def _tell(self, about: str) -> None:
        """Note what each model is to know; words of structure say nothing of it."""
        said = (one for one in _WORD.findall(about) if not (is_empty(one) or one.casefold() in FUNCTIONS))
        if not all(map(words("structure").fullmatch, said)) and not words("team").search(about):
            self.rules.append(capital(squeeze(about.strip(" ,"))))

    def _limit(self, step: Step, clause: str) -> None:
        """Note how often a step is made again; what else the clause says is a rule."""
        step.limit = limit_of(clause) or step.limit
        self.rules += [capital(clause)] if _own(clause, *_SENDING) else []
        self.sent.append(clause)

    def _place(self, clause: str, border: str) -> None:
        """Put one clause where it belongs: on a way of an approval, of a condition or of branches, or at the end."""
        fork, last = self._fork, self._scope[-1] if self._scope else None
        names = [*fork.ways] if fork and fork.kind == "fork" else []
        kind, parts, named = kind_of(clause, names), parted(clause), mention(clause, names)
        if self._approval and (ending := outcome(clause)):
            way, do = ending
            mere = not do or words("answer_out").search(do) or found("anew", do)
            if mere and not (quoted(do) or "://" in do):
                return self._limit(self._approval, clause)
            self._scope, clause = self._approval.ways.setdefault(way, []), do
        elif kind == "case" and parts and not named:
            alone = not any(matches("otherwise", one) for one, _ in self.clauses)
            if alone and last and last.kind in ("", "who") and not kind_of(parts[1]):
                # "If it finds nothing, say sorry" is a rule of the step before it.
                last.text, clause = f"{last.text}. {capital(clause)}", ""
            else:
                # "If unsure, ask" behind branches is one more.
                if not (fork and self.steps[-1] is fork):
                    fork = self._fork = Step("cases", clause, {"": []})
                    self.steps.append(fork)
                self._scope, clause = fork.ways.setdefault(parts[0], []), parts[1]
        elif fork and kind in ("branch", "case") and named:
            own = bool(_own(named[1], "replying"))
            self._scope, clause = (fork.ways[named[0]], named[1]) if own else (self._scope, "")
        elif fork and kind == "otherwise":
            clause = pattern("steps", "otherwise").sub("", clause, count=1)
            self._scope = fork.ways.setdefault(next((one for one in fork.ways if matches("rest", one)), ""), [])
        if clause and not matches("answers", clause):
            self._put(clause, border if self._scope is self.steps else "then")
        return None

    def _put(self, clause: str, border: str) -> None:
        """Add what a clause says at the end of where the sentence is."""
        kind, scope, starts = kind_of(clause), self._scope, matches("does", clause)
        step, does = Step(kind, clause), found("does", " ".join(clause.split()[:_HEAD]))
        came = matches("incoming", clause)
        first = not self.steps and ((came and not found("does", clause[: came.start(1)] + clause[came.end() :]))
                                    or (not does and clause != self.clauses[-1][0]))  # fmt: skip
        if kind == "sort" or (matches("sorts", clause) and found("no_topic", clause)):
            self.odd = self.odd or (clause if self._fork or kind != "sort" else "")
            step = self._fork = Step("fork", clause, {name: [] for name in branch_names(clause)})
        elif kind == "approve":
            return self._approve(clause, border)
        elif kind in ("limit", "again"):
            repeated = scope[-1] if scope and scope[-1].kind == "again" else self._approval
            if kind == "limit" and repeated:
                return self._limit(repeated, clause)
            until = found("till", clause)
            step = Step("again", clause, of=squeeze(until["until"]) if until else "", limit=limit_of(clause))
        elif kind == "each":
            step.of, step.text = parted(clause) or (" ".join(clause.split()[2:3]), clause)
        elif not kind and does and (behind := found("each_behind", clause)):
            step = Step("each", clause[: behind.start()].strip(" ,"), of=squeeze(behind["item"] or ""))
        elif (
            not kind and self._approval in scope and words("answer_out").search(clause) and not _own(clause, *_SENDING)
        ):
            return self.sent.append(clause)
        elif not kind and (
            first
            or (border == "sentence" and (not does or (behaves(clause) and not starts) or found("a_flow", clause)))
        ):
            # What names a branch is no fact for all of them.
            named = self._fork and not self.odd and any(alike(clause, way) for way in self._fork.ways)
            self.odd = clause if named else self.odd
            return self._tell(clause)
        return scope.append(step)

    def _approve(self, clause: str, border: str) -> None:
        """A person's approval, in front of a request where the clause names one that comes after it."""
        scope, agrees, late = self._scope, found("approve", clause), found("before_call", clause)
        shown = clause[: late.start()].strip(" ,") if late else clause
        if border != "sentence" and len(scope) > 1 and scope[-1].kind == "" and agrees and agrees.start() < 4:
            # "then Marta reads it and approves"
            shown = f"{scope.pop().text}, {shown}"
        step = self._approval = Step("approve", shown, of=" ".join(_own(shown, "approving")))
        ways = self._fork.ways.items() if self._fork and self._fork.kind == "fork" else ()
        for own in [way for name, way in ways if alike(f"{clause} {self._answer}", name)] or [scope]:
            own += [step, *([Step("call", late["call"])] if late else [])]


def _own(clause: str, *lists: str) -> list[str]:
    """The words of a clause that say more than that an answer is approved, goes out or is made again."""
    plain, known = clause.casefold(), " ".join(word for name in lists for word in wordset(name))
    for one in (*(pattern("steps", name) for name in ("times", "skeleton", "approve")), words("answer_out")):
        plain = one.sub(" ", plain)
    return [one for one in _WORD.findall(plain) if not (one in FUNCTIONS or is_empty(one) or alike(one, known))]
