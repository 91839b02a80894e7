"""Requests and results of a reasoner: plain typed data, the same with and without a model.

Results (`Intent`, `Plan`, `Verdict`) are shared with clients and come from `contracts`. Requests are
dataclasses: they carry live objects (the node store) and are never stored.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from pydantic import JsonValue

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.capabilities import Loss
from flowise_dev_agent.models.messages import DeltaSink, SessionBudget, Toolbox
from flowise_dev_agent.patch import Finding, NodeSchema, PatchOp
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import (
    Intent,
    Operation,
    Part,
    Plan,
    PlannedValue,
)
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.schemas.verdict import Trace, Trial, Verdict
from flowise_dev_agent.settings import Mode


@dataclass(frozen=True, kw_only=True)
class _Request:
    requirement: str
    #: Name of the flow that is changed, copied or asked about; of a first look what the request itself names.
    target: str | None = None
    #: Answers to the clarifying questions, as (question, answer).
    clarifications: tuple[tuple[str, str], ...] = ()
    #: Messages of the person between `clarifications` and `feedback`, oldest first.
    later: tuple[str, ...] = ()
    #: Model override of this session.
    model: str | None = None
    #: Receives text as the model writes it; never needed for the result.
    on_delta: DeltaSink | None = None
    #: Checked before every model call; None spends without limit.
    budget: SessionBudget | None = None
    #: Tools that the model may call while it answers.
    tools: Toolbox | None = None
    #: Facts that code found in the attached files.
    attachments: tuple[AttachmentFacts, ...] = ()
    #: Passages of long files that match the requirement, by file name.
    passages: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, kw_only=True)
class ClassifyRequest(_Request):
    """Classification of a requirement. `forced` is the operation that the request itself named."""

    forced: Operation | None = None


@dataclass(frozen=True)
class Pattern:
    """Accepted flow for a similar requirement. `nodes` maps id to type; the plan reuses the nodes that it lists with
    `existing: true`.
    """

    requirement: str
    summary: str
    nodes: Mapping[str, str]


@dataclass(frozen=True)
class ToolField:
    """Input or output field of a tool, with its JSON type if known."""

    name: str
    type: str = ""
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class ReadyTool:
    """Ready-made tool of a domain: a flow node with its values. Code adds it to the plan.

    `question` shows in a test that it is used; the fields are what passes between the domains, each with its JSON type
    where that is known: `worker.id:number`. `takes` are its typed inputs.
    """

    domain: str
    name: str
    title: str
    about: str
    node_name: str
    values: Mapping[str, JsonValue]
    question: str = ""
    data_fields: tuple[str, ...] = ()
    pii_fields: tuple[str, ...] = ()
    takes: tuple[ToolField, ...] = ()

    @property
    def gives(self) -> tuple[ToolField, ...]:
        """Output fields with their types."""
        return tuple(ToolField(name, type_) for name, _, type_ in (one.partition(":") for one in self.data_fields))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names that an agent calls: the actions of an MCP server, else the one tool of the node."""
        actions = self.values.get("mcpActions")
        return tuple(str(one) for one in actions) if isinstance(actions, list) else (self.name,)

    @property
    def node_id(self) -> str:
        """Node id, prefixed with the domain that provides the node."""
        return f"{self.domain}__{self.name}"


#: The node types that read files, by their kinds.
FILE_LOADERS: Final[Mapping[str, str]] = {
    "pdf": "pdfFile",
    "docx": "docxFile",
    "csv": "csvFile",
    "text": "textFile",
    "markdown": "textFile",
}


@dataclass(frozen=True)
class ServerNames:
    """Names of what the instance has, for values of a plan: variables, custom tools by id, document stores with their
    ids, models by node type. None is a list that cannot be read.
    """

    variables: tuple[str, ...] | None = None
    tools: Mapping[str, str] | None = None
    stores: tuple[str, ...] | None = None
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def named_tools(self) -> tuple[str, ...] | None:
        """The custom tools, each with its id."""
        return None if self.tools is None else tuple(f"{name} = {id_}" for id_, name in self.tools.items())


@dataclass(frozen=True)
class ReviewedPlan:
    """Proposed plan after the passes of code, and the problems that its model must correct."""

    plan: Plan
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class FailedTrial:
    """Trial that failed in the last test, with what happened inside. `trial.error` says what was found wrong."""

    trial: Trial
    trace: Trace


@dataclass(frozen=True, kw_only=True)
class PlanRequest(_Request):
    """Request for a plan. `candidates`: the retrieved node types; `feedback`: changes asked for by the person or the
    last verdict; `notes`: the person's stored notes.
    """

    intent: Intent
    #: Kind of the flow to change, copy or ask about.
    target_kind: str | None = None
    notes: tuple[str, ...] = ()
    nodes: NodeStore
    #: The form that the person filled in instead of a requirement: code makes a plan of it.
    design: DesignForm | None = None
    #: The starter that the form began as.
    starter: ChosenStarter | None = None
    #: Name of a plain copy, or new name of the flow; set if nothing else is requested.
    new_name: str | None = None
    candidates: tuple[NodeSchema, ...] = ()
    #: Credential type -> how many the instance has.
    credential_types: Mapping[str, int] = field(default_factory=dict)
    flow_summary: str | None = None
    #: The flow as it is; an empty one before.
    flow: GraphView = field(default_factory=GraphView)
    previous: Plan | None = None
    feedback: str | None = None
    verdict: Verdict | None = None
    #: Failures that `verdict` is about.
    failed: tuple[FailedTrial, ...] = ()
    #: The document stores of the instance, for names in the requirement where no model reads it.
    stores: tuple[DocumentStoreView, ...] = ()
    #: Names that a model that plans may use.
    server: ServerNames = field(default_factory=ServerNames)
    #: Only for a new flow.
    pattern: Pattern | None = None
    #: Ready-made tools of the domains. Code adds them to the plan, which needs an agent for them.
    ready_tools: tuple[ReadyTool, ...] = ()
    #: Instructions of these domains for a planner.
    skills: tuple[str, ...] = ()
    #: Parts of everything that the person said; the plan accounts for each.
    parts: tuple[Part, ...] = ()
    #: The person asked to go on: nothing is asked, what is open becomes an assumption or a placeholder.
    goes_on: bool = False
    #: Completes and checks a proposed plan; None takes it as it is.
    review: "Callable[[Plan, PlanRequest], Awaitable[ReviewedPlan]] | None" = None

    @property
    def is_new(self) -> bool:
        """True if the request is for a new flow."""
        return self.intent.operation == "create" and not self.flow.existing

    @property
    def ready_nodes(self) -> dict[str, NodeSchema]:
        """Node types of the ready tools, by node id."""
        return {one.node_id: schema for one in self.ready_tools if (schema := self.nodes.get(one.node_name))}

    @property
    def ready_values(self) -> list[PlannedValue]:
        """Planned values of the ready tools."""
        return [
            PlannedValue(node_id=tool.node_id, param=name, value=value)
            for tool in self.ready_tools
            for name, value in tool.values.items()
        ]

    @property
    def file_loaders(self) -> tuple[str, ...]:
        """Node types that read the attached documents."""
        read = [one for one in self.attachments if one.kind in FILE_LOADERS and not (one.tests or one.examples)]
        return tuple(dict.fromkeys(FILE_LOADERS[one.kind] for one in read))


@dataclass(frozen=True, kw_only=True)
class PatchRequest(_Request):
    """Request for the ops of `plan`. `findings` are the problems of `previous_ops` (the last try, with the plan's
    values); both are empty at the first try.
    """

    plan: Plan
    #: No model made the plan: it follows from a form, a starter or a new name.
    by_form: bool = False
    nodes: NodeStore
    approach: str | None = None
    #: Compact text of the flow as it is (`patch.summary`), None for an empty one.
    flow_summary: str | None = None
    #: The flow as it is; an empty one before.
    flow: GraphView = field(default_factory=GraphView)
    feedback: str | None = None
    verdict: Verdict | None = None
    #: Failures that `verdict` is about.
    failed: tuple[FailedTrial, ...] = ()
    findings: tuple[Finding, ...] = ()
    previous_ops: tuple[PatchOp, ...] = ()
    max_ops: int = 60
    #: Marketplace flows of much the same node types: name and ops of each, without credentials and addresses.
    like_flows: tuple[str, ...] = ()
    #: The ops that made what `flow` holds, when that comes from a pattern and not from a person's flow.
    seed: tuple[PatchOp, ...] = ()

    @property
    def repairs_values(self) -> bool:
        """True in a repair of a prompt or parameter: connections and nodes are not what the test found wrong."""
        return self.verdict is not None and self.verdict.category == "LOGIC"


@dataclass(frozen=True, kw_only=True)
class JudgeRequest(_Request):
    """Request to judge trials that passed the checks of code against the plan's criteria."""

    plan: Plan
    trials: tuple[Trial, ...]
    #: Trace of each trial.
    traces: tuple[Trace, ...] = ()
    #: Per trial, the expectations of the plan that it does not meet literally.
    remarks: tuple[Sequence[str], ...] = ()
    flow_summary: str | None = None
    #: The models of the flow are a stand-in.
    stand_in: bool = False


T = TypeVar("T")


@dataclass(frozen=True)
class Degraded:
    """Phase whose configured mode failed and whose other mode answered."""

    failed_mode: Mode
    fallback_mode: Mode
    reason: str


@dataclass(frozen=True)
class Reasoned(Generic[T]):
    """Result of a phase, with its cost and origin."""

    value: T
    mode: Mode
    usage: Usage = field(default_factory=Usage)
    tries: int = 1
    degraded: Degraded | None = None
    #: What the phase wanted and the model does not take.
    lost: frozenset[Loss] = frozenset()
    #: Source of a plan that no model made.
    starter: ChosenStarter | None = None
