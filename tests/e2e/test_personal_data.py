"""A marked name that only Workday gives: what of it the service keeps and says."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from tests.e2e.people import MakeService, answer, events_of, http_of, ok
from tests.e2e.scripted import AGENT, model_environment, script
from tests.e2e.test_mcp import over_http
from tests.e2e.test_workday_session import variables
from tests.fixtures.workday import WorkdayServer

pytestmark = pytest.mark.nightly

__all__ = ["variables"]
#: What `getMyInfo` of the test's Workday says, and nobody else.
MARK = "Lovelace"
QUESTION = "Who am I in Workday?"
#: Where the answer is kept for the person who reviews it; an answer is what they have to judge.
OF_THE_ANSWER = {"sessions", "blobs", "checkpoints", "checkpoint_blobs", "checkpoint_writes"}


def tables_with(dsn: str, mark: str) -> set[str]:
    """The tables in whose rows a text is."""
    found: set[str] = set()
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        for (table,) in tables:
            for row in connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))):
                texts = [one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in row]
                found |= {table} if any(mark in text for text in texts) else set()
    return found


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(
    ("said", "kept"),
    [("You are known there.", set[str]()), (f"You are Ada {MARK}.", OF_THE_ANSWER)],
    ids=["not in the answer", "in the answer"],
)
async def test_a_marked_name_is_kept_nowhere_but_in_the_answer_that_a_person_reviews(
    make_service: MakeService, standin: ModelStandIn, workday: WorkdayServer, said: str, kept: set[str]
) -> None:
    service = make_service(LOG_LEVEL="DEBUG", **model_environment(standin))
    script(standin, AGENT)
    await service.start()
    question = f"{QUESTION} ({len(kept)})"
    standin.script(lambda request: question in request.prompt and MARK in request.prompt, Reply(text=said))
    standin.script(question, Reply(tool_calls=(StandInToolCall("getMyInfo", {}),)), times=1)
    async with http_of(service) as http, over_http(service, None) as agent:
        body = {
            "requirement": "Build an assistant with GPT-4o that looks up workers in Workday",
            "test_questions": [question],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        assert planned["interrupt"]["data"]["contract"]["pii_fields"] == ["worker.location", "worker.name"]
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = tested["interrupt"]["data"]["tests"]
        assert (test["passed"], test["used_tools"], test["answer"]) == (True, ["getMyInfo"], said), test
        assert workday.called == [("getMyInfo", {})]
        session = f"/sessions/{tested['thread_id']}"
        trace = await ok(await http.get(f"{session}/traces/{test['trace_sha256']}"))
        assert "[personal data]" in str(trace)
        done = await answer(http, tested, action="accept")
        assert done["outcome"] == "accepted"
        outputs: dict[str, Any] = {
            "trace": trace,
            "events": await events_of(http, done),
            "artifacts": await ok(await http.get(f"{session}/artifacts?limit=200")),
            "versions": await ok(await http.get(f"{session}/versions")),
            "change": await ok(await http.get(f"{session}/change")),
            "preview": await ok(await http.get(f"{session}/preview")),
            "audit": await ok(await http.get("/audit")),
            "memories": await ok(await http.get("/memories")),
            "metrics": (await http.get("/metrics")).text,
            "mcp": (await agent.call("get_node_artifact", session_id=tested["thread_id"], limit=50)).structured_content,
            "log": service.log,
        }
    assert [name for name, text in outputs.items() if MARK in str(text)] == []
    assert tables_with(service.dsn, MARK) <= kept
    assert bool(tables_with(service.dsn, MARK)) is bool(kept)
