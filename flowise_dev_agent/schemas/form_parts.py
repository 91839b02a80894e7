"""Parts of a form besides its steps, and the JSON Schema keys that control their display.

`x-show` gives the conditions under which a form shows a part, `x-options` the titles of its choices, `x-lists` the path
that lists its choices, `x-texts` the codes of its title and description.
"""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, StringConstraints, model_validator
from pydantic.config import JsonDict

from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.texts import say
from flowise_dev_agent.texts import text as catalogue_text

_SIGNS: Final = re.compile(r"[{}<>\n\r]")


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _plain(text: str) -> str:
    if _SIGNS.search(text):
        raise ValueError("is a short name: without braces, < or >, and in one line")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_said)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=32_000), AfterValidator(_said)]
#: Title of a step, a branch or a field; it may be empty.
Title = Annotated[str, StringConstraints(strip_whitespace=True, max_length=60), AfterValidator(_plain)]


def shown_for(*kinds: JsonValue, **others: JsonValue) -> JsonDict:
    """JSON Schema key that shows a part only for these kinds, and only if other fields have these values."""
    return {"x-show": {"kind": list(kinds), **others}}


def called(choice: str, *values: str) -> JsonDict:
    """JSON Schema key with the titles of a choice's values."""
    codes = {value: f"form.{choice}.{value}" for value in values}
    return {
        "x-options": [{"const": value, "title": say(code), "x-texts": {"title": code}} for value, code in codes.items()]
    }


def hint(about: str) -> str:
    """The description of a part."""
    return catalogue_text(f"form.hint.{about}")


def _label(field: str, _: object) -> str:
    return catalogue_text(f"form.label.{field}")


class FormPart(Contract):
    """A part of a form, whose fields have their titles from the catalogue."""

    model_config = ConfigDict(field_title_generator=_label)


class FormSource(FormPart):
    """A source of answers. A file is uploaded in Flowise; until then the flow holds a marked placeholder."""

    kind: Literal["text", "pdf", "csv", "docx", "txt", "web", "store"] = Field(
        json_schema_extra=called("source", "text", "pdf", "csv", "docx", "txt", "web", "store")
    )
    text: str = Field(
        default="",
        max_length=32_000,
        description=hint("text"),
        json_schema_extra=shown_for("text"),
    )
    url: str = Field(
        default="",
        max_length=2_000,
        description=hint("url"),
        json_schema_extra=shown_for("web"),
    )
    store: str = Field(
        default="",
        max_length=200,
        description=hint("store"),
        json_schema_extra=shown_for("store") | {"x-lists": "document-stores"},
    )
    about: str = Field(
        default="",
        max_length=100,
        description=hint("about"),
        json_schema_extra=shown_for("text", "pdf", "csv", "docx", "txt", "web"),
    )

    @model_validator(mode="after")
    def _has_its_address(self) -> Self:
        if self.kind == "web" and self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("a source of kind `web` needs a `url` that begins with http:// or https://")
        if self.kind != "store" and self.store.strip():
            raise ValueError("`store` belongs to the kind `store`")
        return self

    @property
    def needs(self) -> str:
        """Name of the field that is still to be filled in; empty for none. A form cannot hold a file."""
        field = {"text": "text", "web": "url", "store": "store"}.get(self.kind, "")
        return field if field and not getattr(self, field).strip() else ""


class FormField(FormPart):
    """A field of a structured answer."""

    # A bound within the pattern would make a table of 6 MB, for each model that has this field.
    name: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)
    type: Literal["string", "number", "boolean"] = Field(
        default="string", json_schema_extra=called("type", "string", "number", "boolean")
    )
    description: str = Field(default="", max_length=300)


class FormInput(FormPart):
    """A field that people fill in before the flow runs."""

    name: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)
    label: Title = ""
    type: Literal["string", "number", "boolean", "options"] = Field(
        default="string",
        json_schema_extra=called("type", "string", "number", "boolean", "options"),
    )
    options: list[Title] = Field(
        default_factory=list, max_length=30, json_schema_extra={"x-show": {"type": ["options"]}}
    )

    @model_validator(mode="after")
    def _has_its_options(self) -> Self:
        if (self.type == "options") != bool(self.options) or not all(self.options):
            raise ValueError(f"the field `{self.name}`: `options` belong to the type `options`, which needs them")
        return self


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
#: In the order of Flowise, which numbers them from 1.
WEEKDAYS: Final[tuple[Weekday, ...]] = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip


class FormSchedule(FormPart):
    """When a flow starts by itself."""

    time: str = Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description=hint("time"))
    weekdays: list[Weekday] = Field(
        default_factory=list[Weekday],
        max_length=7,
        description=hint("weekdays"),
        json_schema_extra=called("day", *WEEKDAYS),
    )
    timezone: str = Field(
        pattern=r"^[A-Za-z_]+(/[\w+-]+)*$",
        max_length=60,
        description=hint("timezone"),
    )
    text: Text = Field(description=hint("given"))

    @property
    def days(self) -> str:
        """Numbers of the days in Flowise, empty for every day."""
        return ",".join(str(number) for number, day in enumerate(WEEKDAYS, 1) if day in self.weekdays)
