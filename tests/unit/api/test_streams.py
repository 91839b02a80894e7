"""Events on the wire."""

import asyncio
import json
from uuid import UUID

import httpx2
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble, event

SESSION = UUID(int=1)


@pytest.fixture(autouse=True)
def _log(engine: EngineDouble) -> None:
    engine.service.settle(SESSION, last_event_seq=3)
    engine.service.log = [
        event(SESSION, 1, "node_start"),
        event(SESSION, None, "token", text="Hé\u2028llo"),
        event(SESSION, 3, "interrupt"),
        event(SESSION, 4, "node_start"),
        event(SESSION, 5, "done"),
    ]


def frames(text: str) -> list[dict[str, str]]:
    """Frames as {field: value}; comments as {"": text}."""
    return [
        {name: value.removeprefix(" ") for name, _, value in (line.partition(":") for line in frame.split("\n"))}
        for frame in text.strip("\n").split("\n\n")
    ]


async def test_a_stream_is_framed_by_the_book(http: httpx2.AsyncClient) -> None:
    response = await http.get(f"/sessions/{SESSION}/stream")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-store"
    retry, *events = frames(response.text)
    assert retry == {"retry": "2000"}
    assert [(one.get("id"), one["event"]) for one in events] == [
        ("1", "node_start"),
        (None, "token"),
        ("3", "interrupt"),
        ("4", "node_start"),
        ("5", "done"),
    ]
    assert [json.loads(one["data"])["seq"] for one in events] == [1, None, 3, 4, 5]
    assert json.loads(events[1]["data"])["data"] == {"text": "Hé\u2028llo"}


@pytest.mark.parametrize(
    ("query", "header", "first"), [("", None, 1), ("?after_seq=3", None, 4), ("", "3", 4), ("?after_seq=1", "4", 5)]
)
async def test_a_client_that_comes_back_gets_what_it_missed(
    http: httpx2.AsyncClient, query: str, header: str | None, first: int
) -> None:
    headers = {"Last-Event-ID": header} if header else {}
    response = await http.get(f"/sessions/{SESSION}/stream{query}", headers=headers)
    assert next(one["id"] for one in frames(response.text) if "id" in one) == str(first)


async def test_p51_silence_is_filled_with_comments(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.service.log = []
    async with client_of(make_app(sse_keepalive_secs=0.01)) as http:
        # The stream is seen only as a whole: on a busy machine it takes a longer silence to show a second comment.
        for silence in (0.1, 1, 5, 20):
            task = asyncio.create_task(http.get(f"/sessions/{SESSION}/stream"))
            await engine.service.until("events")
            await asyncio.sleep(silence)
            engine.feed.end_streams()
            if (await task).text.count(": keepalive\n\n") > 1:
                return
    pytest.fail("Twenty seconds of silence were not filled.")


async def test_p50_a_stream_ends_when_the_service_stops(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.service.log = engine.service.log[:1]
    task = asyncio.create_task(http.get(f"/sessions/{SESSION}/stream"))
    await engine.service.until("events")
    engine.feed.end_streams()
    response = await task
    assert frames(response.text)[0] == {"retry": "2000"}
    assert engine.service.streams_closed == 1


async def test_p42_a_database_fault_ends_the_stream_without_telling_more(
    http: httpx2.AsyncClient, engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object):
        yield event(SESSION, 1, "node_start")
        raise DatabaseUnavailableError("host db.internal")

    monkeypatch.setattr(engine.service, "events", failing)
    response = await http.get(f"/sessions/{SESSION}/stream")
    assert frames(response.text)[-1] == {"": "interrupted: database_unavailable"}
