"""The decision records answer every item of the specification, and the index leads to them."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text()
RECORDS = {path.name: path.read_text() for path in sorted(FOLDER.glob("[0-9]*.md"))}

#: The specification has no DD-041 to DD-045 and no DD-053 to DD-058.
ITEMS = [f"DD-{number:03}" for number in [*range(1, 41), *range(46, 53), *range(59, 82)]]
ITEMS += [f"AC-{number}" for number in range(1, 10)]


def _answered(record: str) -> str:
    return record.partition("## Specification")[2]


def test_the_records_are_numbered_without_gaps_and_listed_once() -> None:
    assert [name[:3] for name in RECORDS] == [f"{number:03}" for number in range(1, len(RECORDS) + 1)]
    listed = re.findall(r"^\| \[\d{3}\]\(([^)]+)\) \|", INDEX, flags=re.MULTILINE)
    assert listed == list(RECORDS)


def test_a_record_has_the_number_of_its_file_and_all_its_parts() -> None:
    parts = ["Context", "Decision", "Consequences", "Specification"]
    wrong = [
        name
        for name, text in RECORDS.items()
        if not text.startswith(f"# {name[:3]} ") or re.findall(r"^## (.+)$", text, flags=re.MULTILINE) != parts
    ]
    assert wrong == []


def test_an_item_of_the_specification_leads_to_records_that_answer_it() -> None:
    rows = dict(re.findall(r"^\| ([A-Z]+-\d+) \| .+ \| (.+) \|$", INDEX, flags=re.MULTILINE))
    named = {item: re.findall(r"\]\(([^)]+)\)", rows.get(item, "")) for item in ITEMS}
    assert [item for item, records in named.items() if not records] == []
    assert [
        (item, name)
        for item, records in named.items()
        for name in records
        if not re.search(rf"\b{item}\b", _answered(RECORDS[name]))
    ] == []
