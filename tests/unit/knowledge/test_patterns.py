"""Patterns of accepted flows: the parts that are stored, and the pattern that a new requirement may start from."""

import json
from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.pattern_library import (
    PatternLibrary,
    category_of,
    make_pattern,
    read_ops,
    relevance,
    terms_of,
    trimmed,
)
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, PatchOp, SetPosition, compile_ops
from tests.unit.knowledge.memory_patterns import MemoryPatterns

CREDENTIAL = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
SECRET = "sk-" + "a1B2c3D4" * 5
REQUIREMENT = "A customer support chatbot for our bicycle shop that remembers what was said"


@pytest.fixture(scope="module")
def nodes() -> NodeStore:
    return NodeStore.from_snapshot()


def ops() -> list[PatchOp]:
    return [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o", "temperature": 0.2}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0"),
        BindCredential(node_id="chatOpenAI_0", credential_id=CREDENTIAL, credential_type="openAIApi"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
    ]


def pattern(given: list[PatchOp], nodes: NodeStore, requirement: str = REQUIREMENT) -> Any:
    return make_pattern(
        given,
        requirement=requirement,
        name="Support",
        flow_kind="CHATFLOW",
        schema_fingerprint=nodes.fingerprint,
        schemas=nodes.schemas,
        owner="default",
        instance_id="default",
    )


async def keep(library: PatternLibrary, nodes: NodeStore, requirement: str = REQUIREMENT) -> int:
    kept = await library.accepted(
        uuid4(),
        requirement=requirement,
        name="Support",
        flow_kind="CHATFLOW",
        flow=compile_ops(GraphIR.empty(), ops(), nodes.schemas).graph,
        nodes=nodes,
        used=None,
    )
    assert kept is not None
    return kept


def test_a_pattern_says_nothing_of_what_the_steps_of_its_flow_did(nodes: NodeStore) -> None:
    step = AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Sort", description="Sorts the mail.")
    assert "Sorts the mail." not in str(pattern([step], nodes).ops)


def test_no_credential_secret_document_or_position_is_kept(nodes: NodeStore) -> None:
    kept = pattern(
        [
            *ops(),
            AddNode(node_name="plainText", node_id="plainText_0", params={"text": "our secret recipe"}),
            AddNode(node_name="requestsGet", node_id="requestsGet_0", params={"url": f"https://x.test/?key={SECRET}"}),
            AddNode(
                node_name="agentAgentflow",
                node_id="agentAgentflow_0",
                params={"agentModelConfig": {"modelName": "gpt-4o", "FLOWISE_CREDENTIAL_ID": CREDENTIAL}},
            ),
            AddNode(node_name="pdfFile", node_id="pdfFile_0", params={"pdfFile": 'FILE-STORAGE::["a.pdf"]'}),
            SetPosition(node_id="chatOpenAI_0", x=1, y=2),
        ],
        nodes,
        requirement=f"{REQUIREMENT}, key {SECRET}",
    )
    text = json.dumps(kept.__dict__)
    for secret in (CREDENTIAL, SECRET, "recipe", "a.pdf", "SetPosition", "BindCredential"):
        assert secret not in text
    assert '"modelName": "gpt-4o"' in text


def test_a_kept_flow_compiles_to_the_same_nodes_and_connections(nodes: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), read_ops(pattern(ops(), nodes).ops), nodes.schemas).graph
    assert {node.id for node in base.nodes} == {"chatOpenAI_0", "bufferMemory_0", "conversationChain_0"}
    assert {edge.input_name for edge in base.edges} == {"model", "memory"}
    assert [node.credential for node in base.nodes] == ["", "", ""]


@pytest.mark.parametrize(
    ("names", "category"),
    [
        (["toolAgent", "retrieverTool", "faiss"], "rag"),
        (["conversationalRetrievalQAChain", "pinecone", "bufferMemory"], "rag"),
        (["toolAgent", "calculator", "bufferMemory"], "tool_agent"),
        (["conversationChain", "chatOpenAI", "bufferMemory"], "conversational"),
        (["llmChain", "promptTemplate"], "custom"),
    ],
)
def test_the_first_fitting_category_counts(nodes: NodeStore, names: list[str], category: str) -> None:
    assert category_of(names, nodes.schemas) == category


def test_only_telling_words_count_in_any_language() -> None:
    assert terms_of("Build a chatbot for our bicycle shops, please") == ["bicycle", "shop"]
    assert terms_of("Bitte baue einen Chatbot für unser Fahrradgeschäft") == ["fahrradgeschäft"]
    assert relevance({"a", "b"}, {"a", "b"}) == 1
    assert relevance({"a", "b", "c"}, {"a", "d"}) == 0


def test_what_is_left_out_takes_its_connections_along() -> None:
    left = trimmed(ops(), {"chatOpenAI_0", "conversationChain_0"}, with_params=False)
    assert [op.op_type for op in left] == ["AddNode", "AddNode", "Connect"]
    assert all(op.params == {} for op in left if isinstance(op, AddNode))


async def test_a_similar_requirement_finds_it_and_another_does_not(nodes: NodeStore) -> None:
    library = PatternLibrary(MemoryPatterns(), instance_id="default")
    kept = await keep(library, nodes)
    (best, *_) = await library.find("Customer support bot for a bicycle shop which remembers things", nodes)
    assert (best.id, best.refused) == (kept, None)
    (other, *_) = await library.find("Translate customer e-mails into French", nodes)
    assert other.refused is not None
    assert "relevance" in other.refused


async def test_other_owners_instances_and_schemas_do_not_see_it(nodes: NodeStore) -> None:
    rows = MemoryPatterns()
    await keep(PatternLibrary(rows, instance_id="default"), nodes)
    assert await PatternLibrary(rows, instance_id="other").find(REQUIREMENT, nodes) == []
    assert await PatternLibrary(rows, instance_id="default", owner="else").find(REQUIREMENT, nodes) == []
    changed = NodeStore({name: schema for name, schema in nodes.schemas.items() if name != "plainText"}, "9.9")
    (found,) = await PatternLibrary(rows, instance_id="default").find(REQUIREMENT, changed)
    assert found.refused == "made for other node schemas"


async def test_a_pattern_without_a_fingerprint_counts_as_compatible(nodes: NodeStore) -> None:
    rows = MemoryPatterns()
    await rows.save(pattern(ops(), nodes).__class__(**{**pattern(ops(), nodes).__dict__, "schema_fingerprint": ""}))
    (found,) = await PatternLibrary(rows, instance_id="default").find(REQUIREMENT, nodes)
    assert found.refused is None


async def test_failures_lower_it_until_it_is_not_used_any_more(nodes: NodeStore) -> None:
    rows = MemoryPatterns()
    library = PatternLibrary(rows, instance_id="default")
    kept = await keep(library, nodes)
    scores: list[float] = []
    for _ in range(3):
        (found,) = await library.find(REQUIREMENT, nodes)
        scores.append(found.score)
        await library.failed(uuid4(), kept)
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1
    (found,) = await library.find(REQUIREMENT, nodes)
    assert found.refused is not None


async def test_one_session_counts_once(nodes: NodeStore) -> None:
    rows = MemoryPatterns()
    library = PatternLibrary(rows, instance_id="default")
    kept = await keep(library, nodes)
    session = uuid4()
    await library.failed(session, kept)
    await library.failed(session, kept)
    assert rows.rows[kept].failure_count == 1


async def test_the_same_words_are_kept_once_with_the_newest_flow(nodes: NodeStore) -> None:
    rows = MemoryPatterns()
    library = PatternLibrary(rows, instance_id="default")
    assert await keep(library, nodes) == await keep(library, nodes, REQUIREMENT.upper())
    assert [row.success_count for row in rows.rows.values()] == [2]


@pytest.mark.parametrize("raw", [[], [{"op_type": "Drop"}], [{"op_type": "RemoveNode", "node_id": "a"}]])
def test_what_is_no_pattern_is_refused_in_words(raw: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="ops"):
        read_ops(raw)
