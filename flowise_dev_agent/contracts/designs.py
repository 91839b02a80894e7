"""A flow described by a form: what the rules would otherwise read from a requirement."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from flowise_dev_agent.contracts.base import Contract


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_said)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=32_000), AfterValidator(_said)]


class FormSource(Contract):
    """A source to answer from. A file is uploaded in Flowise; until then the flow holds a marked placeholder."""

    kind: Literal["text", "pdf", "csv", "docx", "web"]
    text: str = Field(default="", max_length=32_000, description="The text itself, of a source of kind `text`.")
    url: str = Field(default="", max_length=2_000, description="The address, of a source of kind `web`.")
    about: str = Field(default="", max_length=100, description="What it is called, for example `handbook`.")

    @model_validator(mode="after")
    def _has_its_address(self) -> Self:
        if self.kind == "web" and not self.url.startswith(("http://", "https://")):
            raise ValueError("a source of kind `web` needs a `url` that begins with http:// or https://")
        return self


class FormField(Contract):
    """A field of a structured answer."""

    name: str = Field(pattern=r"^[A-Za-z_]\w{0,59}$")
    type: Literal["string", "number", "boolean"] = "string"
    description: str = Field(default="", max_length=300)


class DesignForm(Contract):
    """A new flow, part by part. What is left out is as a plain chatbot has it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(_said)]
    kind: Literal["chat", "task", "steps"] = Field(
        default="chat", description="A conversation, one answer for each message, or steps that follow one another."
    )
    prompt: _Text | None = Field(default=None, description="What the model is told, word for word.")
    model: _Name | None = Field(default=None, description="Provider or model, for example `Claude Sonnet`.")
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory: Literal["all", "none"] | Annotated[int, Field(ge=1, le=100)] = Field(
        default="all", description="Of how many messages; `task` has none."
    )
    tools: list[_Name] = Field(default_factory=list, max_length=10, description="Node types or titles: `calculator`.")
    sources: list[FormSource] = Field(default_factory=list, max_length=10)
    fields: list[FormField] = Field(default_factory=list, max_length=20, description="Of a structured answer.")
    refused_words: list[_Name] = Field(default_factory=list, max_length=50)
    steps: list[_Name] = Field(
        default_factory=list, max_length=20, description="One sentence each, as in `sort the messages into a and b`."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.kind == "steps") != bool(self.steps):
            raise ValueError("`steps` belong to the kind `steps`, which needs at least one")
        if self.fields and self.kind != "task":
            raise ValueError("`fields` belong to the kind `task`")
        if (self.tools or self.sources) and self.kind == "task":
            raise ValueError("`tools` and `sources` belong to the kind `chat`")
        return self

    def as_text(self) -> str:
        """The form in one text, for lists of sessions and for a model that looks at the result."""
        lines = [self.name, *([self.prompt] if self.prompt else []), *self.steps]
        lines += [f"Model: {self.model}"] if self.model else []
        lines += [f"Tools: {', '.join(self.tools)}"] if self.tools else []
        lines += [f"Source: {source.about or source.url or source.kind}" for source in self.sources]
        lines += [f"Fields: {', '.join(field.name for field in self.fields)}"] if self.fields else []
        return "\n".join(lines)[:32_000]
