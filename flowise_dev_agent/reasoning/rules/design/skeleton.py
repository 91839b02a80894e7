"""The skeleton of a flow of steps, by a small grammar: a text is sentences, a sentence is clauses, and each clause has
a place among the steps. Clauses that have none are `odd`: no flow is built then. What a step is told are the words of
the person."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from flowise_dev_agent.patch.model.placeholders import MARK
from flowise_dev_agent.reasoning.rules.design import kinds
from flowise_dev_agent.reasoning.rules.design.kinds import Piece, alike, found, kind_of
from flowise_dev_agent.reasoning.rules.design.prompt import without_opening
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import CERTAIN, HALF, LITTLE, SURE, sense
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted, signals, squeeze, to_number

_NUMBERED, _TIMES, _WHO = pattern("steps", "numbered"), pattern("steps", "times"), pattern("reading", "who_asks")
_SENTENCE, _QUOTED = re.compile(r"\A|[.!?:]\s+|\n"), re.compile(r"[\"“„«'].*?[\"”»']")
#: "Je dois" is no "dois". Where a request goes whose address is still to come.
_COUNT, _TO_COME = re.compile(rf"(?i)(?<!\bje\s)(?<!\btu\s){NUMBER}"), f"{MARK}: URL]"
#: Characters of a text; words of an item of a list; characters of a word, of who make a team, and that are shown.
_LONGEST_TEXT, _LONGEST_ITEM, _SHORT, _LONG, _SHOWN, _BEGINNING = 3_000, 5, 3, 30, 100, ("sentence", "next")
#: Kinds of clauses that are a step wherever they are, and signals that are no task of a model, or a mere value.
_PARTS = {"way", "approve", "call", "sort", "each", "case", "loop", "otherwise"}
_STRUCTURE, _VALUES = {"approval", "branch", "loop", "call", "team", "send"}, {"branch", "setting", "output"}


@dataclass
class Step:
    """One step in the person's words: a task of a model, a reply that it `says`, a `call`, an `approve`, a fork that
    `sort`s or asks whether a `case` holds, something done with `each` item, or `back` to what was made. `ways`: by the
    name of a branch or a condition ("" for all else), or "no" of an approval; `of`: what a list is made of, or that
    all branches are answered; `limit`: how often a draft is made again."""

    kind: str
    text: str
    ways: dict[str, list["Step"]] = field(default_factory=dict[str, list["Step"]])
    of: str = ""
    limit: int | None = None


class Skeleton:
    """The steps of a text. `rules` are told to each model: what the flow is for, and how it is to behave; `sent` says
    no more than that an answer goes out; `odd` are the clauses without which there is no flow. Of a list (`listed`)
    each line is a step."""

    def __init__(self, text: str, *, listed: bool = False) -> None:
        self.steps, self.rules, self.sent, self.odd = list[Step](), list[str](), list[str](), list[str]()
        #: What the clauses behind speak of: the branches, who approves, what is made again.
        self._fork = self._approval = self._back = None
        #: Where what is sent goes, if it is said elsewhere.
        self.address = ""
        #: Where a clause goes: a list of steps, which the next one of the same sentence goes on with; where a sentence
        #: begins, and where an approved answer goes on.
        self._scope = self._main = self._approved = self.steps
        #: Whether a sentence says what comes after what, and how many ways were opened in it.
        self._ordered, self._opened, self._read_to = False, 0, 0
        # What is too long is not read in part.
        self.odd += [text[_LONGEST_TEXT:][:_SHOWN]] if len(text) > _LONGEST_TEXT else []
        # A greeting may have a line of its own.
        text = re.sub(r"\A([^\n,.!?]{2,30},)\n", r"\1 ", text[:_LONGEST_TEXT])
        text = without_opening(text) or text
        listing = re.compile("(?m)^") if listed else _NUMBERED
        text = listing.sub("\n• ", text) if listed or len(listing.findall(text)) > 1 else text
        #: The items of a list: steps, which may be named by their numbers.
        self.items = text.split("\n• ")[1:]
        text = self._without_lead(text)
        self.pieces = kinds.pieces(text)
        begins = [n for n, one in enumerate(self.pieces) if one.border in _BEGINNING]
        sentences = [self.pieces[start:end] for start, end in pairwise([*begins, len(self.pieces)])]
        for n, sentence in enumerate(sentences):
            if not self._on_condition(text, sentence, sentences[n + 1 :]):
                self._read(text, sentence)
        self.odd += [one.text for one in self.steps if one.kind in ("sort", "case") and not _is_whole(one)]

    def _without_lead(self, text: str) -> str:
        """The text behind what only says that a flow is wanted; what that is for is told to each model."""
        for one in _SENTENCE.finditer(text):
            led = found("lead", text[one.end() :])
            if led and not (kinds.only_structure(led.string[led.end() :]) or found("sorts", led[0])):
                for about in (text[: one.end()], led["about"] or ""):
                    self._tell(squeeze(about).strip(" ,:"))
                self.sent.append(led[0])
                # What a flow that does something does is a task.
                self._ordered = bool(led["that"])
                return self._without_lead(led.string[led.end() :])
        return text

    def _on_condition(self, text: str, sentence: Sequence[Piece], behind: Sequence[Sequence[Piece]]) -> bool:
        """Whether a condition is for the texts that models write, or for what is sent of them: it has no other side,
        and the steps go on behind it."""
        said = squeeze(text[sentence[0].start : sentence[-1].end]).strip(" .•")
        first, *more = [kind_of(one.said, self._names()) for one in sentence]
        more.append(kind_of((kinds.parted(said) or ("", ""))[1]))
        then = [kind_of(one.said, self._names()) for other in behind for one in other]
        ends, made, about = found("ends_there", said), [one.kind for one in self.steps], sense(said, change=False)
        # What a part of the flow does, and what is made again, has its place among the steps.
        if first != "case" or "task" not in made or _PARTS & {*more} or kinds.is_again(said) or found("no_rule", said):
            return False
        if self._fork or self._approval:
            # Behind branches only what surely is a rule is told to all.
            return about.told > CERTAIN and about.part < LITTLE and "task" not in more and self._tell(said)
        if ends and made[0] == "call" and "call" in made[1:]:
            case = pattern("steps", "case").sub("", said[: ends.start()]).strip(" ,:")
            self.steps[1:] = [Step("case", said, {case: [Step("end", ends[0].strip(" ,"))], "": self.steps[1:]})]
            return True
        # "If it is red ... If it is green ... Then post it": no branches, where the steps go on behind all of them.
        forks = then[:1] == ["otherwise"] or (then[:1] == ["case"] and not (_PARTS - {"case"}).intersection(then))
        return not (ends or forks) and self._tell(said)

    def _read(self, text: str, sentence: Sequence[Piece]) -> None:
        item = text[sentence[0].start :].lstrip().startswith("•")
        # What an item of a list says in more sentences belongs to what it begins with.
        inside = self.items and not item and "\n" not in text[self._read_to : sentence[0].start].strip(" ")
        self._scope, self._opened, self._read_to = self._scope if inside else self._main, 0, sentence[-1].end
        self._ordered |= item or any(one.border in ("next", "then") for one in sentence)
        # What is not understood beside other clauses is no mere word for the models.
        part = self._ordered or len(sentence) > 1
        odd = next((one for one in sentence if not self._place(one.said, one.border)), None)
        if odd:
            self._beside(text[odd.start : sentence[-1].end].strip(" ,.;:!•*-\x00"), part=part)
        self._ordered = False

    def _beside(self, said: str, *, part: bool) -> None:
        """What is no step is told to each model, unless it says how the steps hang together."""
        about, signs = sense(said, change=False), {kind for _, kind in signals(said)}
        asks = about.part > SURE and about.told < HALF and len(said.split()) > 2
        # Behind an approval and branches it may be said of one of them.
        unsure = (self._approval or self._fork) and about.told < SURE
        shapes = any(found(one, said) for one in ("approve", "unread"))
        part = part or shapes or kind_of(said, self._names()) in _PARTS or bool(signs - _VALUES) or "://" in said
        if part or unsure or (asks and not found("sorts", said)):
            self.odd.append(said)
        else:
            self._tell(said)

    def _tell(self, about: str) -> bool:
        """Note what each model is to know; words of structure say nothing of it."""
        self.rules += [] if kinds.only_structure(about) else [capital(about)]
        return True

    def _send(self, said: str) -> bool:
        """Note what says no more than that an answer goes out, is approved or made again."""
        self.sent.append(said)
        made = " ".join(one.text for one in self.steps)
        return all(alike(word, made) for word in kinds.own_words(said))

    # --- The place of a clause

    def _place(self, said: str, border: str) -> bool:
        """Put one clause where it belongs; False for one that is not understood there."""
        fork, kind = self._fork, kind_of(said, self._names())
        begins, plain = border in _BEGINNING, kind in ("", "task", "who")
        empty, about = plain and (kinds.only_structure(said) or found("beside", said)), sense(said, change=False)
        # Thanks, an apology, that somebody does not know about such things.
        aside = about.idle > SURE and max(about.told, about.part) < LITTLE and not re.search(r"[\d\"“„«]|://", said)
        address, mine = found("address_is", said), found("own_hands", said) and kind not in _PARTS
        if address or mine or aside or (begins and empty) or kind == "off" or found("moot", said):
            self.address = address["url"] if address else self.address or (_TO_COME if mine else "")
            self.sent.append(said)
            return True
        if begins and found("result_is", said) and fork and fork.of:
            # What the draft is to be that is made again until it is good, and not what is said of it.
            self.steps[0].text += f". {said}"
            return True
        if begins and self.steps and (found("manner", said) or found("result_is", said)):
            return self._tell(said)
        if self._approval and (ending := kinds.outcome(said)):
            return self._ending(self._approval, *ending, said)
        if kind == "limit" and self._back:
            self._back.limit = kinds.times(said)
            return self._send(said)
        if arrow := found("arrow", said):
            self._fork = fork = fork or self._add(Step("sort", said))
        if fork and (arrow or kind in ("way", "otherwise")):
            rest = ([], pattern("steps", "otherwise").sub("", said, count=1))
            way = None if kind == "otherwise" else kinds.way_of(said, self._names())
            return self._way(fork, *(way or (([arrow["name"]], arrow["do"]) if arrow else rest)))
        if kind in ("case", "loop"):
            return self._case(said)
        if kind == "approve" and fork and self._scope is self._main:
            if found("on_each", said):
                # One person approves what is made on each way; what is done behind a yes to all of them has no place.
                self._scope, *others = [way for way in fork.ways.values() if way] or [self._main]
                said = pattern("steps", "on_each").sub("", said).strip(" ,")
                fits = len(others) + 1 in (2, len(fork.ways)) and self._put(said, "way")
                for way in others:
                    way += [self._approval] if self._approval else []
                self._scope, self._approved = self._main, None
                return fits
            # On the way that is named, or else that speaks of it; which one else it is about is not known.
            ways = {name: " ".join(step.text for step in way) for name, way in fork.ways.items()}
            score = {name: sum(9 * alike(one, name) + alike(one, ways[name]) for one in kinds.own_words(said))
                     for name in ways}  # fmt: skip
            best = [name for name, count in score.items() if count == max(score.values()) > 0]
            self._scope = fork.ways[best[0]] if len(best) == 1 else self._scope
        # Behind several ways in one sentence it may be about all of them.
        return not (kind == "approve" and border == "then" and self._opened > 1) and self._put(said, border)

    def _names(self) -> list[str]:
        """The branches that clauses may speak of."""
        return [*self._fork.ways] if self._fork and self._fork.kind == "sort" else []

    def _add(self, step: Step) -> Step:
        self._scope.append(step)
        return step

    def _way(self, fork: Step, names: Sequence[str], do: str) -> bool:
        """What is done on one way of a fork, which several branches may share; the rest may have a name."""
        if len(names) > 1 and not any(fork.ways.pop(one) for one in names):
            fork.ways[", ".join(names)] = []
        name = ", ".join(names)
        rest = next((one for one in fork.ways if found("rest", one)), name)
        name = rest if not name or found("rest", name) else name
        self._scope, self._opened = fork.ways.setdefault(name, []), self._opened + 1
        return not self._scope and len(do.strip(" .")) > _SHORT and self._put(do, "way")

    def _case(self, said: str) -> bool:
        """A condition that a model judges: of the message, or of what was made, which is made again until it holds."""
        again = kinds.repeats(said)
        case, do = (again["case"], again["do"]) if again else kinds.parted(said) or ("", "")
        good = found("good_case", said)
        if good and self._fork and self._fork.of and self._fork.kind == "case":
            # The other side of what is made again until it is good.
            return self._scope is self._main and self._put(good["do"], "way")
        case, back = _TIMES.split(case, maxsplit=1)[0].strip(" ,"), kinds.is_again(do)
        # Whether a number is larger, and what a person thinks of it, no model judges.
        theirs = {*case.casefold().split()[:1]} & wordset("speakers") or (back and words("human").search(case))
        if not case or theirs or re.search(r"\d", _QUOTED.sub("", case)):
            return False
        if back and self._scope is self._main and self._scope[-1:] and self._scope[-1].kind == "task":
            self._back, on = Step("back", do, limit=kinds.times(said)), list[Step]()
            ways = {case: on, "": [self._back]} if again and again["until"] else {case: [self._back], "": on}
            self._fork = self._add(Step("case", said, ways, of=do))
            self._scope = self._main = on
            return self._send(do)
        fork = self._fork or (None if self._approval else self._add(Step("case", said)))
        self._fork = fork
        return fork is not None and fork.kind == "case" and not (fork.of or back) and self._way(fork, [case], do)

    def _ending(self, approval: Step, way: str, do: str, said: str) -> bool:
        """What happens once a person has decided."""
        out = not do or (words("answer_out").search(do) and not quoted(do) and "://" not in do)
        if again := way == "no" and kinds.is_again(do):
            self._back = Step("back", said, limit=kinds.times(said) or approval.ways["no"][0].limit)
            approval.ways["no"] = [self._back]
        elif way == "no":
            approval.ways["no"] = self._scope = []
        elif self._approved is None:
            return bool(out) and self._send(said)
        else:
            self._scope = self._approved
        return self._send(said) if again or (out and way == "yes") else self._put(do, "way")

    # --- Steps

    def _put(self, said: str, border: str) -> bool:
        """Add what a clause says at the end of where the sentence is."""
        kind = "end" if border == "way" and pattern("steps", "ends_there").fullmatch(said) else kind_of(said)
        if kind == "given":
            return not self.steps and self._tell(said)
        if self._back and kind in ("", "task") and words("answer_out").search(said) and not kinds.own_words(said):
            return self._send(said)
        step = Step(kind if kind in ("says", "call", "end", "approve", "each", "sort") else "task", said)
        fits = kind in ("says", "call", "end")
        if kind == "approve":
            fits = self._approves(step, border)
        elif kind == "each":
            step.of, step.text = kinds.parted(said) or ("", "")
            # A longer item holds what is to be done with it, and more sentences what comes after all of them.
            more = len(step.of.split()) > _LONGEST_ITEM or found("modal", step.of) or re.search(r"[.!?]\s\w", step.text)
            fits = bool(step.text) and _is_task(step.text) and not more
        elif kind == "sort":
            step.ways, self._fork = {name: [] for name in kinds.branch_names(said)}, step
            answered = found("answers_each", said) or found("to_each", said)
            step.of = said if (self.items and not self.steps) or answered else ""
            fits = all(one.kind in ("task", "call") for one in self.steps) and self._scope is self.steps
            # What else it finds out is a step in front of it.
            self._scope += [Step("task", said)] if fits and found("list_ends", said) else []
        elif step.kind == "task":
            freely = border == "way" or (self._ordered and (self.items or len(said.split()) > 2))
            fits = (kind in ("task", "who") or bool(freely and not kind)) and _is_task(said)
        self._scope += [step] if fits else []
        return fits

    def _approves(self, step: Step, border: str) -> bool:
        """Whether one person approves what was made before; a refusal leads back to it."""
        said = _TIMES.sub(" ", words("answer_out").sub(" ", step.text))
        # "Marta reads it and approves": what is in front of it is no task of a model.
        own = found("approve", step.text)
        begins = own and own.start() <= _SHORT and own[0].split()[0].casefold() not in FUNCTIONS | wordset("speakers")
        joined = own and "," in step.text[: own.start()] and found("task", step.text) if border else begins
        # "Before it goes out" is no place of its own, but where an approval is.
        placed = found("before", said) and not (found("shown", said) or pattern("rewiring", "goes_out").search(said))
        drafted = self._fork and (self._fork.kind == "sort" or self._fork.of)
        made = self._scope[-1].kind == "task" if self._scope else drafted
        if self._approval or _several(said) or joined or placed or not made:
            return False
        self._back = Step("back", "", limit=kinds.times(step.text))
        step.ways, step.of = {"no": [self._back]}, " ".join(kinds.own_words(step.text))
        self._approval, self._approved = step, self._scope
        return True


def _is_task(said: str) -> bool:
    """Whether a clause tells a model what to do, and no person, and nothing that only a part of the flow does."""
    signs = {kind for match, kind in signals(said) if kind != "team" or _several(match[0]) or len(match[0]) > _LONG}
    # Whom a clause speaks of does it, where it does not begin with what is done.
    person = (kind_of(said) == "" or found("inverted", said)) and (words("human").search(said) or _WHO.match(said))
    # A model calls no address; it may point to one.
    front, address, _ = said.partition("://")
    reads = address and not pattern("words", "sent_to").search(front.rpartition(" ")[0] + " ")
    odd = person or reads or signs & _STRUCTURE or any(found(one, said) for one in ("unread", "by_other"))
    return not odd


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, on whatever way."""
    for step in steps:
        yield step
        yield from all_steps([one for way in step.ways.values() for one in way])


def _several(said: str) -> bool:
    return any(to_number(one) > 1 for one in _COUNT.findall(said))


def _is_whole(fork: Step) -> bool:
    """Whether each way of a fork says what happens there, or all are answered, or a draft is made again."""
    done = [*map(bool, fork.ways.values())]
    return (all(done) and len(done) > 1) or (bool(fork.of) and (fork.kind == "case" or not any(done)))
