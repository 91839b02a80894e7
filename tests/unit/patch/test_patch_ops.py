"""Reading ops out of a model's answer."""

import json

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    OP_TYPES,
    AddNode,
    Connect,
    Finding,
    SetParam,
    example_op,
    op_json,
    ops_from_json,
    ops_from_list,
)

BATCH = [
    {
        "op_type": "AddNode",
        "node_name": "chatOpenAI",
        "node_id": "m",
        "params": {"a": ["b"], "d": [{"x": 1}]},
    },
    {"op_type": "Connect", "source_node_id": "m", "target_node_id": "c", "target_anchor": "model"},
]
TEXT = json.dumps(BATCH)


def _codes(text: str) -> list[str]:
    with pytest.raises(PatchError) as caught:
        ops_from_json(text)
    return [finding["code"] for finding in caught.value.details["findings"]]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        json.dumps({"ops": BATCH}),
        f"```json\n{TEXT}\n```",
        f"Sure! [As asked] here {{are}} the ops:\n\n```\n{TEXT}\n```\nLet me know.",
        f"<answer>{json.dumps({'ops': BATCH}, indent=2)}</answer>",
        f"{TEXT}\n\nOnce more:\n{TEXT}",
        f"- [ ] one node\n- [ ] one connection, other tools: []\n{TEXT}",
    ],
)
def test_finds_the_batch_with_fences_and_prose_around(text: str) -> None:
    ops = ops_from_json(text)

    assert [type(op) for op in ops] == [AddNode, Connect]
    assert ops[0].model_dump()["params"] == {"a": ["b"], "d": [{"x": 1}]}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "NO_JSON"),
        ("I would add a chat model and a memory.", "NO_JSON"),
        ('{"nodes": []}', "NO_JSON"),
        ('["AddNode"]', "NO_JSON"),
        ("[]", "EMPTY_PATCH"),
        ('{"ops": []}', "EMPTY_PATCH"),
        (f"```json\n{TEXT[:-1]},]\n```", "INVALID_JSON"),
        (TEXT.replace("1}", "NaN}"), "INVALID_JSON"),
        (f"{TEXT} or {json.dumps(BATCH[:1])}", "AMBIGUOUS_JSON"),
        ('[{"op_type": "DeleteEverything"}]', "UNKNOWN_OP"),
        ('[{"node_id": "a"}]', "UNKNOWN_OP"),
        ('[{"op_type": "SetParam", "node_id": "a", "param_name": "b"}]', "BAD_OP"),
        ('[{"op_type": "SetParam", "node_id": "a", "param_name": "b", "value": 1, "vaule": 2}]', "BAD_OP"),
        ('[{"op_type": "AddNode", "node_name": "x", "node_id": 7}]', "BAD_OP"),
    ],
)
def test_p05_unusable_answers_are_findings_and_no_smaller_patch(text: str, code: str) -> None:
    assert _codes(text) == [code]


@pytest.mark.parametrize("cut", range(12, len(TEXT) - 1, 7))
def test_p05_truncated_answers_are_refused_wherever_they_end(cut: int) -> None:
    assert _codes(TEXT[:cut]) == ["TRUNCATED_JSON"]
    assert _codes(f"```json\n{TEXT[:cut]}\n```")[0] in ("TRUNCATED_JSON", "INVALID_JSON")


def test_every_bad_op_is_reported_with_its_position_and_an_example() -> None:
    with pytest.raises(PatchError) as caught:
        ops_from_json('[{"op_type": "addnode"}, {"op_type": "Connect", "source": "a"}]')

    findings = [Finding.model_validate(raw) for raw in caught.value.details["findings"]]
    assert {finding.op_index for finding in findings} == {0, 1}
    assert '"op_type":"AddNode"' in findings[0].hint
    missing = {finding.field for finding in findings if finding.op_index == 1}
    assert missing == {"source", "source_node_id", "target_node_id"}
    assert all('"op_type":"Connect"' in finding.hint for finding in findings[1:])


def test_a_finding_keeps_its_key_when_only_positions_move() -> None:
    first = Finding(code="UNKNOWN_OP", severity="error", message="a", where="op 3", op_index=3, op_type="X")
    second = Finding(code="UNKNOWN_OP", severity="error", message="b", where="op 5", op_index=5, op_type="X")
    other = Finding(code="UNKNOWN_PARAM", severity="error", message="a", where="m", field="x", op_type="SetParam")

    assert first.key == second.key
    assert other.key != other.model_copy(update={"field": "y"}).key


def test_values_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="value"):
        SetParam(node_id="a", param_name="b", value=object())


@pytest.mark.parametrize("op_type", OP_TYPES)
def test_the_example_in_an_error_is_an_op_that_can_be_read(op_type: str) -> None:
    (op,) = ops_from_json(f"[{example_op(op_type)}]")

    assert op.op_type == op_type


@pytest.mark.parametrize("op_type", OP_TYPES)
def test_examples_are_in_the_form_that_answer_schemas_ask_for_and_read_the_same(op_type: str) -> None:
    shown = json.loads(example_op(op_type))
    assert isinstance(shown.get("params", []), list)
    assert ops_from_list([shown])[0].op_type == op_type


def test_values_as_names_and_paths_read_back_as_fields() -> None:
    params = {"rows": [{"key": "a", "on": True}, {"key": "b"}], "names": ["x", "y"], "config": {"k": 1}, "empty": {}}
    shown = op_json({"op_type": "AddNode", "node_name": "a", "node_id": "a_0", "params": params})
    (op,) = ops_from_list([json.loads(shown)])
    assert isinstance(op, AddNode)
    assert op.params == {
        "rows[0].key": "a",
        "rows[0].on": True,
        "rows[1].key": "b",
        "names": ["x", "y"],
        "config.k": 1,
    }
