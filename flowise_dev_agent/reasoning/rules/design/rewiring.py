"""The steps of an AgentFlow that is there: which a wish takes out, puts between others, names anew, or has say another
text. What speaks of its structure and is not read in full is `undone`: it is in no prompt, and told by name."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, NamedTuple

from flowise_dev_agent.contracts.plan import DesignConnection, PlannedValue
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build, wording
from flowise_dev_agent.reasoning.rules.design.details import in_ascii
from flowise_dev_agent.reasoning.rules.design.kinds import found, kind_of, outcome
from flowise_dev_agent.reasoning.rules.design.sources import Made
from flowise_dev_agent.reasoning.rules.design.steps import as_json_by_code
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, pattern, words
from flowise_dev_agent.reasoning.rules.language.text import (
    DONE,
    Span,
    capital,
    concepts,
    quoted,
    quoted_spans,
    signals,
    to_number,
)

_BEFORE, _OUT, _CALLS, _REMAINS = (pattern("change", name) for name in ("before", "out", "calls", "remains"))
_AGREES, _LAST, _ANSWER, _NO, _STEP = (pattern("rewiring", one) for one in ("agrees", "last", "answer", "no", "step"))
_COMES, _BEHIND, _NEW, _CALLED = (pattern("rewiring", name) for name in ("comes", "behind", "new", "is_called"))
_IF, _CONTACT, _BRANCH = pattern("prompt", "if"), pattern("exchange", "contact"), pattern("rewiring", "branch")
_WAY, _STRAIGHT, _SENDS, _AGREED = (pattern("rewiring", name) for name in ("way", "straight", "sends", "agreed"))
_IN_IT = pattern("rewiring", "in_it")
_SENT_TEXT, _QUESTION, _URLS = pattern("rewiring", "sent_text"), pattern("rewiring", "sent_question"), re.compile("://")
_REPLY, _HUMAN, _CALL, _START = "directReplyAgentflow", "humanInputAgentflow", "httpAgentflow", "startAgentflow"
_CONDITION, _DIGITS = "conditionAgentflow", re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\w)")
_SORTER, _ROWS, _TEXT = "conditionAgentAgentflow", "conditionAgentScenarios", "directReplyMessage"
_MODELS = ("llmAgentflow", "agentAgentflow")
_WORD, _PROCEEDS, _FEW = re.compile(r"[^\W\d_]{3,}"), ("proceed", "0"), 5
_PLAIN = frozenset({"Start", "Agent", "LLM", "Reply", "Direct Reply", "Human Input", "HTTP request", "HTTP", "Model"})
_STRUCTURE = {"approval", "branch", "loop", "schedule", "form", "call"}


class _Edge(NamedTuple):
    source: str
    output: str
    target: str


def titled(request: PlanRequest, said: str, among: Collection[str] = ()) -> list[str]:
    """The steps (`among` these ids, else all) whose titles a stretch names: as they are, else by their words in other
    forms, "the step that writes the reply" for the Reply writer."""
    titles = _titles(request, among)
    whole = [id_ for id_, name in titles.items() if wording.whole(name).search(said)]
    return whole or [id_ for id_, name in titles.items() if _stems(name) and _stems(name) <= _stems(said)]


def meant(request: PlanRequest, said: str, among: Collection[str] = ()) -> list[str]:
    """The steps that a stretch is about, certain or not: those that it names (`titled`), else those of whose title it
    has a word that is in no other title ("the technical answers" for Technical help), else the one whose texts speak of
    most of what it says and no other step speaks of ("the Team plan is 55"); none where several do so alike. For words
    that tell a step how to behave `among` are the steps with a prompt."""
    if found := titled(request, said, among):
        return found
    titles = {id_: _telling(name) for id_, name in _titles(request, among).items()}
    if found := [id_ for id_, own in _apart(titles).items() if own & _telling(said)]:
        return found
    nodes = [node for node in (request.base.nodes if request.base else ()) if not among or node.id in among]
    texts = {node.id: _telling(json.dumps(dict(node.inputs), ensure_ascii=False, default=str)) for node in nodes}
    shares = {id_: len(own & _telling(said)) for id_, own in _apart(texts).items()}
    most = max(shares.values(), default=0)
    return (
        [id_ for id_, shared in shares.items() if shared == most]
        if most and [*shares.values()].count(most) == 1
        else []
    )


def _titles(request: PlanRequest, among: Collection[str]) -> dict[str, str]:
    # What everybody calls such a node names none of several.
    return {id_: name for id_ in request.existing if (not among or id_ in among)
            and (name := request.labels.get(id_, "")) and name not in _PLAIN}  # fmt: skip


def _apart(words_of: Mapping[str, Set[str]]) -> dict[str, Set[str]]:
    """Of each the words that no other one has."""
    counted = Counter(word for said in words_of.values() for word in said)
    return {id_: {word for word in said if counted[word] == 1} for id_, said in words_of.items()}


def find_steps(request: PlanRequest, made: Made) -> Made:
    """What is understood of `made.text`, with the connections that come and go."""
    return _Steps(request, made).read() if _START in request.existing.values() and request.base else made


class _Steps:
    def __init__(self, request: PlanRequest, made: Made) -> None:
        self._request, self._made, self._kinds = request, made, request.existing
        self._nodes = {node.id: dict[str, Any](node.inputs) for node in request.base.nodes} if request.base else {}
        edges = request.base.edges if request.base else ()
        self._before = [_Edge(one.source, one.output_name, one.target) for one in edges]
        self._edges = [*self._before]
        self._sorter = next(iter(self._of(_SORTER)), "") if len(self._of(_SORTER)) == 1 else ""
        rows: Any = self._nodes[self._sorter].get(_ROWS) if self._sorter else None
        self._rows: list[Any] = [*(rows or [])]
        self._added, self._removed, self._labels = dict(made.added), [*made.removed], dict[str, str]()
        self._values, self._steps, self._plain, self._quotes = [*made.values], list[str](), "", list[str]()
        #: The person's step that came, what a branch to come is called, and whether a clause took something out.
        self._human, self._way, self._gone = "", "", False
        #: The steps that a clause names, and those that one before it did.
        self._named, self._former = list[str](), list[str]()

    def _of(self, kind: str) -> list[str]:
        return [id_ for id_, name in self._kinds.items() if name == kind]

    def read(self) -> Made:
        done, undone = [*self._made.spans], list[Span]()
        names = [*(row.get("scenario", "") for row in self._rows), *self._request.labels.values(), self._request.target]
        known = {name.casefold() for name in names if name}
        # Of several models a clause is for the one that it names, or the one before it did.
        one_model = sum(len(self._of(kind)) for kind in _MODELS) < 2
        apart, opening, clauses = False, list[Span](), [*self._clauses()]
        # What comes before a step is named is for another one, or for all of them.
        several = not one_model and any(map(self._models_in, clauses))
        for start, end in clauses:
            here, grown = Span(start, end, frozenset({DONE})), len(self._rows)
            said, gone, self._gone = self._made.text[start:end], self._gone, False
            self._quotes = [one for one in quoted(said) if one.casefold() not in known]
            self._plain = said
            for one in self._quotes:
                self._plain = re.sub(rf"[\"“„«'‘]\s?{re.escape(one)}\s?[\"”“»'’]", " ", self._plain)
            self._former, self._named = self._named or self._former, titled(self._request, said)
            self._ways = [n for n, row in enumerate(self._rows)
                          if wording.whole(row.get("scenario") or "\x00").search(self._plain)]  # fmt: skip
            self._humans = self._meant() if _AGREES.search(self._plain) else []
            out = not self._quotes and (words("remove").search(self._plain) or _OUT.search(self._plain))
            if self._goes(again=gone) if out else any(read() for read in (
                    self._goes_straight, self._stays, self._retitled, self._opens, self._agrees, self._refused,
                    self._replies, self._sends, self._compares)):  # fmt: skip
                # A branch that is called in one clause is done where another one says what it does.
                done += [here, *(opening if len(self._rows) > grown else [])]
                apart = True
            else:
                several = several and not self._models_in((start, end))
                apart = self._is_structure() or several or (apart and not one_model and not self._named)
                undone += [here] if apart else []
                opening = opening or [here] * bool(self._way)
        undone = [one for one in undone if one not in done]
        links = [DesignConnection(source=one.source, output=one.output, target=one.target)
                 for one in self._edges if one not in self._before]  # fmt: skip
        cuts = [DesignConnection(source=one.source, target=one.target, input=one.target) for one in self._before
                if one not in self._edges and not {*self._removed} & {one.source, one.target}]  # fmt: skip
        return replace(
            self._made, spans=tuple(done), undone=tuple(undone), added=self._added, removed=tuple(self._removed),
            labels=self._labels, values=tuple(self._values), links=(*self._made.links, *links),
            cuts=(*self._made.cuts, *cuts), steps=tuple(self._steps), named=tuple(names),
        )  # fmt: skip

    def _clauses(self) -> Iterator[tuple[int, int]]:
        """Sentences, and those parts of one that each speak of a part of the flow of their own."""
        text, closed = self._made.text, quoted_spans(self._made.text)
        for start, end, _ in wording.sentences(text, closed):
            at = start
            whole = any(one.search(text[start:end]) for one in (_NEW, _WAY, _SENDS))
            for cut in [] if whole else wording.borders(text, start, end, closed):
                sides = text[at:cut], text[cut:end]
                if all(map(_strong, sides)) or (wording.asks(sides[1].strip()) and not _IF.match(sides[0].strip())):
                    yield at, cut
                    at = cut
            yield at, end

    def _models_in(self, place: tuple[int, int]) -> list[str]:
        """The steps of models that a clause names."""
        return [id_ for id_ in titled(self._request, self._made.text[slice(*place)]) if self._kinds[id_] in _MODELS]

    def _is_structure(self) -> bool:
        """Whether a clause is about the flow, and not about how a step behaves."""
        steps = [id_ for id_ in self._named if self._kinds[id_] in _MODELS]
        part = concepts(self._plain, "own", "steps") or self._named or self._ways
        alters = wording.alters(self._plain) or words("rename").search(self._plain) or _OUT.search(self._plain)
        text = not steps and _ANSWER.search(self._plain) and (self._quotes or _CONTACT.search(self._plain))
        kinds = {kind for _, kind in signals(self._plain)} & _STRUCTURE or _STEP.search(self._plain)
        human = _AGREES.search(self._plain) or {*self._named} & {*self._of(_HUMAN)}
        again = (outcome(self._plain) and found("anew", self._plain)) or kind_of(self._plain) == "limit"
        human = human or (again and self._of(_HUMAN))
        return bool(kinds or human) or bool(part) + bool(alters) + bool(text) > 1

    # --- What a clause asks for: each is True where all of it is done

    def _stays(self) -> bool:
        part = self._named or self._ways or _AGREES.search(self._plain)
        asks = self._quotes or wording.alters(self._plain) or wording.tells(self._plain)
        return bool(part and _REMAINS.search(self._plain) and not asks)

    def _goes(self, *, again: bool) -> bool:
        """A step or an approval goes; behind one that went it is "it" that does."""
        going = self._humans or self._named
        clear = len(going) == 1 or (going and words("all_of_them").search(self._plain))
        self._gone = bool(clear) and not {*going} & {*self._removed} and all(map(self._without, going))
        return self._gone or (again and not going and len(self._plain.split()) <= _FEW)

    def _goes_straight(self) -> bool:
        """What follows from a step that went: the one before it goes on to the one behind it."""
        return bool(self._removed and _STRAIGHT.search(self._plain) and not self._quotes)

    def _retitled(self) -> bool:
        step, asks = self._named or self._humans, words("rename").search(self._plain) or _CALLED.search(self._plain)
        if done := bool(asks) and len(step) == len(self._quotes) == 1:
            self._labels[step[0]] = self._quotes[0]
        return done

    def _opens(self) -> bool:
        """A further branch, with a fixed reply or a step of a model. What it is called may come in a clause of its
        own."""
        comes, way = _COMES.search(self._plain), _WAY.search(self._plain)
        branch = comes and (way or any("branch" in one.names for one in concepts(self._plain, "own")))
        if not self._sorter or self._removed:
            return False
        short = [one for one in self._quotes if len(one.split()) < _FEW] if branch or self._way else []
        named = _BRANCH.search(self._plain) if branch else None
        # What is done there may follow the name.
        way = way if branch and not short else None
        called = capital(way["name"]) if way else (short or [named["name"] or "" if named else ""])[0]
        self._way = self._way.strip() or called or self._way or " " * bool(branch)
        step, rest = way or _NEW.search(self._plain), [one for one in self._quotes if one != self._way]
        like = [id_ for one in self._edges if one.source == self._sorter
                and self._kinds.get(id_ := one.target) in _MODELS]  # fmt: skip
        if not self._way.strip() or not ((step and like) or len(rest) == 1):
            return False
        name, self._way = self._way, ""
        self._rows.append({"scenario": name})
        self._values.append(PlannedValue(node_id=self._sorter, param=_ROWS, value=[*self._rows]))
        output = str(len(self._rows) - 1)
        if not step or not like:
            return self._new(_REPLY, self._sorter, output, {_TEXT: rest[0]})
        # Without tools a model is enough.
        like.sort(key=lambda id_: self._kinds[id_] != _MODELS[0])
        kind, own = self._kinds[like[0]], self._nodes[like[0]]
        task = [{"role": "system", "content": capital((way["do"] if way else step["task"]).strip())}]
        fields = {name: value for name, value in own.items() if re.match(r"(?:llm|agent)(?:Model|.*Memory)", name)}
        label = name if way else step["name"] or name
        return self._new(kind, self._sorter, output, {**fields, f"{kind[:-9]}Messages": task}, label)

    def _agrees(self) -> bool:
        """A person agrees in front of a step, or behind one."""
        # An amount that has to be compared first is no matter of an approval alone.
        if not _AGREES.search(self._plain) or self._quotes or found("unread", self._plain):
            return False
        edges, placed = self._place(), _BEFORE.search(self._plain) or _BEHIND.search(self._plain)
        if self._human:
            # "Somebody has to approve it!": where, is said before it.
            return not placed or any(self._human in one for one in edges)
        if not edges or any(self._kinds.get(one.source) == _HUMAN for one in edges):
            return False
        (self._human,) = build.fresh_ids((_HUMAN,), self._kinds)
        self._added[self._human] = _HUMAN
        source, _, target = edges[0]
        if target:
            self._edges = [one._replace(target=self._human) if one in edges else one for one in self._edges]
            self._edges.append(_Edge(self._human, "proceed", target))
        else:
            self._edges.append(_Edge(source, "", self._human))
            self._new(_REPLY, self._human, "proceed", {_TEXT: f"{{{{ {source} }}}}"})
        self._steps.append(" → ".join(map(self._title, (source, self._human, self._edges[-1].target))))
        return True

    def _refused(self) -> bool:
        """What is said once a person has not agreed."""
        humans = [self._human] if self._human else self._meant()
        if not (_NO.search(self._plain) and len(self._quotes) == 1 and len(humans) == 1):
            return False
        there = [one.target for one in self._edges if one.source == humans[0] and one.output not in _PROCEEDS]
        if len(there) > 1 or any(self._kinds[one] != _REPLY for one in there):
            return False
        text = {_TEXT: self._quotes[0]}
        return self._set(there[0], text) if there else self._new(_REPLY, humans[0], "reject", text)

    def _replies(self) -> bool:
        """A fixed reply has another text, or another address in it."""
        replies = self._of(_REPLY)
        ends = {one.output: one.target for one in self._edges if one.source == self._sorter}
        meant = [id_ for id_ in replies if id_ in [*self._named, *(ends.get(str(way)) for way in self._ways)]]
        meant = meant or [id_ for id_ in self._former if id_ in replies and _IN_IT.search(self._plain)]
        meant = meant or (replies if _LAST.search(self._plain) and _ANSWER.search(self._plain) else [])
        # What a branch to come answers is no other text of one that is there.
        if self._way or len(meant) != 1 or _IF.match(self._plain.strip()):
            return False
        text, given = str(self._nodes[meant[0]].get(_TEXT) or ""), _CONTACT.findall(self._plain)
        there = [one for one in _CONTACT.findall(text) if given and ("@" in one) == ("@" in given[0])]
        other = self._quotes or ([text.replace(there[0], given[0])] if len(there) == len(given) == 1 else [])
        other = other or self._with_number(text)
        return len(other) == 1 and self._set(meant[0], {_TEXT: other[0]})

    def _sends(self) -> bool:
        """A request that sends what was made somewhere, behind a step or an approval, or in front of a step."""
        match = _SENDS.search(self._plain)
        if not match or len(_URLS.findall(self._plain)) > 1:
            return False
        url, edges = match["url"], self._sending(match.string.replace(match["url"], " "))
        made = [one.source for one in edges if self._kinds.get(one.source) in _MODELS] or [
            edge.source for one in edges for edge in self._edges
            if edge.target == one.source and self._kinds.get(edge.source) in _MODELS]  # fmt: skip
        sent = self._sent(match.string.replace(url, " "), made[0]) if made else {}
        if len(edges) != 1 or not sent:
            return False
        as_json, call = self._between(edges[0], "customFunctionAgentflow", _CALL)
        self._set(as_json, as_json_by_code(sent))
        return self._set(call, {"method": match[0].split()[0].upper(), "url": url, "bodyType": "json",
                                "body": f"{{{{ {as_json} }}}}"})  # fmt: skip

    def _sending(self, said: str) -> list[_Edge]:
        """The connection that a request comes into; behind a last step it leads nowhere."""
        humans = [id_ for id_ in self._of(_HUMAN) if _AGREED.search(said)]
        if len(humans) == 1:
            return [one for one in self._edges if one.source == humans[0] and one.output in _PROCEEDS]
        if edges := self._place():
            return edges
        near = titled(self._request, said) if _BEHIND.search(said) else []
        behind = [one for one in self._edges if near and one.source == near[0]]
        return behind or [_Edge(one, "", "") for one in near if self._kinds[one] in _MODELS][:1]

    def _sent(self, said: str, made: str) -> dict[str, str]:
        """What is sent by name: fields of the form, the question, and the text that a step made."""
        start: Any = next(self._nodes[id_] for id_ in self._of(_START))
        fields = {row["name"]: row.get("label", "") for row in start.get("formInputTypes") or ()}
        sent = {name: f"{{{{ $form.{name} }}}}" for name, label in fields.items()
                if any(wording.whole(one).search(said) for one in (name, label) if one)}  # fmt: skip
        asked = _QUESTION.search(said)
        sent |= {in_ascii(asked[0]).lower(): "{{ question }}"} if asked and not fields else {}
        text = _SENT_TEXT.search(said)
        return sent | ({in_ascii(text[0]).lower(): f"{{{{ {made} }}}}"} if text else {})

    def _between(self, edge: _Edge, *kinds: str) -> list[str]:
        """New steps on a connection, one behind the other; behind a last step what it made is said in the end."""
        ids, source, output = list[str](), edge.source, edge.output
        self._edges = [one for one in self._edges if one != edge]
        for kind in kinds:
            self._new(kind, source, output, {})
            source, output = self._edges[-1].target, ""
            ids.append(source)
        if edge.target:
            self._edges.append(_Edge(source, "", edge.target))
        else:
            self._new(_REPLY, source, "", {_TEXT: f"{{{{ {edge.source} }}}}"})
        self._steps.append(" → ".join(map(self._title, (edge.source, *ids, self._edges[-1].target))))
        return ids

    def _compares(self) -> bool:
        """A condition compares with another number than before."""
        numbers = [to_number(one) for one in _DIGITS.findall(self._plain)]
        rows = [(id_, n, row) for id_ in self._of(_CONDITION) for n, row in enumerate(self._nodes[id_]["conditions"])
                if row.get("type") == "number"]  # fmt: skip
        there = [(id_, n, row) for id_, n, row in rows if str(row.get("value2", "")).replace(".", "", 1).isdigit()
                 and float(row["value2"]) in numbers]  # fmt: skip
        others = [one for one in numbers if there and one != float(there[0][2]["value2"])]
        if len(there) != 1 or len(others) != 1:
            return False
        id_, number, row = there[0]
        changed = [*self._nodes[id_]["conditions"]]
        changed[number] = {**row, "value2": round(others[0]) if others[0] == int(others[0]) else others[0]}
        return self._set(id_, {"conditions": changed})

    def _with_number(self, text: str) -> list[str]:
        """A text with another number in place of the one that a clause names: "the three days in there to five"."""
        said = [one for one in re.findall(NUMBER, self._plain, re.IGNORECASE) if one]
        there = [one for one in said if wording.whole(one).search(text)]
        others = [one for one in said if one not in there]
        return [wording.whole(there[0]).sub(others[0], text)] if len(there) == len(others) == 1 else []

    # --- Which step is meant

    def _meant(self) -> list[str]:
        """The approvals that a clause means: those with most of its words, else all."""
        shares = {id_: len(_stems(self._request.labels.get(id_, "")) & _stems(self._plain)) for id_ in self._of(_HUMAN)}
        return [id_ for id_, shared in shares.items() if shared == max(shares.values())]

    def _place(self) -> list[_Edge]:
        """The connections that a step comes into, which all lead to one node; to none behind a last step."""
        inside = self._inside()
        calls, replies = (inside.intersection(self._of(kind)) for kind in (_CALL, _REPLY))
        sent = {id_ for id_ in calls if self._nodes[id_].get("method") != "GET"} or replies
        for place, side in ((_BEFORE.search(self._plain), "target"), (_BEHIND.search(self._plain), "source")):
            said = self._plain[place.end() :] if place else ""
            near = {*titled(self._request, said)} or (calls if _CALLS.search(said) else set[str]())
            near = near or (sent if said and side == "target" else near)
            edges = [one for one in self._edges if getattr(one, side) in near]
            if len(near) == len({one.target for one in edges}) == 1:
                return edges
            last = inside - {one.source for one in self._edges}
            if said and side == "target" and not near and len(last) == 1 and self._kinds[one := last.pop()] in _MODELS:
                return [_Edge(one, "", "")]
        return []

    def _inside(self) -> set[str]:
        """The steps of the branch that a clause names; all where it names none."""
        inside = {one.target for one in self._edges if one[:2] in [(self._sorter, str(way)) for way in self._ways]}
        while more := {one.target for one in self._edges if one.source in inside} - inside:
            inside |= more
        return inside if len(self._ways) == 1 else {*self._kinds}

    def _title(self, id_: str) -> str:
        method = f"{self._nodes[id_].get('method')} " if self._kinds.get(id_) == _CALL else ""
        kind = self._request.nodes.get(self._added.get(id_, ""))
        return f"`{method}{kind.label if kind else self._request.labels.get(id_) or id_}`"

    # --- What is done

    def _set(self, step: str, values: dict[str, Any]) -> bool:
        self._values += [PlannedValue(node_id=step, param=name, value=value) for name, value in values.items()]
        return True

    def _new(self, kind: str, source: str, output: str, values: dict[str, Any], label: str = "") -> bool:
        """With a new step behind an output of another one."""
        (new,) = build.fresh_ids((kind,), {**self._kinds, **self._added})
        self._added[new] = kind
        self._labels |= {new: label} if label else {}
        self._edges.append(_Edge(source, output, new))
        return self._set(new, values)

    def _without(self, gone: str) -> bool:
        """Without a step: what was in front of it goes on to what was behind it, and what a refusal led to alone goes.
        One stays whose result another one names."""
        out = [one for one in self._edges if one.source == gone]
        behind = [one.target for one in out if self._kinds[gone] != _HUMAN or one.output in _PROCEEDS]
        alone = [one.target for one in out if one.target not in behind
                 and [edge.source for edge in self._edges if edge.target == one.target] == [gone]]  # fmt: skip
        others = json.dumps([own for id_, own in self._nodes.items() if id_ != gone], default=str)
        if re.search(rf"\b{gone}\b", others) or not behind:
            return False
        around = [one._replace(target=to) for one in self._edges if one.target == gone for to in behind]
        self._edges = [*(one for one in self._edges if not {gone, *alone} & {one.source, one.target}), *around]
        self._removed += [gone, *alone]
        return True


def _strong(said: str) -> bool:
    looked_for = (_AGREES, _OUT, _REMAINS, words("remove"))
    return bool(quoted(said) or "://" in said or "\x00" in said or any(one.search(said) for one in looked_for))


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.casefold())}


def _telling(text: str) -> set[str]:
    """The stems of the words that say something, and the numbers."""
    said = in_ascii(text).casefold()
    return _stems(" ".join(one for one in _WORD.findall(said) if one not in FUNCTIONS)) | {*_DIGITS.findall(said)}
