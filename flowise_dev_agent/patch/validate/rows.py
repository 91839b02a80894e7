"""Rules on rows of agentflow nodes: conditions, messages, answer fields, knowledge, state updates."""

from collections.abc import Iterator, Mapping, Sequence

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import InputEntry, Values
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.values import is_empty, normalize
from flowise_dev_agent.patch.model.visibility import js_truthy, row_fields
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule
from flowise_dev_agent.patch.validate.params import id_problem, value_finding

_CHOICES = frozenset({"options", "asyncOptions"})
#: The editor has a default for it that the server does not know: it fails.
_NO_DEFAULT_THERE = (v2.CONDITION, "operation")
#: Rows of state updates fail without this key; an empty text is valid.
_VALUE = "value"
_STATE_ROWS = ("State",)


#: Node type -> fields of its memory switch and its messages.
_MEMORY_AND_MESSAGES: Mapping[str, tuple[str, str]] = {
    "llmAgentflow": ("llmEnableMemory", "llmMessages"),
    "agentAgentflow": ("agentEnableMemory", "agentMessages"),
}
#: The provider that refuses a request without a message.
_ANTHROPIC = "chatAnthropic"
_INSTRUCTING = frozenset({"system", "developer"})
#: Node types that add messages to the conversation.
_SPEAKING = frozenset({*_MEMORY_AND_MESSAGES, v2.CONDITION_AGENT, v2.HUMAN_INPUT, "executeFlowAgentflow"})


@rule("REQUIRED_PARAM_MISSING", kinds=(AGENTFLOW,))
def messages(flow: FlowContext) -> Iterator[Finding]:
    """Messages of the first model in a conversation without memory: it looks for the question in a list of messages."""
    for node in flow.nodes:
        memory, name = _MEMORY_AND_MESSAGES.get(node.name, ("", ""))
        if not memory or js_truthy(node.inputs.get(memory)) or node.inputs.get(name) != "":
            continue
        if not any(other.name in _SPEAKING for other in _before(flow, node)):
            yield error(
                "REQUIRED_PARAM_MISSING",
                f"With its memory off {node.id} fails on an empty `{name}`.",
                where=node.id,
                field=name,
                hint=f"Use SetParam on `{name}` of {node.id} with a list of messages, or UnsetParam to leave it out.",
            )


@rule("NO_USER_MESSAGE", kinds=(AGENTFLOW,))
def said_to_the_model(flow: FlowContext) -> Iterator[Finding]:
    """Messages for a later model without memory: the server adds the person's message to the first model of a run only.
    Providers refuse a request without a message, and Anthropic one that has nothing but instructions.
    """
    for node in flow.nodes:
        memory, name = _MEMORY_AND_MESSAGES.get(node.name, ("", ""))
        if not memory or node.parent or js_truthy(node.inputs.get(memory)):
            continue
        instructed = node.inputs.get(name.replace("Messages", "Model")) != _ANTHROPIC
        given = node.inputs.get(name)
        rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
        said = any(row.get("content") and (instructed or row.get("role") not in _INSTRUCTING) for row in rows)
        if not said and any(other.name in _SPEAKING for other in _before(flow, node)):
            what = "no message" if instructed else "only instructions"
            yield error(
                "NO_USER_MESSAGE",
                f"{node.id} has {what}: with its memory off, a later model gets no message of a user.",
                where=node.id,
                field=name,
                hint=f"Add a row of role user to `{name}` with what the step works on, such as {{{{ question }}}} or "
                "the answer of the step before.",
            )


def _before(flow: FlowContext, node: FlowNode) -> list[FlowNode]:
    found: dict[str, FlowNode] = {}
    queue = [node]
    while queue:
        for connection in flow.connections_into.get(queue.pop().id, ()):
            if connection.source.id not in found:
                found[connection.source.id] = connection.source
                queue.append(connection.source)
    return list(found.values())


@rule("REQUIRED_PARAM_MISSING", "BAD_OPTION", "UNKNOWN_PARAM", kinds=(AGENTFLOW,))
def rows(flow: FlowContext) -> Iterator[Finding]:
    """Complete rows. The editor completes rows while they are typed; other rows may lack keys that the server needs."""
    for node in flow.nodes:
        for entry in flow.visible_params(node):
            parts = entry.get("array") or ()
            listed = node.inputs.get(entry["name"])
            if entry["type"] != "array" or not isinstance(listed, list):
                continue
            for number, row in enumerate(listed):
                field = f"{entry['name']}[{number}]"
                if isinstance(row, dict):  # otherwise reported as NOT_A_LIST
                    yield from _unknown_fields(node, field, row, parts)
                    yield from _row(flow, node, field, row, row_fields(entry, number, row, node.inputs))


def _unknown_fields(node: FlowNode, field: str, row: Values, parts: Sequence[InputEntry]) -> Iterator[Finding]:
    names = list(dict.fromkeys(str(part["name"]) for part in parts))
    known = {*names, *(f"{name}Config" for name in names)}
    for name in row:
        if name not in known:
            yield warning(
                "UNKNOWN_PARAM",
                f"The row has no field {name!r}; the server ignores it.",
                where=node.id,
                field=f"{field}.{name}",
                hint=f"Its fields: {', '.join(names)}.",
            )


def _row(flow: FlowContext, node: FlowNode, field: str, row: Values, parts: Sequence[InputEntry]) -> Iterator[Finding]:
    for place, part in enumerate(parts):
        name = str(part["name"])
        path, value = f"{field}.{name}", row.get(name)
        if part.get("loadConfig"):
            continue  # a model or tool: reported as NESTED_NODE_MISSING
        if is_empty(value):
            if problem := _missing(node, part, name, row, path, first=place == 0):
                yield problem
            continue
        if problem := id_problem(flow, node.name, part, value, node.id, path):
            yield problem
        elif found := normalize(part, value)[1]:
            lenient = found.code != "BAD_OPTION" or flow.version_drifted(node)
            yield value_finding(found, node.id, path, lenient=lenient)


def _missing(node: FlowNode, part: InputEntry, name: str, row: Values, path: str, *, first: bool) -> Finding | None:
    text, hint = f"The row needs `{name}`.", f"Use SetParam on `{path}` of {node.id}."
    if name == _VALUE and name not in row and path.partition("[")[0].endswith(_STATE_ROWS):
        return error("REQUIRED_PARAM_MISSING", f"{text} It may be empty.", where=node.id, field=path, hint=hint)
    default = part.get("default")
    if part.get("optional") or part["type"] == "boolean" or (default is not None and not js_truthy(default)):
        return None
    if default is not None and (node.name, name) != _NO_DEFAULT_THERE:
        return None
    # The server needs the first field of a row and choices from a list; it can do without other texts.
    make = error if first or part["type"] in _CHOICES else warning
    return make("REQUIRED_PARAM_MISSING", text, where=node.id, field=path, hint=hint)
