"""The skeleton of a flow of steps, by a small grammar: a text is sentences, a sentence is clauses, and each clause is a
task or one of a few kinds, known by its closed words. The first clause that is none of them is `odd`: no flow is built
then. What a step is told are the person's own words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, without_opening
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted, quoted_spans, signals, squeeze, to_number

_WORD = re.compile(r"[^\W_][\w'’-]*")
#: What is whole, whatever marks are in it: brackets and bodies of requests.
_WHOLE = re.compile(r"\([^()\n]{0,300}\)|\{[^\n]{0,400}\}|https?://\S+")
_QUOTED = re.compile(r"[\"“„«'][^\"”»']*[\"”»']")
_CLOSED = re.compile(r"[.!?]\s?[\"”»'’]")
_SEPARATED = re.compile(r"^((?:\s\w+){0,2}?)\s?(?:[:,]|->|=>|→)\s?")
_NUMBERED = pattern("steps", "numbered")
#: What a person does, and no step.
_OURS = pattern("facts", "ours")
_SENTENCE = re.compile(r"\A|[.!?:]\s+|\n")
#: A line of a list of branches.
_WAY = re.compile(r"^\W*(?P<name>[^\n]{2,120}?)\s?(?:->|=>|→)\s?(?P<do>\S.*)$")
_LONGEST_TEXT, _LONGEST_NAME, _HEAD, _MOST_PIECES, _NEAR = 3_000, 4, 8, 120, 12
#: Kinds that a stretch behind a comma or "and" can begin.
_BEGINS = ("limit", "otherwise", "case", "branch", "each", "approve", "call", "who")
#: Structure that is no task of a model.
_STRUCTURE = {"branch", "loop", "call", "team"}
#: Kinds of clauses that are a step wherever they are.
_PARTS = {"approve", "call", "sort", "each"}
#: Kinds that a list of branches does, or that are values.
_SAID = {"branch", "team", "setting", "output"}


@dataclass
class Step:
    """One step in the person's words. `ways`: by the name of a branch or a condition, or "no" of an approval; `of`:
    what a list is made of, or what else a person who approves is told."""

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
    agrees = not matches("call", text) and found("approve", text)
    special = {"branch": mention(text, names), "sort": branch_names(text), "approve": agrees}
    order = ("limit", "otherwise", "case", "branch", "each", "approve", "call", "sort", "says", "who")
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
    plain = ((pattern("steps", "then").sub("", pattern("steps", "opening").sub("", one)), to) for one, to in said)
    # "Daarna vertaalt een agent het": who does it comes first.
    turned = ((pattern("steps", "inverted").sub(r"\g<who> \g<verb>", one), to) for one, to in plain)
    return [(one, to) for one, to in turned if re.search(r"\w", one)]


def _goes_on(piece: str, before: str, border: str, names: Sequence[str]) -> bool:
    """Whether a stretch belongs to the clause in front of it."""
    if border != "sentence" and _unfinished(before):
        return not matches("otherwise", piece)
    if border or outcome(piece):
        return False
    kind = kind_of(piece, names)
    if kind_of(before, names) == "call" and (matches("does", piece) or not found("calling", piece)):
        return not (kind in _BEGINS or found("does", piece))
    return kind not in _BEGINS


def _unfinished(clause: str) -> bool:
    """Whether what is done is still to come: "if it is late", "if not"."""
    if agreed := outcome(clause):
        return not agreed[1]
    bare = re.fullmatch(r"\W*", pattern("steps", "otherwise").sub("", clause, count=1))
    return bool(bare) or (bool(matches("case", clause) or matches("each", clause)) and not parted(clause))


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both."""
    if not (head := matches("case", text) or matches("each", text)):
        return None
    rest = text[head.end() :]
    # What is done begins behind a comma, or in front of it with an order ("ask for the date, the size"), or with the
    # only verb that it can begin with.
    says, verbs = found("says_behind", rest), [*_verbs("then_does", rest)]
    certain = [found("case_ends", rest), says or next(_verbs("orders", rest), None)]
    ends = certain if any(certain) else verbs if len(verbs) == 1 else []
    cut = min((one.start() for one in ends if one), default=0)
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
            # "Billing questions take two days" says nothing of a branch.
            return (fitting[0], behind.strip()) if behind.strip() and matches("heads", text) else None
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
    """("yes" or "no", what is done then) where a clause says what happens after an approval, and of nothing else."""
    if not (match := matches("outcome", text)):
        return None
    said, do = _WORD.findall(text[: match.start("no" if match["no"] else "yes")])[1:], text[match.end() :]
    # "If he does not approve it, ..."
    do = do[again.end() :] if (again := found("approve", do)) and again.start() < _NEAR else do
    if "," in do and "://" not in do.partition(",")[0]:
        more, do = do.split(",", 1)
        said += _WORD.findall(more)
    known = FUNCTIONS | wordset("approving")
    else_ = any(not (is_empty(one) or one.casefold() in known) for one in said)
    return None if else_ else ("no" if match["no"] else "yes", do.strip(" ,:"))


class Skeleton:
    """The steps of a text. `rules` are told to each model: what the flow is for, and how it is to behave; `told` are
    those of them that are not understood; `sent` says no more than that an answer goes out; `odd` is the first clause
    without which there is no flow. Of a list each line or number is a step."""

    def __init__(self, text: str, *, listed: bool = False) -> None:
        self.odd, self.rules, self.sent, self.told = "", list[str](), list[str](), list[str]()
        self.steps = list[Step]()
        self._fork: Step | None = None
        self._approval: Step | None = None
        #: Where a clause goes: a list of steps, which the next one of the same sentence goes on with.
        self._scope = self._approved = self.steps
        self._opened = 0
        self.listed = listed or len(_NUMBERED.findall(text)) > 1
        text = without_opening(text[:_LONGEST_TEXT]) or text
        text = (_NUMBERED.sub("\n", text) if self.listed else text).strip()
        lead = None
        while found_ := next(
            filter(None, (matches("lead", text[one.end() :]) for one in _SENTENCE.finditer(text))), None
        ):
            before, text, lead = text[: len(text) - len(found_.string)], found_.string[found_.end() :], found_
            self._tell(squeeze(f"{before}{found_['about'] or ''}").strip(" ,:"))
            self.sent.append(found_[0])
        lines = text.strip().split("\n")
        ways = {line: one for line in lines if (one := _WAY.match(line))}
        listed = self.listed or len(ways) > 1
        self.clauses = [one for line in (lines if listed else [text]) for one in clauses(line)]
        # "A flow that ...": what it does, however that is said.
        self._asked = self.clauses[0][0] if lead and self.clauses and lead[0].strip()[-1:].isalpha() else ""
        if len(ways) > 1:
            self._branch(lines, ways)
        else:
            self._read(text)
        for step in (one for one in self.steps if one.kind in ("sort", "case")):
            ways = [*step.ways.values()]
            # Each branch says what happens there, or all are answered.
            if not (all(ways) and len(ways) > 1) and (any(ways) or not step.of):
                self.odd = self.odd or step.text

    def _read(self, text: str) -> None:
        # "I paste a list, and for each line write ...": the list is none of its steps.
        starts = [n for n, (one, to) in enumerate(self.clauses) if not n or to == "sentence" or kind_of(one) == "each"]
        for start, end in pairwise([*starts, len(self.clauses)]):
            self._scope, self._opened, sentence = self.steps, 0, self.clauses[start:end]
            odd = next((one for one in sentence if not self._place(*one)), None)
            if odd:
                last = sentence[-1][0]
                whole = text[text.find(odd[0]) : text.find(last) + len(last)] if last in text else odd[0]
                kinds = {kind_of(clause) for clause, _ in sentence[1:]}
                self._beside(whole, part=odd is not sentence[0] or bool(kinds & _PARTS))

    def _branch(self, lines: Sequence[str], ways: Mapping[str, re.Match[str]]) -> None:
        """A list of branches: "billing -> explain the invoice"."""
        self._fork = Step("sort", next(iter(ways)), {way["name"]: [] for way in ways.values()})
        for line in lines:
            if way := ways.get(line):
                self.steps = [self._fork]
                if kind_of(way["do"]) or {kind for _, kind in signals(way["do"])} & _STRUCTURE:
                    self.odd = self.odd or ("" if self._open(self._fork, way["name"], way["do"]) else line)
                else:
                    # A fact is what is said there.
                    self._fork.ways[way["name"]] = [Step("", way["do"])]
            elif not _structure(line):
                self._beside(line)

    def _beside(self, clause: str, *, part: bool = False) -> None:
        """What is no step is told to each model, unless it says how the steps hang together. What comes before all
        steps says what they are for."""
        if part or "://" in clause or any(kind not in _SAID for _, kind in signals(clause)):
            self.odd = self.odd or clause
        # What follows a task is said of it; an approval, branches and conditions are no matter of a model.
        task = not self.steps or (self.steps[-1].kind in ("", "who", "each") and not self._fork)
        task = task and not (found("no_task", clause) or found("unread", clause))
        self.told += [] if task else [capital(clause)]
        self.rules += [] if self._approval or _structure(clause) else [capital(clause)]

    def _tell(self, about: str) -> bool:
        """Note what each model is to know; words of structure say nothing of it."""
        self.rules += [] if _structure(about) else [capital(about)]
        return True

    def _place(self, clause: str, border: str) -> bool:
        """Put one clause where it belongs. False for one that is not understood there."""
        fork = self._fork
        names = [*fork.ways] if fork and fork.kind == "sort" else []
        kind, named = kind_of(clause, names), mention(clause, names)
        if border == "sentence" and not kind and (_structure(clause) or matches("beside", clause)):
            # "An agentflow."; "GPT-4.1."
            self.sent.append(clause)
            return True
        if fork and matches("answers", clause):
            fork.of = clause
            return True
        if self._approval and (ending := outcome(clause)):
            return self._ending(self._approval, *ending, clause)
        if self._approval and kind == "limit":
            return self._again(self._approval, clause)
        if fork and kind == "otherwise":
            rest = next((one for one in fork.ways if matches("rest", one)), "")
            return self._open(fork, rest, pattern("steps", "otherwise").sub("", clause, count=1))
        if fork and kind in ("branch", "case") and named:
            return self._open(fork, *named)
        if kind == "case":
            case, do = parted(clause) or ("", "")
            # A number that has to be read and compared first is nothing that a model decides well.
            compared = re.search(r"\d|[<>]", _QUOTED.sub("", case)) or found("compared", case) or found("modal", case)
            if compared or not do or (self.steps and not (fork and fork.kind == "case")):
                return False
            if not fork:
                fork = self._fork = Step("case", clause)
                self.steps.append(fork)
            return self._open(fork, case, do)
        # What follows branches is for one of them or for all.
        return not (fork and (self._scope is self.steps or self._opened > 1)) and self._put(clause, border)

    def _open(self, fork: Step, name: str, do: str) -> bool:
        """What is done on one way."""
        if fork.ways.get(name):
            return False
        self._scope, self._opened = fork.ways.setdefault(name, []), self._opened + 1
        return self._put(do, "")

    def _ending(self, approval: Step, way: str, do: str, clause: str) -> bool:
        """What happens once a person has decided."""
        more = quoted(do) or "://" in do
        if way == "no" and found("anew", do) and not more:
            return self._again(approval, clause)
        if way == "yes" and (not do or words("answer_out").search(do)) and not more:
            return self._goes_out(clause)
        self._scope = self._approved if way == "yes" else approval.ways.setdefault("no", [])
        return self._put(do, "")

    def _again(self, approval: Step, clause: str) -> bool:
        """How often a draft is made again."""
        limit = found("times", clause)
        approval.limit = round(to_number(limit[1])) if limit else approval.limit
        return self._goes_out(clause)

    def _goes_out(self, clause: str) -> bool:
        self.sent.append(clause)
        return not _own(clause, "approving", "replying", "everyday")

    def _put(self, clause: str, border: str) -> bool:
        """Add what a clause says at the end of where the sentence is."""
        kind, scope, came = kind_of(clause), self._scope, matches("incoming", clause)
        if not kind and self._approval in scope and words("answer_out").search(clause):
            return self._goes_out(clause)
        if self.listed and not (self.steps or kind) and _OURS.match(clause):
            return self._tell(clause)
        if came and not (self.steps or kind or found("does", clause[: came.start(1)] + clause[came.end() :])):
            return self._tell(clause)
        manner = words("insists").match(clause) or (words("about_language").match(clause) and matches("manner", clause))
        if border == "sentence" and not kind and manner:
            return self._tell(clause)
        fits = self._fits(step := Step(kind, clause), scope, border)
        scope += [step] if fits else []
        return fits

    def _fits(self, step: Step, scope: Sequence[Step], border: str) -> bool:
        """Whether a clause is understood as a step behind those of `scope`."""
        kind, clause = step.kind, step.text
        if kind == "sort":
            step.ways = {name: [] for name in branch_names(clause)}
            step.of = clause if self.listed or found("answers_each", clause) or found("to_each", clause) else ""
            self._fork = self._fork if self.steps else step
            return not self.steps
        if kind == "approve":
            said = words("answer_out").sub(" ", clause)
            several = any(to_number(one) > 1 for one in re.findall(NUMBER, said, re.IGNORECASE))
            # "Marta reads it and approves": what is in front of it is no task of a model.
            agrees = next(pattern("steps", "approve").finditer(clause))
            whose = agrees[0].split()[0].casefold() in FUNCTIONS | wordset("speakers")
            joint = not (border or whose) and agrees.start() < _LONGEST_NAME
            if several or joint or found("before", said) or not (scope and scope[-1].kind in ("", "who")):
                return False
            step.of, self._approval, self._approved = " ".join(_own(clause, "approving")), step, self._scope
            return True
        if kind == "each":
            step.of, step.text = parted(clause) or ("", "")
            return bool(step.of) and _is_task(step.text, freely=True)
        own = scope is not self.steps and scope is not self._approved
        freely = own or self.listed or kind == "who" or clause == self._asked
        if kind == "call":
            # Which parts of an answer are sent is not read.
            return not found("listed", clause.partition("://")[0])
        return kind == "says" or _is_task(clause, freely=freely, named=own)


def _structure(about: str) -> bool:
    """Whether nothing but words of structure is said."""
    known = (one.strip(".,:;!?()") for one in about.split())
    said = (one for one in known if not (is_empty(one) or one.casefold() in FUNCTIONS | {*NUMBER_WORDS}))
    return all(any(texts.concepts(one, "parts", "own", "steps")) or matches("a_flow", one) for one in said)


def _is_task(clause: str, *, freely: bool, named: bool = False) -> bool:
    """Whether a clause tells a model what to do: it begins, or as an order ends, with what is done; `freely` it may say
    so anywhere; on a `named` branch a fact is one, too."""
    kinds = {kind for match, kind in signals(clause) if kind != "team" or match[0].count(" ") > 3}
    does = found("does", clause) if freely else (matches("task", clause) or found("ordered", clause))
    does = does or (named and not words("human").search(clause))
    return bool(does) and not (
        kinds & _STRUCTURE or any(found(name, clause) for name in ("fact", "no_task", "unread", "from_there", "inner"))
    )


def _own(clause: str, *lists: str) -> list[str]:
    """The words of a clause that say more than that an answer is approved, goes out or is made again."""
    plain, known = clause.casefold(), " ".join(word for name in lists for word in wordset(name))
    for one in (*(pattern("steps", name) for name in ("times", "skeleton", "approve")), words("answer_out")):
        plain = one.sub(" ", plain)
    said = (one for one in _WORD.findall(plain) if not (one in FUNCTIONS or one.isdigit()))
    return [one for one in said if not (is_empty(one) or alike(one, known))]
