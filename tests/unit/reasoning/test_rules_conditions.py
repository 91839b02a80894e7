"""AgentFlows that branch on a condition: a model looks at the message; what is not parsed in full is declined."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    GraphIR,
    PatchOp,
    compile_ops,
    errors,
    validate_flow,
)
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"


async def built(wish: str, nodes: NodeStore) -> tuple[PlanContract, list[PatchOp]]:
    """The plan and the ops; none when it is declined."""
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    asked = PlanRequest(requirement=wish, intent=intent, nodes=nodes, credential_types={"openAIApi": 1})
    contract = (await rules.plan(asked)).value
    if contract.declined:
        return contract, []
    answer: Any = (await rules.patch(PatchRequest(requirement=wish, plan=contract, nodes=nodes))).value
    return contract, answer.ops


def scenarios_of(ops: list[PatchOp]) -> list[str]:
    (chooser,) = [op for op in ops if isinstance(op, AddNode) and op.node_name == "conditionAgentAgentflow"]
    rows: Any = chooser.params["conditionAgentScenarios"]
    assert chooser.params["conditionAgentInput"] == "{{ question }}"
    return [row["scenario"] for row in rows]


def branches_of(ops: list[PatchOp]) -> dict[str | None, str]:
    labels = {op.node_id: op.label or op.node_id for op in ops if isinstance(op, AddNode)}
    links = [op for op in ops if isinstance(op, Connect) and op.source_node_id == "conditionAgentAgentflow_0"]
    return {op.source_anchor: labels[op.target_node_id] for op in links}


@pytest.mark.parametrize(
    ("wish", "scenarios", "branches"),
    [
        (
            "Build an agentflow: if the question contains 'refund', a refund expert answers, otherwise a general "
            "agent answers",
            ["the question contains 'refund'", "anything else"],
            {"0": "Refund expert", "1": "A general agent answers"},
        ),
        (
            'AgentFlow: if the message starts with "/de" translate it into German; if the message starts with "/fr" '
            "then translate it into French; otherwise answer it",
            ['the message starts with "/de"', 'the message starts with "/fr"', "anything else"],
            {"0": "Translate it into German", "1": "Translate it into French", "2": "Answer it"},
        ),
        (
            "An agentflow: when the input does not contain the word please, an LLM asks for it, otherwise answer it",
            ["the input does not contain the word please", "anything else"],
            {"0": "Asks for it", "1": "Answer it"},
        ),
        (
            "Erstelle einen Agentflow: wenn die Nachricht 'Storno' enthält, antwortet ein Experte, sonst ein "
            "allgemeiner Agent",
            ["die Nachricht 'Storno' enthält", "alles andere"],
            {"0": "Antwortet ein Experte", "1": "Ein allgemeiner Agent"},
        ),
        (
            "Crea un agentflow: si el mensaje contiene 'reembolso', responde un experto, de lo contrario responde un "
            "agente general",
            ["el mensaje contiene 'reembolso'", "cualquier otra cosa"],
            {"0": "Responde un experto", "1": "Responde un agente general"},
        ),
    ],
)
async def test_a_message_goes_the_way_whose_condition_holds(
    wish: str, scenarios: list[str], branches: dict[str | None, str], catalogue: NodeStore
) -> None:
    contract, ops = await built(wish, catalogue)
    assert contract.flow_kind == "AGENTFLOW"
    assert scenarios_of(ops) == scenarios
    assert branches_of(ops) == branches
    flow = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials={"openAIApi": OPENAI}).flow_data
    credentials = {OPENAI: "openAIApi"}
    assert errors(validate_flow(flow, schemas=catalogue.schemas, credentials=credentials, kind="AGENTFLOW")) == []


async def test_a_fixed_answer_takes_no_model(catalogue: NodeStore) -> None:
    _, ops = await built(
        "An agentflow: if the message contains 'refund' reply \"Call 555\", otherwise a general agent answers",
        catalogue,
    )
    replies = [op.params for op in ops if isinstance(op, AddNode) and op.node_name == "directReplyAgentflow"]
    assert replies == [{"directReplyMessage": "Call 555"}]


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (
            "Build an agentflow that repeats the draft until the score is above 8",
            "«repeats the draft until the score is above 8»",
        ),
        ("An AgentFlow that iterates over a list of cities", "«iterates over a list of cities»"),
        (
            "Agentflow: if the message contains 'urgent' a human takes over, else an LLM answers",
            "if the message contains 'urgent' a human takes over",
        ),
        ("Ein Agentflow in einer Schleife", "«Ein Agentflow in einer Schleife»"),
    ],
)
async def test_other_conditions_are_declined(wish: str, why: str, catalogue: NodeStore) -> None:
    contract, _ = await built(wish, catalogue)
    assert contract.declined
    assert why in contract.declined
