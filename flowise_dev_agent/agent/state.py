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
from flowise_dev_agent.flowise.uploads import as_kept
from flowise_dev_agent.models.capabilities import Loss
from flowise_dev_agent.patch import Finding, PatchOp
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.publish import Base
from flowise_dev_agent.schemas.base import Contract, JsonObject, Kept, KeptText, Outcome, TextCode, Worded
from flowise_dev_agent.schemas.change import Conflict, Difference
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm, stored_form
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.schemas.interrupts import MissingCredential, TargetCandidate, TargetFlow, WriteMode
from flowise_dev_agent.schemas.plan import Capability, FunctionSample, Intent, Operation, Plan, PlannedValue
from flowise_dev_agent.schemas.requests import BY_HAND
from flowise_dev_agent.schemas.usage import BudgetCeilings, DegradedPhase, Usage
from flowise_dev_agent.schemas.verdict import TestedIteration, Trial, Verdict
from flowise_dev_agent.settings import Phase

#: Version of the state's shape; `state_upgrade` reads checkpoints of earlier versions.
STATE_VERSION: Final = 2
#: Rounds of clarifying questions in one session.
MAX_CLARIFICATION_ROUNDS: Final = 2


def shared(kind: type[Contract]) -> Any:
    """Pydantic field with one shared default model. A plain default would be deep-copied each time."""
    return Field(default_factory=cache(kind))


class StatePart(Contract):
    """Part of the state. Every field has a default, so that an update can set a few."""

    @model_validator(mode="wrap")
    @classmethod
    def _read_once(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate a part once and cache the model: every node and edge reads it, mostly unchanged."""
        if not isinstance(value, Kept):
            return read(value)
        model = getattr(value, "model", None)
        if not isinstance(model, cls):
            model = value.model = read(value)
        return model

    def changed_by(self, change: Self) -> Self:
        """Copy of this part with the fields that are set in `change`."""
        return self.model_copy(update={name: getattr(change, name) for name in change.model_fields_set})


class RequestState(StatePart):
    """Request of the person; only a form may replace another form or a text."""

    requirement: str = ""
    #: The form that describes the flow, when the person filled one in.
    design: Annotated[DesignForm | None, BeforeValidator(stored_form)] = None
    #: Name of a plain copy, or new name of the flow; set if nothing else is requested.
    new_name: str | None = None
    #: The ops of a person who made the flow by hand, and its name if it is new.
    ops: list[PatchOp] | None = None
    session_name: str | None = None
    operation: Operation | Literal["auto"] = "auto"
    target: str | None = None
    write_mode: WriteMode | None = None
    review_patch: bool = False
    #: None: the settings decide.
    skip_clarification: bool | None = None
    test_trials: int = 1
    model: str | None = None


class IntentState(StatePart):
    """Intent of the person."""

    classified: Intent | None = None
    #: Operation in force: from the request, else from the intent, else the person's choice.
    operation: Operation | None = None
    questions: list[str] = Field(default_factory=list[str])
    #: Answered clarifying questions: (question, answer).
    clarifications: list[tuple[str, str]] = Field(default_factory=list[tuple[str, str]])
    rounds: int = 0
    #: Later requests of the person, in order: changes of plans and of results.
    later: list[str] = Field(default_factory=list[str])

    @property
    def current(self) -> Intent:
        """Intent with the operation in force, for nodes after `classify_intent`. Raises LookupError before."""
        if self.classified is None:
            raise LookupError("The requirement has not been read yet.")
        return self.classified.model_copy(update={"operation": self.operation or self.classified.operation})


class TargetSearch(Contract):
    """Result of the target search. Without `fits`, the candidates are the last changed flows."""

    fits: bool
    #: A flow has the name that the text mentions.
    named: bool
    total: int
    #: Search words, if the request or the intent had any.
    wanted: str | None
    #: Name of the flow that the request names by its id, if sessions do not change flows of its type.
    unchangeable: str = ""


class TargetState(StatePart):
    """Existing flow to change, copy or ask about."""

    candidates: list[TargetCandidate] = Field(default_factory=list[TargetCandidate])
    search: TargetSearch | None = None
    chatflow_id: str | None = None
    flow: TargetFlow | None = None


class PlanState(StatePart):
    """Plan and the person's feedback on it."""

    contract: Plan | None = None
    #: The person approved a plan, and no later one went beyond it.
    approved: bool = False
    #: Capability that the last approval covers.
    agreed: Capability | None = None
    #: Values of the last approval, and the iteration that it is for: what a later one changes is a repair.
    agreed_values: list[PlannedValue] = Field(default_factory=list[PlannedValue])
    agreed_iteration: int = 0
    #: Quotes of the requirements that the person agreed to drop.
    agreed_not_done: list[str] = Field(default_factory=list[str])
    #: Source of a plan that no model made.
    starter: ChosenStarter | None = None
    #: True if no model made the plan: it follows from a form, a starter or a new name.
    by_form: bool = False
    #: Reason why the op writer needs more than the approved plan, until the person has answered.
    amended: str | None = None
    approach: str | None = None
    feedback: str | None = None
    #: Names of the document stores that the plan uses by id.
    names: dict[str, str] = Field(default_factory=dict[str, str])
    #: Notes for the person in addition to the plan.
    notes: list[KeptText] = Field(default_factory=list[TextCode])

    @property
    def current(self) -> Plan:
        """Plan contract, for nodes after `plan_v2`. Raises LookupError before."""
        if self.contract is None:
            raise LookupError("There is no plan yet.")
        return self.contract


class CredentialState(StatePart):
    """Credentials by type; ids only."""

    missing: list[MissingCredential] = Field(default_factory=list[MissingCredential])
    #: Credential type -> credential id.
    chosen: dict[str, str] = Field(default_factory=dict[str, str])
    #: Credential types that the person decided to go without.
    skipped: list[str] = Field(default_factory=list[str])


class PatternState(StatePart):
    """Accepted flow that a new one starts from, and the ops taken over from it."""

    id: int | None = None
    ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    flow_sha: str | None = None


class PatchState(StatePart):
    """Ops of this iteration."""

    scope: PatchScope | None = None
    ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    #: Samples for the functions in the ops.
    samples: list[FunctionSample] = Field(default_factory=list[FunctionSample])
    #: Reason why the flow already meets the plan.
    nothing_to_change: str | None = None
    #: True if the person, not the op writer, wrote the ops.
    own: bool = False


class CheckState(StatePart):
    """Compiled flow, and the findings on it or its ops."""

    flow_sha: str | None = None
    #: Difference to the base.
    change: Difference | None = None
    findings: list[Finding] = Field(default_factory=list[Finding])
    #: Keys of the errors in `findings`; the same keys twice stop the retries.
    error_keys: list[str] = Field(default_factory=list[str])
    #: Node types that no snapshot knows.
    unknown_types: list[str] = Field(default_factory=list[str])
    #: Hash of the bytes that passed validation: it authorises one write.
    validated_sha: str | None = None
    retries: int = 0
    repairs: int = 0
    #: Reason why the retries ended, for the person.
    given_up: KeptText | None = None


class StaleBase(Worded):
    """Concurrent change of the live flow (`live`) or of the written flow (`work`) since it was read."""

    where: Literal["live", "work"]
    message: str
    found: Base
    found_sha: str
    meanwhile: Difference


def _whole_settings(given: object) -> object:
    """Settings as they are stored now; the release before stored the uploads alone."""
    if isinstance(given, dict) and not given.keys() <= FlowSettings.model_fields.keys():
        return FlowSettings(chatbot_config=as_kept(cast("JsonObject", given))(None))
    return cast("object", given)


class WriteState(StatePart):
    """Written flow, and the target of the next write."""

    stage: Stage = Stage.APPLY
    mode: WriteMode | None = None
    #: State at the last read of the live flow, and of the flow that ops are written to (the draft or the flow itself).
    live_base: Base | None = None
    base: Base | None = None
    #: Hash of the flow before the session, and as last read or written.
    original_sha: str | None = None
    current_sha: str | None = None
    #: Hash of the settings of the flow before the session.
    settings_sha: str | None = None
    #: Uploads before a session that the release before began.
    original_settings: Annotated[FlowSettings | None, BeforeValidator(_whole_settings)] = None
    draft_id: str | None = None
    chatflow_id: str | None = None
    chatflow_name: str | None = None
    #: Ops written since the base was read.
    applied_ops: list[PatchOp] = Field(default_factory=list[PatchOp])
    #: Hash of the compiled flow whose change the person has seen.
    reviewed_sha: str | None = None
    #: Document stores that the session made: name -> id.
    stores: dict[str, str] = Field(default_factory=dict[str, str])
    #: Custom tools that the session uses as it planned them: key -> id.
    tools: dict[str, str] = Field(default_factory=dict[str, str])
    stale: StaleBase | None = None
    #: Writes that someone else overwrote at once.
    conflicts: list[Conflict] = Field(default_factory=list[Conflict])


class TestsState(StatePart):
    """Test questions and answers; the full texts are in the blob `answers_sha`."""

    __test__ = False  # not a pytest class

    #: The person's own test questions; None: the plan's tests are used.
    questions: list[str] | None = None
    #: Addresses that the tests really call, as the person named them.
    real: list[str] = Field(default_factory=list[str])
    results: list[Trial] = Field(default_factory=list[Trial])
    #: Conversations in which a simulated call failed or answered nothing; nobody judges them.
    probes: list[Trial] = Field(default_factory=list[Trial])
    #: What these showed, and what no test reached.
    ways: list[KeptText] = Field(default_factory=list[KeptText])
    answers_sha: str | None = None
    #: Results of the same questions before the change; None until they were asked.
    baseline: list[Trial] | None = None
    #: Hash of the tested bytes, which may be promoted.
    tested_sha: str | None = None
    #: Copy of the flow that is tested in its place, because it changes the world.
    copy_id: str | None = None


class KeptIteration(TestedIteration):
    """Iteration that can be accepted later: the flow, and the hash of its bytes when tested."""

    flow_sha: str
    tested_sha: str
    #: What the tests found wrong: the reason of what the next iteration changes.
    reason: KeptText | None = None


class ReviewState(StatePart):
    """Result of the tests. With `ask` the person decides, since no remedy is known."""

    verdict: Verdict | None = None
    #: Iterations written onto the same base and tested, the newest last.
    iterations: list[KeptIteration] = Field(default_factory=list[KeptIteration])
    next_step: Literal["iterate", "review", "ask"] | None = None


class BudgetQuestion(Worded):
    """Open question for a higher budget; `node` continues once it is raised."""

    node: str
    message: str


class BudgetState(StatePart):
    """Ceilings of the session, and the question for more."""

    ceilings: BudgetCeilings = shared(BudgetCeilings)
    question: BudgetQuestion | None = None
    #: The node that the raised budget is for.
    resume_at: str | None = None


class UsageState(StatePart):
    """Cost and fallbacks of reasoning."""

    spent: Usage = shared(Usage)
    degraded: list[DegradedPhase] = Field(default_factory=list[DegradedPhase])
    #: What phases wanted and the model does not take.
    lost: list[Loss] = Field(default_factory=list[Loss])

    def plus(self, phase: Phase, result: Reasoned[Any]) -> "UsageState":
        """Usage including the cost of one more phase."""
        degraded = self.degraded
        if mark := result.degraded:
            marked = DegradedPhase(
                phase=phase,
                failed_mode=mark.failed_mode,
                fallback_mode=mark.fallback_mode,
                fallback_reason=mark.reason,
            )
            degraded = [*degraded, marked]
        lost: list[Loss] = [*self.lost, *sorted(result.lost.difference(self.lost))]
        return UsageState(spent=self.spent + result.usage, degraded=degraded, lost=lost)

    def spent_on(self, error: AgentError) -> "UsageState":
        """Usage including the cost of a failed phase (`details["usage"]`)."""
        spent = self.spent + Usage(**error.details.get("usage", {}))
        return self.model_copy(update={"spent": spent})


class CatalogueState(StatePart):
    """Catalogues of the session: iteration -> fingerprint, the latest last."""

    fingerprints: dict[str, str] = Field(default_factory=dict[str, str])


#: Values by domain. Small ones only: larger texts are blobs, and the state holds their hashes.
DomainValues: TypeAlias = dict[str, JsonObject]


def merge_domains(current: DomainValues, change: DomainValues) -> DomainValues:
    """Merge per domain; on conflict `change` wins."""
    return current | {domain: {**current.get(domain, {}), **values} for domain, values in change.items()}


#: Parts of the state with values by domain.
_MERGED: Final = frozenset({"artifacts", "facts", "debug"})


class AgentState(StatePart):
    """Complete state of a session."""

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
    #: Tool results by domain: persistent references, structured values, and hashes of blobs with raw results, which
    #: never reach a prompt.
    artifacts: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    facts: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    debug: Annotated[DomainValues, merge_domains] = Field(default_factory=dict)
    #: The last answer of the person, normalised: {"type", "action", ...}. Routers read it.
    answer: dict[str, Any] | None = None
    iteration: int = 0
    outcome: Outcome | None = None

    @property
    def is_staged(self) -> bool:
        """True if the session changes a flow by way of a draft."""
        return self.intent.operation == "update" and self.write.mode == "staged"

    @property
    def language(self) -> str:
        """Language of the person (ISO 639-1); English before the requirement is read."""
        return self.intent.classified.language if self.intent.classified else "en"

    @property
    def full_requirement(self) -> str:
        """Requirement with the answers to the clarifying questions."""
        return " ".join([self.request.requirement, *(answer for _, answer in self.intent.clarifications)])

    @property
    def later_words(self) -> tuple[str, ...]:
        """Messages of the person after the requirement and its clarifications, except feedback still in work."""
        said = self.intent.later
        return tuple(said[:-1] if self.plan.feedback and said[-1:] == [self.plan.feedback] else said)

    @property
    def words_to_come(self) -> str | None:
        """Requirement beside the person's ops, until they are written: it is for the flow that they make."""
        request = self.request
        return (
            request.requirement if request.ops and not self.iteration and request.requirement not in BY_HAND else None
        )

    def with_words(self, words: str) -> IntentState:
        """Update that stores the person's new message."""
        return IntentState(later=[*self.intent.later, words])


class Update(TypedDict, total=False):
    """Update returned by a node. Only the set fields of a part are applied; `artifacts`, `facts` and `debug` are merged
    per domain (`merge_domains`); other values replace the old ones.
    """

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
    """Channels of a new session, from its start request (`StartSession` as JSON)."""
    wanted = {name: request[name] for name in RequestState.model_fields if request.get(name) is not None}
    state = AgentState(
        request=RequestState(**wanted),
        tests=TestsState(questions=request.get("test_questions")),
        budget=BudgetState(ceilings=BudgetCeilings(**(request.get("budget") or {}))),
    )
    return state.model_dump(mode="json", include={"version", *state.model_fields_set})


def changed(state: AgentState, update: Update) -> AgentState:
    """Apply an update to the state."""
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
    """Combine two consecutive updates. State parts keep only the second value: callers need just their names."""
    both: dict[str, Any] = {**first, **then}
    for name in _MERGED & first.keys() & then.keys():
        both[name] = merge_domains(cast("DomainValues", first[name]), cast("DomainValues", then[name]))
    return cast("Update", both)


def channel_writes(state: AgentState, after: AgentState, update: Update) -> dict[str, Any]:
    """Channels that change between `state` and `after`, as JSON for checkpoints."""
    writes: dict[str, Any] = {}
    for name, value in update.items():
        current, now = getattr(state, name), getattr(after, name)
        if now != current:
            writes[name] = Kept(now.model_dump(mode="json")) if isinstance(now, StatePart) else value
    return writes
