"""The schemas that models are held to: closed, within the strict subsets, and admitting complete answers only."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic_ai.models._anthropic_schema_limits import exceeded_limit  # pyright: ignore[reportPrivateUsage]

from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.patch import OP_TYPES, ops_from_list
from flowise_dev_agent.schemas.plan import ProposedPlan
from flowise_dev_agent.settings import Phase

PHASES: tuple[Phase, ...] = get_args(Phase)
#: Keys of OpenAI's strict subset (its guide on structured outputs), and `minLength`, which the model layer leaves out
#: there; Anthropic's lacks the bounds, which are left out, too.
OPENAI_KEYS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "anyOf",
    "description",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
}
#: Its limits for one schema.
MOST_PROPERTIES, MOST_LEVELS, MOST_ENUM_VALUES = 5_000, 10, 1_000
COMPLETE: dict[str, dict[str, Any]] = {
    "AddNode": {
        "node_name": "chatOpenAI",
        "node_id": "chatOpenAI_0",
        "label": None,
        "description": None,
        "params": [{"name": "temperature", "value": 0.2}],
    },
    "SetParam": {"node_id": "chatOpenAI_0", "param_name": "stop", "value": ["a", "b"]},
    "UnsetParam": {"node_id": "a_0", "param_name": "x"},
    "Connect": {"source_node_id": "a_0", "source_anchor": None, "target_node_id": "b_0", "target_anchor": "model"},
    "Disconnect": {"source_node_id": "a_0", "source_anchor": None, "target_node_id": "b_0", "target_anchor": ""},
    "BindCredential": {"node_id": "a_0", "credential_id": "", "credential_type": "openAIApi", "path": ""},
    "RemoveNode": {"node_id": "a_0"},
    "ReplaceNode": {"node_id": "a_0", "node_name": "b", "new_node_id": None},
    "UpgradeNode": {"node_id": "a_0"},
    "SetLabel": {"node_id": "a_0", "label": "A"},
    "SetOutput": {"node_id": "a_0", "output": "x"},
    "SetPosition": {"node_id": "a_0", "x": 1, "y": 2.5},
    "SetParent": {"node_id": "a_0", "parent_id": None},
}


def parts(schema: Any, level: int = 1) -> Iterator[tuple[dict[str, Any], int]]:
    """Each part of a schema with its level."""
    yield schema, level
    for part in schema.get("properties", {}).values():
        yield from parts(part, level + 1)
    if "items" in schema:
        yield from parts(schema["items"], level + 1)
    for choice in schema.get("anyOf", []):
        yield from parts(choice, level)


def answer(*ops: dict[str, Any]) -> dict[str, Any]:
    lists = ("samples", "nodes", "removals", "values", "connections", "disconnections", "new_tools")
    rest = {**{name: [] for name in lists}, "reason": ""}
    return {"kind": "ops", "ops": [*ops], **rest}


@pytest.mark.parametrize("phase", PHASES)
def test_p104_every_schema_keeps_to_the_strict_subsets(phase: Phase) -> None:
    schema = answer_schema(phase)
    Draft202012Validator.check_schema(schema)
    found = [*parts(schema)]
    for part, level in found:
        assert set(part) <= OPENAI_KEYS, part
        assert "type" in part or "anyOf" in part, part
        assert level <= MOST_LEVELS
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == [*part["properties"]]
        if part.get("type") == "array":
            assert "items" in part
    assert sum(len(part.get("properties", {})) for part, _ in found) <= MOST_PROPERTIES
    assert sum(len(part.get("enum", [])) for part, _ in found) <= MOST_ENUM_VALUES
    assert exceeded_limit([], schema) is None


@pytest.mark.parametrize("name", OP_TYPES)
def test_a_complete_op_is_admitted_and_read_and_a_bare_one_is_not(name: str) -> None:
    validator = Draft202012Validator(answer_schema("patch"))
    op = {"op_type": name, **COMPLETE[name]}
    assert validator.is_valid(answer(op))
    assert not validator.is_valid(answer({"op_type": name}))
    (read,) = ops_from_list([op])
    assert read.op_type == name


def test_a_complete_plan_is_admitted_and_read() -> None:
    plan: dict[str, Any] = {}
    schema: Any = answer_schema("plan")
    for field, part in schema["properties"].items():
        plan[field] = [] if part.get("type") == "array" else None if "anyOf" in part else "x"
    plan["nodes"] = [{"node_id": "a_0", "node_name": "a", "purpose": "p", "existing": False, "label": ""}]
    plan["values"] = [{"node_id": "a_0", "param": "k", "value": 4, "mode": "set", "part": None}]
    expect = {"tools": [], "sources": [], "branch": [], "fields": [], "contains": [], "excludes": [], "language": None}
    test = {"id": "t1", "turns": ["Hello"], "input": "webhook", "payload": [{"name": "id", "value": 3}]}
    plan["tests"] = [
        {**test, "human": ["proceed", "reject"], "human_feedback": ["", ""], "answers": [], "expect": expect}
    ]
    plan["parts"] = [{"id": "p1", "state": "covered", "nodes": ["a_0"], "values": [], "reason": ""}]
    Draft202012Validator(answer_schema("plan")).validate(plan)
    read = ProposedPlan.model_validate(json.loads(json.dumps(plan)))
    assert (read.tests[0].payload, read.values[0].value) == ({"id": 3}, 4)
