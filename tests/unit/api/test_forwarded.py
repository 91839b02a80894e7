"""Addresses of clients behind a proxy: only proxies that the operator names may state them."""

import asyncio

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.settings import ServerSettings
from tests.unit.api.conftest import MakeApp

CLIENT = "203.0.113.7"


@pytest.mark.parametrize(
    ("allowed", "stated", "seen"),
    [
        ("127.0.0.1", CLIENT, CLIENT),
        ("10.0.0.1, 127.0.0.0/8", CLIENT, CLIENT),
        ("10.0.0.1", CLIENT, "127.0.0.1"),
        # What a client adds in front of the proxy's own entry counts for nothing.
        ("127.0.0.1", f"198.51.100.1, {CLIENT}", CLIENT),
    ],
)
async def test_limits_and_log_go_by_the_address_that_a_named_proxy_states(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, allowed: str, stated: str, seen: str
) -> None:
    app = make_app(api_key="k", forwarded_allow_ips=allowed)
    listener = bind(ServerSettings.model_validate({"AGENT_API_PORT": 0, "AGENT_API_KEY": SecretStr("k")}))
    listener.listen()
    running = Server(app)
    serving = asyncio.create_task(running.serve(sockets=[listener]))
    async with httpx2.AsyncClient(base_url=url_of(listener), trust_env=False) as http:
        refused = await http.get("/sessions", headers={"X-Forwarded-For": stated})
    running.stop()
    await serving
    assert refused.status_code == 401
    (told,) = [record.getMessage() for record in caplog.records if "wrong key" in record.msg]
    assert f"from {seen} " in told
