"""`flows test`: questions to a flow and files of tests."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flowise_dev_agent.cli.console import print_json, say
from flowise_dev_agent.cli.files import flow_id, flow_of, is_file, json_value, plain_yaml, read_text, valid
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_tests import FlowTestView, TestFlow, TestFlowText

_LONGEST_TEST_SECS: Final = 1_900.0
_ANSWER_CHARS: Final = 300


@dataclass(frozen=True)
class TestWish:
    """Conversations with a flow: questions, a file of tests, how often, and how."""

    __test__ = False  # not a pytest class

    questions: list[str]
    file: Path | None = None
    trials: int = 1
    real: bool = False
    ways: bool = False
    #: Another flow to compare with, a file or an id, or the model to compare with.
    against: str | None = None
    model: str | None = None


async def test_flow(client: AgentClient, place: str, wish: TestWish, *, instance: str | None, as_json: bool) -> bool:
    """Hold conversations with a flow, a file or on the server, and print the results; True when all have passed. A flow
    or model to compare with is asked the same.
    """
    tests: list[Any] = [{"turns": [question]} for question in wish.questions]
    if wish.file is not None:
        tests += read_tests_file(await read_text(wish.file), wish.file.suffix)
    views = {place: await _tested(client, place, tests, wish, instance=instance)}
    if wish.against:
        views[wish.against] = await _tested(client, wish.against, tests, wish, instance=instance)
    if wish.model:
        views[wish.model] = await _tested(client, place, tests, wish, instance=instance, model=wish.model)
    passed = views[place].passed is True
    if as_json:
        dumped = {name: view.model_dump(mode="json") for name, view in views.items()}
        print_json(views[place] if len(views) == 1 else dumped)
        return passed
    for name, view in views.items():
        if len(views) > 1:
            say(f"{name}:")
        for trial in view.trials:
            mark = "passed" if trial.passed else "failed" if trial.category else "not held"
            say(f"  {mark}: {' '.join(trial.question.split())}")
            say(f"    {' '.join((trial.error or trial.answer).split())[:_ANSWER_CHARS]}")
            if trial.simulated:
                say(f"    simulated: {'; '.join(trial.simulated)}")
        for line in view.ways:
            say(f"  {line}")
        if found := view.summary:
            each = f" in each of {found.k} trials" if found.k > 1 else ""
            took = f"{found.duration_ms / 1000:.1f} s" + (f", {found.tokens} tokens" if found.tokens else "")
            say(f"{found.passed} of {found.questions} passed{each}, {took}.")
    return passed


async def _tested(
    client: AgentClient,
    place: str,
    tests: list[Any],
    wish: TestWish,
    *,
    instance: str | None,
    model: str | None = None,
) -> FlowTestView:
    given: dict[str, Any] = {"tests": tests, "trials": wish.trials, "real": wish.real, "ways": wish.ways}
    chatflow_id: str | None = None
    if model or await is_file(place):
        kind, flow_data = await flow_of(client, place, instance)
        flow_data = with_model(flow_data, model) if model else flow_data
        test: TestFlow = valid(TestFlowText, **given, flow_data=flow_data, kind=kind)
    else:
        test, chatflow_id = valid(TestFlow, **given), flow_id(place)
    view = await client.test_flow(test, chatflow_id, instance=instance, wait=_LONGEST_TEST_SECS)
    if view.error:
        raise InvalidInputError(f"The flow could not be tested: {view.error.detail}", hint=view.error.hint)
    if not view.is_over:
        raise InvalidInputError(f"Test {view.id} is not done after {_LONGEST_TEST_SECS:.0f} s.")
    return view


def with_model(flow_data: str, model: str) -> str:
    """Flow whose chat models are all this one, of the provider that they have."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: model if name == "modelName" and isinstance(inner, str) and inner else changed(inner)
                for name, inner in value.items()
            }
        return [changed(one) for one in value] if isinstance(value, list) else value

    flow = json_value(flow_data, "The flow")
    for node in flow.get("nodes") or ():
        data = node.get("data") if isinstance(node, dict) else None
        if isinstance(data, dict) and "Embedding" not in str(data.get("category")):
            data["inputs"] = changed(data.get("inputs"))
    return json.dumps(flow, ensure_ascii=False)


def read_tests_file(text: str, suffix: str = ".json") -> list[Any]:
    """The tests of a file, JSON, YAML or CSV by its `suffix`: a list, or `{"tests": [...]}`. Raises InvalidInputError.

    A row of CSV has a `question` (turns with ` / ` between them), and what the answer `contains` and `excludes` (texts
    with ` | ` between them).
    """
    if suffix == ".csv":
        return [_row_test(row) for row in csv.DictReader(io.StringIO(text))]
    document = plain_yaml(text, "The file") if suffix in (".yaml", ".yml") else json_value(text, "The file")
    tests = document.get("tests") if isinstance(document, dict) else document
    if not isinstance(tests, list):
        raise InvalidInputError(
            "The file does not hold tests.",
            hint='It must be a list such as [{"turns": ["Hello"], "expect": {"contains": ["Hello"]}}].',
        )
    return tests


def _row_test(row: Mapping[str, str | None]) -> dict[str, Any]:
    if not (question := (row.get("question") or "").strip()):
        raise InvalidInputError("A row of the file has no question.", hint="Columns: question, contains, excludes.")
    expect = {name: [one.strip() for one in (row.get(name) or "").split(" | ")] for name in ("contains", "excludes")}
    return {"turns": question.split(" / "), "expect": expect}
