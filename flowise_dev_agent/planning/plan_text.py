"""The plan as Markdown: in few words what happens, then the details, with names in place of ids and JSON.

Above the details stands what a person must know to decide: what the flow will do, what stays, what is not done, what
it may reach, and as many of the other notices as there is room for. Nothing is cut and nothing is said twice.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from string import ascii_lowercase
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, sentence
from flowise_dev_agent.patch.model.labels import credential_name, titled
from flowise_dev_agent.planning.passes.feasibility import VARIABLE_TO_CREATE
from flowise_dev_agent.planning.permissions import capability_words, reached, starters_text, uploads_text
from flowise_dev_agent.planning.value_text import ValueText, fenced
from flowise_dev_agent.sanitize import in_markdown, visible
from flowise_dev_agent.schemas.custom_tools import PlannedTool
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.schemas.plan import NO_TEST, Criterion, Part, Plan, TestCase
from flowise_dev_agent.schemas.shown_plan import NamedNode, OutlineLine, ShownPlan
from flowise_dev_agent.texts import LANGUAGES, say_in, translated

#: Words above the details, of the goal and of quotes there, and of the line for a notice that is below.
_ABOVE, _GOAL, _QUOTES, _POINTER = 120, 50, 40, 6
#: Names in a list, and for a part.
_NAMES, _COVERING = 8, 3
#: Steps for whose branches and limits code adds tests.
_FORKS: Final = frozenset({v2.CONDITION, v2.CONDITION_AGENT, v2.HUMAN_INPUT, v2.LOOP})
#: End of the name of a field in a path.
_ROOT: Final = re.compile(r"[.\[]")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
#: Headings of stored plans in languages that this service no longer writes.
_FORMER_HEADINGS: Final = {
    "plan.heading.personal_data": ("Dati personali", "Persoonsgegevens", "Dane osobowe", "Dados pessoais")
}


def plan_markdown(plan: Plan, details: ShownPlan | None = None, language: str = "en", *, full: bool = False) -> str:
    """Write the plan as Markdown in the person's language, as far as it is available: a summary, then the details.

    Without `details`, nodes of the flow are named by their ids. `full` shows long texts from beginning to end.
    """
    said = partial(say_in, language)
    if plan.declined:
        title = said("plan.heading.question" if plan.asks else "plan.heading.declined")
        words = translated(plan.worded("declined"), language).splitlines()
        return f"# {title}\n\n" + "\n".join(map(in_markdown, words)) + "\n"
    if plan.answer is not None:
        return f"{visible(plan.answer)}\n"
    given = details or ShownPlan(
        removed=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.removals],
        kept=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.kept],
        allows=capability_words(plan.capability, language),
        to_do=[said("to_do.give", what=one) for one in plan.placeholders],
    )
    words = _Words(plan, given, language, full=full)
    notices: list[tuple[str, Sequence[str]]] = [
        ("plan.heading.not_done", [words.part(part) for part in plan.not_done]),
        ("plan.heading.to_do", [words.text(one) for one in given.to_do]),
        (
            "plan.heading.findings",
            # A variable to create stands among the things to do.
            [
                words.text(one)
                for one in _findings((one for one in plan.findings if one.code != VARIABLE_TO_CREATE), language)
            ],
        ),
        ("plan.heading.assumed", [words.part(part) for part in plan.parts if part.state == "assumed"]),
    ]
    folded: list[tuple[str, Sequence[str]]] = [
        ("plan.heading.outline", words.outline()),
        ("plan.heading.asked", words.covered()),
        ("plan.heading.values", words.values),
        ("plan.heading.new_tools", [words.tool(one) for one in plan.new_tools]),
        ("plan.heading.document_stores", [_store(one, said) for one in plan.document_stores]),
        # The summary names the first ones.
        ("plan.heading.removed", [f"**{words.node(node)}**" for node in given.removed[_NAMES + 1 :]]),
        ("plan.heading.allows", [words.text(one) for one in given.allows if one not in words.told]),
        ("plan.heading.steps", [words.text(one) for one in plan.steps]),
        (
            "plan.heading.approaches",
            [f"**{words.text(one.label)}**: {words.text(one.description)}" for one in plan.approaches],
        ),
        (
            "plan.heading.credentials",
            [words.text(credential_name(name)) for name in plan.credential_requirements if not given.allows],
        ),
        (
            "plan.heading.mappings",
            [
                f"{words.code(one.source)} → {words.code(one.target)}"
                + (f" ({said('plan.personal')})" if one.personal else "")
                for one in plan.mappings
            ],
        ),
        ("plan.heading.personal_data", [words.code(name) for name in plan.pii_fields]),
        ("plan.heading.criteria", words.criteria()),
        ("plan.heading.questions", [*dict.fromkeys(words.test(one) for one in plan.tests)]),
    ]
    goal, rest = _beginning(plan.goal)
    lines = [
        f"# {words.text(plan.flow_name)}",
        "",
        words.text(goal),
        "",
        *(f"- {words.text(one)}" for one in words.summary()),
    ]
    above: list[str] = []
    below: list[tuple[str, Sequence[str]]] = [(said("plan.heading.goal"), [words.text(plan.goal)])] if rest else []
    present = [(said(heading), items) for heading, items in notices if items]
    for place, (heading, items) in enumerate(present, start=1):
        section = _section(f"## {heading}", items)
        if _length([*lines, *above, *section]) + _POINTER * (len(present) - place) <= _ABOVE:
            above += section
        else:
            quotes = ", ".join(map(words.quote, plan.not_done)) if heading == said("plan.heading.not_done") else ""
            number = quotes if 0 < _length([quotes]) <= _QUOTES else len(items)
            lines.append(f"- {said('plan.summary.below', what=heading, number=number)}")
            below.append((heading, items))
    lines += [*above, "", f"## {said('plan.heading.details')}"]
    for heading, items in [*below, *((said(heading), items) for heading, items in folded)]:
        lines += _section(f"### {heading}", items)
    return visible("\n".join(lines)) + "\n"


def _beginning(goal: str) -> tuple[str, bool]:
    """The sentences of a goal that there is room for, or the first words of a longer one; True if there is more."""
    told, *sentences = _SENTENCE_END.split(" ".join(goal.split()))
    if len(words := told.split()) > _GOAL:
        return f"{' '.join(words[:_GOAL])} …", True
    for one in sentences:
        if _length([told, one]) > _GOAL:
            return told, True
        told += f" {one}"
    return told, False


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", title, *(f"- {item}" for item in items)] if items else []


def _length(lines: Sequence[str]) -> int:
    return sum(len(line.split()) for line in lines)


def without_section(markdown: str, heading: str) -> str:
    """Remove the section under a catalogue heading, in any language, from the Markdown of a plan."""
    titles = [*(say_in(language, heading) for language in LANGUAGES), *_FORMER_HEADINGS.get(heading, ())]
    headings = {f"{level} {title}" for title in titles for level in ("##", "###")}
    kept: list[str] = []
    leaves = False
    for line in markdown.splitlines():
        if line.startswith("#"):
            leaves = line in headings
        if not leaves:
            kept.append(line)
    return "\n".join(kept)


class _Words:
    """Texts of a plan, with the names of its parts."""

    def __init__(self, plan: Plan, given: ShownPlan, language: str, *, full: bool = False) -> None:
        self._plan = plan
        self._given = given
        self._language = language
        self._said = partial(say_in, language)
        named = {one.node_id: one.label or one.node_name for one in plan.nodes} | given.names
        self._names = {id_: visible(" ".join(name.split())) for id_, name in named.items()}
        types = {one.node_id: one.node_name for one in plan.nodes}
        branching = {one.node_id for one in given.outline if any(way.name for way in one.leads_to)}
        in_outline = {(id_, v2.BRANCHES_FROM.get(types.get(id_, ""))) for id_ in branching}
        values = [
            one
            for one in given.values
            if one.old is not None or (one.node_id, _ROOT.split(one.param, maxsplit=1)[0]) not in in_outline
        ]
        self.values = ValueText(values, self._names, self.text, self._said, full=full).lines()
        called = reached(plan.capability, self._said) if plan.capability else []
        self._hosts = [host for host in called if host not in given.hosts_in_text]
        named_hosts = self._hosts if len(self._hosts) <= _NAMES + 1 else []
        #: Sentences of the approval that the summary has.
        self.told = {self._said("plan.allows.host", host=host) for host in named_hosts}
        self.told |= {uploads_text(plan.uploads, language)} if plan.uploads is not None else set()
        self.told |= {self._said("plan.allows.starters")} if plan.starter_questions is not None else set()

    def text(self, text: str) -> str:
        """A text in Markdown, with titles in place of the ids of nodes. What is escaped is not joined again."""
        return in_markdown(titled(text, self._names))

    def code(self, name: str) -> str:
        """A name as code."""
        return f"`{' '.join(visible(titled(name, self._names).replace('`', chr(39))).split()) or ' '}`"

    # --- summary ------------------------------------------------------------------------------------------------------

    def summary(self) -> Iterator[str]:
        """Lines with what will happen, what stays, what is not done, what is reached, and what tests do."""
        plan, said = self._plan, self._said
        states = {line.node_id: line.state for line in self._given.outline}
        changed = {value.node_id for value in self._given.values or plan.values}
        changed = {id_ for id_, state in states.items() if state == "changed"} if states else changed
        lists = {
            "adds": [node.node_id for node in plan.nodes if not node.existing],
            "changes": sorted(changed - {*plan.new_nodes, *plan.kept, *plan.removals}),
            "removes": plan.removals,
        }
        yield from (
            said(f"plan.summary.{what}", nodes=self._listed(self._names.get(one, one) for one in ids))
            for what, ids in lists.items()
            if ids
        )
        if plan.operation == "update":
            yield said("plan.summary.rest_stays")
        if plan.new_tools:
            yield said("plan.summary.new_tools", tools=self._listed(one.name for one in plan.new_tools))
        if plan.uploads is not None:
            yield uploads_text(plan.uploads, self._language)
        if plan.starter_questions is not None:
            yield self.text(starters_text(plan.starter_questions, self._language))
        if self._hosts:
            yield said("plan.summary.reaches", hosts=self._listed(self._hosts))
        if plan.tests:
            effects = plan.capability.effects if plan.capability else []
            acts = self._given.simulated or any(one.startswith(("upsert", "document_store")) for one in effects)
            reads = self._hosts and not acts
            yield said("plan.summary.tests_read" if reads else "plan.summary.tests", count=len(plan.tests))
            forks = self._given.simulated or any(one.node_name in _FORKS for one in plan.nodes)
            if plan.flow_kind == "AGENTFLOW" and forks and not self._given.called:
                yield said("plan.summary.tests_ways")
        if self._given.called:
            yield said("plan.summary.called", addresses=self._listed(self._given.called))
        elif plan.tests and self._given.simulated:
            yield said("plan.summary.simulated", actions=self._listed(self._given.simulated))
        if self._language not in LANGUAGES:
            yield said("plan.summary.in_english")

    def _listed(self, names: Iterable[str]) -> str:
        found = list(names)
        most = _NAMES if len(found) > _NAMES + 1 else len(found)
        rest = f" {self._said('plan.more', number=len(found) - most)}" if len(found) > most else ""
        return ", ".join(found[:most]) + rest

    # --- details ------------------------------------------------------------------------------------------------------

    def tool(self, tool: PlannedTool) -> str:
        """A new custom tool: name, use, inputs, code in full, and its samples."""
        inputs = [f"{self.code(one.property)} ({one.type}): {self.text(one.description)}" for one in tool.inputs]
        samples = [
            f"{self.code(json.dumps(one.inputs, ensure_ascii=False))} → {self.code(json.dumps(one.result))}"
            for one in tool.samples
            if one.result is not None
        ]
        return "\n".join(
            [
                f"**{self.text(tool.name)}**: {self.text(tool.description)}",
                *(f"  - {one}" for one in inputs),
                f"\n{fenced(tool.code, 'js')}",
                *(f"  - {self._said('plan.tool.sample')}: {one}" for one in samples),
            ]
        )

    def title(self, id_: str) -> str:
        """Title of a node, in Markdown."""
        return self.text(self._names.get(id_) or id_)

    def node(self, node: NamedNode) -> str:
        """Title of a node of the flow as it is."""
        return self.text(self._names.get(node.node_id) or node.label or node.node_id)

    def outline(self) -> list[str]:
        """Lines of the outline, indented by their depth. Steps have numbers and branches letters: 1, 2, 2a."""
        given = self._given.outline or [
            OutlineLine(node_id=one.node_id, title=self._names[one.node_id], purpose=one.purpose)
            for one in self._plan.nodes
        ]
        numbers = _numbers(given) if any(one.leads_to for one in given) else {}
        steps = {one.title: numbers.get(one.node_id, "") for one in given}

        def step(title: str) -> str:
            return f"**{' '.join(filter(None, [steps.get(title), self.text(title)]))}**"

        lines: list[str] = []
        led_to = {way.to for one in given for way in one.leads_to}
        # Before all lines are known, no step is known to end; a chatflow has no steps that lead on.
        known = bool(led_to) and all(one.title in led_to for one in given[1:] if not one.depth)
        for one, follower in itertools.zip_longest(given, given[1:]):
            mark = f" ({self._said(f'plan.mark.{one.state}')})" if self._plan.operation == "update" else ""
            lines.append(f"{'  ' * one.depth}{step(one.title)}{mark}{self._about(one.purpose)}")
            for letter, way in zip(itertools.cycle(ascii_lowercase), one.leads_to, strict=False):
                target = step(way.to) if way.to else self._said("plan.branch_ends")
                if way.name:
                    name = f"{numbers[one.node_id]}{letter} {self.text(way.name)}"
                    lines.append(f"{'  ' * (one.depth + 1)}{name}" + (f" → {target}" if way.known else ""))
                elif follower is None or way.to != follower.title:
                    lines.append(f"{'  ' * (one.depth + 1)}{self._said('plan.leads_on', target=target)}")
            # The next line is no way on from a step that has none.
            if known and not one.leads_to and not one.depth and follower:
                lines[-1] += f" → {self._said('plan.branch_ends')}"
        return _indented(lines)

    def covered(self) -> list[str]:
        """A line for each covered part of the requirement: the nodes that cover it, and why."""
        shown = {f"{one.node_id}.{one.param}": one for one in self._given.values}
        lines: list[str] = []
        for part in self._plan.parts:
            if part.state != "covered":
                continue
            own = dict.fromkeys(shown[one].node_id for one in part.values if one in shown)
            does = [f"**{self.title(id_)}**" for id_ in own]
            does += [self._does(id_) for id_ in part.nodes if id_ not in own]
            if len(does) > _COVERING:
                does = [*does[:_COVERING], self._said("plan.more", number=len(does) - _COVERING)]
            words = "; ".join([*does, *filter(None, [self._reason(part).rstrip(".")])])
            lines.append(f"{self.quote(part)} \u2192 {words}" if words else self.quote(part))
        told = [self.quote(part) for part in self._plan.parts if part.state == "background"]
        return [*lines, self._said("plan.part.background", quotes=", ".join(told))] if told else lines

    def _about(self, purpose: str) -> str:
        return f": {self.text(purpose)}" if purpose else ""

    def quote(self, part: Part) -> str:
        """Words of the person that a part is about."""
        return self._quoted(translated(part.worded("quote"), self._language))

    def _quoted(self, words: str) -> str:
        return self._said("quoted", words=self.text(words))

    def _reason(self, part: Part) -> str:
        return self.text(translated(part.worded("reason"), self._language))

    def _does(self, id_: str) -> str:
        name = f"**{self.title(id_)}**"
        if id_ in self._plan.removals:
            return self._said("plan.part.removed", node=name)
        return self._said("plan.part.kept", node=name) if id_ in self._plan.kept else name

    def part(self, part: Part) -> str:
        """A part that the plan does not cover, with the reason."""
        what = f"{self._said('plan.not_understood')}: " if part.state == "not_understood" else ""
        return f"{self.quote(part)}: {what}{self._reason(part) or self._said('plan.no_reason')}"

    def criteria(self) -> list[str]:
        """Criteria, each with the reason why no test shows it; not those that a value, or a part not done, says."""
        values = {f"{one.node_id}.{one.param}" for one in self._given.values}
        left = {part.id for part in self._plan.not_done}
        return [
            self._criterion(one)
            for one in self._plan.criteria
            if one.part not in left and not (one.settings and values.issuperset(one.settings) and not one.tests)
        ]

    def _criterion(self, one: Criterion) -> str:
        if not one.not_tested:
            return self.text(one.text)
        reason = self._said("plan.no_test") if one.not_tested == NO_TEST else self.text(one.not_tested)
        return f"{self.text(one.text)} ({self._said('plan.not_tested')}: {reason})"

    def test(self, case: TestCase) -> str:
        """All turns of a test conversation."""
        said_by_code = case.input != "chat" and not case.payload
        words = " → ".join(map(self._quoted, case.turns))
        words = self._said(f"plan.test.{case.input}") if said_by_code else words
        decisions = ", ".join(self._said(f"plan.person_{one}") for one in case.human)
        return f"{words} ({decisions})" if decisions else words


def _numbers(outline: Sequence[OutlineLine]) -> dict[str, str]:
    """Numbers of the steps, by node id; those inside an iteration are parts of its number."""
    found: dict[str, str] = {}
    counts: list[int] = []
    for one in outline:
        counts = [*counts[: one.depth + 1], *[0] * (one.depth + 1 - len(counts))]
        counts[one.depth] += 1
        found[one.node_id] = ".".join(map(str, counts))
    return found


def _findings(found: Iterable[Finding], language: str) -> list[str]:
    """Findings as sentences; those that say the same of several nodes are one, with the names of all in front."""
    nodes: dict[tuple[str, str], list[str]] = {}
    firsts: dict[tuple[str, str], Finding] = {}
    for one in found:
        about = {name: value for name, value in one.params.items() if name != "node"}
        key = one.code, json.dumps(about, sort_keys=True) if one.params else one.message
        firsts.setdefault(key, one)
        nodes.setdefault(key, []).extend([str(one.params["node"])] if "node" in one.params else [])
    joined = {key: {"node": ", ".join(dict.fromkeys(names))} if names else {} for key, names in nodes.items()}
    return [sentence(one.code, {**one.params, **joined[key]}, language) or one.message for key, one in firsts.items()]


def _indented(lines: Sequence[str]) -> list[str]:
    """Lines of a nested list: the list mark goes behind the indentation, so that each deeper line joins its parent."""
    found: list[str] = []
    for line in lines:
        if line.startswith("  ") and found:
            depth = len(line) - len(line.lstrip(" "))
            found[-1] += f"\n{' ' * depth}- {line.lstrip(' ')}"
        else:
            found.append(line)
    return found


def _store(store: PlannedStore, said: Callable[..., str]) -> str:
    count = str(store.chunks) if store.chunks is not None else "?"
    words = said("plan.store.pieces", files=store.files, number=count, size=store.chunk_size)
    if store.id:
        parts = [words, said("plan.store.added")]
        parts += (
            [said("plan.store.embedded", embeddings=store.embeddings, vector_store=store.vector_store)]
            if store.like
            else []
        )
        parts += [said("plan.store.used_by", flows=store.used_by)] if store.used_by else []
        parts += [] if store.can_remove else [said("plan.store.left_by_rollback")]
        return f"**{in_markdown(store.name)}**: {'; '.join(map(in_markdown, parts))}"
    where = (
        said(
            "plan.store.embedded_like",
            embeddings=store.embeddings,
            vector_store=store.vector_store,
            store=store.like_name,
        )
        if store.like
        else said("plan.store.in_memory")
    )
    return f"**{in_markdown(store.name)}**: {in_markdown(words)}; {in_markdown(where)}"
