"""The transport to an app in this process: streams, errors and callers are those of a server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flowise_dev_agent.client import AgentClient, ServiceUnreachableError
from flowise_dev_agent.client.asgi import StreamingASGITransport


def http(endpoint: object, **options: object) -> httpx2.AsyncClient:
    app = Starlette(routes=[Route("/", endpoint, methods=["GET", "POST"])])  # type: ignore[arg-type]
    transport = StreamingASGITransport(app, **options)  # type: ignore[arg-type]
    return httpx2.AsyncClient(transport=transport, base_url="http://agent")


async def test_a_request_arrives_with_its_body_query_headers_and_caller() -> None:
    async def echo(request: Request) -> Response:
        return JSONResponse(
            [await request.json(), dict(request.query_params), request.headers["x-a"], request.client], status_code=201
        )

    async with http(echo, client=("10.0.0.1", 5)) as client:
        response = await client.post("/", json={"b": 1}, params={"q": "é"}, headers={"X-A": "y"})
    assert (response.status_code, response.json()) == (201, [{"b": 1}, {"q": "é"}, "y", ["10.0.0.1", 5]])


async def test_a_stream_is_read_while_the_app_writes_it() -> None:
    more = asyncio.Event()

    async def stream(_: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await more.wait()
            yield b"second"

        return StreamingResponse(chunks())

    async with http(stream) as client, client.stream("GET", "/") as response:
        seen = []
        async with asyncio.timeout(5):
            async for chunk in response.aiter_raw():
                seen.append(chunk)
                more.set()
    assert seen == [b"first", b"second"]


async def test_closing_a_response_early_ends_the_apps_work_for_it() -> None:
    ended = asyncio.Event()

    async def stream(_: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                ended.set()

        return StreamingResponse(chunks())

    async with http(stream) as client, client.stream("GET", "/") as response:
        await anext(response.aiter_raw())
    assert ended.is_set()


async def test_a_response_that_nobody_reads_does_not_hold_the_caller() -> None:
    async def stream(_: Request) -> Response:
        return StreamingResponse(iter([b"a", b"b", b"c"]))

    async with asyncio.timeout(5), http(stream) as client, client.stream("GET", "/") as response:
        assert response.status_code == 200


async def test_cancelling_a_request_cancels_the_app() -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(_: Request) -> Response:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response()

    async with http(endless) as client:
        waiting = asyncio.create_task(client.get("/"))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert cancelled.is_set()


async def test_an_unexpected_error_is_logged_and_answered_with_500(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: Request) -> Response:
        raise RuntimeError("boom")

    async with http(broken) as client:
        assert (await client.get("/")).status_code == 500
    assert [(record.levelno, record.message) for record in caplog.records if record.exc_info] == [
        (logging.ERROR, "unexpected error in GET /")
    ]


@pytest.mark.parametrize("starts", [True, False])
async def test_a_broken_response_is_a_transport_error(starts: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def app(_: object, __: object, send: object) -> None:
        if starts:
            await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
            await send({"type": "http.response.body", "body": b"{", "more_body": True})  # type: ignore[operator]
        raise RuntimeError("boom")

    async with AgentClient("http://agent", transport=StreamingASGITransport(app)) as client:
        with pytest.raises(ServiceUnreachableError):
            await client.get(uuid4())
    assert "boom" in caplog.text
