"""The state's parts and the channels that hold them."""

import json
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from flowise_dev_agent.agent.stages import Stage
from flowise_dev_agent.agent.state import (
    AgentState,
    CredentialState,
    PlanState,
    Update,
    WriteState,
    changed,
    channel_writes,
    initial_state,
)
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.schemas.base import kept
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops


def written(state: AgentState, update: Update) -> dict[str, Any]:
    return channel_writes(state, changed(state, update), update)


def test_an_update_changes_the_fields_that_it_sets_and_no_others() -> None:
    state = AgentState(
        plan=PlanState(feedback="colder", notes=[kept("n")]), credentials=CredentialState(chosen={"a": "1"})
    )
    update: Update = {"plan": PlanState(approved=True, feedback=None), "credentials": CredentialState(missing=[])}

    writes = written(state, update)

    assert set(writes) == {"plan"}
    plan = AgentState.model_validate({**state.model_dump(mode="json"), **writes}).plan
    assert (plan.approved, plan.feedback, plan.notes) == (True, None, [kept("n")])


def test_what_does_not_change_is_not_written() -> None:
    state = AgentState(answer={"type": "patch_review", "action": "cancel"}, iteration=1)

    same: Update = {"write": WriteState(stage=Stage.APPLY), "answer": state.answer, "iteration": 1}

    assert written(state, same) == {}
    assert written(state, {"answer": None, "iteration": 2}) == {"answer": None, "iteration": 2}


def test_a_new_session_holds_its_request_and_nothing_else() -> None:
    first = initial_state(
        {"thread_id": "t", "requirement": "a bot", "budget": {"usd": 1}, "test_questions": ["Hi?"], "target": None}
    )

    assert set(first) == {"version", "request", "tests", "budget"}
    state = AgentState.model_validate(first)
    assert (state.request.requirement, state.tests.questions, state.budget.ceilings.usd) == ("a bot", ["Hi?"], 1)


def test_what_domains_keep_is_merged_in_the_state_and_written_as_it_came() -> None:
    state = AgentState(facts={"flowise": {"a": 1}})
    update: Update = {"facts": {"flowise": {"b": 2}}}

    assert changed(state, update).facts == {"flowise": {"a": 1, "b": 2}}
    assert written(state, update) == {"facts": {"flowise": {"b": 2}}}
    assert written(state, {"facts": {"flowise": {"a": 1}}}) == {}


def test_ops_in_the_state_keep_their_type_and_their_defaults() -> None:
    writes = written(AgentState(), {"write": WriteState(applied_ops=[AddNode(node_name="a", node_id="a_0")])})
    op = {"op_type": "AddNode", "node_name": "a", "node_id": "a_0", "label": None, "description": None, "params": {}}
    assert writes["write"]["applied_ops"] == [op]


async def test_a_session_stores_plain_json_and_a_few_values_per_step() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    await bench.start()
    await bench.answer(action="approve")
    saver: Any = bench.graph.checkpointer
    assert isinstance(saver, InMemorySaver)
    state = {place: value for place, value in saver.blobs.items() if place[2] in AgentState.model_fields}

    assert json.loads(json.dumps(await bench.values())) == await bench.values()
    # 14 steps; one value per part that a step changes.
    assert len(state) <= 40
    assert sum(len(content) for _, content in state.values()) < 16_000
