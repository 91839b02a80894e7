"""A Flowise node type as `GET /nodes` describes it, with the properties that compiler and validator need."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, cast

from flowise_dev_agent.patch.model.definitions import PARAM_TYPES, Definitions, split_types
from flowise_dev_agent.patch.model.flow_data import InputEntry, Inputs, NodeType, Values
from flowise_dev_agent.patch.model.visibility import js_truthy

#: Flow type of the categories whose nodes run only in flows of a type other than CHATFLOW.
KIND_OF_CATEGORY: Mapping[str, Literal["AGENTFLOW", "MULTIAGENT"]] = {
    "Agent Flows": "AGENTFLOW",
    "Sequential Agents": "MULTIAGENT",
    "Multi Agents": "MULTIAGENT",
}

#: Absolute paths on the server: they mean nothing elsewhere and would make the fingerprint depend on the host.
_MACHINE_KEYS = frozenset({"icon", "filePath"})


@dataclass(frozen=True, slots=True)
class InputAnchor:
    """A connection point: another node's output goes here."""

    name: str
    label: str
    types: tuple[str, ...]
    is_list: bool
    optional: bool
    show: Values | None
    hide: Values | None


@dataclass(frozen=True, slots=True)
class InputParam:
    """A field. ``options`` are the names of its static choices."""

    name: str
    label: str
    type: str
    default: Any
    options: tuple[str, ...]
    optional: bool
    additional: bool
    description: str
    show: Values | None
    hide: Values | None
    #: True for a field that no editor shows.
    hidden: bool


@dataclass(frozen=True, slots=True)
class OutputOption:
    """An output that a node type offers, with its class names."""

    name: str
    label: str
    base_classes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NodeSchema:
    """One entry of `GET /nodes`. ``raw`` is shared and must not be changed."""

    raw: NodeType

    @classmethod
    def from_raw(cls, raw: Mapping[str, Any]) -> "NodeSchema":
        """Take an entry as Flowise sends it; raises KeyError if it has no ``name``."""
        if "name" not in raw:
            raise KeyError("name")
        return cls(cast("NodeType", {key: value for key, value in raw.items() if key not in _MACHINE_KEYS}))

    @property
    def name(self) -> str:
        return str(self.raw["name"])

    @property
    def label(self) -> str:
        return str(self.raw.get("label") or self.name)

    @property
    def version(self) -> float:
        return float(self.raw.get("version") or 0)

    @property
    def category(self) -> str:
        return str(self.raw.get("category") or "")

    @property
    def description(self) -> str:
        return str(self.raw.get("description") or "")

    @property
    def is_agentflow(self) -> bool:
        """True for a node type of AGENTFLOW (V2) flows."""
        return KIND_OF_CATEGORY.get(self.category) == "AGENTFLOW"

    @property
    def deprecated(self) -> bool:
        return self.raw.get("badge") == "DEPRECATING"

    @cached_property
    def base_classes(self) -> tuple[str, ...]:
        return tuple(self.raw.get("baseClasses") or ())

    @property
    def input_definitions(self) -> Sequence[InputEntry]:
        """The raw input entries in order. A name may occur more than once, with different show and hide conditions."""
        return self.raw.get("inputs") or []

    @cached_property
    def anchors(self) -> tuple[InputAnchor, ...]:
        return tuple(
            InputAnchor(
                name=entry["name"],
                label=entry.get("label") or entry["name"],
                types=split_types(entry["type"]),
                is_list=bool(entry.get("list")),
                optional=bool(entry.get("optional")),
                show=entry.get("show"),
                hide=entry.get("hide"),
            )
            for entry in self.input_definitions
            if entry["type"] not in PARAM_TYPES
        )

    @cached_property
    def params(self) -> tuple[InputParam, ...]:
        return tuple(
            InputParam(
                name=entry["name"],
                label=entry.get("label") or entry["name"],
                type=entry["type"],
                default=entry.get("default"),
                options=tuple(str(option["name"]) for option in entry.get("options") or ()),
                optional=bool(entry.get("optional")),
                additional=bool(entry.get("additionalParams")),
                description=str(entry.get("description") or ""),
                show=entry.get("show"),
                hide=entry.get("hide"),
                hidden=bool(entry.get("hidden")),
            )
            for entry in self.input_definitions
            if entry["type"] in PARAM_TYPES
        )

    @cached_property
    def definitions(self) -> Definitions:
        """Declared inputs, the credential field included."""
        # The editor drops the credential field of a node type that declares no `inputs` at all.
        return Definitions.of(
            self.input_definitions, self.raw.get("credential") if "inputs" in self.raw else None, self.name
        )

    @cached_property
    def defaults(self) -> Inputs:
        """Initial value of each input. Shared: use `new_inputs` for a node."""
        return {entry["name"]: _initial_value(entry) for entry in self.input_definitions}

    def new_inputs(self) -> Inputs:
        """Inputs of a new node."""
        return {
            name: copy.deepcopy(value) if isinstance(value, list | dict) else value
            for name, value in self.defaults.items()
        }

    @property
    def multi_output(self) -> bool:
        return bool(self.raw.get("outputs"))

    @cached_property
    def outputs(self) -> tuple[OutputOption, ...]:
        if self.raw.get("hideOutput"):
            return ()
        if not self.multi_output:
            return (OutputOption(self.name, str(self.raw.get("type") or self.label), self.base_classes),)
        return tuple(
            OutputOption(name, str(entry.get("label") or name), tuple(entry.get("baseClasses") or ()))
            for entry in self.raw.get("outputs") or ()
            for name in [str(entry["name"])]
        )

    @cached_property
    def credential_names(self) -> tuple[str, ...]:
        credential = self.raw.get("credential") or {}
        return tuple(credential.get("credentialNames") or ())

    @property
    def credential_optional(self) -> bool:
        """True if the credential is optional, or if the node takes none."""
        credential = self.raw.get("credential")
        return not credential or bool(credential.get("optional"))


Schemas = Mapping[str, NodeSchema]
#: Credential types whose secret is sent to any address that a step calls. Used only on explicit request.
CREDENTIALS_FOR_ANY_ADDRESS: Final = frozenset({"httpApiKey", "httpBasicAuth", "httpBearerToken"})


def _initial_value(entry: InputEntry) -> Any:
    default = entry.get("default")
    return default if js_truthy(default) else ""
