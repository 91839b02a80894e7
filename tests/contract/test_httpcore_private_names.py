"""Where the HTTP clients keep what reads the network: read_by_asyncio puts our own there. When this fails, read the
new version first."""

import anthropic
import httpcore2
import httpx2
import openai
import pytest

from flowise_dev_agent.sockets import read_by_asyncio


@pytest.mark.parametrize(
    "make", [httpx2.AsyncClient, openai.DefaultAsyncHttpxClient, anthropic.DefaultAsyncHttpxClient]
)
async def test_clients_and_their_proxies_can_be_given_another_reader(
    make: type[httpx2.AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    async with read_by_asyncio(make()) as client:
        pools = [
            vars(transport)["_pool"] for transport in (vars(client)["_transport"], *vars(client)["_mounts"].values())
        ]
        assert [type(pool) for pool in pools] == [httpcore2.AsyncConnectionPool, httpcore2.AsyncHTTPProxy]
        assert {type(vars(pool)["_network_backend"]).__module__ for pool in pools} == {"flowise_dev_agent.sockets"}
