"""What a wish does to the steps of an AgentFlow that is there: each clause is one operation on their graph. What speaks
of its structure and is not read in full is `undone`: it is in no prompt, and told by name."""

import json
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design import graph, wording
from flowise_dev_agent.reasoning.rules.design.clauses import clauses
from flowise_dev_agent.reasoning.rules.design.details import in_ascii, listed
from flowise_dev_agent.reasoning.rules.design.graph import Edge, Graph
from flowise_dev_agent.reasoning.rules.design.kinds import found
from flowise_dev_agent.reasoning.rules.design.owners import DIGITS, called, meant, stems_of, titled
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, is_empty
from flowise_dev_agent.reasoning.rules.design.sources import Made
from flowise_dev_agent.reasoning.rules.design.step_nodes import as_json_by_code
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, concept, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import Sense, sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, capital, quoted, to_number

_OR = re.compile(r"(?i)\s*[,/;]\s*|\s(?:and|or|und|oder|et|ou|y|o|e|of|en|i|lub|oraz)(?:\s|$)")
_METHOD = re.compile(r"(?<!\w)(?:GET|POST|PUT|PATCH|DELETE)(?!\w)")
_CONTACT, _IF, _FEW, _FEWEST = pattern("exchange", "contact"), pattern("prompt", "if"), 5, 3
_HALF, _CLEAR, _ITEM = 0.5, 0.6, " -•*0123456789.)"
_REFERS = pattern("about", "refers")
_STRUCTURE = {"approval", "branch", "loop", "schedule", "form", "call"}


def find_steps(request: PlanRequest, made: Made) -> Made:
    """What is understood of `made.text`, with the connections that come and go."""
    return _Reader(request, made).read(made) if graph.START in request.existing.values() and request.base else made


@dataclass(frozen=True)
class _Clause:
    """A clause as it is, without what it quotes, and the steps that it names."""

    said: str
    plain: str
    quotes: list[str]
    named: list[str]
    sense: Sense

    def has(self, name: str, section: str = "rewiring") -> re.Match[str] | None:
        return pattern(section, name).search(self.plain)

    @property
    def out(self) -> bool:
        """Whether it takes something out."""
        out = words("remove").search(self.plain) or self.has("out", "change") or self.has("not_needed")
        return bool(out and not self.quotes)

    @property
    def repeats(self) -> bool:
        """Whether it speaks of something that is done again."""
        heard = self.sense.concepts.get("loop", 0) > _CLEAR or found("times", self.plain)
        return bool(heard or concept("own", "loop").search(self.plain))

    @property
    def numbers(self) -> list[str]:
        once = ["1"] if self.has("once") else []
        return once + [one for one in re.findall(NUMBER, self.plain, re.IGNORECASE) if one]


class _Reader:
    def __init__(self, request: PlanRequest, made: Made) -> None:
        self._request, self._flow = request, Graph(request, made)
        sorters = self._flow.of(graph.SORTER)
        self._sorter = sorters[0] if len(sorters) == 1 else ""
        #: The approval that came, what a branch to come is called, whether the clause before took something out,
        #: whether some need no approval any more, and the steps that a clause before named.
        self._human, self._way, self._gone, self._spared, self._former = "", "", False, False, list[str]()
        #: Whether the clause before is not done.
        self._failed = False
        self._operations: Sequence[Callable[[_Clause], bool]] = (
            self._goes_straight, self._goes, self._stays, self._retitled, self._opens, self._agrees_if, self._agrees,
            self._refused, self._limits, self._asked, self._says, self._sends, self._sent_along,
            self._compares,
        )  # fmt: skip

    def read(self, made: Made) -> Made:
        done, undone, opening = [*made.spans], list[Span](), list[Span]()
        names = [*(row.get("scenario", "") for row in self._rows), *self._request.labels.values(), self._request.target]
        known = {name.casefold() for name in names if name}
        # What a sentence goes on with that asks for a part which is not done is said of that part.
        said = clauses(made.text, change=True)
        asking = [one for one in said if one.whole and one.sense.part > _HALF > one.sense.told]
        for start, end in (place for place in _clauses(made.text) if made.text[slice(*place)].strip()):
            one, grown = self._clause(made.text[start:end], known), len(self._rows)
            here = Span(start, end, frozenset({DONE}))
            if any(operation(one) for operation in self._operations):
                # A branch that is called in one clause is done where another one says what it does.
                done += [here, *(opening if len(self._rows) > grown else [])]
            elif self._is_structure(one) or (self._failed and any(whole.start < start < whole.end for whole in asking)):
                undone.append(here)
            # What a sentence goes on with that is not done is none of another part either.
            within = any(whole.whole and whole.start < start < whole.end for whole in said)
            self._failed = here in undone or (self._failed and within and here not in done)
            opening = opening or [here] * bool(self._way)
            self._former = one.named or self._former
        undone = [one for one in undone if one not in done]
        return self._flow.made(replace(made, spans=tuple(done), undone=tuple(undone), named=tuple(names)))

    def _clause(self, said: str, known: Set[str]) -> _Clause:
        quotes, plain = [one for one in quoted(said) if one.casefold() not in known], said
        for one in quotes:
            plain = re.sub(rf"[\"“„«'‘]\s?{re.escape(one)}\s?[\"”“»'’]", " ", plain)
        return _Clause(said, plain, quotes, titled(self._request, said), sense(said.strip(), change=True))

    def _is_structure(self, one: _Clause) -> bool:
        """Whether a clause is about the flow, and not about how a step behaves."""
        part = texts.concepts(one.plain, "own", "steps") or one.named or self._ways(one)
        alters = wording.alters(one.plain) or words("rename").search(one.plain) or one.out
        text = one.has("answer") and (one.quotes or _CONTACT.search(one.plain)) and not self._named(one, *graph.MODELS)
        kinds = {kind for _, kind in texts.signals(one.plain)} & _STRUCTURE or one.has("step") or one.has("agrees")
        kinds = kinds or self._named(one, graph.HUMAN, graph.REPLY) or (one.repeats and not one.sense.tells)
        beside = one.has("beside_it") if one.has("comes") else None
        kinds = kinds or (beside and called(self._request, " ".join(one.plain[beside.end() :].split()[:_FEW])))
        kinds = kinds or (one.has("straight") and self._flow.of(graph.HUMAN))
        again = _IF.match(one.plain.strip()) and (one.repeats or found("anew", one.plain))
        goes_on = again or _REFERS.match(one.plain.lstrip(_ITEM)) or one.has("outcome", "change")
        kinds = kinds or (self._failed and (goes_on or (one.has("is_called") and not one.named)))
        goes = one.out and one.sense.part > _CLEAR > one.sense.told and "prompt_delete" not in one.sense.concepts
        return bool(kinds or goes) or bool(part) + bool(alters) + bool(text) > 1

    # --- Which step is meant

    def _named(self, one: _Clause, *kinds: str) -> list[str]:
        return [id_ for id_ in one.named if self._flow.kinds[id_] in kinds]

    def _only(self, one: _Clause, kind: str) -> list[str]:
        """The steps of a kind that a clause means; all where it means none of them."""
        steps = self._flow.of(kind)
        return (meant(self._request, one.plain, steps) or steps) if len(steps) > 1 else steps

    @property
    def _rows(self) -> list[Any]:
        """The branches of the flow."""
        return self._flow.held(self._sorter, graph.ROWS) or []

    def _ways(self, one: _Clause) -> list[str]:
        """The steps that begin the branches that a clause names."""
        names = {str(n): row.get("scenario") or "\x00" for n, row in enumerate(self._rows)}
        return [self._flow.next(self._sorter, n) for n, name in names.items() if wording.whole(name).search(one.plain)]

    def _place(self, one: _Clause, *, agreed: bool = False) -> list[Edge]:
        """The connections that a step comes into, which all lead to one step; to none behind a last step. `agreed`: it
        may come where a person has agreed."""
        flow, humans = self._flow, self._flow.of(graph.HUMAN)
        if agreed and len(humans) == 1 and one.has("agreed"):
            return [edge for edge in flow.edges if edge.source == humans[0] and edge.output in graph.PROCEEDS]
        # In the branch, or behind the model, that it names.
        inside = flow.behind(self._ways(one) or called(self._request, one.plain, flow.of(*graph.MODELS)) or flow.kinds)
        calls = inside.intersection(flow.of(graph.CALL))
        sent = {id_ for id_ in calls if flow.held(id_, "method") != "GET"}
        for place, side in ((one.has("before", "change"), "target"), (one.has("behind"), "source")):
            said = one.plain[place.end() :] if place else ""
            near = {*titled(self._request, said)} or (calls if pattern("change", "calls").search(said) else set[str]())
            if said and not near and side == "target":
                near = sent or inside.intersection(flow.of(graph.REPLY))
            # "Before the answer of the writer goes out" is behind the writer.
            out = near and near <= {*flow.of(*graph.MODELS)} and pattern("rewiring", "goes_out").search(said)
            side = "source" if out else side
            edges = [edge for edge in flow.edges if getattr(edge, side) in near]
            if len(near) == len({edge.target for edge in edges}) == 1:
                return edges
            ends = {*(near or (inside if side == "target" else ()))} - {edge.source for edge in flow.edges}
            if said and len(ends) == 1 and flow.kinds[step := ends.pop()] in graph.MODELS:
                return [Edge(step, "", "")]
        return []

    # --- What a clause asks for: each is True where all of it is done

    def _goes_straight(self, one: _Clause) -> bool:
        """What follows from a step that went, or from an approval that is for some cases alone now."""
        follows = (self._flow.removed or self._spared) and not (one.quotes or (one.out and one.named))
        return bool(follows and one.has("straight"))

    def _goes(self, one: _Clause) -> bool:
        """A step, an approval or a repetition goes; behind one that went it is "it" that does."""
        if not one.out:
            return False
        flow, again = self._flow, self._gone and len(one.plain.split()) <= _FEW
        going = self._only(one, graph.HUMAN) if one.has("agrees") else one.named
        loops = self._only(one, graph.LOOP) if one.repeats and not flow.gone(graph.LOOP) else []
        clear = len(going or loops) == 1 or (going and words("all_of_them").search(one.plain))
        clear = clear or (not going and one.repeats and flow.gone(graph.LOOP))
        rest = [step for step in dict.fromkeys([*going, *loops]) if step not in flow.removed]
        self._gone = bool(clear and all(step in flow.removed or flow.without(step) for step in rest))
        return self._gone or (again and not going)

    def _stays(self, one: _Clause) -> bool:
        part = one.named or self._ways(one) or one.has("agrees") or one.repeats
        asks = one.quotes or wording.alters(one.plain) or wording.tells(one.plain)
        return bool(part and (one.has("remains", "change") or one.sense.keep > _CLEAR) and not asks)

    def _retitled(self, one: _Clause) -> bool:
        step = one.named or (self._only(one, graph.HUMAN) if one.has("agrees") else [])
        renamed = words("rename").search(one.plain)
        bare = one.has("new_title") if renamed and not one.quotes else None
        names = [bare["name"]] if bare else one.quotes
        if done := bool(renamed or one.has("is_called")) and len(step) == len(names) == 1:
            self._flow.labels[step[0]] = names[0]
        return done

    def _opens(self, one: _Clause) -> bool:
        """A further branch, with a fixed reply that may come in a clause of its own, or a step of a model."""
        flow, way = self._flow, one.has("way") if not one.quotes else None
        branch = one.has("comes") and (way or concept("own", "branch").search(one.plain))
        short = [quote for quote in one.quotes[:1] if len(quote.split()) < _FEW and branch and quote[-1] not in ".!?"]
        self._way = self._way or (capital(way["name"]) if branch and way else (short or [""])[0])
        rest = [quote for quote in one.quotes if quote != self._way]
        like = [id_ for id_ in flow.after(self._sorter) if flow.kinds[id_] in graph.MODELS]
        if not (self._sorter and self._way and ((way and like) or len(rest) == 1)) or flow.removed:
            return False
        name, self._way, output = self._way, "", str(len(self._rows))
        flow.put(self._sorter, **{graph.ROWS: [*self._rows, {"scenario": name}]})
        if not way:
            return bool(flow.new(graph.REPLY, self._sorter, output, **{graph.TEXT: rest[0]}))
        # Without tools a model is enough.
        kind = flow.kinds[model := min(like, key=lambda id_: flow.kinds[id_] != graph.MODELS[0])]
        task = [{"role": "system", "content": capital(way["do"].strip())}]
        fields = flow.like(model, r"(?:llm|agent)(?:Model|.*Memory)") | {f"{kind[:-9]}Messages": task}
        return bool(flow.new(kind, self._sorter, output, name, **fields))

    def _agrees_if(self, one: _Clause) -> bool:
        """A person is asked in some cases alone: a model looks for them, as the one does that sorts."""
        case, flow, humans = one.has("only_if"), self._flow, self._only(one, graph.HUMAN)
        if not (case and one.has("agrees") and self._sorter and len(humans) == 1):
            return False
        edges = [edge for edge in flow.edges if edge.target == humans[0]]
        if not (edges and (on := flow.next(humans[0], *graph.PROCEEDS))):
            return False
        (fork,) = flow.between(edges, graph.SORTER, output="0")
        names = capital(case["case"].strip(" .!")), say("otherwise", texts.detect_language(one.said))
        given = f"{flow.held(self._sorter, 'conditionAgentInput')}\n\n{{{{ {edges[0].source} }}}}"
        told: dict[str, Any] = {graph.ROWS: [{"scenario": name} for name in names], "conditionAgentInput": given}
        told |= {"conditionAgentInstructions": capital(one.plain.strip())}
        self._spared = flow.put(fork, **flow.like(self._sorter, "conditionAgentModel"), **told)
        flow.edges.append(Edge(fork, "1", on))
        return True

    def _agrees(self, one: _Clause) -> bool:
        """A person agrees in front of a step, or behind one."""
        # An amount that has to be compared first is no matter of an approval alone.
        if not one.has("agrees") or one.quotes or found("unread", one.plain):
            return False
        if one.has("still") and self._flow.of(graph.HUMAN):
            return not (self._failed or one.has("outcome", "change"))
        edges, flow = self._place(one), self._flow
        if self._human:
            # "Somebody has to approve it!": where, is said before it.
            after = one.named and {*one.named} <= flow.behind([self._human])
            placed = one.has("before", "change") or one.has("behind")
            return bool(not placed or after or any(self._human in edge for edge in edges))
        if not edges or any(flow.kinds.get(edge.source) == graph.HUMAN for edge in edges):
            return False
        (self._human,) = flow.between(edges, graph.HUMAN, output="proceed")
        return True

    def _refused(self, one: _Clause) -> bool:
        """What is said once a person has not agreed, or that the draft is made again then."""
        flow, humans = self._flow, [self._human] if self._human else self._only(one, graph.HUMAN)
        if not one.has("no") or len(humans) != 1:
            return False
        there = flow.next(humans[0], "1", "reject")
        made = [id_ for id_ in flow.before(humans[0]) if flow.kinds[id_] in graph.MODELS]
        if found("anew", one.plain) and not (one.quotes or there) and len(made) == 1 and len(one.numbers) < 2:
            limit: dict[str, Any] = {"maxLoopCount": round(to_number(one.numbers[0]))} if one.numbers else {}
            back = f"{made[0]}-{flow.titles.get(made[0], made[0])}"
            return bool(flow.new(graph.LOOP, humans[0], "reject", loopBackToNode=back, **limit))
        if len(one.quotes) != 1 or (there and flow.kinds[there] != graph.REPLY):
            return False
        text = {graph.TEXT: one.quotes[0]}
        return flow.put(there, **text) if there else bool(flow.new(graph.REPLY, humans[0], "reject", **text))

    def _limits(self, one: _Clause) -> bool:
        """How often at most something is done again."""
        # What goes on with something that is not done, or is for another step, is none of the loops that are there.
        again = one.sense.told < _CLEAR and (one.repeats or found("anew", one.plain)) and not self._failed
        models = {*called(self._request, one.plain, self._flow.of(*graph.MODELS))}
        loops = [id_ for id_ in (self._only(one, graph.LOOP) if again else []) if not models
                 or {str(self._flow.held(id_, "loopBackToNode")).partition("-")[0]} == models]  # fmt: skip
        was = self._flow.held(loops[0], "maxLoopCount") if loops else None
        numbers = [number for one in one.numbers if (number := round(to_number(one))) != was]
        return len(loops) == len(numbers) == 1 and self._flow.put(loops[0], maxLoopCount=numbers[0])

    def _asked(self, one: _Clause) -> bool:
        """The form asks for more: a field, one to choose from, or one more to choose."""
        (start, *_) = self._flow.of(graph.START)
        rows: list[Any] = self._flow.held(start, "formInputTypes") or []
        named = [row for row in rows if set() < stems_of(row["label"]) <= stems_of(one.plain)]
        chosen = [row for row in named if row.get("addOptions")]
        if len(chosen) == 1 and one.quotes and one.has("comes"):
            options = [*chosen[0]["addOptions"], *({"option": quote} for quote in one.quotes)]
            rows = [{**row, "addOptions": options} if row is chosen[0] else row for row in rows]
            # What it costs is for a model, too.
            return self._flow.put(start, formInputTypes=rows) and not one.numbers
        more = _fields(one.said) if rows and one.has("form") else []
        return bool(more) and self._flow.put(start, formInputTypes=[*rows, *more])

    def _says(self, one: _Clause) -> bool:
        """A fixed reply, or what a person is told who is to agree, is another text, or another address or number in
        it."""
        there = {*one.named, *self._ways(one), *(self._former if one.has("in_it") else [])}
        fixed = [id_ for id_ in self._flow.of(graph.REPLY, graph.HUMAN) if id_ in there]
        if not fixed and one.has("answer") and (one.has("agrees") or one.has("last")):
            fixed = self._only(one, graph.HUMAN if one.has("agrees") else graph.REPLY)
        # What a branch to come answers is no other text of one that is there.
        if self._way or len(fixed) != 1 or _IF.match(one.plain.strip()):
            return False
        field = graph.TEXT if self._flow.kinds[fixed[0]] == graph.REPLY else "humanInputDescription"
        text, given = str(self._flow.held(fixed[0], field) or ""), _CONTACT.findall(one.plain)
        held = [other for other in _CONTACT.findall(text) if given and ("@" in other) == ("@" in given[0])]
        other = [text.replace(held[0], given[0])] if len(held) == len(given) == 1 else _with_number(text, one.numbers)
        if one.quotes:
            ends, begins = (pattern("about", name).search(one.plain) for name in ("closing", "greeting"))
            more = {bool(ends): f"{text} {one.quotes[0]}", bool(begins): f"{one.quotes[0]} {text}"}.get(True)
            # What a step made is not lost.
            other = [more] if more else [] if "{{" in text and "{{" not in one.quotes[0] else one.quotes
        kind = {} if field == graph.TEXT else {"humanInputDescriptionType": "fixed"}
        return len(other) == 1 and self._flow.put(fixed[0], **kind, **{field: other[0]})

    def _sends(self, one: _Clause) -> bool:
        """A request that sends what was made somewhere, behind a step or an approval, or in front of a step."""
        flow, match = self._flow, one.has("sends")
        if not match or one.plain.count("://") > 1:
            return False
        one = replace(one, plain=one.plain.replace(match["url"], " "))
        edges = self._place(one, agreed=True)
        before = [id_ for edge in edges for id_ in (edge.source, *flow.before(edge.source))]
        made = [id_ for id_ in before if flow.kinds[id_] in graph.MODELS]
        asked, text, sent = one.has("sent_question"), one.has("sent_text"), self._given(one.plain)
        sent |= {in_ascii(asked[0]).lower(): "{{ question }}"} if asked and not sent else {}
        sent |= {in_ascii(text[0]).lower(): f"{{{{ {made[0]} }}}}"} if text and made else {}
        if len(edges) != 1 or not sent:
            return False
        as_json, call = flow.between(edges, "customFunctionAgentflow", graph.CALL)
        flow.put(as_json, **as_json_by_code(sent))
        request = {"method": match[0].split()[0].upper(), "url": match["url"], "bodyType": "json"}
        return flow.put(call, **request, body=f"{{{{ {as_json} }}}}")

    def _sent_along(self, one: _Clause) -> bool:
        """A request that is there has another method, one more header, or more values in what it sends."""
        flow, all_ = self._flow, self._flow.of(graph.CALL)
        named = called(self._request, one.plain, all_) if all_ else []
        calls = named or [id_ for id_ in self._former if id_ in all_] or all_
        header = pattern("rewiring", "header").search(one.said)
        if len(calls) != 1 or one.sense.told > one.sense.part:
            return False
        methods = [name for name in _METHOD.findall(one.said) if name != flow.held(calls[0], "method")]
        if named and len(methods) == 1:
            return flow.put(calls[0], method=methods[0])
        if header:
            return flow.put(calls[0], headers=[*(flow.held(calls[0], "headers") or []), header.groupdict()])
        text, given = str(flow.held(calls[0], "body") or "").strip(), self._given(one.said)
        pairs = [json.dumps({name: value})[1:-1] for name, value in given.items() if f'"{name}"' not in text]
        sends = pairs and (named or one.has("body")) and text[-1:] == "}"
        return bool(sends) and flow.put(calls[0], body=f"{text[:-1].rstrip()}, {', '.join(pairs)}}}")

    def _given(self, said: str) -> dict[str, str]:
        """The fields of the form and the values of the flow that a stretch names."""
        (start, *_) = self._flow.of(graph.START)
        state = [(row["key"], row["key"], "flow.state") for row in self._flow.held(start, "startState") or ()]
        form = [(row["name"], row.get("label") or row["name"], "form")
                for row in self._flow.held(start, "formInputTypes") or ()]  # fmt: skip
        return {name: f"{{{{ ${of}.{name} }}}}" for name, label, of in (*state, *form)
                if any(wording.whole(one).search(said) for one in (name, label))}  # fmt: skip

    def _compares(self, one: _Clause) -> bool:
        """A condition compares with another number than before, and a fixed reply behind it says so, too."""
        flow, numbers, found_ = self._flow, DIGITS.findall(one.plain), list[tuple[str, int, str]]()
        for id_ in flow.of(graph.CONDITION):
            rows = enumerate(flow.held(id_, "conditions"))
            found_ += [(id_, n, other) for n, row in rows for other in _with_number(str(row.get("value2")), numbers)]
        if len(found_) != 1:
            return False
        ((id_, number, other),) = found_
        for reply in (step for step in flow.after(id_) if flow.kinds[step] == graph.REPLY):
            for text in _with_number(str(flow.held(reply, graph.TEXT)), numbers):
                flow.put(reply, **{graph.TEXT: text})
        conditions = [*flow.held(id_, "conditions")]
        conditions[number] = {**conditions[number], "value2": json.loads(f"{to_number(other):g}")}
        return flow.put(id_, conditions=conditions)


def _clauses(text: str) -> list[tuple[int, int]]:
    """The clauses of a text; a condition is nothing without what it is for, and few words belong to what is before."""
    found, closed = list[tuple[int, int]](), texts.quoted_spans(text)
    for start, end in wording.clauses(text):
        cuts = [at for at in wording.borders(text, start, end, closed) if _IF.match(text[at:end])
                and pattern("rewiring", "form").search(text, start, at)][:1]  # fmt: skip
        before = text[slice(*found[-1])].strip() if found and text[start] != "\n" else ""
        few = _FEW + 1 if pattern("rewiring", "form").search(before) else _FEWEST
        goes_on = before and before[-1] not in ".!?" and (_IF.match(before) or len(text[start:end].split()) < few)
        found += pairwise([found.pop()[0] if goes_on else start, *cuts, end])
    return found


def _fields(said: str) -> list[dict[str, Any]]:
    """The fields that a clause asks for in a form: what it quotes, and what is left between the words that ask; none
    where that is no name."""
    choice, either = (pattern("rewiring", name).search(said) for name in ("choice", "yes_or_no"))
    picked = choice or either
    options = [{"option": one.strip()} for one in _OR.split(picked["options"])] if picked else []
    said = said.replace(picked[0], "," if choice else "") if picked else said
    plain = BRACKETS.sub(",", wording.unquoted(said))
    asking = [words("add"), pattern("rewiring", "asked"), pattern("rewiring", "comes")]
    for border in (*asking, pattern("rewiring", "form"), pattern("rewiring", "who_asks")):
        plain = border.sub(",", plain)
    runs = filter(None, (_bare(run) for run in _OR.split(plain.strip(" .!?\n"))))
    names = [*([choice["name"]] if choice else []), *quoted(said), *runs]
    fields = [field for one in names for field in listed(one)[:1]]
    prose = any(len(one.split()) > _FEWEST or any(map(_is_small, one.split())) for one in names)
    rows: list[Any] = [{"type": one.kind, "label": capital(one.description), "name": one.name} for one in fields]
    if picked and rows:
        # Of several fields it is not said which one is "yes or no".
        prose = prose or (picked is either and len(rows) > 1)
        rows[0] |= {"type": "options", "addOptions": options}
    asked = any(border.search(said) for border in asking)
    return rows if asked and not prose and len(fields) == len(names) else []


def _bare(said: str) -> str:
    """A stretch without the small words that it begins with."""
    inside = said.split()
    while inside and (_is_small(inside[0]) or is_empty(inside[0])):
        inside.pop(0)
    return " ".join(inside)


def _is_small(word: str) -> bool:
    return word.casefold() in FUNCTIONS | wordset("also")


def _with_number(text: str, numbers: Sequence[str]) -> list[str]:
    """A text with another number in place of the one that a clause names: "the three days in there to five"."""
    there = [one for one in numbers if wording.whole(one).search(text)]
    others = [one for one in numbers if one not in there]
    return [wording.whole(there[0]).sub(others[0], text)] if len(there) == len(others) == 1 else []
