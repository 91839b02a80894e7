"""Answers to interrupts, by type of interrupt and then by `action`."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, WithJsonSchema, model_validator
from typing_extensions import TypeAliasType

from flowise_dev_agent.schemas.base import CalledAddress, Contract, JsonObject, JsonValue
from flowise_dev_agent.schemas.designs import DesignForm

InterruptType = Literal[
    "clarification", "select_target", "plan_approval", "credential_check", "patch_review", "result_review"
]
NodeId = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=32_000)]


#: Actions after which nothing is written before the next question, by type of interrupt.
_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "clarification": frozenset({"answer", "go_on", "cancel"}),
    "select_target": frozenset({"select", "create_new", "cancel"}),
    "plan_approval": frozenset({"request_changes", "cancel"}),
    "credential_check": frozenset({"retry", "cancel"}),
    "patch_review": frozenset({"cancel"}),
}


def decides(interrupt_type: str, action: str) -> bool:
    """True if the answer allows or undoes a write, which requires a person with the scope `approve`."""
    return action not in _HARMLESS.get(interrupt_type, frozenset())


class ClarificationAnswers(Contract):
    """One answer per question, in order; an empty string skips a question."""

    action: Literal["answer"] = "answer"
    answers: list[Annotated[str, StringConstraints(max_length=8_000)]] = Field(min_length=1, max_length=3)


class GoOn(Contract):
    """Continue with the information given so far."""

    action: Literal["go_on"]


class SelectTarget(Contract):
    """The flow to change."""

    action: Literal["select"] = "select"
    chatflow_id: Text


class TargetAction(Contract):
    """Create a new flow instead, or stop."""

    action: Literal["create_new", "cancel"]


class EditedValue(Contract):
    """New value for a field. `param` is a name or a path, as in the op `SetParam`."""

    node_id: NodeId
    param: str = Field(min_length=1, max_length=200)
    value: JsonValue


class ManualEdits(Contract):
    """Manual edits of a plan: new values for fields of nodes or of the flow, and nodes to leave out."""

    values: list[EditedValue] = Field(default_factory=list, max_length=100)
    removals: list[NodeId] = Field(default_factory=list, max_length=50)


class ApprovePlan(Contract):
    """Approve the plan, optionally with one of its approaches, other test questions or manual edits."""

    action: Literal["approve"]
    approach: Text | None = None
    edits: ManualEdits | None = None
    test_questions: list[Annotated[Text, StringConstraints(max_length=4_000)]] | None = Field(
        default=None, min_length=1, max_length=10
    )
    real: list[CalledAddress] | None = Field(
        default=None,
        max_length=5,
        description="Addresses of `details.addresses` that the tests really call. All else that reads or changes the "
        "world is simulated then, and code adds no tests.",
    )


class RequestChanges(Contract):
    """Request another plan, with feedback or (for a new flow) with a changed form."""

    action: Literal["request_changes"]
    feedback: Text | None = None
    #: Its schema is long and has a route of its own; webhooks carry the schema of an answer.
    design: Annotated[
        DesignForm | None,
        WithJsonSchema(
            {
                "anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}],
                "description": "A form as `GET /designs/schema` says.",
            }
        ),
    ] = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.feedback is None) == (self.design is None):
            raise ValueError("send either `feedback` or `design`")
        return self


class CancelSession(Contract):
    """Cancel the session; nothing more is written."""

    action: Literal["cancel"]


class RetryCredentials(Contract):
    """Read the instance's credentials again, or continue without them, with a warning."""

    action: Literal["retry", "skip"]


class ChooseCredentials(Contract):
    """Chosen credentials: credential type -> id."""

    action: Literal["choose"] = "choose"
    choose: dict[str, Text] = Field(min_length=1)


class PatchReviewAction(Contract):
    """Decision about a patch that stopped before the write."""

    action: Literal["continue", "replan", "rebase", "overwrite", "cancel"]
    feedback: Text | None = None


class RaiseBudget(Contract):
    """New budget ceilings for this session; a missing one stays as it is."""

    action: Literal["raise_budget"]
    budget: dict[Literal["tokens", "usd"], Annotated[float, Field(gt=0)]] = Field(min_length=1)


class AcceptResult(Contract):
    """Accept the flow. `deploy` sets Flowise's own switch; `iteration` selects one of `data.iterations`."""

    action: Literal["accept"]
    deploy: bool = True
    iteration: int | None = None


class IterateResult(Contract):
    """Change the new flow again: by `feedback` for another plan, or by manual `ops` without a model."""

    action: Literal["iterate"]
    feedback: Text | None = None
    ops: list[JsonObject] | None = Field(
        default=None, min_length=1, max_length=60, description="As in `POST /flows/{id}/apply`."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.feedback is None) == (self.ops is None):
            raise ValueError("send either `feedback` or `ops`")
        return self


class RollbackResult(Contract):
    """Undo the session: its new flow is deleted, a changed flow is restored."""

    action: Literal["rollback"]


_BY_ACTION = Field(discriminator="action")
ClarificationAnswer = TypeAliasType(
    "ClarificationAnswer", Annotated[ClarificationAnswers | GoOn | CancelSession, _BY_ACTION]
)
TargetAnswer = TypeAliasType("TargetAnswer", Annotated[SelectTarget | TargetAction, _BY_ACTION])
PlanAnswer = TypeAliasType("PlanAnswer", Annotated[ApprovePlan | RequestChanges | CancelSession, _BY_ACTION])
CredentialAnswer = TypeAliasType(
    "CredentialAnswer", Annotated[RetryCredentials | ChooseCredentials | CancelSession, _BY_ACTION]
)
PatchReviewAnswer = TypeAliasType("PatchReviewAnswer", Annotated[PatchReviewAction | RaiseBudget, _BY_ACTION])
ResultAnswer = TypeAliasType("ResultAnswer", Annotated[AcceptResult | IterateResult | RollbackResult, _BY_ACTION])

Answer: TypeAlias = (
    ClarificationAnswers
    | GoOn
    | SelectTarget
    | TargetAction
    | ApprovePlan
    | RequestChanges
    | CancelSession
    | RetryCredentials
    | ChooseCredentials
    | PatchReviewAction
    | RaiseBudget
    | AcceptResult
    | IterateResult
    | RollbackResult
)
Action = Literal[
    "answer",
    "go_on",
    "select",
    "create_new",
    "approve",
    "request_changes",
    "retry",
    "choose",
    "skip",
    "continue",
    "replan",
    "rebase",
    "overwrite",
    "raise_budget",
    "accept",
    "iterate",
    "rollback",
    "cancel",
]

_LAZY = ConfigDict(defer_build=True)
#: Reads an answer to an interrupt of a type.
ANSWERS: dict[InterruptType, TypeAdapter[Answer]] = {
    "clarification": TypeAdapter(ClarificationAnswer.__value__, config=_LAZY),
    "select_target": TypeAdapter(TargetAnswer.__value__, config=_LAZY),
    "plan_approval": TypeAdapter(PlanAnswer.__value__, config=_LAZY),
    "credential_check": TypeAdapter(CredentialAnswer.__value__, config=_LAZY),
    "patch_review": TypeAdapter(PatchReviewAnswer.__value__, config=_LAZY),
    "result_review": TypeAdapter(ResultAnswer.__value__, config=_LAZY),
}


@cache
def answer_schema(type_: InterruptType) -> JsonObject:
    """JSON Schema of the answers to an interrupt of a type."""
    return ANSWERS[type_].json_schema()
