"""Tests of flows as clients write them: what the schema asks for is what is needed."""

from pydantic import TypeAdapter

from flowise_dev_agent.schemas.flow_tests import TestFlow


def test_the_schema_asks_for_neither_ids_nor_the_turns_of_a_form() -> None:
    given = TypeAdapter(TestFlow).json_schema()["$defs"]["GivenTest"]
    assert given["required"] == []
    assert "minItems" not in given["properties"]["turns"]
    body = TestFlow.model_validate({"tests": [{"turns": ["Hello"]}, {"input": "form", "payload": {"name": "Ada"}}]})
    assert [(test.id, test.turns) for test in body.tests] == [("t1", ["Hello"]), ("t2", ["name: Ada"])]
