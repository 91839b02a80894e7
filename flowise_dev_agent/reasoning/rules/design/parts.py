"""What becomes of each stretch of what a person said: covered by nodes and values, or told as not done."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from itertools import chain

from flowise_dev_agent.contracts.plan import Part, PlanContract, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, doers, law, leaves, unmet
from flowise_dev_agent.reasoning.rules.design.naming import names_in, wish_for_copy, without_scope
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, Unit, is_empty, role_of, units, without_opening
from flowise_dev_agent.reasoning.rules.design.wording import complains
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, READ, constants, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF, LIKELY, LITTLE, MOSTLY, PERHAPS, RATHER, sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, NUL, URL, Span, quoted, signals, squeeze, to_number
from flowise_dev_agent.sanitize import shortened

#: "8 instead of 4": a number that was there.
_FORMER = pattern("facts", "former")
_NOT = re.compile(rf"(?i)(?:{words('instead_of').pattern})\s*{NUMBER}")
_SETTING, _PRODUCT, _OUTSIDE = (pattern("facts", name) for name in ("setting", "product", "outside"))
_WHERE, _WHO = pattern("naming", "where"), pattern("reading", "who_asks")
_NUMBERS = re.compile(r"(?:(?<!\w)\.)?(?<![\w])(?<!\w\.)\d+(?:[.,:-]\d+)*(?!\d|st\b|nd\b|rd\b|th\b|[ºª])")
_PATHS = re.compile(r"(?<!\S)/[\w-]+(?:/[\w-]+)*/?(?=[\s.,;]|$)")
#: What is no word of a language: the name of a host, a table, a model.
_NAMES = re.compile(
    r"(?<![\w@/.:-])(?:[A-Za-z][\w-]*(?:\.[\w-]+)+|[A-Za-z]\w*_\w+|[A-Za-z][A-Za-z-]*\d[\w.-]*)(?<![.-])"
)
#: What a model in the settings would not make possible either, and what is not done whatever else is.
IMPOSSIBLE = {"train", "offline", "guarantee", "pay", "phone", "device"}
_NEVER = {"team", "bots", *IMPOSSIBLE}
#: Kinds of which it is certain why they are not done.
_CERTAIN = {"bots", "more_branches", *IMPOSSIBLE}
#: Kinds of which a fact is easily taken for one.
_THEIRS = {"approval", "send", "schedule"}
#: Kinds of which a sentence in a flow that is there says how to behave: "until they have paid".
_TOLD = {"sequence", "branch", "output", "form"}
_MOST, _LONGEST_REASON, _HEAD, _NEAR = 40, 120, 6, 60
_LONG = 5


class Account:
    """Holds what a design does against the text that it was made from."""

    def __init__(
        self, text: str, spans: Sequence[Span], nodes: Mapping[str, NodeSchema], values: Sequence[PlannedValue],
        gone: Sequence[NodeSchema] = (), *, ready: bool = False, there: Mapping[str, NodeSchema] | None = None,
        shown: str = "",
    ) -> None:  # fmt: skip
        self.spans, own = spans, [span for span in spans if not span.task]
        self._text, self._nodes, self._values, self._there = text, nodes, values, there or {}
        self._clauses = [*clauses(text, change=bool(there))]
        #: What the second reader finds in a new flow's wish, and nothing of the design does.
        self.unmet = [] if there else unmet(self._clauses, nodes, values)
        # What no flow may be able to do is told, however it is heard.
        self.unmet += [(one, "impossible") for one in leaves(self._clauses)
                       if not there and one.sense.concepts.get("impossible", 0) > PERHAPS]  # fmt: skip
        #: With what was hidden from reading.
        self._shown = shown if len(shown) == len(text) else text
        self._kept = [span for span in own if span.keep]
        self._gone = {name for schema in gone for name in (schema.name, f"@{schema.category}")}
        #: Kinds of signals that nodes or ready tools answer.
        present = {schema.name for schema in nodes.values()}
        self._kinds = {kind for kind, doers in constants("doers").items() if present.intersection(doers)}
        self._kinds |= {"call", "service"} if ready else set()
        # That a flow is wanted is done, and that it has no memory.
        self._kinds |= set() if there else {"flow"}
        forgets = any(one.off and "memory" in one.sense.concepts for one in leaves(self._clauses))
        self._kinds |= {"memory"} if forgets and not there and doers("memory", nodes, values) is None else set()
        self._concepts = [(one.start, one.end) for one in texts.concepts(text) if not one.names & self._kinds]
        self._fine = found = units(text, own)
        pieces = [Unit(one.start, one.end, all(unit.structure for unit in found if unit.start < one.words[1]
                       and one.words[0] < unit.end), one.whole) for one in leaves(self._clauses)]  # fmt: skip
        self.tell(pieces, values, [str(value.value) for value in values])
        effects = [(span, self._effect(span)) for span in own]
        self._done = [(span, effect) for span, effect in effects if effect]
        #: Recognised stretches that the design does nothing about.
        done = [span for span, _ in self._done]
        self.missed = [one for one, effect in effects if not effect and (
            "://" in self.quote(one) or not any(span.meets(one.start, one.end) for span in done))]  # fmt: skip
        # A task is what its chain does.
        if not there and "llmChain" not in present:
            self.unmet += [(one, "") for one in leaves(self._clauses) if one.nameless and not one.meets(done)]

    def tell(self, pieces: Sequence[Unit], values: Sequence[PlannedValue], written: Sequence[str]) -> None:
        """Take the text in these pieces, with everything that is written: of a text that changes what is new in it."""
        self._units, self._values, self._written = pieces, values, " ".join(written).casefold()
        self._numbers = {number for found in _NUMBERS.findall(self._written) for number in _numbers(found)}

    @property
    def done(self) -> list[Span]:
        """The stretches by which something changes, or would, were it not so already."""
        return [span for span, _ in self._done]

    def leading_to(self, value: PlannedValue) -> list[Span]:
        """Where a value is asked for."""
        return [span for span, (_, values) in self._done if f"{value.node_id}.{value.param}" in values]

    def lost(self, world: World) -> list[Span]:
        """What asks for a part or a value and is not done in a flow that is there. Raises DeclinedError for what no
        flow can do."""
        found = self._signals()
        inside = any(one.is_agentflow for one in self._there.values())
        if any(kind in _NEVER - IMPOSSIBLE for _, kind in found) and not inside:
            self.check(world)
        present = {name for one in self._there.values() for name in (one.name, f"@{one.category}")}
        said = [Span(*one.span(), frozenset({"signal", kind})) for one, kind in found
                if kind not in _TOLD and not one[0].startswith("until ")]  # fmt: skip
        return [*said, *(one for one in self.missed if not one.names & present)]

    def parts(
        self, world: World, *, source: str = "requirement", prompts: Sequence[str] = (), remarks: Sequence[str] = (),
        given: bool = False,
    ) -> list[Part]:  # fmt: skip
        """The text in parts. `prompts` are the fields (`node.param`) that hold the words for the model, of a prompt
        that is `given` only some of them; `remarks` what was taken out of the text because nothing is to be done."""
        found: list[Part] = []
        for unit in self._units:
            quote = self.quote(unit).strip(" ,;:-•*–")
            said = re.findall(r"\w+", quote.casefold())
            if all(word in wordset("connectors") or word.isdigit() for word in said):
                continue
            here = [effect for span, effect in self._done if span.meets(unit.start, unit.end)]
            nodes, values = (list(dict.fromkeys(one for effect in here for one in effect[n])) for n in (0, 1))
            values += [f"{one.node_id}.{one.param}" for one in self._values if one.value in quoted(quote)]
            values += [] if unit.structure or (given and quote.casefold() not in self._written) else prompts
            neutral = all(map(is_empty, said)) or {*said} <= wordset("greetings")
            unsaid = self._unsaid(unit)
            lost = bool(unsaid) or any(span.meets(unit.start, unit.end) for span in self.missed)
            covered = not lost and bool(unit.structure or nodes or values or neutral or (prompts and not found))
            prose = covered and not nodes and set(values) <= set(prompts)
            # Of a language that the rules do not read a wish for a part may be told to the model, too.
            foreign = covered and world.language not in READ and (prose or len(said) > _HEAD)
            unmet = [one for one, name in self.unmet if name or not nodes]
            open_ = self._is_open(unit) or any(one.start < unit.end and unit.start < one.end for one in unmet)
            told = covered and not (self._there and unit.structure) and open_
            # Beside a prompt that is given word for word a remark is written nowhere.
            aside = not (covered or lost or told or self._there or (prompts and not given))
            aside = (aside or any(one.aside and one.meets(unit.start, unit.end) for one in self._kept)) and not neutral
            likely = prose and not (unit.structure or neutral or quoted(quote)) and self._asks(quote)
            assumed = foreign or aside or likely
            state = "not_understood" if told or not (covered or assumed) else "assumed" if assumed else "covered"
            key = "part_remark" if aside else "part_foreign" if foreign else "part_missed"
            key = "part_told" if told or likely else key
            never = [kind for one, kind in self._signals()
                     if kind in IMPOSSIBLE and unit.start <= one.start() < unit.end]  # fmt: skip
            key = f"gap_{never[0]}" if never and key == "part_missed" else key
            reason = "" if state == "covered" else world.say(key)
            if unsaid and (nodes or values) and key == "part_missed":
                reason = world.say("part_rest", words=", ".join(f"«{one}»" for one in unsaid))
            found.append(Part(id=f"p{len(found) + 1}", quote=quote, source=source, state=state, nodes=nodes,
                              values=values, reason=reason))  # fmt: skip
        found += [Part(id=f"p{number}", quote=quote, source=source, state="assumed", reason=world.say("part_remark"))
                  for number, quote in enumerate(remarks, start=len(found) + 1)]  # fmt: skip
        # What is not done comes first where there are too many.
        return sorted(found, key=lambda part: len(found) > _MOST and part.state == "covered")[:_MOST]

    def _unsaid(self, unit: Unit) -> list[str]:
        """The numbers, quotations and languages of a stretch that are in nothing that is written, and settings that are
        in no field of their own."""
        settings = [(max(one.start(), one.start("most")), one[0])
                    for one in _SETTING.finditer(self._text, unit.start, unit.end)]  # fmt: skip
        found = [squeeze(said) for start, said in settings if not any(
            span.meets(start, start + 1) and not span.keep for span, _ in self._done)]  # fmt: skip
        said = _NOT.sub(" ", _FORMER.sub(" ", self._text[unit.start : unit.end]))
        said = BRACKETS.sub(lambda one: " " if complains(one[0].strip("([])")) else one[0], said)
        for span in self._kept:
            said = said.replace(self.quote(span), " ") if span.meets(unit.start, unit.end) else said
        named = [*(one for one in quoted(said) if one.strip("\x00 ")), *words("languages").findall(said)]
        named += _NAMES.findall(said) if unit.structure else []
        # A place in an address ("{name}") is written in another way.
        named += (
            [re.split(r"[{?]", one)[0] for one in (*URL.findall(said), *_PATHS.findall(said))] if self._there else []
        )
        # "Two years old" is what goes.
        gone = any(DONE in one.names and one.meets(unit.start, unit.end) for one in self.spans)
        found += [one for one in _NUMBERS.findall(said) if not (gone or _numbers(one) & self._numbers)]
        return [*dict.fromkeys([*found, *(one for one in named if one.casefold() not in self._written)])]

    def check(self, world: World, ignored: Set[str] = frozenset(), *, tells: bool = False) -> None:
        """Raises DeclinedError, which names everything that is not done, without signals of the kinds in `ignored`.
        Where the parts tell what is not done (`tells`), only if that is most of the text."""
        found = [(squeeze(match[0]), kind) for match, kind in self._signals() if kind not in ignored]
        # What starts by itself is another flow than one that answers.
        if tells and not any(kind in {*_NEVER, "schedule"} for _, kind in found) and self._mostly_done():
            return
        lost = [quote for span in self.missed if not self._there and (quote := self.quote(span))]
        impossible = [one for one in found if one[1] in IMPOSSIBLE]
        own = [(quote, "") for quote in lost if not any(quote in said or said in quote for said, _ in found)]
        reasons = impossible or [one for one in found if one[1] == "bots"] or [*own, *found]
        named = [(shortened(quote, _LONGEST_REASON), kind) for quote, kind in reasons]
        # Of some kinds it is certain why they are not done.
        gaps = [world.say("gap", quote=quote, why=world.say(f"gap_{kind}")) if kind in _CERTAIN else f"«{quote}»"
                for quote, kind in named]  # fmt: skip
        if gaps:
            key = "declined_impossible" if impossible else "declined_parts"
            raise world.decline(key, parts="; ".join(dict.fromkeys(gaps)))

    def quote(self, span: Span | Unit) -> str:
        return squeeze(self._shown[span.start : span.end].replace("\x00", " "))

    def _signals(self) -> list[tuple[re.Match[str], str]]:
        """(words, kind) of what names structure that nothing in the design does."""
        # What people do is no wish in a sentence that only tells how things are: "customers ring all day".
        how = [one for one in self._clauses if one.whole and one.sense.part < LITTLE and not self._there and (
               one.sense.aside > HALF or any(map(_WHO.match, (one.said, one.said.partition(", ")[2]))))
               and not words("any_bot").search(one.said)]  # fmt: skip
        # Who phones may be the guest: "in pain people call before 9".
        rules = law(self._clauses)
        told = (
            one for one in leaves(self._clauses) if one.sense.told > MOSTLY and not words("any_bot").search(one.said)
        )
        rules += [one for one in told if one.sense.concepts.get("impossible", 0) < LITTLE]
        # Several agents are none of the one flow that is made, whatever else the words name.
        return [(match, kind) for match, kind in signals(self._text) if kind not in self._kinds and
                not any(one.start <= match.start() < one.end for one in how + rules * (kind == "phone")) and
                # "In the agentflow" only says where.
                not (self._there and kind == "team" and _WHERE.search(self._text[: match.end()][-_NEAR:])) and
                (kind in _NEVER or not any(_does(span, match) and (kind != "call" or _calls(*effect))
                                           for span, effect in self._done))]  # fmt: skip

    def _asks(self, quote: str) -> bool:
        """Whether a stretch is likely to ask for a part or a setting, whatever it calls it; of a new flow surely."""
        about, size = sense(quote, change=bool(self._there)), len(quote.split())
        if self._there:
            return size > 2 and about.part > LIKELY and about.told < HALF
        return size > _LONG and not role_of(quote) and about.part > LIKELY and about.told < LITTLE

    def _is_open(self, unit: Unit) -> bool:
        """Whether a stretch names a part or a setting of a flow that nothing in the design does."""
        # What people send and when they do is told to the bot.
        told = [one for one in leaves(self._clauses) if one.sense.told > LIKELY and one.sense.part < RATHER]
        told += (certain := law(self._clauses))
        said = [match for match, kind in ([] if self._there else self._signals()) if not (
                kind in _THEIRS and any(one.start <= match.start() < one.end for one in told))]  # fmt: skip
        found = [(_PRODUCT.search(self._text, *match.span()) or match).span() for match in said]
        named = [one.span() for one in ([] if self._there else _OUTSIDE.finditer(self._text))
                 if not any(rule.start <= one.start() < rule.end for rule in certain)]  # fmt: skip
        found += [(a, b) for a, b in [*self._concepts, *named] if not any(one.meets(a, b) for one, _ in self._done)]
        return any(start < unit.end and unit.start < end for start, end in found)

    def _mostly_done(self) -> bool:
        """Whether what is not done is a small part of the text."""
        own = [0, 0]
        for unit in self._fine:
            lost = self._is_open(unit) or any(span.meets(unit.start, unit.end) for span in self.missed)
            own[lost] += sum(not is_empty(word) for word in self.quote(unit).split())
        return own[False] > 2 * own[True]

    def _effect(self, span: Span) -> tuple[list[str], list[str]] | None:
        """The nodes and values that a stretch leads to, None when it leads to nothing."""
        changed = {*self._nodes} - {*self._there} | {value.node_id for value in self._values}
        nodes = [id_ for id_, schema in self._nodes.items() if id_ in changed and
                 {schema.name, f"@{schema.category}"} & span.names and self._has_address(id_, schema)]  # fmt: skip
        said = self._text[span.start : span.end]
        values = [f"{value.node_id}.{value.param}" for value in self._values
                  if _answers(value, span, said)]  # fmt: skip
        done = nodes or values or span.keep or span.denied or span.names & {DONE, *self._gone}
        return (nodes, values) if done else None

    def _has_address(self, node_id: str, schema: NodeSchema) -> bool:
        """A node for requests to an address does nothing that was asked for without one."""
        mine = [value for value in self._values if value.node_id == node_id and "url" in value.param.casefold()]
        return not schema.name.startswith("requests") or any(not stands_in(value.value) for value in mine)


def _numbers(said: str) -> set[str]:
    """A number as it may be written elsewhere: "1.000" is 1000, "0,20" is 0.2."""
    return {said, re.sub(r"\D", "", said), f"{to_number(said):g}" if re.fullmatch(NUMBER, said) else said}


def _does(span: Span, match: re.Match[str]) -> bool:
    """Whether what was done for a stretch is what a signal speaks of; a product by its name alone."""
    if product := _PRODUCT.search(match.string, *match.span()):
        return span.meets(*product.span()) and match.start() <= span.start <= span.end <= match.end()
    return span.meets(*match.span())


def _calls(nodes: Sequence[str], values: Sequence[str]) -> bool:
    """Whether what was done has an address of its own: one in a prompt is called by nobody."""
    return bool(nodes) or any(word in one.casefold() for one in values for word in ("url", "link", "path"))


def _answers(value: PlannedValue, span: Span, said: str) -> bool:
    """Whether a value is what a stretch asks for."""
    if "@placeholder" in span.params and stands_in(value.value):
        return True
    numbers = [to_number(one) for one in re.findall(NUMBER, said, re.IGNORECASE)] if not span.names else []
    if isinstance(value.value, int | float) and numbers and not {value.value, value.value / 1000} & {*numbers}:
        # Of contradicting numbers the last one counts: the others are not done.
        return False
    text = value.value if isinstance(value.value, str) else json.dumps(value.value)
    if any(f'"{name}"' in text or name == text for name in (*span.names, *span.params)):
        # A model or a tool inside a node of an agentflow, with its values.
        return True
    if "@address" in span.params:
        # What is put into an address is not in what was said, or written in another way.
        said = re.sub(r"\{(\w+)\}", r":\1", said)
        return bool(text) and (text.partition("{{")[0] in said or said.rstrip(".,;") in text)
    own = {value.param, value.param.rpartition(".")[2], "@Memory" if "Memory" in value.param else value.param}
    return bool(own & {*span.params, *span.names})


def _plain(said: str) -> str:
    """The words alone: lists and ends of sentences are cut in different ways."""
    return " ".join(["", *re.findall(r"\w+", said.casefold()), ""])


def _head(plain: str) -> str:
    return " ".join(["", *plain.split()[:_HEAD], ""])


def for_request(plan: PlanContract, request: PlanRequest) -> PlanContract:
    """The plan with an answer to each part of the request, from what was read of the text in smaller stretches."""
    former = {part.quote: part for part in request.previous.parts} if request.previous else {}
    answered = (_answered(part, plan, former, request.intent.language, names_in(request)) for part in request.parts)
    numbered = [one.model_copy(update={"id": f"p{n}"}) for n, one in enumerate(chain.from_iterable(answered), start=1)]
    return plan.model_copy(update={"parts": numbered[:_MOST] or plan.parts})


def _answered(part: Part, plan: PlanContract, former: Mapping[str, Part], language: str, names: Set[str]) -> list[Part]:
    if plan.declined or plan.answer is not None:
        state, reason = ("not_possible", plan.declined) if plan.declined else ("covered", "")
        return [part.model_copy(update={"state": state, "reason": reason})]
    quote = _plain(part.quote)
    mine = [own for own in plan.parts if _head(said := _plain(own.quote)) in quote or _head(quote) in said]
    if not mine:
        return [_unread(part, plan, former, language, names)]
    # A remark beside something that is done leaves nothing open.
    done = any(own.state == "covered" for own in mine)
    unread = say("part_foreign", language)
    lost = next((own for own in mine if own.state != "covered" and not (
        done and own.state == "assumed" and own.reason != unread)), None)  # fmt: skip
    told = [own for own in mine if own.state != "covered" or own.nodes or own.values]
    if lost and all(_plain(own.quote) in quote for own in told):
        # What is done and what is not are told apart.
        return [own.model_copy(update={"source": part.source}) for own in told]
    nodes, values = (list(dict.fromkeys(one for own in mine for one in getattr(own, n))) for n in ("nodes", "values"))
    state, reason = (lost.state, lost.reason) if lost else ("covered", "")
    return [part.model_copy(update={"nodes": nodes, "values": values, "state": state, "reason": reason})]


def _unread(part: Part, plan: PlanContract, former: Mapping[str, Part], language: str, names: Set[str]) -> Part:
    """What no smaller stretch answers: told to the model as it is, answered before, read before all else (a name of the
    flow, that the rest stays), or not done."""
    quote = _plain(part.quote)
    if held := [f"{one.node_id}.{one.param}" for one in plan.values if quote in _plain(str(one.value))]:
        return part.model_copy(update={"values": held, "state": "covered"})
    if part.quote in former:
        return former[part.quote].model_copy(update={"source": part.source})
    name = plan.new_name or (plan.flow_name if plan.operation == "copy" else None)
    bare = wish_for_copy(part.quote, None) if plan.operation == "copy" else without_scope(part.quote, names)
    said = "" if name and name in part.quote else without_opening(bare.replace(NUL, " "))
    says = not all(is_empty(one) or one.isdigit() for one in re.findall(r"\w+", said))
    if says and 0 < len(plan.parts) < _MOST:
        return part.model_copy(update={"state": "not_understood", "reason": say("part_missed", language)})
    return part.model_copy(update={"state": "covered", "reason": ""})
