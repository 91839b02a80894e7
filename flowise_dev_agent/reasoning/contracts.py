"""What reasoning takes and gives: plain typed data, the same for a model and for the rules.

Results (`Intent`, `PlanContract`, `Verdict`) are Pydantic models, since a model's answer is read into them and they
live in checkpoints as JSON. Requests are dataclasses: they carry live objects (the node store) and are never stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.templates import Template
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.ops import PatchOp
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.settings import Mode

Operation = Literal["create", "update", "copy", "question"]
FlowKind = Literal["CHATFLOW", "AGENTFLOW"]
#: STRUCTURE, LOGIC and INCOMPLETE are flow bugs and iterate; the others ask the person.
VerdictCategory = Literal["STRUCTURE", "LOGIC", "INCOMPLETE", "CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"]
FLOW_BUGS: frozenset[str] = frozenset({"STRUCTURE", "LOGIC", "INCOMPLETE"})


class _Contract(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# --- Engines -----------------------------------------------------------------------------------------------------


class ToolDef(_Contract):
    """A tool as offered to a model. `name` matches `[a-zA-Z0-9_-]{1,64}` (dots travel as `__`)."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str
    parameters: dict[str, Any]


class ToolCall(_Contract):
    """A model's request to call a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class Message(_Contract):
    """One turn. `tool` messages answer the call `tool_call_id` and carry only a `ToolResult.summary`."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Usage(_Contract):
    """What a phase cost. `cached_tokens` are part of `input_tokens`; `usd` leaves out the `unpriced_calls`, whose
    model has no known price."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            usd=round(self.usd + other.usd, 6),
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
        )


class EngineResponse(_Contract):
    """One model answer. `stop_reason` is the provider's word, `truncated` says that the output limit cut it."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    stop_reason: str = ""
    truncated: bool = False


# --- Results of the four phases ----------------------------------------------------------------------------------


class Intent(_Contract):
    """What the person wants. `ambiguity` runs from 0 (clear) to 10 (anyone's guess); 5 and more asks `questions`."""

    operation: Operation
    confidence: float = Field(ge=0, le=1)
    ambiguity: int = Field(ge=0, le=10)
    questions: list[str] = Field(default_factory=list, max_length=3)
    title: str = Field(min_length=1, max_length=120, description="four to six words for the session list")
    target_hint: str | None = Field(default=None, description="the existing flow that the person means, in their words")
    language: str = Field(default="en", description="ISO 639-1 code of the person's language")


class PlannedNode(_Contract):
    """One node of the flow to be. `node_id` is what the ops will use, for example `chatOpenAI_0`."""

    node_id: str = Field(pattern=r"^[A-Za-z0-9_]{1,100}$")
    node_name: str
    purpose: str
    existing: bool = Field(default=False, description="already in the flow that is being changed")


class Approach(_Contract):
    """One of several ways to do it, when they differ in a way that matters to the person."""

    label: str = Field(min_length=1, max_length=80)
    description: str


class PlanContract(_Contract):
    """The approved agreement: drives the scope, the tests and the judgement. `declined` says why it cannot be done."""

    goal: str
    operation: Operation
    flow_kind: FlowKind = "CHATFLOW"
    flow_name: str = Field(min_length=1, max_length=120)
    nodes: list[PlannedNode] = Field(default_factory=list)
    removals: list[str] = Field(
        default_factory=list, description="ids of nodes of the existing flow that are removed or replaced"
    )
    steps: list[str] = Field(default_factory=list, description="what will be done, in order, in plain words")
    domain_targets: list[str] = Field(default_factory=lambda: ["flowise"])
    credential_requirements: list[str] = Field(default_factory=list, description="Flowise credential types needed")
    data_fields: list[str] = Field(default_factory=list)
    pii_fields: list[str] = Field(default_factory=list)
    success_criteria: list[str] = Field(default_factory=list)
    test_questions: list[str] = Field(default_factory=list, max_length=10)
    approaches: list[Approach] = Field(default_factory=list, max_length=4)
    placeholders: list[str] = Field(default_factory=list, description="text that the person promised and is not there")
    declined: str | None = Field(default=None, description="why this cannot be built, and what could be instead")
    answer: str | None = Field(default=None, description="for a question about a flow: the answer")

    def to_markdown(self) -> str:
        """The plan as a person reads it."""
        if self.declined:
            return f"# This cannot be built\n\n{self.declined}\n"
        if self.answer is not None:
            return f"{self.answer}\n"
        parts = [f"# {self.flow_name}", "", self.goal]
        parts += _section("Nodes", [f"**{n.node_name}** (`{n.node_id}`): {n.purpose}" for n in self.nodes])
        parts += _section("Removed or replaced", [f"`{node_id}`" for node_id in self.removals])
        parts += _section("Steps", self.steps)
        parts += _section("Approaches", [f"**{a.label}**: {a.description}" for a in self.approaches])
        parts += _section("Credentials", [f"`{name}`" for name in self.credential_requirements])
        parts += _section("Personal data", [f"`{name}`" for name in self.pii_fields])
        parts += _section("Placeholders to fill in", self.placeholders)
        parts += _section("Success criteria", self.success_criteria)
        parts += _section("Test questions", self.test_questions)
        return "\n".join(parts) + "\n"


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", *(f"- {item}" for item in items)] if items else []


class Judgement(_Contract):
    """Whether the answers meet the success criteria. `category`, `reason` and `fix` are set when they do not."""

    done: bool
    category: VerdictCategory | None = None
    reason: str = ""
    fix: str = ""
    notes: list[str] = Field(default_factory=list, description="one short remark per trial, in order")
    failed_trials: list[int] = Field(default_factory=list, description="numbers of the trials that fail, from 1")


class PassK(_Contract):
    """pass^k: a question has passed when each of its `k` trials has."""

    k: int
    questions: int
    passed: int


class Verdict(Judgement):
    """A judgement with what code has counted."""

    pass_k: PassK | None = None


# --- Requests ----------------------------------------------------------------------------------------------------

DeltaSink = Callable[[str], None]


@dataclass(frozen=True)
class Budget:
    """The ceilings of a session and what it has spent so far."""

    max_tokens: float
    max_usd: float
    spent: Usage = field(default_factory=Usage)

    def exceeded_by(self, more: Usage) -> str | None:
        """Which ceiling the session has reached with `more` on top, in words; None while there is room."""
        total = self.spent + more
        tokens = total.input_tokens + total.output_tokens
        if tokens >= self.max_tokens:
            return f"{tokens} of {self.max_tokens:.0f} tokens are used"
        if total.usd >= self.max_usd:
            return f"{total.usd:.2f} of {self.max_usd:.2f} USD are used"
        return None


@dataclass(frozen=True, kw_only=True)
class _Request:
    requirement: str
    #: Name of the flow that is changed, copied or asked about; of a first look what the request itself names.
    target: str | None = None
    #: Answers to the clarifying questions, as (question, answer).
    clarifications: tuple[tuple[str, str], ...] = ()
    #: Model override of this session.
    model: str | None = None
    #: Receives text as the model writes it; never needed for the result.
    on_delta: DeltaSink | None = None
    #: Looked at before every model call; None spends without limit.
    budget: Budget | None = None


@dataclass(frozen=True, kw_only=True)
class ClassifyRequest(_Request):
    """First look at a requirement. `forced` is the operation that the request itself named."""

    forced: Operation | None = None


@dataclass(frozen=True)
class Pattern:
    """An accepted flow for a similar requirement. `nodes` are id -> type; the plan takes over those that it lists
    with `existing: true`."""

    requirement: str
    summary: str
    nodes: Mapping[str, str]


@dataclass(frozen=True)
class AgentTools:
    """An agent inside an agentflow. `rows` is the list of its tools in `field` as it is stored, with all values: for
    rules, never for a prompt."""

    node_id: str
    label: str
    field: str
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanRequest(_Request):
    """`candidates` are the retrieved node types; `feedback` what the person or the last verdict asked to change."""

    intent: Intent
    nodes: NodeStore
    candidates: tuple[NodeSchema, ...] = ()
    #: Credential type -> how many the instance has.
    credential_types: Mapping[str, int] = field(default_factory=dict)
    flow_summary: str | None = None
    #: node id -> node name of what the flow holds already.
    existing: Mapping[str, str] = field(default_factory=dict)
    #: Inputs of that flow that are connected, as `node id.input`.
    occupied: frozenset[str] = frozenset()
    #: `node id.path` -> the model or tool that stands there inside an agentflow node.
    inside: Mapping[str, str] = field(default_factory=dict)
    #: The agents inside agentflow nodes with their tools.
    agents: tuple[AgentTools, ...] = ()
    #: `node id.field` -> what stands in the longer text fields in scope, each shortened.
    texts: Mapping[str, str] = field(default_factory=dict)
    previous: PlanContract | None = None
    feedback: str | None = None
    verdict: Verdict | None = None
    #: Only for a new flow.
    pattern: Pattern | None = None
    #: Flows of the marketplace that resemble what is asked for, best first; `Template.for_prompt` is one line of each.
    templates: tuple[Template, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PatchRequest(_Request):
    """Write the ops for `plan`. `findings` are what was wrong with `previous_ops`; both are empty at the first try."""

    plan: PlanContract
    nodes: NodeStore
    approach: str | None = None
    #: Compact text of the flow as it is (`patch.summary`), None for an empty one.
    flow_summary: str | None = None
    #: node id -> node name of what the flow holds already.
    existing: Mapping[str, str] = field(default_factory=dict)
    #: Inputs of that flow that are connected, as `node id.input`.
    occupied: frozenset[str] = frozenset()
    #: `node id.path` -> the model or tool that stands there inside an agentflow node.
    inside: Mapping[str, str] = field(default_factory=dict)
    #: The agents inside agentflow nodes with their tools.
    agents: tuple[AgentTools, ...] = ()
    #: `node id.field` -> what stands in the longer text fields in scope, each shortened.
    texts: Mapping[str, str] = field(default_factory=dict)
    feedback: str | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    previous_ops: tuple[dict[str, Any], ...] = ()
    max_ops: int = 60
    #: The ops that made what `existing` holds, when that comes from a pattern and not from a person's flow.
    seed: tuple[PatchOp, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One answered test question, with the full text."""

    question: str
    answer: str
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class JudgeRequest(_Request):
    """All trials passed the checks of code; say whether their content meets the plan's criteria."""

    plan: PlanContract
    trials: tuple[Trial, ...]


T = TypeVar("T")


@dataclass(frozen=True)
class Degraded:
    """A phase whose configured mode failed and whose other mode answered."""

    failed_mode: Mode
    fallback_mode: Mode
    reason: str


@dataclass(frozen=True)
class Reasoned(Generic[T]):
    """A phase's result with what it cost and how it came about."""

    value: T
    mode: Mode
    usage: Usage = field(default_factory=Usage)
    tries: int = 1
    degraded: Degraded | None = None
