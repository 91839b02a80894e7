"""Request bodies: the start of a session and the answer to an interrupt. Unknown fields are refused."""

import hashlib
import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from flowise_dev_agent.patch import PatchOp
from flowise_dev_agent.sanitize import json_size
from flowise_dev_agent.schemas.answers import Answer
from flowise_dev_agent.schemas.attachments import MOST_ATTACHMENTS
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.designs import DesignForm

_MAX_ANSWER_BYTES = 200_000
_DEEPEST_ANSWER = 32


def _storable(text: str) -> str:
    """Refuse texts that Postgres cannot store."""
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("must not contain NUL characters or lone surrogates")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def storable_json(value: JsonValue) -> None:
    """Refuse values that contain texts or numbers Postgres cannot store. Raises ValueError."""
    match value:
        case str():
            _storable(value)
        case dict():
            for key, item in value.items():
                _storable(key)
                storable_json(item)
        case list():
            for item in value:
                storable_json(item)
        case float():
            if not math.isfinite(value):
                raise ValueError("must not contain NaN or infinity")
        case _:
            return


def _not_deep(value: object) -> object:
    """Refuse deep nesting, since later steps read values recursively."""
    level = [value]
    for _ in range(_DEEPEST_ANSWER):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return value
    raise ValueError(f"must not be nested deeper than {_DEEPEST_ANSWER} levels")


def _storable_answer(answer: JsonObject) -> JsonObject:
    storable_json(answer)
    if json_size(answer) > _MAX_ANSWER_BYTES:
        raise ValueError(f"must not be larger than {_MAX_ANSWER_BYTES} bytes")
    return answer


def _storable_ops(ops: list[PatchOp]) -> list[PatchOp]:
    for op in ops:
        storable_json(op.model_dump(mode="json"))
    return ops


class _ShownAsAnswer:
    """Schema of an answer. Any object is accepted here: only the open interrupt decides which answers fit."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter[Answer](Answer).core_schema)


def _iso_8601(value: object) -> object:
    # Pydantic also reads numbers as times, in texts too.
    if isinstance(value, datetime) or (isinstance(value, str) and "T" in value.upper()):
        return value
    raise ValueError("must be a time as ISO 8601, such as 2030-01-31T12:00:00Z")


def _no_text_or_truth_value(value: object) -> object:
    if isinstance(value, str | bool):
        raise ValueError("must be a number")  # noqa: TRY004 - Pydantic shows this kind to the client
    return value


#: Numbers and truth values as JSON has them: a text is neither, and a truth value is not a number.
Whole = Annotated[int, BeforeValidator(_no_text_or_truth_value)]
Number = Annotated[float, BeforeValidator(_no_text_or_truth_value)]
Truth = Annotated[bool, Strict()]
Moment = Annotated[AwareDatetime, BeforeValidator(_iso_8601)]
Storable = Annotated[str, AfterValidator(_storable)]
Line = Annotated[Storable, Field(min_length=1, max_length=200), AfterValidator(_not_blank)]
SessionName = Annotated[Storable, Field(min_length=1, max_length=120), AfterValidator(_not_blank)]
Note = Annotated[Storable, Field(min_length=1, max_length=2_000), AfterValidator(_not_blank)]
Question = Annotated[Storable, Field(min_length=1, max_length=4_000), AfterValidator(_not_blank)]
WebhookUrl = Annotated[Storable, Field(min_length=1, max_length=2_000)]
LongText = Annotated[Storable, Field(min_length=1, max_length=32_000), AfterValidator(_not_blank)]
MAX_OPS: Final = 2_000
#: Ops that a person made by hand.
SentOps = Annotated[
    list[PatchOp], BeforeValidator(_not_deep), AfterValidator(_storable_ops), Field(min_length=1, max_length=MAX_OPS)
]
BaseHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SentAnswer = Annotated[JsonObject, BeforeValidator(_not_deep), AfterValidator(_storable_answer), _ShownAsAnswer()]


class RequestBody(Contract):
    """Base of request bodies. Unknown fields are refused."""

    # FastAPI hides a warning of Pydantic about its own use of a body's type, but only while it builds it at once.
    model_config = ConfigDict(defer_build=False)

    def fingerprint(self) -> str:
        """Hash of the sent fields, which detects another request under the same Idempotency-Key."""
        sent = self.model_dump(mode="json", exclude_unset=True)
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()


class OneOf(RequestBody):
    """Base of bodies in which exactly one of the fields `choices` is given; the others are missing or null.

    A field that stands with a second one also requires that.
    """

    choices: ClassVar[Sequence[tuple[str] | tuple[str, str]]]

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        given = [fields for fields in self.choices if getattr(self, fields[0]) is not None]
        if len(given) != 1:
            raise ValueError(f"send one of {', '.join(fields[0] for fields in self.choices)}")
        if getattr(self, given[0][-1]) is None:
            raise ValueError(f"`{given[0][0]}` needs `{given[0][-1]}`")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        described = handler(schema)
        none: JsonObject = {fields[0]: {"type": "null"} for fields in cls.choices}
        some: JsonValue = {"not": {"type": "null"}}
        handler.resolve_ref_schema(described)["oneOf"] = [
            {"required": [*fields], "properties": none | dict.fromkeys(fields, some)} for fields in cls.choices
        ]
        return described


class Budget(RequestBody):
    """Hard ceilings of the session; a missing one follows the settings."""

    tokens: Whole | None = Field(default=None, ge=1, le=100_000_000)
    usd: Number | None = Field(default=None, gt=0, le=10_000, allow_inf_nan=False)


#: Requirement texts of sessions of which only ops say what to do.
BY_HAND: Final = ("Change the flow by hand.", "Build a flow by hand.")


class StartSession(RequestBody):
    """The body of `POST /sessions`."""

    requirement: LongText = Field(default="", description="What to build or change, in plain words.")
    design: DesignForm | None = Field(
        default=None, description="A new flow part by part, instead of `requirement`; see `GET /designs/schema`."
    )
    ops: SentOps | None = Field(
        default=None,
        description="The change as ops: the flow with the id `target` is changed by them, or a new one is made, called "
        "`session_name`. No model writes any; see `POST /flows/preview`. A `requirement` beside them is planned for "
        "the flow that they make.",
    )
    base_sha256: BaseHash | None = Field(
        default=None, description="With `ops`: refuse (409) when the flow is not this one any more."
    )
    attachments: list[UUID] = Field(
        default_factory=list[UUID],
        max_length=MOST_ATTACHMENTS,
        description="Ids of files that go with the requirement; see `POST /attachments`.",
    )
    new_name: SessionName | None = Field(
        default=None,
        description="Instead of `requirement`: the name of a plain copy of `target` (`operation: copy`), or its new "
        "name (`operation: update`).",
    )
    thread_id: UUID | None = Field(default=None, description="The session's id; made by the server when left out.")
    session_name: SessionName | None = Field(default=None, description="Display title; made from the requirement.")
    operation: Literal["auto", "create", "update", "copy"] = Field(default="auto", description="Forces the intent.")
    target: Line | None = Field(default=None, description="Id or name of the chatflow to update or copy.")
    flowise_instance_id: Line | None = Field(default=None, description="The Flowise instance; the default one.")
    write_mode: Literal["staged", "direct"] | None = Field(
        default=None, description="Staged (through a draft) for updates and direct for creates when left out."
    )
    review_patch: Truth = Field(default=False, description="Stop with the diff before any write.")
    skip_clarification: Truth | None = Field(default=None, description="Ask no questions; the setting when left out.")
    test_trials: Whole = Field(default=1, ge=1, le=10, description="Number of times that each question must pass.")
    test_questions: list[Question] | None = Field(
        default=None, max_length=10, description="Questions to test with; the plan's own if left out."
    )
    model: Line | None = Field(default=None, description="Model for the agent's reasoning in this session.")
    budget: Budget | None = None
    webhook_url: WebhookUrl | None = Field(
        default=None, description="Called whenever the session asks, ends or fails. https, at a public address."
    )
    webhook_own_secret: Truth = Field(
        default=False, description="Sign with a secret of this session's own, shown once in the answer to this start."
    )

    @model_validator(mode="before")
    @classmethod
    def _says_what_to_build(cls, data: Any) -> Any:
        """Add the text of a `design` or `new_name` as requirement: lists show it, and the judging model reads it."""
        if not isinstance(data, dict):
            return data
        sent: dict[str, Any] = {**data}
        if sent.get("new_name") is not None:
            return _with_new_name(sent)
        if sent.get("ops") is not None:
            return _with_ops(sent)
        if sent.get("design") is None:
            if "requirement" not in sent:
                raise ValueError("send `requirement` or `new_name` (a text), `design` (an object) or `ops` (a list)")
            return sent
        if sent.get("operation", "auto") not in ("auto", "create") or sent.get("target") is not None:
            raise ValueError("a `design` describes a new flow: leave `operation` and `target` out")
        try:
            form = DesignForm.model_validate(sent["design"])
            text = form.as_text()
        except ValidationError:
            # The validation of the field `design` reports the errors.
            return {**sent, "requirement": "design"}
        if form.needs:
            raise ValueError(f"the `design` is not complete. Fill in: {', '.join(f'`{one}`' for one in form.needs)}")
        if sent.get("requirement", text) != text:
            raise ValueError("send either `requirement` (a text) or `design` (an object), not both")
        return {**sent, "requirement": text}

    @model_validator(mode="after")
    def _has_a_webhook_to_sign(self) -> "StartSession":
        if self.webhook_own_secret and self.webhook_url is None:
            raise ValueError("`webhook_own_secret` needs a `webhook_url`")
        return self


def _with_new_name(sent: dict[str, Any]) -> dict[str, Any]:
    """Add the requirement text of a request that only copies or renames a flow. Raises ValueError."""
    if sent.get("operation") not in ("copy", "update") or not sent.get("target"):
        raise ValueError("`new_name` needs a `target` and the `operation` copy or update")
    if sent.get("design") is not None or sent.get("attachments"):
        raise ValueError("send either `new_name`, `design` or `requirement`")
    does, how = ("Copy", "as") if sent["operation"] == "copy" else ("Rename", "to")
    text = f"{does} '{sent['target']}' {how} '{sent['new_name']}'."
    if sent.get("requirement", text) != text:
        raise ValueError("send either `requirement` (a text) or `new_name` (a text), not both")
    return {**sent, "requirement": text}


def _with_ops(sent: dict[str, Any]) -> dict[str, Any]:
    """Add the requirement text of a request with ops. Raises ValueError."""
    operation = "update" if sent.get("target") else "create"
    if sent.get("operation", "auto") not in ("auto", operation) or sent.get("design") is not None:
        raise ValueError("`ops` change the flow `target`, or without it make a new one; leave `design` out")
    text = BY_HAND[0 if sent.get("target") else 1]
    return {**sent, "requirement": sent.get("requirement") or text, "operation": operation}


class RenameSession(RequestBody):
    """The body of `PATCH /sessions/{id}/name`."""

    session_name: SessionName


class ResumeSession(OneOf):
    """The body of `POST /sessions/{id}/resume`: a typed `answer`, or a free text `response`."""

    choices = (("response",), ("answer", "interrupt_id"))

    interrupt_id: Line | None = Field(default=None, description="The interrupt that is answered; needed with `answer`.")
    answer: SentAnswer | None = Field(default=None, description="As the interrupt's `response_schema` says.")
    response: LongText | None = Field(
        default=None, description="Plain yes-words approve, a few commands act, everything else is feedback."
    )
    attachments: list[UUID] = Field(
        default_factory=list[UUID],
        max_length=MOST_ATTACHMENTS,
        description="Ids of files that go with the answer: the session has them from then on.",
    )
