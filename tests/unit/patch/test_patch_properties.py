"""What holds for any ops, shown on random ones made from the real schemas."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    KIND_OF_CATEGORY,
    AddNode,
    BindCredential,
    CompileResult,
    Connect,
    Disconnect,
    Finding,
    GraphIR,
    InputParam,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetOutput,
    SetParam,
    SetParent,
    SetPosition,
    UnsetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    errors,
    ops_from_json,
    validate_flow,
)
from flowise_dev_agent.patch.layout.columns import Box
from flowise_dev_agent.patch.validate.params import JSON_TEXTS
from tests.fixtures.golden_flows import NOWHERE, agentflow, llm_chain, rag, tool_agent
from tests.unit.patch.boxes import overlap

Flow = Callable[[Mapping[str, str]], list[PatchOp]]

SCHEMAS = NodeStore.from_snapshot().schemas
CHATFLOW_TYPES = sorted(
    name for name, schema in SCHEMAS.items() if schema.category not in KIND_OF_CATEGORY and name != "stickyNote"
)
#: What is not decided by the ops being well formed: whether the flow is complete, where it ends, and what values mean.
INCOMPLETE = {
    "REQUIRED_ANCHOR_UNCONNECTED",
    "REQUIRED_PARAM_MISSING",
    "CREDENTIAL_UNBOUND",
    "VECTOR_STORE_WITHOUT_DOCUMENT",
    "NO_ENDING_NODE",
    "ENDING_NODE_KIND",
    "ENDING_NODE_OUTPUT",
    "MULTIPLE_ENDING_NODES",
    "ADDRESS_WITHOUT_SCHEME",
    "BAD_TOOL_NAME",
    "BAD_ZOD_SCHEMA",
    "CHUNK_OVERLAP",
    "DUPLICATE_TOOL_NAME",
    "INPUT_NOT_TAKEN",
    "LIST_NOT_BY_LINES",
    "MEMORY_FORGETS",
    "MODEL_REFUSES_AGENT",
    "MODEL_WITHOUT_TOOLS",
    "NUMBER_OUT_OF_RANGE",
    "PARAMETER_NOT_SENT",
    "PARSER_NOT_TAKEN",
    "PROMPT_VALUE_MISSING",
    "SETTING_REFUSED",
    "SHARED_MODEL",
    "STORE_NOT_COPIED",
    "SUMMARY_NOT_TAKEN",
    "VALUE_FAILS",
}


def _value(draw: Callable[..., object], param: InputParam) -> object:
    match param.type:
        case "number":
            return draw(st.integers(0, 100) | st.sampled_from(["1", "0.5"]))
        case "boolean":
            return draw(st.booleans())
        case "options":
            return draw(st.sampled_from(param.options)) if param.options else None
        case "json":
            return draw(st.sampled_from(["{}", '{"a": 1}', {"b": [2]}]))
        case "string" | "code":
            return draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(_harmless))
        case _:
            return None


#: Texts that must be JSON, or hold certain placeholders.
PARTICULAR = {(node, name) for node, names in JSON_TEXTS.items() for name in names} | {("xmlAgent", "systemMessage")}


def _harmless(text: str) -> bool:
    return bool(text.strip()) and not set(text) & set("{}")


@st.composite
def batches(draw: Callable[..., object]) -> list[PatchOp]:
    """A valid batch: nodes of real types, values that fit, connections that fit by type and never close a cycle."""
    names: list[str] = draw(st.lists(st.sampled_from(CHATFLOW_TYPES), min_size=1, max_size=7))
    nodes: list[tuple[str, NodeSchema]] = [(f"n{index}", SCHEMAS[name]) for index, name in enumerate(names)]
    ops: list[PatchOp] = [AddNode(node_name=schema.name, node_id=node_id) for node_id, schema in nodes]
    used_output: dict[str, str] = {}
    occupied: set[tuple[str, str]] = set()
    for position, (target_id, target) in enumerate(nodes):
        for param in target.params[:4]:
            same_named = [other for other in target.params if other.name == param.name]
            any_value = len(same_named) == 1 and (target.name, param.name) not in PARTICULAR
            value = _value(draw, param) if any_value and draw(st.booleans()) else None
            if value is not None:
                ops.append(SetParam(node_id=target_id, param_name=param.name, value=value))
        for source_id, source in nodes[:position]:
            for anchor in target.anchors:
                fitting = [out.name for out in source.outputs if set(out.base_classes) & set(anchor.types)]
                free = anchor.is_list or (target_id, anchor.name) not in occupied
                clash = used_output.get(source_id, fitting[0] if fitting else "") not in fitting[:1]
                if fitting and free and not clash and draw(st.booleans()):
                    used_output[source_id] = fitting[0]
                    occupied.add((target_id, anchor.name))
                    ops.append(
                        Connect(
                            source_node_id=source_id,
                            source_anchor=fitting[0],
                            target_node_id=target_id,
                            target_anchor=anchor.name,
                        )
                    )
    return ops


@given(batches())
def test_valid_ops_compile_to_a_flow_without_structural_findings(ops: list[PatchOp]) -> None:
    result = compile_ops(GraphIR.empty(), ops, SCHEMAS)

    found = errors(validate_flow(result.flow_data, schemas=SCHEMAS, credentials={}))
    assert {finding.code for finding in found} <= INCOMPLETE


@given(batches())
def test_same_ops_give_the_same_bytes_and_survive_a_round_trip(ops: list[PatchOp]) -> None:
    first, second = (compile_ops(GraphIR.empty(), ops, SCHEMAS) for _ in range(2))

    assert first.flow_data == second.flow_data
    assert first.sha256 == second.sha256
    assert GraphIR.from_flow_data(first.flow_data).to_flow_data() == first.flow_data


@given(batches(), st.randoms(use_true_random=False))
def test_order_of_independent_ops_changes_no_byte(ops: list[PatchOp], shuffle: random.Random) -> None:
    groups: dict[str, list[PatchOp]] = {}
    for op in ops:
        # Connections to one input are ordered among themselves, since a list anchor collects in order.
        key = f"{op.target_node_id}.{op.target_anchor}" if isinstance(op, Connect) else repr(op)
        groups.setdefault(key, []).append(op)
    keys = list(groups)
    shuffle.shuffle(keys)
    shuffled = [op for key in keys for op in groups[key]]

    result = compile_ops(GraphIR.empty(), shuffled, SCHEMAS)

    assert result.flow_data == compile_ops(GraphIR.empty(), ops, SCHEMAS).flow_data


@given(batches(), st.sampled_from(["nope", "n0"]))
def test_one_bad_op_refuses_the_whole_batch_and_leaves_the_base_alone(ops: list[PatchOp], node_name: str) -> None:
    base = compile_ops(GraphIR.empty(), ops, SCHEMAS).graph
    before = base.to_flow_data()
    bad = AddNode(node_name=node_name, node_id="n0")

    with pytest.raises(PatchError) as caught:
        compile_ops(base, [AddNode(node_name="calculator", node_id="fresh"), bad], SCHEMAS)

    assert [finding["op_index"] for finding in caught.value.details["findings"]] == [1]
    assert base.to_flow_data() == before


@given(batches(), st.floats(-2000, 2000), st.floats(-2000, 2000))
def test_untouched_nodes_are_carried_through_and_nothing_overlaps(ops: list[PatchOp], x: float, y: float) -> None:
    document = json.loads(compile_ops(GraphIR.empty(), ops, SCHEMAS).flow_data)
    document["nodes"][0]["position"] = {"x": x, "y": y}
    document["nodes"][0]["extra"] = [1, {"a": None}]
    more: list[PatchOp] = [
        AddNode(node_name="toolAgent", node_id="agent"),
        AddNode(node_name="calculator", node_id="tool"),
        Connect(source_node_id="tool", target_node_id="agent", target_anchor="tools"),
    ]

    after = json.loads(compile_ops(GraphIR(document), more, SCHEMAS).flow_data)

    assert after["nodes"][: len(document["nodes"])] == document["nodes"]
    assert after["edges"][: len(document["edges"])] == document["edges"]
    boxes = [
        Box(node["position"]["x"], node["position"]["y"], node["width"], node["height"]) for node in after["nodes"]
    ]
    for index, box in enumerate(boxes[len(document["nodes"]) :], len(document["nodes"])):
        assert not any(overlap(box, other) for other in boxes[:index])


@given(batches())
def test_taking_apart_and_building_again_is_a_fixed_point(ops: list[PatchOp]) -> None:
    flow = compile_ops(GraphIR.empty(), ops, SCHEMAS)

    taken_apart = decompile(flow.graph, SCHEMAS)
    again = compile_ops(GraphIR.empty(), taken_apart, SCHEMAS)

    assert again.flow_data == flow.flow_data
    assert decompile(again.graph, SCHEMAS) == taken_apart


@given(batches(), batches())
def test_removing_what_was_added_restores_the_bytes(ops: list[PatchOp], more: list[PatchOp]) -> None:
    base = compile_ops(GraphIR.empty(), ops, SCHEMAS)
    target = base.graph.nodes[0]
    added = [_renamed(op) for op in more]
    source = SCHEMAS[target.name]
    bridge: list[PatchOp] = []
    agent = AddNode(node_name="toolAgent", node_id="agent")
    if any("Tool" in output.base_classes for output in source.outputs) and not source.multi_output:
        bridge = [Connect(source_node_id=target.id, target_node_id="agent", target_anchor="tools")]
    grown = compile_ops(base.graph, [*added, agent, *bridge], SCHEMAS)
    gone = [RemoveNode(node_id=op.node_id) for op in [*added, agent] if isinstance(op, AddNode)]

    assert compile_ops(grown.graph, gone, SCHEMAS).flow_data == base.flow_data


def _renamed(op: PatchOp) -> PatchOp:
    ids = {
        key: f"x{value}"
        for key, value in op.model_dump().items()
        if key in ("node_id", "source_node_id", "target_node_id")
    }
    return op.model_copy(update=ids)


@given(batches())
def test_disconnecting_what_was_connected_restores_the_bytes(ops: list[PatchOp]) -> None:
    without: list[PatchOp] = [op for op in ops if not isinstance(op, Connect)]
    connects = [op for op in ops if isinstance(op, Connect)]
    base = compile_ops(GraphIR.empty(), without, SCHEMAS)
    if not connects:
        return
    connected = compile_ops(base.graph, connects, SCHEMAS)
    cuts = [
        Disconnect(source_node_id=op.source_node_id, target_node_id=op.target_node_id, target_anchor=op.target_anchor)
        for op in connects
    ]

    assert compile_ops(connected.graph, cuts, SCHEMAS).flow_data == base.flow_data


@st.composite
def edits(draw: Callable[..., object]) -> list[PatchOp]:
    """Ops of all kinds on nodes that may or may not exist, with names that may or may not fit."""
    node = st.sampled_from([f"n{index}" for index in range(8)])
    name = st.sampled_from(CHATFLOW_TYPES)
    anchor = st.sampled_from(["", "model", "memory", "tools", "document", "vectorStoreRetriever", "nothing"])
    field = st.sampled_from(["temperature", "modelName", "sessionId", "text", "template", "x.y", "nothing"])
    op = st.one_of(
        st.builds(RemoveNode, node_id=node),
        st.builds(ReplaceNode, node_id=node, node_name=name, new_node_id=st.sampled_from([None, "fresh"])),
        st.builds(UpgradeNode, node_id=node),
        st.builds(Disconnect, source_node_id=node, target_node_id=node, target_anchor=anchor),
        st.builds(Connect, source_node_id=node, target_node_id=node, target_anchor=anchor),
        st.builds(SetParam, node_id=node, param_name=field, value=st.sampled_from([1, "x", True, [], {"a": 1}])),
        st.builds(UnsetParam, node_id=node, param_name=field),
        st.builds(SetLabel, node_id=node, label=st.sampled_from(["A", "B"])),
        st.builds(SetPosition, node_id=node, x=st.integers(-500, 500), y=st.integers(-500, 500)),
        st.builds(AddNode, node_name=name, node_id=node),
    )
    return draw(st.lists(op, min_size=1, max_size=6))  # pyright: ignore[reportReturnType]


def _tried(graph: GraphIR, ops: list[PatchOp]) -> tuple[CompileResult | None, list[dict[str, object]]]:
    try:
        return compile_ops(graph, ops, SCHEMAS), []
    except PatchError as refused:
        return None, refused.details["findings"]


@given(batches(), edits())
def test_any_edit_of_a_valid_flow_keeps_its_structure_or_fails_with_findings(
    ops: list[PatchOp], changes: list[PatchOp]
) -> None:
    base = compile_ops(GraphIR.empty(), ops, SCHEMAS)
    edited, findings = _tried(base.graph, changes)
    if edited is None:
        assert findings
        assert all(finding["message"] and finding["op_type"] for finding in findings)
        assert base.graph.to_flow_data() == base.flow_data
        return

    found = errors(validate_flow(edited.flow_data, schemas=SCHEMAS, credentials={}))
    # Random connections may close a cycle; nothing else about the wiring can go wrong.
    assert {finding.code for finding in found} <= INCOMPLETE | {"CYCLE", "EMPTY_FLOW", "DEAD_END"}
    assert json.loads(edited.flow_data) == edited.graph.document


def test_the_same_ops_have_the_same_hash_in_every_process() -> None:
    code = (
        "from flowise_dev_agent.knowledge.nodes import NodeStore\n"
        "from flowise_dev_agent.patch import GraphIR, compile_ops\n"
        "from tests.fixtures.golden_flows import NOWHERE, agentflow, rag\n"
        "schemas = NodeStore.from_snapshot().schemas\n"
        "print([compile_ops(GraphIR.empty(), build(NOWHERE), schemas).sha256 for build in (agentflow, rag)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(outputs) == 1


# --- the op that a finding shows --------------------------------------------------------------------------------------


def _misnamed(graph: GraphIR) -> Iterator[PatchOp]:
    """Ops on the flow with names, types and values that a writer may get wrong."""
    ids = [*(node.id for node in graph.nodes), "plainTxt_0"]
    for one, other in product(ids, ids):
        source, target = graph.node(one), graph.node(other)
        outputs = [None, "nothing", *(output.name for output in (source.outputs if source else ()))]
        inputs = ["", "nothing", *(target.connectable if target else ())]
        for output, name in product(outputs, inputs):
            ends = {"source_node_id": one, "source_anchor": output, "target_node_id": other, "target_anchor": name}
            yield Connect.model_validate(ends)
            yield Disconnect.model_validate(ends)
    for id_ in ids:
        node = graph.node(id_)
        fields = [*(entry["name"] for entry in node.params), *node.connectable] if node else []
        for field in [*fields, "credential", "temprature", "rows[3].x"]:
            yield UnsetParam(node_id=id_, param_name=field)
            for value in (1, True, "yes", "{", {"a": 1}, [1]):
                yield SetParam(node_id=id_, param_name=field, value=value)
        yield from (
            UpgradeNode(node_id=id_),
            SetOutput(node_id=id_, output="nothing"),
            SetLabel(node_id=id_, label="x"),
        )
        yield from (ReplaceNode(node_id=id_, node_name=name) for name in ("ChatOpenAi", "chatOllama", "vectorStore"))
        yield from (BindCredential(node_id=id_, credential_type=name) for name in (None, "openAIApi", "nothing"))
        yield SetParent(node_id=id_, parent_id=ids[0])
    for name, id_ in product(("ChatOpenAi", "chatOpenAI", "vectorStore"), ("new_0", "a-b", ids[0])):
        yield AddNode(node_name=name, node_id=id_, params={"modelNam": "x", "temperature": "hot", "memory": "x"})


def _shown_op(finding: Finding) -> PatchOp | None:
    """The complete op in a finding; None if it has none, or leaves something to the writer (`<value>`)."""
    start = finding.hint.find('{"op_type"')
    shown = finding.hint[start : finding.hint.rfind("}") + 1]
    return ops_from_json(f"[{shown}]")[0] if start >= 0 and "<" not in shown else None


@pytest.mark.parametrize("flow", [rag, llm_chain, tool_agent, agentflow])
def test_the_op_that_a_finding_shows_ends_that_finding_when_copied(flow: Flow) -> None:
    base = compile_ops(GraphIR.empty(), flow(NOWHERE), SCHEMAS).graph
    copied = 0
    for op in _misnamed(base):
        for finding in _found(base, [op]):
            if shown := _shown_op(finding):
                copied += 1
                again = _found(base, [shown] if type(shown) is type(op) else [shown, op])
                assert [one.key for one in again if one.key == finding.key] == [], (op, finding.text)
    assert copied > 100


def _found(base: GraphIR, ops: list[PatchOp]) -> list[Finding]:
    try:
        compile_ops(base, ops, SCHEMAS)
    except PatchError as error:
        return [Finding.model_validate(one) for one in error.details["findings"]]
    return []
