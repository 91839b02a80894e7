"""Reading what a model wrote: tolerant of wrapping, never of half an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from flowise_dev_agent.models.parsing import (
    UnusableOutputError,
    continued,
    is_cut,
    parse_model,
    parse_object,
    without_comments,
    without_thinking,
)


def answer_text(text: str) -> str:
    return without_comments(without_thinking(text))


class Requirement(BaseModel):
    name: str
    tags: list[str] = Field(default_factory=list)
    hint: str | None = None
    parts: list["Requirement"] = Field(default_factory=list)


GOOD = '{"name": "x", "tags": ["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        f'<think>Perhaps {{"name": "wrong"}}?</think>{GOOD}',
        f'\n<thinking>\nno: {{"name": "wrong"}}\n</thinking>\n\n```json\n{GOOD}\n```',
        f"<THINK>a</THINK><think>b</think> {GOOD}",
        f'Well, {{"name": "wrong"}} it is not.\n</think>\n{GOOD}',
    ],
    ids=["one block", "with a fence", "two blocks", "without its beginning"],
)
def test_thinking_is_not_the_answer(text: str) -> None:
    assert parse_model(answer_text(text), Requirement) == Requirement(name="x", tags=["a"])


def test_thinking_without_an_end_is_no_answer() -> None:
    assert answer_text(f"<think>Perhaps {GOOD}") == ""


def test_tags_inside_an_answer_stay() -> None:
    value = {"name": "Put your thoughts into <think>...</think> {first}.", "hint": "see https://example.org/*"}
    text = json.dumps(value)
    assert answer_text(text) == text
    assert answer_text(f"Here: {text}") == f"Here: {text}"
    assert parse_object(answer_text(f"```json\n{text}\n```")) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x", // don\'t "quote" {this}\n "tags": ["a"]}',
        '{/* one\n two */"name": "x", "tags": ["a" /* } */]} // done',
        'See https://example.org: {"name": "x", "tags": ["a"]}',
        '{"name": "x", "tags": ["a"], "url": "https://example.org" // an address\n}',
        "{'name': 'x', 'tags': ['a'], 'url': 'https://example.org'}",
    ],
)
def test_comments_are_skipped_and_addresses_are_not(text: str) -> None:
    read = parse_object(answer_text(text))
    assert (read["name"], read["tags"]) == ("x", ["a"])
    assert read.get("url") in (None, "https://example.org")


@given(st.recursive(st.text() | st.integers() | st.none(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_json_that_is_right_is_never_changed(value: object) -> None:
    text = json.dumps({"value": value}, ensure_ascii=False)
    assert answer_text(text) == text
    # Not only because it is whole: the reader of comments keeps all of it, too.
    commented = f"Here: {text[:-1]} // a comment\n}}"
    assert json.loads(answer_text(commented).removeprefix("Here: ")) == {"value": value}


@pytest.mark.parametrize("text", [f"I use {{context}}. {GOOD}", f'For example {{"key": 1}}: {GOOD}'])
def test_the_first_object_that_fits_is_the_answer(text: str) -> None:
    assert parse_model(text, Requirement).name == "x"


def test_problems_are_those_of_the_first_object() -> None:
    with pytest.raises(UnusableOutputError) as caught:
        parse_model('{"name": 1} and {', Requirement)
    assert caught.value.problems == ["name: Input should be a valid string"]


def test_a_null_where_none_is_taken_counts_as_left_out() -> None:
    text = '{"name": "x", "tags": null, "hint": null, "parts": [{"name": "y", "tags": null}]}'
    assert parse_model(text, Requirement) == Requirement(name="x", parts=[Requirement(name="y")])
    with pytest.raises(UnusableOutputError, match="name: Field required"):
        parse_model('{"name": null}', Requirement)


@pytest.mark.parametrize(
    ("text", "cut"),
    [('{"a": [1, {"b": "}', True), (GOOD, False), ("no object", False), ("", False), (GOOD + " and {", False)],
)
def test_p05_half_an_object_is_told_from_a_whole_one(text: str, cut: bool) -> None:
    assert is_cut(text) is cut


WHOLE = json.dumps({"ops": [{"op_type": "AddNode", "node_id": "chatOpenAI_0", "text": "Grüße {name}, 1 // 2"}]})


@given(st.integers(1, len(WHOLE) - 1), st.integers(0, 30), st.sampled_from(["", "```json\n", "\n"]))
def test_p05_a_continued_answer_is_the_whole_answer_or_none(at: int, repeats: int, before: str) -> None:
    repeated = WHOLE[max(0, at - repeats) : at] if repeats >= 8 else ""
    text = continued(WHOLE[:at], before + repeated + WHOLE[at:])
    if text is not None:
        assert json.loads(text) == json.loads(WHOLE)
    elif not before and not repeated:
        pytest.fail("A rest that simply goes on is understood.")


@pytest.mark.parametrize("at", [20, 60, 90])
def test_a_rest_that_begins_again_is_taken_alone(at: int) -> None:
    assert continued(WHOLE[:at], f"```json\n{WHOLE}") == WHOLE
    assert continued(f"Here:\n{WHOLE[:at]}", WHOLE) == WHOLE


def test_p05_a_rest_that_does_not_fit_is_not_patched_together() -> None:
    assert continued('{"ops": [{"a": 1}', "I am sorry. }]}") is None
    assert continued('{"ops": [{"a": 1}', ' {"b": 2}]}') is None


def test_a_rest_that_is_cut_too_can_be_continued_again() -> None:
    first = continued(WHOLE[:30], WHOLE[30:70])
    assert first == WHOLE[:70]
    assert continued(first, WHOLE[70:]) == WHOLE
