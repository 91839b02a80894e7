"""The plan: the requirement part by part, and the agreement that the person approves."""

import itertools
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, computed_field, field_validator, model_validator
from typing_extensions import TypeAliasType

from flowise_dev_agent.patch import Finding, PatchOp
from flowise_dev_agent.patch.model.attached_files import tool_mark
from flowise_dev_agent.patch.model.named_values import NamedValues, named_values
from flowise_dev_agent.sanitize import visible
from flowise_dev_agent.schemas.base import Contract, JsonValue, Versioned, Worded
from flowise_dev_agent.schemas.custom_tools import MOST_TOOLS, PlannedTool
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.texts import say

Operation = Literal["create", "update", "copy", "question"]
FlowKind = Literal["CHATFLOW", "AGENTFLOW", "MULTIAGENT"]
#: Kinds of files that people can upload with a message.
UploadKind = Literal["pdf", "word", "excel", "powerpoint", "text", "csv", "json", "html"]
#: Question that the chat offers, in one line without what the person who approves it cannot see.
StarterQuestion = Annotated[
    str,
    BeforeValidator(lambda said: " ".join(visible(said).split()) if isinstance(said, str) else said),
    StringConstraints(min_length=1, max_length=200),
]
#: Fields of a plan that it sets beside the nodes, by their names among the values that cover a part.
BESIDE_NODES: Final = ("uploads", "starter_questions")
#: Most tests of a plan.
MOST_TESTS: Final = 10
NO_TEST: Final = say("plan.no_test")
#: Settings that no answer shows: a criterion that gives their value is about how they are set.
_UNSEEN: Final = re.compile(r"(?:model|modelName|temperature|schedule\w+|timezone)$", re.IGNORECASE)


def numbered(prefix: str) -> BeforeValidator:
    """Give the next free id to the items of a list that lack an id, or share one."""

    def number(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        seen: set[str] = set()
        found: list[Any] = []
        for item in items:
            if isinstance(item, dict):
                id_ = item.get("id")
                if not (isinstance(id_, str) and re.fullmatch(rf"{prefix}\d{{1,3}}", id_)) or id_ in seen:
                    taken = seen | {other["id"] for other in items if isinstance(other, dict) and _has_text_id(other)}
                    id_ = next(new for n in range(1, len(items) + 2) if (new := f"{prefix}{n}") not in taken)
                seen.add(id_)
                item = {**item, "id": id_}
            found.append(item)
        return found

    return BeforeValidator(number)


def _has_text_id(item: dict[Any, Any]) -> bool:
    return isinstance(item.get("id"), str)


class Intent(Contract):
    """The person's intent. `ambiguity` runs from 0 (clear) to 10 (anyone's guess); 5 and more asks `questions`."""

    operation: Operation
    ambiguity: int = Field(ge=0, le=10)
    questions: list[str] = Field(default_factory=list, max_length=3)
    title: str = Field(min_length=1, max_length=120, description="four to six words for the session list")
    target_hint: str | None = Field(default=None, description="the existing flow that the person means, in their words")
    language: str = Field(default="en", description="ISO 639-1 code of the person's language")
    parts: list[str] = Field(default_factory=list, description="the requirement in verbatim quotes, one request each")


class Part(Worded):
    """One part of the requirement, in the person's own words, and how the plan covers it."""

    id: str = Field(pattern=r"^p\d+$")
    quote: str = Field(min_length=1, description="Verbatim text of its source.")
    source: str = Field(default="requirement", pattern=r"^(requirement|(answer|feedback):\d+)$")
    state: Literal["covered", "assumed", "asked", "background", "not_possible", "not_understood"] = "not_understood"
    nodes: list[str] = Field(default_factory=list, description="Ids of the nodes that cover it.")
    values: list[str] = Field(default_factory=list, description="Fields that cover it, as `node_id.param`.")
    reason: str = ""


class PartAccount(Contract):
    """A plan's account of one part of the requirement."""

    id: str
    state: Literal["covered", "assumed", "background", "not_possible", "not_understood"]
    nodes: list[str] = Field(default_factory=list)
    values: list[str] = Field(default_factory=list, description="as node_id.param")
    reason: str = ""


class PlannedNode(Contract):
    """One node of the flow to be. `node_id` is what the ops will use, for example `chatOpenAI_0`."""

    node_id: str = Field(pattern=r"^[A-Za-z0-9_]{1,100}$")
    node_name: str
    purpose: str
    existing: bool = Field(default=False, description="already in the flow that is being changed")
    label: str = Field(default="", max_length=200, description="title on the canvas; empty: the type's, or as it is")


class Approach(Contract):
    """One of several approaches that differ in a way that matters to the person."""

    label: str = Field(min_length=1, max_length=80)
    description: str


class PlannedValue(Contract):
    """A field that the plan sets. `param` is a name or a path, as in the op `SetParam`; never a secret."""

    node_id: str
    param: str
    value: JsonValue
    mode: Literal["set", "append"] = Field(default="set", description="append: the text is added to what is there")
    part: str | None = Field(default=None, description="The part that asks for it.")


class Expectation(Contract):
    """Expected content of a test's answer and trace."""

    tools: list[str] = Field(default_factory=list, description="ids of tool nodes; in an agent types")
    sources: list[str] = Field(default_factory=list)
    branch: list[str] = Field(default_factory=list, description="Ids of the nodes that must run.")
    fields: list[str] = Field(default_factory=list)
    contains: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)
    language: str | None = None

    @field_validator("tools", "sources", "branch", "fields", "contains", "excludes")
    @classmethod
    def _without_blanks(cls, words: list[str]) -> list[str]:
        """Leave out empty texts, which every answer contains."""
        return [one for one in words if one.strip()]

    def and_also(self, other: "Expectation") -> "Expectation":
        """Copy that also expects what another one does."""
        lists = {name: value for name, value in other if isinstance(value, list)}
        both: dict[str, Any] = {name: [*dict.fromkeys([*getattr(self, name), *more])] for name, more in lists.items()}
        return self.model_copy(update={**both, "language": self.language or other.language})


Decision = Literal["proceed", "reject"]
#: Most human decisions in one turn: a loop through a person need not end.
MOST_DECISIONS: Final = 6


def _several(value: Any) -> Any:
    """One decision stands for a list of one, as older plans and trials have it."""
    return [] if value is None else [value] if isinstance(value, str) else value


Decisions = Annotated[list[Decision], Field(max_length=4 * MOST_DECISIONS), BeforeValidator(_several)]


class TestCase(Contract):
    """One conversation with the flow, of one to four turns."""

    __test__ = False  # not a pytest class

    id: str = Field(pattern=r"^t\d+$")
    turns: list[str] = Field(min_length=1, max_length=4, description='[""] for a form, a webhook or a schedule')
    input: Literal["chat", "form", "webhook", "schedule"] = "chat"
    payload: NamedValues | None = None
    human: Decisions = Field(default_factory=list[Decision], description="one per question to a person")
    #: Words of the person with each decision.
    human_feedback: list[str] = Field(default_factory=list, max_length=4 * MOST_DECISIONS)
    answers: NamedValues | None = Field(
        default=None, description="by node id or tool name: what it answers in this test, instead of being called"
    )
    expect: Expectation = Expectation()

    @model_validator(mode="before")
    @classmethod
    def _give_each_decision_its_words(cls, data: Any) -> Any:
        """Read a remark of older plans, which goes with the last decision."""
        if not isinstance(data, dict) or not isinstance(said := data.get("human_feedback"), str):
            return data
        return {**data, "human_feedback": [*[""] * (len(_several(data.get("human"))) - 1), said] if said else []}

    @model_validator(mode="before")
    @classmethod
    def _say_what_starts_it(cls, data: Any) -> Any:
        """Fill in the turn of a test of a form, a webhook or a schedule: the start data stands in for a message."""
        if not isinstance(data, dict) or any(data.get("turns") or ()):
            return data
        payload, started = named_values(data.get("payload")), data.get("input") or "chat"
        if isinstance(payload, dict) and payload:
            return {**data, "turns": ["; ".join(f"{name}: {value}" for name, value in payload.items())[:1_000]]}
        return data if started == "chat" else {**data, "turns": [f"({started})"]}


class Criterion(Contract):
    """One condition of success, and the tests that show it."""

    id: str = Field(pattern=r"^c\d+$")
    text: str
    part: str | None = None
    tests: list[str] = Field(default_factory=list, description="Ids of test cases.")
    settings: list[str] = Field(
        default_factory=list, description="`node_id.param` of the values that are all it is about."
    )
    not_tested: str | None = Field(default=None, description="Why no test shows it.")
    by_answer: bool = Field(
        default=False, description="Any answer shows it. Set by code.", json_schema_extra={"readOnly": True}
    )


class FieldMapping(Contract):
    """Mapping of a domain's field to an input of another domain's tool."""

    source: str = Field(description="`workday.worker.id`.")
    target: str = Field(description="Node and input: `openapi__getTicket.workerId`.")
    personal: bool = False


class NodeCapability(Contract):
    """Allowed changes of one node. `all` is for added nodes only; `settings` are sampling and limits."""

    node_name: str
    action: Literal["add", "change", "remove", "replace"]
    params: Literal["all"] | list[str] = Field(default_factory=list, description="`all`, or names and `settings`.")


class CredentialBinding(Contract):
    """A node that gets a credential of a type."""

    node_id: str
    type: str


class ToolBinding(Contract):
    """A node that gets a tool."""

    node_id: str
    name: str


class LineChange(Contract):
    """A line between two nodes of the flow that a plan adds or takes away; a new way for a step has one of each."""

    source: str
    output: str = ""
    target: str
    change: Literal["add", "remove"]


class Capability(Contract):
    """Everything that an approved plan may touch; made by code and shown with the plan."""

    nodes: dict[str, NodeCapability] = Field(default_factory=dict, description="By node id.")
    hosts: list[str] = Field(
        default_factory=list, description="Scheme, host and port of what Flowise may call, such as `https://a.example`."
    )
    commands: list[str] = Field(default_factory=list, description="Commands that Flowise runs, as text or JSON.")
    files: list[str] = Field(default_factory=list, description="Paths of files and folders on the Flowise server.")
    credentials: list[CredentialBinding] = Field(default_factory=list)
    code: list[str] = Field(default_factory=list, description="Ids of nodes that run code.")
    tools: list[ToolBinding] = Field(default_factory=list)
    effects: list[
        Annotated[
            str,
            StringConstraints(
                pattern=r"^(document_store|credential|upsert:.+|uploads:[a-z,]*|starters:[0-9a-f]+|tool:[\w-]+:[0-9a-f]+)$"
            ),
        ]
    ] = Field(default_factory=list)
    lines: list[LineChange] = Field(default_factory=list)
    before_approval: list[str] = Field(
        default_factory=list,
        description="Ids of steps that will run before the approval of a person, and now after it.",
    )


class NamedConnection(Contract):
    """A connection by names, as in the ops `Connect` and `Disconnect`."""

    source: str
    output: str = ""
    target: str
    input: str = ""

    @property
    def ends(self) -> tuple[str, str, str]:
        """Source, branch and target."""
        return self.source, self.output, self.target

    def takes(self, line: "NamedConnection") -> bool:
        """True if a cut takes this line away: with no branch, that of each."""
        return (self.source, self.target) == (line.source, line.target) and self.output in ("", line.output)


class _Proposed(Contract):
    """Fields that every plan has, whether a model or code wrote it."""

    goal: str
    flow_name: str = Field(min_length=1, max_length=120)
    nodes: list[PlannedNode] = Field(default_factory=list)
    removals: list[str] = Field(
        default_factory=list, description="ids of nodes of the existing flow that are removed or replaced"
    )
    kept: list[str] = Field(
        default_factory=list, description="ids of nodes of the existing flow that the person wants unchanged"
    )
    disconnections: list[NamedConnection] = Field(
        default_factory=list,
        description="lines of the existing flow that go",
    )
    connections: list[NamedConnection] = Field(
        default_factory=list,
        description="new lines: of an agentflow all, else between nodes there",
    )
    values: list[PlannedValue] = Field(
        default_factory=list,
        max_length=100,
        description="what the person named or will notice: model, temperature, prompt in full, addresses, limits",
    )
    uploads: list[UploadKind] | None = Field(
        default=None,
        max_length=8,
        description="files that people upload; null: as now",
    )
    starter_questions: list[StarterQuestion] | None = Field(
        default=None,
        max_length=10,
    )
    new_tools: list[PlannedTool] = Field(
        default_factory=list,
        max_length=MOST_TOOLS,
        description="custom tools to make; `selectedTool` of a customTool names one",
    )
    steps: list[str] = Field(default_factory=list, description="causes, limits, effects, in plain words")
    credential_requirements: list[str] = Field(default_factory=list, description="Flowise credential types needed")
    data_fields: list[str] = Field(default_factory=list)
    pii_fields: list[str] = Field(default_factory=list)
    tests: Annotated[list[TestCase], numbered("t")] = Field(default_factory=list, max_length=MOST_TESTS)
    criteria: Annotated[list[Criterion], numbered("c")] = Field(default_factory=list, max_length=20)
    approaches: list[Approach] = Field(default_factory=list, max_length=4)
    placeholders: list[str] = Field(default_factory=list, description="text that the person promised and is not there")
    declined: str | None = Field(default=None, description="why this cannot be built, and what could be instead")
    answer: str | None = Field(default=None, description="for a question about a flow: the answer")

    @model_validator(mode="before")
    @classmethod
    def _read_words(cls, data: Any) -> Any:
        """Read a plan without `criteria` and `tests`, as older rows and short answers of a model are.

        Each of its `test_questions` becomes a test, and all tests show each of its `success_criteria`.
        """
        if not isinstance(data, dict):
            return data
        read = {name: value for name, value in data.items() if name not in ("success_criteria", "test_questions")}
        words, questions = data.get("success_criteria"), data.get("test_questions")
        if "tests" not in read and isinstance(questions, list):
            read["tests"] = [{"id": f"t{n}", "turns": [text]} for n, text in enumerate(questions, start=1)]
            if "criteria" not in read and isinstance(words, list):
                shown_by = [test["id"] for test in read["tests"]]
                read["criteria"] = [{"text": text, "tests": shown_by} for text in words]
        elif "criteria" not in read and isinstance(words, list):
            read["criteria"] = [{"text": text, "not_tested": NO_TEST} for text in words]
        return read


class ProposedPlan(_Proposed):
    """A plan as a model writes it, without the fields that code determines."""

    parts: list[PartAccount] = Field(default_factory=list)


class Plan(_Proposed, Versioned, Worded):
    """The approved plan: determines scope, tests and judgement. `declined` says why it cannot be built."""

    operation: Operation
    flow_kind: FlowKind = "CHATFLOW"
    new_name: str | None = Field(default=None, max_length=120, description="New name of an existing flow.")
    domain_targets: list[str] = Field(default_factory=lambda: ["flowise"])
    parts: list[Part] = Field(default_factory=list, max_length=40)
    capability: Capability | None = None
    document_stores: list[PlannedStore] = Field(
        default_factory=list, description="Made of the person's files before the flow is written."
    )
    mappings: list[FieldMapping] = Field(
        default_factory=list, description="Values that pass from one domain to another."
    )
    pii_tools: list[str] = Field(default_factory=list, description="Tools whose texts may be about a person.")
    findings: list[Finding] = Field(
        default_factory=list, description="Findings of code that the model did not correct, for the person."
    )

    @computed_field
    @property
    def success_criteria(self) -> list[str]:
        """Texts of the criteria."""
        return [criterion.text for criterion in self.criteria]

    @computed_field
    @property
    def test_questions(self) -> list[str]:
        """The first turn of each test."""
        return [test.turns[0] for test in self.tests]

    @property
    def not_done(self) -> list[Part]:
        """Parts of the requirement that the plan does not cover."""
        return [part for part in self.parts if part.state in ("not_possible", "not_understood")]

    @property
    def asks(self) -> bool:
        """True if the plan is declined with a question whose answer would settle it."""
        return bool(self.declined) and str(self.declined).rstrip().endswith("?")

    def renames(self, part: Part) -> bool:
        """True if the part names the new name of the flow."""
        return self.new_name is not None and is_said(self.new_name, part.quote)

    @property
    def set_beside(self) -> set[str]:
        """Names of the fields that it sets beside the nodes."""
        return {name for name in BESIDE_NODES if getattr(self, name) is not None}

    @property
    def leaves_nodes(self) -> bool:
        """True if the plan changes no node and no line: it copies, renames, fills a store or sets something else."""
        beside = self.operation == "copy" or self.new_name or self.set_beside
        return self.only_fills or bool(beside and not (self.nodes or self.changes or self.document_stores))

    @property
    def only_fills(self) -> bool:
        """True if the plan only adds files to a document store that the flow uses."""
        return any(one.id for one in self.document_stores) and not (self.changes or self.new_nodes or self.new_name)

    @property
    def tools_with_node(self) -> list[tuple[PlannedTool, str]]:
        """Each new tool with the id of each node that uses it."""
        used = [(one.node_id, one.model_dump_json(include={"value"})) for one in self.values] if self.new_tools else []
        return [
            (tool, node_id)
            for tool in self.new_tools
            for node_id in dict.fromkeys(id_ for id_, text in used if tool_mark(tool.name) in text)
        ]

    @property
    def values_and_code(self) -> list[PlannedValue]:
        """The values, and the code of each new tool as a value of the nodes that use it."""
        code = [
            PlannedValue(node_id=node_id, param="customToolFunc", value=tool.code)
            for tool, node_id in self.tools_with_node
        ]
        return [*self.values, *code]

    @property
    def changes(self) -> bool:
        """True if the plan changes values or lines, or removes nodes."""
        return bool(self.removals or self.values or self.connections or self.disconnections)

    @property
    def new_nodes(self) -> set[str]:
        """Ids of the nodes that the plan adds."""
        return {node.node_id for node in self.nodes if not node.existing}

    def linked(self) -> Self:
        """Copy whose criteria refer only to tests of the plan; one that no test shows refers to the settings that it
        names; one that neither shows gets a reason.
        """
        known = {test.id for test in self.tests}
        criteria: list[Criterion] = []
        for criterion in self.criteria:
            tests = [id_ for id_ in dict.fromkeys(criterion.tests) if id_ in known]
            named = [] if tests or criterion.settings else self._settings_named_by(criterion)
            not_tested = None if tests or named else criterion.not_tested or (None if criterion.settings else NO_TEST)
            update = {"tests": tests, "not_tested": not_tested, "settings": named or criterion.settings}
            criteria.append(criterion.model_copy(update=update))
        return self.model_copy(update={"criteria": criteria})

    def _settings_named_by(self, criterion: Criterion) -> list[str]:
        """Planned settings that no answer shows, such as a model or a schedule, and whose values are in the text."""
        said = criterion.text.casefold().replace(",", ".")
        return [
            f"{one.node_id}.{one.param}"
            for one in self.values
            if one.part in (None, criterion.part) and _UNSEEN.search(one.param) and isinstance(one.value, str | float)
            if re.search(rf"(?<![\w.]){re.escape(str(one.value).casefold())}(?![\w-]|\.\w)", said)
        ]

    def with_tests(self, tests: Sequence[TestCase]) -> tuple[Self, list[TestCase]]:
        """Copy with these tests after its own, as far as there is room, and those that are left out. What one of them
        expects, an own one that asks the same expects, too.
        """

        def asks(one: TestCase, other: TestCase) -> bool:
            return (one.turns, one.payload, one.human) == (other.turns, other.payload, other.human)

        own = [
            one.model_copy(update={"expect": one.expect.and_also(other.expect)})
            if (other := next((other for other in tests if asks(one, other)), None))
            else one
            for one in self.tests
        ]
        new = [one for one in tests if not any(asks(one, other) for other in own)]
        taken = {one.id for one in self.tests}
        free = (id_ for number in itertools.count(1) if (id_ := f"t{number}") not in taken)
        room = max(0, MOST_TESTS - len(self.tests))
        added = [one.model_copy(update={"id": next(free)}) for one in new[:room]]
        return self.model_copy(update={"tests": [*own, *added]}), new[room:]

    def with_questions(self, questions: Sequence[str]) -> Self:
        """Copy with these test questions.

        A question that the plan has keeps its test. A criterion that lost all its tests is shown by any of the new
        ones.
        """
        former = {test.turns[0]: test for test in self.tests}
        tests: list[TestCase] = []
        new_ids: dict[str, str] = {}
        for number, question in enumerate(questions, start=1):
            test = former.get(question) or TestCase(id="t0", turns=[question])
            new_ids[test.id] = f"t{number}"
            tests.append(test.model_copy(update={"id": f"t{number}"}))
        everything = [test.id for test in tests]
        criteria = [
            criterion.model_copy(
                update={"tests": [new_ids[id_] for id_ in criterion.tests if id_ in new_ids] or everything}
            )
            if criterion.tests
            else criterion
            for criterion in self.criteria
        ]
        return self.model_copy(update={"tests": tests, "criteria": criteria})


def is_said(name: str, words: str) -> bool:
    """True if the words have the name, in any case and spacing."""
    said = " ".join(words.split()).casefold()
    return re.search(rf"(?<!\w){re.escape(' '.join(name.split()).casefold())}(?!\w)", said) is not None


class FunctionSample(Contract):
    """Expected result of a custom function for a sample input; without `result` it only must not fail."""

    node_id: str
    variables: NamedValues = Field(default_factory=dict, description="By the names in the code, without $.")
    result: JsonValue = None


class OpsAnswer(Contract):
    """The ops for an approved plan, and samples for the functions in it."""

    kind: Literal["ops"] = "ops"
    ops: list[PatchOp] = Field(default_factory=list)
    samples: list[FunctionSample] = Field(default_factory=list, max_length=40)


class AmendAnswer(Contract):
    """Request to extend the plan, since the ops need more than it allows."""

    kind: Literal["amend"] = "amend"
    nodes: list[PlannedNode] = Field(default_factory=list)
    removals: list[str] = Field(default_factory=list)
    values: list[PlannedValue] = Field(default_factory=list)
    connections: list[NamedConnection] = Field(default_factory=list)
    disconnections: list[NamedConnection] = Field(default_factory=list)
    new_tools: list[PlannedTool] = Field(
        default_factory=list, max_length=MOST_TOOLS, description="in full; one of the same name takes its place"
    )
    reason: str


class NothingToChange(Contract):
    """Answer that the flow already matches the plan."""

    kind: Literal["nothing_to_change"] = "nothing_to_change"
    reason: str


#: Answer of the phase `patch`.
PatchAnswer = TypeAliasType(
    "PatchAnswer", Annotated[OpsAnswer | AmendAnswer | NothingToChange, Field(discriminator="kind")]
)
