"""What code finds in a plan that can be used: it goes back once, and what stays is shown to the person."""

from typing import Any

import pytest

from flowise_dev_agent.approval.promises import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import AddNode, Connect, Finding, GraphIR, compile_ops
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.passes.replaced_sources import with_replaced_sources
from flowise_dev_agent.planning.plan_checks import checked_amendment, checked_plan
from flowise_dev_agent.planning.plan_findings import lost_texts, texts_lost_with_nodes
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.requests import PlanRequest, ReviewedPlan
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import AmendAnswer, NamedConnection, Part, Plan, PlannedNode, PlannedValue
from tests.support.requests import UPDATE, plan_request
from tests.unit.planning.test_llm_reasoner import ScriptedEngine, last_text, patch_request, reasoner

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
    return plan_request(nodes, requirement=words, intent=UPDATE, flow=GraphView(flow(nodes, text)), **more)


def new_text(text: Any, param: str = "systemMessage", node_id: str = "toolAgent_0", **more: Any) -> PlannedValue:
    return PlannedValue(node_id=node_id, param=param, value=text, **more)


def test_p84_a_text_is_not_replaced_by_a_value_that_no_part_asks_for(catalogue: NodeStore) -> None:
    request = asked(catalogue, "Replace the prompt", parts=(Part(id="p1", quote="Replace the prompt"),))
    (finding,) = lost_texts([new_text("Be kind.", part="p9")], request)
    assert (finding.code, finding.where, finding.field) == ("TEXT_REPLACED", "toolAgent_0", "systemMessage")
    assert lost_texts([new_text(f"{OLD}\nBe kind.")], request) == []


@pytest.mark.parametrize(
    "words", ["Change what it says to: Be kind.", "方針を変える", "rename the field inside the text"]
)
def test_p84_a_text_that_a_part_asks_to_change_is_changed_whatever_the_words(words: str, catalogue: NodeStore) -> None:
    request = asked(catalogue, words, parts=(Part(id="p1", quote=words),))
    assert lost_texts([new_text("Be kind.", part="p1")], request) == []


def test_p84_an_edit_that_leaves_most_words_loses_no_text(catalogue: NodeStore) -> None:
    old = "You translate English to Japanese language. Return only Japanese language, no notes."
    request = asked(catalogue, "Cámbialo para que traduzca al portugués", old)
    edited = new_text(old.replace("Japanese", "Portuguese"))
    other = new_text("You translate. Return only Portuguese, please, and be kind to everybody.")
    assert lost_texts([edited], request) == []
    assert [one.code for one in lost_texts([other], request)] == ["TEXT_REPLACED"]


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
    assert "## Please check\n- The text that “systemMessage” holds now goes" in plan_markdown(result.value)


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
    request = patch_request(catalogue, plan=plan, flow=GraphView(base))
    with pytest.raises(UnusableOutputError, match="TEXT_REPLACED"):
        checked_amendment(AmendAnswer(values=[new_text("French.")], reason="x"), request)


def adding(name: str, **more: Any) -> Plan:
    node = PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x")
    return Plan(goal="x", operation="update", flow_name="x", nodes=[node], **more)


def test_a_new_model_takes_the_place_of_the_one_at_its_only_input(catalogue: NodeStore) -> None:
    plan, findings = with_replaced_sources(adding("chatAnthropic"), asked(catalogue, "use Claude"))
    assert (plan.removals, findings) == (["chatOpenAI_0"], [])


@pytest.mark.parametrize(
    "more",
    [{"kept": ["chatOpenAI_0"]}, {"removals": ["chatOpenAI_0"]}],
    ids=["the person keeps the old one", "the plan removes it"],
)
def test_a_kept_or_removed_source_is_not_removed_by_code(more: dict[str, Any], catalogue: NodeStore) -> None:
    plan, findings = with_replaced_sources(adding("chatAnthropic", **more), asked(catalogue, "use Claude"))
    assert plan.removals == more.get("removals", [])
    assert [one.code for one in findings] == (["ONE_SOURCE"] if "kept" in more else [])


def test_a_new_model_for_a_new_chain_or_a_free_input_replaces_nothing(catalogue: NodeStore) -> None:
    chain = PlannedNode(node_id="llmChain_0", node_name="llmChain", purpose="x")
    wanted = adding("chatAnthropic")
    with_chain = wanted.model_copy(update={"nodes": [*wanted.nodes, chain]})
    assert with_replaced_sources(with_chain, asked(catalogue, "x"))[0].removals == []
    assert with_replaced_sources(adding("bufferMemory"), asked(catalogue, "remember"))[0].removals == []


async def test_a_source_that_feeds_two_inputs_is_asked_about(catalogue: NodeStore) -> None:
    second = [
        AddNode(node_name="llmChain", node_id="llmChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="llmChain_0", target_anchor="model"),
    ]
    base = compile_ops(flow(catalogue), second, catalogue.schemas).graph
    request = plan_request(catalogue, intent=UPDATE, flow=GraphView(base))
    node = {"node_id": "chatAnthropic_0", "node_name": "chatAnthropic", "purpose": "x"}
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [node]})
    result = await reasoner(engine, 3).plan(request)
    assert (result.tries, result.value.removals) == (2, [])
    assert [one.code for one in result.value.findings] == ["ONE_SOURCE"]
    assert "chatOpenAI_0 at toolAgent_0.model, chatOpenAI_0 at llmChain_0.model" in last_text(engine)


async def test_what_the_review_finds_goes_back_once_and_is_then_shown(catalogue: NodeStore) -> None:
    async def review(plan: Plan, request: PlanRequest) -> ReviewedPlan:
        message = f"{plan.nodes[0].node_id} lacks a model."
        found = Finding(code="INPUT_NOT_FED", severity="warning", message=message)
        return ReviewedPlan(plan.model_copy(update={"findings": [found]}), (found.text,))

    chain = {"node_id": "llmChain_0", "node_name": "llmChain", "purpose": "x"}
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [chain]})
    result = await reasoner(engine, 3).plan(plan_request(catalogue, review=review))
    assert result.tries == 2
    assert "llmChain_0 lacks a model" in last_text(engine)
    assert [one.code for one in result.value.findings] == ["INPUT_NOT_FED"]


def test_what_an_earlier_round_has_written_and_removed_is_known_without_being_said(catalogue: NodeStore) -> None:
    new = PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="answers")
    plan = Plan(goal="x", operation="update", flow_name="x", nodes=[new], removals=["chatAnthropic_0"])
    again = checked_plan(plan, asked(catalogue, "use OpenAI", previous=plan))
    assert [node.existing for node in again.nodes] == [True]
    assert again.removals == []
    with pytest.raises(UnusableOutputError, match="chatAnthropic_0"):
        checked_plan(plan, asked(catalogue, "use OpenAI"))


def replacing(text: str, **more: Any) -> Plan:
    """Plan that puts another agent with this text in the place of the agent."""
    agent: Any = {"node_id": "conversationalAgent_0", "node_name": "conversationalAgent", "purpose": "answers"}
    value = new_text(text, node_id="conversationalAgent_0", **more)
    return Plan(
        goal="x",
        operation="update",
        flow_name="x",
        nodes=[PlannedNode(**agent)],
        removals=["toolAgent_0"],
        values=[value],
    )


def test_a_text_that_goes_with_a_replaced_node_is_found_and_shown(catalogue: NodeStore) -> None:
    old = f"{OLD} Never promise a date of delivery, whoever asks."
    request = asked(catalogue, "another agent", old, parts=(Part(id="p1", quote="another agent"),))
    shorter = replacing(OLD)
    (finding,) = texts_lost_with_nodes(shorter, request)
    assert (finding.code, finding.where, finding.field) == ("TEXT_REPLACED", "toolAgent_0", "systemMessage")
    assert "conversationalAgent_0" in finding.hint
    (shown,) = plan_details(shorter, request.flow.graph, schemas=catalogue.schemas).values
    assert (shown.old, shown.new, shown.loses_text) == (old, OLD, True)
    assert texts_lost_with_nodes(replacing(OLD, part="p1"), request) == []
    assert texts_lost_with_nodes(replacing(f"{old} Be kind."), request) == []
    default = asked(catalogue, "another agent", "You are a helpful AI assistant.")
    assert texts_lost_with_nodes(shorter, default) == []


def test_a_text_that_goes_with_a_replaced_step_is_found(catalogue: NodeStore) -> None:
    steps = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(
            node_name="llmAgentflow",
            node_id="llmAgentflow_0",
            params={"llmMessages": [{"role": "system", "content": OLD}]},
        ),
        Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"),
    ]
    base = compile_ops(GraphIR.empty(), steps, catalogue.schemas).graph
    request = plan_request(catalogue, requirement="an agent", intent=UPDATE, flow=GraphView(base))
    agent = PlannedNode(node_id="agentAgentflow_0", node_name="agentAgentflow", purpose="answers")
    line = NamedConnection(source="startAgentflow_0", target="agentAgentflow_0")
    plan = Plan(
        goal="x",
        operation="update",
        flow_name="x",
        flow_kind="AGENTFLOW",
        nodes=[agent],
        removals=["llmAgentflow_0"],
        connections=[line],
    )
    assert [(one.where, one.field) for one in texts_lost_with_nodes(plan, request)] == [
        ("llmAgentflow_0", "llmMessages.content")
    ]
    rows = [{"role": "system", "content": OLD}]
    kept = plan.model_copy(update={"values": [new_text(rows, "agentMessages", "agentAgentflow_0")]})
    assert texts_lost_with_nodes(kept, request) == []


@pytest.mark.parametrize(
    ("type_", "values", "path", "stored"),
    [
        (
            "llmAgentflow",
            {
                "llmStructuredOutput": [{"key": "rows", "type": "jsonArray", "description": "all"}],
                "llmStructuredOutput[0].jsonSchema": '{"properties": {"a": {"type": "string"}}, "required": ["a"]}',
            },
            "llmStructuredOutput[0].jsonSchema",
            '{"a":{"type":"string"}}',
        ),
        (
            "llmAgentflow",
            {"llmStructuredOutput": [{"key": "rows", "type": "jsonArray", "jsonSchema": {"a": {"type": "string"}}}]},
            "llmStructuredOutput[0].jsonSchema",
            '{"a":{"type":"string"}}',
        ),
        ("httpAgentflow", {"method": "post"}, "method", "POST"),
        ("startAgentflow", {"startInputType": "Form Input"}, "startInputType", "formInput"),
        ("chatOpenAI", {"allowImageUploads": "True"}, "allowImageUploads", True),
    ],
)
async def test_a_value_in_another_notation_is_no_finding_and_no_dead_end(
    type_: str, values: dict[str, Any], path: str, stored: Any, catalogue: NodeStore
) -> None:
    node = {"node_id": f"{type_}_0", "node_name": type_, "purpose": "does it"}
    given = [{"node_id": f"{type_}_0", "param": name, "value": one} for name, one in values.items()]
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [node], "values": given})
    taken = (await reasoner(engine, 3).plan(plan_request(catalogue))).value
    assert not [one for one in taken.findings if one.code == "OPTION_UNKNOWN"]
    ops = with_planned_values([AddNode(node_name=type_, node_id=f"{type_}_0")], taken, GraphIR.empty())
    after = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    assert not_met(taken, GraphIR.empty(), after) == []
    steps = parse_path(path)
    assert steps
    assert value_at(after.nodes[0].inputs, steps) == stored
