"""Two people and two teams through page, REST, MCP and command line: who may do what, and one audit_log of who did it.

The page is a browser's cookie here; `tests/e2e/page/test_people.py` has the browser itself.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.api import create_app
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.settings import ServerSettings, SignInSettings, load_settings
from tests.e2e.people import run_command
from tests.e2e.service import ServiceProcess
from tests.e2e.test_mcp import Agent, Person
from tests.fixtures.oidc import CLIENT, SECRET, OidcProvider
from tests.integration.sessions.test_approvals import _questions_are_plans
from tests.integration.sessions.test_approvals import service as approving_service

__all__ = ["_questions_are_plans"]

SHARED = "the-shared-key"
TEAMS = "crew=build@harbour,harbour=build+approve@harbour,airport=build+approve@airport"
#: Of which group each person is.
PEOPLE = {"ada": "harbour", "grace": "harbour", "tim": "crew", "linus": "airport"}


@dataclass
class Office:
    """A running service and the provider that knows its people."""

    url: str
    provider: OidcProvider
    folder: Path
    opened: AsyncExitStack

    async def at_the_page(self, name: str) -> httpx2.AsyncClient:
        """A browser in which this person has signed in."""
        self.provider.person = {"sub": name, "email": f"{name}@example.org", "groups": [PEOPLE[name]]}
        person = await self._client(Origin=self.url)
        there = await person.get("/auth/sign-in")
        async with httpx2.AsyncClient() as elsewhere:
            back = await elsewhere.get(there.headers["location"])
        assert (await person.get(back.headers["location"])).status_code == 303
        return person

    async def token(self, name: str) -> str:
        """An access token of the provider for this service, found as the clients of MCP find it."""
        async with httpx2.AsyncClient(base_url=self.url) as stranger:
            refused = await stranger.post("/mcp", json={})
            metadata = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
            said = (await stranger.get(metadata)).json()
        assert said["authorization_servers"] == [self.provider.endpoint]
        claims = {"sub": name, "email": f"{name}@example.org", "groups": [PEOPLE[name]]}
        return self.provider.token(aud=said["resource"], **claims)

    async def key(self, team: str) -> str:
        """Of a program of a team."""
        body = {"name": f"ci of {team}", "scopes": ["build", "approve"], "owner": team}
        return (await (await self.rest(SHARED)).post("/keys", json=body)).json()["key"]

    async def rest(self, key: str) -> httpx2.AsyncClient:
        return await self._client(Authorization=f"Bearer {key}")

    async def _client(self, **headers: str) -> httpx2.AsyncClient:
        return await self.opened.enter_async_context(httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=30))

    @asynccontextmanager
    async def agent(self, key: str) -> AsyncIterator[Agent]:
        """An agent that asks its person before it decides anything."""
        transport = streamable_http_client(f"{self.url}/mcp", http_client=await self.rest(key))
        async with Client(transport, elicitation_callback=Person(), read_timeout_seconds=30) as client:
            yield Agent(client)

    async def command(self, key: str, *arguments: str, code: int = 0) -> str:
        (self.folder / ".env").write_text(f"AGENT_API_KEY={key}\n")
        return await run_command(cast(ServiceProcess, self), self.folder, *arguments, code=code)


@pytest.fixture
async def office(database_dsn: str, tmp_path: Path) -> AsyncIterator[Office]:
    with OidcProvider() as provider:
        server = ServerSettings(
            host="127.0.0.1", port=0, rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(SHARED)
        )
        listener = bind(server)
        url = url_of(listener)
        settings = load_settings(
            server=server.model_copy(update={"public_base_url": HttpUrl(url)}),
            sign_in=SignInSettings.model_validate(
                {"issuer": provider.endpoint, "client_id": CLIENT, "client_secret": SECRET, "groups": TEAMS}
            ),
        )
        async with approving_service(database_dsn, separate=True) as engine:
            running = Server(create_app(settings, engine))
            serving = asyncio.create_task(running.serve(sockets=[listener]))
            listener.listen()
            async with AsyncExitStack() as opened:
                yield Office(url, provider, tmp_path, opened)
            running.stop()
            await serving


def code_of(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def test_two_teams_through_every_door_with_one_ledger(office: Office) -> None:
    keys = {team: await office.key(team) for team in ("harbour", "airport")}
    ada, linus = await office.at_the_page("ada"), await office.at_the_page("linus")
    tim, grace = await office.token("tim"), await office.token("grace")
    rest_of_tim, rest_of_grace = await office.rest(tim), await office.rest(grace)
    body = {"requirement": "ask:plan work:a end:accepted"}
    approval: dict[str, Any] = {"action": "approve"}

    # Tim may build and not approve, by no door.
    of_tim = (await rest_of_tim.post("/sessions", json=body)).json()
    session, asked = of_tim["thread_id"], of_tim["interrupt"]["id"]
    answer = {"interrupt_id": asked, "answer": approval}
    assert code_of(await rest_of_tim.post(f"/sessions/{session}/resume", json=answer)) == (403, "scope_missing")
    async with office.agent(tim) as agent:
        given = {"session_id": session, "interrupt_id": asked, "answer": approval}
        assert await agent.refused("answer_question", **given) == "scope_missing"

    # Ada may, and not what she began herself.
    of_ada = (await ada.post("/sessions", json=body)).json()
    hers = {"interrupt_id": of_ada["interrupt"]["id"], "answer": approval}
    path = f"/sessions/{of_ada['thread_id']}/resume"
    assert code_of(await ada.post(path, json=hers)) == (403, "approval_needed")

    # The other team sees nothing and decides nothing.
    assert (await linus.get("/sessions")).json()["sessions"] == []
    for stranger in (linus, await office.rest(keys["airport"])):
        assert code_of(await stranger.get(f"/sessions/{session}")) == (404, "session_not_found")
        assert code_of(await stranger.post(f"/sessions/{session}/resume", json=answer)) == (404, "session_not_found")
    async with office.agent(await office.token("linus")) as agent:
        assert await agent.refused("get_session", session_id=session) == "session_not_found"
        assert await agent.refused("answer_question", **given) == "session_not_found"
    assert session not in await office.command(keys["airport"], "sessions", "list", "--json")
    refused = await office.command(
        keys["airport"], "approve", session, "--answer", "approve", "--interrupt", asked, code=Exit.FAILED
    )
    assert "There is no session" in refused
    seen = json.loads(await office.command(keys["airport"], "audit", "list", "--json"))["rows"]
    assert [(row["actor"], row["action"]) for row in seen] == [("linus@example.org", "sign_in")]

    # Grace decides by her agent, a program of the team by its key.
    async with office.agent(grace) as agent:
        given = {"session_id": of_ada["thread_id"], "interrupt_id": hers["interrupt_id"], "answer": approval}
        decided = await agent.session("answer_question", **given)
    assert decided["session"]["status"] == "completed"
    await office.command(keys["harbour"], "approve", session, "--answer", "approve")
    assert (await ada.get(f"/sessions/{session}")).json()["outcome"] == "accepted"

    # Whoever of the team reads the audit log, by whatever door, reads the same.
    rows = (await ada.get("/audit")).json()["rows"]
    told = {(row["session_id"], row["actor"], row["door"], row["action"]) for row in rows if row["session_id"]}
    assert told == {
        (session, "tim@example.org", "rest", "start"),
        (session, "ci of harbour", "cli", "plan_approval.approve"),
        (of_ada["thread_id"], "ada@example.org", "page", "start"),
        (of_ada["thread_id"], "grace@example.org", "mcp", "plan_approval.approve"),
    }
    assert {row["key_id"] for row in rows if row["actor"] == "grace@example.org"} == {"oidc:grace"}
    assert (await rest_of_tim.get("/audit")).json()["rows"] == rows
    assert json.loads(await office.command(keys["harbour"], "audit", "list", "--json"))["rows"] == rows
    exported = (await rest_of_grace.get("/audit/export")).text.splitlines()
    assert [json.loads(line)["hash"] for line in exported] == [row["hash"] for row in reversed(rows)]
    assert (await rest_of_grace.get("/audit/verify")).json()["findings"] == []
    assert {row["actor"] for row in (await linus.get("/audit")).json()["rows"]} == {"linus@example.org"}
