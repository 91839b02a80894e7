"""Custom tools of Flowise that a plan makes: what the model of the flow reads of them, and their JavaScript."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StringConstraints

from flowise_dev_agent.patch.model.named_values import NamedValues
from flowise_dev_agent.schemas.base import Contract

#: Most new tools of a plan.
MOST_TOOLS: Final = 8
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


def tool_name(text: Any) -> Any:
    """The text as a name that providers of models take for a tool; what is no text stays.

    >>> tool_name("Miles to km"), tool_name("miles_to_km")
    ('Miles_to_km', 'miles_to_km')
    """
    return _NOT_IN_NAMES.sub("_", text).strip("_")[:64] if isinstance(text, str) else text


def tool_sha256(name: str, columns: Mapping[str, str]) -> str:
    """Hash of a tool by its name and Flowise's columns `description`, `schema` and `func`."""
    return hashlib.sha256(json.dumps([name, dict(columns)], sort_keys=True).encode()).hexdigest()


def _no_name_of_javascript(name: str) -> str:
    """The name of an input, unless each JavaScript object has something else there. Raises ValueError."""
    if name in ("__proto__", "constructor", "prototype"):
        raise ValueError(f"`{name}` is a name of JavaScript's own: choose another")
    return name


class ToolInput(Contract):
    """An input of a custom tool, which the model of the flow fills in; the code reads it as `$property`."""

    property: Annotated[str, AfterValidator(_no_name_of_javascript)] = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
    type: Literal["string", "number", "boolean"]
    description: str = Field(max_length=500)
    required: bool = True


class ToolSample(Contract):
    """Result of a custom tool for sample inputs; without `result` it only must not fail."""

    inputs: NamedValues = Field(default_factory=dict)
    result: JsonValue = None


class PlannedTool(Contract):
    """A custom tool that is made on the server before the flow is written."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$"), BeforeValidator(tool_name)]
    description: str = Field(min_length=1, max_length=1_000, description="when to use it, for the model of the flow")
    inputs: list[ToolInput] = Field(default_factory=list, max_length=20)
    code: str = Field(
        min_length=1, max_length=20_000, description="body of a JavaScript function: reads $property, returns a text"
    )
    samples: list[ToolSample] = Field(default_factory=list, max_length=3)

    @property
    def columns(self) -> dict[str, str]:
        """Flowise's columns as texts, besides the name."""
        rows = [
            {"id": number, **one.model_dump(include={"property", "description", "type", "required"})}
            for number, one in enumerate(self.inputs)
        ]
        return {"description": self.description, "schema": json.dumps(rows, ensure_ascii=False), "func": self.code}

    @property
    def sha256(self) -> str:
        """Of name and columns."""
        return tool_sha256(self.name, self.columns)

    @property
    def key(self) -> str:
        """Name and hash: tools with the same key are the same, also where somebody looked for two that are alike."""
        return f"{self.name}:{self.sha256}"
