"""Interrupts: questions of a session to a person, as a union by `type`."""

import json
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypeAliasType

from flowise_dev_agent.patch import Finding, PatchOp
from flowise_dev_agent.patch.model.findings import sentence
from flowise_dev_agent.sanitize import json_text
from flowise_dev_agent.schemas.answers import Action, InterruptType, answer_schema
from flowise_dev_agent.schemas.base import (
    Bounded,
    Contract,
    JsonMapping,
    JsonObject,
    Maybe,
    Versioned,
    Worded,
    read_as,
)
from flowise_dev_agent.schemas.change import Difference, RepairedValue
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm
from flowise_dev_agent.schemas.plan import Approach, Capability, Part, Plan
from flowise_dev_agent.schemas.shown_plan import ShownPlan
from flowise_dev_agent.schemas.usage import BudgetCeilings, DegradedPhase, Usage
from flowise_dev_agent.schemas.verdict import Regression, TestedIteration, Trial, Verdict
from flowise_dev_agent.texts import in_language, translated

WriteMode = Literal["staged", "direct"]


class Option(Worded):
    """An allowed action; answers with any other action are refused."""

    value: Action
    label: str
    description: str = ""


class TargetCandidate(Contract):
    """A candidate for the flow that the person refers to."""

    id: str
    name: str
    type: str
    nodes: int
    node_types: list[str] = Field(default_factory=list, description="The eight most frequent ones.")
    about: str = Field(default="", description="The beginning of its first prompt, secrets masked.")
    updated: str = ""
    deployed: bool = False


class TargetFlow(Contract):
    """The flow to change or copy."""

    id: str
    name: str
    type: str
    deployed: bool


class FlowLink(Contract):
    """A flow with the address of its editor."""

    id: str
    name: str = ""
    url: str


class CredentialCandidate(Contract):
    """A credential of the instance."""

    id: str
    name: str


class MissingCredential(Contract):
    """A credential type that the plan needs: without candidates it is missing, with several one must be chosen."""

    type: str
    candidates: list[CredentialCandidate] = Field(default_factory=list)


class PatternUse(Contract):
    """Pattern, an accepted earlier flow, from which the new flow starts."""

    pattern_used: bool = False
    pattern_id: int | None = None
    ops_in_base: int = 0


class ClarificationData(Bounded):
    """Data of a `clarification`."""

    questions: list[str]
    ambiguity: int | None = None


class SelectTargetData(Bounded):
    """Data of a `select_target`."""

    candidates: list[TargetCandidate]


class Approval(Contract):
    """First of two approvals: the answer waits for another person to give the same one."""

    by: str = Field(description="Name of the key.")
    at: datetime
    action: str
    answer_sha256: str


class Decided(Bounded, Worded):
    """Data of an interrupt whose answer may allow a write."""

    approvals: list[Approval] = Field(
        default_factory=list,
        exclude_if=lambda given: not given,
        description="Approvals so far, if two persons have to approve.",
    )


ApprovalReason: TypeAlias = Literal["plan_ready", "plan_revised", "plan_widened", "question", "declined", "starter"]


class PlanApprovalData(Decided):
    """Data of a `plan_approval`."""

    plan: str = Field(default="", description="Markdown.")
    language: str = Field(default="en", description="Of the person, and of the plan's fixed words where known.")
    contract: Plan
    starter: ChosenStarter | None = Field(
        default=None, description="Form that code chose, if no model read the requirement."
    )
    form: DesignForm | None = Field(
        default=None, description="Form that the plan was made from; an answer may send it, changed, as `design`."
    )
    approaches: list[Approach] = Field(default_factory=list)
    missing_credentials: list[str] = Field(default_factory=list, description="Credential types.")
    target: TargetFlow | None = None
    write_mode: WriteMode | None = None
    notes: list[str] = Field(default_factory=list)
    pattern: PatternUse = PatternUse()
    details: ShownPlan | None = Field(default=None, description="Effects of the plan on the existing flow.")
    assumed: list[Part] = Field(default_factory=list, description="Parts of the requirement that leave a choice.")
    not_done: list[Part] = Field(default_factory=list, description="Parts that the flow will not do, with the reason.")
    capability: Capability | None = Field(default=None, description="Permissions that an approval gives.")
    added: Capability | None = Field(default=None, description="Permissions that the last approval did not give.")


class CredentialCheckData(Decided):
    """Data of a `credential_check`."""

    credentials: list[MissingCredential]


class PatchReviewData(Decided):
    """Data of a `patch_review`."""

    change: Maybe[Difference] = None
    meanwhile: Maybe[Difference] = Field(default=None, description="Changes by someone else since the flow was read.")
    ops: list[PatchOp] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list)
    budget: BudgetCeilings = BudgetCeilings()


class ResultReviewData(Decided):
    """Data of a `result_review`."""

    chatflow: FlowLink
    verdict: Maybe[Verdict] = None
    draft: FlowLink | None = None
    write_mode: WriteMode | None = None
    tests: list[Trial] = Field(default_factory=list)
    baseline: list[Trial] = Field(default_factory=list, description="The same questions, asked before the change.")
    regressions: list[Regression] = Field(default_factory=list)
    repaired: list[RepairedValue] = Field(
        default_factory=list, description="Values that repairs changed after the approval."
    )
    iterations: list[TestedIteration] = Field(
        default_factory=list, description="The iterations that can be accepted, the newest last; empty for one."
    )
    change: Maybe[Difference] = None
    notes: list[str] = Field(default_factory=list)
    usage: Usage = Usage()
    warnings: list[Finding] = Field(default_factory=list)
    to_do: list[str] = Field(default_factory=list, description="What only the person can do, each with its place.")
    placeholders: list[str] = Field(default_factory=list, description="Values that are still to be filled in.")
    degraded: list[DegradedPhase] = Field(default_factory=list)


class ListedInterrupt(Versioned, Worded):
    """An open interrupt in a list, without its data."""

    id: str
    type: InterruptType
    reason: str
    message: str
    options: list[Option]


class _Interrupt(Versioned, Worded):
    id: str = Field(default="", description="Names this question in `resume`.")
    message: str
    options: list[Option]

    def in_language(self, language: str) -> Self:
        """Copy whose own words read in the person's language, as far as the catalogue has it; their codes stay."""
        return _in_language(self, language)

    def as_value(self) -> str:
        """Value for LangGraph's `interrupt`, as text: LangGraph would copy an object deeply."""
        return json_text(self.model_dump(mode="json", exclude={"id"})).decode()


def _in_language(value: Any, language: str) -> Any:
    """Copy of models and lists of them whose coded texts and findings read in a language."""
    if isinstance(value, list):
        return [_in_language(one, language) for one in cast("list[Any]", value)]
    if isinstance(value, Finding):
        return value.model_copy(update={"message": sentence(value.code, value.params, language) or value.message})
    if not isinstance(value, BaseModel) or isinstance(value, Plan):
        return value
    inner = {name: getattr(value, name) for name in type(value).model_fields}
    update: dict[str, Any] = {
        name: _in_language(one, language) for name, one in inner.items() if isinstance(one, BaseModel | list)
    }
    if isinstance(value, Worded):
        coded = {name: value.worded(name) for name in value.texts if isinstance(inner.get(name), str)}
        update |= {name: in_language(words, language) for name, words in coded.items()}
        for place, code in value.texts.items():
            name, _, index = place.partition(".")
            if index.isdigit() and int(index) < len(inner[name]):
                update.setdefault(name, [*inner[name]])[int(index)] = translated(
                    code.as_text(inner[name][int(index)]), language
                )
        update["texts"] = value.texts
    return value.model_copy(update=update) if update else value


def _schema_of(type_: InterruptType) -> Any:
    return Field(default_factory=partial(answer_schema, type_), description="JSON Schema of `answer` in `resume`.")


class ClarificationInterrupt(_Interrupt):
    """Interrupt for an ambiguous requirement."""

    type: Literal["clarification"] = "clarification"
    reason: Literal["ambiguous_requirement"] = "ambiguous_requirement"
    data: ClarificationData
    response_schema: JsonObject = _schema_of("clarification")


class SelectTargetInterrupt(_Interrupt):
    """Interrupt for the choice of an existing flow."""

    type: Literal["select_target"] = "select_target"
    reason: Literal["existing_flow_named", "no_flows", "target_not_found", "target_ambiguous"]
    data: SelectTargetData
    response_schema: JsonObject = _schema_of("select_target")


class PlanApprovalInterrupt(_Interrupt):
    """Interrupt for the approval of a plan, before anything is written."""

    type: Literal["plan_approval"] = "plan_approval"
    reason: ApprovalReason
    data: PlanApprovalData
    response_schema: JsonObject = _schema_of("plan_approval")


class CredentialCheckInterrupt(_Interrupt):
    """Interrupt for a credential that the instance lacks, or of which it has several."""

    type: Literal["credential_check"] = "credential_check"
    reason: Literal["credential_missing", "credential_ambiguous"]
    data: CredentialCheckData
    response_schema: JsonObject = _schema_of("credential_check")


class PatchReviewInterrupt(_Interrupt):
    """Interrupt before a write that cannot continue or that the person wants to see first."""

    type: Literal["patch_review"] = "patch_review"
    reason: Literal["diff_requested", "stale_base", "budget", "repeated_finding"]
    data: PatchReviewData
    response_schema: JsonObject = _schema_of("patch_review")


class ResultReviewInterrupt(_Interrupt):
    """Interrupt for the review of the written and tested flow."""

    type: Literal["result_review"] = "result_review"
    reason: Literal["tests_passed", "tests_failed", "not_tested", "nothing_to_change"]
    data: ResultReviewData
    response_schema: JsonObject = _schema_of("result_review")


Interrupt = TypeAliasType(
    "Interrupt",
    Annotated[
        ClarificationInterrupt
        | SelectTargetInterrupt
        | PlanApprovalInterrupt
        | CredentialCheckInterrupt
        | PatchReviewInterrupt
        | ResultReviewInterrupt,
        Field(discriminator="type"),
    ],
)
INTERRUPT: TypeAdapter[Interrupt] = TypeAdapter(Interrupt, config=ConfigDict(defer_build=True))


def raised_interrupt(value: str | JsonMapping, id_: str) -> Interrupt:
    """Parse the value that a node raised (`as_value`, an object in earlier versions) and set LangGraph's id."""
    fields: JsonMapping = json.loads(value) if isinstance(value, str) else value
    return read_as(INTERRUPT, {**fields, "id": id_})
