"""Names of tests, with their parameters: of all tests that this run has collected."""

import pytest

LONGEST = 100


def test_no_name_of_a_test_is_longer_than_100_characters(request: pytest.FixtureRequest) -> None:
    names = [item.nodeid.partition("::")[2] for item in request.session.items]
    assert [name for name in names if len(name) > LONGEST] == []
