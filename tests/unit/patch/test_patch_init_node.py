"""New nodes, visibility and layout: what the editor would make of a schema."""

import hashlib
import json
from typing import Any

import pytest

from flowise_dev_agent.patch import NodeSchema, Schemas
from flowise_dev_agent.patch.layout.columns import Box, Link, node_height, place
from flowise_dev_agent.patch.model.node import init_node
from flowise_dev_agent.patch.model.visibility import is_visible, js_truthy, with_defaults

_DIGEST = "b1665e5b076e1fb685ca559b81efef829d0e0350a79aa6cba16f185dfd90d720"

RAW = {
    "name": "thing",
    "label": "Thing",
    "version": 1,
    "type": "Thing",
    "category": "Tools",
    "icon": "/opt/flowise/thing.svg",
    "filePath": "/opt/flowise/thing.js",
    "description": "d",
    "baseClasses": ["Thing", "Tool"],
    "credential": {"label": "C", "name": "credential", "type": "credential", "credentialNames": ["thingApi"]},
    "inputs": [
        {"label": "A", "name": "a", "type": "string | number", "optional": True},
        {"label": "B", "name": "b", "type": "number", "default": 0},
        {"label": "C", "name": "c", "type": "boolean", "default": False},
        {"label": "D", "name": "d", "type": "multiOptions", "default": [], "options": []},
        {"label": "E", "name": "e", "type": "string", "default": "x", "show": {"c": True}},
        {"label": "E", "name": "e", "type": "json", "default": "y"},
    ],
}


def _made(schema: NodeSchema, node_id: str) -> Any:
    """Data of a fresh node as the editor makes it in a chatflow."""
    return init_node(schema, node_id, agentflow=False)


def test_inputs_split_by_the_type_whitelist_and_defaults_follow_javascript() -> None:
    data = _made(NodeSchema.from_raw(RAW), "thing_0")

    assert [anchor["id"] for anchor in data["inputAnchors"]] == ["thing_0-input-a-string | number"]
    assert [param["id"] for param in data["inputParams"]] == [
        "thing_0-input-credential-credential",
        "thing_0-input-b-number",
        "thing_0-input-c-boolean",
        "thing_0-input-d-multiOptions",
        "thing_0-input-e-string",
        "thing_0-input-e-json",
    ]
    # 0 and false become '', an empty list stays, the last of two inputs of one name wins.
    assert data["inputs"] == {"a": "", "b": "", "c": "", "d": [], "e": "y"}
    assert [param["display"] for param in data["inputParams"]] == [True, True, True, True, False, True]
    assert data["credential"] == ""
    assert data["outputs"] == {}
    assert data["outputAnchors"] == [
        {
            "id": "thing_0-output-thing-Thing|Tool",
            "name": "thing",
            "label": "Thing",
            "description": "d",
            "type": "Thing | Tool",
        }
    ]
    assert not {"icon", "filePath"} & set(data)


def test_several_outputs_become_one_anchor_with_options() -> None:
    raw = RAW | {
        "outputs": [
            {"label": "One", "name": "one", "baseClasses": ["A", "B"], "isAnchor": True},
            {"label": "Two", "name": "two", "baseClasses": ["C"], "hidden": True},
            {"label": "Three", "name": "three"},
        ]
    }

    data = _made(NodeSchema.from_raw(raw), "t")

    (anchor,) = data["outputAnchors"]
    assert (anchor["type"], anchor["default"], data["outputs"]) == ("options", "one", {"output": "one"})
    assert [option["id"] for option in anchor["options"]] == ["t-output-one-A|B", "t-output-two-C", "t-output-three-"]
    assert anchor["options"][0]["isAnchor"]
    assert anchor["options"][1]["hidden"]
    assert _made(NodeSchema.from_raw(raw | {"hideOutput": True}), "t")["outputAnchors"] == []


def test_a_node_never_shares_a_default_with_another() -> None:
    schema = NodeSchema.from_raw(RAW)
    first, second = _made(schema, "a"), _made(schema, "b")

    first["inputs"]["d"].append("x")

    assert second["inputs"]["d"] == []


def test_new_nodes_are_those_that_the_editor_makes(schemas: Schemas) -> None:
    """All 297 nodes of Flowise 3.1.4. That of the editor's own `initNode` over the server's own catalogue, which has
    Flowise's descriptions besides, is compared in tests/integration/knowledge.
    """
    nodes = {name: _made(schema, f"{name}_0") for name, schema in schemas.items()}

    digest = hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest()

    assert digest == _DIGEST


def test_a_node_with_nothing_but_additional_parameters_is_as_high_as_in_the_editor(schemas: Schemas) -> None:
    # As Flowise's own template "Tool Agent" stores it.
    assert node_height(_made(schemas["bufferMemory"], "bufferMemory_0")) == 259


@pytest.mark.parametrize(
    ("definition", "inputs", "visible"),
    [
        ({}, {}, True),
        ({"show": {"a": True}}, {"a": True}, True),
        ({"show": {"a": True}}, {"a": 1}, False),
        ({"show": {"a": False}}, {"a": ""}, False),
        ({"show": {"a": ["x", "y"]}}, {"a": "y"}, True),
        ({"show": {"a": ["x", "y"]}}, {"a": '["z", "x"]'}, True),
        ({"show": {"a": "gpt.*mini"}}, {"a": "gpt-4o-mini"}, True),
        ({"show": {"a": "gpt"}}, {}, False),
        ({"show": {"a": "["}}, {"a": "x"}, False),
        ({"show": {"a.b[1].c": 3}}, {"a": {"b": [0, {"c": 3}]}}, True),
        ({"show": {"a": {"k": 1}}}, {"a": {"k": 1}}, True),
        ({"show": {"a": "x", "b": "y"}}, {"a": "x", "b": "z"}, False),
        ({"hide": {"a": ["x"]}}, {"a": "x"}, False),
        ({"hide": {"a": ["x"]}}, {"a": "[oops]"}, True),
    ],
)
def test_show_and_hide_are_read_as_the_editor_does(
    definition: dict[str, object], inputs: dict[str, object], visible: bool
) -> None:
    assert is_visible(definition, inputs) is visible


@pytest.mark.parametrize(("value", "truthy"), [([], True), ({}, True), (0, False), ("", False), (float("nan"), False)])
def test_truth_is_javascripts(value: object, truthy: bool) -> None:
    assert js_truthy(value) is truthy


def test_layout_is_layered_left_to_right_in_the_order_of_the_inputs() -> None:
    links = [Link("model", "chain", (0, 0)), Link("store", "chain", (1, 0)), Link("text", "store", (0, 0))]
    heights = {"store": 300.0, "text": 200.0, "model": 500.0, "chain": 400.0}

    boxes = place(heights, links, {})

    assert list(boxes) == ["text", "model", "store", "chain"]
    assert [boxes[name].x for name in boxes] == [-800, -400, -400, 0]
    assert boxes["model"].y < boxes["store"].y


def test_new_nodes_go_next_to_the_standing_node_they_feed() -> None:
    standing = {"chain": Box(1000, 500, 300, 400), "other": Box(600, 450, 300, 600)}

    boxes = place({"tool": 200.0}, [Link("tool", "chain", (0, 0))], standing)

    assert (boxes["tool"].x, boxes["tool"].y) == (600, 1090)


def test_layout_ends_on_cycles_too() -> None:
    boxes = place({"a": 1.0, "b": 1.0}, [Link("a", "b", (0, 0)), Link("b", "a", (0, 0))], {})

    assert set(boxes) == {"a", "b"}


def test_a_field_that_an_old_node_does_not_have_counts_as_its_default() -> None:
    definitions = [{"name": "mode", "default": "x"}, {"name": "level"}]

    assert is_visible({"show": {"mode": "x"}}, with_defaults(definitions, {}))
    assert not is_visible({"show": {"mode": "x"}}, with_defaults(definitions, {"mode": ""}))
