"""Parts of a form besides its steps, and the JSON Schema keys that control their display.

`x-show` gives the conditions under which a form shows a part, `x-options` the titles of its choices, `x-lists` the path
that lists its choices.
"""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator
from pydantic.config import JsonDict

from flowise_dev_agent.schemas.base import Contract

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


def called(**titles: str) -> JsonDict:
    """JSON Schema key with the titles of a choice's values."""
    return {"x-options": [{"const": value, "title": title} for value, title in titles.items()]}


class FormSource(Contract):
    """A source of answers. A file is uploaded in Flowise; until then the flow holds a marked placeholder."""

    kind: Literal["text", "pdf", "csv", "docx", "web", "store"] = Field(
        json_schema_extra=called(
            text="Text", pdf="PDF file", csv="CSV file", docx="Word file", web="Web page", store="Document store"
        )
    )
    text: str = Field(
        default="",
        max_length=32_000,
        description="The text itself, of a source of kind `text`.",
        json_schema_extra=shown_for("text"),
    )
    url: str = Field(
        default="",
        title="Address",
        max_length=2_000,
        description="The address, of a source of kind `web`.",
        json_schema_extra=shown_for("web"),
    )
    store: str = Field(
        default="",
        title="Document store",
        max_length=200,
        description="Name or id of a document store that exists, of a source of kind `store`.",
        json_schema_extra=shown_for("store") | {"x-lists": "document-stores"},
    )
    about: str = Field(
        default="",
        max_length=100,
        description="What it is called, for example `handbook`.",
        json_schema_extra=shown_for("text", "pdf", "csv", "docx", "web"),
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


class FormField(Contract):
    """A field of a structured answer."""

    # A bound within the pattern would make a table of 6 MB, for each model that has this field.
    name: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)
    type: Literal["string", "number", "boolean"] = Field(
        default="string", json_schema_extra=called(string="Text", number="Number", boolean="Yes or no")
    )
    description: str = Field(default="", max_length=300)


class FormInput(Contract):
    """A field that people fill in before the flow runs."""

    name: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)
    label: Title = ""
    type: Literal["string", "number", "boolean", "options"] = Field(
        default="string",
        json_schema_extra=called(string="Text", number="Number", boolean="Yes or no", options="Choice"),
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


class FormSchedule(Contract):
    """When a flow starts by itself."""

    time: str = Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="For example `07:15`.")
    weekdays: list[Weekday] = Field(
        default_factory=list[Weekday],
        max_length=7,
        description="Every day when empty.",
        json_schema_extra=called(**{day: day.capitalize() for day in WEEKDAYS}),
    )
    timezone: str = Field(
        pattern=r"^[A-Za-z_]+(/[\w+-]+)*$",
        max_length=60,
        title="Time zone",
        description="For example `Europe/Berlin`.",
    )
    text: Text = Field(description="What the flow is given each time.")

    @property
    def days(self) -> str:
        """Numbers of the days in Flowise, empty for every day."""
        return ",".join(str(number) for number, day in enumerate(WEEKDAYS, 1) if day in self.weekdays)
