"""The skeleton of a flow of steps, by a small grammar: a text is sentences, a sentence is clauses, and each clause is a
task or one of a few kinds, known by its closed words or by the second reader. Clauses that are none of them are `odd`:
no flow is built then. What a step is told are the person's own words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.design.clauses import Clause
from flowise_dev_agent.reasoning.rules.design.comparing import Comparison, compared
from flowise_dev_agent.reasoning.rules.design.details import Field
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, without_opening
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
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
#: A line of a list of branches: "billing -> explain the invoice".
WAY = re.compile(r"(?m)^\W*(?P<name>[^\n]{2,120}?)\s?(?:->|=>|→)\s?(?P<do>\S.*)$")
_LONGEST_TEXT, _LONGEST_NAME, _HEAD, _MOST_PIECES, _NEAR = 3_000, 4, 8, 120, 12
#: How probable it has to be that a clause is for the model, or is an approval.
_SURE, _HALF, _LEAST = 0.85, 0.5, 0.2
#: The kinds of clauses, the first that fits.
_KINDS = ("limit", "otherwise", "case", "branch", "each", "call", "approve", "sort", "says", "who")
#: Kinds that a stretch behind a comma or "and" can begin.
_BEGINS = {*_KINDS} - {"sort", "says"}
#: Structure that is no task of a model.
_STRUCTURE = {"branch", "loop", "call", "team"}
#: Kinds of clauses that are a step wherever they are.
_PARTS = {"approve", "call", "sort", "each"}
#: What only says that a flow is wanted, what it is given, or that it sorts.
_FRAMES = ("a_flow", "incoming", "sorts")
#: Kinds that a list of branches does, or that are values.
_SAID = {"branch", "team", "setting", "output"}


@dataclass
class Step:
    """One step in the person's words. `ways`: by the name of a branch or a condition, or "no" of an approval; `tests`:
    what conditions compare; `of`: what a list is made of, or what else a model or a person who approves is told;
    `limit`: how often a draft is made again."""

    kind: str
    text: str
    ways: dict[str, list["Step"]] = field(default_factory=dict[str, list["Step"]])
    tests: dict[str, Comparison] = field(default_factory=dict[str, Comparison])
    of: str = ""
    limit: int | None = None


def found(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).search(text)


def kind_of(text: str, names: Sequence[str] = ()) -> str:
    """What a clause does in a flow; "" for one that only says more, or is a task of a model."""
    text = straight(text)
    special = {"branch": mention(text, names), "sort": branch_names(text)}
    kind = next((name for name in _KINDS if (special[name] if name in special else found(name, text))), "")
    # "If not OK" and "if it is not clear which one" are conditions on their own.
    head = found("case", text) if kind == "otherwise" else None
    judged = head and (found("verdict_first", text[head.end() :]) or found("unclear", text))
    if judged or repeats(text):
        return "case"
    by_whom = found("by_other", text) or (found("agent_noun", text) and sense(text, change=False).part > _HALF)
    return kind or ("who" if by_whom else "") or ("approve" if len(text.split()) > 2 and asks(text, "approval") else "")


def asks(text: str, concept: str) -> bool:
    """Whether the second reader takes a clause for this part of a flow."""
    return concept in Clause(0, len(text), text, sense(text, change=False)).asks()


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
    odd = any(len(short(name).split()) > _LONGEST_NAME or (" " in name and found("task", name)) for name in names)
    return [] if len(names) < 2 or odd else names


def choice_in(text: str) -> list[str]:
    """The names of what is chosen among, where they are listed: "3 products (A, B, C)", and "which product it is"."""
    asked = [one["noun"] for one in pattern("steps", "which_one").finditer(text)]
    listed = (
        one
        for one in pattern("steps", "choice_of").finditer(text)
        if found("branches", one["noun"]) or any(alike(one["noun"], a) for a in asked)
    )
    found_ = next((pattern("steps", "listed").split(one["list"]) for one in listed), [])
    names = [name.strip() for name in found_]
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
    for name in ("as_flow", "opening", "then"):
        clause = pattern("steps", name).sub("", clause.strip(" ,.;:!\x00"))
    return clause


def straight(clause: str) -> str:
    """With who does it first: "daarna vertaalt een agent het"."""
    return pattern("steps", "inverted").sub(r"\g<who> \g<verb>", clause)


def _goes_on(piece: str, before: str, border: str, names: Sequence[str]) -> bool:
    """Whether a stretch belongs to the clause in front of it."""
    if border != "sentence" and (_unfinished(before) or found("before_first", before)):
        return not found("otherwise", piece)
    # "Vraag dan de maat": what is done has begun before "then".
    if border == "then" and (case := parted(before)) and " " not in case[1]:
        return True
    if border or outcome(piece) or found("before_first", piece):
        return False
    kind = kind_of(piece, names)
    who = pattern("steps", "otherwise").sub("", before, count=1).split()
    # "I want to see it and approve it."
    if kind == "approve" and (kind_of(before, names) == kind or (who and who[0].casefold() in wordset("speakers"))):
        return True
    called = kind_of(before, names) == "call" and (found("task", piece) or not found("calling", piece))
    return kind not in _BEGINS and not (called and found("does", piece))


def _unfinished(clause: str) -> bool:
    """Whether what is done is still to come: "if it is late", "if not"."""
    if agreed := outcome(clause):
        return not agreed[1]
    bare = re.fullmatch(r"\W*", pattern("steps", "otherwise").sub("", clause, count=1))
    return bool(bare) or (bool(found("case", clause) or found("each", clause)) and not parted(clause))


def parted(text: str) -> tuple[str, str] | None:
    """(the condition or the item, what is done then or with each), where a clause says both."""
    if not (head := found("case", text) or found("each", text)):
        return None
    rest = text[head.end() :]
    if (good := found("verdict_first", rest)) and (do := rest[good.end() :].strip(" ,:")):
        return good[0], pattern("steps", "then").sub("", do)
    # What is done begins behind a comma, or in front of it with an order ("ask for the date, the size"), or with the
    # only verb that it can begin with.
    says, verbs = found("says_behind", rest), [*_verbs("then_does", rest)]
    certain = [
        found("case_ends", rest),
        says or next(_verbs("orders", rest), None),
        *(found(one, rest) for one in ("modal_first", "back_first")),
    ]
    ends = certain if any(certain) else verbs if len(verbs) == 1 else []
    number = None if any(ends) else found("compares", rest)
    cut = min((one.start() for one in ends if one), default=number.end() if number else 0)
    do = pattern("steps", "then").sub("", rest[cut:].strip(" ,:"))
    return (squeeze(rest[:cut]).rstrip(" ,:"), do) if cut > 1 and do else None


def _verbs(name: str, text: str) -> Iterator[re.Match[str]]:
    """Where a task begins: a verb, and no noun that is like one ("della lista")."""
    return (match for match in pattern("steps", name).finditer(text) if (before := text[: match.start()].strip())
            and not found("subject", before) and before.split()[-1].casefold() not in FUNCTIONS)  # fmt: skip


def mention(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """(the branch that a clause begins with, what it says of it)."""
    for token in [*_WORD.finditer(text)][:_HEAD] if names else ():
        word, behind = token.group(), text[token.start() :]
        fitting = [name for name in names if alike(word, name)]
        if not fitting and found("rest", behind):
            fitting = [name for name in names if found("rest", name)] or names[-1:]
        if len(fitting) == 1:
            behind = text[token.end() :]
            while (more := _WORD.search(behind)) and (alike(more[0], fitting[0]) or found("kinds_alone", more[0])):
                behind = behind[more.end() :]
            if (cut := _SEPARATED.match(behind)) and not _known(cut[1].split()):
                return fitting[0], behind[cut.end() :]
            # "Billing questions take two days" says nothing of a branch.
            if word == fitting[0] and (states := found("states", behind.strip())):
                return word, f"{word}: {behind.strip()[states.end() :]}"
            does = found("gets", behind.strip()) or (
                word.casefold() == fitting[0].casefold() and found("task", behind.strip())
            )
            says = behind.strip() and (found("heads", text) or does)
            return (fitting[0], behind.strip()) if says else None
        if _known([word]) and not found("heads", behind):
            return None
    return None


def alike(text: str, other: str) -> bool:
    """Whether two texts have forms of one word: "emergencies" and "emergency"."""
    return any(_one(a, b) for a in _WORD.findall(text.casefold()) for b in _WORD.findall(other.casefold()))


def _one(word: str, other: str) -> bool:
    stem = max(4, min(len(word), len(other)) - 2)
    return word.removesuffix("s")[:stem] == other.removesuffix("s")[:stem] and abs(len(word) - len(other)) <= 4


def _known(said: Sequence[str], *others: str) -> list[str]:
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
    # "If he does not approve it, ..."
    do = do[again.end() :] if (again := found("approve", do)) and again.start() < _NEAR else do
    if "," in do and not re.search(r"://|(?<!\w)[\"“„«']", do.partition(",")[0]):
        more, do = do.split(",", 1)
        said += _WORD.findall(more)
    return None if _known(said, *wordset("approving")) else (way, do.strip(" ,:"))


class Skeleton:
    """The steps of a text. `rules` are told to each model: what the flow is for, and how it is to behave; `told` are
    those of them that are not understood; `sent` says no more than that an answer goes out; `odd` are the clauses
    without which there is no flow. Of a list each line or number is a step; `fields` are those of a form."""

    def __init__(self, text: str, fields: Mapping[str, Field] | None = None, *, listed: bool = False) -> None:
        self.odd, self.rules, self.sent, self.told = list[str](), list[str](), list[str](), list[str]()
        self.steps, self._fields = list[Step](), fields or {}
        self._fork: Step | None = None
        self._approval: Step | None = None
        self._back: Step | None = None
        #: Where a clause goes: a list of steps, which the next one of the same sentence goes on with; and where a
        #: sentence begins, which is behind a draft that is made again until it is good.
        self._scope = self._approved = self._main = self.steps
        self._opened, lead = 0, None
        self.listed = listed or len(_NUMBERED.findall(text)) > 1
        text = without_opening(text[:_LONGEST_TEXT]) or text
        text = pattern("steps", "address_is").sub(" ", text)
        self._choice = choice_in(text)
        text = (_NUMBERED.sub("\n", text) if self.listed else text).strip()
        while led := next(filter(None, (_lead(text[one.end() :]) for one in _SENTENCE.finditer(text))), None):
            before, text, lead = text[: len(text) - len(led.string)], led.string[led.end() :], led
            self._tell(squeeze(f"{before}{led['about'] or ''}").strip(" ,:"))
            self.sent.append(led[0])
        ways = [*WAY.finditer(text)]
        lines = text.strip().split("\n") if self.listed or len(ways) > 1 else [text]
        self.clauses = [one for line in lines for one in clauses(line, self._choice)]
        # "A flow that ...": what it does, however that is said.
        self._asked = self.clauses[0][0] if lead and self.clauses and lead[0].strip()[-1:].isalpha() else ""
        if len(ways) > 1:
            self._branch(lines, {one[0].strip("\n"): one for one in ways})
        else:
            self._read(text)
        for step in (one for one in self.steps if one.kind in ("sort", "case")):
            # Each branch says what happens there, or all are answered; where one goes back, the other one goes on.
            done, ways = [*map(bool, step.ways.values())], [one for way in step.ways.values() for one in way]
            back = self._back and any(one is self._back for one in ways)
            if not (back or (all(done) and len(done) > 1)) and (any(done) or not step.of):
                self.odd.append(step.text)

    def _read(self, text: str) -> None:
        # "I paste a list, and for each line write ...": the list is none of its steps.
        starts = [n for n, (one, to) in enumerate(self.clauses) if to == "sentence" or kind_of(one) == "each"]
        for start, end in pairwise([*starts, len(self.clauses)]):
            self._scope, self._opened, sentence = self._main, 0, self.clauses[start:end]
            kinds = [kind_of(clause) for clause, _ in self.clauses[start : end + 1]]
            # Whether another way follows.
            ahead = [bool({"otherwise", "case"} & {*kinds[n:]}) for n in range(1, end - start + 1)]
            odd = next(
                (one for one, more in zip(sentence, ahead, strict=True) if not self._place(*one, ahead=more)), None
            )
            if odd:
                last, kinds = sentence[-1][0], {kind_of(clause) for clause, _ in sentence[1:]}
                whole = text[text.find(odd[0]) : text.find(last) + len(last)] if last in text else odd[0]
                self._beside(whole, part=odd is not sentence[0] or bool(kinds & _PARTS))

    def _branch(self, lines: Sequence[str], ways: dict[str, re.Match[str]]) -> None:
        """A list of branches: "billing -> explain the invoice"."""
        fork = Step("sort", next(iter(ways)))
        for line in lines:
            if way := ways.get(line):
                self.steps = [fork]
                # A fact is what is said there.
                kind, does = kind_of(way["do"]), {kind for _, kind in signals(way["do"])} & _STRUCTURE
                fork.ways[way["name"]] = [Step(kind, way["do"])]
                self.odd += [line] if does or kind not in ("", "says") else []
            elif not _structure(line):
                self._beside(line)

    def _beside(self, clause: str, *, part: bool = False) -> None:
        """What is no step is told to each model, unless it says how the steps hang together. What comes before all
        steps says what they are for."""
        about = sense(clause, change=False)
        # Of what the second reader takes for a part of the flow no model is told.
        asks = about.part > _SURE and about.told < _HALF and len(clause.split()) > 2
        part = part or (asks and not (words("pasted").search(clause) or any(found(one, clause) for one in _FRAMES)))
        if part or "://" in clause or found("approve", clause) or any(kind not in _SAID for _, kind in signals(clause)):
            self.odd.append(clause)
        # What follows a task is said of it; an approval, branches and conditions are no matter of a model, except for
        # what both readers take for words to it.
        task = not self.steps or (self.steps[-1].kind in ("", "who", "each") and not self._fork)
        certain = about.told > _SURE or (words("languages").search(clause) and about.part < _HALF)
        agreed = (task or certain) and not (found("no_task", clause) or found("unread", clause))
        self.told += [] if agreed else [capital(clause)]
        if agreed or not self._approval:
            self._tell(clause)

    def _tell(self, about: str) -> bool:
        """Note what each model is to know; words of structure say nothing of it."""
        self.rules += [] if _structure(about) else [capital(about)]
        return True

    def _place(self, clause: str, border: str, *, ahead: bool) -> bool:
        """Put one clause where it belongs; another way may lie `ahead`. False for one that is not understood there."""
        fork = self._fork
        names = [*fork.ways] if fork and fork.kind == "sort" else []
        kind, named = kind_of(clause, names), mention(clause, names)
        if border == "sentence" and not kind and (_structure(clause) or found("beside", clause)):
            # "An agentflow."; "GPT-4.1."
            self.sent.append(clause)
            return True
        lists = all(one in clause for one in self._choice)
        if self._choice and not self.steps and (lists or found("which_one", clause)):
            fork = self._fork = Step("sort", clause, dict[str, list[Step]]((name, []) for name in self._choice))
            self.steps.append(fork)
            return True
        if fork and (found("answers", clause) or found("own_each", clause)):
            fork.of = clause
            return True
        if self._approval and (ending := outcome(clause)):
            return self._ending(self._approval, *ending, clause)
        if self._back and kind == "limit":
            self._back.limit = _times(clause)
            return True
        if self._approval and kind == "limit":
            return self._goes_out(clause)
        if fork and kind == "otherwise":
            rest = next((one for one in fork.ways if found("rest", one)), "")
            return self._open(fork, rest, pattern("steps", "otherwise").sub("", clause, count=1))
        if fork and kind in ("branch", "case") and named:
            return self._open(fork, *named)
        if kind == "case":
            return self._case(clause, ahead=ahead)
        # What follows branches is for one of them or for all; nobody approves a fixed reply.
        others = [one.kind for way in (fork.ways.values() if fork else ()) if way is not self._scope for one in way]
        clear = self._opened < 2 or (kind == "approve" and {*others} <= {"says", "back", "show"})
        return not (fork and (self._scope is self.steps or not clear)) and self._put(clause, border)

    def _case(self, clause: str, *, ahead: bool) -> bool:
        """A condition with what is done then: one of several ways, of which the others are said behind it."""
        case, do = repeated(clause) or parted(clause) or ("", "")
        if not (do or self._fork):
            return self._said_instead(clause)
        plain, fork = _QUOTED.sub("", case), self._fork
        test = compared(plain, self._fields)
        if not test and self.steps and not repeats(clause) and _again(do) and " " in case:
            # What a critic says of a draft.
            test = Comparison(squeeze(case), squeeze(case), "equal", value=True)
        # A number that is not compared in a known way is nothing that a model decides well.
        unread = not test and (
            repeats(clause) or re.search(r"\d|[<>]", plain) or found("compared", plain) or found("modal", plain)
        )
        if unread or not do or not (test or " " in case or _known([case])) or (fork and fork.kind != "case"):
            if fork and fork.kind == "sort" and not unread and do:
                return self._open(fork, case, do)
            return False
        if test and repeats(clause) == "until":
            test = test.turned
        first = next(iter(fork.tests.values()), None) if fork else None
        if fork and bool(test) != bool(first):
            return False
        if not fork:
            # Beside an approval, and alone behind other steps, what happens else is not known.
            back = bool(self.steps and _again(do))
            if self._approval or (self.steps and not (back or ahead)):
                return not test and self._said_instead(clause)
            fork = self._fork = Step("case", clause)
            self.steps.append(fork)
        if test and first and test.ends(first):
            return self._open(fork, "", do)
        fork.tests |= {case: test} if test else {}
        return self._open(fork, case, do)

    def _said_instead(self, clause: str) -> bool:
        """Whether a condition says what a step writes in place of its answer; its model sees whether it holds."""
        task = next((one for one in reversed(self._scope) if one.kind != "call"), None)
        if not quoted(clause) or task is None or task.kind not in ("", "who"):
            return False
        task.of = squeeze(f"{task.of} {capital(clause)}")
        return True

    def _open(self, fork: Step, name: str, do: str) -> bool:
        """What is done on one way; what follows one that goes back is done on the other one."""
        self._scope, self._opened = fork.ways.setdefault(name, []), self._opened + 1
        if self._scope:
            return False
        if fork.kind != "case" or fork is self.steps[0] or self._back or not _again(do):
            return self._put(do, "")
        self._back = Step("back", do, limit=_times(do))
        self._scope.append(self._back)
        others = (way for other, way in fork.ways.items() if other != name)
        self._scope = self._main = next(others, None) or fork.ways.setdefault("", [])
        return True

    def _ending(self, approval: Step, way: str, do: str, clause: str) -> bool:
        """What happens once a person has decided."""
        out = found("anew", do) if way == "no" else not do or words("answer_out").search(do)
        made = " ".join(one.text for one in self._approved if one is not approval)
        if out and not quoted(do) and "://" not in do:
            if self._goes_out(clause):
                return True
            # "Back to the outline": to another step than the last one.
            self.sent.remove(clause)
            known = way == "no" and all(alike(word, made) for word in _own(clause, "approving", "replying", "everyday"))
            approval.ways |= {"no": [Step("back", clause, limit=_times(clause))]} if known else {}
            return known
        self._scope = self._approved if way == "yes" else approval.ways.setdefault("no", [])
        return self._put(do, "")

    def _only_shows(self, clause: str) -> bool:
        """Whether a clause says no more than that what was made before is shown."""
        if not found("shows", clause) or quoted(clause) or "://" in clause:
            return False
        made = " ".join(one for one, _ in self.clauses if one != clause)
        left = _known(
            _WORD.findall(pattern("steps", "shows").sub(" ", clause)), *wordset("everyday"), *wordset("replying")
        )
        return all(alike(word, made) for word in left)

    def _goes_out(self, clause: str) -> bool:
        """Whether no more is said than that an answer goes out, or how often a draft is made again."""
        if self._approval:
            self._approval.limit = _times(clause) or self._approval.limit
        self.sent.append(clause)
        return not _own(clause, "approving", "replying", "everyday")

    def _put(self, clause: str, border: str) -> bool:
        """Add what a clause says at the end of where the sentence is."""
        kind, scope, came = kind_of(clause), self._scope, found("incoming", clause)
        if not kind and self.steps and self._only_shows(clause):
            self.sent += [clause] if self._approval in scope else []
            scope += [] if self._approval in scope else [Step("show", clause)]
            return True
        if not kind and self._approval in scope and words("answer_out").search(clause):
            return self._goes_out(clause)
        manner = words("insists").match(clause) or (words("about_language").match(clause) and found("manner", clause))
        given = came and not found("does", clause[: came.start(1)] + clause[came.end() :])
        about = sense(clause, change=False)
        given = given or (about.told > _SURE and about.part < _LEAST and not found("does", clause))
        begins = not (self.steps or kind) and ((self.listed and _OURS.match(clause)) or given)
        if begins or (border == "sentence" and not (kind or self.listed) and manner):
            return self._tell(clause)
        fits = self._fits(step := Step(kind, clause), scope, border)
        scope += [step] if fits else []
        return fits

    def _fits(self, step: Step, scope: Sequence[Step], border: str) -> bool:
        """Whether a clause is understood as a step behind those of `scope`."""
        kind, clause = step.kind, step.text
        if kind == "sort":
            step.ways, self._fork = {name: [] for name in branch_names(clause)}, self._fork or step
            step.of = clause if self.listed or found("answers_each", clause) or found("to_each", clause) else ""
            return not self.steps
        if kind == "approve":
            said = pattern("steps", "step_number").sub(" ", words("answer_out").sub(" ", clause))
            agrees = next(pattern("steps", "approve").finditer(clause))
            several = any(to_number(one) > 1 for one in re.findall(NUMBER, said, re.IGNORECASE))
            # "Marta reads it and approves": what is in front of it is no task of a model.
            whose = border or agrees[0].split()[0].casefold() in FUNCTIONS | wordset("speakers")
            joint = not whose and agrees.start() < _LONGEST_NAME
            # On a way behind a fork it is about what was made in front of it.
            made = scope or (self.steps[:-1] if self._fork else [])
            if several or joint or found("before", said) or not (made and made[-1].kind in ("", "who")):
                return False
            step.of, self._approval, self._approved = " ".join(_own(clause, "approving")), step, self._scope
            return True
        own = scope is not self.steps and scope is not self._approved
        if kind == "each":
            said, step.text = parted(clause) or ("", "")
            # "For each one": of which list, was said before.
            step.of = said if _known(said.split(), *NUMBER_WORDS) else ""
            return bool(said) and not found("modal", step.of) and _is_task(step.text, freely=True)
        if kind == "call":
            # Which parts of an answer are sent is not read.
            return not found("listed", clause.partition("://")[0])
        freely = own or self.listed or kind == "who" or clause == self._asked
        return kind == "says" or _is_task(clause, freely=freely, named=own)


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


def _again(do: str) -> bool:
    """Whether a draft is made again."""
    return bool(found("anew", do)) and not quoted(do)


def _times(clause: str) -> int | None:
    """How often at most something is done again."""
    return round(to_number(limit[1])) if (limit := found("times", clause)) else None


def _lead(text: str) -> re.Match[str] | None:
    """What only says that a flow is wanted, where something follows."""
    return led if (led := found("lead", text)) and not _structure(text[led.end() :]) else None


def _structure(about: str) -> bool:
    """Whether nothing but words of structure is said."""
    said = _known([one.strip(".,:;!?()") for one in about.split()], *NUMBER_WORDS)
    return all(any(texts.concepts(one, "parts", "own", "steps")) or found("a_flow", one) for one in said)


def _is_task(clause: str, *, freely: bool, named: bool = False) -> bool:
    """Whether a clause tells a model what to do: it begins, or as an order ends, with what is done; `freely` it may say
    so anywhere; on a `named` branch a fact is one, too."""
    kinds = {kind for match, kind in signals(clause) if kind != "team" or match[0].count(" ") > 3}
    does = found("does", clause) if freely else (found("task", clause) or found("ordered", clause))
    # Who does it is a model, or the second reader takes it for a step.
    about = sense(clause, change=False)
    by_model = any(found(one, clause) for one in ("by_model", "agent_noun")) or asks(clause, "step")
    by_model = by_model and not found("a_flow", clause)
    does = does or (named and not words("human").search(clause)) or (by_model and about.part > _HALF)
    odd = kinds & _STRUCTURE or (found("anew", clause) and found("till", clause))
    # "Bookings are answered by an agent that knows the rates."
    told = ("no_task", "unread", "from_there", "nothing", *(() if named and by_model else ("fact", "inner")))
    odd = odd or any(found(name, clause) for name in told)
    return bool(does) and not odd


def _own(clause: str, *lists: str) -> list[str]:
    """The words of a clause that say more than that an answer is approved, goes out or is made again."""
    plain, known = clause.casefold(), " ".join(word for name in lists for word in wordset(name))
    for one in (*(pattern("steps", name) for name in ("times", "skeleton", "approve")), words("answer_out")):
        plain = one.sub(" ", plain)
    return [one for one in _known(_WORD.findall(plain)) if not (one.isdigit() or alike(one, known))]
