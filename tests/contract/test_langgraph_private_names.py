"""Names of langgraph that we lean on without a promise. When one of these fails, read the new version first."""

import inspect
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph._internal import _constants
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import _ainternal, base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.errors import GraphDrained, UnknownInterruptError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from psycopg import Capabilities

from flowise_dev_agent.sessions.executor import STRICT_RESUME_KEY


class State(TypedDict, total=False):
    answers: Annotated[list[Any], operator.add]


async def first(state: State) -> State:
    return State(answers=[interrupt("first")])


async def second(state: State) -> State:
    return State(answers=[interrupt("second")])


def graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile(checkpointer=InMemorySaver())


CONFIG: Any = {"configurable": {"thread_id": "t", STRICT_RESUME_KEY: True}}


def test_the_savers_cursor_is_the_one_place_of_all_writes() -> None:
    signature = inspect.signature(AsyncPostgresSaver._cursor)
    assert list(signature.parameters) == ["self", "pipeline"]
    for method in (AsyncPostgresSaver.aput, AsyncPostgresSaver.aput_writes):
        source = inspect.getsource(method)
        assert "self._cursor(pipeline=True)" in source
        assert ".connection()" not in source
    assert "self.lock" in inspect.getsource(AsyncPostgresSaver._cursor)
    assert hasattr(_ainternal, "get_connection")
    assert Capabilities().has_pipeline()


def test_deleting_a_thread_is_these_statements() -> None:
    assert [statement.split()[2] for statement in base.PRUNE_DELETE_THREADS_SQL] == [
        "checkpoints",
        "checkpoint_blobs",
        "checkpoint_writes",
    ]
    assert all(statement.endswith("WHERE thread_id = ANY(%s)") for statement in base.PRUNE_DELETE_THREADS_SQL)


def test_the_strict_resume_key_has_its_name() -> None:
    assert _constants.CONFIG_KEY_STRICT_RESUME == STRICT_RESUME_KEY


async def test_a_repeated_answer_is_refused_instead_of_answering_the_next_question() -> None:
    app = graph()
    await app.ainvoke({}, CONFIG)
    open_id = (await app.aget_state(CONFIG)).interrupts[0].id
    await app.ainvoke(Command(resume={open_id: "one"}), CONFIG)
    with pytest.raises(UnknownInterruptError):
        await app.ainvoke(Command(resume={open_id: "one"}), CONFIG)
    state = await app.aget_state(CONFIG)
    assert [item.value for item in state.interrupts] == ["second"]
    assert state.values == {"answers": ["one"]}


async def test_what_the_run_runner_reads_of_a_state_and_of_the_stream() -> None:
    app = graph()
    assert (await app.aget_state(CONFIG)).created_at is None
    parts = [
        part
        async for part in app.astream(
            {}, CONFIG, stream_mode=["tasks", "custom"], version="v2", durability="sync", control=RunControl()
        )
    ]
    started, ended = (part["data"] for part in parts)
    assert {part["type"] for part in parts} == {"tasks"}
    assert started["name"] == ended["name"] == "first"
    assert "input" in started
    assert "input" not in ended
    assert ended["error"] is None
    assert len(ended["interrupts"]) == 1
    state = await app.aget_state(CONFIG)
    assert state.created_at is not None
    assert [task.name for task in state.tasks] == ["first"]
    assert state.tasks[0].interrupts == state.interrupts


async def test_a_drain_stops_before_the_next_step() -> None:
    app = graph()
    control = RunControl()
    control.request_drain()
    with pytest.raises(GraphDrained):
        await app.ainvoke({}, CONFIG, control=control)
    state = await app.aget_state(CONFIG)
    assert state.created_at is not None
    assert state.tasks  # something is left to run, even before the first node
    await app.ainvoke(None, CONFIG)
    assert [item.value for item in (await app.aget_state(CONFIG)).interrupts] == ["first"]


async def test_the_keys_of_the_configuration_are_not_written_into_checkpoints() -> None:
    app = graph()
    await app.ainvoke({}, CONFIG)
    saved = app.checkpointer.storage
    assert STRICT_RESUME_KEY not in repr(saved)
