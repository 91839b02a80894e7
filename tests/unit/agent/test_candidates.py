"""The few dozen node types that a planner sees hold those that the requirement needs."""

from typing import Any

import pytest

from flowise_dev_agent.agent.domains.candidates import MAX_CANDIDATES, STAPLES, candidates
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema


def shown_for(catalogue: NodeStore, requirement: str) -> tuple[NodeSchema, ...]:
    return candidates(catalogue, requirement)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("Keep the vectors in Pinecone and answer with Mistral", {"pinecone", "chatMistralAI", "mistralAIEmbeddings"}),
        ("Refuse messages with swear words before they reach the model", {"inputModerationSimple"}),
        ("Agent that calls our REST API and works out sums", {"requestsGet", "calculator", "toolAgent"}),
        ("Return the fields as structured JSON", {"structuredOutputParser", "llmChain"}),
        ("Chat with a PDF", {"pdfFile", "memoryVectorStore", "openAIEmbeddings"}),
    ],
)
def test_parts_that_no_staple_covers_are_found(catalogue: NodeStore, requirement: str, expected: set[str]) -> None:
    assert expected <= {schema.name for schema in shown_for(catalogue, requirement)}


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


def test_what_is_similar_comes_before_what_shares_a_word(catalogue: NodeStore) -> None:
    shown = [schema.name for schema in candidates(catalogue, "a csv file with a pdf", similar=("pinecone",))]
    assert shown[0] == "pinecone"
