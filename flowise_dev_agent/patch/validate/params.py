"""Rules on fields: required values, and values on which the server fails or which it ignores silently."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.attached_files import is_stand_in
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import InputEntry, Values
from flowise_dev_agent.patch.model.json_text import as_dicts, dump_json, inner_json, is_uuid
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import ValueProblem, is_empty, normalize
from flowise_dev_agent.patch.model.visibility import js_truthy
from flowise_dev_agent.patch.validate.context import AGENTFLOW, Component, FlowContext, rule

CUSTOM_TOOL = "customTool"
#: Kinds of things on the server, besides those of CHOSEN_BY_ID.
TOOL, VARIABLE = "custom tool", "variable"
#: Of a custom tool by its id: its code, and its inputs as the JSON text of rows.
TOOL_CODE, TOOL_INPUTS = "code of a custom tool", "inputs of a custom tool"
SELECTED_TOOL = "selectedTool"
#: Node types that answer all the same when what they name is gone: worse, or with the error as text.
_GO_ON_WITHOUT = frozenset({"ChatflowTool", "agentAsTool", "agentAgentflow", "executeFlowAgentflow", "seqExecuteFlow"})
_BEGINS_WITH_NUMBER = re.compile(r"\s{0,9}[-+]?\.?\d")
_SERVER_VARIABLE = re.compile(r"\$vars\.([A-Za-z_][A-Za-z0-9_]{0,80})")
#: Required by the schema, but only the server knows whether the chosen tool takes arguments.
TOOL_ARGUMENTS = ("toolAgentflow", "toolInputArgs")
#: Texts above a form: without them the form is asked all the same.
FORM_TEXTS = frozenset({("startAgentflow", "formTitle"), ("startAgentflow", "formDescription")})
#: Fields whose default only the editor knows: the server fails without a stored value.
NO_DEFAULT_THERE = frozenset({"startInputType"})
#: Text fields that the server parses as JSON.
JSON_TEXTS: Mapping[str, tuple[str, ...]] = {
    "fewShotPromptTemplate": ("examples",),
    "recursiveCharacterTextSplitter": ("separators",),
    "github": ("ignorePath",),
    "awsBedrockKBRetriever": ("filter",),
}
#: Fields that a schema calls required and that the provider decides where they are empty; OpenAI gives summaries of its
#: reasoning to verified organizations only.
_LEFT_TO_PROVIDER = frozenset({"reasoningEffort", "reasoningSummary", "thinkingEffort"})
#: Fields that a schema calls required and that leave all to the server where they are empty: the first, or each one.
TAKES_ALL = frozenset({"selectedServer", "selectedEndpoints"})
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
                make = warning if name in TAKES_ALL else error
                yield make("REQUIRED_PARAM_MISSING", text, where=node.id, field=name, hint=hint)


def is_missing(inputs: Values, param: InputEntry) -> bool:
    """True if a required field has no value."""
    # An unset switch is off.
    default, name = param.get("default"), param["name"]
    if param.get("optional") or param["type"] in ("boolean", "tabs", "conditionFunction") or name in _LEFT_TO_PROVIDER:
        return False
    if name not in inputs and js_truthy(default) and name not in NO_DEFAULT_THERE:
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
            # An option or a form from an older version of the node type: the server accepts it, as it reads the number
            # that a text begins with.
            lenient = (problem.code == "BAD_OPTION" and flow.version_drifted(node)) or (
                problem.code == "NOT_A_NUMBER" and _BEGINS_WITH_NUMBER.match(str(node.inputs.get(name))) is not None
            )
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


@rule("VALUE_IGNORED", kinds=(AGENTFLOW,))
def ignored(flow: FlowContext) -> Iterator[Finding]:
    """Values stand in fields that count. The server reads what the editor shows, and takes no notice of the rest."""
    for node in flow.nodes:
        shown = {param["name"] for param in flow.visible_params(node)}
        told = set[str]()
        for param in flow.definitions(node).params if node.is_agentflow and not node.is_note else ():
            name, default = str(param["name"]), param.get("default")
            value = node.inputs.get(name)
            if name in shown or name in told or is_empty(value) or value is False or same_value(value, default):
                continue
            told.add(name)
            if (node.name, name) == (v2.HTTP, "body"):
                continue  # reported as HTTP_BODY_LOST
            needs = [f"`{field}` is {_or(wanted)}" for field, wanted in (param.get("show") or {}).items()]
            yield warning(
                "VALUE_IGNORED",
                f"`{name}` is not read: it counts only while {' and '.join(needs)}.",
                where=node.id,
                field=name,
                hint=f"Set that as well, or use UnsetParam on `{name}`.",
            )


def _or(wanted: Any) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted).lower()


@rule("UNKNOWN_PARAM")
def unknown_params(flow: FlowContext) -> Iterator[Finding]:
    """Fields exist in the schema. The server ignores unknown ones."""
    for node in flow.nodes:
        schema = flow.schema(node)
        if schema is None:
            continue
        names, undeclared = schema.defaults, schema.definitions.undeclared(node.id)
        for name in node.inputs:
            if name in names or name in undeclared or name in _EDITOR_KEYS or name.removesuffix("Config") in names:
                continue
            yield warning(
                "UNKNOWN_PARAM",
                f"{node.name} has no field {name!r}; the server ignores it.",
                where=node.id,
                field=name,
                hint="Use one of its fields, or UnsetParam.",
            )


@rule("NOT_AN_ID", "NOT_ON_SERVER")
def ids(flow: FlowContext) -> Iterator[Finding]:
    """Flows, document stores and assistants are given by id and exist: otherwise questions fail, or find nothing."""
    for one in flow.components:
        schema = flow.schemas.get(one.name)
        for param in schema.definitions.visible_params(one.inputs) if schema else ():
            field = f"{one.path}{param['name']}"
            if problem := id_problem(flow, one.name, param, one.inputs.get(param["name"]), one.node.id, field):
                yield problem


def id_problem(flow: FlowContext, owner: str, param: InputEntry, value: Any, where: str, name: str) -> Finding | None:
    """The problem of a value that has to be the id of something on the server; None if it is valid.

    ``owner`` is the type of the node, or of the model or tool inside it, that has the field.
    """
    what = CHOSEN_BY_ID.get(str(param.get("loadMethod")))
    # A placeholder is named to the person, who chooses there what does not exist yet.
    if what is None or is_empty(value) or has_variable(value) or stands_in(value):
        return None
    given = value.partition(":")[0] if isinstance(value, str) else ""
    hint = f"Take the id from the list of options of `{name}`; if it is not known, leave this to the person."
    if not is_uuid(given):
        text = f"The {what} must be given by its id (a uuid), not by name."
        return error("NOT_AN_ID", text, where=where, field=name, hint=hint)
    known = flow.server.get(what)
    if known is None or given in known or is_stand_in(given):
        return None
    text = f"This Flowise server has no {what} with the id {given}."
    make = warning if owner in _GO_ON_WITHOUT else error
    return make("NOT_ON_SERVER", text, where=where, field=name, hint=hint, allowed=_listed(known))


@rule("VARIABLE_NOT_ON_SERVER")
def server_variables(flow: FlowContext) -> Iterator[Finding]:
    """Variables of the server (`$vars.name`) exist; otherwise their name stays in the text, or code reads nothing."""
    known = flow.server.get(VARIABLE)
    for node in flow.nodes if known is not None else ():
        for field, value in node.inputs.items():
            text = value if isinstance(value, str) else dump_json(value) if isinstance(value, (list, dict)) else ""
            for name in dict.fromkeys(_SERVER_VARIABLE.findall(text)) if "$vars." in text else ():
                if name not in (known or ()):
                    yield warning(
                        "VARIABLE_NOT_ON_SERVER",
                        f"`{field}` uses $vars.{name}, which this Flowise server does not have.",
                        where=node.id,
                        field=field,
                        allowed=_listed(known or {}),
                        hint="Create the variable in Flowise, or use one that is there.",
                        variable=name,
                    )


def _listed(known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key} ({title})" for key, title in list(known.items())[:3])


@rule("BAD_TOOL_ID", "UNKNOWN_TOOL")
def custom_tools(flow: FlowContext) -> Iterator[Finding]:
    """Custom tools are given by the id of an existing tool; otherwise the database fails."""
    for one in flow.components:
        value, field = one.inputs.get(SELECTED_TOOL), f"{one.path}{SELECTED_TOOL}"
        if one.name != CUSTOM_TOOL or is_empty(value) or has_variable(value) or stands_in(value):
            continue
        known = flow.server.get(TOOL)
        if not isinstance(value, str) or not is_uuid(value):
            yield error(
                "BAD_TOOL_ID",
                "The custom tool must be given by its id (a uuid), not by name.",
                where=one.node.id,
                field=field,
                hint="Take the id from the list of custom tools; if there is none, leave this to the person.",
            )
        elif known is not None and value not in known and not is_stand_in(value):
            yield error(
                "UNKNOWN_TOOL",
                f"No tool with the id {value} exists on this Flowise server.",
                where=one.node.id,
                field=field,
                allowed=_listed(known),
                hint="Choose one from the list of tools.",
            )


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A custom tool of the server: its code, and its inputs by name, True for those that it needs."""

    code: str
    inputs: Mapping[str, bool]


def chosen_tool(flow: FlowContext, one: Component) -> ServerTool | None:
    """The custom tool that a component names; None if it names none, or what the server has is not known."""
    id_ = one.inputs.get(SELECTED_TOOL) if one.name == CUSTOM_TOOL else None
    code = flow.server.get(TOOL_CODE, {}).get(id_) if isinstance(id_, str) else None
    if code is None:
        return None
    rows = as_dicts(inner_json(flow.server.get(TOOL_INPUTS, {}).get(str(id_), "")))
    return ServerTool(code, {str(row.get("property")): js_truthy(row.get("required")) for row in rows})
