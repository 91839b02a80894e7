"""Nodes of a flow whose types have another version on a server."""

from typing import Any

from flowise_dev_agent.patch import AddNode, GraphIR, NodeSchema, Schemas, compile_ops, other_versions


def offered(schemas: Schemas, name: str, **changed: Any) -> dict[str, NodeSchema]:
    return {**schemas, name: NodeSchema.from_raw({**schemas[name].raw, **changed})}


def test_a_node_of_another_version_is_told_with_what_its_upgrade_changes(schemas: Schemas) -> None:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"temperature": 0.2}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
    ]
    flow = compile_ops(GraphIR.empty(), ops, schemas).graph
    assert other_versions(flow, schemas) == []

    inputs = [one for one in schemas["chatOpenAI"].raw.get("inputs") or [] if one.get("name") != "temperature"]
    newer = offered(schemas, "chatOpenAI", version=99, inputs=inputs)
    (found,) = other_versions(flow, newer)
    assert (found.node_id, found.stored, found.offered) == ("chatOpenAI_0", schemas["chatOpenAI"].version, 99)
    assert found.changes == ["temperature: 0.2 -> (none)"]


def test_a_type_that_the_server_lacks_has_no_version_there(schemas: Schemas) -> None:
    flow = compile_ops(GraphIR.empty(), [AddNode(node_name="bufferMemory", node_id="bufferMemory_0")], schemas).graph
    assert other_versions(flow, {name: one for name, one in schemas.items() if name != "bufferMemory"}) == []
