"""The plan as Markdown: in few words what happens, then the details, with names in place of ids and JSON."""

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal, TypeAlias

from pydantic import Field

from flowise_dev_agent.patch.model.findings import sentence
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.sanitize import in_markdown, shortened, visible
from flowise_dev_agent.schemas.base import Contract, JsonValue
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.schemas.plan import NO_TEST, Capability, Criterion, LineChange, Part, Plan, TestCase
from flowise_dev_agent.texts import LANGUAGES, in_language, say_in, text, translated

#: Prompt fields, which hold the person's text unchanged: only the model carries it out.
PROSE: Final = re.compile(r"(prompt|(?<!reply)messages?|\]\.content|instructions|template|prefix)$", re.IGNORECASE)
#: Longer texts and texts of several lines get their own lines.
_ON_THE_LINE: Final = 80
#: Limits: characters of the goal, of the quote of a covered part, of a test's turn, and names in a list.
_GOAL, _QUOTE, _TURN, _NAMES = 200, 70, 200, 8
#: Share of words that the plan has not said before: with fewer, a step or a reason says nothing new.
_NEW_IN_STEP, _NEW_IN_REASON = 0.2, 0.4
_SAID_WORD: Final = re.compile(r"\w{4,}|\d+")
#: Characters of a command or a path in the permissions; the values have it in full.
_SHOWN_TEXT: Final = 200
_ID_AND_NAME: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:(.+)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\{\{\s*\$vars\.(\w+)", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
#: Field of a row in a list.
_IN_ROW: Final = re.compile(r"(.+)\[\d+\]\.(\w+)")
#: Id of a node; in a reference to what it gives, the words behind it are part of the id.
_NODE_ID: Final = re.compile(r"(?<![\w/=&?-])([A-Za-z]\w*_\d+)(?:\.data\.instance)?(?![\w/=&-])")
#: Headings of stored plans in languages that this service no longer writes.
_FORMER_HEADINGS: Final = {
    "plan.heading.personal_data": ("Dati personali", "Persoonsgegevens", "Dane osobowe", "Dados pessoais")
}
_ROLES: Final = ("system", "developer", "user", "assistant")
OutlineState: TypeAlias = Literal["new", "changed", "same"]


class NamedNode(Contract):
    """A node of the flow as it is."""

    node_id: str
    node_name: str
    label: str


class ShownValue(Contract):
    """A field that the plan sets. `old` is what the flow holds now, null for nothing; `new` is the whole new value."""

    node_id: str
    node: str = Field(description="The node's title in the flow, else its type.")
    param: str
    label: str = Field(default="", description="Label of the field on the canvas, if it is known.")
    list_label: str = Field(default="", description="Of a field in a row, the label of its list.")
    old: JsonValue = None
    new: JsonValue
    loses_text: bool = Field(default=False, description="The prompt or template that the flow holds now goes.")


class Branch(Contract):
    """Step that another one leads to; `name` is empty for the only way, `to` for a branch that ends."""

    name: str = ""
    to: str = ""


class OutlineLine(Contract):
    """Node in the outline of a flow. `depth`: what feeds a node, and the steps of an iteration, are one deeper."""

    node_id: str
    title: str
    purpose: str = ""
    depth: int = 0
    state: OutlineState = "new"
    leads_to: list[Branch] = Field(default_factory=list)


class ShownPlan(Contract):
    """Effects of a plan on the existing flow."""

    values: list[ShownValue] = Field(default_factory=list)
    removed: list[NamedNode] = Field(default_factory=list)
    kept: list[NamedNode] = Field(default_factory=list)
    to_do: list[str] = Field(default_factory=list, description="What only the person can do, each with its place.")
    allows: list[str] = Field(default_factory=list, description="The capability in words.")
    hosts_in_text: list[str] = Field(default_factory=list, description="Hosts that stand only in texts of code.")
    outline: list[OutlineLine] = Field(default_factory=list, description="The flow as it will be.")
    names: dict[str, str] = Field(default_factory=dict, description="Titles of nodes, types and stores, by id.")
    simulated: list[str] = Field(default_factory=list, description="What the tests simulate instead of doing it.")


def plan_markdown(plan: Plan, details: ShownPlan | None = None, language: str = "en") -> str:
    """Write the plan as Markdown in the person's language, as far as it is available: a summary, then the details.

    Without `details`, nodes of the flow are named by their ids.
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
    words = _Words(plan, given, language)
    sections: list[tuple[str, Sequence[str]]] = [
        ("plan.heading.not_done", [words.part(part) for part in plan.not_done]),
        ("plan.heading.to_do", [words.text(one) for one in given.to_do]),
        (
            "plan.heading.findings",
            [words.text(sentence(one.code, one.params, language) or one.message) for one in plan.findings],
        ),
        ("plan.heading.assumed", [words.part(part) for part in plan.parts if part.state == "assumed"]),
        ("plan.heading.asked", words.covered()),
        ("plan.heading.outline", words.outline()),
        ("plan.heading.values", words.values()),
        ("plan.heading.document_stores", [_store(one, said) for one in plan.document_stores]),
        ("plan.heading.removed", [f"**{words.node(node)}**" for node in given.removed]),
        # The summary names the first ones.
        ("plan.heading.kept", [f"**{words.node(node)}**" for node in given.kept[_NAMES + 1 :]]),
        ("plan.heading.allows", [words.text(one) for one in given.allows]),
        ("plan.heading.steps", [words.text(one) for one in words.new_in(plan.steps)]),
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
        ("plan.heading.criteria", [words.criterion(one) for one in plan.criteria]),
        ("plan.heading.questions", [words.test(one) for one in plan.tests]),
    ]
    lines = [f"# {words.text(plan.flow_name)}", "", words.text(shortened(" ".join(plan.goal.split()), _GOAL))]
    lines += ["", *(f"- {words.text(line)}" for line in words.summary())]
    for title, items in sections:
        lines += ["", f"## {said(title)}", *(f"- {item}" for item in items)] if items else []
    return visible("\n".join(lines)) + "\n"


def without_section(markdown: str, heading: str) -> str:
    """Remove the section under a catalogue heading, in any language, from the Markdown of a plan."""
    titles = [*(say_in(language, heading) for language in LANGUAGES), *_FORMER_HEADINGS.get(heading, ())]
    headings = {f"## {title}" for title in titles}
    kept: list[str] = []
    leaves = False
    for line in markdown.splitlines():
        if line.startswith("#"):
            leaves = line in headings
        if not leaves:
            kept.append(line)
    return "\n".join(kept)


def capability_words(
    capability: Capability | None,
    language: str = "en",
    names: Mapping[str, str] | None = None,
    in_text: Collection[str] = (),
) -> list[str]:
    """Permissions of an approval, as text, besides the settings of the nodes that the plan lists.

    `in_text` are the hosts that stand only in texts of code.
    """
    if capability is None:
        return []
    said, named = partial(say_in, language), names or {}

    def node(id_: str) -> str:
        return named.get(id_, id_)

    def way(line: LineChange) -> str:
        branch = named.get(f"{line.source}.{line.output}", line.output)
        return f"{node(line.source)} ({branch})" if branch else node(line.source)

    words = [
        said("plan.allows.host_in_text" if where in in_text else "plan.allows.host", host=where)
        for where in reached(capability, said)
    ]
    words += [
        said("plan.allows.command", command=shortened(str(redacted(one)), _SHOWN_TEXT)) for one in capability.commands
    ]
    words += [said("plan.allows.file", path=shortened(one, _SHOWN_TEXT)) for one in capability.files]
    words += [said("plan.allows.code", node=node(id_)) for id_ in capability.code]
    words += [said("plan.allows.before_approval", node=node(id_)) for id_ in capability.before_approval]
    words += [
        said(
            "plan.allows.line_add" if one.change == "add" else "plan.allows.line_remove",
            source=way(one),
            target=node(one.target),
        )
        for one in capability.lines
    ]
    types = {id_: one.node_name for id_, one in capability.nodes.items()}
    words += [
        said("plan.allows.tool", node=node(tool.node_id), tool=node(tool.name))
        for tool in capability.tools
        if types.get(tool.node_id) != tool.name  # a tool as a node of its own
    ]
    words += [
        said("plan.allows.credential", type=credential_name(one.type))
        if one.node_id == "*"
        else said("plan.allows.node_credential", node=node(one.node_id), type=credential_name(one.type))
        for one in capability.credentials
    ]
    for effect in capability.effects:
        match effect.partition(":"):
            case "document_store", *_:
                words.append(said("plan.allows.document_store"))
            case "credential", *_:
                words.append(said("plan.allows.new_credential"))
            case "uploads", _, kinds:
                words.append(uploads_text([kind for kind in kinds.split(",") if kind], language))
            case _, _, node_id:
                words.append(said("plan.allows.upsert", node=node(node_id)))
    return words


def reached(capability: Capability, said: Callable[..., str]) -> list[str]:
    """Hosts that Flowise may call, in words."""
    found: list[str] = []
    for host in capability.hosts:
        if variable := _VARIABLE.search(host):
            found.append(said("plan.reach.variable", name=variable[1]))
        elif MARK.casefold() in host.casefold():
            found.append(said("plan.reach.placeholder"))
        elif host == "file:":
            found.append(said("plan.reach.files"))
        elif re.search(r"[\w\]]", host):
            found.append(host.strip(".,;"))
    return list(dict.fromkeys(found))


def uploads_text(kinds: Sequence[str], language: str = "en") -> str:
    """Files that people can upload, in words."""
    if not kinds:
        return in_language(text("plan.allows.no_uploads"), language)
    names = [say_in(language, f"plan.upload.{kind}") for kind in kinds]
    return in_language(text("plan.allows.uploads", files=names), language)


def credential_name(type_: str) -> str:
    """Name of a credential type for people: `redisCacheUrlApi` is "Redis Cache Url"."""
    words = re.sub(r"(?<=\w)(?:OAuth2?)?Api$", "", type_)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", words)
    return words[:1].upper() + words[1:]


class _Words:
    """Texts of a plan, with the names of its parts."""

    def __init__(self, plan: Plan, given: ShownPlan, language: str) -> None:
        self._plan = plan
        self._given = given
        self._language = language
        self._said = partial(say_in, language)
        told = [plan.goal, *(node.purpose for node in plan.nodes), *given.names, *given.names.values()]
        told += [f"{value.param} {json.dumps(value.value, ensure_ascii=False)}" for value in plan.values]
        told += [part.quote for part in plan.parts if part.state == "covered"]
        self._said_before = set(_SAID_WORD.findall(" ".join(told).casefold()))
        named = {one.node_id: one.label or one.node_name for one in plan.nodes} | given.names
        self._names = {id_: visible(" ".join(name.split())) for id_, name in named.items()}

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
        existing = [node.node_id for node in plan.nodes if node.existing]
        lists = {
            "adds": [node.node_id for node in plan.nodes if not node.existing],
            "changes": sorted(changed - {*plan.new_nodes, *plan.kept, *plan.removals}),
            "removes": plan.removals,
            "stays": list(dict.fromkeys([*plan.kept, *(id_ for id_ in existing if states.get(id_) == "same")])),
        }
        yield from (
            said(f"plan.summary.{what}", nodes=self._listed(self._names.get(one, one) for one in ids))
            for what, ids in lists.items()
            if ids
        )
        if plan.operation == "update" and not plan.kept:
            yield said("plan.summary.rest_stays")
        if plan.uploads is not None:
            yield uploads_text(plan.uploads, self._language)
        called = reached(plan.capability, said) if plan.capability else []
        hosts = [host for host in called if host not in self._given.hosts_in_text]
        if hosts:
            yield said("plan.summary.reaches", hosts=self._listed(hosts))
        if plan.tests:
            yield said("plan.summary.tests_read" if hosts else "plan.summary.tests", count=len(plan.tests))
        if plan.tests and self._given.simulated:
            yield said("plan.summary.simulated", actions=self._listed(self._given.simulated))

    def _listed(self, names: Iterable[str]) -> str:
        found = list(names)
        most = _NAMES if len(found) > _NAMES + 1 else len(found)
        rest = f" {self._said('plan.more', number=len(found) - most)}" if len(found) > most else ""
        return ", ".join(found[:most]) + rest

    # --- details ------------------------------------------------------------------------------------------------------

    def title(self, id_: str) -> str:
        """Title of a node, in Markdown."""
        return self.text(self._names.get(id_) or id_)

    def node(self, node: NamedNode) -> str:
        """Title of a node of the flow as it is."""
        return self.text(self._names.get(node.node_id) or node.label or node.node_id)

    def outline(self) -> list[str]:
        """Lines of the outline, indented by their depth."""
        lines: list[str] = []
        for index, one in enumerate(self._given.outline):
            mark = f" ({self._said(f'plan.mark.{one.state}')})" if self._plan.operation == "update" else ""
            follower = self._given.outline[index + 1].title if index + 1 < len(self._given.outline) else ""
            ways = [
                f"{self.text(way.name)} → ".lstrip()
                + (f"**{self.text(way.to)}**" if way.to else self._said("plan.branch_ends"))
                for way in one.leads_to
            ]
            if [way.to for way in one.leads_to] == [follower] and not one.leads_to[0].name:
                ways = []
            lines.append(f"{'  ' * one.depth}**{self.text(one.title)}**{mark}{self._about(one.purpose)}")
            lines += [f"{'  ' * (one.depth + 1)}{way}" for way in ways]
        if not lines:
            lines = [f"**{self.title(one.node_id)}**{self._about(one.purpose)}" for one in self._plan.nodes]
        return _indented(lines)

    def covered(self) -> list[str]:
        """A line for each covered part of the requirement: the nodes that cover it, and why."""
        shown = {f"{one.node_id}.{one.param}": one for one in self._given.values}
        lines: list[str] = []
        for part in self._plan.parts:
            if part.state not in ("covered", "background"):
                continue
            values = [shown[one] for one in part.values if one in shown]
            own = dict.fromkeys(one.node_id for one in values)
            does = [f"**{self.title(id_)}**" for id_ in own]
            does += [self._does(id_) for id_ in part.nodes if id_ not in own]
            words = [
                *does,
                *(
                    [reason.rstrip(".")]
                    if self._is_new(reason := self._reason(part), _NEW_IN_REASON) and reason
                    else []
                ),
            ]
            lines.append(
                f"{self._quote(part, _QUOTE)} \u2192 {'; '.join(words)}" if words else self._quote(part, _QUOTE)
            )
        return lines

    def _about(self, purpose: str) -> str:
        return f": {self.text(purpose)}" if purpose else ""

    def _quote(self, part: Part, most: int = 1_000) -> str:
        return f"\u201c{self.text(shortened(translated(part.worded('quote'), self._language), most))}\u201d"

    def _reason(self, part: Part) -> str:
        return self.text(translated(part.worded("reason"), self._language))

    def _does(self, id_: str) -> str:
        name = f"**{self.title(id_)}**"
        if id_ in self._plan.removals:
            return self._said("plan.part.removed", node=name)
        return self._said("plan.part.kept", node=name) if id_ in self._plan.kept else name

    def values(self) -> list[str]:
        """The fields that are set; short new rows of one list are told together."""
        lists: dict[tuple[str, str], list[ShownValue]] = {}
        for value in self._given.values:
            if row := _IN_ROW.fullmatch(value.param):
                lists.setdefault((value.node_id, row[1]), []).append(value)
        lines: list[str] = []
        messages = {one.param for one in self._given.values if one.param.endswith("].content")}
        for value in self._given.values:
            if value.param.endswith("].role") and f"{value.param.removesuffix('role')}content" in messages:
                continue  # said with the text
            row = _IN_ROW.fullmatch(value.param)
            together = lists[value.node_id, row[1]] if row else []
            if not together or not all(map(self._is_short, together)):
                lines.append(self._value(value))
            elif value is together[0]:
                lines.append(self._rows(together))
        return lines

    def _is_short(self, value: ShownValue) -> bool:
        new = self._readable(value.new)
        return value.old is None and len(new) <= _ON_THE_LINE and "\n" not in new

    def _rows(self, values: Sequence[ShownValue]) -> str:
        """Rows of one list, each on its line if there are several."""
        rows: dict[str, dict[str, str]] = {}
        for value in values:
            place, _, name = value.param.rpartition(".")
            rows.setdefault(place, {})[name] = self._readable(value.new) or self._said("plan.empty")
        where = f"**{self.text(values[0].node)}**, {self._listed_field(values[0])}"
        told = [self.text(_row(row)) for row in rows.values()]
        return f"{where}: {told[0]}" if len(told) == 1 else "\n  - ".join([f"{where}:", *told])

    def _listed_field(self, value: ShownValue) -> str:
        """Name of a field; of a row it is the name of its list."""
        row = _IN_ROW.fullmatch(value.param)
        return self.text(value.list_label or in_words(row[1].rpartition(".")[2])) if row else self._field(value)

    def _value(self, value: ShownValue) -> str:
        """A field that is set: old and new value, or a longer text with its differences marked."""
        where = f"**{self.text(value.node)}**, {self._field(value)}"
        old, new = self._readable(value.old), self._readable(value.new)
        remark = f"\n\n  {self._said('plan.loses_text')}" if value.loses_text else ""
        if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
            now = f" ({self._said('plan.now')}: {self.text(old)})" if old else ""
            return f"{where}: {self.text(new) or self._said('plan.empty')}{now}{remark}"
        return f"{where}:\n\n{_marked(old, new) if old else _fenced(new)}{remark}"

    def _field(self, value: ShownValue) -> str:
        """Name of a field: its label, or its last name in words; of a message also whose it is."""
        name = self.text(value.label or field_name(value.param))
        place = f"{value.param.removesuffix('content')}role"
        role = next(
            (str(one.new) for one in self._given.values if (one.node_id, one.param) == (value.node_id, place)), ""
        )
        return f"{name} ({self._said(f'plan.role.{role}')})" if value.param != place and role in _ROLES else name

    def _readable(self, value: JsonValue) -> str:
        """A value in words: names in place of ids and types, rows and settings as `name: value`."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return self._said("plan.yes" if value else "plan.no")
        if isinstance(value, dict):
            return _row({key: words for key, item in value.items() if (words := self._readable(item))})
        if isinstance(value, list):
            return "\n".join(words for item in value if (words := self._readable(item)))
        if not isinstance(value, str):
            return str(value)
        if value[:1] in ("[", "{") and not value.startswith((MARK, "{{")):
            with suppress(ValueError):
                return self._readable(json.loads(value))
        if value.startswith("data:") and stands_in(value):
            return self._said("plan.file_to_come")
        if named := _ID_AND_NAME.fullmatch(value):
            return named[1]
        return self._names.get(value) or (self._said("plan.chosen_by_id") if is_uuid(value) else value)

    def new_in(self, steps: Sequence[str]) -> list[str]:
        """Steps that say something that the purposes, reasons and values of the plan do not."""
        return [step for step in steps if self._is_new(step, _NEW_IN_STEP, *(part.reason for part in self._plan.parts))]

    def _is_new(self, words: str, share: float, *told: str) -> bool:
        """True if enough words are neither in `told` nor in the goal, the quotes, the purposes and the values."""
        known = self._said_before | set(_SAID_WORD.findall(" ".join(told).casefold()))
        given = _SAID_WORD.findall(words.casefold())
        return not given or sum(word not in known for word in given) > share * len(given)

    def part(self, part: Part) -> str:
        """A part that the plan does not cover, with the reason."""
        what = f"{self._said('plan.not_understood')}: " if part.state == "not_understood" else ""
        return f"{self._quote(part)}: {what}{self._reason(part) or self._said('plan.no_reason')}"

    def criterion(self, one: Criterion) -> str:
        """A criterion, and why no test shows it."""
        if not one.not_tested:
            return self.text(one.text)
        reason = self._said("plan.no_test") if one.not_tested == NO_TEST else self.text(one.not_tested)
        return f"{self.text(one.text)} ({self._said('plan.not_tested')}: {reason})"

    def test(self, case: TestCase) -> str:
        """All turns of a test conversation."""
        words = " → ".join(f"\u201c{self.text(turn)}\u201d" for turn in case.turns)
        decisions = ", ".join(self._said(f"plan.person_{one}") for one in case.human)
        return f"{words} ({decisions})" if decisions else words


def _row(fields: Mapping[str, str]) -> str:
    """A row in words: a field by label and type, a pair as `name: value`, a condition in its order, else each field."""
    match fields:
        case {"label": title, "type": type_, **rest} | {"key": title, "type": type_, **rest}:
            told = {name: words for name, words in rest.items() if name != "name" or "label" not in fields}
            return f"{title} ({type_})" + (f": {_fields(told)}" if told else "")
        case {"value1": left, "operation": operation, **rest}:
            type_, right = rest.pop("type", ""), rest.pop("value2", "")
            sentence_ = " ".join(filter(None, (left, operation, right, f"({type_})" if type_ else "")))
            return f"{sentence_}; {_fields(rest)}" if rest else sentence_
        case _:
            names = list(fields)
            if len(names) == 2 and names[0].lower().endswith(("key", "name")) and names[1].lower().endswith("value"):
                return f"{fields[names[0]]}: {fields[names[1]]}"
            return fields[names[0]] if len(names) == 1 else _fields(fields)


def _fields(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{in_words(name)}: {words}" for name, words in fields.items())


def titled(words: str, titles: Mapping[str, str]) -> str:
    """Words with titles in place of the ids of nodes."""
    return _NODE_ID.sub(lambda found: titles.get(found[1], found[0]), words)


def field_name(param: str) -> str:
    """Last name of a path in words."""
    parts = [one for one in re.split(r"[.\[\]]+", param) if one]
    last = parts[-1] if parts else param
    return in_words(last if not last.isdigit() else param)


def in_words(name: str) -> str:
    """Name of a field in words: `startInputType` is "Start input type"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\[\]]+", " ", name).strip()
    return words[:1].upper() + words[1:].lower() if not words.isupper() else words


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


def _marked(old: str, new: str) -> str:
    """The differences between two texts, sentence by sentence, as a fenced diff."""
    lines = [line for line in difflib.ndiff(_pieces(old), _pieces(new)) if not line.startswith("?")]
    return _fenced("\n".join(lines), "diff")


def _pieces(text: str) -> list[str]:
    return [piece for line in text.splitlines() for piece in _SENTENCE_END.split(line) if piece.strip()]


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


def _fenced(text: str, kind: str = "") -> str:
    """A fenced block inside a list item; the fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return "\n".join(f"  {line}" for line in (fence + kind, *text.splitlines(), fence))
