"""Base classes of the shared models: strict fields, stored versions, size limits, texts by code."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.patch.model.json_text import JsonObject, JsonValue
from flowise_dev_agent.sanitize import json_size
from flowise_dev_agent.texts import Param, Text

JsonMapping: TypeAlias = Mapping[str, JsonValue]
#: Outcome of an ended session.
Outcome: TypeAlias = Literal["accepted", "answered", "rolled_back", "declined", "cancelled"]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

#: Version 1 wrote `{}` where there was nothing to say; version 2 writes null.
Maybe = Annotated[T | None, BeforeValidator(lambda value: None if value == {} else value)]


def _as_origin(text: str) -> str:
    """Read an address as Flowise does. Clients are installed without its parser: for them the service reads it."""
    if find_spec("ada_url") is None:
        return text
    from flowise_dev_agent.patch.model.addresses import named_origin

    return named_origin(text)


#: Address that tests really call: scheme, host and port.
CalledAddress = Annotated[str, Field(max_length=300), AfterValidator(_as_origin)]


class Contract(BaseModel):
    """Base of all models: immutable, unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, json_schema_serialization_defaults_required=True
    )


class TextCode(Contract):
    """Code of a catalogue text, with parameters. A parameter that is a text itself also holds its English text."""

    code: str
    params: "dict[str, str | int | float | list[str] | TextCode]" = Field(default_factory=dict)
    text: str = Field(default="", description="In English; of a parameter.", exclude_if=lambda text: not text)

    @classmethod
    def of(cls, text: Text, *, inside: bool = False) -> "TextCode":
        """Take the code and the parameters of a text."""
        params = {
            name: cls.of(value, inside=True) if isinstance(value, Text) else value
            for name, value in text.params.items()
        }
        return cls(code=text.code, params=params, text=str(text) if inside else "")

    def as_text(self, english: str) -> Text:
        """Rebuild the text."""
        params: dict[str, Param] = {
            name: value.as_text(value.text) if isinstance(value, TextCode) else value
            for name, value in self.params.items()
        }
        return Text(self.code, english, params)

    @property
    def words(self) -> str:
        """The text in English, with its code if it has one."""
        return self.as_text(self.text) if self.code else self.text


def kept(words: str) -> TextCode:
    """Convert a text to a code with its English text, for storage."""
    return TextCode.of(words, inside=True) if isinstance(words, Text) else TextCode(code="", text=words)


#: Earlier versions stored only the English text.
KeptText = Annotated[TextCode, BeforeValidator(lambda value: kept(value) if isinstance(value, str) else value)]


class Worded(Contract):
    """Model whose fields hold texts in English; `texts` has their codes, for other languages."""

    texts: dict[str, TextCode] = Field(
        default_factory=dict[str, TextCode],
        exclude_if=lambda codes: not codes,
        description="Codes of the texts in the fields, by name of the field; `notes.0` is the first of a list.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_codes(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        found = dict(_codes(cast("dict[str, Any]", values)))
        return {**values, "texts": {**found, **values.get("texts", {})}} if found else values

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with other values, and the codes of these values."""
        if update and "texts" not in update:
            left = {name: code for name, code in self.texts.items() if name.partition(".")[0] not in update}
            update = {**update, "texts": {**left, **dict(_codes(update))}}
        return super().model_copy(update=update, deep=deep)

    def worded(self, field: str) -> str:
        """The text of a field, with its code if it has one."""
        english: str = getattr(self, field)
        return self.texts[field].as_text(english) if field in self.texts else english


def _codes(values: Mapping[str, Any]) -> Iterator[tuple[str, TextCode]]:
    for name, value in values.items():
        # By exact type: it is asked for each value of each model with words.
        kind = type(value)
        if kind is Text:
            yield name, TextCode.of(value)
        elif kind is list or kind is tuple:
            for index, one in enumerate(cast("list[Any]", value)):
                if type(one) is Text:
                    yield f"{name}.{index}", TextCode.of(one)


class Kept(dict[str, Any]):
    """A JSON object that is never changed, with the last model that was parsed from it."""

    __slots__ = ("model",)
    model: BaseModel


class Versioned(Contract):
    """Root of a stored document. A document without `version` has version 1; `read` accepts both versions."""

    version: Literal[2] = 2


class Bounded(Contract):
    """Model with a limited size."""

    truncated: list[str] = Field(
        default_factory=list,
        exclude_if=lambda names: not names,
        description="Fields that were left out because of their size, if any.",
    )

    def fitted(self, limit: int) -> Self:
        """Copy of at most `limit` bytes of JSON, as far as possible: fields with a default are left out, largest first.

        `truncated` names what was left out.
        """
        return self if json_size(self.model_dump(mode="json")) <= limit else self._cut(limit)

    def fitted_json(self, limit: int, *, exclude_defaults: bool = False) -> JsonObject:
        """JSON of `fitted`. With `exclude_defaults`, default values are left out and do not count."""
        text: JsonObject = self.model_dump(mode="json", exclude_defaults=exclude_defaults)
        if json_size(text) <= limit:
            return text
        return self._cut(limit).model_dump(mode="json", exclude_defaults=exclude_defaults)

    def _cut(self, limit: int) -> Self:
        shown: JsonObject = self.model_dump(mode="json", exclude_defaults=True)
        fields = type(self).model_fields
        spare = [name for name in shown if name != "truncated" and not fields[name].is_required()]
        kept = self
        for name in sorted(spare, key=lambda name: json_size(shown[name]), reverse=True):
            if json_size(kept.model_dump(mode="json")) <= limit:
                break
            default = fields[name].get_default(call_default_factory=True)
            kept = kept.model_copy(update={name: default, "truncated": [*kept.truncated, name]})
        return kept


def read(model: type[M], row: JsonMapping) -> M:
    """Parse a stored document of any release; keys that this one does not have are dropped.

    Raises pydantic.ValidationError.
    """
    return model.model_validate(row, extra="ignore")


def view_of(model: type[M], row: object, **given: Any) -> M:
    """Make a view of what a row has under the same names, and of what is given."""
    own = {name: getattr(row, name) for name in model.model_fields if name not in given and hasattr(row, name)}
    return model.model_validate({**own, **given}, extra="ignore")


def read_as(adapter: TypeAdapter[T], row: JsonMapping) -> T:
    """Parse like `read`, for a union of models."""
    return adapter.validate_python(row, extra="ignore")


class FieldError(Contract):
    """One error in a request."""

    source: str = Field(description="`body`, `query`, `path` or `header`")
    pointer: str = Field(description="where in the source, as a JSON pointer")
    code: str
    detail: str


class Problem(Worded):
    """RFC 9457 problem details. `code` is stable, texts may change."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    instance: str | None = Field(default=None, description="the path that was asked for")
    errors: list[FieldError] | None = Field(default=None, description="for a 422: the errors by field")
    details: JsonObject | None = Field(default=None, description="facts for machines, by code")
    request_id: str | None = Field(default=None, description="the response's `X-Request-Id`; the log has it, too")
    trace_id: str | None = Field(default=None, description="of W3C Trace Context; the log and traces have it, too")


class Failure(Worded):
    """Reason of a failure outside of HTTP: the core of a problem."""

    code: str = ""
    detail: str = ""
    hint: str | None = None
    details: JsonObject | None = Field(default=None, description="Facts for machines, by code.")

    @classmethod
    def of(cls, error: AgentError) -> Self:
        """The error for people."""
        return cls(**error.as_problem())

    def as_row(self) -> JsonObject:
        """The same to be stored, with the codes of its texts."""
        return self.model_dump(mode="json", exclude_none=True)
