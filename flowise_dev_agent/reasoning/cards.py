"""Node types as short text for a prompt."""

import json
from typing import Any

from flowise_dev_agent.patch.model.schema import InputAnchor, InputParam, NodeSchema
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.reasoning.text import clip

_OPTIONS_SHOWN = 12


def schema_card(schema: NodeSchema) -> str:
    """What the op writer must know about a node type: inputs with accepted types, params, outputs, credential.

    `*` marks what is required. Params that the editor hides behind "Additional Parameters" are listed with type and
    default only; params that depend on the value of another one say so.
    """
    lines = [f"### {schema.name} ({schema.category}): {clip(_first_sentence(schema.description), 120)}"]
    if schema.anchors:
        lines.append("inputs: " + "; ".join(_anchor(anchor) for anchor in schema.anchors))
    own = [param for param in schema.params if not param.additional]
    more = [param for param in schema.params if param.additional]
    lines += [f"param {_param(param, schema)}" for param in own]
    if more:
        lines.append("more params: " + "; ".join(_short_param(param) for param in more))
    lines.append("outputs: " + "; ".join(_output(schema, index) for index in range(len(schema.outputs))))
    if schema.credential_names:
        optional = " (optional)" if schema.credential_optional else ""
        lines.append("credential: " + " or ".join(schema.credential_names) + optional)
    return "\n".join(lines)


def catalogue_line(schema: NodeSchema) -> str:
    """One line for the planner: name, category, purpose, credential type."""
    credential = f" [{'/'.join(schema.credential_names)}]" if schema.credential_names else ""
    return f"- {schema.name} ({schema.category}): {clip(_first_sentence(schema.description), 90)}{credential}"


def default_inputs(schema: NodeSchema) -> dict[str, Any]:
    """The inputs of a freshly added node, as far as visibility conditions need them."""
    return {param.name: "" if param.default is None else param.default for param in schema.params}


def _anchor(anchor: InputAnchor) -> str:
    return (
        f"{anchor.name}{'' if anchor.optional else '*'}"
        f" <- {' | '.join(anchor.types)}{' (several)' if anchor.is_list else ''}"
    )


def _param(param: InputParam, schema: NodeSchema) -> str:
    text = f"{param.name}{'' if param.optional else '*'}: {param.type}"
    if param.options:
        shown = ", ".join(param.options[:_OPTIONS_SHOWN])
        text += f" of {shown}{', …' if len(param.options) > _OPTIONS_SHOWN else ''}"
    if param.default not in (None, ""):
        text += f" = {clip(_value(param.default), 60)}"
    if param.show and not is_visible({"show": param.show}, default_inputs(schema)):
        text += f" (only with {_value(dict(param.show))})"
    return text


def _short_param(param: InputParam) -> str:
    default = f"={clip(_value(param.default), 20)}" if param.default not in (None, "") else ""
    options = f" of {'/'.join(param.options[:5])}" if param.options else ""
    return f"{param.name}: {param.type}{options}{default}"


def _output(schema: NodeSchema, index: int) -> str:
    output = schema.outputs[index]
    classes = "|".join(output.base_classes)
    return f"{output.name} -> {classes}" if schema.multi_output else classes


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0]
