"""The same client against real sockets: nobody listens, nobody answers, the connection breaks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from flowise_dev_agent.errors import FlowiseConnectionLostError, FlowiseTimeoutError, FlowiseUnreachableError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient

NEW = ChatflowCreate(name="n", flow_data="{}")


@asynccontextmanager
async def server(behaviour: Callable[[asyncio.StreamReader], Awaitable[None]]) -> AsyncGenerator[str]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await behaviour(reader)
        writer.transport.abort()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


async def test_p12_refused_connection_says_that_nothing_was_sent() -> None:
    async with server(lambda _: asyncio.sleep(0)) as endpoint:
        pass
    async with FlowiseClient(endpoint, None) as client:
        with pytest.raises(FlowiseUnreachableError, match="cannot be reached"):
            await client.create_chatflow(NEW)


async def test_p12_silent_server_is_a_timeout() -> None:
    released = asyncio.Event()

    async def silent(_: asyncio.StreamReader) -> None:
        await released.wait()

    async with server(silent) as endpoint, FlowiseClient(endpoint, None, timeout=0.1) as client:
        with pytest.raises(FlowiseTimeoutError, match=r"within 0\.1 s"):
            await client.create_chatflow(NEW)
        released.set()


async def test_p12_connection_dropped_after_the_request_is_ambiguous() -> None:
    requests = 0

    async def drop(_: asyncio.StreamReader) -> None:
        nonlocal requests
        requests += 1

    async with server(drop) as endpoint, FlowiseClient(endpoint, None) as client:
        with pytest.raises(FlowiseConnectionLostError):
            await client.create_chatflow(NEW)
    assert requests == 1


async def test_slow_answers_of_models_hold_up_no_short_call() -> None:
    """Found with 14 sessions under test at once: "Flowise cannot be reached", and the tests were lost."""
    slow, released, asked = 0, asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal slow
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/prediction/" in head:
            slow += 1
            if slow == 20:
                asked.set()
            await released.wait()
        body = b'{"version": "3.1.4", "text": "x"}'
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    endpoint = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, FlowiseClient(endpoint, None, connect_timeout=0.5) as client:
        tests = [asyncio.create_task(client.predict("f", "hi", session_id=str(one))) for one in range(50)]
        await asyncio.wait_for(asked.wait(), 20)
        assert await client.version() == "3.1.4"
        assert slow == 20  # the others wait for their turn, however long
        released.set()
        assert [one.text for one in await asyncio.gather(*tests)] == ["x"] * 50
