"""A model server of this machine is found when it answers at once, and left alone otherwise."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from flowise_dev_agent.models.local_model import local_models


@asynccontextmanager
async def answering(body: bytes | None) -> AsyncGenerator[str]:
    """A server that gives this answer to everything; None keeps the connection open and says nothing."""
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if body is None:
            await done.wait()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        done.set()
        server.close()
        await server.wait_closed()


async def test_the_models_of_a_server_in_reach_are_named() -> None:
    async with answering(b'{"models": [{"name": "llama3.2:latest", "size": 1}]}') as address:
        assert await local_models(address) == ["llama3.2:latest"]


@pytest.mark.parametrize("body", [b"not json", b'{"models": 3}', None])
async def test_anything_else_is_no_model(body: bytes | None) -> None:
    async with answering(body) as address:
        assert await local_models(address) == []


async def test_nothing_in_reach_is_no_model() -> None:
    async with answering(b"") as address:
        pass
    assert await local_models(address) == []
