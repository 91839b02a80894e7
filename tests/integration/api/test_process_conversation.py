"""The chat entry over real sessions: what a message starts or answers, and the frames that follow."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import SecretStr, TypeAdapter

from flowise_dev_agent.agent import NODE_PHASES
from flowise_dev_agent.api import create_app
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.schemas.process_conversation import ChatFrame
from flowise_dev_agent.schemas.turns import Turn
from flowise_dev_agent.sessions.chat_entry import STAGES, pairs_of
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.runtime_world import World, running_engine

SHARED = "the-shared-key"
FRAME = TypeAdapter[ChatFrame](ChatFrame)


@asynccontextmanager
async def chat(dsn: str, **server: Any) -> AsyncIterator["Chat"]:
    settings = ServerSettings.model_validate(
        {"rate_limit_sessions_per_min": 0, "wait_secs": 20, "api_key": SecretStr(SHARED), **server}
    )
    async with running_engine(dsn) as engine:
        app = create_app(load_settings(server=settings), engine)
        async with app.router.lifespan_context(app):
            yield Chat(app)


class Chat:
    def __init__(self, app: Any) -> None:
        self._transport = StreamingASGITransport(app)
        self.http = self.client(SHARED)

    def client(self, key: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.AsyncClient(base_url="http://localhost", headers=headers, transport=self._transport, timeout=30)

    async def say(self, message: str, *, http: httpx2.AsyncClient | None = None, key: str = "", **body: Any) -> Any:
        """The frames that follow, each checked against the contract and against its name on the wire."""
        headers = {"Idempotency-Key": key} if key else {}
        response = await (http or self.http).post(
            "/process-conversation", json={"message": message, **body}, headers=headers
        )
        if response.status_code != 200:
            return response
        frames: list[dict[str, Any]] = []
        for block in response.text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "data" in lines:
                frame = FRAME.validate_json(lines["data"])
                assert frame.response_type == lines["event"]
                frames.append(json.loads(lines["data"]))
        assert [frame["is_final"] for frame in frames] == [False] * (len(frames) - 1) + [True]
        assert len({frame["session_id"] for frame in frames}) == 1
        return frames


@pytest.fixture
async def talk(database_dsn: str) -> AsyncIterator[Chat]:
    async with chat(database_dsn) as running:
        yield running


async def test_messages_start_a_session_answer_it_and_hear_its_end(talk: Chat) -> None:
    asked = await talk.say("work:a ask:colour? ask:size? work:b end:accepted")
    assert [frame["response_type"] for frame in asked] == ["STATUS_CHANGE", "MESSAGE"]
    assert "colour?" in asked[-1]["message"]
    session = asked[0]["session_id"]
    assert asked[0]["status_change"]["current_stage"] == "clarification"
    again = await talk.say("blue", session_id=session)
    assert "size?" in again[-1]["message"]
    first, second = again[0]["status_change"]["stage_state"]["history"]
    assert ("colour?" in first["agent"], second["agent"]) == (True, "")
    ended = await talk.say("large", session_id=session)
    last = ended[-1]["status_change"]
    assert (last["current_stage"], last["stage_state"]["outcome"]) == ("completed", "accepted")
    late = await talk.say("more", session_id=session)
    assert (late[-1]["error"]["error_code"], late[-1]["error"]["is_recoverable"]) == ("session_conflict", False)


async def test_the_same_message_with_its_key_is_told_again_and_done_once(talk: Chat, database_dsn: str) -> None:
    asked = await talk.say("ask:q work:a end:accepted", key="one")
    assert (await talk.say("ask:q work:a end:accepted", key="one"))[-1] == asked[-1]
    named = str(uuid4())
    first = await talk.say("ask:q", key="three", session_id=named)
    assert (await talk.say("ask:q", key="three", session_id=named))[-1] == first[-1]
    session = asked[0]["session_id"]
    told = [await talk.say("yes", key="two", session_id=session) for _ in range(2)]
    assert told[0][-1]["status_change"]["current_stage"] == told[1][-1]["status_change"]["current_stage"] == "completed"
    assert await World(database_dsn).effects(session) == ["a"]


async def test_an_answer_that_does_not_fit_leaves_the_question_open(talk: Chat) -> None:
    session = (await talk.say("ask:q end:accepted"))[0]["session_id"]
    (refused,) = await talk.say("wrong", session_id=session)
    assert (refused["error"]["error_code"], refused["error"]["is_recoverable"]) == ("invalid_answer", True)
    assert (await talk.say("right", session_id=session))[-1]["status_change"]["current_stage"] == "completed"


async def test_a_session_that_fails_and_one_that_cannot_start_are_error_frames(talk: Chat) -> None:
    failed = await talk.say("fail")
    assert [frame["response_type"] for frame in failed[-2:]] == ["STATUS_CHANGE", "ERROR"]
    assert failed[-2]["status_change"]["current_stage"] == "failed"
    assert (failed[-1]["error"]["error_code"], failed[-1]["error"]["details"]) == (
        "flowise_auth",
        "Set FLOWISE_API_KEY.",
    )
    (refused,) = await talk.say("Use sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH")
    assert (refused["error"]["error_code"], refused["error"]["is_recoverable"]) == ("secret_in_text", False)


async def test_what_is_wrong_with_the_message_itself_is_a_problem(talk: Chat) -> None:
    wrong = ({"message": ""}, {"origin": "delete"}, {"source_workflow_id": "a"}, {"session_id": "s-1"}, {"more": 1})
    for part in wrong:
        response = await talk.http.post("/process-conversation", json={"message": "x", **part})
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request"), part


async def test_an_origin_and_a_source_become_the_operation_and_its_target(talk: Chat) -> None:
    session = str(uuid4())
    asked = await talk.say("ask:q", session_id=session, origin="edit", source_workflow_id="Support")
    assert asked[0]["session_id"] == session
    audit_log = (await talk.http.get("/audit", params={"session": session})).json()["rows"]
    assert [row["action"] for row in audit_log] == ["start"]
    taken = await talk.say("ask:q", origin="copy", source_workflow_id="Support")
    assert taken[0]["session_id"] != session


async def test_starts_count_as_those_of_sessions_do_and_answers_do_not(database_dsn: str) -> None:
    async with chat(database_dsn, rate_limit_sessions_per_min=2) as talk:
        session = (await talk.say("ask:a ask:b ask:c end:accepted"))[0]["session_id"]
        for answer in ("1", "2", "3"):
            assert isinstance(await talk.say(answer, session_id=session), list)
        assert (await talk.http.post("/sessions", json={"requirement": "ask:q"})).status_code == 200
        refused = await talk.say("ask:q")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")


async def test_a_key_that_only_approves_answers_but_starts_nothing(talk: Chat) -> None:
    made = await talk.http.post("/keys", json={"name": "boss", "scopes": ["approve"]})
    boss = talk.client(made.json()["key"])
    refused = await talk.say("ask:q", http=boss)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    session = (await talk.say("ask:q end:accepted"))[0]["session_id"]
    assert (await talk.say("yes", http=boss, session_id=session))[-1]["response_type"] == "STATUS_CHANGE"


async def test_a_message_to_a_running_session_is_an_error_from_which_it_goes_on(talk: Chat, database_dsn: str) -> None:
    session = str(uuid4())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(talk.say("gate:g end:accepted", session_id=session))
        while not await World(database_dsn).effects(session):  # noqa: ASYNC110 - the worker is in the service
            await asyncio.sleep(0.02)
        (busy,) = await talk.say("hello?", session_id=session)
        assert (busy["error"]["error_code"], busy["error"]["is_recoverable"]) == ("session_conflict", True)
        await World(database_dsn).open_gate("g")
    assert waiting.result()[-1]["status_change"]["current_stage"] == "completed"


def test_every_phase_of_the_graph_has_a_stage() -> None:
    assert set(STAGES) == set(NODE_PHASES.values())


def test_the_last_ten_pairs_are_told() -> None:
    def said(who: str, words: str) -> Turn:
        kind = "answer" if who == "person" else "question"
        return Turn.model_validate({"at": "2026-01-01T00:00:00Z", "who": who, "kind": kind, "words": words})

    turns = [said(who, f"{who} {number}") for number in range(12) for who in ("person", "session")]
    pairs = pairs_of([said("session", "before anything"), *turns, said("person", "last")])
    assert [pair.user for pair in pairs] == [*(f"person {number}" for number in range(3, 12)), "last"]
    assert [pair.agent for pair in pairs] == [*(f"session {number}" for number in range(3, 12)), ""]
    assert len(pairs_of([said("person", "x" * 5_000)])[0].user) <= 1_000
