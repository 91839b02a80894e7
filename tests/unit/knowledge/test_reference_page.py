"""The reference page: the catalogue for people."""

from pathlib import Path

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE, render_reference
from flowise_dev_agent.knowledge.snapshot import read_meta, slim

ROOT = Path(__file__).parents[3]


def test_page_depends_on_the_catalogue_alone(catalogue: NodeStore) -> None:
    page = render_reference(catalogue.schemas.values(), read_meta())

    assert page == (ROOT / REFERENCE_FILE).read_text(encoding="utf-8")


def test_page_says_what_a_person_looks_for(catalogue: NodeStore) -> None:
    page = render_reference(catalogue.schemas.values(), read_meta())

    assert all(f"### {name}\n" in page for name in catalogue.schemas)
    entry = page.split("### memoryVectorStore\n")[1].split("###")[0]
    assert "Needs a document loader at `document`" in entry
    assert '- Takes `document` "Document" `Document`, optional, several\n' in entry
    assert '- Gives `retriever` "Memory Retriever", `Memory` `VectorStoreRetriever` `BaseRetriever`\n' in entry
    assert "- Credential `openAIApi`\n" in page.split("### chatOpenAI\n")[1].split("###")[0]


def test_no_text_of_flowise_is_committed(catalogue: NodeStore) -> None:
    assert all(slim(schema.raw) == schema.raw for schema in catalogue.schemas.values())


def test_slim_drops_texts_for_people_and_no_value() -> None:
    entry = {"name": "n", "description": "gone", "default": {"description": "stays"}, "show": {"hint": "stays"}}

    assert slim({"inputs": [entry], "warning": "gone"}) == {
        "inputs": [{"name": "n", "default": {"description": "stays"}, "show": {"hint": "stays"}}]
    }
