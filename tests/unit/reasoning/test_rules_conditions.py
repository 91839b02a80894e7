"""AgentFlows that branch on the words of a message, by rules; what they cannot branch on they decline."""

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
    return contract, (await rules.patch(PatchRequest(requirement=wish, plan=contract, nodes=nodes))).value.ops


def rows_of(ops: list[PatchOp]) -> list[tuple[str, str]]:
    (chooser,) = [op for op in ops if isinstance(op, AddNode) and op.node_name == "conditionAgentflow"]
    rows: Any = chooser.params["conditions"]
    assert {row["value1"] for row in rows} == {"{{ question }}"}
    return [(row["operation"], row["value2"]) for row in rows]


def branches_of(ops: list[PatchOp]) -> dict[str | None, str]:
    labels = {op.node_id: op.label or op.node_id for op in ops if isinstance(op, AddNode)}
    links = [op for op in ops if isinstance(op, Connect) and op.source_node_id == "conditionAgentflow_0"]
    return {op.source_anchor: labels[op.target_node_id] for op in links}


@pytest.mark.parametrize(
    ("wish", "rows", "branches"),
    [
        (
            "Build an agentflow: if the question contains 'refund', a refund expert answers, otherwise a general "
            "agent answers",
            [("contains", "refund")],
            {"0": "Refund expert", "1": "General agent"},
        ),
        (
            'AgentFlow: if the message starts with "/de" translate it into German; if the message starts with "/fr" '
            "then translate it into French; otherwise answer it",
            [("startsWith", "/de"), ("startsWith", "/fr")],
            {"0": "Translate it into German", "1": "Translate it into French", "2": "Answer it"},
        ),
        (
            "An agentflow: when the input does not contain the word please, an LLM asks for capabilities",
            [("notContains", "please")],
            {"0": "Asks for capabilities", "1": "Answer"},
        ),
        (
            "Erstelle einen Agentflow: wenn die Nachricht 'Storno' enthält, antwortet ein Experte, sonst ein "
            "allgemeiner Agent",
            [("contains", "Storno")],
            {"0": "Antwortet ein Experte", "1": "Allgemeiner Agent"},
        ),
        (
            "Crea un agentflow: si el mensaje contiene 'reembolso' responde un experto, de lo contrario responde un "
            "agente general",
            [("contains", "reembolso")],
            {"0": "Responde un experto", "1": "Responde un agente general"},
        ),
    ],
)
async def test_a_message_goes_the_way_that_its_words_say(
    wish: str, rows: list[tuple[str, str]], branches: dict[str | None, str], catalogue: NodeStore
) -> None:
    contract, ops = await built(wish, catalogue)
    assert contract.flow_kind == "AGENTFLOW"
    assert rows_of(ops) == rows
    assert branches_of(ops) == branches
    (step,) = [step for step in contract.steps if "conditionAgentflow_0.conditions" in step]
    assert all(f"{operation} {value!r}" in step for operation, value in rows)
    flow = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials={"openAIApi": OPENAI}).flow_data
    credentials = {OPENAI: "openAIApi"}
    assert errors(validate_flow(flow, schemas=catalogue.schemas, credentials=credentials, kind="AGENTFLOW")) == []


async def test_a_fixed_answer_takes_no_model_and_each_branch_is_tested(catalogue: NodeStore) -> None:
    contract, ops = await built(
        "An agentflow: if the message contains 'refund' reply \"Call 555\", otherwise a general agent answers",
        catalogue,
    )
    replies = [op.params for op in ops if isinstance(op, AddNode) and op.node_name == "directReplyAgentflow"]
    assert replies == [{"directReplyMessage": "Call 555"}]
    assert contract.test_questions[0] == "refund"
    assert len(contract.test_questions) > 1


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (
            "Build an agentflow that repeats the draft until the score is above 8",
            "«repeats the draft until the score is above 8»",
        ),
        ("An AgentFlow that iterates over a list of cities", "«iterates over a list of cities»"),
        ("An AgentFlow: if the amount is greater than 100 the boss is asked", "«the boss is asked»"),
        (
            "Agentflow: if the message contains 'urgent' a human takes over, else an LLM answers",
            "«a human takes over»",
        ),
        ("Ein Agentflow in einer Schleife", "«in einer Schleife»"),
    ],
)
async def test_other_conditions_are_declined(wish: str, why: str, catalogue: NodeStore) -> None:
    contract, _ = await built(wish, catalogue)
    assert contract.declined
    assert why in contract.declined
