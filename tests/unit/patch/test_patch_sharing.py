"""Node types are shared by all flows: compiling and editing change neither them nor another flow."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    Schemas,
    SetLabel,
    SetParam,
    UpgradeNode,
    canvas_view,
    compile_ops,
    decompile,
    diff,
    outline,
    summarize,
)
from flowise_dev_agent.patch.model.json_text import dump_json, is_uuid
from flowise_dev_agent.patch.model.node import new_node
from tests.fixtures.golden_flows import GOLDEN, NOWHERE

_BUILDERS = sorted(GOLDEN)


def _spoil(value: Any) -> None:
    """Change everything inside a value that can be changed."""
    if isinstance(value, dict):
        for item in value.values():
            _spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoilt")


@pytest.mark.parametrize("name", _BUILDERS)
def test_what_a_flow_holds_of_its_own_is_nobody_elses(schemas: Schemas, name: str) -> None:
    ops = GOLDEN[name](NOWHERE)
    first, second = (compile_ops(GraphIR.empty(), ops, schemas) for _ in range(2))
    before = copy.deepcopy(second.graph.document)

    for node in first.graph.nodes:
        _spoil(node.inputs)
        for key in ("id", "label", "inputs", "outputs", "inputAnchors", "inputParams", "outputAnchors"):
            value = node.data[key]
            # Definitions are objects of the node's own; what the schema says inside them is shared.
            if isinstance(value, list):
                for entry in value:
                    entry["spoilt"] = True
                value.append({"spoilt": True})
        node.raw["spoilt"] = True

    assert second.graph.document == before
    assert compile_ops(GraphIR.empty(), ops, schemas).flow_data == second.flow_data
    assert json.loads(second.flow_data) == before


def test_editing_a_node_changes_neither_the_flow_it_came_from_nor_its_type(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="chatOpenAI", node_id="a"),
        AddNode(node_name="toolAgent", node_id="agent"),
    ]
    base = compile_ops(GraphIR.empty(), ops, schemas)
    schema = schemas["chatOpenAI"]
    type_before = copy.deepcopy((schema.raw, schema.defaults))

    edited = compile_ops(
        base.graph,
        [
            SetParam(node_id="a", param_name="temperature", value=0.1),
            SetLabel(node_id="a", label="Model"),
            BindCredential(node_id="a", credential_id=NOWHERE["openAIApi"]),
            Connect(source_node_id="a", target_node_id="agent", target_anchor="model"),
        ],
        schemas,
    )

    assert base.graph.to_flow_data() == base.flow_data == compile_ops(GraphIR.empty(), ops, schemas).flow_data
    assert edited.flow_data != base.flow_data
    assert (schema.raw, schema.defaults) == type_before


@pytest.mark.parametrize("name", _BUILDERS)
def test_a_fresh_flow_looks_as_it_does_when_it_is_read_from_its_text(schemas: Schemas, name: str) -> None:
    _looks_alike(compile_ops(GraphIR.empty(), GOLDEN[name](NOWHERE), schemas).graph, schemas)


def _looks_alike(graph: GraphIR, schemas: Schemas) -> None:
    read = GraphIR.from_flow_data(graph.to_flow_data())
    views: list[Callable[[GraphIR], object]] = [canvas_view, summarize, outline, lambda flow: decompile(flow, schemas)]
    assert [view(graph) for view in views] == [view(read) for view in views]
    assert diff(graph, read).text == diff(read, graph).text == "no difference"
    for mine, its in zip(graph.nodes, read.nodes, strict=True):
        assert (mine.outputs, mine.names_outputs, mine.raw) == (its.outputs, its.names_outputs, its.raw)


def test_a_new_node_of_every_type_comes_back_from_its_text(schemas: Schemas) -> None:
    for name, schema in schemas.items():
        raw = new_node(schema, f"{name}_0").raw

        assert json.loads(dump_json(raw)) == raw, name


def test_compiling_on_a_fresh_flow_gives_the_bytes_of_compiling_on_its_text(schemas: Schemas) -> None:
    for name in _BUILDERS:
        base = compile_ops(GraphIR.empty(), GOLDEN[name](NOWHERE), schemas)
        node = base.graph.nodes[0]
        change: list[PatchOp] = [SetLabel(node_id=node.id, label="Ä"), UpgradeNode(node_id=base.graph.nodes[-1].id)]

        on_fresh = compile_ops(base.graph, change, schemas)
        on_text = compile_ops(GraphIR.from_flow_data(base.flow_data), change, schemas)

        assert on_fresh.flow_data == on_text.flow_data


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("11111111-1111-4111-8111-11111111111A", True),
        ("1111111111114111811111111111111a", False),
        ("{11111111-1111-4111-8111-11111111111a}", False),
        ("urn:uuid:11111111-1111-4111-8111-11111111111a", False),
        ("11111111-1111-4111-8111-11111111111a\n", False),
        ("１1111111-1111-4111-8111-11111111111a", False),
        ("", False),
    ],
)
def test_only_the_canonical_form_is_a_uuid(text: str, right: bool) -> None:
    assert is_uuid(text) is right


def test_a_flow_that_was_just_read_is_read_once_unless_it_is_large() -> None:
    text = '{"nodes":[],"edges":[],"own":"%s"}'
    assert GraphIR.from_flow_data(text % "small") is GraphIR.from_flow_data(text % "small")
    large = text % ("x" * 100_000)
    assert GraphIR.from_flow_data(large) is not GraphIR.from_flow_data(large)
