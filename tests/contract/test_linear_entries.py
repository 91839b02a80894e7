"""Every public function of the packages that read foreign text, walked: its time grows linearly with the text.

Arguments are made from the types of the parameters: a text becomes a hostile one, a flow, a plan or a request has it in
all of its fields, or has as many nodes, lines and values. What refuses its arguments is listed with the reason, and a
new function is measured by itself.
"""

import dataclasses
import importlib
import inspect
import json
import pkgutil
import time
import types
import typing
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cache, partial
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, Finding, FlowNode, GraphIR, NodeSchema, SetParam, compile_ops
from flowise_dev_agent.patch.model.flow_data import Conditions, FlowData, InputEntry, NodeData, NodeType, OutputEntry
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.ops import PatchOp
from flowise_dev_agent.patch.validate.context import FlowContext
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest
from flowise_dev_agent.planning.skills import Skills
from flowise_dev_agent.schemas.plan import (
    Intent,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
)
from flowise_dev_agent.schemas.verdict import Trace, Trial

PACKAGES = ("planning", "forms", "approval", "patch")
UNITS = ("a ", "{{", "\n- ", "http://a@", '{"a":', "a: ", "$vars.a ", "not <b>")
#: Many short texts in the place of a long one, see `Many`.
MANY = "many"
SMALL, LARGE = 4_096, 16_384
#: Below this the clock measures noise; four times the text takes up to seven times as long on a busy machine.
NOISE_SECS, SLOWER = 0.01, 9


@cache
def store() -> NodeStore:
    return NodeStore.from_snapshot()


STEP, LINES_FROM = "llmAgentflow_0", "startAgentflow_0"


@cache
def base() -> str:
    names = ("startAgentflow", "llmAgentflow", "conditionAgentflow", "httpAgentflow", "customFunctionAgentflow")
    ops: list[PatchOp] = [AddNode(node_name=name, node_id=f"{name}_0") for name in names]
    ops.append(Connect(source_node_id=LINES_FROM, target_node_id=STEP))
    return compile_ops(GraphIR.empty(), ops, store().schemas).flow_data


class Many(str):
    """A text that stands for many short ones: as many nodes, lines, values, rows and names."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> "Many":
        return Many(super().__getitem__(at))

    def pieces(self) -> list[str]:
        return [f"a{number}" for number in range(len(self) // 64)]


def pieces(text: str) -> list[str]:
    return text.pieces() if isinstance(text, Many) else [text]


def graph(text: str) -> GraphIR:
    """A flow that has the text in each field and title; of many, one whose steps are as many."""
    document = GraphIR.from_flow_data(base()).document
    nodes: list[Any] = [
        {
            **node,
            "data": {
                **node["data"],
                "label": text[:200],
                "inputs": {name: text if isinstance(value, str) else value for name, value in inputs.items()}
                if (inputs := node["data"].get("inputs", {}))
                else {},
            },
        }
        for node in document["nodes"]
    ]
    edges: list[Any] = [*document["edges"]]
    if isinstance(text, Many):
        nodes, last = [*document["nodes"]], STEP
        step, line = json.dumps(next(node for node in nodes if node["id"] == STEP)), json.dumps(edges[0])
        for number, piece in enumerate(text.pieces(), 1):
            id_ = f"llmAgentflow_{number}"
            nodes.append(json.loads(step.replace(STEP, id_)))
            nodes[-1]["data"]["label"], nodes[-1]["data"]["inputs"]["llmUserMessage"] = piece, f"{{{{ {last} }}}}"
            edges.append(json.loads(line.replace(STEP, id_).replace(LINES_FROM, last)))
            last = id_
    return GraphIR({**document, "nodes": nodes, "edges": edges})


def plan(text: str) -> Plan:
    ids = [node.id for node in graph(text if isinstance(text, Many) else "").nodes]
    words = "a" if isinstance(text, Many) else text
    return Plan.model_construct(
        goal=words,
        operation="update",
        flow_name=words[:100],
        nodes=[PlannedNode(node_id=id_, node_name=id_.rpartition("_")[0], purpose=words, existing=True) for id_ in ids],
        values=[PlannedValue(node_id=id_, param="llmUserMessage", value=words) for id_ in ids if id_.startswith("llm")],
        steps=pieces(text),
        parts=[
            Part.model_construct(id=f"p{number}", quote=one, state="covered") for number, one in enumerate(pieces(text))
        ],
    )


def request(kind: type[Any], text: str) -> Any:
    """A request with the text as the requirement, and in its plan and flow."""
    from tests.support.requests import UPDATE, plan_request

    asked = plan_request(store(), text, intent=UPDATE, flow=GraphView(graph(text)))
    if kind is PlanRequest:
        return replace(asked, previous=plan(text), feedback=text)
    known = {name: value for name, value in vars(asked).items() if name in kind.__dataclass_fields__}
    if kind is JudgeRequest:
        known["trials"] = (Trial(question=text, passed=True, answer=text),)
    return kind(**known) if kind is ClassifyRequest else kind(**known, plan=plan(text))


def context(text: str) -> FlowContext:
    return FlowContext(graph(text), store().schemas, None, kind="AGENTFLOW")


MAKERS: Mapping[Any, Callable[[str], Any]] = {
    str: lambda text: text,
    bytes: lambda text: text.encode(),
    object: lambda text: text,
    Any: lambda text: {"a": pieces(text), "b": text},
    GraphIR: graph,
    FlowEdge: lambda text: graph(text).edges[-1],
    FlowContext: lambda text: FlowContext(graph(text), store().schemas, None, kind="AGENTFLOW"),
    FlowNode: lambda text: next(node for node in graph(text).nodes if node.id == STEP),
    FlowData: lambda text: graph(text).document,
    NodeSchema: lambda text: store().schemas["llmAgentflow"],
    NodeStore: lambda text: store(),
    Plan: plan,
    Intent: lambda text: Intent(operation="update", ambiguity=0, title=text[:100]),
    PlannedValue: lambda text: plan(text).values[0],
    PlannedNode: lambda text: plan(text).nodes[0],
    Finding: lambda text: Finding(code="UNKNOWN_PARAM", severity="error", detail=text, where=STEP),
    PlanRequest: partial(request, PlanRequest),
    PatchRequest: partial(request, PatchRequest),
    ClassifyRequest: partial(request, ClassifyRequest),
    JudgeRequest: partial(request, JudgeRequest),
    AddNode: lambda text: AddNode(node_name="llmAgentflow", node_id="new_0", params={"llmUserMessage": text}),
    SetParam: lambda text: SetParam(node_id=STEP, param_name="llmUserMessage", value=text),
    PlanContext: lambda text: PlanContext(plan=plan(text), request=request(PlanRequest, text)),
    GraphView: lambda text: GraphView(graph(text)),
    Skills: lambda text: Skills(),
    Trace: lambda text: Trace(),
    InputEntry: lambda text: {"name": "a", "label": text, "type": "string", "description": text},
    OutputEntry: lambda text: {"name": "a", "label": text, "id": text},
    NodeData: lambda text: next(node for node in graph(text).document["nodes"] if node["id"] == STEP)["data"],
    NodeType: lambda text: store().schemas["llmAgentflow"].raw,
    Conditions: lambda text: {"show": {"a": text}},
    Callable[[str], str]: lambda text: str.upper,
    Callable[..., str]: lambda text: lambda code, **values: f"{code} {values}",
    PatchError: lambda text: PatchError(text),
    ModelOutputError: lambda text: ModelOutputError(text, details={"problems": pieces(text)}),
    bool: lambda text: False,
    int: lambda text: 1_000,
    float: lambda text: 0.5,
    date: lambda text: date(2026, 1, 1),
    types.NoneType: lambda text: None,
}

_LONG = "the schema of what it makes limits the length of its texts"
_CODES = "it takes codes and ids of ours, not texts"
#: Functions that refuse what is made here, and the reason.
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "approval.manual_edits.plan_of",
            "forms.plan.plan_of",
            "forms.starters.choose",
            "forms.starters.with_placeholders",
            "planning.passes.document_stores.grown",
        ),
        _LONG,
    ),
    **dict.fromkeys(
        (
            "forms.starters.needs_of",
            "forms.wiring.complete",
            "forms.wiring.wire_plan",
            "patch.compile.edges.remove_edge",
            "patch.compile.node_ops.select_output",
            "patch.model.ops.whole_example",
            "planning.permissions.uploads_text",
            "planning.plan_text.without_section",
        ),
        _CODES,
    ),
    **dict.fromkeys(
        (
            "forms.chatflow.chatflow_plan",
            "forms.defaults.check_filled",
            "forms.ops.to_ops",
            "forms.providers.named_model",
            "forms.steps.steps_plan",
            "patch.model.addresses.named_origin",
            "patch.model.ops.ops_from_json",
            "patch.model.ops.ops_from_list",
            "planning.plan_checks.checked_amendment",
            "planning.votes.checked_judgement",
        ),
        "it reads what it is given, and says what is wrong with it",
    ),
}
#: Functions that compare many with many.
OF_TWO: Mapping[str, str] = {
    "approval.ops.completed": "an answer of a model: its ops with the values of its plan",
    "planning.passes.document_stores.named_in": "the stores of the server in the words of a person",
    "planning.passes.examples.with_examples": "the attached files with the prompts of a flow",
    "planning.plan_checks.checked_amendment": "an answer of a model: what it adds with its plan",
    "planning.wording.complete": "quotes of a model in the words of a person",
    "planning.values.with_planned_values": "an answer of a model: its ops with the values of its plan",
}


class UnmadeError(Exception):
    """A parameter of a type that nothing here makes."""


def made(kind: Any, text: str) -> Any:
    """An argument of a type with the text in it."""
    if kind in MAKERS:
        return MAKERS[kind](text)
    if str(kind) == "JsonValue":
        return {"a": [text], "b": text}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[0]
    if origin is typing.Annotated:
        return made(inner[0], text)
    if origin in (typing.Union, types.UnionType):
        return made(next((one for one in inner if one is not types.NoneType and makes(one)), inner[-1]), text)
    if origin is tuple and inner[-1] is not ...:
        return tuple(made(one, text) for one in inner)
    if origin in (list, Sequence, Iterable, Collection, Container, Iterator, tuple):
        return [made(inner[0], one) for one in pieces(text)]
    if origin in (set, frozenset):
        return {made(inner[0], one) for one in pieces(text)}
    if origin in (dict, Mapping):
        if inner[1:] == (NodeSchema,):
            return store().schemas
        return {STEP: made(inner[1], text), **{one: made(inner[1], one) for one in pieces(text)}}
    if hasattr(kind, "_fields"):
        return kind(**{name: made(one, text) for name, one in typing.get_type_hints(kind).items()})
    if dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        needed = [one.name for one in dataclasses.fields(kind) if one.init and one.default is one.default_factory]
        return kind(**{name: made(kinds[name], text) for name in needed})
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields
        return kind.model_construct(**{name: made(one.annotation, text[: most(one)]) for name, one in fields.items()})
    raise UnmadeError(kind)


def most(field: FieldInfo) -> int | None:
    """The characters that a schema lets a text of this field have; None for any number."""
    return next((limit.max_length for limit in field.metadata if hasattr(limit, "max_length")), None)


def makes(kind: Any) -> bool:
    try:
        made(kind, "a")
    except UnmadeError:
        return False
    return True


def functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for package in PACKAGES:
        root = importlib.import_module(f"flowise_dev_agent.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            loaded = importlib.import_module(module.name)
            for name, value in vars(loaded).items():
                own = inspect.isfunction(value) and value.__module__ == module.name and not name.startswith("_")
                if own and not inspect.iscoroutinefunction(value):
                    found[f"{module.name.partition('.')[2]}.{name}"] = value
    return found


def arguments(function: Callable[..., Any], text: str) -> dict[str, Any]:
    # A type that is imported for the checker alone: of syntax trees.
    kinds = typing.get_type_hints(function, localns={"Node": Any})
    return {
        name: made(kinds[name], text)
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }


def walked() -> tuple[dict[str, Callable[..., Any]], set[str]]:
    """Functions that can be called, and the types of parameters for which others cannot."""
    found: dict[str, Callable[..., Any]] = {}
    unmade = set[str]()
    for name, function in functions().items():
        try:
            arguments(function, "a")
        except UnmadeError as error:
            unmade.add(getattr(error.args[0], "__name__", str(error.args[0]).rpartition(".")[2]))
            continue
        found[name] = function
    return found, unmade


FOUND, UNMADE = walked()
#: Some functions at each commit, all at night: together they take two minutes.
CASES = [
    pytest.param(name, marks=() if number % 16 == 8 else pytest.mark.nightly)
    for number, name in enumerate(sorted(FOUND))
]


def call(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    result = function(**given)
    if isinstance(result, Iterator):
        for _ in result:
            pass


def seconds(function: Callable[..., Any], text: str) -> float:
    taken: list[float] = []
    for _ in range(2):
        given = arguments(function, text)
        began = time.process_time()
        with suppress(Exception):  # a hostile argument may be refused, soon
            call(function, given)
        taken.append(time.process_time() - began)
        if taken[-1] < NOISE_SECS:
            break
    return min(taken)


def is_slow(function: Callable[..., Any], unit: str) -> bool:
    text = Many("a" * LARGE) if unit == MANY else (unit * LARGE)[:LARGE]
    large = seconds(function, text)
    if large <= NOISE_SECS * 2 or large <= SLOWER * max(seconds(function, text[:SMALL]), NOISE_SECS / 4):
        return False
    # What is quadratic is slow again; one measurement alone may have met something else.
    return seconds(function, text) > SLOWER * max(seconds(function, text[:SMALL]), NOISE_SECS / 4)


def test_every_function_is_walked() -> None:
    assert len(FOUND) > 450
    assert set() == UNMADE, "give `MAKERS` a maker"


@pytest.mark.nightly
def test_functions_take_what_is_made_for_them() -> None:
    refused: set[str] = set()
    for name, function in FOUND.items():
        try:
            call(function, arguments(function, "a " * 600))
        except Exception:  # noqa: BLE001 - whatever it is, the function has not read its text
            refused.add(name)
    assert refused == REFUSED.keys(), "give it what it takes, or say here why it refuses"


def test_what_is_quadratic_is_found() -> None:
    def quadratic(text: str) -> int:
        return sum(text[at:].count("a") for at in range(len(text)))

    def linear(text: str) -> int:
        return sum(1 for _ in text * 20)

    assert is_slow(quadratic, "a ")
    assert not is_slow(linear, "a ")


@pytest.mark.parametrize("name", CASES)
def test_p86_an_entry_takes_time_that_grows_linearly_with_a_hostile_text(name: str) -> None:
    units = UNITS if name in OF_TWO else (*UNITS, MANY)
    assert [unit for unit in units if is_slow(FOUND[name], unit)] == []
