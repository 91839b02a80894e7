"""The benchmark's own cases without a server: each new chatflow compiles, validates and holds what its case expects."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowise_dev_agent.agent.plan_binding import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

FILE = Path(__file__).resolve().parents[3] / "scripts" / "bench" / "cases" / "extra.yaml"
CASES: list[dict[str, Any]] = [case for case in yaml.safe_load(FILE.read_text("utf-8")) if case["mode"] == "create"]
DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1, "groqApi": 1, "serpApi": 1, "tavilyApi": 1}


def cases_with(expectation: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["expect"].get(expectation)]


def is_of_steps(case: dict[str, Any]) -> bool:
    return case["id"].startswith("agentflow-") or case["id"] in ("prompt-chaining", "multi-agent-team")


async def plan_of(wish: str, nodes: NodeStore) -> PlanContract:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    request = PlanRequest(requirement=wish, intent=intent, nodes=nodes, credential_types=CREDENTIALS)
    return (await rules.plan(request)).value


@pytest.mark.parametrize(
    "case", [case for case in cases_with("nodes") if not is_of_steps(case)], ids=lambda case: case["id"]
)
async def test_a_wish_becomes_a_valid_flow_with_what_it_names(case: dict[str, Any], catalogue: NodeStore) -> None:
    wish, expect = case["requirement"], case["expect"]
    plan = await plan_of(wish, catalogue)
    assert plan.declined is None
    ops = (await DeterministicReasoner().patch(PatchRequest(requirement=wish, plan=plan, nodes=catalogue))).value.ops
    chosen = dict.fromkeys(plan.credential_requirements, DUMMY)
    compiled = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen)
    flow_data = compiled.flow_data
    assert not_met(plan, GraphIR.empty(), compiled.graph) == []
    findings = validate_flow(flow_data, schemas=catalogue.schemas, credentials=None, kind=plan.flow_kind)
    assert errors(findings) == []

    nodes = json.loads(flow_data)["nodes"]
    names = Counter(node["data"]["name"] for node in nodes)
    for group in expect["nodes"]:
        assert names.keys() & set(group), group
    assert not names.keys() & set(expect.get("not_nodes", ()))
    assert all(names[name] >= least for name, least in expect.get("counts", {}).items())
    for place, value in expect.get("params", {}).items():
        name, _, param = place.partition(".")
        values = {str(node["data"]["inputs"].get(param)).lower() for node in nodes if node["data"]["name"] == name}
        assert str(value).lower() in values


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["expect"].get("no_write")], ids=lambda case: case["id"]
)
async def test_what_cannot_be_built_is_declined_in_words(case: dict[str, Any], catalogue: NodeStore) -> None:
    plan = await plan_of(case["requirement"], catalogue)
    assert plan.declined
    assert plan.nodes == []


@pytest.mark.parametrize("case", [case for case in CASES if is_of_steps(case)], ids=lambda case: case["id"])
async def test_a_flow_of_steps_is_left_to_a_model_and_to_the_form(case: dict[str, Any], catalogue: NodeStore) -> None:
    # What these cases expect is what a model builds; without one such a flow is built step by step in the form.
    plan = await plan_of(case["requirement"], catalogue)
    assert (plan.flow_kind, plan.nodes) == ("AGENTFLOW", [])
    assert "build --guided" in (plan.declined or "")


@pytest.mark.parametrize("case", cases_with("clarification"), ids=lambda case: case["id"])
async def test_a_vague_wish_is_asked_about(case: dict[str, Any]) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=case["requirement"]))).value
    assert intent.ambiguity >= 5
    assert len(intent.questions) == 1


async def test_what_only_the_person_knows_is_marked_in_flow_and_plan(catalogue: NodeStore) -> None:
    plan = await plan_of("RAG over our wiki with Pinecone and a PDF file", catalogue)
    assert "pinecone_0.pineconeIndex: [PLACEHOLDER: Pinecone: Pinecone Index]" in plan.placeholders
    assert any(item.startswith("pdfFile_0.pdfFile: [PLACEHOLDER") for item in plan.placeholders)


async def test_a_tool_that_chatflows_do_not_take_leads_to_an_agentflow(catalogue: NodeStore) -> None:
    plan = await plan_of("Agent that searches arXiv for papers, with GPT-4.1", catalogue)
    assert plan.flow_kind == "AGENTFLOW"
    assert any("arxiv" in str(value.value) for value in plan.values)
    assert plan.credential_requirements == ["openAIApi"]
