"""The design of a change: of a flow that is there, or of a plan that was not written yet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product

from flowise_dev_agent.contracts.plan import Design, Part
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.playbook import is_advice
from flowise_dev_agent.reasoning.rules.design import build, naming, places, providers, wishes, wording, writing
from flowise_dev_agent.reasoning.rules.design.asked import AGENT, asked_values, in_range, one_each, own_tools
from flowise_dev_agent.reasoning.rules.design.clauses import Clause, clauses, leaves
from flowise_dev_agent.reasoning.rules.design.details import STRUCTURED
from flowise_dev_agent.reasoning.rules.design.graph import branch_of
from flowise_dev_agent.reasoning.rules.design.owners import alike, all_of, in_named, meant, own_names, titled
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.pending import is_pending, merged
from flowise_dev_agent.reasoning.rules.design.prompt import Unit
from flowise_dev_agent.reasoning.rules.design.reading import DOCUMENTS, SHOWN, Reading, names_page, read
from flowise_dev_agent.reasoning.rules.design.selection import Edits, find_edits, has_list, unwanted, usable
from flowise_dev_agent.reasoning.rules.design.sources import find_sources
from flowise_dev_agent.reasoning.rules.design.structure import structure_of
from flowise_dev_agent.reasoning.rules.design.values import Said, dimensions, exchanged, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import constants, pattern, table, words
from flowise_dev_agent.reasoning.rules.language.senses import HALF
from flowise_dev_agent.reasoning.rules.language.text import (
    Span,
    capital,
    masked,
    mentioned,
    mentions,
    normalised,
    quoted_spans,
)
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.wiring import wire

_NO_WORDS = ("url", "body", "Function", "rephrasePrompt")
_SENTENCE = pattern("values", "sentence")
_PARSER, _SOURCES = "structuredOutputParser", ["show_sources"]
#: That sources are not to be shown.
_HIDES = (pattern("text", "no"), words("remove"), pattern("titles", "off"))
_FORGETS = pattern("change", "forgets")


def wish_of(request: PlanRequest) -> str | None:
    """What is to be different: the person's feedback or a judge's, else the requirement of a first plan."""
    if request.feedback:
        return normalised(request.feedback)
    if request.previous is None:
        # What was said to a plan that is gone still holds.
        return normalised("\n".join([build.asked(request.requirement, request.clarifications).text, *request.later]))
    # General advice is none of the person's words and is not read like them.
    fix = request.verdict.fix if request.verdict and not request.verdict.done else ""
    return normalised(fix) if fix and not is_advice(fix) else None


def design_change(request: PlanRequest, wish: str, world: World) -> Design:
    """A change of the chatflow that `request` brings along, else of its previous plan. Raises DeclinedError."""
    change = _Change(request, world, wish)
    for stage in (change.take_name, change.read, change.edit, change.set_values, change.reword, change.account):
        stage()
    change.check()
    return change.design()


class _Change:
    """A wish for a change while it is read, stage by stage. `wish` is what is left to read of it, with NULs for the
    rest, and `shown` the same with what was hidden."""

    def __init__(self, request: PlanRequest, world: World, wish: str) -> None:
        self.first = self.wish = self.shown = wish
        self.request, self.world, self.planned, self.pending = request, world, request.previous, is_pending(request)
        there = dict(request.existing)
        if self.planned and self.pending:
            # What was planned and is not written yet counts as there.
            there |= {node.node_id: node.node_name for node in self.planned.nodes}
            there = {id_: name for id_, name in there.items() if id_ not in self.planned.removals}
        self.existing = world.schemas(there)
        self.inside = any(schema.category == AGENTFLOW_CATEGORY for schema in self.existing.values())
        self.copied = request.intent.operation == "copy"
        self.question = world.say("question_different")
        answers = (said for asked, said in request.clarifications if asked.endswith(self.question))
        self.answer = normalised(next(answers, ""))

    @property
    def closed(self) -> bool:
        """Whether the wish says that the prompt stays as it is, all of it."""
        return any(naming.keeps_prompt(one.said) for one in leaves([*clauses(self.first, change=True)]))

    def take_name(self) -> None:
        """What the flow is to be called, and what stays as it is. Raises DeclinedError."""
        wish = naming.without_scope(self.wish) if self.copied else self.wish
        wish = pattern("about", "appended").sub("", wish)
        takes = self.request.existing and not self.copied
        # "Rename it to Heron and leave the rest": the name ends there.
        self.new_name, rest = naming.take_flow_name(naming.without_scope(wish)) if takes else ("", wish)
        wish = rest if self.new_name else wish
        titles = {label.casefold() for label in self.request.labels.values()}
        renames = words("rename").search(wish) and not self.inside and len(_SENTENCE.findall(wish)) == 1
        if renames or wish.partition("→")[0].strip().casefold() in titles:
            raise self.world.decline("declined_node_name")
        vague = wording.says_nothing(wish) and not (self.new_name or self.copied)
        if vague and not self.answer:
            raise DeclinedError(self.question)
        # What is told beside "make it better" stays.
        kept = wording.told_beside(wish) if vague else wish
        self.wish = self.shown = "\n".join(filter(None, [kept, self.answer]))

    def read(self) -> None:
        """The parts and values that the wish speaks of, without those that this Flowise cannot give."""
        request, world = self.request, self.world
        self._settle()
        made = find_sources(request, self.wish, self.existing)
        self.wish = made.text
        change = _read(request, self.wish, world)
        self.refused = _refused(request, change, self.wish, world, inside=self.inside)
        if self.refused:
            change = _read(request, reduce(lambda said, place: masked(said, *place), self.refused, self.wish), world)
        change = replace(change, spans=(*change.spans, *made.spans))
        if made.spans:
            # Its words ask for no other source.
            shown = any(one.params & SHOWN and not any(span.meets(one.start, one.end) for span in made.spans)
                        for one in change.spans)  # fmt: skip
            change = replace(change, loaders=(), urls=(), knowledge=False, sources=change.sources if shown else None)
        self.made, self.change = made, change
        taken = [one for one in change.spans if (one.names or one.params) and not (one.keep or one.task)]
        self.structure = structure_of(request, self.wish, taken, inside=self.inside)

    def _settle(self) -> None:
        """Take the answer where a wish contradicts itself: answers are to be short and to tell all, a conversation is
        to be remembered and not. Raises DeclinedError, a question."""
        there = any(one.category == "Memory" for one in self.existing.values())
        on, off = build.remembered([*clauses(self.wish, change=True)]) if there else ([], [])
        if on and off:
            self._chosen(on[0].said, off[-1].said, [*on, *off])
            return
        for start, end, _ in wording.sentences(self.wish, quoted_spans(self.wish)):
            brief, full = (pattern("change", name).search(self.wish, start, end) for name in ("brief", "thorough"))
            if brief and full and not any(pattern("change", "apart").finditer(self.wish, start, end)):
                self._chosen(brief[0].strip(), full[0].strip(), [])
                return

    def _chosen(self, one: str, two: str, said: Sequence[Clause]) -> None:
        """Go on with the answer to which of two holds, in the place of what was `said`. Raises DeclinedError, the
        question."""
        asked = self.world.say("question_both", one=one, two=two)
        answer = next((text for key, text in self.request.clarifications if key.endswith(asked)), "")
        if not answer:
            raise DeclinedError(asked)
        for clause in said:
            self.wish = masked(self.wish, clause.start, clause.end)
        self.wish = self.shown = f"{self.wish}\n{normalised(answer)}"

    def edit(self) -> None:
        """The nodes that come, go and are exchanged."""
        world, pending, existing = self.world, self.pending, self.existing
        wired = wire(existing).connections if pending else ()
        self.occupied = self.request.occupied | {f"{op.target_node_id}.{op.target_anchor}" for op in wired}
        edits = Edits() if self.inside else find_edits(self.change, existing, self.occupied, world)
        removed = (id_ for one in self.structure.graphs for id_ in one.removed)
        edits = replace(edits, removed=(*edits.removed, *self.made.removed, *removed))
        said = STRUCTURED.finditer(self.wish) if _PARSER in edits.added else ()
        spans = [Span(*one.span(), frozenset({_PARSER})) for one in said]
        # "It has to become an agent".
        kinds, heard = frozenset(edits.replaced.values()), leaves([*clauses(self.wish, change=True)])
        spans += [Span(*one.words, kinds) for one in heard if kinds
                  and one.sense.part > max(one.sense.told, HALF) and words("an_agent").search(one.said)]  # fmt: skip
        self.change = replace(self.change, spans=(*self.change.spans, *spans))
        self.edits, self.going = edits, [*edits.removed, *edits.replaced]
        self.links = [link for one in self.structure.graphs for link in one.links]
        self.cuts = [cut for one in self.structure.graphs for cut in one.cuts]
        self.stays = {id_: schema for id_, schema in existing.items() if id_ not in self.going}
        ids = build.fresh_ids(edits.added, existing)
        ids |= {**build.fresh_ids(tuple(edits.replaced.values()), {**existing, **ids}), **self.made.added}
        self.added = world.schemas(
            ids | {id_: name for one in self.structure.graphs for id_, name in one.added.items()}
        )

    def set_values(self) -> None:
        """The values of nodes and of the models and tools inside of them; those that are so already are told."""
        request, world, change = self.request, self.world, self.change
        new = build.values_of(self.added, change, "", world)
        own, self.come, out = own_tools(request, change, self.wish, world)
        asked, self.unplaced = asked_values(request, change, self.stays, self.wish, world)
        # How many pages are read is said of the one that comes.
        asked = [one for one in asked if not (self.made.added and one.param == "limit")]
        of_graph = [value for one in self.structure.graphs for value in one.values]
        found = [*one_each(new, asked, self.made.values, of_graph), *own]
        found = [in_range(request, one, world) for one in found]
        # Numbers and switches are stored as texts, too; another model comes without its values.
        other = {(one.node_id, f"{one.param}Config") for one in found}
        so = [one for one in found if not (self.planned or (one.node_id, one.param.partition(".")[0]) in other)
              and str(request.stored(one.node_id, one.param)).casefold() == str(one.value).casefold()]  # fmt: skip
        self.so, self.values = so, [one for one in found if one not in so]
        self.values += dimensions(self.values, {**self.stays, **self.added})
        self.gone = [*map(world.schema, out), *(self.existing[node_id] for node_id in self.going)]
        there = {**self.stays, **world.schemas(request.inside)}
        spans = build.spans_of(change, {**there, **self.added})
        nodes = {**self.stays, **self.added}
        self.told = Account(self.wish, spans, nodes, found, self.gone, there=there, shown=self.shown)

    def reword(self) -> None:
        """What each clause is for: facts that texts hold are exchanged there, words for the model come behind one."""
        request, world, told = self.request, self.world, self.told
        self.places = places.prompts(request, self.change, {**self.stays, **self.added})
        moved = places.moved(request, self.edits, self.existing, self.added, world)
        self.places |= {f"{value.node_id}.{value.param}": str(value.value) for value in moved}
        texts = writing.Texts(
            {place: writing.held(request, place) or text for place, text in self.places.items()}, world
        )
        more = request.texts if self.inside and not self.planned else {}
        texts.held |= {place: text for place, text in more.items() if place not in texts.held
                       and not place.endswith(_NO_WORDS)}  # fmt: skip
        texts.swap(self.made.swaps)
        taken = [one for one in self.change.spans if (one.names or one.params) and not (one.task or one.keep)]
        taken += self.structure.named
        given = [one for one in told.spans if "template" in one.params]
        self.lost = [one for one in told.lost(world) if one not in given
                     and not any(span.meets(one.start, one.end) for span in self.structure.named)]  # fmt: skip
        # Of what is not done no text changes either.
        texts.reword(self.wish, [*taken, *self.lost], lambda said: self._near(said, texts.held), copied=self.copied)
        self.lost += [*self.unplaced, *(Span(*place, frozenset({"signal"})) for place in self.refused)]
        done = [*told.done, *given, *self.structure.named]
        said = wishes.pieces(self.wish, done, self.lost, texts.spans, copied=self.copied)
        said = [one._replace(kind="undone") if self._undone(one) else one for one in said]
        if self.closed:
            # Into a prompt that stays only that is written which the wish says to add, and nothing by the way.
            said = [one._replace(kind="undone" if wording.instructs(line) else "remark")
                    if one.kind == "wish" and not wording.adds(line := self.wish[one.start : one.end].strip())
                    else one for one in said]  # fmt: skip
        undone = [Span(*one[:2]) for one in said if one.kind == "undone"]
        # Of what is told as not done nothing is set.
        self.values = [one for one in self.values if not (asked := told.leading_to(one)) or not all(
            any(span.meets(*place) for span in undone) for place in ((at.start, at.end) for at in asked))]  # fmt: skip
        self.said = self._tell(said, texts)
        self.texts, self.moved = texts, moved

    def _undone(self, piece: wishes.Piece) -> bool:
        """Whether a stretch is about steps that stay, and not what is done of them."""
        done = any(one.start <= piece.start and piece.end <= one.end + 1 for one in self.structure.named)
        asks = piece.kind in ("wish", "part") and not done
        return asks and any(one.meets(piece.start, piece.end) for one in self.structure.undone)

    def _tell(self, said: list[wishes.Piece], texts: writing.Texts) -> list[wishes.Piece]:
        """Put what is for the model where it belongs. Of what is open in which step that would be the person is asked,
        or told where other things are done. Raises DeclinedError."""
        values = {str(one.value) for one in (*self.so, *self.values)}
        placed, former = dict[str, list[str]](), list[str]()
        lines = list[tuple[str, list[wishes.Piece], list[str]]]()
        for line, run in wishes.lines(self.wish, said, values):
            # "Rename the Writer and have it sign": what is done beside it says which step is meant.
            front = next((one for one in reversed(said) if one.end == run[0].start and one.kind == "part"), None)
            former = self._step_of(self.shown[front.start : front.end], former) if front and self.inside else former
            lines.append((line, run, former := self._step_of(line, former)))
        done = self.made.spans or texts.spans or self.values or self.added or self.going
        done = done or any(len(open_) == 1 for _, _, open_ in lines)
        for line, run, open_ in lines:
            # A step that is named and has no prompt is told nothing, and no other one is.
            named = titled(self.request, line) if self.inside else []
            if named and not any(place.partition(".")[0] in named for place in open_):
                open_ = []
            some = alike(self.request, line, [one.partition(".")[0] for one in open_]) if self.inside else []
            both = [one for one in open_ if not some or one.partition(".")[0] in some]
            if len(open_) > 1 and not self.structure.undone and (some or all_of(line, open_)):
                for place in both:
                    placed.setdefault(place, []).append(without_braces(line))
            elif not open_ or (len(open_) > 1 and self.inside and (done or self.structure.undone)):
                said = [one._replace(kind="undone") if one in run else one for one in said]
            else:
                placed.setdefault(self._only(open_), []).append(without_braces(line))
        if self.change.system_text or self.change.prompt_text:
            place = self._only(self._near(self.wish, self.places))
            texts.give(place, self.places[place], self.change, placed)
        for place, lines in placed.items():
            texts.tell(place, lines, named=len(self.places) > 1, fresh=not writing.held(self.request, place))
        return said

    def _step_of(self, line: str, former: list[str]) -> list[str]:
        """The places that a line may be for: what follows on words for a step is for that one, too."""
        open_ = self._near(line, self.places)
        if len(open_) < 2 or not self.inside:
            return open_
        # Beside steps that are to be others a step has to be named.
        find = titled if self.structure.undone else meant
        about = find(self.request, line, {place.partition(".")[0] for place in open_})
        own = [place for place in open_ if place.partition(".")[0] in about]
        return own or (former if len(former) == 1 and not self.structure.undone else open_)

    def _only(self, places: Sequence[str]) -> str:
        """The one place. Raises DeclinedError."""
        if len(places) == 1:
            return places[0]
        names = ", ".join(self.request.labels.get(id_) or id_ for id_ in (one.partition(".")[0] for one in places))
        raise self.world.decline("declined_which", nodes=names) if names else self.world.decline("declined_no_prompt")

    def _near(self, said: str, places: Iterable[str]) -> list[str]:
        """Of these places those that a stretch names."""
        fields = {place: schema for place in places if (schema := self.existing.get(place.partition(".")[0])
                                                        or self.added.get(place.partition(".")[0]))}  # fmt: skip
        named = list(in_named(self.request, fields, said, self.world))
        # "The agent" is the only one.
        agents = [place for place in fields if self.request.existing.get(place.partition(".")[0]) == AGENT]
        only = len(named) == len(fields) and len(agents) == 1 and words("an_agent").search(said)
        return agents if only else named

    def account(self) -> None:
        """What of the wish is done, and what is not."""
        request, told, texts = self.request, self.told, self.texts
        values = one_each(self.moved, texts.values)
        self.spoken, self.values = "\n".join(texts.written), one_each(self.values, values)
        written = [*texts.written, *(str(one.value) for one in (*self.so, *self.values) if one not in values)]
        # What a field held before is often named, too.
        written += [
            name for id_, title in self.structure.titles.items() for name in (title, request.labels.get(id_, ""))
        ]
        written += [str(request.stored(one.node_id, one.param)) for one in self.values]
        own = [Unit(one.start, one.end, one.kind == "part", True) for one in self.said if one.kind != "remark"]
        told.tell(own, [*self.so, *self.values], written)
        self.undone = [Span(*one[:2]) for one in self.said if one.kind == "undone"]
        told.missed = [*self.undone, *(one for one in self.lost if one in told.missed)]
        so = [*(f"`{one.node_id}.{one.param}` = {one.value}" for one in self.so), *texts.already]
        self.already = [self.world.say("step_already", parts="; ".join(dict.fromkeys(so)))] * bool(so)
        self.present = _present(request, self.change, self.stays, self.world)

    def check(self) -> None:
        """Raises DeclinedError for a wish of which nothing is done, and for a copy without what was wished for it."""
        world, undone = self.world, self.undone
        own = self.values or self.added or self.going or self.new_name or self.structure.titles or self.links
        here = [place for place in self.present if not undone or any(one.meets(*place) for one in undone)]
        reasons = [*self.refused.values(), *(f"{self.present[place]} {self.question}" for place in here)]
        if not (own or self.copied or self.already) and reasons:
            raise DeclinedError(capital(reasons[0]) + ("" if reasons[0][-1] in ".?。" else "."))
        if undone and not own:
            heard = (one for one in clauses(self.wish, change=True) if one.sense.concepts.get("impossible", 0) > HALF)
            if parts := [f"«{one.said}»" for one in heard if any(span.meets(one.start, one.end) for span in undone)]:
                raise world.decline("declined_impossible", parts="; ".join(parts))
            if self.unplaced and not self.structure.undone:
                self._only(list(self.request.inside))
            if not self.structure.undone:
                self.told.check(world, frozenset({"call", "service"}))
                raise world.decline("declined_wish", parts=", ".join(f"«{self.told.quote(one)}»" for one in undone))
            raise world.decline("declined_structure", parts="; ".join(f"«{one}»" for one in self.structure.said))
        if not (own or self.copied):
            said = world.say("declined_no_change") if self.answer else self.question
            raise DeclinedError(" ".join(self.already) or said)

    def _steps(self) -> list[str]:
        """What the plan tells besides values."""
        request, world, edits = self.request, self.world, self.edits
        found = [*self.texts.steps, *self.already]
        found += [world.say("step_still", where=place, label=one.label, quote=sentence) for one in self.gone
                  for named, names in table("tools") if one.name in names for place in self.places
                  for sentence in _SENTENCE.findall(writing.held(request, place))
                  if named.search(sentence)]  # fmt: skip
        found += [world.say("step_remove", node=id_, label=request.labels.get(id_) or self.existing[id_].label)
                  for id_ in edits.removed]  # fmt: skip
        found += [world.say("step_replace", node=id_, old=self.existing[id_].label, new=world.schema(name).label)
                  for id_, name in edits.replaced.items()]  # fmt: skip
        found += [world.say("step_retitle", old=old, new=new) for id_, new in self.structure.titles.items()
                  if (old := request.labels.get(id_))]  # fmt: skip
        named = {**self.structure.titles, **request.labels}
        found += [world.say("step_lead", source=branch_of(request, one) or named[one.source], target=named[one.target])
                  for one in self.links]  # fmt: skip
        if self.copied and (self.texts.added or self.texts.changed):
            # Who it speaks as the wish often says anew.
            begins = (_SENTENCE.search(self.texts.held[place]) for place in self.places)
            found += [world.say("step_copy_begins", quote=one[0]) for one in begins if one]
        same = self.copied and not (self.values or self.added or self.going or self.links)
        found += [world.say("step_copy")] if same else []
        found += [world.say("step_rename", old=request.target or "", new=self.new_name)] if self.new_name else []
        return found

    def _reason(self, part: Part) -> str:
        """Why a part is not done."""
        steps = part.state == "not_understood" and any(
            part.quote in one or one in part.quote for one in self.structure.said
        )
        return self.world.say("part_structure") if steps else part.reason

    def design(self) -> Design:
        request, world, told, planned = self.request, self.world, self.told, self.planned
        partners = wire({**self.added, **self.stays}, list(self.stays), self.occupied).connections if self.added else []
        touched = [*(one.node_id for one in self.values), *(op.target_node_id for op in partners)]
        touched += self.structure.titles
        touched += [id_ for one in (*self.links, *self.cuts) for id_ in (one.source, one.target)]
        shown = {**{id_: self.stays[id_] for id_ in dict.fromkeys(touched) if id_ in self.stays}, **self.added}
        named = (world.store.get(name) for name in (*self.come, *(str(one.value) for one in self.values)))
        needed = [*(planned.credential_requirements if planned else ()),
                  *required_types([*self.added.values(), *filter(None, named)], world.available)]  # fmt: skip
        asides = [told.quote(Span(*one[:2])).strip(" ,;:") for one in self.said if one.kind == "remark"]
        by = f"feedback:{1 if planned else 0}" if request.feedback else "requirement"
        why = {told.quote(one).strip(" ,;:"): reason for one in self.undone for place, reason in self.refused.items()
               if one.meets(*place)}  # fmt: skip
        prompts = [f"{one.node_id}.{one.param}" for one in one_each(self.moved, self.texts.values)]
        design = Design(
            goal=world.say("goal_change", requirement=telling.short(self.wish)), operation=request.intent.operation,
            flow_name=planned.flow_name if planned else request.intent.title, new_name=self.new_name or None,
            flow_kind="AGENTFLOW" if self.inside else "CHATFLOW", values=self.values,
            connections=[*self.made.links, *self.links], disconnections=self.cuts,
            nodes=telling.planned(shown, world, existing=set(request.existing), labels=self.structure.titles),
            credential_requirements=list(dict.fromkeys(needed)),
            removals=[node_id for node_id in self.going if node_id in request.existing], steps=self._steps(),
            parts=[one.model_copy(update={"reason": why.get(one.quote) or self._reason(one)})
                   for one in told.parts(world, source=by, remarks=asides, prompts=prompts)],
        )  # fmt: skip
        design = telling.told(design, shown, Said(self.change, self.spoken), world)
        return merged(planned, design, self.going, request, world, pending=self.pending) if planned else design


def _refused(
    request: PlanRequest, change: Reading, wish: str, world: World, *, inside: bool
) -> dict[tuple[int, int], str]:
    """Where clauses ask for tools that this Flowise cannot give to an agent, or for a step that is none, with the
    reason; the rest goes on."""
    found, dropped = dict[tuple[int, int], str](), unwanted(change.text, world)
    for place in wording.clauses(wish):
        asked = [names for names in change.tools if not {*names} & dropped
                 and any(span.names & {*names} and span.meets(*place) for span in change.spans)]  # fmt: skip
        # "Rename the Sorter and give it a search": it is that step.
        begin, end = next(one[:2] for one in wording.sentences(wish, quoted_spans(wish)) if one[0] <= place[0] < one[1])
        steps = (titled(request, wish[slice(*place)]) or titled(request, wish[begin:end])) if inside else []
        spoken = any(request.existing[id_] == AGENT for id_ in steps) or words("an_agent").search(wish[slice(*place)])
        if asked and steps and not spoken:
            found[place] = world.say("part_structure")
        elif asked and not inside and not any(usable(names, world) for names in asked):
            found[place] = world.say("declined_tool", name=asked[0][0])
    return found


def _present(
    request: PlanRequest, change: Reading, stays: Mapping[str, NodeSchema], world: World
) -> dict[tuple[int, int], str]:
    """Where a wish names parts that are there already, with how they are now."""
    found = dict[tuple[int, int], str]()
    for span, (id_, one) in product(change.spans, stays.items()):
        if span.names & {one.name, f"@{one.category}"} and not (span.denied or span.keep or span.task):
            held = ((name, request.stored(id_, name)) for name in constants("asked").get(one.category, {}))
            now = "".join(f", `{id_}.{name}` = {value}" for name, value in held if value not in (None, ""))
            found[span.start, span.end] = world.say("step_already", parts=f"{one.label}{now}")
    return found


def _read(request: PlanRequest, text: str, world: World) -> Reading:
    """The wish, in which the names of nodes only say where. Raises DeclinedError where two models could be meant."""
    base = request.base.nodes if request.base else ()
    nodes = [(schema, node.inputs) for node in base if (schema := world.store.get(node.name))]
    agent = any(has_list({place: schema}, "Tool") for place, schema in world.schemas(request.existing).items())
    change = exchanged(read(wishes.unasked(text), world.store, has_agent=agent), nodes)
    here = {*request.existing.values(), *request.inside.values()}
    named = [one for _, one in providers.chat_providers(change.text)]
    # One that is there already is only spoken of beside another one.
    if new := [one for one in named if one.chat not in here]:
        own = [one for one in providers.model_ids(change.text) if providers.belongs(one, new[-1].chat)]
        change = replace(change, provider=new[-1], model=own[-1] if own else None)
    stores = [names[0] for named, names in table("vector_stores") if mentioned(change.text, named)]
    if other := [name for name in stores if name not in here]:
        named = next(looked_for for looked_for, names in table("vector_stores") if names[0] == other[0])
        spans = (Span(*one.span(), frozenset({other[0]})) for one in mentions(change.text, named))
        change = replace(change, vector_store=other[0], spans=(*change.spans, *spans))
    if len(chats := {one.chat for one in new}) > 1:
        raise world.decline("question_model", names=", ".join(sorted(chats)))
    where = [wording.whole(name) for id_ in request.existing for name in own_names(request, id_)]
    where += [words("all_of_them"), pattern("inside", "ordinal")]
    places = [match.span() for looked_for in where for match in looked_for.finditer(text)]
    nodes = [*world.schemas(request.existing).values(), *world.schemas(request.inside).values()]
    new = change.loaders or change.urls or change.inline_text
    if not new and any(schema.category == "Vector Stores" for schema in nodes):
        # It answers from its documents already: a wish that speaks of them says how.
        change = replace(change, spans=tuple(span for span in change.spans if span.names != DOCUMENTS))
    no_memory, kept = "bufferMemory" in unwanted(change.text, world), (Span(*place, keep=True) for place in places)
    # Of a chain that can return its sources a wish that speaks of them asks for that.
    shown = any(param.name == "returnSourceDocuments" for schema in nodes for param in schema.params)
    asked = SHOWN if shown else frozenset[str]()
    heard = [one for one in leaves([*clauses(text, change=True)]) if names_page(one) or one.asks()[:1] == _SOURCES]
    hides = any(
        (one.off or any(own.search(one.said) for own in _HIDES)) and not _FORGETS.search(one.said) for one in heard
    )
    shows = [Span(*one.words, params=asked) for one in heard if asked and (one.sense.told < HALF or names_page(one))]
    spans = (replace(one, task=one.task and not one.params & asked) for one in change.spans)
    return replace(change, spans=(*spans, *kept, *shows), no_memory=change.no_memory or no_memory,
                   sources=not hides if change.sources or shows else None)  # fmt: skip
