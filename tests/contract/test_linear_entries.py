"""Every public function of the packages that read foreign text, walked: its time grows linearly with the text.

Arguments are made from the types of the parameters: a text becomes a hostile one, a flow, a plan or a request has it in
all of its fields. What cannot be called so is listed with the reason, and a new function is measured by itself.
"""

import importlib
import inspect
import pkgutil
import time
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, get_args, get_origin

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, Finding, FlowNode, GraphIR, NodeSchema, SetParam, compile_ops
from flowise_dev_agent.patch.model.flow_data import Conditions, FlowData, InputEntry, NodeData, NodeType, OutputEntry
from flowise_dev_agent.patch.model.ops import PatchOp
from flowise_dev_agent.patch.validate.context import FlowContext
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest
from flowise_dev_agent.planning.skills import Skills
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import (
    AmendAnswer,
    Capability,
    Intent,
    LineChange,
    NamedConnection,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
)
from flowise_dev_agent.schemas.verdict import Trace, Trial

PACKAGES = ("planning", "forms", "approval", "patch")
UNITS = ("a ", "{{", "\n- ", "http://a@", '{"a":', "a: ", "$vars.a ", "not <b>")
SMALL, LARGE = 4_096, 16_384
#: Below this the clock measures noise; four times the text takes up to seven times as long on a busy machine.
NOISE_SECS, SLOWER = 0.01, 9


@cache
def store() -> NodeStore:
    return NodeStore.from_snapshot()


@cache
def base() -> str:
    names = ("startAgentflow", "llmAgentflow", "conditionAgentflow", "httpAgentflow", "customFunctionAgentflow")
    ops: list[PatchOp] = [AddNode(node_name=name, node_id=f"{name}_0") for name in names]
    ops.append(Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"))
    return compile_ops(GraphIR.empty(), ops, store().schemas).flow_data


def graph(text: str) -> GraphIR:
    """A flow that has the text in each field and title."""
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
    return GraphIR({**document, "nodes": nodes})


def plan(text: str) -> Plan:
    ids = [node.id for node in graph("").nodes]
    return Plan(
        goal=text,
        operation="update",
        flow_name=text[:100],
        nodes=[PlannedNode(node_id=id_, node_name=id_[:-2], purpose=text, existing=True) for id_ in ids],
        values=[PlannedValue(node_id=ids[1], param="llmUserMessage", value=text)],
        steps=[text],
        parts=[Part(id="p1", quote=text, state="covered")],
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
    object: lambda text: text,
    Any: lambda text: {"a": [text], "b": text},
    GraphIR: graph,
    FlowContext: context,
    FlowNode: lambda text: graph(text).nodes[1],
    FlowData: lambda text: graph(text).document,
    NodeSchema: lambda text: store().schemas["llmAgentflow"],
    NodeStore: lambda text: store(),
    Plan: plan,
    Intent: lambda text: Intent(operation="update", ambiguity=0, title=text[:100]),
    Capability: lambda text: Capability(hosts=[text], commands=[text], files=[text]),
    PlannedValue: lambda text: plan(text).values[0],
    PlannedNode: lambda text: plan(text).nodes[0],
    Part: lambda text: plan(text).parts[0],
    NamedConnection: lambda text: NamedConnection(source=text, target=text),
    LineChange: lambda text: LineChange(source=text, target=text, change="add"),
    Finding: lambda text: Finding(code="UNKNOWN_PARAM", severity="error", detail=text, where="llmAgentflow_0"),
    PlanRequest: partial(request, PlanRequest),
    PatchRequest: partial(request, PatchRequest),
    ClassifyRequest: partial(request, ClassifyRequest),
    AddNode: lambda text: AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmUserMessage": text}),
    SetParam: lambda text: SetParam(node_id="llmAgentflow_0", param_name="llmUserMessage", value=text),
    PlanContext: lambda text: PlanContext(plan=plan(text), request=request(PlanRequest, text)),
    JudgeRequest: partial(request, JudgeRequest),
    GraphView: lambda text: GraphView(graph(text)),
    Skills: lambda text: Skills(),
    AmendAnswer: lambda text: AmendAnswer(values=plan(text).values, reason=text),
    AttachmentFacts: lambda text: AttachmentFacts(name="a.txt", kind="text", size=9, first_lines=text),
    DocumentStoreView: lambda text: DocumentStoreView(
        id="d", name=text, description=text, status="SYNC", searchable=True, sources=[text]
    ),
    Trial: lambda text: Trial(question=text, passed=True, answer=text),
    Trace: lambda text: Trace(),
    InputEntry: lambda text: {"name": "a", "label": text, "type": "string", "description": text},
    OutputEntry: lambda text: {"name": "a", "label": text, "id": text},
    NodeData: lambda text: graph(text).document["nodes"][1]["data"],
    NodeType: lambda text: store().schemas["llmAgentflow"].raw,
    Conditions: lambda text: {"show": {"a": text}},
    Callable[[str], str]: lambda text: str.upper,
    bool: lambda text: False,
    int: lambda text: 1_000,
    float: lambda text: 0.5,
    types.NoneType: lambda text: None,
}


#: Types that nothing here makes, and what reads their texts instead.
NOT_MADE: Mapping[str, str] = {
    "Batch": "ops one by one: `compile_ops` has them all",
    **dict.fromkeys(("DesignForm", "Offer"), "forms: their fields are short by their schema"),
    **dict.fromkeys(("Judgement", "Pattern", "Verdict", "ServerNames", "PlannedStore"), "parts of prompts, cut before"),
    "Prompt": "a whole prompt: what it is made of is walked",
    **dict.fromkeys(("Nested", "ModelUse", "ValueProblem", "InputAnchor"), "results of functions that are walked"),
    **dict.fromkeys(("ModelOutputError", "ReasoningSettings", "Callable", "Container"), "no foreign text"),
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
        for one in inner:
            if one is not types.NoneType:
                try:
                    return made(one, text)
                except UnmadeError:
                    continue
        if types.NoneType in inner:
            return None
        raise UnmadeError(kind)
    if origin in (list, Sequence, Iterable, Collection, Iterator, set, frozenset, tuple):
        return [made(inner[0], text)] if makes(inner[0]) else []
    if origin in (dict, Mapping):
        if inner[1:] == (NodeSchema,):
            return store().schemas
        return {"llmAgentflow_0": made(inner[1], text)} if makes(inner[1]) else {}
    raise UnmadeError(kind)


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
    kinds = typing.get_type_hints(function, include_extras=False)
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


def seconds(function: Callable[..., Any], text: str) -> float:
    taken: list[float] = []
    for _ in range(2):
        given = arguments(function, text)
        began = time.process_time()
        try:
            result = function(**given)
            if isinstance(result, Iterator):
                for _ in result:
                    pass
        except Exception:  # noqa: BLE001, S110 - a hostile argument may be refused, soon
            pass
        taken.append(time.process_time() - began)
        if taken[-1] < NOISE_SECS:
            break
    return min(taken)


def is_slow(function: Callable[..., Any], unit: str) -> bool:
    text = (unit * LARGE)[:LARGE]
    large = seconds(function, text)
    if large <= NOISE_SECS * 2 or large <= SLOWER * max(seconds(function, text[:SMALL]), NOISE_SECS / 4):
        return False
    # What is quadratic is slow again; one measurement alone may have met something else.
    return seconds(function, text) > SLOWER * max(seconds(function, text[:SMALL]), NOISE_SECS / 4)


def test_functions_are_walked_but_for_parameters_of_a_few_types() -> None:
    assert len(FOUND) > 380
    assert NOT_MADE.keys() >= UNMADE, "give `MAKERS` a maker, or say here why it needs none"


def test_what_is_quadratic_is_found() -> None:
    def quadratic(text: str) -> int:
        return sum(text[at:].count("a") for at in range(len(text)))

    def linear(text: str) -> int:
        return sum(1 for _ in text * 20)

    assert is_slow(quadratic, "a ")
    assert not is_slow(linear, "a ")


@pytest.mark.parametrize("name", CASES)
def test_p86_an_entry_takes_time_that_grows_linearly_with_a_hostile_text(name: str) -> None:
    assert [unit for unit in UNITS if is_slow(FOUND[name], unit)] == []
