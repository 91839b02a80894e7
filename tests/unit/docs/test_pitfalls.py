"""`tests/PITFALLS.md` and the numbers in the names of tests agree."""

import pytest

from scripts.pitfalls import rows, tagged_tests

Rows = dict[str, list[str]]
Tagged = dict[str, list[tuple[str, str]]]


@pytest.fixture(scope="module")
def listed() -> Rows:
    return rows()


@pytest.fixture(scope="module")
def tagged() -> Tagged:
    return tagged_tests()


def test_every_pitfall_that_a_test_names_has_a_row(listed: Rows, tagged: Tagged) -> None:
    assert sorted(set(tagged) - set(listed)) == []


def test_every_file_listed_for_a_pitfall_has_a_test_that_names_it(listed: Rows, tagged: Tagged) -> None:
    files = {(row, file) for row, files in listed.items() for file in files}
    assert sorted(files - {(row, file) for row, tests in tagged.items() for file, _ in tests}) == []


def test_an_open_pitfall_is_named_by_no_test(listed: Rows, tagged: Tagged) -> None:
    covered_by_now = [row for row, files in listed.items() if not files and tagged.get(row)]
    assert covered_by_now == [], "run: python scripts/pitfalls.py"
