"""Rules on fields: required values, and values on which the server fails or which it ignores silently."""

from collections.abc import Iterator, Mapping
from typing import Any

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import InputEntry, Values
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import ValueProblem, is_empty, normalize
from flowise_dev_agent.patch.model.visibility import js_truthy
from flowise_dev_agent.patch.validate.context import FlowContext, rule

CUSTOM_TOOL = "customTool"
#: Required by the schema, but only the server knows whether the chosen tool takes arguments.
TOOL_ARGUMENTS = ("toolAgentflow", "toolInputArgs")
#: Texts above a form: without them the form is asked all the same.
FORM_TEXTS = frozenset({("startAgentflow", "formTitle"), ("startAgentflow", "formDescription")})
#: Text fields that the server parses as JSON.
JSON_TEXTS: Mapping[str, tuple[str, ...]] = {
    "fewShotPromptTemplate": ("examples",),
    "recursiveCharacterTextSplitter": ("separators",),
    "github": ("ignorePath",),
    "awsBedrockKBRetriever": ("filter",),
}
#: Load method -> kind of thing that is chosen by its id. A document store in a row is ``<id>:<name>``.
CHOSEN_BY_ID: Mapping[str, str] = {
    "listChatflows": "flow",
    "listAgentflows": "flow",
    "listFlows": "flow",
    "listStores": "document store",
    "listAssistants": "assistant",
}
#: Keys that the editor writes next to the declared ones.
_EDITOR_KEYS = frozenset({"credential", "FLOWISE_CREDENTIAL_ID"})


@rule("REQUIRED_PARAM_MISSING")
def required_params(flow: FlowContext) -> Iterator[Finding]:
    """Required fields have a value. Without it the node fails or uses a value that nobody chose."""
    for node in flow.nodes:
        demanded = [param for param in flow.visible_params(node) if not param.get("optional")]
        missing = [str(param["name"]) for param in demanded if is_missing(node.inputs, param)]
        for name in dict.fromkeys(missing):
            if (node.name, name) in FORM_TEXTS:
                continue
            hint = f"Use SetParam on `{name}` of {node.id}."
            if (node.name, name) == TOOL_ARGUMENTS:
                text = f"`{name}` is empty: right only for a tool that takes no arguments."
                yield warning("REQUIRED_PARAM_MISSING", text, where=node.id, field=name, hint=hint)
            else:
                text = f"{node.name} needs a value for `{name}`."
                yield error("REQUIRED_PARAM_MISSING", text, where=node.id, field=name, hint=hint)


def is_missing(inputs: Values, param: InputEntry) -> bool:
    """True if a required field has no value."""
    # An unset switch is off.
    if param.get("optional") or param["type"] in ("boolean", "tabs"):
        return False
    default, name = param.get("default"), param["name"]
    if name not in inputs and js_truthy(default):
        # Stored before the schema had this field: the server uses the default.
        return False
    # 0 and false as defaults are stored as ''.
    return is_empty(_stated(name, inputs.get(name))) and (default is None or js_truthy(default))


def _stated(name: str, value: Any) -> Any:
    """The value, with a separator quoted: a line break or a space is a valid separator, not an empty value."""
    return repr(value) if value and isinstance(value, str) and name.lower().endswith("separator") else value


@rule("NOT_A_NUMBER", "NOT_A_BOOLEAN", "NOT_A_TEXT", "NOT_A_LIST", "BAD_JSON", "BAD_OPTION")
def values(flow: FlowContext) -> Iterator[Finding]:
    """Values match the type of their field."""
    for node in flow.nodes:
        problems: dict[str, ValueProblem | None] = {}
        for param in flow.visible_params(node):
            name = str(param["name"])
            value = node.inputs.get(name)
            if value != "" and not is_empty(value) and problems.get(name, param) is not None:
                problems[name] = normalize(param, value, node.inputs)[1]
        for name, problem in problems.items():
            if problem is None:
                continue
            # An option or a form from an older version of the node type: the server accepts it.
            lenient = problem.code == "BAD_OPTION" and flow.version_drifted(node)
            yield value_finding(problem, node.id, name, lenient=lenient)


def value_finding(problem: ValueProblem, where: str, name: str, *, lenient: bool = False) -> Finding:
    """A finding for a problem of `values.normalize`."""
    return Finding(
        code=problem.code,
        severity="warning" if lenient else "error",
        detail=f"`{name}`: {problem.message}",
        where=where,
        field=name,
        allowed=problem.allowed,
        hint=f"For example {problem.example!r}.",
    )


@rule("BAD_JSON")
def json_texts(flow: FlowContext) -> Iterator[Finding]:
    """Examples, separators and filters are valid JSON; otherwise the node fails."""
    for node in flow.nodes:
        for name in JSON_TEXTS.get(node.name, ()):
            if problem := normalize({"name": name, "type": "json"}, node.inputs.get(name))[1]:
                yield value_finding(problem, node.id, name)


@rule("UNKNOWN_PARAM")
def unknown_params(flow: FlowContext) -> Iterator[Finding]:
    """Fields exist in the schema. The server ignores unknown ones."""
    for node in flow.nodes:
        schema = flow.schema(node)
        if schema is None:
            continue
        names = schema.defaults
        for name in node.inputs:
            if name in names or name in _EDITOR_KEYS or name.removesuffix("Config") in names:
                continue
            tabs = (entry.get("tabIdentifier") for entry in schema.input_definitions)
            if any(tab and name == f"{tab}_{node.id}" for tab in tabs):
                continue
            yield warning(
                "UNKNOWN_PARAM",
                f"{node.name} has no field {name!r}; the server ignores it.",
                where=node.id,
                field=name,
                hint="Use one of its fields, or UnsetParam.",
            )


@rule("NOT_AN_ID")
def ids(flow: FlowContext) -> Iterator[Finding]:
    """Flows, document stores and assistants are given by id; a name fails in the database at every question."""
    for node in flow.nodes:
        for param in flow.visible_params(node):
            if problem := id_problem(param, node.inputs.get(param["name"]), node.id, str(param["name"])):
                yield problem


def id_problem(param: InputEntry, value: Any, where: str, name: str) -> Finding | None:
    """The problem of a value that has to be an id; None if it is valid."""
    what = CHOSEN_BY_ID.get(str(param.get("loadMethod")))
    if what is None or is_empty(value) or has_variable(value):
        return None
    if isinstance(value, str) and is_uuid(value.partition(":")[0]):
        return None
    return error(
        "NOT_AN_ID",
        f"The {what} must be given by its id (a uuid), not by name.",
        where=where,
        field=name,
        hint=f"Take the id from the list of options of `{name}`; if it is not known, leave this to the person.",
    )


@rule("BAD_TOOL_ID", "UNKNOWN_TOOL")
def custom_tools(flow: FlowContext) -> Iterator[Finding]:
    """Custom tools are given by the id of an existing tool; otherwise the database fails."""
    for node in flow.nodes:
        if node.name == CUSTOM_TOOL:
            yield from tool_id(flow, node.inputs.get("selectedTool"), node.id, "selectedTool")


def tool_id(flow: FlowContext, value: Any, where: str, name: str) -> Iterator[Finding]:
    """Findings on the id of a custom tool."""
    if is_empty(value) or has_variable(value):
        return
    if not isinstance(value, str) or not is_uuid(value):
        yield error(
            "BAD_TOOL_ID",
            "The custom tool must be given by its id (a uuid), not by name.",
            where=where,
            field=name,
            hint="Take the id from the list of custom tools; if there is none, leave this to the person.",
        )
    elif flow.tools is not None and value not in flow.tools:
        yield Finding(
            code="UNKNOWN_TOOL",
            severity="error",
            detail=f"No tool with the id {value} exists on this Flowise server.",
            where=where,
            field=name,
            allowed=tuple(f"{key} ({title})" for key, title in list(flow.tools.items())[:3]),
            hint="Choose one from the list of tools.",
        )
