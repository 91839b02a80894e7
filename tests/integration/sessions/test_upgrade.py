"""Sessions that wait for their person over an upgrade go on from the checkpoints of the version before.

`checkpoints_version_1.json.gz` holds rows as version 1 of the state wrote them, a scenario each: the last checkpoint of
a session at a question, with the flows, texts and write intents that belong to it.
"""

import base64
import gzip
import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.types.json import Jsonb

from flowise_dev_agent.agent import upgrade_state
from flowise_dev_agent.agent.state import STATE_VERSION, AgentState
from flowise_dev_agent.errors import CheckpointVersionError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.persistence import Database, FencedSaver, Lease
from flowise_dev_agent.persistence.intents import WriteIntent
from flowise_dev_agent.persistence.saver import plain_serializer
from flowise_dev_agent.sessions.executor import STRICT_RESUME_KEY
from tests.unit.agent.rig import OPENAI, OTHER_OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_update import drafts, inputs_of, made_for

_ROWS = Path(__file__).with_name("checkpoints_version_1.json.gz")
_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_BY_UPDATE = {"select_target", "draft_review", "stale_promotion"}


@cache
def scenarios() -> dict[str, Any]:
    return json.loads(gzip.decompress(_ROWS.read_bytes()))


def state_of_version_1(kept: dict[str, Any]) -> dict[str, Any]:
    """The values of all channels."""
    inline: dict[str, Any] = kept["checkpoints"][0]["checkpoint"]["channel_values"]
    serde = plain_serializer()
    blobs = {
        row["channel"]: serde.loads_typed((row["type"], base64.b64decode(row["blob"])))
        for row in kept["checkpoint_blobs"]
        if row["type"] != "empty"
    }
    return {name: value for name, value in (inline | blobs).items() if not name.startswith("branch:")}


async def restored(database: Database, name: str) -> Bench:
    """The session as the service finds it after the upgrade."""
    known = credentials(OPENAI, OTHER_OPENAI) if name == "credential_check" else credentials(OPENAI)
    bench = made_for("update") if name in _BY_UPDATE else Bench(ops(), known)
    return await loaded(database, bench, scenarios()[name])


async def loaded(database: Database, bench: Bench, kept: dict[str, Any]) -> Bench:
    """`bench` as that session, with the rows in the database."""
    bench.session_id, run_id = UUID(kept["session_id"]), uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status)"
            " VALUES (%s, 'r', '{}', 'i', 'running')",
            (bench.session_id,),
        )
        await connection.execute(
            "INSERT INTO runs (id, session_id, kind, status, epoch) VALUES (%s, %s, 'resume', 'running', 1)",
            (run_id, bench.session_id),
        )
        for row in kept["checkpoints"]:
            await connection.execute(
                "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)"
                " VALUES (%s, '', %s, %s, %s)",
                (str(bench.session_id), row["checkpoint_id"], Jsonb(row["checkpoint"]), Jsonb(row["metadata"])),
            )
        for row in kept["checkpoint_blobs"]:
            await connection.execute(
                "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
                " VALUES (%s, '', %s, %s, %s, %s)",
                (str(bench.session_id), row["channel"], row["version"], row["type"], base64.b64decode(row["blob"])),
            )
        for row in kept["checkpoint_writes"]:
            given = (row["checkpoint_id"], row["task_id"], row["task_path"], row["idx"], row["channel"], row["type"])
            await connection.execute(
                "INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx,"
                " channel, type, blob) VALUES (%s, '', %s, %s, %s, %s, %s, %s, %s)",
                (str(bench.session_id), *given, base64.b64decode(row["blob"])),
            )
    for text in kept["blobs"]:
        await bench.blobs.put(text)
    for row in kept["flows"]:
        bench.flowise.flows[row["id"]] = Chatflow.model_validate(row)
    for row in kept["intents"]:
        key, session_id = UUID(row["key"]), UUID(row["session_id"])
        created = datetime.fromisoformat(row["created_at"])
        own = {"key": key, "session_id": session_id, "created_at": created}
        # Version 1 had no names of creates; the migration leaves the column empty.
        bench.intents.rows[key] = WriteIntent(**{"name": None, **row, **own})
    saver = FencedSaver(database, Lease(run_id, 1), upgrade=upgrade_state)
    bench.graph = bench.graph.copy(update={"checkpointer": saver})
    bench.flowise.later(30)
    bench.config = {"configurable": {"thread_id": str(bench.session_id), STRICT_RESUME_KEY: True}}
    return bench


async def stored_state(database: Database, bench: Bench) -> dict[str, Any]:
    """What another process reads."""
    stock = AsyncPostgresSaver(database.pool, serde=plain_serializer())
    found = await stock.aget_tuple(bench.config)
    assert found is not None
    own = {name: value for name, value in found.checkpoint["channel_values"].items() if not name.startswith("branch:")}
    versions = {name for name in found.checkpoint["channel_versions"] if not name.startswith(("__", "branch:"))}
    assert versions <= set(AgentState.model_fields)
    return own


@pytest.mark.parametrize(
    ("name", "answer", "following"),
    [
        ("clarification", {"answers": ["GPT", "yes"]}, "plan_approval"),
        ("select_target", {"chatflow_id": "the second"}, "plan_approval"),
        ("create_plan", {"action": "approve"}, "result_review"),
        ("credential_check", {"choose": {"openAIApi": OPENAI}}, "result_review"),
        ("budget", {"action": "raise_budget", "budget": {"tokens": 9_000}}, "result_review"),
        ("repeated_finding", {"action": "replan", "feedback": "smaller"}, "plan_approval"),
        ("created_review", {"action": "rollback"}, None),
        ("draft_review", {"action": "accept"}, None),
        ("stale_promotion", {"action": "rebase"}, "result_review"),
    ],
)
async def test_a_session_of_version_1_goes_on_with_its_answer(
    database: Database, name: str, answer: dict[str, Any], following: str | None
) -> None:
    bench = await restored(database, name)
    before = await bench.state()
    interrupt = (await bench.open_interrupt()).value
    assert {key: interrupt[key] for key in ("type", "reason")} == scenarios()[name]["interrupt"]
    if "chatflow_id" in answer:
        answer = {"chatflow_id": interrupt["data"]["candidates"][1]["id"]}

    asked = await bench.answer(**answer)

    assert asked.get("type") == following
    state = AgentState.model_validate(await stored_state(database, bench))
    assert state.version == STATE_VERSION
    assert state.request == before.request
    match name:
        case "clarification":
            assert state.intent.clarifications == [("Which model?", "GPT"), ("Memory?", "yes")]
        case "select_target":
            assert asked["data"]["target"]["id"] == answer["chatflow_id"]
        case "budget":
            assert state.usage.spent.input_tokens > before.usage.spent.input_tokens
        case "repeated_finding":
            assert bench.reasoner.seen["plan"][0].feedback == "smaller"
        case "created_review":
            assert (state.outcome, bench.flowise.flows) == ("rolled_back", {})
        case "draft_review":
            (live,) = bench.flowise.flows.values()
            assert (state.outcome, drafts(bench)) == ("accepted", [])
            assert inputs_of(live, "chatOpenAI_0")["temperature"] == 0.1
        case "stale_promotion":
            assert await bench.answer(action="accept") == {}
            (live,) = bench.flowise.flows.values()
            assert (live.name, inputs_of(live, "chatOpenAI_0")["temperature"]) == ("Renamed by hand", 0.1)
        case _:
            (flow,) = bench.flowise.flows.values()
            assert flow.tags == (f"fda:{bench.session_id}:flow",)


async def test_a_session_that_was_killed_at_its_start_keeps_its_request(database: Database) -> None:
    kept = scenarios()["create_plan"]
    old = {"requirement": "A support bot", **state_of_version_1(kept)}
    stock = AsyncPostgresSaver(database.pool, serde=plain_serializer())
    bench = await loaded(database, Bench(ops(), credentials(OPENAI)), {**kept, **dict.fromkeys(_TABLES, ())})
    first = {**empty_checkpoint(), "channel_values": {"__start__": old}, "channel_versions": {"__start__": "1"}}
    place: Any = {"configurable": {"thread_id": str(bench.session_id), "checkpoint_ns": ""}}
    await stock.aput(place, first, {"source": "input", "step": -1}, {"__start__": "1"})

    asked = await bench.run(None)

    assert asked["type"] == "plan_approval"
    assert bench.reasoner.seen["classify"][0].requirement == "A support bot"


def test_a_state_of_a_newer_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(CheckpointVersionError, match="newer version"):
        upgrade_state({"version": STATE_VERSION + 1})


def test_a_state_of_this_version_is_left_alone() -> None:
    assert upgrade_state(AgentState().model_dump(mode="json")) is None


@pytest.mark.parametrize("node", ["plan_v2", None])
def test_a_question_for_budget_goes_on_with_the_node_that_asked(node: str | None) -> None:
    old = state_of_version_1(scenarios()["create_plan"])
    stop = {"reason": "budget", "message": "m"} | ({"then": node} if node else {})
    upgraded = upgrade_state({**old, "stop": stop})
    assert upgraded is not None
    assert upgraded["budget"]["question"] == {"node": node or "validate", "message": "m"}
