"""Variables that a step of an agentflow can read: those of its start, of the steps before it, and of its scope."""

from typing import Any

import pytest
from pydantic import JsonValue

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, SetParent, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.step_variables import is_readable, readable
from flowise_dev_agent.schemas.plan import NamedConnection, Plan, PlannedNode, PlannedValue

START = "startAgentflow_0"


def plan_of(nodes: dict[str, str], **values: Any) -> Plan:
    """`nodes` are id -> purpose, `values` are `id__param` -> value."""
    return Plan(
        goal="x",
        operation="create",
        flow_name="x",
        nodes=[
            PlannedNode(node_id=node_id, node_name=node_id.rpartition("_")[0], purpose=purpose)
            for node_id, purpose in nodes.items()
        ],
        values=[
            PlannedValue(node_id=place.partition("__")[0], param=place.partition("__")[2], value=value)
            for place, value in values.items()
        ],
    )


def variables_of(node_id: str, plan: Plan, flow: GraphView | None = None) -> list[str]:
    step = next(node for node in plan.nodes if node.node_id == node_id)
    return readable(step, plan, flow or GraphView())


@pytest.mark.parametrize(
    ("values", "variables"),
    [
        ({}, ["question", f"{START}.output.question"]),
        (
            {"startInputType": "formInput", "formInputTypes": [{"name": "city"}, {"name": "day"}]},
            ["$form.city", "$form.day"],
        ),
        (
            {"startInputType": "formInput", "formInputTypes[0].name": "city", "formInputTypes[1].name": "day"},
            ["$form.city", "$form.day"],
        ),
        (
            {
                "startInputType": "webhookTrigger",
                "webhookInputMode": "none",
                "webhookBodyParams": [{"name": "id"}],
                "webhookQueryParams": [{"name": "lang"}],
            },
            ["$webhook.body.id", "$webhook.query.lang", "$webhook.body"],
        ),
        ({"startInputType": "scheduleInput"}, ["question", f"{START}.output.question"]),
        ({"startInputType": "scheduleInput", "scheduleInputMode": "none"}, []),
    ],
    ids=["chat", "form", "form by rows", "webhook", "schedule", "schedule without a text"],
)
def test_a_step_reads_what_its_start_gives(values: dict[str, Any], variables: list[str]) -> None:
    given = {f"{START}__{name}": value for name, value in values.items()}
    assert variables_of("llmAgentflow_0", plan_of({START: "x", "llmAgentflow_0": "x"}, **given)) == variables


def test_a_step_reads_answers_fields_and_state_of_what_runs_before_and_no_branch() -> None:
    plan = plan_of(
        {START: "x", "llmAgentflow_0": "x", "conditionAgentflow_0": "x", "llmAgentflow_1": "x", "llmAgentflow_2": "x"},
        llmAgentflow_0__llmStructuredOutput=[{"key": "seats"}, {"key": "name"}],
        startAgentflow_0__startState=[{"key": "total", "value": ""}],
    )
    read = variables_of("llmAgentflow_1", plan)[2:]
    fields = ["llmAgentflow_0.output.seats", "llmAgentflow_0.output.name"]
    assert read == ["llmAgentflow_0", *fields, "$flow.state.total"]


def test_after_a_person_was_asked_the_message_is_read_from_the_start() -> None:
    plan = plan_of({START: "x", "humanInputAgentflow_0": "x", "llmAgentflow_0": "x"})
    assert variables_of("llmAgentflow_0", plan) == [f"{START}.output.question", "humanInputAgentflow_0"]


def test_inside_an_iteration_a_step_reads_the_item_and_no_answer_of_outside() -> None:
    plan = plan_of(
        {
            START: "x",
            "llmAgentflow_0": "lists the cities",
            "iterationAgentflow_0": "for each city",
            "llmAgentflow_1": "gets $iteration, gives a tip",
            "llmAgentflow_2": "gets the tip for $iteration, shortens it",
            "llmAgentflow_3": "gets all tips",
        },
        startAgentflow_0__startState=[{"key": "kept", "value": ""}],
    )
    start = ["question", f"{START}.output.question"]
    assert variables_of("llmAgentflow_1", plan) == ["$iteration", *start, "$flow.state.kept"]
    assert variables_of("llmAgentflow_2", plan) == ["$iteration", *start, "llmAgentflow_1", "$flow.state.kept"]
    outside = ["llmAgentflow_0", "iterationAgentflow_0"]
    assert variables_of("llmAgentflow_3", plan) == [*start, *outside, "$flow.state.kept"]


def test_a_new_step_of_a_flow_reads_the_steps_that_are_there(catalogue: NodeStore) -> None:
    rows: list[JsonValue] = [{"key": "weight", "type": "number", "description": "kg"}]
    ops = [
        AddNode(node_name="startAgentflow", node_id=START, params={"startInputType": "chatInput"}),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmStructuredOutput": rows}),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_7", params={}),
        AddNode(node_name="iterationAgentflow", node_id="iterationAgentflow_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_8"),
        SetParent(node_id="llmAgentflow_8", parent_id="iterationAgentflow_0"),
    ]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    plan = plan_of({"llmAgentflow_1": "x"}).model_copy(update={"removals": ["llmAgentflow_7"]})
    read = variables_of("llmAgentflow_1", plan, flow)[2:]
    assert {*read} == {"llmAgentflow_0", "llmAgentflow_0.output.weight", "iterationAgentflow_0"}


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("question", True),
        ("llmAgentflow_0", True),
        ("llmAgentflow_0.output.seats", True),
        ("llmAgentflow_0.output.seat", False),
        ("llmAgentflow_1", False),
        ("current_date_time", True),
        ("$flow.sessionId", True),
        ("$form.city", False),
        ("$iteration.name", False),
    ],
)
def test_a_text_may_use_only_what_is_filled(variable: str, expected: bool) -> None:
    allowed = ["question", "llmAgentflow_0", "llmAgentflow_0.output.seats"]
    assert is_readable(variable, allowed) is expected


def test_any_field_of_the_item_may_be_used_inside_an_iteration() -> None:
    assert is_readable("$iteration.name", ["$iteration"])


def test_fields_of_a_structured_answer_are_offered_when_the_plan_sets_them_row_by_row() -> None:
    plan = plan_of(
        {START: "", "llmAgentflow_0": "Reads the CV", "llmAgentflow_1": "Writes a mail"},
        **{"llmAgentflow_0__llmStructuredOutput[0].key": "name", "llmAgentflow_0__llmStructuredOutput[1].key": "town"},
    )
    names = variables_of("llmAgentflow_1", plan)
    assert names[-2:] == ["llmAgentflow_0.output.name", "llmAgentflow_0.output.town"]


def test_the_file_and_the_time_are_offered_where_the_plan_speaks_of_them() -> None:
    plan = plan_of({START: "", "llmAgentflow_0": "Reads {{ file_attachment }} on {{ current_date_time }}"})
    names = variables_of("llmAgentflow_0", plan)
    assert names[-2:] == ["file_attachment", "current_date_time"]
    assert is_readable("file_attachment", names)
    silent = variables_of("llmAgentflow_0", plan_of({START: "", "llmAgentflow_0": "Answers"}))
    assert not is_readable("file_attachment", silent)


def branches() -> GraphView:
    """Start, a condition, and a branch with a model each."""
    ops = [AddNode(node_name="startAgentflow", node_id=START)]
    ops += [AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0")]
    ops += [AddNode(node_name="llmAgentflow", node_id=f"llmAgentflow_{n}") for n in range(2)]
    ops += [AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0")]
    lines = [
        Connect(source_node_id=START, target_node_id="conditionAgentflow_0"),
        *(
            Connect(source_node_id="conditionAgentflow_0", source_anchor=str(n), target_node_id=f"llmAgentflow_{n}")
            for n in range(2)
        ),
        Connect(source_node_id="llmAgentflow_1", target_node_id="directReplyAgentflow_0"),
    ]
    return GraphView(compile_ops(GraphIR.empty(), [*ops, *lines], NodeStore.from_snapshot().schemas).graph)


def test_a_step_in_a_branch_reads_nothing_of_the_others() -> None:
    line = NamedConnection(source="llmAgentflow_1", target="directReplyAgentflow_0")
    put_in = plan_of({"llmAgentflow_2": "shorten", "llmAgentflow_3": "translate"})
    put_in = put_in.model_copy(update={"operation": "update", "disconnections": [line]})
    answers = [[one for one in variables_of(f"llmAgentflow_{n}", put_in, branches()) if "llm" in one] for n in (2, 3)]
    assert answers == [["llmAgentflow_1"], ["llmAgentflow_1", "llmAgentflow_2"]]
    joined = plan_of({"llmAgentflow_2": "shorten"}).model_copy(
        update={"connections": [NamedConnection(source="llmAgentflow_0", target="llmAgentflow_2")]}
    )
    assert [one for one in variables_of("llmAgentflow_2", joined, branches()) if "llm" in one] == ["llmAgentflow_0"]
