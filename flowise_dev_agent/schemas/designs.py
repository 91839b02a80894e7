"""A flow described by a form."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.form_parts import (
    FormField,
    FormInput,
    FormPart,
    FormSchedule,
    FormSource,
    Name,
    Text,
    called,
    hint,
    shown_for,
)
from flowise_dev_agent.schemas.form_steps import QUOTE, FormStep, key, problems
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import listed, text


class DesignForm(FormPart):
    """A new flow, part by part. Missing parts follow those of a plain chatbot.

    Keys of the JSON Schema: `x-show` gives the conditions under which a form shows the part, `x-options` the titles of
    its choices, `x-lists` the path that lists its choices, `x-texts` the codes of its texts.
    """

    name: Annotated[Name, Field(max_length=120)]
    kind: Literal["chat", "task", "steps"] = Field(
        default="chat",
        description=hint("kind"),
        json_schema_extra=called("kind", "chat", "task", "steps"),
    )
    prompt: Text | None = Field(default=None, description=hint("prompt"), json_schema_extra=shown_for("chat", "task"))
    model: Name | None = Field(default=None, description=hint("model"))
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory: Literal["all", "none"] | Annotated[int, Field(ge=1, le=100)] = Field(
        default="all", description=hint("memory"), json_schema_extra=shown_for("chat")
    )
    tools: list[Name] = Field(
        default_factory=list,
        max_length=10,
        description=hint("tools"),
        json_schema_extra=shown_for("chat"),
    )
    sources: list[FormSource] = Field(default_factory=list, max_length=10, json_schema_extra=shown_for("chat"))
    fields: list[FormField] = Field(
        default_factory=list, max_length=20, description=hint("fields"), json_schema_extra=shown_for("task")
    )
    refused_words: list[Name] = Field(default_factory=list, max_length=50, json_schema_extra=shown_for("chat", "task"))
    start: Literal["chat", "form", "schedule"] = Field(
        default="chat",
        json_schema_extra=shown_for("steps") | called("start", "chat", "form", "schedule"),
    )
    inputs: list[FormInput] = Field(
        default_factory=list,
        max_length=20,
        json_schema_extra=shown_for("steps", start=["form"]),
    )
    schedule: FormSchedule | None = Field(default=None, json_schema_extra=shown_for("steps", start=["schedule"]))
    steps: list[FormStep] = Field(
        default_factory=list,
        max_length=20,
        description=hint("steps"),
        json_schema_extra=shown_for("steps"),
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.kind == "steps") != bool(self.steps):
            raise ValueError("`steps` belong to the kind `steps`, which needs at least one")
        if self.fields and self.kind != "task":
            raise ValueError("`fields` belong to the kind `task`")
        if sum(source.kind == "store" for source in self.sources) > 1:
            raise ValueError("a flow answers from one document store: name one")
        if (self.tools or self.sources) and self.kind != "chat":
            raise ValueError("`tools` and `sources` belong to the kind `chat`; a step has `tools` of its own")
        if self.kind == "steps" and (self.prompt or self.refused_words):
            raise ValueError("`prompt` and `refused_words` do not belong to the kind `steps`; a step has a `prompt`")
        if self.kind != "steps" and (self.start != "chat" or self.inputs or self.schedule):
            raise ValueError("`start`, `inputs` and `schedule` belong to the kind `steps`")
        if self.kind == "steps" and self.memory != "all":
            raise ValueError("`memory` does not belong to the kind `steps`")
        if self.kind == "steps":
            self._check_steps()
        return self

    def _check_steps(self) -> None:
        """Check the start and the steps. Raises ValueError with a line for each problem."""
        if (self.start == "form") != bool(self.inputs):
            raise ValueError("`inputs` belong to the start `form`, which needs at least one")
        if (self.start == "schedule") != bool(self.schedule):
            raise ValueError("`schedule` belongs to the start `schedule`, which needs it")
        if self.start == "schedule" and any(step.kind == "approve" for step in self.steps):
            raise ValueError(
                "nobody can answer a flow that a schedule starts: leave `approve` out, or let it start otherwise"
            )
        if len({key(one.name) for one in self.inputs}) < len(self.inputs):
            raise ValueError("two `inputs` have one name: give each a name of its own")
        if found := problems(self.steps, self.fields_named):
            raise ValueError("\n".join(found))

    @property
    def needs(self) -> list[str]:
        """Paths of the parts that are still to be filled in, such as `sources.0.text`. Such a form can be kept, shown
        and changed; it can neither start a session nor be planned."""
        found = [f"sources.{n}.{one.needs}" for n, one in enumerate(self.sources) if one.needs]
        return found + [f"steps.{n}.url" for n, one in enumerate(self.steps) if one.kind == "call" and not one.url]

    @property
    def fields_named(self) -> list[str] | None:
        """Names of form fields that steps can refer to, see `names_at`; None unless a form starts the flow."""
        return [one.name for one in self.inputs] if self.start == "form" else None

    @property
    def quotes(self) -> list[str]:
        """Beginnings of what a plan has to account for: the purpose; of a flow of steps its start and its steps."""
        if self.kind != "steps":
            return [" ".join((self._wish or self.prompt or self.name).split())[:QUOTE].strip()]
        return [*([self._started] if self._started else []), *(step.quote for step in self.steps)]

    @property
    def purpose(self) -> str:
        """Words of the person that the prompt quotes, else its first line."""
        return self._wish or (self.prompt or "").partition("\n")[0]

    @property
    def _wish(self) -> str:
        """Words of the person to which the first line of the prompt leads (`in these words:`); empty without any."""
        lines = [line.strip() for line in (self.prompt or "").splitlines() if line.strip()]
        return lines[1].strip("“”„«»\u00a0 ") if len(lines) > 1 and lines[0].endswith(":") else ""

    @property
    def _started(self) -> str:
        """Start of the flow in one line; empty for a chat message."""
        if self.schedule:
            days = [text(f"form.day.{day}") for day in self.schedule.weekdays] or [text("design.every_day")]
            return text("design.schedule", days=listed(days), time=self.schedule.time, timezone=self.schedule.timezone)
        return text("design.form", fields=[one.label or one.name for one in self.inputs]) if self.inputs else ""

    def as_text(self) -> str:
        """The form as one text, for lists of sessions and for the model that judges the result."""
        return "\n".join(self._lines)[:32_000]

    @property
    def _lines(self) -> list[str]:
        lines = [self.name, *([self.prompt] if self.prompt else []), *([self._started] if self._started else [])]
        lines += [self.schedule.text] if self.schedule else []
        lines += [step.line for step in self.steps]
        lines += [f"Model: {self.model}"] if self.model else []
        lines += [f"Tools: {', '.join(self.tools)}"] if self.tools else []
        lines += [f"Source: {source.store or source.about or source.url or source.kind}" for source in self.sources]
        return [*lines, *([f"Fields: {', '.join(field.name for field in self.fields)}"] if self.fields else [])]


class ChosenStarter(Contract):
    """Form that code chose for a requirement by its words, without a model."""

    id: str
    title: str
    form: DesignForm
    words: list[str] = Field(default_factory=list, description="Words of the requirement by which it was chosen.")
    names: list[str] = Field(default_factory=list, description="Names in the requirement that the server has.")
    needs: list[str] = Field(default_factory=list, description="Missing parts; nothing is built without them.")


class SessionPlan(Plan):
    """Plan of a session, with its form if a form can express it."""

    form: DesignForm | None = Field(default=None, description="For building it again, step by step.")
    questions: list[str] = Field(default_factory=list)
    base_sha256: str | None = Field(default=None, description="SHA-256 of the flow that it was made for.")


#: Node fields that hold a model's prompt, the best one first.
PROMPT_FIELDS: Final = ("systemMessagePrompt", "systemMessage", "responsePrompt", "template")


def stored_form(form: object) -> DesignForm | None:
    """Parse a stored form; None if it is invalid, as for an earlier version with sentences as steps."""
    try:
        return DesignForm.model_validate(form)
    except ValidationError:
        return None
