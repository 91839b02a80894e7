"""Files of tests, and a flow with another model, as `flows test` reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.cli.flow_tests import format_of, with_model
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_tests import TestFlow, TestSummary
from flowise_dev_agent.schemas.verdict import Trial
from flowise_dev_agent.testing.test_files import Format, read_tests, write_tests


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", '{"tests": [{"turns": ["Hi", "And?"], "expect": {"contains": ["a", "b"], "excludes": []}}]}'),
        (".yaml", "tests:\n  - turns: [Hi, 'And?']\n    expect: {contains: [a, b], excludes: []}\n"),
        (".csv", 'question,contains\n"Hi / And?",a | b\n'),
    ],
)
def test_a_file_of_tests_is_json_yaml_or_csv(suffix: str, text: str) -> None:
    (given,) = TestFlow.model_validate({"tests": read_tests(text, format_of(Path(f"tests{suffix}")))}).tests
    assert (given.turns, given.expect.contains, given.expect.excludes) == (["Hi", "And?"], ["a", "b"], [])


@pytest.mark.parametrize(
    ("suffix", "text"), [(".yaml", "a: &a [1]\nb: *a\n"), (".csv", "contains\na\n"), (".json", "{}"), (".yaml", "3")]
)
def test_another_file_is_refused(suffix: str, text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_tests(text, format_of(Path(f"tests{suffix}")))


def test_the_figures_count_a_question_that_passed_in_each_trial() -> None:
    trials = [
        Trial(question="a", test="t1", passed=True, duration_ms=2, tokens=3),
        Trial(question="a", test="t1", trial=2, passed=False, duration_ms=2, tokens=3),
        Trial(question="b", test="t2", passed=True),
        Trial(question="b", test="t2", trial=2, passed=True),
    ]
    found = TestSummary.of(trials)
    assert (found.k, found.questions, found.passed, found.duration_ms, found.tokens) == (2, 2, 1, 4, 6)


def test_a_flow_is_asked_with_another_model_and_the_same_embeddings() -> None:
    nodes = [
        {"data": {"category": "Chat Models", "inputs": {"modelName": "gpt-4o"}}},
        {"data": {"category": "Embeddings", "inputs": {"modelName": "text-embedding-3-small"}}},
        {"data": {"category": "Agent Flows", "inputs": {"llmModelConfig": {"modelName": "gpt-4o"}}}},
    ]
    made = json.loads(with_model(json.dumps({"nodes": nodes, "edges": []}), "gpt-4o-mini"))
    first, second, third = [node["data"]["inputs"] for node in made["nodes"]]
    assert (first["modelName"], second["modelName"]) == ("gpt-4o-mini", "text-embedding-3-small")
    assert third["llmModelConfig"]["modelName"] == "gpt-4o-mini"


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
@pytest.mark.parametrize(
    "test",
    [
        {"turns": ["Hi"]},
        {"turns": ["=HYPERLINK(1)", "a / b", "'quoted'"], "expect": {"contains": ["x | y", " z "], "excludes": ["-1"]}},
        {"turns": ["Grüße\n2", "?"], "expect": {"branch": ["a_1"], "contains": ["a", "b"]}, "human": ["reject"]},
        {"turns": [""], "input": "form", "payload": {"name": "Ada"}, "answers": {"tool": {"status": 1}}},
    ],
    ids=["plain", "formula", "branch", "form"],
)
def test_a_set_of_tests_comes_back_from_each_kind_of_file(form: Format, test: dict[str, Any]) -> None:
    tests = TestFlow.model_validate({"tests": [test, {"turns": ["another"]}]}).tests
    assert TestFlow.model_validate({"tests": read_tests(write_tests(tests, form), form)}).tests == tests


def test_no_cell_of_a_set_is_a_formula() -> None:
    tests = TestFlow.model_validate({"tests": [{"turns": [one]} for one in ("=1+1", "@a", "+1", "-1")]}).tests
    rows = write_tests(tests, "csv").splitlines()[1:]
    assert [row[0] for row in rows] == ["'"] * 4
