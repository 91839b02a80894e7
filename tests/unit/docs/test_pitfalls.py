"""`tests/PITFALLS.md` and the numbers in the names of tests agree."""

from scripts.pitfalls import rows, tagged_tests

ROWS = rows()
TAGGED = tagged_tests()


def test_every_pitfall_that_a_test_names_has_a_row() -> None:
    assert sorted(set(TAGGED) - set(ROWS)) == []


def test_every_file_listed_for_a_pitfall_has_a_test_that_names_it() -> None:
    listed = {(row, file) for row, files in ROWS.items() for file in files}
    assert sorted(listed - {(row, file) for row, tests in TAGGED.items() for file, _ in tests}) == []


def test_an_open_pitfall_is_named_by_no_test() -> None:
    covered_by_now = [row for row, files in ROWS.items() if not files and TAGGED.get(row)]
    assert covered_by_now == [], "run: python scripts/pitfalls.py"
