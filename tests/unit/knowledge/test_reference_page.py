"""The reference page is for people and for the parser, which must get everything back."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE, render_reference
from flowise_dev_agent.knowledge.reference_parser import parse_reference
from flowise_dev_agent.knowledge.snapshot import SnapshotMeta, by_name, canonical_text, fingerprint, read_meta, slim

ROOT = Path(__file__).parents[3]

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=12)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
_INPUT = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z]{1,6}", fullmatch=True), "type": st.sampled_from(["string", "options", "A | B"])},
    optional={
        "label": _TEXT,
        "optional": st.booleans() | st.just({"a": 1}),
        "list": st.booleans(),
        "default": _VALUE,
        "show": st.dictionaries(_TEXT, _VALUE, max_size=2),
        "options": st.lists(st.fixed_dictionaries({"label": _TEXT, "name": _TEXT}, optional={"x": _VALUE}), max_size=2),
        "rows": st.integers(0, 3),
    },
)
_NODE = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[a-z][A-Za-z_]{0,6}", fullmatch=True),
        "category": st.sampled_from(["Tools", "Tools (MCP)"]),
    },
    optional={
        "label": _TEXT,
        "version": st.integers(0, 9) | st.floats(0, 9) | _TEXT,
        "type": _TEXT,
        "badge": st.sampled_from(["DEPRECATING", "NEW"]),
        "baseClasses": st.lists(_TEXT, max_size=2),
        "inputs": st.lists(_INPUT, max_size=3),
        "outputs": st.lists(st.fixed_dictionaries({"name": _TEXT}, optional={"baseClasses": st.lists(_TEXT)})),
        "credential": st.fixed_dictionaries(
            {}, optional={"label": _TEXT, "credentialNames": st.lists(_TEXT, max_size=2), "optional": st.booleans()}
        ),
    },
)


def _meta(nodes: list[dict[str, Any]]) -> SnapshotMeta:
    return SnapshotMeta(
        flowise_version="3.1.4",
        node_count=len(nodes),
        sha256="0" * 64,
        generated_at=datetime(2026, 1, 2, tzinfo=UTC),
        source="GET /api/v1/nodes",
    )


def test_committed_page_holds_the_committed_snapshot(catalogue: NodeStore) -> None:
    nodes, meta = parse_reference((ROOT / REFERENCE_FILE).read_text(encoding="utf-8"))

    assert canonical_text(by_name(nodes).values()) == canonical_text(catalogue.schemas.values())
    assert meta == read_meta()
    assert fingerprint(by_name(nodes).values()) == meta.sha256


def test_page_depends_on_the_catalogue_alone(catalogue: NodeStore) -> None:
    page = render_reference(catalogue.schemas.values(), read_meta())

    assert page == (ROOT / REFERENCE_FILE).read_text(encoding="utf-8")


@given(st.lists(_NODE, max_size=3, unique_by=lambda node: node["name"]))
def test_any_catalogue_survives_the_page(nodes: list[dict[str, Any]]) -> None:
    page = render_reference(by_name(nodes).values(), _meta(nodes))

    back, meta = parse_reference(page)

    by_name_of = {node["name"]: node for node in back}
    assert by_name_of == {node["name"]: node for node in nodes}, page
    assert meta == _meta(nodes)


def test_page_says_what_a_person_looks_for(catalogue: NodeStore) -> None:
    page = render_reference(catalogue.schemas.values(), read_meta())

    assert all(f"### {name}\n" in page for name in catalogue.schemas)
    entry = page.split("### memoryVectorStore\n")[1].split("###")[0]
    assert "Needs a document loader at `document`" in entry
    assert '- Takes `document` "Document" `Document`, optional, several\n' in entry
    assert '- Gives `retriever` "Memory Retriever", `Memory` `VectorStoreRetriever` `BaseRetriever`\n' in entry
    assert "- Credential `openAIApi`\n" in page.split("### chatOpenAI\n")[1].split("###")[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Flowise node reference\n", "", "line 1"),
        ("node types of Flowise 3.1.4", "nodes of some Flowise", "which Flowise"),
        ("- Takes `cache`", "- Takes cache, or not:", "cannot be read"),
        (', more `{"loadMethod":"listModels"}`', ', more `{"loadMethod"`', "cannot be read"),
    ],
)
def test_a_broken_page_is_named_with_its_line(old: str, new: str, said: str) -> None:
    page = (ROOT / REFERENCE_FILE).read_text(encoding="utf-8").replace(old, new, 1)

    with pytest.raises(ConfigurationError, match=said) as caught:
        parse_reference(page)
    assert f"git checkout HEAD -- {REFERENCE_FILE}" in str(caught.value)


def test_no_text_of_flowise_is_committed(catalogue: NodeStore) -> None:
    nodes, _ = parse_reference((ROOT / REFERENCE_FILE).read_text(encoding="utf-8"))

    assert all(slim(schema.raw) == schema.raw for schema in catalogue.schemas.values())
    assert all(slim(node) == node for node in nodes)


def test_slim_drops_texts_for_people_and_no_value() -> None:
    entry = {"name": "n", "description": "gone", "default": {"description": "stays"}, "show": {"hint": "stays"}}

    assert slim({"inputs": [entry], "warning": "gone"}) == {
        "inputs": [{"name": "n", "default": {"description": "stays"}, "show": {"hint": "stays"}}]
    }
