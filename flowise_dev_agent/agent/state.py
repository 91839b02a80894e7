"""The graph's state: named parts, small JSON only.

A node gets an `AgentState` and returns an `Update`. The parts in an update hold what changes: fields that are not set
keep their value. Checkpoints hold one JSON channel per part (`channel_writes`), so an unchanged part costs nothing.

Whole flows and full test answers are content-addressed blobs; the state carries their hash (`*_sha`). Session facts
that a person may edit at any time (name, labels) are in the `sessions` row, never here.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypedDict, cast

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, model_validator

from flowise_dev_agent.agent.stages import Stage
from flowise_dev_agent.approval.ops import PatchScope
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.patch import Finding, PatchOp
from flowise_dev_agent.publish import Base
from flowise_dev_agent.reasoning.contracts import Reasoned
from flowise_dev_agent.schemas.base import Contract, JsonObject, Kept, KeptText, Outcome, TextCode, Worded
from flowise_dev_agent.schemas.change import Conflict, Difference
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm, stored_form
from flowise_dev_agent.schemas.interrupts import MissingCredential, TargetCandidate, TargetFlow, WriteMode
from flowise_dev_agent.schemas.plan import Capability, FunctionSample, Intent, Operation, PlanContract
from flowise_dev_agent.schemas.usage import BudgetCeilings, DegradedPhase, Usage
from flowise_dev_agent.schemas.verdict import TestedIteration, Trial, Verdict
from flowise_dev_agent.settings import Phase

#: Of the state's shape; `state_upgrade` reads checkpoints of earlier ones.
STATE_VERSION: Final = 2
#: Rounds of clarifying questions in one session.
MAX_CLARIFICATION_ROUNDS: Final = 2


def shared(kind: type[Contract]) -> Any:
    """A field whose default is one model for all. As a plain default it would be copied deeply each time."""
    return Field(default_factory=cache(kind))


class StatePart(Contract):
    """A part of the state. Every field has a default, so that an update can name a few."""

    @model_validator(mode="wrap")
    @classmethod
    def _read_once(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """A part is read by each node and each edge, and mostly is what it was."""
        if not isinstance(value, Kept):
            return read(value)
        model = getattr(value, "model", None)
        if not isinstance(model, cls):
            model = value.model = read(value)
        return model

    def changed_by(self, change: Self) -> Self:
        """This part with the fields that are set in `change`."""
        return self.model_copy(update={name: getattr(change, name) for name in change.model_fields_set})


class RequestState(StatePart):
    """What was asked for; only a form may take the place of another one, or of words."""

    requirement: str = ""
    #: The form that describes the flow, when the person filled one in.
    design: Annotated[DesignForm | None, BeforeValidator(stored_form)] = None
    #: The name of a plain copy, or what the flow is renamed to: nothing else is asked for.
    new_name: str | None = None
    operation: Operation | Literal["auto"] = "auto"
    target: str | None = None
    write_mode: WriteMode | None = None
    review_patch: bool = False
    #: None leaves it to the settings.
    skip_clarification: bool | None = None
    test_trials: int = 1
    model: str | None = None


class IntentState(StatePart):
    """What the person wants."""

    classified: Intent | None = None
    #: The operation in force: of the request, else of the intent, else as the person chose.
    operation: Operation | None = None
    questions: list[str] = Field(default_factory=list[str])
    #: (question, answer), as far as answered.
    clarifications: list[tuple[str, str]] = Field(default_factory=list[tuple[str, str]])
    rounds: int = 0
    #: What the person asked for after that, in order: changes of plans and of results.
    later: list[str] = Field(default_factory=list[str])

    @property
    def current(self) -> Intent:
        """The intent with the operation in force, for nodes after `classify_intent`. Raises LookupError before."""
        if self.classified is None:
            raise LookupError("The requirement has not been read yet.")
        return self.classified.model_copy(update={"operation": self.operation or self.classified.operation})


class TargetSearch(Contract):
    """The result of the search. Without `fits` the candidates are the flows changed last."""

    fits: bool
    #: A flow has the name that the text mentions.
    named: bool
    total: int
    #: The words that it looked for, if the request or the intent had any.
    wanted: str | None


class TargetState(StatePart):
    """Which existing flow is meant."""

    candidates: list[TargetCandidate] = Field(default_factory=list[TargetCandidate])
    search: TargetSearch | None = None
    chatflow_id: str | None = None
    flow: TargetFlow | None = None


class PlanState(StatePart):
    """The plan and what the person says to it."""

    contract: PlanContract | None = None
    #: The person approved a plan, and no later one went beyond it.
    approved: bool = False
    #: What the last approval covers.
    agreed: Capability | None = None
    #: Quotes of what the person has agreed to go without.
    agreed_not_done: list[str] = Field(default_factory=list[str])
    #: What it was made of where no model made it.
    starter: ChosenStarter | None = None
    #: No model made it: it follows from a form, a starter or a new name.
    by_form: bool = False
    #: Why the op writer needs more than the approved plan says, until the person has answered.
    amended: str | None = None
    approach: str | None = None
    feedback: str | None = None
    #: What the person must know in addition to the plan.
    notes: list[KeptText] = Field(default_factory=list[TextCode])

    @property
    def current(self) -> PlanContract:
        """The contract, for nodes after `plan_v2`. Raises LookupError before."""
        if self.contract is None:
            raise LookupError("There is no plan yet.")
        return self.contract


class CredentialState(StatePart):
    """Credentials by type; ids only."""

    missing: list[MissingCredential] = Field(default_factory=list[MissingCredential])
    #: Type -> id.
    chosen: dict[str, str] = Field(default_factory=dict[str, str])
    #: Types that the person goes on without.
    skipped: list[str] = Field(default_factory=list[str])


class PatternState(StatePart):
    """The accepted flow that a new one starts from, and what was taken over from it."""

    id: int | None = None
    ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    flow_sha: str | None = None


class PatchState(StatePart):
    """The ops of this iteration."""

    scope: PatchScope | None = None
    ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    #: For the functions in them.
    samples: list[FunctionSample] = Field(default_factory=list[FunctionSample])
    #: Why the flow already is as the plan wants it.
    nothing_to_change: str | None = None
    #: They are the person's own, not of the op writer.
    own: bool = False


class CheckState(StatePart):
    """The compiled flow and what is wrong with it or with its ops."""

    flow_sha: str | None = None
    #: What it changes in its base.
    change: Difference | None = None
    findings: list[Finding] = Field(default_factory=list[Finding])
    #: Keys of the errors among them; the same twice stops the retries.
    error_keys: list[str] = Field(default_factory=list[str])
    #: Node types that no snapshot knows.
    unknown_types: list[str] = Field(default_factory=list[str])
    #: Of the bytes that passed validation: one authorisation, spent by one write.
    validated_sha: str | None = None
    retries: int = 0
    repairs: int = 0
    #: Why the retries ended, for the person.
    given_up: KeptText | None = None


class StaleBase(Worded):
    """Someone else changed the flow in use (`live`), or what ops are written to (`work`), since it was read."""

    where: Literal["live", "work"]
    message: str
    found: Base
    found_sha: str
    meanwhile: Difference


class WriteState(StatePart):
    """What was written, and what it is written to."""

    stage: Stage = Stage.APPLY
    mode: WriteMode | None = None
    #: The flow in use when it was last read, and the same of what ops are written to: the draft, or the flow itself.
    live_base: Base | None = None
    base: Base | None = None
    #: The flow before the session, and as it was last read or written.
    original_sha: str | None = None
    current_sha: str | None = None
    draft_id: str | None = None
    chatflow_id: str | None = None
    chatflow_name: str | None = None
    #: The ops that were written already, since the base was read.
    applied_ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    #: The compiled flow whose change the person has seen.
    reviewed_sha: str | None = None
    #: Document stores that the session made: name -> id.
    stores: dict[str, str] = Field(default_factory=dict[str, str])
    stale: StaleBase | None = None
    #: Writes that someone else saved over at once.
    conflicts: list[Conflict] = Field(default_factory=list[Conflict])


class TestsState(StatePart):
    """The test questions and their answers; the full texts are the blob `answers_sha`."""

    __test__ = False  # not a pytest class

    #: The person's own; None leaves them to the plan.
    questions: list[str] | None = None
    results: list[Trial] = Field(default_factory=list[Trial])
    answers_sha: str | None = None
    #: The same questions before the change; None as long as they were not asked.
    baseline: list[Trial] | None = None
    #: Of the very bytes that were tested: what may be promoted.
    tested_sha: str | None = None


class KeptIteration(TestedIteration):
    """An iteration that can be accepted later: the flow, and the hash of its bytes when they were tested."""

    flow_sha: str
    tested_sha: str


class ReviewState(StatePart):
    """The result of the tests. `ask` leaves it to the person, since no remedy is known."""

    verdict: Verdict | None = None
    #: All that were written onto the same base and tested, the newest last.
    iterations: list[KeptIteration] = Field(default_factory=list[KeptIteration])
    next_step: Literal["iterate", "review", "ask"] | None = None


class BudgetQuestion(Worded):
    """The budget is used up; `node` goes on when it is raised."""

    node: str
    message: str


class BudgetState(StatePart):
    """The session's own ceilings, and the question for more."""

    ceilings: BudgetCeilings = shared(BudgetCeilings)
    question: BudgetQuestion | None = None
    #: The node that the raised budget is for.
    resume_at: str | None = None


class UsageState(StatePart):
    """What reasoning has cost, and where it fell back."""

    spent: Usage = shared(Usage)
    degraded: list[DegradedPhase] = Field(default_factory=list[DegradedPhase])

    def plus(self, phase: Phase, result: Reasoned[Any]) -> "UsageState":
        """With the cost of one more phase."""
        degraded = self.degraded
        if mark := result.degraded:
            marked = DegradedPhase(
                phase=phase,
                failed_mode=mark.failed_mode,
                fallback_mode=mark.fallback_mode,
                fallback_reason=mark.reason,
            )
            degraded = [*degraded, marked]
        return UsageState(spent=self.spent + result.usage, degraded=degraded)

    def spent_on(self, error: AgentError) -> "UsageState":
        """With what a failed phase has cost (`details["usage"]`)."""
        spent = self.spent + Usage(**error.details.get("usage", {}))
        return self.model_copy(update={"spent": spent})


class CatalogueState(StatePart):
    """Which node types the session works with: iteration -> fingerprint of the catalogue, the latest last."""

    fingerprints: dict[str, str] = Field(default_factory=dict[str, str])


#: Values by domain. Small ones only: larger texts are blobs, and the state holds their hashes.
DomainValues: TypeAlias = dict[str, JsonObject]


def merge_domains(current: DomainValues, change: DomainValues) -> DomainValues:
    """Both, key by key of each domain; where both have a key, `change` counts."""
    return current | {domain: {**current.get(domain, {}), **values} for domain, values in change.items()}


#: The parts that hold such.
_MERGED: Final = frozenset({"artifacts", "facts", "debug"})


class AgentState(StatePart):
    """Everything that a session knows."""

    version: Literal[2] = STATE_VERSION
    request: RequestState = shared(RequestState)
    intent: IntentState = shared(IntentState)
    target: TargetState = shared(TargetState)
    plan: PlanState = shared(PlanState)
    credentials: CredentialState = shared(CredentialState)
    pattern: PatternState = shared(PatternState)
    patch: PatchState = shared(PatchState)
    check: CheckState = shared(CheckState)
    write: WriteState = shared(WriteState)
    tests: TestsState = shared(TestsState)
    review: ReviewState = shared(ReviewState)
    budget: BudgetState = shared(BudgetState)
    usage: UsageState = shared(UsageState)
    catalogue: CatalogueState = shared(CatalogueState)
    #: By domain what tools gave: references that last, structured values, and hashes of blobs with their raw results,
    #: which never reach a prompt.
    artifacts: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    facts: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    debug: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    #: The last answer of the person, normalised: {"type", "action", ...}. Routers read it.
    answer: dict[str, Any] | None = None
    iteration: int = 0
    outcome: Outcome | None = None

    @property
    def is_staged(self) -> bool:
        """Whether the session changes a flow by way of a draft."""
        return self.intent.operation == "update" and self.write.mode == "staged"

    @property
    def full_requirement(self) -> str:
        """The requirement with the answers to the clarifying questions."""
        return " ".join([self.request.requirement, *(answer for _, answer in self.intent.clarifications)])

    @property
    def later_words(self) -> tuple[str, ...]:
        """What the person said after the requirement and the answers, without the feedback that is being worked on."""
        said = self.intent.later
        return tuple(said[:-1] if self.plan.feedback and said[-1:] == [self.plan.feedback] else said)

    def with_words(self, words: str) -> IntentState:
        """The update that keeps what the person says now."""
        return IntentState(later=[*self.intent.later, words])


class Update(TypedDict, total=False):
    """What a node changes. Of a part only the fields that are set count, `artifacts`, `facts` and `debug` are merged by
    domain (`merge_domains`), and the other values are taken as they are."""

    request: RequestState
    intent: IntentState
    target: TargetState
    plan: PlanState
    credentials: CredentialState
    pattern: PatternState
    patch: PatchState
    check: CheckState
    write: WriteState
    tests: TestsState
    review: ReviewState
    budget: BudgetState
    usage: UsageState
    catalogue: CatalogueState
    artifacts: DomainValues
    facts: DomainValues
    debug: DomainValues
    answer: dict[str, Any] | None
    iteration: int
    outcome: Outcome | None


def initial_state(request: Mapping[str, Any]) -> dict[str, Any]:
    """The channels of a new session, from its start request (`StartSession` as JSON)."""
    wanted = {name: request[name] for name in RequestState.model_fields if request.get(name) is not None}
    state = AgentState(
        request=RequestState(**wanted),
        tests=TestsState(questions=request.get("test_questions")),
        budget=BudgetState(ceilings=BudgetCeilings(**(request.get("budget") or {}))),
    )
    return state.model_dump(mode="json", include={"version", *state.model_fields_set})


def changed(state: AgentState, update: Update) -> AgentState:
    """The state with an update."""
    values: dict[str, Any] = {}
    for name, value in update.items():
        current: Any = getattr(state, name)
        if isinstance(value, StatePart):
            value = current.changed_by(value)
        elif name in _MERGED:
            value = merge_domains(current, cast("DomainValues", value))
        values[name] = value
    return state.model_copy(update=values)


def merged(first: Update, then: Update) -> Update:
    """What two updates, one after the other, change: of a part it matters only that it is named."""
    both: dict[str, Any] = {**first, **then}
    for name in _MERGED & first.keys() & then.keys():
        both[name] = merge_domains(cast("DomainValues", first[name]), cast("DomainValues", then[name]))
    return cast("Update", both)


def channel_writes(state: AgentState, after: AgentState, update: Update) -> dict[str, Any]:
    """The channels that an update of `state` to `after` changes, as the JSON that checkpoints hold."""
    writes: dict[str, Any] = {}
    for name, value in update.items():
        current, now = getattr(state, name), getattr(after, name)
        if now != current:
            writes[name] = Kept(now.model_dump(mode="json")) if isinstance(now, StatePart) else value
    return writes
