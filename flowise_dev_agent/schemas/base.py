"""How the shared models are read and kept within a size."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from flowise_dev_agent.patch.model.json_text import JsonObject, JsonValue
from flowise_dev_agent.sanitize import json_size
from flowise_dev_agent.texts import Param, Text

JsonMapping: TypeAlias = Mapping[str, JsonValue]
#: How a session ends.
Outcome: TypeAlias = Literal["accepted", "answered", "rolled_back", "declined", "cancelled"]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

#: Version 1 wrote `{}` where there was nothing to say; version 2 writes null.
Maybe = Annotated[T | None, BeforeValidator(lambda value: None if value == {} else value)]


class Contract(BaseModel):
    """Refuses keys that it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, json_schema_serialization_defaults_required=True
    )


class TextCode(Contract):
    """A text of the catalogue by its code. A parameter that is such a text itself has its English beside."""

    code: str
    params: "dict[str, str | int | float | list[str] | TextCode]" = Field(default_factory=dict)
    text: str = Field(default="", description="In English; of a parameter.", exclude_if=lambda text: not text)

    @classmethod
    def of(cls, text: Text, *, inside: bool = False) -> "TextCode":
        """The code and the parameters of a text."""
        params = {
            name: cls.of(value, inside=True) if isinstance(value, Text) else value
            for name, value in text.params.items()
        }
        return cls(code=text.code, params=params, text=str(text) if inside else "")

    def as_text(self, english: str) -> Text:
        """The text again."""
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
    """A text with its English, to be kept and said later."""
    return TextCode.of(words, inside=True) if isinstance(words, Text) else TextCode(code="", text=words)


#: Earlier versions kept the words alone.
KeptText = Annotated[TextCode, BeforeValidator(lambda value: kept(value) if isinstance(value, str) else value)]


class Worded(Contract):
    """A document with texts of the product. They are in English; `texts` has their codes, for other languages."""

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
        """The same with other values, and the codes of these."""
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
        if isinstance(value, Text):
            yield name, TextCode.of(value)
        elif isinstance(value, list | tuple):
            for index, one in enumerate(cast("list[Any]", value)):
                if isinstance(one, Text):
                    yield f"{name}.{index}", TextCode.of(one)


class Kept(dict[str, Any]):
    """A JSON object that is never changed, with the model that was read from it last."""

    __slots__ = ("model",)
    model: BaseModel


class Versioned(Contract):
    """The root of a stored document. One without `version` is of version 1; `read` takes both."""

    version: Literal[2] = 2


class Bounded(Contract):
    """A document whose size has a limit."""

    truncated: list[str] = Field(
        default_factory=list,
        exclude_if=lambda names: not names,
        description="Fields that were left out because of their size, if any.",
    )

    def fitted(self, limit: int) -> Self:
        """The same in at most `limit` bytes of JSON, as far as fields that have a default allow: the largest go first.

        `truncated` names what was left out.
        """
        return self if json_size(self.model_dump(mode="json")) <= limit else self._cut(limit)

    def fitted_json(self, limit: int, *, exclude_defaults: bool = False) -> JsonObject:
        """The JSON of `fitted`; without what is at its default, which then does not count. Mostly it is made once."""
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
    """A stored document of any version; keys of version 1 that version 2 does not have are dropped.

    Raises pydantic.ValidationError.
    """
    return model.model_validate(row, extra=_extra(row))


def read_as(adapter: TypeAdapter[T], row: JsonMapping) -> T:
    """`read` for a union of models."""
    return adapter.validate_python(row, extra=_extra(row))


def _extra(row: JsonMapping) -> Literal["forbid", "ignore"]:
    return "forbid" if "version" in row else "ignore"


class FieldError(Contract):
    """One thing wrong with a request."""

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
    errors: list[FieldError] | None = Field(default=None, description="for a 422: what is wrong with which field")
    details: JsonObject | None = Field(default=None, description="facts for machines, by code")
    request_id: str | None = Field(default=None, description="the response's `X-Request-Id`; the log has it, too")


class Failure(Worded):
    """Why something did not work, where HTTP has no say: the core of a problem."""

    code: str = ""
    detail: str = ""
    hint: str | None = None
    details: JsonObject | None = Field(default=None, description="Facts for machines, by code.")
