"""A service without a key answers this machine and its own page, not other web pages (DNS rebinding, CSRF)."""

import pytest

from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble
from tests.unit.api.test_mcp_route import ACCEPT, PING, running

START = {"requirement": "x"}
CROSS_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8000"},
    {"Host": "localhost.evil.example"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    # Another program of this machine, or the same name over another scheme, is another origin.
    {"Origin": "http://localhost:3000"},
    {"Origin": "https://localhost"},
    CROSS_SITE,
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    # A form on another page.
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
]
OWN: list[dict[str, str]] = [
    {},
    {"Host": "127.0.0.1:8000"},
    {"Host": "[::1]:8000"},
    {"Host": "LOCALHOST"},
    {"Origin": "http://localhost"},
    {"Host": "127.0.0.1:8000", "Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN)
async def test_without_a_key_other_pages_start_and_change_nothing(
    make_app: MakeApp, engine: EngineDouble, headers: dict[str, str]
) -> None:
    async with client_of(make_app()) as http:
        for path in ("/sessions", "/mcp", "/nowhere"):
            response = await http.post(path, json=START, headers=headers)
            assert (response.status_code, response.json()["code"]) == (403, "origin_refused"), path
    assert engine.service.calls == []


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, CROSS_SITE])
async def test_without_a_key_other_pages_read_nothing(make_app: MakeApp, headers: dict[str, str]) -> None:
    async with client_of(make_app()) as http:
        for path in ("/", "/live", "/sessions", "/settings", "/openapi.json", "/metrics"):
            assert (await http.get(path, headers=headers)).status_code == 403, path


@pytest.mark.parametrize("headers", OWN)
async def test_without_a_key_this_machine_and_the_own_page_are_answered(
    make_app: MakeApp, headers: dict[str, str]
) -> None:
    async with client_of(make_app()) as http:
        assert (await http.post("/sessions", json=START, headers=headers)).status_code == 202


async def test_without_a_key_a_link_on_another_page_leads_here(make_app: MakeApp) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with client_of(make_app()) as http:
        assert (await http.get("/docs", headers=headers)).status_code == 307


@pytest.mark.parametrize("headers", [{"Host": "localhost"}, {"Host": "agent.example"}])
async def test_without_a_key_a_proxy_may_have_the_public_name(make_app: MakeApp, headers: dict[str, str]) -> None:
    app = make_app(public_base_url="https://agent.example/here")
    headers = headers | {"Origin": "https://agent.example", "Sec-Fetch-Site": "same-origin"}
    async with running(app) as http:
        assert (await http.post("/mcp", json=PING, headers=ACCEPT | headers)).status_code == 200
        assert (await http.post("/sessions", json=START, headers=headers)).status_code == 202


@pytest.mark.parametrize("headers", FOREIGN)
async def test_with_a_key_the_key_alone_decides(make_app: MakeApp, headers: dict[str, str]) -> None:
    key = {"Authorization": "Bearer s3cret"}
    async with client_of(make_app(api_key="s3cret")) as http:
        assert (await http.post("/sessions", json=START, headers=headers)).status_code == 401
        assert (await http.post("/sessions", json=START, headers=headers | key)).status_code == 202
