"""The skeleton of a flow of steps, by a small grammar: a text is sentences, a sentence is clauses, and each clause has
a place among the steps. Clauses that have none are `odd`: no flow is built then. What a step is told are the words of
the person."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.design.comparing import Comparison, compared
from flowise_dev_agent.reasoning.rules.design.details import Field
from flowise_dev_agent.reasoning.rules.design.kinds import (
    alike,
    branch_names,
    choice_in,
    clauses,
    content_words,
    found,
    is_again,
    is_given,
    is_task,
    kind_of,
    lead_in,
    mention,
    only_structure,
    outcome,
    own_words,
    parted,
    repeated,
    repeats,
    short,
    step_named,
    times,
)
from flowise_dev_agent.reasoning.rules.design.prompt import without_opening
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted, signals, squeeze, to_number

_WORD = re.compile(r"[^\W_][\w'’-]*")
_QUOTED = re.compile(r"[\"“„«'][^\"”»']*[\"”»']")
_NUMBERED = pattern("steps", "numbered")
#: What a person does, and no step.
_OURS = pattern("facts", "ours")
_SENTENCE = re.compile(r"\A|[.!?:]\s+|\n")
#: A line of a list of branches: "billing -> explain the invoice".
WAY = re.compile(r"(?m)^\W*(?P<name>[^\n]{2,120}?)\s?(?:->|=>|→)\s?(?P<do>\S.*)$")
_LONGEST_TEXT, _LONGEST_NAME = 3_000, 4
#: How probable it has to be that a clause is for the model, or is an approval.
_SURE, _HALF = 0.85, 0.5
#: Structure that is no task of a model.
_STRUCTURE = {"branch", "loop", "call", "team"}
#: Kinds of clauses that are a step wherever they are.
_PARTS = {"approve", "call", "sort", "each"}
#: What only says that a flow is wanted, what it is given, or that it sorts.
_FRAMES = ("a_flow", "sorts")
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


class Skeleton:
    """The steps of a text. `rules` are told to each model: what the flow is for, and how it is to behave; `told` are
    those of them that are not understood; `sent` says no more than that an answer goes out; `odd` are the clauses
    without which there is no flow. Of a list each line or number is a step; `fields` are those of a form."""

    def __init__(self, text: str, fields: Mapping[str, Field] | None = None, *, listed: bool = False) -> None:
        self.odd, self.rules, self.sent, self.told = list[str](), list[str](), list[str](), list[str]()
        self.steps, self._fields = list[Step](), fields or {}
        #: What the clauses behind speak of.
        self._fork = self._approval = self._back = self._loop = None
        #: Where a clause goes: a list of steps, which the next one of the same sentence goes on with; and where a
        #: sentence begins, which is behind a draft that is made again until it is good.
        self._scope = self._approved = self._main = self.steps
        self._opened = 0
        self.listed = listed or len(_NUMBERED.findall(text)) > 1
        text = without_opening(text[:_LONGEST_TEXT]) or text
        text = pattern("steps", "address_is").sub(" ", text)
        self._choice = choice_in(text)
        text = (_NUMBERED.sub("\n", text) if self.listed else text).strip()
        while led := next(filter(None, (lead_in(text[one.end() :]) for one in _SENTENCE.finditer(text))), None):
            before, text = text[: len(text) - len(led.string)], led.string[led.end() :]
            self._tell(squeeze(f"{before}{led['about'] or ''}").strip(" ,:"))
            self.sent.append(led[0])
        ways = [*WAY.finditer(text)]
        lines = text.strip().split("\n") if self.listed or len(ways) > 1 else [text]
        self.clauses, names = list[tuple[str, str]](), self._choice
        for line in lines:
            self.clauses += clauses(line, names)
            names = names or branch_names(line.strip(" .!;"))
        if len(ways) > 1:
            self._branch(lines, {one[0].strip("\n"): one for one in ways})
        else:
            self._read(text)
        self.odd += [text] if self._loop and not self._loop.text else []
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
            self._scope, self._opened = self._main, 0
            kinds = [kind_of(clause) for clause, _ in self.clauses[: end + 1]]
            # Whether another way follows.
            ahead = [bool({"otherwise", "case"} & {*kinds[n + 1 :]}) for n in range(end)]
            odd = next((n for n in range(start, end) if not self._place(*self.clauses[n], ahead=ahead[n])), None)
            if odd is not None:
                begin, last = text.find(self.clauses[odd][0]), self.clauses[end - 1][0]
                whole = text[begin : text.find(last, begin) + len(last)]
                self._beside(whole, part=odd > start or bool(_PARTS & {*kinds[start + 1 : end]}))

    def _branch(self, lines: Sequence[str], ways: dict[str, re.Match[str]]) -> None:
        """A list of branches: "billing -> explain the invoice"; a fact is what is said there."""
        fork = Step("sort", next(iter(ways)))
        for line in lines:
            if way := ways.get(line):
                fork.ways[way["name"]] = [Step(kind := kind_of(way["do"]), way["do"])]
                plain = kind in ("", "says") and not _STRUCTURE.intersection(one for _, one in signals(way["do"]))
                self.odd += [] if plain else [line]
            elif not only_structure(line):
                self._beside(line)
        self.steps = [fork]

    def _beside(self, clause: str, *, part: bool = False) -> None:
        """What is no step is told to each model, unless it says how the steps hang together. What comes before all
        steps says what they are for."""
        about, kinds = sense(clause, change=False), {kind for _, kind in signals(clause)}
        # Of what the second reader takes for a part of the flow no model is told.
        frame = is_given(clause) or any(found(one, clause) for one in _FRAMES)
        asks = about.part > _SURE and about.told < _HALF and len(clause.split()) > 2 and not frame
        compares = kind_of(clause) == "case" and found("unread", clause) is not None
        part = part or asks or compares or kind_of(clause) in _PARTS or bool(kinds - _SAID)
        if part or "://" in clause or found("approve", clause):
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
        self.rules += [] if only_structure(about) else [capital(about)]
        return True

    def _place(self, clause: str, border: str, *, ahead: bool) -> bool:
        """Put one clause where it belongs; another way may lie `ahead`. False for one that is not understood there."""
        fork = self._fork
        names = [*fork.ways] if fork and fork.kind == "sort" else []
        kind, named = kind_of(clause, names), mention(clause, names)
        says_nothing = border == "sentence" and not kind and (only_structure(clause) or found("beside", clause))
        # "An agentflow."; "No approval needed."; "..., so please put an approval in there."
        again = kind == "approve" and not border and self._approval and self._scope[-1:] == [self._approval]
        if kind == "off" or says_nothing or again:
            return self._sent(clause)
        shows = found("task", pattern("steps", "polite").sub("", clause)) or found("shows", clause)
        if border == "sentence" and self.steps and not (kind or named or shows) and found("for_all", clause):
            return self._tell(clause)
        lists = self._choice and (all(one in clause for one in self._choice) or found("which_one", clause))
        if lists and not self.steps:
            self._fork = Step("sort", clause, dict[str, list[Step]]((name, []) for name in self._choice))
            self.steps.append(self._fork)
            return True
        if fork and (found("answers", clause) or found("own_each", clause)):
            fork.of = clause
            return True
        if self._approval and (ending := outcome(clause)):
            return self._ending(self._approval, *ending, clause)
        if kind == "limit" and (limited := self._back or self._approval):
            limited.limit = times(clause)
            return self._sent(clause)
        if fork and kind == "otherwise":
            rest = next((one for one in fork.ways if found("rest", one)), "")
            return self._open(fork, rest, pattern("steps", "otherwise").sub("", clause, count=1))
        if fork and kind in ("branch", "case") and named:
            return self._open(fork, *named)
        if kind == "case":
            return self._case(clause, ahead=ahead)
        open_ways = [way for way in fork.ways.values() if way and way[-1].kind == "call"] if fork else []
        says = len(clause.split()) > _LONGEST_NAME - 1 and not words("insists").match(clause)
        if len(open_ways) == 1 and border and not kind and says:
            # What is said behind a request to an address is the answer there.
            open_ways[0].append(Step("", clause))
            return True
        made = {name: way for name, way in fork.ways.items() if way and way[-1].kind in ("", "who")} if fork else {}
        if kind == "approve" and made and self._opened != 1 and not self._approval:
            # "I approve each answer": on whatever way it was made, or on the one that is named.
            named = [way for name, way in made.items() if alike(" ".join(content_words(short(name).split())), clause)]
            ways = named or [*made.values()]
            fits = self._fits(step := Step(kind, clause), ways[0], border)
            self._approved = ways[0] if len(ways) == 1 else self._approved
            for way in ways if fits else ():
                way.append(step)
            return fits
        # What else follows branches is for one of them or for all.
        return not (fork and (self._scope is self.steps or self._opened > 1)) and self._put(clause, border)

    def _sent(self, clause: str) -> bool:
        self.sent.append(clause)
        return True

    def _case(self, clause: str, *, ahead: bool) -> bool:
        """A condition with what is done then: one of several ways, of which the others are said behind it."""
        case, do = repeated(clause) or parted(clause) or ("", "")
        if not (do or self._fork):
            return self._said_instead(clause)
        plain, fork = _QUOTED.sub("", case), self._fork
        test = compared(plain, self._fields)
        if not test and self.steps and not repeats(clause) and is_again(do) and " " in case:
            # What a critic says of a draft.
            test = Comparison(squeeze(case), squeeze(case), "equal", value=True)
        # A number that is not compared in a known way is nothing that a model decides well.
        unread = not test and (
            repeats(clause) or re.search(r"\d|[<>]", plain) or found("compared", plain) or found("modal", plain)
        )
        if unread or not do or not (test or " " in case or content_words([case])) or (fork and fork.kind != "case"):
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
            back = bool(self.steps and is_again(do))
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
        if fork.kind != "case" or fork is self.steps[0] or self._back or not is_again(do):
            return self._put(do, "")
        self._back = Step("back", do, limit=times(do))
        self._scope.append(self._back)
        others = (way for other, way in fork.ways.items() if other != name)
        self._scope = self._main = next(others, None) or fork.ways.setdefault("", [])
        return True

    def _ending(self, approval: Step, way: str, do: str, clause: str) -> bool:
        """What happens once a person has decided."""
        out = found("anew", do) if way == "no" else not do or words("answer_out").search(do)
        made = " ".join(one.text for one in self._approved if one is not approval)
        if out and not quoted(do) and "://" not in do:
            if self._goes_out(clause) and not step_named(clause):
                return True
            # "Back to the outline": to another step than the last one.
            self.sent.remove(clause)
            said = own_words(clause, "approving", "replying", "everyday")
            known = way == "no" and all(alike(word, made) for word in said)
            if known:
                self._back = Step("back", clause, limit=times(clause))
                approval.ways["no"] = [self._back]
            return known
        self._scope = self._approved if way == "yes" else approval.ways.setdefault("no", [])
        return self._put(do, "")

    def _only_shows(self, clause: str) -> bool:
        """Whether a clause says no more than that what was made before is shown."""
        if not found("shows", clause) or quoted(clause) or "://" in clause:
            return False
        made = " ".join(one for one, _ in self.clauses if one != clause)
        said = _WORD.findall(pattern("steps", "shows").sub(" ", clause))
        return all(alike(word, made) for word in content_words(said, *wordset("everyday"), *wordset("replying")))

    def _goes_out(self, clause: str) -> bool:
        """Whether no more is said than that an answer goes out, or how often a draft is made again."""
        if self._approval:
            self._approval.limit = times(clause) or self._approval.limit
        self.sent.append(clause)
        return not own_words(clause, "approving", "replying", "everyday")

    def _put(self, clause: str, border: str) -> bool:
        """Add what a clause says at the end of where the sentence is."""
        kind, scope = kind_of(clause), self._scope
        if self._loop and not self._loop.text and is_task(clause, freely=True):
            self._loop.text = clause
            return True
        made = any(one.kind in ("", "who", "call") for one in (*self.steps, *scope))
        if not kind and made and self._only_shows(clause):
            self.sent += [clause] if self._approval in scope else []
            scope += [] if self._approval in scope else [Step("show", clause)]
            return True
        if not kind and self._approval in scope and words("answer_out").search(clause):
            return self._goes_out(clause)
        manner = words("insists").match(clause) or (words("about_language").match(clause) and found("manner", clause))
        begins = not (self.steps or kind) and ((self.listed and _OURS.match(clause)) or is_given(clause))
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
            drafts = self._fork is not None and self._fork.kind == "sort" and scope is not self.steps
            # "Je dois" is no "dois".
            counted = re.findall(NUMBER, re.sub(r"(?i)(?<!\w)(?:je|tu)\s\w+", " ", said), re.IGNORECASE)
            several = any(to_number(one) > 1 for one in counted)
            # "Marta reads it and approves": what is in front of it is no task of a model.
            agrees = None if border else found("approve", clause)
            whose = agrees and agrees[0].split()[0].casefold() in FUNCTIONS | wordset("speakers")
            joint = agrees and not whose and agrees.start() < _LONGEST_NAME
            # On a way behind a fork it is about what was made in front of it.
            made = scope or (self.steps[:-1] if self._fork else [])
            # "Before it goes out" is no place of its own, but where an approval is.
            out = pattern("rewiring", "goes_out").search(said)
            placed = found("before", said) and not out
            if several or joint or placed or not (drafts or (made and made[-1].kind in ("", "who"))):
                return False
            step.of, self._approval, self._approved = " ".join(own_words(clause, "approving")), step, self._scope
            return True
        own = scope is not self.steps and scope is not self._approved
        if kind == "each":
            said, step.text = parted(clause) or ("", "")
            # "For each one": of which list, was said before; "one by one": what is done, comes behind it.
            step.of, self._loop = said if content_words(said.split(), *NUMBER_WORDS) else "", step
            return not found("modal", step.of) and (not step.text or is_task(step.text, freely=True))
        if kind == "call":
            # Which parts of an answer are sent is not read.
            return not found("listed", clause.partition("://")[0])
        ordered = border == "then" and len(clause.split()) > 2
        return kind == "says" or is_task(clause, freely=own or self.listed or kind == "who", named=own, ordered=ordered)
