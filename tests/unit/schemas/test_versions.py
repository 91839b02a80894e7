"""Stored documents of both versions, and documents with a limit for their size."""

from typing import Any

import pytest
from pydantic import BaseModel, Field, JsonValue, ValidationError

from flowise_dev_agent.sanitize import json_size
from flowise_dev_agent.schemas.base import Bounded, read, read_as
from flowise_dev_agent.schemas.interrupts import INTERRUPT, PatchReviewInterrupt, PlanApprovalInterrupt
from flowise_dev_agent.schemas.plan import Capability, NodeCapability, Plan
from flowise_dev_agent.schemas.verdict import Trial, Verdict

PLAN_1: dict[str, JsonValue] = {"goal": "g", "operation": "create", "flow_name": "f", "nodes": [], "removals": []}
VERDICT_1: dict[str, JsonValue] = {"done": True, "category": None, "pass_k": {"k": 1, "questions": 1, "passed": 1}}
TRIAL_1: dict[str, JsonValue] = {"question": "q", "trial": 1, "passed": True, "answer": "a", "used_tools": []}


def interrupt_1(type_: str, reason: str, **data: Any) -> dict[str, Any]:
    options = [{"value": "cancel", "label": "Cancel", "description": ""}]
    return {"id": "i", "type": type_, "reason": reason, "message": "m", "options": options, "data": data}


@pytest.mark.parametrize(("model", "row"), [(Plan, PLAN_1), (Verdict, VERDICT_1), (Trial, TRIAL_1)])
def test_a_document_of_version_1_is_read_and_written_as_version_2(model: type[BaseModel], row: dict[str, Any]) -> None:
    document = read(model, {**row, "gone": 1})
    assert document.model_dump(include={"version"}) == {"version": 2}
    assert {name: value for name, value in document.model_dump().items() if name in row} == row


@pytest.mark.parametrize(("model", "row"), [(Plan, PLAN_1), (Verdict, VERDICT_1), (Trial, TRIAL_1)])
def test_a_document_of_another_release_is_read_without_its_keys(model: type[BaseModel], row: dict[str, Any]) -> None:
    now = {**row, "version": 2}
    assert read(model, {**now, "gone": 1}) == read(model, now)


def test_a_plan_from_before_its_tests_has_a_test_for_each_question() -> None:
    words: dict[str, JsonValue] = {
        "success_criteria": ["It answers", "It is kind"],
        "test_questions": ["Hello", "Why?"],
    }
    contract = read(Plan, {**PLAN_1, **words})
    assert [(test.id, test.turns) for test in contract.tests] == [("t1", ["Hello"]), ("t2", ["Why?"])]
    assert [(one.id, one.tests) for one in contract.criteria] == [("c1", ["t1", "t2"]), ("c2", ["t1", "t2"])]
    dumped = contract.model_dump(mode="json")
    assert {name: dumped[name] for name in words} == words
    assert read(Plan, dumped) == contract


def test_questions_of_the_person_replace_the_tests_and_keep_what_shows_a_criterion() -> None:
    tests: JsonValue = [
        {"id": "t1", "turns": ["Hello"], "expect": {"contains": ["hi"]}},
        {"id": "t2", "turns": ["Why?"]},
    ]
    criteria: JsonValue = [{"text": "greets", "tests": ["t1"]}, {"text": "explains", "tests": ["t2"]}]
    contract = read(Plan, {**PLAN_1, "tests": tests, "criteria": criteria}).with_questions(["Who?", "Hello"])
    assert [(test.id, test.turns, test.expect.contains) for test in contract.tests] == [
        ("t1", ["Who?"], []),
        ("t2", ["Hello"], ["hi"]),
    ]
    assert [one.tests for one in contract.criteria] == [["t2"], ["t1", "t2"]]


def test_an_interrupt_of_version_1_is_read_with_its_nested_documents() -> None:
    row = interrupt_1("plan_approval", "plan_ready", plan="#", contract={**PLAN_1, "gone": 1}, old="x")
    interrupt = read_as(INTERRUPT, row)
    assert isinstance(interrupt, PlanApprovalInterrupt)
    assert interrupt.data.contract.flow_name == "f"
    assert interrupt.version == 2
    assert interrupt.response_schema  # what a row lacks follows from the type


def test_version_1_says_nothing_by_an_empty_object_and_version_2_by_null() -> None:
    interrupt = read_as(INTERRUPT, interrupt_1("patch_review", "budget", change={}, meanwhile=None))
    assert isinstance(interrupt, PatchReviewInterrupt)
    assert interrupt.data.change is None


def test_a_reason_that_does_not_belong_to_the_type_is_refused() -> None:
    with pytest.raises(ValidationError, match="reason"):
        read_as(INTERRUPT, interrupt_1("patch_review", "plan_ready"))


def test_a_capability_names_all_params_or_some() -> None:
    nodes = {"a_0": {"node_name": "a", "action": "add", "params": "all"}, "b_0": {"node_name": "b", "action": "change"}}
    capability = Capability.model_validate({"nodes": nodes, "effects": ["credential", "upsert:pinecone_0"]})
    assert capability.nodes["b_0"] == NodeCapability(node_name="b", action="change", params=[])
    with pytest.raises(ValidationError, match="effects"):
        Capability.model_validate({"effects": ["format_disk"]})


class Story(Bounded):
    title: str
    text: str = ""
    lines: list[str] = Field(default_factory=list)


def test_the_largest_fields_give_way_until_the_rest_fits() -> None:
    story = Story(title="t" * 50, text="x" * 500, lines=["short"]).fitted(200)
    assert story == Story(title="t" * 50, lines=["short"], truncated=["text"])
    assert json_size(story.model_dump(mode="json")) <= 200


def test_a_field_without_a_default_is_never_left_out() -> None:
    story = Story(title="t" * 500, text="x").fitted(100)
    assert story == Story(title="t" * 500, truncated=["text"])


def test_what_fits_stays_as_it_is() -> None:
    story = Story(title="t", text="half a pair \ud800")
    assert story.fitted(200) is story


@pytest.mark.parametrize("limit", [100, 200, 10_000])
def test_the_json_of_a_document_is_that_of_the_fitted_one(limit: int) -> None:
    story = Story(title="t" * 50, text="x" * 500, lines=["short"])
    assert story.fitted_json(limit) == story.fitted(limit).model_dump(mode="json")
    short = story.fitted_json(limit, exclude_defaults=True)
    assert short == story.fitted(limit).model_dump(mode="json", exclude_defaults=True)
