"""The five flows as they must come out, by everything that the compiler decides."""

import json
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.patch import GraphIR, Schemas, compile_ops
from tests.fixtures.golden_flows import GOLDEN, NOWHERE

_FOLDER = Path(__file__).with_name("golden")


def _essence(graph: GraphIR) -> dict[str, Any]:
    """Without what is copied from the schema, which changes with every Flowise version."""
    return {
        "nodes": [
            {
                "id": node.id,
                "type": node.raw["type"],
                "position": node.raw["position"],
                "height": node.raw["height"],
                "inputs": node.inputs,
                "outputs": node.data["outputs"],
                "credential": node.data.get("credential"),
                "inputAnchors": [anchor["id"] for anchor in node.anchors],
                "outputAnchors": [output.handle for output in node.outputs],
            }
            for node in graph.nodes
        ],
        "edges": [edge.raw for edge in graph.edges],
    }


@pytest.mark.parametrize("name", GOLDEN)
def test_compiled_flow_is_the_golden_one(schemas: Schemas, name: str) -> None:
    graph = compile_ops(GraphIR.empty(), GOLDEN[name](NOWHERE), schemas).graph

    assert _essence(graph) == json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
