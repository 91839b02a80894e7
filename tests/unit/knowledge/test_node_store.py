"""The catalogue: look-up, search, snapshot."""

import hashlib
import json
from pathlib import Path

import pytest

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.knowledge import snapshot as snapshot_module
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.snapshot import META_FILE, SNAPSHOT_FILE, fingerprint, read_snapshot, schemas_dir
from flowise_dev_agent.patch import NodeSchema, Schemas

ROOT = Path(__file__).parents[3]


def test_p82_snapshot_names_its_flowise_version_and_is_what_its_hash_says(catalogue: NodeStore) -> None:
    text = (schemas_dir() / SNAPSHOT_FILE).read_bytes()

    assert (catalogue.flowise_version, len(catalogue), catalogue.source) == ("3.1.4", 297, "snapshot")
    assert catalogue.fingerprint == hashlib.sha256(text).hexdigest() == fingerprint(catalogue.schemas.values())


def test_snapshot_carries_no_path_of_the_machine_it_was_made_on() -> None:
    nodes = json.loads((schemas_dir() / SNAPSHOT_FILE).read_bytes())

    assert not any({"icon", "filePath"} & set(node) for node in nodes)
    assert [node["name"] for node in nodes] == sorted(node["name"] for node in nodes)


def test_p81_snapshot_is_found_inside_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "flowise_dev_agent"
    (package / "knowledge").mkdir(parents=True)
    monkeypatch.setattr(snapshot_module, "__file__", str(package / "knowledge" / "snapshot.py"))
    with pytest.raises(ConfigurationError, match="missing"):
        schemas_dir()

    (package / "knowledge" / "snapshots").mkdir()
    for name in (SNAPSHOT_FILE, META_FILE):
        (package / "knowledge" / "snapshots" / name).write_bytes((ROOT / "schemas" / name).read_bytes())

    assert schemas_dir() == package / "knowledge" / "snapshots"
    assert len(read_snapshot()[0]) == 297


def test_fingerprint_ignores_paths_and_order_but_no_field(schemas: Schemas) -> None:
    some = [schemas[name] for name in ("chatOpenAI", "calculator")]
    moved = [NodeSchema.from_raw(dict(schema.raw) | {"icon": "/elsewhere/x.svg"}) for schema in reversed(some)]
    changed = [some[0], NodeSchema.from_raw(dict(some[1].raw) | {"version": 99})]

    described = [NodeSchema.from_raw(dict(schema.raw) | {"description": "Flowise's words"}) for schema in some]

    assert fingerprint(moved) == fingerprint(described) == fingerprint(some) != fingerprint(changed)


@pytest.mark.parametrize("name", ["chatOpenAI", "CHATOPENAI", "chat_openai", "Chat OpenAI"])
def test_p25_look_up_minds_neither_case_nor_separators(catalogue: NodeStore, name: str) -> None:
    schema = catalogue.get(name)

    assert schema is not None
    assert schema.name == "chatOpenAI"


def test_p25_unknown_names_get_close_ones(catalogue: NodeStore) -> None:
    assert catalogue.get("chatOpenIA") is None
    assert catalogue.suggest("chatOpenIA")[0] == "chatOpenAI"
    assert catalogue.suggest("In-Memory Vector Store")[0] == "memoryVectorStore"
    assert len(catalogue.suggest("memory")) == 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("chatOpenAI", "chatOpenAI"),
        ("Buffer Memory", "bufferMemory"),
        ("window memory", "bufferWindowMemory"),
        ("remember the last messages", "bufferWindowMemory"),
        ("model by claude", "chatAnthropic"),
        ("pdf", "pdfFile"),
        ("some arithmetic", "calculator"),
        ("what day is today", "currentDateTime"),
        ("split into chunks", "recursiveCharacterTextSplitter"),
        ("return structured JSON", "structuredOutputParser"),
        ("in-memory vector store", "memoryVectorStore"),
        ("conversational retrieval qa chain", "conversationalRetrievalQAChain"),
        ("openai embeddings", "openAIEmbeddings"),
        ("a retriever tool", "retrieverTool"),
    ],
)
def test_search_puts_what_is_meant_first(catalogue: NodeStore, text: str, name: str) -> None:
    assert catalogue.search(text, 1, kind="CHATFLOW")[0].name == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("customer support chatbot with GPT-4o and memory", {"bufferMemory", "conversationChain", "chatOpenAI"}),
        ("search the web", {"serpAPI", "braveSearchAPI", "tavilyAPI"}),
        ("refuse messages with bad words", {"inputModerationSimple"}),
        ("translate English into French", {"llmChain", "promptTemplate"}),
        ("answer from our PDFs", {"pdfFile"}),
    ],
)
def test_search_has_what_is_needed_among_the_first_twelve(catalogue: NodeStore, text: str, names: set[str]) -> None:
    assert names <= {schema.name for schema in catalogue.search(text, 12, kind="CHATFLOW")}


def test_search_finds_nothing_for_what_does_not_exist(catalogue: NodeStore) -> None:
    assert catalogue.search("quantumTeleporter") == []


def test_search_by_kind_leaves_out_nodes_of_other_kinds(catalogue: NodeStore) -> None:
    assert all(schema.category != "Agent Flows" for schema in catalogue.search("llm agent", 50, kind="CHATFLOW"))
    assert all(schema.category == "Agent Flows" for schema in catalogue.search("llm agent", 50, kind="AGENTFLOW"))
    assert catalogue.search("llm agent", 50, kind="AGENTFLOW")


def test_accepting_lists_what_fits_an_anchor(catalogue: NodeStore) -> None:
    names = [schema.name for schema in catalogue.accepting(["VectorStoreRetriever"])]

    assert "memoryVectorStore" in names
    assert "chatOpenAI" not in names


def test_search_filters_by_category_and_by_what_an_anchor_takes(catalogue: NodeStore) -> None:
    memories = catalogue.search("window", 5, category="memory", kind="CHATFLOW")
    embeddings = catalogue.search("openai", 5, accepting=["Embeddings"])

    assert memories[0].name == "bufferWindowMemory"
    assert {schema.category for schema in memories} == {"Memory"}
    assert embeddings[0].name == "openAIEmbeddings"
    assert all("Embeddings" in schema.base_classes for schema in embeddings)
    assert len(catalogue.search("", 500, category="Chat Models")) > 20


def test_search_takes_any_text(catalogue: NodeStore) -> None:
    assert catalogue.search("\"(NEAR) OR * ^ - : '; DROP") == catalogue.search("near drop")
    assert catalogue.search("Größe ∅ 会話") == []
    assert catalogue.search("memory " * 20_000, 1) == catalogue.search("memory", 1)


@pytest.mark.parametrize("place", [0, 10_000, 19_800])
def test_search_finds_what_a_text_of_20_000_characters_asks_for_wherever_it_stands(
    catalogue: NodeStore, place: int
) -> None:
    story = "Our family has baked bread in the valley since grandfather bought the mill and the oven beside the river. "
    before, after = (story * 200)[:place], (story * 200)[: 19_900 - place]
    text = f"{before} A bot with Window Memory over our PDFs, stored in pinecone, braveSearchAPI too. {after}"

    names = [schema.name for schema in catalogue.search(text, 12, kind="CHATFLOW")]

    assert {"bufferWindowMemory", "pdfFile", "pinecone", "braveSearchAPI"} <= set(names)


def test_descriptions_of_a_server_help_the_search(schemas: Schemas) -> None:
    raw = {name: dict(schema.raw) for name, schema in schemas.items()}
    raw["calculator"]["description"] = "Finds square roots"

    store = NodeStore({name: NodeSchema.from_raw(entry) for name, entry in raw.items()}, "3.1.4")

    assert [schema.name for schema in store.search("square roots")] == ["calculator"]
