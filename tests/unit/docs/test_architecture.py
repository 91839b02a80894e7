"""`docs/architecture.md` describes the package as it is."""

import re
import tomllib
from pathlib import Path

import pytest

from flowise_dev_agent.agent import routing
from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.stages import STAGES
from flowise_dev_agent.agent.state import AgentState

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MIGRATIONS = ROOT / "flowise_dev_agent" / "persistence" / "migrations"
#: Where paths in the documentation start.
BASES = (ROOT, ROOT / "flowise_dev_agent")
PAGES = ("docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md")


def _table(heading: str) -> list[list[str]]:
    """The cells of the first table after a line that starts with `heading`."""
    text = PAGE[PAGE.index(f"\n{heading}") :]
    lines = text[text.index("\n|") :].lstrip("\n").splitlines()
    rows = [line for line in lines[: lines.index("")] if not line.startswith("|---")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows[1:]]


def _plain(cell: str) -> str:
    return cell.strip("`")


def test_the_floors_are_those_that_import_linter_checks() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert [_plain(row[0]) for row in _table("## Floors")] == layers


def test_the_table_of_nodes_has_every_node_with_its_phase() -> None:
    assert {_plain(row[0]): row[1] for row in _table("18 nodes")} == NODE_PHASES


def test_the_table_of_nodes_names_parts_and_fields_that_the_state_has() -> None:
    named = {name for row in _table("18 nodes") for cell in row[2:] for name in re.findall(r"`([a-z_.]+)`", cell)}
    interrupts = {row[3].split("`")[1] for row in _table("18 nodes") if row[3].startswith("**interrupt**")}
    parts = AgentState.model_fields
    unknown = {
        name
        for name in named - interrupts
        if (part := name.partition(".")[0]) not in parts
        or ("." in name and name.partition(".")[2] not in type(getattr(AgentState(), part)).model_fields)
    }
    assert unknown == set()


def test_the_table_of_edges_has_exactly_the_edges_of_the_graph() -> None:
    listed = [(_plain(source), _plain(destination)) for source, destination, _ in _table("Where each leads")]
    conditional = [(source, to) for source, (_, ways) in routing.ROUTERS.items() for to in ways]
    edges = [("START", "classify_intent"), *routing.EDGES, *conditional]
    assert sorted(listed) == sorted((source, "END" if to == routing.END else to) for source, to in edges)


def test_the_tables_of_stages_are_those_of_the_graph() -> None:
    shown = {_plain(row[0]): row[2] for row in _table("## Stages of the write")}
    assert shown == {stage: "yes" if row.tested else "no" for stage, row in STAGES.items()}
    listed = [tuple(map(_plain, row[:3])) for row in _table("What leads from one stage to another")]
    exist = [(stage, event, to) for stage, row in STAGES.items() for event, to in row.events.items()]
    assert sorted(listed) == sorted(exist)


def test_every_part_of_the_state_is_named() -> None:
    text = PAGE[PAGE.index("## The state") : PAGE.index("## Where data is kept")]
    assert set(AgentState.model_fields) <= set(re.findall(r"`([a-z]+)`", text))


def test_every_table_of_the_database_is_named() -> None:
    tables: set[str] = set()
    for migration in sorted(MIGRATIONS.iterdir()):
        for verb, table in re.findall(r"^(CREATE|DROP) TABLE (\w+)", migration.read_text(), re.MULTILINE):
            (tables.add if verb == "CREATE" else tables.remove)(table)
    named = set(re.findall(r"`([a-z_]+)`", PAGE[PAGE.index("## Where data is kept") :]))
    assert sorted(tables - named) == []


@pytest.mark.parametrize("page", [page for page in PAGES if (ROOT / page).exists()])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    paths = re.findall(r"`([\w.]+(?:/[\w.]+)*/?(?:\w+\.(?:py|sql|md|tsx?|toml|yml)|/))`", (ROOT / page).read_text())
    assert [path for path in dict.fromkeys(paths) if not any((base / path).exists() for base in BASES)] == []
