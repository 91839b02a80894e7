"""Simulated world of a test: a copy of the flow in which what changes the world is replaced by stand-ins.

A stand-in keeps the node's id, title and connections, takes what the node was given, and answers with a sample. Nothing
of it reaches an address: the code of a stand-in is a function without calls. Measured on Flowise 3.1.4: a custom
function runs in the sandbox and shows its variables in the trace; the OpenAPI toolkit takes its document inline and
runs its own code instead of a request, for chatflows and for tools of agents alike.
"""

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.patch import GraphIR, NodeSchema, Schemas
from flowise_dev_agent.patch.model.json_text import inner_json
from flowise_dev_agent.patch.model.node import FlowNode, init_node
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.patch.validate.http_bodies import unreadable_json
from flowise_dev_agent.publish import uploaded_file
from flowise_dev_agent.schemas.base import JsonObject, JsonValue
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, TraceStep
from flowise_dev_agent.testing import effects
from flowise_dev_agent.testing.answers import BARE, HTTP_READ, Answer, Form, answers_of, dotted, parsed, sample_answer
from flowise_dev_agent.testing.limits import Limit, Limits, with_limits
from flowise_dev_agent.testing.tool_names import spelt

#: Vector store that a process of Flowise keeps for one flow: a copy has to be filled, too.
OF_ONE_FLOW: Final = "memoryVectorStore"
_TOOLKIT: Final = "openAPIToolkit"
_STARTED_BY: Final = "startInputType"
_SCHEDULE: Final = "scheduleInput"
_ROWS: Final = "agentTools"
_ROW_TOOL: Final = "agentSelectedTool"
_STEP_TOOL: Final = "toolAgentflowSelectedTool"
#: Variable of a text, and the last name in it.
_VARIABLE: Final = re.compile(r"\{\{\s*(?:[^{}]*\.)?([^{}.]*?)\s*\}\}")
#: Beginning of the keys in the state of a flow that hold what is read of a stand-in.
_STATE: Final = "simulated_"
#: Steps that a function can stand in for, and their fields with the update of the state.
_UPDATES: Final[Mapping[str, str]] = {
    effects.HTTP: "",
    effects.TOOL_STEP: "toolUpdateState",
    effects.FLOW_STEP: "executeFlowUpdateState",
    effects.FUNCTION_STEP: "customFunctionUpdateState",
}
#: Steps whose settings a stand-in reads itself, and the code that does.
_READ_BY: Final[Mapping[str, str]] = {effects.HTTP: "http.js", effects.FLOW_STEP: "flow.js"}
_FORMS: Final[Mapping[str, Form]] = {effects.HTTP: "http", effects.FLOW_STEP: "flow"}
#: Names that a tool has at run time, where they are not those of its fields.
_TOOL_NAMES: Final[Mapping[str, str]] = {
    "requestsPost": "requests_post",
    "requestsPut": "requests_put",
    "requestsDelete": "requests_delete",
}
#: Argument of a request tool that holds all others.
_PART_OF: Final[Mapping[str, str]] = {
    "requestsGet": "queryParams",
    "requestsDelete": "queryParams",
    "requestsPost": "body",
    "requestsPut": "body",
}
#: Argument in which the toolkit puts those of its tools.
_WRAPPED: Final = "RequestBody"
#: Fields with the code of tools that run code.
_CODE_OF: Final[Mapping[str, str]] = {"customTool": "customToolFunc", _TOOLKIT: "customCode"}
_SAFE_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: Fields of an HTTP step that its stand-in reads.
_HTTP_FIELDS: Final = ("method", "url", "headers", "queryParams", "bodyType", "body")


@dataclass(frozen=True)
class StandIn:
    """Stand-in for a step, or for a tool of a node (`tool`: its type); or what would have one, had no person named its
    address.
    """

    node_id: str
    action: str
    tool: str = ""
    #: Normalised names of the tool in a trace.
    names: frozenset[str] = frozenset()
    address: str | None = None


@dataclass(frozen=True)
class Simulation:
    """Flow to test, its stand-ins, and the titles of nodes that change the world and have none."""

    flow_data: str
    stand_ins: Sequence[StandIn] = ()
    #: What is really called, since a person named its address.
    named: Sequence[StandIn] = ()
    acting: Sequence[str] = ()
    #: Original type of each replaced step.
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    #: A message starts the flow instead of its schedule.
    by_message: bool = False
    #: Loops that the copy can bring to their limit.
    limits: Sequence[Limit] = ()
    #: What is left in a text where an answer lacks a field, and the variable of the flow behind it.
    reads: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Vector stores whose documents the copy holds in memory.
    held: Collection[str] = ()

    @property
    def is_copy(self) -> bool:
        """True if a copy has to be asked in place of the flow."""
        return bool(self.stand_ins) or self.by_message or bool(self.held) or bool(self.limits)

    def actions(self) -> list[str]:
        """Actions of the flow on the world, which its tests simulate."""
        return list(dict.fromkeys(one.action for one in self.stand_ins))

    def addresses(self) -> list[str]:
        """Addresses that a person may name, so that they are really called."""
        return sorted({one.address for one in self.stand_ins if one.address})

    def used_in(self, trace: Trace) -> list[str]:
        """Actions that were simulated in a conversation."""
        return list(dict.fromkeys(one.action for one in self.stand_ins if self._ran(one, trace)))

    def called_in(self, trace: Trace) -> list[str]:
        """Actions that were really done in a conversation, since a person named their address."""
        return list(dict.fromkeys(one.action for one in self.named if self._ran(one, trace)))

    def uses(self, number: int, trace: Trace) -> bool:
        """True if a stand-in ran in a conversation. A call that no stand-in is known to have answered counts for those
        whose names only the server knows.
        """
        return self._ran(self.stand_ins[number], trace)

    def _ran(self, one: StandIn, trace: Trace) -> bool:
        if not one.tool:
            return any(step.node_id == one.node_id for step in trace.steps)
        return any(self._answers(one, tool.tool) for tool in trace.used_tools)

    def _answers(self, one: StandIn, tool: str) -> bool:
        named = spelt(tool)
        return bool(one.tool) and (
            named in one.names
            if one.names
            else not any(named in other.names for other in (*self.stand_ins, *self.named))
        )

    def answered(self, reply: Prediction) -> Prediction:
        """Reply without what the stand-in of a request says at the end of a flow: a request has no text."""
        return reply.model_copy(update={"text": ""}) if self.ends_with_request(reply) else reply

    def ends_with_request(self, reply: Prediction) -> bool:
        """True if the last step that ran is a request, or the stand-in of one."""
        last = reply.agent_flow_executed_data[-1] if reply.agent_flow_executed_data else {}
        node, data = str(last.get("nodeId")), last.get("data")
        return self.types.get(node, data.get("name") if isinstance(data, dict) else "") == effects.HTTP

    def told(self, trace: Trace) -> Trace:
        """Trace with the replaced steps under their own types, with what they were given."""
        state = {key: value for key, value in trace.state.items() if not key.startswith(_STATE)}
        turns = [turn.model_copy(update={"answer": self.restored(turn.answer)}) for turn in trace.turns]
        tools = [
            tool.model_copy(update={"simulated": bool(by), "input": _unwrapped(tool.input) if by else tool.input})
            for tool in trace.used_tools
            for by in [[one for one in self.stand_ins if self._answers(one, tool.tool)]]
        ]
        loops, gates = {one.loop: one.node_id for one in self.limits}, {one.gate for one in self.limits}
        steps = [
            self._step(step.model_copy(update={"node_id": loops.get(step.node_id, step.node_id)}))
            for step in trace.steps
            if step.node_id not in gates
        ]
        return trace.model_copy(update={"turns": turns, "steps": steps, "used_tools": tools, "state": state})

    def restored(self, said: str) -> str:
        """Text with the variables of the flow itself where nothing was filled in."""
        for left, variable in self.reads.items():
            said = said.replace(left, variable)
        return said

    def _step(self, step: TraceStep) -> TraceStep:
        if step.node_id not in self.types:
            return step
        given = step.input if isinstance(step.input, dict) else {}
        rows = given.get("inputVariables")
        shown = dict(_by_name(rows, "variable"))
        name, output = self.types[step.node_id], step.output
        if name == effects.HTTP and isinstance(output, dict) and (said := inner_json(str(output.get("content")))):
            output = {"http": said}
        return step.model_copy(update={"name": name, "input": shown or step.input, "output": output, "simulated": True})


def simulated_steps(
    graph: GraphIR, tests: Iterable[TestCase], real: Collection[str] | None = None, harmless: Collection[str] = ()
) -> set[str]:
    """Ids of the steps that are simulated in the tests: those that change the world, those that a test answers, and
    those that read where nothing can be. With `real` all that change or read the world, except at these addresses.
    """
    given = answers_of(tests)
    return {
        node.id
        for node in graph.nodes
        if _is_simulated(
            effects.step_effect(node.name, node.category, node.inputs, harmless),
            *_called_by(node),
            node.id in given,
            real,
        )
    }


def _called_by(node: FlowNode) -> tuple[str, str | None]:
    """Type of what a node calls, and its address."""
    tool = str(node.inputs.get(_STEP_TOOL) or "") if node.name == effects.TOOL_STEP else ""
    return tool or node.name, effects.address_of(tool or node.name, _config(node) if tool else node.inputs)


def _is_simulated(
    effect: effects.Effect, type_: str, address: str | None, answered: bool, real: Collection[str] | None
) -> bool:
    if real is None or type_ in effects.OF_STORES:
        return effect == "changes" or (effect == "reads" and (answered or effects.is_nowhere(address or "")))
    return effect != "none" and address not in real


NOTHING_SIMULATED: Final = Simulation("")


def simulated(
    graph: GraphIR,
    schemas: Schemas,
    tests: Iterable[TestCase] = (),
    real: Collection[str] | None = None,
    *,
    limits: bool = False,
    harmless: Collection[str] = (),
) -> Simulation:
    """Simulation of a flow. What a test gives as an answer is simulated, also where it only reads; what changes the
    world is simulated in any case, without an answer by the fields that the flow reads. With `real` only these
    addresses are called, and what reads at others is simulated as well. With `limits` the copy can bring loops to their
    limit. Custom tools in `harmless` are run as they are.
    """
    graph, ended = with_limits(graph, schemas) if limits and not uploaded_file(graph) else Limits(graph)
    function, has_toolkit = schemas.get(effects.FUNCTION_STEP), _TOOLKIT in schemas
    tests = list(tests)
    whole, given, steps = graph.to_flow_data(), answers_of(tests), simulated_steps(graph, tests, real, harmless)
    stand_ins: list[StandIn] = []
    named: list[StandIn] = []
    acting: list[str] = []
    types: dict[str, str] = {}
    nodes: list[FlowNode] = []
    reads = _reads_of_http(whole, [node.id for node in graph.nodes if node.name == effects.HTTP])
    by_message = False
    for node in graph.nodes:
        new = node
        if not node.is_note and node.id in steps:
            answer = Answer(len(stand_ins), given.get(node.id, {}), sample_answer(node.id, whole))
            made = _step_stand_in(node, function, answer, reads)
            if made is None and has_toolkit:
                made = _tool_stand_in(node, schemas, answer)
            if made is not None:
                new, stand_in = made
                stand_ins.append(replace(stand_in, address=_called_by(node)[1]))
                if not stand_in.tool:
                    types[node.id] = node.name
            elif real is not None or effects.step_effect(node.name, node.category, node.inputs) == "changes":
                acting.append(node.label or node.id)
        elif not node.is_note and real and (address := _called_by(node)[1]) in real:
            is_tool = node.category in effects.TOOL_CATEGORIES
            names = _names(node.name, node.label, node.inputs, schemas.get(node.name)) if is_tool else ()
            named.append(
                StandIn(
                    node.id, _action(node), node.name if is_tool else "", frozenset(map(spelt, names)), address=address
                )
            )
        elif node.inputs.get(_STARTED_BY) == _SCHEDULE and node.inputs.get("scheduleInputMode") != "form":
            by_message, new = True, node.copy()
            new.set_inputs({**node.inputs, _STARTED_BY: "chatInput"})
        elif isinstance(rows := node.inputs.get(_ROWS), list):
            changed, found, called = _rows(
                node, rows, given, schemas, first=len(stand_ins), real=real, harmless=harmless
            )
            named += called
            if found and not has_toolkit:
                acting.append(node.label or node.id)
            elif found:
                stand_ins += found
                new = node.copy()
                new.set_inputs({**node.inputs, _ROWS: changed})
        nodes.append(new)
    if not stand_ins and not by_message:
        return Simulation(whole, acting=acting, named=named, limits=ended)
    moved = {read: key for read, key in reads.items() if read[0] in types}
    nodes = [_reading(node, moved) for node in nodes] if moved else nodes
    copied = graph.with_parts(nodes, graph.edges).to_flow_data()
    unread = {f"{{{{ output.{dotted(path)} }}}}": f"{{{{ {step}.output.http.{path} }}}}" for step, path in moved}
    return Simulation(copied, stand_ins, named, acting, types, by_message, ended, unread)


def in_memory(flow_data: str, stores: Collection[str], schemas: Schemas) -> str:
    """The flow with these vector stores in memory: it answers from its own documents, and nothing is written to where
    the live flow reads.
    """
    graph, schema = GraphIR.from_flow_data(flow_data), schemas[OF_ONE_FLOW]
    names = {entry["name"] for entry in schema.input_definitions}
    nodes = [
        _replaced(node, schema, {name: value for name, value in node.inputs.items() if name in names})
        if node.id in stores
        else node
        for node in graph.nodes
    ]
    for node, old in zip(nodes, graph.nodes, strict=True):
        if node is not old:
            node.data["outputs"] = old.data.get("outputs", {})
    return graph.with_parts(nodes, graph.edges).to_flow_data()


def _step_stand_in(
    node: FlowNode, schema: NodeSchema | None, answer: Answer, reads: Mapping[tuple[str, str], str]
) -> tuple[FlowNode, StandIn] | None:
    if schema is None or node.name not in _UPDATES:
        return None
    if node.name == effects.TOOL_STEP and (code := _own_code(str(node.inputs.get(_STEP_TOOL)), _config(node))):
        new = node.copy()
        config = {**_config(node), code: answer.code("text")}
        new.set_inputs({**node.inputs, f"{_STEP_TOOL}Config": config})
        return new, StandIn(node.id, _action(node))
    given = {name: value for name, value in _given(node).items() if value not in (None, "", [])}
    form: Form = _FORMS.get(node.name, "json")
    reads_settings = _READ_BY.get(node.name)
    declared = "".join(f"const ${name} = '';\n" for name in _given(node) if reads_settings and name not in given)
    reading = _reading_code(reads_settings) if reads_settings else ""
    values: dict[str, Any] = {
        "customFunctionInputVariables": [
            {"variableName": _SAFE_NAME.sub("_", name), "variableValue": one} for name, one in given.items()
        ],
        "customFunctionJavascriptFunction": f"{declared}{reading}\n{answer.code(form)}",
    }
    update = [
        {"key": key, "value": f"{{{{ output.{dotted(path)} }}}}"}
        for (id_, path), key in reads.items()
        if id_ == node.id
    ]
    if update := update or node.inputs.get(_UPDATES[node.name]):
        values["customFunctionUpdateState"] = update
    return _replaced(node, schema, values), StandIn(node.id, _action(node))


def _config(node: FlowNode) -> dict[str, Any]:
    """Settings of the tool of a tool step."""
    config = node.inputs.get(f"{_STEP_TOOL}Config")
    return config if isinstance(config, dict) else {}


@cache
def _reading_code(file: str) -> str:
    """Code that reads the settings of a step and fails where Flowise does."""
    folder = files("flowise_dev_agent.testing.readings")
    return "".join((folder / name).read_text("utf-8") for name in ("json.js", file))


def _given(node: FlowNode) -> Mapping[str, Any]:
    """Values that a step is given, by name."""
    match node.name:
        case effects.HTTP:
            return {key: node.inputs.get(key) for key in _HTTP_FIELDS}
        case effects.TOOL_STEP:
            return _by_name(node.inputs.get("toolInputArgs"), "inputArg")
        case effects.FLOW_STEP:
            fields = ("input", "overrideConfig", "baseURL")
            return {name: node.inputs.get(f"executeFlow{name[0].upper()}{name[1:]}") for name in fields}
        case _:
            return _by_name(node.inputs.get("customFunctionInputVariables"), "variable")


def _by_name(rows: object, what: str) -> Mapping[str, Any]:
    listed: list[Any] = rows if isinstance(rows, list) else []
    return {str(row.get(f"{what}Name")): row.get(f"{what}Value") for row in listed if isinstance(row, dict)}


def _action(node: FlowNode) -> str:
    """Action of a step on the world, for people."""
    if node.name == effects.HTTP:
        address = _VARIABLE.sub(r"{\1}", without_markup(str(node.inputs.get("url") or "")))
        return f"{node.inputs.get('method') or 'GET'} {address}".rstrip()
    return node.label or str(node.inputs.get(_STEP_TOOL) or node.id)


def _tool_action(names: Sequence[str], type_: str, schema: NodeSchema | None) -> str:
    """Action of a tool, for people: its own names, else what its type is called."""
    has_own = [*names] != [_name(_TOOL_NAMES.get(type_) or type_)]
    return ", ".join(names) if names and has_own else schema.label if schema else type_


def _tool_stand_in(node: FlowNode, schemas: Schemas, answer: Answer) -> tuple[FlowNode, StandIn] | None:
    if node.category not in effects.TOOL_CATEGORIES:
        return None
    made = _tool(node.name, node.label, node.inputs, answer, schemas)
    if made.type == node.name:
        new = node.copy()
        new.set_inputs({**node.inputs, **made.inputs})
    else:
        new = _replaced(node, schemas[_TOOLKIT], made.inputs)
    return new, StandIn(node.id, node.label or node.name, node.name, made.spelt())


def _rows(
    node: FlowNode,
    rows: Sequence[Any],
    given: Mapping[str, Mapping[str, JsonValue]],
    schemas: Schemas,
    *,
    first: int,
    real: Collection[str] | None,
    harmless: Collection[str],
) -> tuple[list[Any], list[StandIn], list[StandIn]]:
    """Rows of an agent's tools with stand-ins for those that are simulated, these, and those that are really called."""
    changed: list[Any] = []
    found: list[StandIn] = []
    named: list[StandIn] = []
    for row in rows:
        type_ = str(row.get(_ROW_TOOL) or "") if isinstance(row, dict) else ""
        config = row.get(f"{_ROW_TOOL}Config") if type_ else None
        inputs = config if isinstance(config, dict) else {}
        names = _names(type_, type_, inputs, schemas.get(type_))
        action = _tool_action(names, type_, schemas.get(type_))
        effect = effects.tool_effect(type_, inputs, harmless)
        # An answer of the whole agent is one of what acts.
        whole = (node.id,) if effect == "changes" else ()
        own = next((given[name] for name in (*names, type_, *whole) if name in given), {})
        address = effects.address_of(type_, inputs)
        if not type_ or not _is_simulated(effect, type_, address, bool(own), real):
            changed.append(row)
            if real and address in real:
                named.append(StandIn(node.id, action, type_, frozenset(map(spelt, names)), address))
            continue
        made = _tool(type_, type_, inputs, Answer(first + len(found), own, sample_answer(type_, "")), schemas)
        kept = inputs if made.type == type_ else {}
        changed.append(
            {**row, _ROW_TOOL: made.type, f"{_ROW_TOOL}Config": {**kept, _ROW_TOOL: made.type, **made.inputs}}
        )
        found.append(StandIn(node.id, action, type_, made.spelt(), address))
    return changed, found, named


def _replaced(node: FlowNode, schema: NodeSchema, values: Mapping[str, Any]) -> FlowNode:
    """Node of another type in the place of this one, with its title and its connections."""
    data = init_node(schema, node.id, agentflow=schema.is_agentflow)
    data["label"] = node.label
    data["inputs"] = {**data.get("inputs", {}), **values}
    if node.is_agentflow:
        data["outputAnchors"] = node.data.get("outputAnchors", [])
    return FlowNode({**node.raw, "data": data})


# --- tools -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tool:
    """Stand-in of a tool: its type, its inputs, and its names for the model. Without names they are known to the server
    alone.
    """

    type: str
    inputs: dict[str, JsonValue]
    names: Sequence[str] = ()

    def spelt(self) -> frozenset[str]:
        return frozenset(map(spelt, self.names))


def _tool(type_: str, label: str, inputs: Mapping[str, Any], answer: Answer, schemas: Schemas) -> _Tool:
    """Stand-in of a tool: itself with other code where it has code, else an OpenAPI toolkit whose code answers."""
    if (code := _own_code(type_, inputs)) is not None:
        return _Tool(type_, {code: answer.code("text")})
    names, schema = _names(type_, label, inputs, schemas.get(type_)), schemas.get(type_)
    return _Tool(_TOOLKIT, _toolkit_inputs(names, inputs, answer, schema), names)


def _own_code(type_: str, inputs: Mapping[str, Any]) -> str | None:
    """Field with the code of a tool that runs code; with other code the tool keeps its name and its arguments."""
    return None if type_ == _TOOLKIT and inputs.get("inputType") == "link" else _CODE_OF.get(type_)


def _toolkit_inputs(
    names: Sequence[str], inputs: Mapping[str, Any], answer: Answer, type_: NodeSchema | None
) -> dict[str, JsonValue]:
    """Inputs of an OpenAPI toolkit whose operations run code that answers. A setting that the tool could not read goes
    with them, into a field that the toolkit cannot read either.
    """
    about = next((str(value) for key, value in inputs.items() if key.casefold().endswith("description") and value), "")
    paths: dict[str, Any] = {}
    for name in names:
        given: JsonObject = {"type": "object", "properties": _arguments(type_, name, inputs)}
        operation = {
            "operationId": name,
            "description": about or f"{type_.label if type_ else ''}: {name}",
            "requestBody": {"content": {"application/json": {"schema": given}}},
        }
        paths[f"/{_name(name)}"] = {"post": operation}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "stand-in", "version": "1"},
        "servers": [{"url": "http://stand-in"}],
        "paths": paths,
    }
    encoded = base64.b64encode(json.dumps(document).encode()).decode()
    return {
        "inputType": "file",
        "openApiFile": f"data:application/json;base64,{encoded},filename:stand-in.json",
        "selectedServer": "http://stand-in",
        "selectedEndpoints": "",
        "customCode": answer.code("text"),
        "headers": _unreadable(inputs),
    }


def _unreadable(inputs: Mapping[str, Any]) -> str:
    """Value of a setting that a tool cannot read when it is made; empty if there is none."""
    for name, value in inputs.items():
        if not isinstance(value, str) or not value:
            continue
        # The body of a request is JSON5, what another flow is to be given is JSON and read only if it looks like it.
        if (name.endswith("Headers") or name == "requestPostBody") and unreadable_json(value):
            return value
        if name == "overrideConfig" and value.startswith("{") and value.endswith("}") and inner_json(value) is None:
            return value
    return ""


def _arguments(type_: NodeSchema | None, action: str, inputs: Mapping[str, Any]) -> JsonObject:
    """Arguments of a tool's action: those that its schemas declare and the fields that Flowise shows for it, else one
    text.
    """
    found: JsonObject = {}
    part = _PART_OF.get(type_.name) if type_ else None
    kinds = () if part == "queryParams" else ("number", "boolean")
    for name, declared in inputs.items():
        fields = parsed(declared) if name.endswith("Schema") else None
        for key, field_ in fields.items() if isinstance(fields, dict) else ():
            about = field_ if isinstance(field_, dict) else {}
            kind = str(about.get("type"))
            found[key] = {
                "type": kind if kind in kinds else "string",
                "description": str(about.get("description") or key),
            }
    for entry in type_.input_definitions if type_ else ():
        shown: Any = entry.get("show") or {}
        if any(key.casefold().endswith("actions") and action in wanted for key, wanted in shown.items()):
            kind = str(entry.get("type"))
            found[entry["name"]] = {
                "type": kind if kind in ("number", "boolean") else "string",
                "description": str(entry.get("label") or entry["name"]),
            }
    if part:
        as_text: JsonObject = {"type": "string", "description": "JSON object"}
        return {part: {"type": "object", "properties": found} if found else as_text}
    return found or {"input": {"type": "string"}}


def _unwrapped(given: JsonValue) -> JsonValue:
    """Arguments of a call as the tool itself takes them."""
    return given[_WRAPPED] if isinstance(given, dict) and given.keys() == {_WRAPPED} else given


def _names(type_: str, label: str, inputs: Mapping[str, Any], schema: NodeSchema | None) -> list[str]:
    """Names of a tool for its agent: of its chosen actions, of its fields, or of its type."""
    shown = schema.definitions.visible_params(inputs) if schema else []
    choices = {one["name"]: one["type"] for one in shown if str(one["type"]).endswith("ultiOptions")}
    if actions := {name: kind for name, kind in choices.items() if name.casefold().endswith("actions")}:
        return [one for name, kind in actions.items() for one in _chosen(inputs.get(name), listed=kind[:5] == "async")]
    if chosen := _chosen(inputs.get("selectedEndpoints"), listed=True):
        return chosen
    own = next((inputs[key] for key in ("name", "toolName", "requestsPostName") if inputs.get(key)), None)
    named = own or next((value for key, value in inputs.items() if key.endswith("Name") and value), None)
    if named and type_.startswith("requests"):
        return [re.sub(r"[^a-z0-9_-]", "", str(named).lower().replace(" ", "_"))]
    return [str(named)] if named else [_name(_TOOL_NAMES.get(type_) or label)]


def _chosen(value: object, *, listed: bool) -> list[str]:
    """Chosen actions. Flowise reads them from JSON text; only tools whose server says what there is take a list too."""
    if isinstance(value, str):
        value, listed = inner_json(value), True
    return [str(one) for one in value] if isinstance(value, list) and listed else []


def _name(name: str) -> str:
    return _SAFE_NAME.sub("_", name.strip()).strip("_")[:64] or "tool"


# --- reads of answers ------------------------------------------------------------------------------------------------


def _reads_of_http(flow_data: str, steps: Iterable[str]) -> dict[tuple[str, str], str]:
    """Key in the state of the flow for each (step, path) that is read of the answer of an HTTP step."""
    found = [(step, path or BARE) for step in steps for path in re.findall(HTTP_READ % re.escape(step), flow_data)]
    return {read: f"{_STATE}{number}" for number, read in enumerate(dict.fromkeys(found))}


def _reading(node: FlowNode, moved: Mapping[tuple[str, str], str]) -> FlowNode:
    """Node that reads the answers of HTTP steps where their stand-ins put them: in the state of the flow."""
    inputs = _with_reads(node.inputs, moved)
    if inputs == node.inputs:
        return node
    new = node.copy()
    new.set_inputs(inputs)
    return new


def _with_reads(value: Any, moved: Mapping[tuple[str, str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_reads(item, moved) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_reads(item, moved) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    for step in dict.fromkeys(step for step, _ in moved):
        value = re.sub(
            HTTP_READ % re.escape(step),
            lambda found, step=step: f"{{{{ $flow.state.{moved[step, found[1] or BARE]} }}}}",
            value,
        )
    return value
