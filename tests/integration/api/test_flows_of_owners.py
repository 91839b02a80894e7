"""Guards, test sets and versions of a flow that two owners see on one Flowise server; keys that may only read."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.caller import SERVICE, acting_for
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.integration.api.test_owners import MARK, OURS, SHARED_KEY, THEIRS, Doors
from tests.integration.cli.test_files import COLDER
from tests.writing_world import BOT, Servers, writing_service

FLOW: Final = f"/flows/{BOT}"
#: Requests that change what is kept of the flow, or the flow itself, with their bodies.
CHANGES: Final[dict[str, Any]] = {
    f"PUT {FLOW}/guard": {"usd_per_month": 1},
    f"DELETE {FLOW}/guard": None,
    f"PUT {FLOW}/tests": {"tests": []},
    f"PUT {FLOW}/versions/v1/bookmark": {"note": "taken over"},
    f"POST {FLOW}/versions/v1/restore": {},
    f"POST {FLOW}/apply": {"ops": [COLDER]},
}
READS: Final = (
    f"{FLOW}/guard",
    f"{FLOW}/tests",
    f"{FLOW}/reach",
    f"{FLOW}/versions",
    "/fleet",
    "/fleet/export",
    "/certificates/keys",
)


@pytest.fixture
async def doors(database_dsn: str, servers: Servers) -> AsyncIterator[Doors]:
    server = ServerSettings.model_validate({"AGENT_API_KEY": SecretStr(SHARED_KEY), "AGENT_WAIT_SECS": 20})
    with acting_for(SERVICE):
        async with writing_service(database_dsn, servers) as runtime:
            app = create_app(load_settings(server=server), runtime)
            async with app.router.lifespan_context(app):
                found = Doors(app)
                for owner in (OURS, THEIRS):
                    await found.open_for(owner)
                yield found


async def seen_by(doors: Doors, owner: str) -> dict[str, Any]:
    """Status and text of each answer to the owner, by its path."""
    async with doors.client(owner) as http:
        return {path: (answer.status_code, answer.text) for path in READS for answer in [await http.get(path)]}


async def keep(doors: Doors) -> None:
    """A guard, a test set and a written version of ours."""
    async with doors.client(OURS) as http:
        assert (await http.put(f"{FLOW}/guard", json={})).status_code == 200
        assert (await http.put(f"{FLOW}/tests", json={"tests": [{"turns": [MARK]}]})).status_code == 200
        applied = await http.post(f"{FLOW}/apply?wait=20", json={"ops": [COLDER]})
        assert applied.status_code == 200, applied.text


async def test_another_owner_of_the_same_server_sees_the_flow_and_nothing_we_keep_of_it(
    doors: Doors, servers: Servers
) -> None:
    await keep(doors)
    ours = await seen_by(doors, OURS)
    assert {status for status, _ in ours.values()} == {200}
    for path in (f"{FLOW}/tests", "/fleet", "/fleet/export"):
        assert (MARK if "tests" in path else "key of sales") in ours[path][1], path
    theirs = await seen_by(doors, THEIRS)
    assert (theirs[f"{FLOW}/guard"][0], json.loads(theirs[f"{FLOW}/guard"][1])["code"]) == (404, "guard_not_found")
    assert json.loads(theirs[f"{FLOW}/versions"][1])["versions"] == []
    assert json.loads(theirs["/fleet"][1])["flows"][0]["id"] == BOT
    said = "".join(text for _, text in theirs.values())
    assert (MARK in said, "key of sales" in said) == (False, False)

    written = list(servers.dev.calls)
    async with doors.client(THEIRS) as http:
        restored = await http.post(f"{FLOW}/versions/v1/restore", json={})
        assert (restored.status_code, restored.json()["code"]) == (404, "version_not_found")
        for route, body in CHANGES.items():
            method, path = route.split()
            if not path.endswith("/apply"):  # the flow itself is of all who reach the server
                await http.request(method, path, json=body)
    assert servers.dev.calls == written
    assert await seen_by(doors, OURS) == ours


async def test_a_key_that_may_only_read_changes_nothing(doors: Doors, servers: Servers) -> None:
    await keep(doors)
    ours, written = await seen_by(doors, OURS), list(servers.dev.calls)
    async with doors.client("") as http:
        made = await http.post("/keys", json={"name": "reader", "owner": OURS, "scopes": ["read"]})
    async with doors.client(OURS) as http:
        http.headers["Authorization"] = f"Bearer {made.json()['key']}"
        for path in READS:
            assert (await http.get(path)).status_code == 200, path
        for route, body in CHANGES.items():
            method, path = route.split()
            refused = await http.request(method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), route
    assert servers.dev.calls == written
    assert await seen_by(doors, OURS) == ours
