"""A form shows the values that the flow holds, and written back they change nothing."""

import json
from typing import Any

import pytest

from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, SetParam, compile_ops
from flowise_dev_agent.patch.model.nested import with_bound
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.views.canvas_view import canvas_view
from tests.fixtures.golden_flows import GOLDEN, NOWHERE, agentflow

FLOWS = {**GOLDEN, "agentflow": agentflow}


@pytest.mark.parametrize("name", FLOWS)
def test_p114_a_field_is_shown_as_it_is_or_not_to_be_written_back(name: str, schemas: Schemas) -> None:
    graph = compile_ops(GraphIR.empty(), FLOWS[name](NOWHERE), schemas).graph
    written: list[PatchOp] = []
    for box in (one for one in canvas_view(graph).nodes if one.kind != "note"):
        node = graph.node(box.id)
        assert node
        stored: dict[str, Any] = {
            field: value
            for field, value in node.inputs.items()
            if field not in node.definitions.anchor_names and not is_empty(value)
        }
        # No default takes the place of what the flow does not have.
        assert {one.name for one in box.params} == {*stored}
        for one in (one for one in box.params if not one.cut):
            value = stored[one.name]
            shown = one.value if isinstance(value, str) else json.loads(one.value)
            # Of a credential only that there is one is shown; it stays.
            assert with_bound(shown, value) == value
            written.append(SetParam(node_id=box.id, param_name=one.name, value=shown))
    assert written
    assert compile_ops(graph, written, schemas).flow_data == graph.to_flow_data()
