"""Test cases for a flow, in the form in which the flow is started (chat, form or webhook)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.texts import text

DEFAULT_QUESTION: Final = "Hello, what can you do for me?"
#: Most conversations of one suite, including those that code adds.
MOST_HELD: Final = 20
_START: Final = "startAgentflow"
#: Message of a schedule that has no text.
_SCHEDULED: Final = "(schedule)"
_WEBHOOK_FIELD: Final = re.compile(r"\{\{\s*\$webhook\.body\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


def cases_for(tests: Sequence[TestCase], graph: GraphIR) -> tuple[TestCase, ...]:
    """Adapt the tests to the way the flow is started; without tests, one question that every flow must answer."""
    cases = tests or [TestCase(id="t1", turns=[DEFAULT_QUESTION])]
    return tuple(_as_started(case, graph) for case in cases)


def held_for(tests: Sequence[TestCase], graph: GraphIR) -> dict[str, TestCase]:
    """By the id of each test the case that is held for it. Tests that ask the same, as all do of a flow that starts by
    a schedule, share the first one, which expects what each does.
    """
    cases: dict[str, TestCase] = {}
    asked: dict[str, str] = {}
    for test in tests:
        case = _as_started(test, graph)
        asks = asked[test.id] = case.model_dump_json(exclude={"id", "expect"})
        first = cases.get(asks)
        cases[asks] = first.model_copy(update={"expect": first.expect.and_also(case.expect)}) if first else case
    return {id_: cases[asks] for id_, asks in asked.items()}


def why_not_testable(case: TestCase, graph: GraphIR, *, in_copy: bool = False) -> str | None:
    """Reason why a test case cannot run here; None if it can. The copy of a flow that starts by a schedule is started
    by a message (`in_copy`), unless the schedule fills in a form.
    """
    start = _start_of(graph)
    if case.input == "schedule":
        by_message = in_copy and start.get("scheduleInputMode") != "form"
        return None if by_message else text("not_tested.schedule")
    if case.input != "webhook":
        return None
    if start.get("webhookEnableAuth"):
        return text("not_tested.webhook_signed")
    if str(start.get("webhookMethod") or "POST") != "POST":
        return text("not_tested.webhook_method")
    if str(start.get("webhookResponseMode") or "sync") != "sync":
        return text("not_tested.webhook_callback")
    return None


def next_id(cases: Iterable[TestCase]) -> str:
    """First test id that no case uses."""
    return f"t{max((int(case.id[1:]) for case in cases), default=0) + 1}"


def _start_of(graph: GraphIR) -> Mapping[str, object]:
    return next((node.inputs for node in graph.nodes if node.name == _START), {})


def _as_started(case: TestCase, graph: GraphIR) -> TestCase:
    """Adapt the case to the flow's start (chat, form or webhook), whatever the plan says. A form and a webhook are
    sent once.
    """
    start = _start_of(graph)
    once = case.model_copy(update={"turns": case.turns[:1]})
    match start.get("startInputType"):
        case "formInput":
            return once.model_copy(update={"input": "form", "payload": case.payload or _form(start, case.turns[0])})
        case "webhookTrigger":
            return once.model_copy(update={"input": "webhook", "payload": case.payload or _body(graph, case.turns[0])})
        case "scheduleInput":
            said = str(start.get("scheduleDefaultInput") or _SCHEDULED)
            return case.model_copy(update={"input": "schedule", "turns": [said]})
        case _:
            return case.model_copy(update={"input": "chat"})


def _form(start: Mapping[str, object], text: str) -> JsonObject:
    return {str(row.get("name")): _field(row, text) for row in _rows(start.get("formInputTypes")) if row.get("name")}


def _rows(value: object) -> list[dict[str, object]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _field(row: Mapping[str, object], text: str) -> JsonValue:
    match row.get("type"):
        case "number":
            found = re.search(r"\d+", text)
            return int(found.group()[:9]) if found else 1
        case "boolean":
            return True
        case "options":
            options = row.get("addOptions")
            first = options[0] if isinstance(options, list) and options else None
            return str(first.get("option")) if isinstance(first, dict) else text
        case _:
            return text


def _body(graph: GraphIR, text: str) -> JsonObject:
    """JSON body with the fields that the flow reads."""
    body: JsonObject = {}
    for path in _WEBHOOK_FIELD.findall(graph.to_flow_data()):
        place = body
        *parents, last = path.split(".")
        for name in parents:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                break
            place = inner
        place.setdefault(last, text)
    return body
