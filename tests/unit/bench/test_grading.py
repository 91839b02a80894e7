"""FlowBench's grading: what a case expects of a flow, and each way in which a flow can miss it."""

from collections.abc import Sequence
from typing import Any

import pytest

from scripts.bench.grading import problems_of


def node(id_: str, name: str, x: float = 0, **inputs: Any) -> dict[str, Any]:
    return {"id": id_, "position": {"x": x, "y": 0}, "data": {"id": id_, "name": name, "inputs": inputs}}


def edge(source: str, target: str, branch: int | None = None) -> dict[str, Any]:
    handle = f"{source}-output-{branch if branch is not None else 'x'}"
    return {"source": source, "target": target, "sourceHandle": handle, "targetHandle": target}


def flow(nodes: Sequence[dict[str, Any]], edges: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"nodes": [*nodes], "edges": [*edges]}


MODEL = node("chatOpenAI_0", "chatOpenAI", 0, modelName="gpt-4o", temperature="0.2")
CHAIN = node(
    "chain_0", "conversationChain", 300, systemMessagePrompt="Open Tue to Sat.", model="{{chatOpenAI_0.data.instance}}"
)
CHATFLOW = flow([MODEL, CHAIN], [edge("chatOpenAI_0", "chain_0")])
SORTER = node(
    "sort_0",
    "conditionAgentAgentflow",
    100,
    conditionAgentScenarios=[{"scenario": "Booking"}, {"scenario": "Complaint"}],
)
RELEASE = node("human_0", "humanInputAgentflow", 300)
REPLY = node("llm_0", "llmAgentflow", 300, llmMessages=[{"role": "system", "content": "<p>Answer  politely</p>"}])
AGENTFLOW = flow([SORTER, RELEASE, REPLY], [edge("sort_0", "llm_0", 0), edge("sort_0", "human_0", 1)])


@pytest.mark.parametrize(
    "expect",
    [
        {"nodes": [["chatAnthropic", "chatOpenAI"]], "not_nodes": ["toolAgent"], "counts": {"chatOpenAI": 1}},
        {"params": {"chatOpenAI.temperature": 0.2}, "keep": ["chain_0"]},
        {"texts": {"conversationChain.systemMessagePrompt": ["open tue", "sat"]}},
        {"prompt_has": ["Tue to Sat"], "prompt_lacks": ["You are a"]},
        {"edges": [["chatOpenAI", "conversationChain"]], "order": {"first": {"chatOpenAI.modelName": "gpt-4o"}}},
    ],
)
def test_a_flow_with_what_is_expected_has_no_problems(expect: dict[str, Any]) -> None:
    assert problems_of(CHATFLOW, expect) == []


@pytest.mark.parametrize(
    "expect",
    [
        {"nodes": [["chatAnthropic"]]},
        {"not_nodes": ["chatOpenAI"]},
        {"counts": {"chatOpenAI": 2}},
        {"params": {"chatOpenAI.temperature": 0.3}},
        {"keep": ["chain_1"]},
        {"texts": {"conversationChain.systemMessagePrompt": "open Monday"}},
        {"not_texts": {"conversationChain.systemMessagePrompt": "open tue"}},
        {"prompt_has": ["Monday"]},
        {"prompt_lacks": ["Open"]},
        {"edges": [["conversationChain", "chatOpenAI"]]},
        {"order": {"first": {"chatOpenAI.modelName": "gpt-4o-mini"}}},
        {"output_fields": ["title"]},
        {"sources_returned": True},
        {"condition": {"type": "number"}},
        {"scenarios": ["booking"]},
    ],
    ids=lambda expect: next(iter(expect)),
)
def test_a_flow_without_what_is_expected_is_told_by_its_key(expect: dict[str, Any]) -> None:
    problems = problems_of(CHATFLOW, expect)
    assert [problem.partition(":")[0] for problem in problems] == [next(iter(expect))]


def test_a_branch_is_graded_by_its_words_and_by_what_it_alone_reaches() -> None:
    right = {"scenarios": ["booking", "complaint"], "behind": {"humanInputAgentflow": "complaint"}}
    assert problems_of(AGENTFLOW, right) == []
    both = flow(AGENTFLOW["nodes"], [*AGENTFLOW["edges"], edge("llm_0", "human_0")])
    assert problems_of(both, right) == ["behind: humanInputAgentflow is not behind the branch 'complaint' alone"]


def test_a_prompt_is_compared_without_the_markup_of_the_editor() -> None:
    assert problems_of(AGENTFLOW, {"prompt_has": ["answer politely"]}) == []


def test_a_condition_is_found_by_type_operation_and_value() -> None:
    row = {"type": "number", "operation": "larger", "value1": "{{ llm_0.output.amount }}", "value2": "200"}
    amount = flow([node("if_0", "conditionAgentflow", conditions=[row])])
    assert problems_of(amount, {"condition": {"type": "number", "operation": ["larger"], "value": 200}}) == []
    assert problems_of(amount, {"condition": {"type": "string"}})


def test_fields_of_the_output_are_found_in_a_table_of_them() -> None:
    parser = node("parser_0", "structuredOutputParser", jsonStructure='[{"property": "dish", "type": "string"}]')
    assert problems_of(flow([parser]), {"output_fields": ["dish"]}) == []
    assert problems_of(flow([parser]), {"output_fields": ["rating"]}) == ["output_fields: rating is named nowhere"]


def test_a_change_is_compared_with_the_flow_before_it() -> None:
    cooler = {**MODEL, "data": {**MODEL["data"], "inputs": {"modelName": "gpt-4o", "temperature": "0"}}}
    changed = flow([cooler, CHAIN], CHATFLOW["edges"])
    assert problems_of(changed, {"changed_nodes": 1, "untouched_but": ["chatOpenAI_0"]}, CHATFLOW) == []
    assert problems_of(changed, {"untouched_but": ["conversationChain"]}, CHATFLOW)
    assert problems_of(CHATFLOW, {"changed_nodes": 1}, CHATFLOW)
    removed = flow([CHAIN])
    assert problems_of(removed, {"untouched_but": []}, CHATFLOW) == []
    assert problems_of(removed, {"keep": ["chatOpenAI_0"]}, CHATFLOW)


def test_the_kind_of_the_stored_flow_is_graded() -> None:
    assert problems_of(AGENTFLOW, {"kind": "AGENTFLOW"}, kind="CHATFLOW") == ["kind: CHATFLOW, not AGENTFLOW"]
