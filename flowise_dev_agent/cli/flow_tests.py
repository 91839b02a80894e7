"""`flows test`: questions to a flow and files of tests."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flowise_dev_agent.cli.console import print_json, say
from flowise_dev_agent.cli.files import flow_id, flow_of, is_file, json_value, read_text, valid
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_tests import FlowTestView, TestFlow, TestFlowText
from flowise_dev_agent.testing.test_files import Format, read_tests

_LONGEST_TEST_SECS: Final = 1_900.0
_ANSWER_CHARS: Final = 300
_RESULTS_SHOWN: Final = 10
_VERSION: Final = re.compile(r"v[1-9][0-9]{0,8}")
_FORMATS: Final[Mapping[str, Format]] = {".csv": "csv", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True)
class TestOptions:
    """Conversations with a flow: questions, a file of tests, how often, and how."""

    __test__ = False  # not a pytest class

    questions: list[str]
    file: Path | None = None
    trials: int = 1
    #: Addresses that are really called; of `all` whatever the flow calls.
    real: Sequence[str] = ()
    ways: bool = False
    #: Another flow to compare with, a file, an id or a version of the flow, or the model to compare with.
    against: str | None = None
    model: str | None = None


async def test_flow(
    client: AgentClient, place: str, options: TestOptions, *, instance: str | None, as_json: bool
) -> bool:
    """Hold conversations with a flow, a file or on the server, and print the results; True when all have passed. A flow
    or model to compare with is asked the same.
    """
    tests: list[Any] = [{"turns": [question]} for question in options.questions]
    if options.file is not None:
        tests += read_tests(read_text(options.file), format_of(options.file))
    if not tests and (options.against or options.model) and not is_file(place):
        # The same is asked of both.
        found = await client.test_set(await flow_id(client, place, instance), instance=instance)
        tests = [one.model_dump(mode="json", exclude={"expect": {"language"}}) for one in found.tests]
    views = {place: await _tested(client, place, tests, options, instance=instance)}
    if options.against:
        other = (place, options.against) if _VERSION.fullmatch(options.against) else (options.against, None)
        views[options.against] = await _tested(client, other[0], tests, options, instance=instance, version=other[1])
    if options.model:
        views[options.model] = await _tested(client, place, tests, options, instance=instance, model=options.model)
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
            if trial.called:
                say(f"    really called: {'; '.join(trial.called)}")
        for line in view.ways:
            say(f"  {line}")
        if found := view.summary:
            each = f" in each of {found.k} trials" if found.k > 1 else ""
            took = f"{found.duration_ms / 1000:.1f} s" + (f", {found.tokens} tokens" if found.tokens else "")
            took += f", ${found.usd:.4f}" if found.usd else ""
            say(f"{found.passed} of {found.questions} passed{each}, {took}.")
    for name, view in list(views.items())[1:]:
        for line in _differences(views[place], view, name):
            say(line)
    return passed


def _differences(first: FlowTestView, second: FlowTestView, name: str) -> list[str]:
    """Questions that pass in one of two runs of the same tests."""
    before, after = [_passed(view) for view in (first, second)]
    only = [
        f"  only without {name}: {question}" for question in before if before[question] > after.get(question, False)
    ]
    only += [f"  only with {name}: {question}" for question in after if after[question] > before.get(question, False)]
    return [f"Passed differently with {name}:", *only] if only else [f"The same questions passed with {name}."]


def _passed(view: FlowTestView) -> dict[str, bool]:
    passed: dict[str, bool] = {}
    for trial in view.trials:
        question = " ".join(trial.question.split())
        passed[question] = passed.get(question, True) and trial.passed
    return passed


def format_of(file: Path) -> Format:
    """Format of a file of tests, by its suffix."""
    return _FORMATS.get(file.suffix, "json")


async def _tested(
    client: AgentClient,
    place: str,
    tests: list[Any],
    options: TestOptions,
    *,
    instance: str | None,
    model: str | None = None,
    version: str | None = None,
) -> FlowTestView:
    given: dict[str, Any] = {
        "trials": options.trials,
        "real": "all" in options.real or list(options.real) or False,
        "ways": options.ways,
    }
    given |= {"tests": tests} if tests else {}
    given |= {"version": version} if version else {}
    chatflow_id: str | None = None
    if model or is_file(place):
        kind, flow_data = await flow_of(client, place, instance)
        flow_data = with_model(flow_data, model) if model else flow_data
        test: TestFlow = valid(TestFlowText, **given, flow_data=flow_data, kind=kind)
    else:
        test, chatflow_id = valid(TestFlow, **given), await flow_id(client, place, instance)
    return await held(client, test, chatflow_id, instance)


async def held(client: AgentClient, test: TestFlow, chatflow_id: str | None, instance: str | None) -> FlowTestView:
    """The test at its end, of a flow on the server or of a text. Raises InvalidInputError if it has none."""
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
