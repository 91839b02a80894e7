"""What a wish for an AgentFlow that is there says of its steps. Without a model their titles change, and what is
certain of the graph; what else is said of steps, branches, approvals and repetitions is told as not done, and is in no
prompt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise

from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.clauses import STEPS, Clause, clauses, leaves
from flowise_dev_agent.reasoning.rules.design.graph import MOVES, Graph, drops_approval, graphs_of, sentence_of
from flowise_dev_agent.reasoning.rules.design.owners import titled
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import concept, pattern, words
from flowise_dev_agent.reasoning.rules.language.senses import CERTAIN, HALF, LIKELY, SURE, sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, quoted

#: What the second reader hears of the steps of a flow, and what words say of them.
_HEARD = STEPS | {"branch", "fixed_reply", "http", "other_flow", "send_out", "state", "step"}
_SAID = frozenset({"approval", "branch", "call", "form", "loop", "more_branches", "schedule", "sequence", "team"})
#: What people call steps, and what leads from one to another; the first three ask for no value.
_WORDS = ("approval", "branch", "loop", "form", "schedule", "step")
_REMAINS, _SCOPE = pattern("change", "remains"), pattern("change", "scope")
_BY = pattern("exchange", "by")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w.,])")
_ITEM = re.compile(r"\n\s*(?:[-•*–]|\d{1,2}[.)])\s")


@dataclass(frozen=True)
class Structure:
    """`titles` is node id -> what it is called from now on, `named` where that is said, or what `graphs` do; `undone`
    is what is not done because of the sentences of `said`."""

    titles: dict[str, str] = field(default_factory=dict[str, str])
    named: tuple[Span, ...] = ()
    undone: tuple[Span, ...] = ()
    said: tuple[str, ...] = ()
    graphs: tuple[Graph, ...] = ()


def structure_of(request: PlanRequest, wish: str, taken: Sequence[Span], *, inside: bool) -> Structure:
    """What a wish says of titles, and of the steps `inside` an AgentFlow; `taken` asks for values."""
    read, undone, said = [*clauses(wish, change=True)], list[Span](), list[str]()
    graphs = graphs_of(request, read, taken) if inside else []
    titles, named = _retitled(request, read, wish)
    made = [*named, *(span for graph in graphs for span in graph.spans)]
    kept = [one for one in read if one.whole and one.sense.keep > SURE]
    for one in leaves(read):
        if any(span.meets(one.start, one.end) for span in made):
            continue
        rest = any(whole.start <= one.start < whole.end for whole in kept) and not wording.alters(one.said)
        if inside and (rest or _stays(request, one.said)):
            named.append(Span(one.start, one.end, frozenset({DONE})))
        elif inside and (
            _is_structural(request, one, least=HALF if one.meets(taken) else 0)
            or _is_compared(request, one.said)
            or drops_approval(request, one)
        ):
            # What is said behind it is about it: of a list the same item, else all of the wish.
            line = wish.find("\n", one.end - 1)
            start, end = (one.start, line) if _ITEM.search(wish) else (0, -1)
            undone.append(Span(start, len(wish) if end < 0 else end))
            said.append(sentence_of(read, one.start).said.rstrip("."))
    # Beside what is not done a change of the graph has to be certain.
    open_ = [one for one in graphs if not one.exact and any(
        span.meets(own.start, own.end) for span in undone for own in one.spans)]  # fmt: skip
    graphs = [one for one in graphs if one not in open_]
    said += [sentence_of(read, span.start).said.rstrip(".") for one in open_ for span in one.spans]
    named += [replace(span, names=frozenset({DONE})) for one in graphs for span in one.spans]
    # "The new model (same temperature)".
    named += [Span(*one.span(), frozenset({DONE})) for one in BRACKETS.finditer(wish)
              if inside and sense(one[0], change=True).keep > HALF]  # fmt: skip
    titles |= {id_: title for one in graphs for id_, title in one.titles.items() if title != request.labels.get(id_)}
    return Structure(titles, tuple(named), tuple(undone), tuple(dict.fromkeys(said)), tuple(graphs))


def _retitled(request: PlanRequest, read: Sequence[Clause], wish: str) -> tuple[dict[str, str], list[Span]]:
    """What steps are called from now on, and where that is said: "Rename "Check" to "Final check"": a title, and what
    takes its place."""
    titles, named = dict[str, str](), list[Span]()
    for whole in (one for one in read if one.whole):
        sentence, at = wish[whole.start : whole.end], whole.start
        renames = words("rename").search(sentence) or _is_about(sentence, "label")
        for old, new in pairwise(quoted(sentence)):
            at = wish.index(old, at)
            # "A", "B" and "C" are not what one another are called.
            if not _BY.search(wish, at + len(old), wish.index(new, at + len(old))):
                continue
            leaf = next(one for one in leaves(read) if one.start <= at < one.end)
            step, said = concept("steps", "step"), wording.unquoted(wish[leaf.start : leaf.end])
            ids = titled(request, old)
            if len(ids) == 1 and (renames or (step.search(said) and not wording.says(step.sub(" ", said)))):
                titles[ids[0]], end = new, wish.index(new, at + len(old)) + len(new) + 1
                named.append(Span(leaf.start, end, frozenset({DONE})))
    return titles, named


def _stays(request: PlanRequest, said: str) -> bool:
    """Whether a clause says of a step, or of all else, that it is to stay as it is: "the summary step is fine"."""
    names = [request.labels[id_] for id_ in titled(request, said)]
    bare = reduce(lambda rest, name: wording.whole(name).sub(" ", rest), names, said).strip()
    asks = wording.instructs(bare) or quoted(said)
    rest = _SCOPE.search(f" {said}") and not re.search(r"\d", said)
    return bool((rest or (_REMAINS.search(bare) and (names or _is_about(said, "step")))) and not asks)


def _is_structural(request: PlanRequest, one: Clause, *, least: float) -> bool:
    """Whether it speaks of steps; `least` is how probable that has to be of one that asks for a value, too."""
    about, names = one.sense, titled(request, one.said)
    if about.keep > HALF:
        return False
    # "In the Editor step, answer in French" only says where.
    where, step = bool(names) and not wording.alters(one.said), concept("steps", "step").pattern
    step = re.sub(r"\?P<\w+>", "?:", step)
    titles = (re.escape(request.labels[id_]) for id_ in names)
    bare = reduce(lambda said, name: re.sub(rf"(?i)(?:{step}\W+)?{name}(?:\W+{step})?", " ", said), titles, one.said)
    sure = _WORDS if not least else _WORDS[:3]
    heard = not where and any(about.concepts.get(name, 0) > LIKELY for name in sure)
    if about.told < CERTAIN and (heard or (not least and _is_about(bare, *_WORDS))):
        return True
    if about.told > SURE and not words("rename").search(one.said):
        return False
    heard = about.part > HALF > about.told and any(
        about.concepts[name] > least for name in (_HEARD & {*one.asks()}) - ({"step"} if where else set[str]())
    )
    said = {kind for _, kind in texts.signals(one.said)} & _SAID
    alters = wording.alters(one.said) or words("remove").search(one.said) or words("rename").search(one.said)
    return bool(heard or said or (alters and names and about.told < HALF and not least))


def _is_compared(request: PlanRequest, said: str) -> bool:
    """Whether a number that a clause says anew is one that a condition compares with: a text alone would not do."""
    held = " ".join(str(one.inputs) for one in (request.base.nodes if request.base else ()) if "condition" in one.name)
    moves = any(one.search(said) for one in MOVES)
    return moves and bool({*_NUMBER.findall(said)} & {*_NUMBER.findall(held)})


def _is_about(said: str, *concepts: str) -> bool:
    """Whether it names one of these parts of a flow."""
    return any(one.names & {*concepts} for one in texts.concepts(said, "steps", "own"))
