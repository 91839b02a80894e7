"""The stages of writing: their table, and that the graph keeps to it."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flowise_dev_agent.agent.nodes.apply import WRITES
from flowise_dev_agent.agent.stages import STAGES, Stage, StageEvent, next_stage
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.errors import FlowiseServerError
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_update import add_flow, made_for

#: What ends a session once it is written.
ENDS = {Stage.PROMOTE, Stage.ACCEPT, Stage.ROLLBACK}


def test_every_stage_has_a_row_and_a_write() -> None:
    assert set(STAGES) == set(Stage) == set(WRITES)


def test_every_stage_and_every_event_is_reached() -> None:
    reached = {Stage.APPLY}
    while more := {to for stage in reached for to in STAGES[stage].events.values()} - reached:
        reached |= more
    assert reached == set(Stage)
    assert {event for row in STAGES.values() for event in row.events} == set(StageEvent)


@given(st.lists(st.sampled_from(StageEvent), max_size=30))
def test_a_walk_ends_only_from_the_tested_flow_and_never_leaves_the_table(events: list[StageEvent]) -> None:
    stage = Stage.APPLY
    for event in events:
        if event not in STAGES[stage].events:
            with pytest.raises(LookupError, match=f"'{event}' cannot happen in the stage '{stage}'"):
                next_stage(stage, event)
            continue
        following = next_stage(stage, event)
        assert following not in ENDS or stage is Stage.APPLY
        assert stage not in {Stage.ACCEPT, Stage.ROLLBACK}
        stage = following


def test_what_ends_a_session_is_not_tested_and_the_rest_is() -> None:
    assert {stage for stage, row in STAGES.items() if not row.tested} == ENDS


def fitting(option: str, interrupt: dict[str, Any]) -> dict[str, Any]:
    """An answer with this option."""
    match option:
        case "request_changes" | "iterate" | "replan":
            return {"action": option, "feedback": "colder"}
        case "raise_budget":
            return {"action": option, "budget": {"tokens": 10_000_000}}
        case "select":
            return {"chatflow_id": interrupt["data"]["candidates"][0]["id"]}
        case "choose":
            return {"choose": {item["type"]: item["candidates"][0]["id"] for item in interrupt["data"]["credentials"]}}
        case _:
            return {"action": option}


async def walk(operation: str, write_mode: str, choices: list[tuple[int, bool, bool]]) -> list[AgentState]:
    """The states of a session whose person takes these options: (which, whether someone else changes the flow before,
    whether the next test fails)."""
    bench = Bench(ops(), credentials(OPENAI)) if operation == "create" else made_for(operation)
    target = None if operation == "create" else (await add_flow(bench)).id
    interrupt = await bench.start("colder", target=target, write_mode=write_mode, review_patch=bool(len(choices) % 2))
    for number, (which, is_changed, fails) in enumerate(choices):
        if not interrupt:
            break
        if is_changed and target in bench.flowise.flows:
            await bench.flowise.update_chatflow(target, name=f"Renamed {number}")
        bench.flowise.in_turn = [FlowiseServerError(f"Error: {number}")] if fails else []
        options = interrupt["options"]
        interrupt = await bench.answer(**fitting(options[which % len(options)]["value"], interrupt))
    history = [snapshot.values async for snapshot in bench.graph.aget_state_history(bench.config)]
    return [AgentState.model_validate(values) for values in reversed(history) if values]


#: Approve, accept while someone else changes the flow, then each answer to that.
STALE_PROMOTIONS = [
    [(0, False, False), (0, True, False), (which, False, False), *[(0, False, False)] * 3] for which in range(4)
]


@settings(max_examples=40, deadline=None)
@example("update", "staged", STALE_PROMOTIONS[0])
@example("update", "staged", STALE_PROMOTIONS[1])
@example("update", "staged", STALE_PROMOTIONS[2])
@example("update", "staged", STALE_PROMOTIONS[3])
@given(
    st.sampled_from(["create", "update", "copy"]),
    st.sampled_from(["staged", "direct"]),
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12),
)
def test_whatever_a_person_answers_the_stages_follow_the_table(
    operation: str, write_mode: str, choices: list[tuple[int, bool, bool]]
) -> None:
    states = asyncio.run(walk(operation, write_mode, choices))
    stages = [state.write.stage for state in states]
    for before, after in pairwise(stages):
        assert before is after or after in STAGES[before].events.values()
    outcome = states[-1].outcome
    if outcome in {"accepted", "rolled_back"}:
        assert stages[-1] in ENDS or (operation, write_mode) == ("update", "direct")
