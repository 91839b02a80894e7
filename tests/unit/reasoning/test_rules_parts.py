"""What a person reads about each part of a change: what is done and what is not are told apart."""

import pytest

from flowise_dev_agent.contracts.plan import Part
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

BASE = [
    AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o", "temperature": 0.7}),
    AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
    AddNode(
        node_name="conversationChain",
        node_id="conversationChain_0",
        params={"systemMessagePrompt": "You write quotes for a roofer in Hull. Sign as Pete."},
    ),
    Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
]


async def planned(wish: str, catalogue: NodeStore) -> PlanContract:
    base = compile_ops(GraphIR.empty(), BASE, catalogue.schemas).graph
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish, forced="update"))).value
    request = PlanRequest(
        requirement=wish,
        intent=intent,
        nodes=catalogue,
        credential_types={"openAIApi": 1},
        existing={node.id: node.name for node in base.nodes},
        base=base,
        parts=(Part(id="p1", quote=wish),),
    )
    return (await rules.plan(request)).value


@pytest.mark.parametrize(
    "wish",
    [
        "Temperature 0.2 and gpt-4o-mini instead, its costing us a fortune",
        "pull temperature down to 0.2. the texts wander about lately",
    ],
)
async def test_a_value_that_is_set_is_done_whatever_is_said_beside_it(wish: str, catalogue: NodeStore) -> None:
    parts = (await planned(wish, catalogue)).parts
    (done,) = [part for part in parts if "0.2" in part.quote]
    assert (done.state, "chatOpenAI_0.temperature" in done.values) == ("covered", True)
    assert not any(part.state == "not_understood" for part in parts)
    assert [part.id for part in parts] == [f"p{number}" for number in range(1, len(parts) + 1)]


async def test_a_part_that_is_done_as_a_whole_is_one_part(catalogue: NodeStore) -> None:
    wish = "Set the temperature to 0.2"
    (part,) = (await planned(wish, catalogue)).parts
    assert (part.quote, part.state) == (wish, "covered")


async def test_a_number_beside_a_part_is_told_and_is_no_remark(catalogue: NodeStore) -> None:
    plan = await planned("Switch to gpt-4o-mini, and the price of a survey to 130", catalogue)
    values = {f"{value.node_id}.{value.param}": str(value.value) for value in plan.values}
    told = next(key for key, text in values.items() if "the price of a survey to 130" in text.lower())
    assert (values["chatOpenAI_0.modelName"], {part.state for part in plan.parts}) == ("gpt-4o-mini", {"covered"})
    assert {"chatOpenAI_0.modelName", told} <= {key for part in plan.parts for key in part.values}
