"""Causes of failures by the words of the server."""

import re
from importlib.resources import files

import pytest

from flowise_dev_agent.testing import playbook

_READINGS = files("flowise_dev_agent.testing.readings")
_THROWN = re.compile(r"new Error\(['`]([^'`]+)['`]")
#: What the code of stand-ins says in the place of a step.
SAID = [words for name in ("http.js", "flow.js") for words in _THROWN.findall((_READINGS / name).read_text("utf-8"))]


@pytest.mark.parametrize("words", SAID)
def test_a_stand_in_that_fails_in_the_sandbox_is_no_fault_of_javascript(words: str) -> None:
    known = playbook.known(f"Error: NodeVM Execution Error: Error: {words}")
    assert known is not None
    assert not known.cause.startswith("js")


def test_code_that_fails_in_the_sandbox_is_one() -> None:
    known = playbook.known("Error: NodeVM Execution Error: TypeError: x is not a function")
    assert known is not None
    assert known.cause == "js"


def test_each_cause_is_known_by_the_answer_that_it_is_listed_with() -> None:
    found = {entry.cause: playbook.known(entry.answer) for entry in playbook.KNOWN}
    assert {cause: known.cause if known else None for cause, known in found.items()} == {one: one for one in found}
