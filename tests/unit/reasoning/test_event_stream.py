"""Events of a stream, wherever the network cuts it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
from pydantic import BaseModel

from flowise_dev_agent.reasoning.engines.event_stream import read_events


class Event(BaseModel):
    text: str


class Parts(httpx2.AsyncByteStream):
    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = parts
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            self.read += 1
            yield part


async def texts(parts: Sequence[bytes]) -> list[str]:
    return [event.text async for event in read_events(httpx2.Response(200, stream=Parts(parts)), Event)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_are_found_wherever_the_stream_is_cut(end: bytes) -> None:
    events = [
        b": waiting",
        b"event: x",
        b'data: {"text": "one"}',
        b"",
        b"data:",
        b"",
        b'data:{"text":',
        b'data: "two"}',
    ]
    unfinished = [b'data: {"text": "never ended"}', b"id: 1"]
    whole = end.join([*events, b"", b'data: {"text": "Gr\xc3\xbc\xc3\x9fe"}', b"", *unfinished])
    for size in (1, 2, 3, 7, len(whole)):
        parts = [whole[start : start + size] for start in range(0, len(whole), size)]
        assert await texts(parts) == ["one", "two", "Grüße"]


async def test_nothing_after_done_is_an_event_but_the_response_is_read_to_its_end() -> None:
    stream = Parts([b'data: {"text": "one"}\n\ndata: [DONE]\n\n', b'data: {"text": "two"}\n\n', b""])
    events = read_events(httpx2.Response(200, stream=stream), Event)
    assert [event.text async for event in events] == ["one"]
    assert stream.read == 3


async def test_a_response_that_does_not_end_after_done_is_left() -> None:
    class Endless(Parts):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"data: [DONE]\n\n"
            await asyncio.Event().wait()

    async with asyncio.timeout(10):
        assert [event async for event in read_events(httpx2.Response(200, stream=Endless([])), Event)] == []


async def test_half_of_a_surrogate_pair_is_text_and_what_is_no_event_is_an_error() -> None:
    assert await texts([b'data: {"text": "\\ud83d"}\n\n']) == ["\ud83d"]
    for wrong in (b'data: {"text": 1}\n\n', b"data: <html>\n\n"):
        with pytest.raises(ValueError):
            await texts([wrong])
