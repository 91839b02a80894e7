"""The few dozen node types that a planner sees hold those that the wish needs."""

from typing import Any

import pytest

from flowise_dev_agent.agent.domains.candidates import MAX_CANDIDATES, STAPLES, candidates
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.catalogue import catalogue_line
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.reasoning.test_rules_variations import VARIATIONS


def shown_for(catalogue: NodeStore, wish: str) -> tuple[NodeSchema, ...]:
    suggested = DeterministicReasoner().suggest_node_types(wish, catalogue, {})
    return candidates(catalogue, wish, similar=suggested)


@pytest.mark.parametrize(("wish", "expected"), [(wish, expected) for wish, expected, _ in VARIATIONS])
def test_what_the_wish_needs_is_among_a_few_dozen(catalogue: NodeStore, wish: str, expected: set[str]) -> None:
    shown = shown_for(catalogue, wish)
    assert expected - {schema.name for schema in shown} == set()
    assert len(shown) <= MAX_CANDIDATES <= 40
    assert sum(len(catalogue_line(schema)) for schema in shown) < 6_000


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("Keep the vectors in Pinecone and answer with Mistral", {"pinecone", "chatMistralAI", "mistralAIEmbeddings"}),
        ("Refuse messages with swear words before they reach the model", {"inputModerationSimple"}),
        ("Agent that calls our REST API and works out sums", {"requestsGet", "calculator", "toolAgent"}),
        ("Return the fields as structured JSON", {"structuredOutputParser", "llmChain"}),
        ("Chat with a PDF", {"pdfFile", "memoryVectorStore", "openAIEmbeddings"}),
    ],
)
def test_parts_that_no_staple_covers_are_found(catalogue: NodeStore, wish: str, expected: set[str]) -> None:
    assert expected <= {schema.name for schema in shown_for(catalogue, wish)}


def test_types_of_similar_flows_are_shown_whatever_the_words(catalogue: NodeStore) -> None:
    shown = {schema.name for schema in candidates(catalogue, "zzz", similar=("weaviate", "noSuchNode"))}
    assert {"weaviate", *STAPLES} <= shown
    assert "noSuchNode" not in shown


def test_a_required_input_brings_what_feeds_it(catalogue: NodeStore) -> None:
    shown = shown_for(catalogue, "vector store retriever with a contextual compression and a reranker")
    names: dict[str, Any] = {schema.name: schema for schema in shown}
    for schema in shown[:8]:
        for anchor in schema.anchors:
            if not anchor.optional and not anchor.show:
                feeders = {other.name for other in catalogue.accepting(anchor.types)}
                assert feeders & set(names), (schema.name, anchor.name)


def test_an_agentflow_is_changed_with_its_own_kinds_of_nodes_and_what_stands_inside_them(catalogue: NodeStore) -> None:
    names = [schema.name for schema in candidates(catalogue, "have Claude search the web", kind="AGENTFLOW")]
    assert {"llmAgentflow", "agentAgentflow", "conditionAgentflow", "chatAnthropic"} <= set(names)
    assert "conversationChain" not in names
    assert len(names) <= MAX_CANDIDATES


async def test_the_planner_sees_what_the_reasoner_suggests(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(ops(), credentials(OPENAI))
    monkeypatch.setattr(bench.reasoner, "suggest_node_types", lambda *given: ["weaviate"])

    await bench.start()

    assert "weaviate" in {schema.name for schema in bench.reasoner.seen["plan"][0].candidates}


def test_what_is_suggested_comes_before_what_shares_a_word(catalogue: NodeStore) -> None:
    shown = [schema.name for schema in candidates(catalogue, "a csv file with a pdf", similar=("pinecone",))]
    assert shown[0] == "pinecone"
