"""What is stored and sent is plain, bounded text and JSON."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.sanitize import bounded, clean_json, clean_text, json_size, json_text, shortened

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), children),
    max_leaves=20,
)


def test_p62_nul_and_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    assert clean_text("a\x00b") == "a\ufffdb"
    assert clean_text("x\ud800y") == "x\ufffdy"
    assert clean_text("\ud83d\ude42") == "🙂"
    assert clean_text("plain ü 🙂") == "plain ü 🙂"
    assert clean_json({"k\x00": ["\udfff", 1, None]}) == {"k\ufffd": ["\ufffd", 1, None]}


@given(anything)
def test_clean_json_is_always_what_postgres_takes(value: object) -> None:
    text = json.dumps(clean_json(value), allow_nan=False, ensure_ascii=False)
    assert "\x00" not in text
    assert "\\u0000" not in text
    text.encode()


@given(anything)
def test_the_text_of_json_is_that_of_its_clean_copy(value: object) -> None:
    assert json.loads(json_text(value)) == clean_json(value)


def test_what_is_not_json_is_written_as_its_text() -> None:
    moment, number = datetime(2026, 1, 2, tzinfo=UTC), 2**70
    assert clean_json({"at": moment, 1: {number}}) == {"at": "2026-01-02 00:00:00+00:00", "1": [number]}
    assert json_text([number, "\x00"]) == b'[1180591620717411303424, "\\ufffd"]'


@given(st.dictionaries(st.text(), anything, max_size=8), st.integers(200, 4000))
def test_bounded_data_fits_and_names_what_it_lost(data: dict[str, object], limit: int) -> None:
    kept = bounded(data, limit)
    assert json_size(kept) <= limit
    if "truncated" not in kept:
        assert kept == clean_json(data)


def test_bounded_drops_the_largest_values_first() -> None:
    assert bounded({"a": 1, "big": "x" * 500, "b": [2]}, 300) == {"a": 1, "b": [2], "truncated": ["big"]}


def test_shortened_ends_with_an_ellipsis_only_when_cut() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"
    assert shortened("ab cd", 4) == "ab…"
    # Between words, where that leaves half of it: no name or address is cut in two.
    assert shortened("see https://a.example/x now", 26) == "see https://a.example/x…"
