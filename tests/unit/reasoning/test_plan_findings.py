"""What code finds in a plan that can be used: it goes back once, and what stays is shown to the person."""

from typing import Any

import pytest

from flowise_dev_agent.contracts.plan import AmendAnswer, Part, PlannedValue
from flowise_dev_agent.contracts.plan_text import plan_markdown
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import Intent
from flowise_dev_agent.reasoning.parsing import UnusableOutputError
from flowise_dev_agent.reasoning.plan_checks import checked_amendment
from flowise_dev_agent.reasoning.plan_findings import lost_texts
from tests.unit.reasoning.test_llm_reasoner import ScriptedEngine, last_text, patch_request, plan_request, reasoner

UPDATE = Intent(operation="update", ambiguity=0, title="x")
OLD = "You are the clerk of a shop for bicycles."
AGENT = {"node_id": "toolAgent_0", "node_name": "toolAgent", "purpose": "answers", "existing": True}


def flow(nodes: NodeStore, text: str = OLD) -> GraphIR:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": text}),
        AddNode(
            node_name="llmAgentflow",
            node_id="llmAgentflow_0",
            params={"llmMessages": [{"role": "system", "content": OLD}]},
        )
        if text == "rows"
        else Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
    ]
    return compile_ops(GraphIR.empty(), ops if text != "rows" else ops[2:], nodes.schemas).graph


def asked(nodes: NodeStore, words: str, text: str = OLD, **more: Any) -> Any:
    base = flow(nodes, text)
    existing = {node.id: node.name for node in base.nodes}
    return plan_request(nodes, requirement=words, intent=UPDATE, base=base, existing=existing, **more)


def new_text(text: Any, param: str = "systemMessage", node_id: str = "toolAgent_0", **more: Any) -> PlannedValue:
    return PlannedValue(node_id=node_id, param=param, value=text, **more)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("tell the agent to answer in French", "You are a tell the agent."),
        ("Der Bot soll auf Französisch antworten", "Antworte auf Französisch."),
        ("Use the replica of the model", "Be kind."),
    ],
)
def test_p84_a_text_is_not_replaced_without_words_for_it(words: str, text: str, catalogue: NodeStore) -> None:
    (finding,) = lost_texts([new_text(text)], asked(catalogue, words))
    assert (finding.code, finding.where, finding.field) == ("TEXT_REPLACED", "toolAgent_0", "systemMessage")
    assert "mode: append" in finding.hint


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Replace the system prompt by: Be kind.", "Be kind."),
        ("Ersetze den Systemprompt durch: Sei nett.", "Sei nett."),
        ("Réécris le message", "Sois gentil."),
        ("Be a clerk for scooters instead of bicycles", "You are the clerk of a shop for scooters."),
        ("把系统提示替换成这个", "Be kind."),
        ('Where it says "a shop for bicycles" it must say scooters', "You are the clerk of a shop for scooters."),
        ("answer in French", f"{OLD}\nAnswer in French."),
    ],
)
def test_p84_a_text_is_replaced_when_the_words_ask_for_it(words: str, text: str, catalogue: NodeStore) -> None:
    assert lost_texts([new_text(text)], asked(catalogue, words)) == []


def test_p84_the_part_of_a_value_decides(catalogue: NodeStore) -> None:
    parts = (Part(id="p1", quote="Replace the model"), Part(id="p2", quote="answer in French"))
    request = asked(catalogue, "Replace the model and answer in French", parts=parts)
    assert lost_texts([new_text("Answer in French.", part="p1")], request) == []
    assert [one.code for one in lost_texts([new_text("Answer in French.", part="p2")], request)] == ["TEXT_REPLACED"]


def test_p84_the_text_that_a_node_type_brings_may_go(catalogue: NodeStore) -> None:
    default = str(catalogue.schemas["toolAgent"].defaults["systemMessage"])
    assert lost_texts([new_text("Be a pirate.")], asked(catalogue, "a pirate", default)) == []


def test_p84_a_text_in_rows_is_a_text(catalogue: NodeStore) -> None:
    request = asked(catalogue, "answer in French", "rows")
    rows = [{"role": "system", "content": "Answer in French."}]
    assert lost_texts([new_text(rows, "llmMessages", "llmAgentflow_0")], request)
    kept = [{"role": "system", "content": OLD}, *rows]
    assert lost_texts([new_text(kept, "llmMessages", "llmAgentflow_0")], request) == []


async def test_p84_a_text_that_would_go_is_sent_back_and_then_shown(catalogue: NodeStore) -> None:
    answer = {"goal": "x", "flow_name": "x", "nodes": [AGENT], "values": [new_text("French.").model_dump()]}
    engine = ScriptedEngine(answer)
    result = await reasoner(engine, 3).plan(asked(catalogue, "answer in French"))
    assert result.tries == 2
    assert "Use `mode: append`" in last_text(engine)
    assert [one.code for one in result.value.findings] == ["TEXT_REPLACED"]
    assert "## Please check\n- The text that toolAgent_0.systemMessage holds now goes" in plan_markdown(result.value)


async def test_a_plan_that_was_corrected_has_no_findings(catalogue: NodeStore) -> None:
    wrong, right = new_text("French.").model_dump(), new_text("French.", mode="append").model_dump()
    answer = {"goal": "x", "flow_name": "x", "nodes": [AGENT]}
    engine = ScriptedEngine({**answer, "values": [wrong]}, {**answer, "values": [right]})
    result = await reasoner(engine).plan(asked(catalogue, "answer in French"))
    assert (result.tries, result.value.findings) == (2, [])


async def test_an_option_that_stays_unknown_is_shown_with_the_plan(catalogue: NodeStore) -> None:
    splitter = {"node_id": "codeTextSplitter_0", "node_name": "codeTextSplitter", "purpose": "splits"}
    wrong = {"node_id": "codeTextSplitter_0", "param": "language", "value": "klingon"}
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [splitter], "values": [wrong]})
    (finding,) = (await reasoner(engine, 3).plan(plan_request(catalogue))).value.findings
    assert (finding.code, finding.field) == ("OPTION_UNKNOWN", "language")


def test_p84_an_amendment_cannot_replace_a_text_either(catalogue: NodeStore) -> None:
    base = flow(catalogue)
    plan = patch_request(catalogue).plan.model_copy(update={"operation": "update"})
    existing = {node.id: node.name for node in base.nodes}
    request = patch_request(catalogue, plan=plan, base=base, existing=existing)
    with pytest.raises(UnusableOutputError, match="TEXT_REPLACED"):
        checked_amendment(AmendAnswer(values=[new_text("French.")], reason="x"), request)
