"""Rules on fields: what must be filled in, and what the server would choke on or silently ignore."""

from collections.abc import Iterator, Mapping
from typing import Any

from flowise_dev_agent.patch.findings import Finding, error, warning
from flowise_dev_agent.patch.graph import FlowNode
from flowise_dev_agent.patch.references import has_variable
from flowise_dev_agent.patch.uuids import is_uuid
from flowise_dev_agent.patch.validator.context import FlowContext
from flowise_dev_agent.patch.validator.registry import rule
from flowise_dev_agent.patch.values import ValueProblem, is_empty, normalize
from flowise_dev_agent.patch.visibility import js_truthy

#: Keys that the editor writes next to the declared ones.
_EDITOR_KEYS = frozenset({"credential", "FLOWISE_CREDENTIAL_ID"})


@rule("REQUIRED_PARAM_MISSING")
def required_params(flow: FlowContext) -> Iterator[Finding]:
    """Fields without which the node fails or runs on something nobody chose."""
    for node in flow.nodes:
        missing = [str(param["name"]) for param in flow.visible_params(node) if _is_missing(node, param)]
        for name in dict.fromkeys(missing):
            yield error(
                "REQUIRED_PARAM_MISSING",
                f"{node.name} needs a value for `{name}`.",
                where=node.id,
                field=name,
                hint=f"Use SetParam on `{name}` of {node.id}.",
            )


def _is_missing(node: FlowNode, param: Mapping[str, Any]) -> bool:
    # An unset switch is off.
    if param.get("optional") or param["type"] in ("boolean", "tabs"):
        return False
    default, name = param.get("default"), param["name"]
    if name not in node.inputs and js_truthy(default):
        # Stored before the schema had this field: the server runs on the default.
        return False
    # 0 and false as defaults are stored as ''.
    return is_empty(node.inputs.get(name)) and (default is None or js_truthy(default))


@rule("NOT_A_NUMBER", "NOT_A_BOOLEAN", "NOT_A_TEXT", "BAD_JSON", "BAD_OPTION")
def values(flow: FlowContext) -> Iterator[Finding]:
    """Values that do not fit the type of their field."""
    for node in flow.nodes:
        problems: dict[str, ValueProblem | None] = {}
        for param in flow.visible_params(node):
            name = str(param["name"])
            if name not in node.inputs or problems.get(name, param) is None:
                continue
            problems[name] = normalize(param, node.inputs[name], node.inputs)[1]
        for name, problem in problems.items():
            if problem is None:
                continue
            # An option or a form that a former version of the node knew is its own affair: the server takes it.
            severity = "warning" if problem.code == "BAD_OPTION" and flow.version_drifted(node) else "error"
            yield Finding(
                code=problem.code,
                severity=severity,
                message=f"`{name}` of {node.name}: {problem.message}",
                where=node.id,
                field=name,
                allowed=problem.allowed,
                hint=f"For example {problem.example!r}.",
            )


@rule("UNKNOWN_PARAM")
def unknown_params(flow: FlowContext) -> Iterator[Finding]:
    """Fields that the schema does not have; the server ignores them."""
    for node in flow.nodes:
        schema = flow.schema(node)
        if schema is None:
            continue
        names = {str(entry["name"]) for entry in schema.input_definitions}
        tabs = {str(entry.get("tabIdentifier")) for entry in schema.input_definitions if entry.get("tabIdentifier")}
        for name in node.inputs:
            if name in names or name in _EDITOR_KEYS or name.removesuffix("Config") in names:
                continue
            if any(name == f"{tab}_{node.id}" for tab in tabs):
                continue
            yield warning(
                "UNKNOWN_PARAM",
                f"{node.name} has no field {name!r}; the server ignores it.",
                where=node.id,
                field=name,
            )


@rule("BAD_TOOL_ID")
def custom_tools(flow: FlowContext) -> Iterator[Finding]:
    """A custom tool is chosen by its id; a name fails in the database."""
    for node in flow.nodes:
        tool_id = node.inputs.get("selectedTool")
        if node.name != "customTool" or is_empty(tool_id) or has_variable(tool_id):
            continue
        if not isinstance(tool_id, str) or not is_uuid(tool_id):
            yield error(
                "BAD_TOOL_ID",
                "The custom tool must be given by its id (a uuid), not by name.",
                where=node.id,
                field="selectedTool",
            )
