"""Models and tools inside agentflow nodes: a field names the component, ``<field>Config`` holds its inputs.

Paths address them: ``llmModelConfig.temperature``, ``agentTools[0].agentSelectedToolConfig``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.patch.model.flow_data import InputEntry, Inputs, Values
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.suggest import closest_types
from flowise_dev_agent.patch.model.visibility import is_visible

#: Key from which the server reads the credential of a nested component.
CREDENTIAL_KEY = "FLOWISE_CREDENTIAL_ID"
CREDENTIAL_KEYS = frozenset((CREDENTIAL_KEY, "credential"))
#: Shown in place of a credential's id. If it is sent back, the bound credential stays.
BOUND = "bound"
_MODELS = ("Chat Models",)
#: Categories that a field takes, by the end of its name.
_CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "embeddingmodel": ("Embeddings",),
    "model": _MODELS,
    "tool": ("Tools", "Tools (MCP)"),
    "vectorstore": ("Vector Stores",),
}
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Nested:
    """A component inside a node. ``path`` is the path of its config, ``config`` the stored value."""

    path: str
    steps: Steps
    param: str
    component: str
    config: Any


def parse_path(path: str) -> Steps | None:
    """Parse ``agentTools[0].x`` to ``("agentTools", 0, "x")``; None if it is not a path."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return None
        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    return tuple(steps) if steps and isinstance(steps[0], str) else None


def is_path(name: str) -> bool:
    """True for a path; plain field names hold neither dots nor brackets."""
    return "." in name or "[" in name


def value_at(inputs: Values, steps: Steps) -> Any:
    """The value at a path; None if there is none."""
    value: Any = inputs
    for step in steps:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def with_value(container: Any, steps: Steps, value: Any) -> Any:
    """The container with another value at a path; everything beside the path is shared.

    The path must exist, except for its last key, a row just past the last, and the settings of a component.
    """
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        rows = container or []
        row = rows[step] if step < len(rows) else {}
        return [*rows[:step], with_value(row, rest, value), *rows[step + 1 :]]
    fields = container or {}
    return {**fields, step: with_value(fields.get(step), rest, value)}


def with_bound(value: Any, before: Any) -> Any:
    """The value with the credentials of ``before``, where it has none or says `bound`.

    A credential stays with its component: another model or tool does not get it.
    Rows are matched by their values without credentials, else by the components that they choose.
    """
    if isinstance(value, Mapping):
        old = before if isinstance(before, Mapping) else {}
        kept = {key: old.get(key) for key, item in value.items() if key in CREDENTIAL_KEYS and item == BOUND}
        if old.get(CREDENTIAL_KEY) and CREDENTIAL_KEY not in value:
            kept[CREDENTIAL_KEY] = old[CREDENTIAL_KEY]
            value = {**value, CREDENTIAL_KEY: BOUND}
        return {
            key: kept[key] if key in kept else with_bound(item, _config_at(old, key, value))
            for key, item in value.items()
            if key not in kept or kept[key]
        }
    if not isinstance(value, list):
        return value
    left = list(enumerate(before)) if isinstance(before, list) else []
    found: dict[int, Any] = {}
    for same in (_without_credentials, _chosen_in):
        for at, row in enumerate(value):
            if at in found or not isinstance(row, Mapping):
                continue
            if match := next((one for one in left if same(one[1]) == same(row)), None):
                left.remove(match)
                found[at] = match[1]
    return [with_bound(row, found.get(at)) for at, row in enumerate(value)]


def _config_at(old: Values, key: str, new: Values) -> Any:
    """The old value; None for the config of a component that was replaced."""
    owner = key.removesuffix("Config")
    return old.get(key) if new.get(owner, old.get(owner)) == old.get(owner) else None


def _without_credentials(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_credentials(item) for key, item in value.items() if key not in CREDENTIAL_KEYS}
    return [_without_credentials(item) for item in value] if isinstance(value, list) else value


def _chosen_in(row: Any) -> Any:
    """The components that a row chooses, by field."""
    return {key: row[key] for key in row if f"{key}Config" in row} if isinstance(row, Mapping) else None


def without_value(container: Any, steps: Steps) -> Any:
    """The container without the key at the end of a path, which must exist."""
    if len(steps) == 1:
        return {key: value for key, value in container.items() if key != steps[0]}
    return with_value(container, steps[:1], without_value(container[steps[0]], steps[1:]))


def nested_components(definitions: Sequence[InputEntry], inputs: Values) -> Iterator[Nested]:
    """Components chosen in the inputs, in the order of the fields."""
    for entry in definitions:
        name = str(entry.get("name"))
        if entry.get("loadConfig"):
            yield from _component(name, inputs, ())
        items = inputs.get(name)
        if entry.get("type") != "array" or not isinstance(items, list):
            continue
        for index, item in enumerate(items):
            if not isinstance(item, Mapping):
                continue
            for part in entry.get("array") or ():
                if part.get("loadConfig"):
                    yield from _component(str(part["name"]), item, (name, index))


def _component(param: str, container: Values, around: Steps) -> Iterator[Nested]:
    component = container.get(param)
    if isinstance(component, str) and component:
        steps = (*around, f"{param}Config")
        path = f"{around[0]}[{around[1]}].{param}Config" if around else f"{param}Config"
        yield Nested(path, steps, param, component, container.get(f"{param}Config"))


def unknown_component(param: str, name: str, schemas: Schemas) -> tuple[str, str, tuple[str, ...]]:
    """Message, hint and close names for a component unknown to the server."""
    wanted = _CATEGORIES.get(next((end for end in _CATEGORIES if param.lower().endswith(end)), ""), ())
    fitting = [one for one, schema in schemas.items() if schema.category in wanted] or list(schemas)
    near = closest_types(name, fitting)
    example = f", such as {', '.join(near)}" if near else ""
    message = f"`{param}` takes a node type of the server{example}; {name!r} is none."
    hint = f"Did you mean {near[0]!r}?" if near else ""
    if wanted == _MODELS and near:
        hint = f"Set `{param}` to {near[0]!r}; the name of the model goes into `{param}Config.modelName`."
    return message, hint, near


def complete_config(nested: Nested, schema: NodeSchema) -> Inputs:
    """The config as the editor would store it: of this component, with the defaults of the visible fields.

    A config of this component is returned unchanged; one of another component is replaced by a new one.
    """
    given: Inputs = dict(nested.config) if isinstance(nested.config, Mapping) else {}
    owner = given.get(nested.param)
    if owner == nested.component:
        return given
    if owner:
        given = {}
    fresh = schema.new_inputs()
    shown = {**fresh, **given}
    defaults = {entry["name"]: fresh[entry["name"]] for entry in schema.input_definitions if is_visible(entry, shown)}
    return {**defaults, **given, nested.param: nested.component}
