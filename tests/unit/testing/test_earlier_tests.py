"""Tests of a flow from before a change expect nothing that the approved plan is to change."""

import json
from typing import Any

import pytest

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.schemas.plan import Expectation, TestCase
from flowise_dev_agent.testing.earlier_tests import still_expected

ROWS = {"name": "agentTools", "type": "array", "array": [{"name": "agentSelectedTool", "loadConfig": True}]}
NODES: dict[str, dict[str, Any]] = {
    "startAgentflow_0": {},
    "llmAgentflow_0": {"llmMessages": [{"role": "system", "content": "Read it."}], "temperature": 0.2},
    "conditionAgentflow_0": {"conditions": [{"value1": "{{ llmAgentflow_0 }}", "value2": "bill"}]},
    "agentAgentflow_0": {
        "agentMessages": [{"role": "system", "content": "Open till six o'clock."}],
        "agentTools": [{"agentSelectedTool": "calculator"}],
    },
    "humanInputAgentflow_0": {},
    "directReplyAgentflow_0": {"directReplyMessage": "Yes."},
}
LINES = [
    ("startAgentflow_0", "", "llmAgentflow_0"),
    ("llmAgentflow_0", "", "conditionAgentflow_0"),
    ("conditionAgentflow_0", "0", "agentAgentflow_0"),
    ("conditionAgentflow_0", "1", "humanInputAgentflow_0"),
    ("humanInputAgentflow_0", "0", "directReplyAgentflow_0"),
]


def flow(lines: list[tuple[str, str, str]] | None = None, /, **fields: dict[str, Any] | None) -> GraphIR:
    """The flow with other lines, other fields, and without the nodes that have none."""
    nodes = {id_: inputs for id_, inputs in {**NODES, **fields}.items() if inputs is not None}
    made = [
        {
            "id": id_,
            "type": "agentFlow",
            "data": {
                "id": id_,
                "name": id_.rpartition("_")[0],
                "inputParams": [ROWS] if id_.startswith("agent") else [],
                "inputs": inputs,
            },
        }
        for id_, inputs in nodes.items()
    ]
    edges = [
        {"source": source, "target": target, "sourceHandle": f"{source}-output-{output}", "targetHandle": target}
        for source, output, target in lines or LINES
        if source in nodes and target in nodes
    ]
    return GraphIR.from_flow_data(json.dumps({"nodes": made, "edges": edges}))


EXPECTED = Expectation(
    branch=["agentAgentflow_0"],
    tools=["calculator"],
    contains=["six o'clock", "Hello"],
    excludes=["tomorrow"],
    language="de",
)
EARLIER = TestCase(id="t1", turns=["My bill?"], human=["reject"], human_feedback=["No."], expect=EXPECTED)
AGENT = NODES["agentAgentflow_0"]
ALL = {"branch", "tools", "contains", "excludes", "language", "human"}
SWAPPED = [(source, {"0": "1", "1": "0"}.get(output, output), target) for source, output, target in LINES]
INSERTED = [
    *[line for line in LINES if line[2] != "agentAgentflow_0"],
    ("conditionAgentflow_0", "0", "llmAgentflow_1"),
    ("llmAgentflow_1", "", "agentAgentflow_0"),
]


def case(**expect: Any) -> TestCase:
    return TestCase(id="t1", turns=["New?"], expect=Expectation(**expect))


@pytest.mark.parametrize(
    ("after", "own", "gone"),
    [
        # A setting, the text of the reply, and a step that is put in leave all as it was.
        (flow(agentAgentflow_0={**AGENT, "temperature": 0.9}), [], set()),
        (flow(directReplyAgentflow_0={"directReplyMessage": "Of course."}), [], set()),
        (flow(INSERTED, llmAgentflow_1={}), [], set()),
        # What decides: the condition, the step that it reads, its branches.
        (flow(conditionAgentflow_0={"conditions": []}), [], {"branch", "tools", "human"}),
        (flow(llmAgentflow_0={"llmMessages": [{"content": "Sort it."}]}), [], {"branch", "tools", "human"}),
        (flow(SWAPPED), [], {"branch", "tools", "human"}),
        # The one who calls a tool is told something else, or has the tool no more.
        (flow(agentAgentflow_0={**AGENT, "agentMessages": ["Guess. Open till six o'clock."]}), [], {"tools"}),
        (flow(agentAgentflow_0={**AGENT, "agentTools": []}), [], {"tools"}),
        # Words that the flow held, a person who is asked no more, words that are wanted now, another language.
        (flow(agentAgentflow_0={**AGENT, "agentMessages": ["Open till eight."]}), [], {"contains", "tools"}),
        (flow(humanInputAgentflow_0=None), [], {"human"}),
        (flow(), [case(contains=["It comes tomorrow."])], {"excludes"}),
        (flow(), [case(language="en")], set()),
        (
            flow(agentAgentflow_0={**AGENT, "agentMessages": ["In Spanish. Open till six o'clock."]}),
            [case(language="es")],
            {"language", "tools"},
        ),
    ],
)
def test_an_earlier_test_expects_nothing_that_is_to_be_changed(
    after: GraphIR, own: list[TestCase], gone: set[str]
) -> None:
    (kept,) = still_expected([EARLIER], flow(), after, own)
    assert kept.turns == EARLIER.turns
    same = {name for name in ALL - {"human"} if getattr(kept.expect, name) == getattr(EXPECTED, name)}
    assert same | ({"human"} if kept.human else set()) == ALL - gone
    assert kept.human_feedback == (["No."] if kept.human else [])
    # Words that a model said by itself stay expected.
    assert "Hello" in kept.expect.contains
