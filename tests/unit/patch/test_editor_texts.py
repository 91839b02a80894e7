"""Texts that Flowise's editor keeps as HTML, as the server and the page read them."""

import time

import pytest

from flowise_dev_agent.patch.model.values import without_markup

MENTION = '<span class="variable" data-type="mention" data-id="question" data-label="question">{{ question }}</span>'


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("<p>11</p>", "11"),
        (f"<p>&lt;topic&gt;</p><p>{MENTION} </p><p></p>", "<topic>\n\n{{ question }}"),
        (
            "<p><strong>Steps</strong></p><ol><li><p>a</p><ul><li>b</li></ul></li></ol>",
            "**Steps**\n\n1. a\n\n  - b",
        ),
        ('<ol start="3"><li>three</li><li>four</li></ol>', "3. three\n4. four"),
        ("<rules>Be kind.</rules>", "<rules>Be kind.</rules>"),
        ("<p></p>", ""),
    ],
)
def test_a_text_is_read_as_the_model_gets_it(stored: str, read: str) -> None:
    assert without_markup(stored) == read


def test_a_tag_that_never_ends_is_read_in_the_time_of_its_length() -> None:
    open_ = ' start="1"' * 40_000
    begun = time.thread_time()
    assert without_markup(f"<p>x</p><ol{open_}") == f"x\n\n<ol{open_}"
    assert time.thread_time() - begun < 4


def test_deep_lists_grow_no_faster_than_their_text() -> None:
    deep = "<ul><li>x" * 2_000
    assert len(without_markup(deep)) < 3 * len(deep)
