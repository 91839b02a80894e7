"""Bodies and results of checks and tests of flows without a session."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, field_validator, model_validator

from flowise_dev_agent.patch import Finding, OtherVersion, errors
from flowise_dev_agent.schemas.base import CalledAddress, Contract, Failure, Worded
from flowise_dev_agent.schemas.flow_writes import FlowText, FlowType
from flowise_dev_agent.schemas.plan import TestCase, numbered
from flowise_dev_agent.schemas.requests import Line, LongText, OneOf, RequestBody, Whole, storable_json
from flowise_dev_agent.schemas.verdict import Trial

_TYPE = "Flowise's type; found from the nodes when left out."


def _may_lack(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name not in {"id", "turns"}]
    schema["properties"]["turns"].pop("minItems")


class GivenTest(TestCase):
    """A conversation with the flow, of one to four turns (none for a form, a webhook or a schedule).

    A test without an id gets the next free one.
    """

    model_config = ConfigDict(json_schema_extra=_may_lack)


#: As people and programs write them.
GivenTests = Annotated[list[GivenTest], numbered("t")]


#: Most tests of a flow's set, and of one test of a flow.
MOST_IN_SET: Final = 50


class PutTestSet(OneOf):
    """The test set of a flow: as data, or the text of a file."""

    choices = (("tests",), ("text",))

    tests: GivenTests | None = Field(default=None, max_length=MOST_IN_SET)
    text: LongText | None = Field(default=None, description="A file: YAML, JSON or CSV, as `format` says.")
    format: Literal["json", "yaml", "csv"] = "yaml"

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        storable_json(self.model_dump(mode="json"))
        return self


class TestSetView(Contract):
    """The test set of a flow: what people marked, accepted or gave."""

    __test__ = False  # not a pytest class

    tests: list[TestCase]
    text: str | None = Field(description="The same as a file, with `format=yaml` or `csv`.")


class TestMark(RequestBody):
    """A person's judgement of a test of a session. The test goes into the flow's set with what they expect."""

    __test__ = False  # not a pytest class

    good: bool
    contains: list[Line] = Field(default_factory=list, max_length=10, description="What the answer has to contain.")
    excludes: list[Line] = Field(default_factory=list, max_length=10, description="What it must not contain.")


class ValidateFlow(RequestBody):
    """The body of `POST /flows/validate`."""

    flow_data: FlowText = Field(description="`flowData` as text, as Flowise stores it.")
    kind: FlowType | None = Field(default=None, description=_TYPE)


class FlowValidation(Contract):
    """Result of the validator. `valid` means without errors."""

    valid: bool
    errors: list[Finding] = Field(default_factory=list)
    warnings: list[Finding] = Field(default_factory=list)

    @classmethod
    def of(cls, findings: list[Finding]) -> Self:
        """Make the result from all findings."""
        forbidding = errors(findings)
        return cls(
            valid=not forbidding, errors=forbidding, warnings=[item for item in findings if item not in forbidding]
        )


class ValidatedFlow(Contract):
    """The answer of `POST /flows/validate`."""

    validation: FlowValidation
    versions: list[OtherVersion] = Field(
        default_factory=list[OtherVersion], description="Nodes whose types have another version on the server."
    )


class TestFlow(RequestBody):
    """The body of `POST /flows/{id}/test`. A test without an id gets the next free one."""

    __test__ = False  # not a pytest class

    tests: GivenTests = Field(
        default_factory=list,
        max_length=MOST_IN_SET,
        description="Conversations; when left out the flow's test set, or one plain question without one.",
    )
    trials: Whole = Field(
        default=1, ge=1, le=10, description="Number of times that each conversation is held and has to pass."
    )
    real: bool | Annotated[list[CalledAddress], Field(min_length=1, max_length=5)] = Field(
        default=False,
        description="Ask the flow itself, which really calls what it calls. Else a copy is asked, in which what "
        "changes the world is simulated; with a list of addresses (scheme, host and port) these are called, and "
        "what reads elsewhere is simulated too.",
    )
    version: str | None = Field(
        default=None, pattern=r"^v[1-9][0-9]{0,8}$", description="Ask this version of the flow, such as `v4`, instead."
    )
    ways: bool = Field(
        default=False,
        description="Also take each branch of an agentflow, and let each simulated call fail and answer nothing.",
    )

    @model_validator(mode="after")
    def _calls_what_is_asked_for(self) -> Self:
        if self.ways and isinstance(self.real, list):
            raise ValueError("`ways` adds tests of its own; leave it out where `real` names addresses")
        return self

    @field_validator("tests")
    @classmethod
    def _is_checkable(cls, tests: list[GivenTest]) -> list[GivenTest]:
        for test in tests:
            storable_json(test.model_dump(mode="json"))
            if test.expect.language:
                raise ValueError(f"{test.id}: `expect.language` needs a judge; use `contains` and `excludes`")
        return tests


class TestFlowText(TestFlow):
    """The body of `POST /flows/test`: a flow that is not on the server."""

    flow_data: FlowText = Field(description="`flowData` as text. It is tested as a draft, which is deleted afterwards.")
    kind: FlowType | None = Field(default=None, description=_TYPE)


class TestSummary(Contract):
    """Figures of a test: the questions that passed in each of `k` trials, and what these took."""

    __test__ = False  # not a pytest class

    k: int
    questions: int
    passed: int
    duration_ms: int = Field(description="Sum over the trials.")
    tokens: int = Field(description="Sum over the trials, of the models that tell them.")
    usd: float | None = Field(default=None, description="Sum over the trials; null if the price of one is not known.")

    @classmethod
    def of(cls, trials: list[Trial]) -> Self:
        """Make the figures of trials."""
        by_test: dict[str, list[bool]] = {}
        for trial in trials:
            by_test.setdefault(trial.test or trial.question, []).append(trial.passed)
        return cls(
            k=max((len(found) for found in by_test.values()), default=0),
            questions=len(by_test),
            passed=sum(all(found) for found in by_test.values()),
            duration_ms=sum(trial.duration_ms for trial in trials),
            tokens=sum(trial.tokens for trial in trials),
            usd=sum(prices)
            if trials and len(prices := [one.usd for one in trials if one.usd is not None]) == len(trials)
            else None,
        )


class FlowTestView(Worded):
    """A test of a flow. `passed` is null until it is done, and true when every conversation was held and passed."""

    id: UUID
    instance: str
    chatflow_id: str | None = Field(description="Null for a flow that was sent as text.")
    status: Literal["queued", "running", "done", "failed"]
    passed: bool | None = None
    trials: list[Trial] = Field(default_factory=list)
    summary: TestSummary | None = None
    ways: list[str] = Field(
        default_factory=list,
        description="What the flow did where a simulated call failed or answered nothing, and what no test reached.",
    )
    error: Failure | None = Field(default=None, description="Why it could not be tested.")
    created_at: datetime
    updated_at: datetime

    @property
    def is_over(self) -> bool:
        """True if the test has ended."""
        return self.status in ("done", "failed")
