"""Signing in at an OpenID Connect provider, and its access tokens, over the real service and a real Postgres."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI
from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.api import create_app
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import across_owners
from flowise_dev_agent.settings import ServerSettings, SignInSettings, load_settings
from tests.fixtures.database import superuser
from tests.fixtures.oidc import CLIENT, SECRET, OidcProvider
from tests.runtime_world import running_engine

SHARED = "the-shared-key"
HERE = "https://flows.example.org"
OWN = {"Origin": HERE}
COOKIE, ATTEMPT = "__Host-flowise-dev-agent-session", "__Host-flowise-dev-agent-sign-in"


@pytest.fixture(scope="module")
def running() -> Iterator[OidcProvider]:
    with OidcProvider() as started:
        yield started


@pytest.fixture
def provider(running: OidcProvider) -> OidcProvider:
    running.person = {"sub": "u1", "email": "ada@example.org", "groups": ["builders"]}
    running.claims, running.in_userinfo, running.refuse = {}, {}, False
    running.asked.clear()
    return running


@asynccontextmanager
async def service(dsn: str, issuer: str, **sign_in: Any) -> AsyncIterator[FastAPI]:
    server = ServerSettings(
        rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(SHARED), public_base_url=HttpUrl(HERE)
    )
    given = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "groups": "builders=build,leads=build+approve@team-a,ops=admin",
    }
    settings = SignInSettings.model_validate({"issuer": issuer, **given, **sign_in})
    async with running_engine(dsn) as engine:
        app = create_app(load_settings(server=server, sign_in=settings), engine)
        async with app.router.lifespan_context(app):
            yield app


@pytest.fixture
async def app(database_dsn: str, provider: OidcProvider) -> AsyncIterator[FastAPI]:
    async with service(database_dsn, provider.endpoint) as running_app:
        yield running_app


def browser(app: FastAPI, **headers: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=HERE, transport=StreamingASGITransport(app), headers=headers, timeout=30)


async def come_back(person: httpx2.AsyncClient, view: str = "") -> httpx2.Response:
    """Go to the provider and back; the service's answer to that."""
    there = await person.get("/auth/sign-in", params={"return_to": view})
    assert there.status_code == 303, there.text
    async with httpx2.AsyncClient() as elsewhere:
        back = await elsewhere.get(there.headers["location"])
    assert back.headers["location"].startswith(f"{HERE}/auth/callback?")
    return await person.get(back.headers["location"])


async def who(person: httpx2.AsyncClient) -> tuple[str, list[str], str] | int:
    said = await person.get("/keys/current")
    body = said.json()
    return (body["name"], body["scopes"], body["owner"]) if said.status_code == 200 else said.status_code


async def test_a_person_signs_in_and_does_what_their_groups_may(app: FastAPI, database: Database) -> None:
    person = browser(app, **OWN)
    refused = await person.get("/sessions")
    assert (refused.status_code, refused.json()["details"]) == (401, {"sign_in": "/auth/sign-in"})
    back = await come_back(person, "#/s/1f")
    assert (back.status_code, back.headers["location"]) == (303, "/#/s/1f")
    (cookie,) = [text for text in back.headers.get_list("set-cookie") if text.startswith(COOKIE)]
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    assert await who(person) == ("ada@example.org", ["build", "read"], "default")
    started = await person.post("/sessions", json={"requirement": "work:a end:accepted"})
    assert started.status_code in {200, 202}, started.text
    assert (await person.post("/keys", json={"name": "more", "scopes": ["admin"]})).status_code == 403
    rows = (await person.get("/audit")).json()["rows"]
    assert {(row["actor"], row["key_id"], row["door"]) for row in rows} == {("ada@example.org", "oidc:u1", "page")}
    assert {"sign_in", "start"} <= {row["action"] for row in rows}
    with across_owners():
        kept = await database.fetch_all("SELECT sign_ins::text AS row FROM sign_ins")
    assert person.cookies[COOKIE] not in kept[0]["row"]


async def test_nothing_changes_with_a_cookie_from_another_page(app: FastAPI) -> None:
    person = browser(app)
    await come_back(person)
    path, body = "/sessions", {"requirement": "work:a"}
    for headers in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"{HERE}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    ):
        refused = await person.post(path, json=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "sign_in_failed"), headers
    assert (await person.get("/sessions")).json()["sessions"] == []
    assert (await person.post(path, json=body, headers={"Sec-Fetch-Site": "same-origin"})).status_code in {200, 202}
    # A key is sent by no browser of itself: programs need no origin.
    assert (await browser(app, Authorization=f"Bearer {SHARED}").post(path, json=body)).status_code in {200, 202}


async def test_signing_out_ends_the_cookie_here_and_leads_to_the_provider(app: FastAPI, provider: OidcProvider) -> None:
    person = browser(app, **OWN)
    await come_back(person)
    token = person.cookies[COOKIE]
    said = await person.post("/auth/sign-out")
    assert said.json()["url"].startswith(f"{provider.endpoint}/logout?client_id={CLIENT}")
    assert COOKIE not in person.cookies
    assert await who(browser(app, Cookie=f"{COOKIE}={token}")) == 401
    admin = browser(app, Authorization=f"Bearer {SHARED}")
    assert [row["action"] for row in (await admin.get("/audit")).json()["rows"]] == ["sign_out", "sign_in"]


async def test_a_sign_in_ends_by_itself(app: FastAPI, database: Database) -> None:
    person = browser(app, **OWN)
    await come_back(person)
    async with superuser(database) as connection:
        await connection.execute("UPDATE sign_ins SET expires_at = now()")
    assert await who(person) == 401
    await come_back(browser(app))
    with across_owners():
        assert len(await database.fetch_all("SELECT 1 FROM sign_ins")) == 1


async def test_a_group_names_the_owner_and_settings_of_today_hold_for_old_sign_ins(
    database_dsn: str, provider: OidcProvider
) -> None:
    provider.person = {"sub": "u2", "email": "eve@example.org", "groups": ["leads", "builders", "others"]}
    async with service(database_dsn, provider.endpoint) as app:
        person = browser(app, **OWN)
        await come_back(person)
        assert await who(person) == ("eve@example.org", ["approve", "build", "read"], "team-a")
    async with service(database_dsn, provider.endpoint, groups="builders=read") as app:
        again = browser(app, Cookie=f"{COOKIE}={person.cookies[COOKIE]}")
        assert await who(again) == ("eve@example.org", ["read"], "default")


async def test_who_is_in_no_named_group_does_not_get_in(app: FastAPI, provider: OidcProvider) -> None:
    provider.person["groups"] = ["guests"]
    person = browser(app)
    back = await come_back(person)
    assert (back.status_code, "none of your groups" in back.text) == (403, True)
    assert COOKIE not in person.cookies


async def test_groups_are_found_in_a_nested_claim_and_at_userinfo(database_dsn: str, provider: OidcProvider) -> None:
    provider.person = {"sub": "u3", "preferred_username": "kim", "realm_access": {"roles": ["ops"]}}
    async with service(database_dsn, provider.endpoint, groups_claim="realm_access.roles") as app:
        person = browser(app)
        await come_back(person)
        assert await who(person) == ("kim", ["admin", "approve", "build", "read"], "default")
    provider.person, provider.in_userinfo = {"sub": "u3"}, {"groups": ["builders"], "name": "Kim K."}
    async with service(database_dsn, provider.endpoint) as app:
        person = browser(app)
        await come_back(person)
        assert await who(person) == ("Kim K.", ["build", "read"], "default")
        provider.in_userinfo["sub"] = "somebody else"
        assert (await come_back(browser(app))).status_code == 403


async def test_an_id_token_that_is_not_for_this_sign_in_opens_nothing(app: FastAPI, provider: OidcProvider) -> None:
    wrong: list[dict[str, Any]] = [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": [CLIENT, "x"], "azp": "x"},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
    ]
    for claims in wrong:
        provider.claims = claims
        person = browser(app)
        back = await come_back(person)
        assert (back.status_code, back.headers["content-type"].partition(";")[0]) == (403, "text/plain"), claims
        assert COOKIE not in person.cookies


async def test_a_way_back_that_this_browser_did_not_begin_opens_nothing(app: FastAPI, provider: OidcProvider) -> None:
    victim, other = browser(app), browser(app)
    there = await other.get("/auth/sign-in")
    async with httpx2.AsyncClient() as elsewhere:
        back = (await elsewhere.get(there.headers["location"])).headers["location"]
    assert (await victim.get(back)).status_code == 403
    await victim.get("/auth/sign-in")
    assert (await victim.get(back)).status_code == 403
    assert victim.cookies.get(COOKIE) is None
    assert (await other.get(back)).status_code == 303
    # The code is used up.
    assert (await other.get(back)).status_code == 403
    provider.refuse = True
    refused = await come_back(browser(app))
    assert (refused.status_code, "(access_denied)" in refused.text) == (403, True)


async def test_the_way_back_leads_to_the_page_alone(app: FastAPI) -> None:
    for view in ("https://evil.example", "//evil.example", "/\\evil", "#/x y", "x" * 250, "#/\r\nA: b"):
        back = await come_back(browser(app), view)
        assert (back.status_code, back.headers["location"]) == (303, "/"), view


async def test_the_verifier_and_the_nonce_reach_the_provider_only_as_they_should(app: FastAPI) -> None:
    person = browser(app)
    there = await person.get("/auth/sign-in")
    asked = parse_qs(urlsplit(there.headers["location"]).query)
    state, nonce, verifier, _ = person.cookies[ATTEMPT].split(".")
    assert (asked["state"], asked["nonce"]) == ([state], [nonce])
    assert verifier not in there.headers["location"]
    again = await person.get("/auth/sign-in")
    assert asked["state"] != parse_qs(urlsplit(again.headers["location"]).query)["state"]


async def test_access_tokens_of_the_provider_open_rest_and_mcp(app: FastAPI, provider: OidcProvider) -> None:
    for audience in (HERE, f"{HERE}/mcp", [f"{HERE}/mcp", "other"]):
        assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=audience)}")) == (
            "ada@example.org",
            ["build", "read"],
            "default",
        )
    program = browser(app, Authorization=f"Bearer {provider.token(aud=f'{HERE}/mcp')}")
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}}
    answer = await program.post("/mcp", json=body, headers=headers)
    assert (answer.status_code, 'isError":true' in answer.text) == (200, False)


async def test_other_tokens_do_not_open(app: FastAPI, provider: OidcProvider) -> None:
    foreign = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    here = f"{HERE}/mcp"
    tokens = [
        provider.token(aud=CLIENT),
        provider.token(aud="https://other.example"),
        provider.token(aud=None),
        provider.token(aud=here, iss="https://other.example"),
        provider.token(aud=here, exp=1),
        provider.token(aud=here, key=foreign),
        provider.token(aud=here, key="x" * 64, algorithm="HS256"),
        provider.token(aud=here, key="", algorithm="none"),
        f"{provider.token(aud=here)[:-8]}AAAAAAAA",
        "a.b.c",
        "x" * 20_000 + ".y.z",
    ]
    assert [await who(browser(app, Authorization=f"Bearer {token}")) for token in tokens] == [401] * len(tokens)
    provider.person["groups"] = []
    assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=here)}")) == 403


async def test_a_new_key_of_the_provider_is_fetched_once_and_unknown_ones_ask_nothing(
    app: FastAPI, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"{HERE}/mcp"
    assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=here)}")) != 401
    for _ in range(3):
        assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=here, kid='odd')}")) == 401
    assert (provider.asked.count("keys"), provider.asked.count("discovery")) == (1, 1)
    monkeypatch.setattr("flowise_dev_agent.access.oidc._AGAIN_SECS", 0.0)
    provider.rotate()
    assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=here)}")) != 401
    assert provider.asked.count("keys") == 2


async def test_clients_of_mcp_find_the_provider(app: FastAPI, provider: OidcProvider) -> None:
    refused = await browser(app).post("/mcp", json={})
    metadata = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
    assert metadata == f"{HERE}/.well-known/oauth-protected-resource/mcp"
    said = (await browser(app).get(metadata)).json()
    assert (said["resource"], said["authorization_servers"]) == (f"{HERE}/mcp", [provider.endpoint])


async def test_a_provider_that_is_down_stops_nobody_with_a_key_or_a_cookie(database_dsn: str) -> None:
    with OidcProvider() as provider:
        async with service(database_dsn, provider.endpoint) as app:
            person = browser(app, **OWN)
            await come_back(person)
            token = person.cookies[COOKIE]
    async with service(database_dsn, provider.endpoint) as app:
        assert await who(browser(app, Cookie=f"{COOKIE}={token}")) == ("ada@example.org", ["build", "read"], "default")
        assert (await browser(app, Authorization=f"Bearer {SHARED}").get("/sessions")).status_code == 200
        there = await browser(app).get("/auth/sign-in")
        assert (there.status_code, "does not answer" in there.text) == (503, True)
        assert await who(browser(app, Authorization="Bearer a.b.c")) == 401
        assert await who(browser(app, Authorization=f"Bearer {provider.token(aud=HERE)}")) == 503
        signed_out = await browser(app, Cookie=f"{COOKIE}={token}", **OWN).post("/auth/sign-out")
        assert signed_out.json() == {"url": None}


async def test_without_a_provider_nobody_signs_in(database_dsn: str) -> None:
    server = ServerSettings(api_key=SecretStr(SHARED), rate_limit_sessions_per_min=0)
    async with running_engine(database_dsn) as engine:
        app = create_app(load_settings(server=server), engine)
        async with app.router.lifespan_context(app):
            refused = await browser(app, Cookie=f"{COOKIE}=x").get("/sessions")
            assert (refused.status_code, "details" in refused.json()) == (401, False)
            assert refused.headers["www-authenticate"] == 'Bearer realm="flowise-dev-agent"'
            for path in ("/auth/sign-in", "/auth/callback", "/.well-known/oauth-protected-resource/mcp"):
                assert (await browser(app).get(path)).status_code == 404, path
