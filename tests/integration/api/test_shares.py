"""Share links on a real Postgres: made, opened, ended, and what they open besides."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID, uuid4

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from flowise_dev_agent.access.shares import ShareSigner
from flowise_dev_agent.api import create_app, middleware
from flowise_dev_agent.api.access import ROUTES, SHARED
from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.persistence import Blobs, Database, Versions
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.settings import DatabaseSettings, ServerSettings, load_settings
from tests.fixtures.database import stored_text, superuser
from tests.runtime_world import running_engine

KEY: Final = "the-shared-key"
FLOW, OTHER_FLOW = "0a1b2c3d-0000-4000-8000-00000000f10e", "0a1b2c3d-0000-4000-8000-0000000000aa"
SECRETS: Final = base64.b64encode(bytes([7] * 32)).decode()
MAIL: Final = "ada.lovelace@example.org"
NODE: Final = {
    "id": "chatOpenAI_0",
    "position": {"x": 0, "y": 0},
    "data": {
        "id": "chatOpenAI_0",
        "name": "chatOpenAI",
        "label": "ChatOpenAI",
        "inputs": {"modelName": "gpt-4o", "basepath": f"ask {MAIL}"},
        "credential": "11111111-2222-4333-8444-555555555555",
    },
}


class Service:
    """A service, its clients by what they send as `Authorization`."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._transport = StreamingASGITransport(app)

    def client(self, authorization: str | None = f"Bearer {KEY}") -> httpx2.AsyncClient:
        headers = {"Authorization": authorization} if authorization else {}
        return httpx2.AsyncClient(base_url="http://localhost", headers=headers, transport=self._transport, timeout=30)

    async def share(self, subject: str, id_: str, **more: Any) -> dict[str, Any]:
        async with self.client() as http:
            made = await http.post("/shares", json={"subject": subject, "id": id_, **more})
            assert made.status_code == 201, made.text
            return made.json()

    def visitor(self, made: dict[str, Any]) -> httpx2.AsyncClient:
        return self.client(f"Share {made['link'].rpartition('/')[2]}")

    async def session(self, words: str) -> str:
        async with self.client() as http:
            view = (await http.post("/sessions", json={"requirement": words})).json()
            assert view["status"] in {"completed", "pending_interrupt"}, view
            return view["thread_id"]


@pytest.fixture
async def service(database_dsn: str) -> AsyncIterator[Service]:
    server = ServerSettings(rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(KEY))
    settings = load_settings(server=server, database=DatabaseSettings(secrets_key=SecretStr(SECRETS)))
    async with running_engine(database_dsn, signer=ShareSigner.from_settings(settings)) as engine:
        app = create_app(settings, engine)
        async with app.router.lifespan_context(app):
            yield Service(app)


async def wrote(database: Database, session_id: str, *, flow: str = FLOW, name: str = "Merry") -> None:
    """As if the session had written a flow."""
    with serving(DEFAULT_OWNER):
        await Versions(database, Blobs(database)).record(
            UUID(session_id),
            instance_id="main",
            chatflow_id=flow,
            name=name,
            flow_data=json.dumps({"nodes": [NODE], "edges": []}),
            settings=FlowSettings(),
            uploads={},
            updated_date="2026-01-01",
            reason="create",
            iteration=1,
        )
        async with superuser(database) as connection:
            await connection.execute("UPDATE sessions SET chatflow_id = %s WHERE id = %s", (flow, session_id))


async def test_a_link_shows_a_session_without_names_contacts_and_credentials(
    service: Service, database: Database
) -> None:
    session = await service.session(f"work:{MAIL} work:marigold end:accepted")
    other = await service.session("work:secretgarden end:accepted")
    await wrote(database, session)
    await wrote(database, other, flow=OTHER_FLOW, name="Other")
    made = await service.share("session", session, days=90)
    assert made["link"].startswith("/#/shared/ey")
    assert made["made_by"] == "AGENT_API_KEY"
    async with service.visitor(made) as visitor:
        shown = await visitor.get("/shared")
        assert shown.status_code == 200, shown.text
        assert shown.headers["cache-control"] == "no-store"
        assert shown.headers["referrer-policy"] == "no-referrer"
        assert shown.headers["x-robots-tag"] == "noindex, nofollow"
        view = shown.json()
        assert (view["subject"], [one["thread_id"] for one in view["sessions"]]) == ("session", [session])
        assert view["sessions"][0]["turns"][0]["words"] == "work:[contact] work:marigold end:accepted"
        assert [one["name"] for one in view["versions"]] == ["v1"]
        drawn = await visitor.get("/shared/versions/v1")
        (node,) = drawn.json()["nodes"]
        assert node["label"] == "ChatOpenAI"
        assert {"name": "basepath", "label": "basepath", "value": "ask [contact]", "cut": False} in node["params"]
        missing = await visitor.get("/shared/versions/v2")
        assert (missing.status_code, missing.json()["code"]) == (404, "version_not_found")
        for text in (shown.text, drawn.text):
            for hidden in (MAIL, "AGENT_API_KEY", NODE["data"]["credential"], "secretgarden", other, OTHER_FLOW):
                assert hidden not in text, hidden


async def test_a_link_of_a_flow_shows_its_sessions_and_versions_and_no_other_flow(
    service: Service, database: Database
) -> None:
    first, second = [await service.session(f"work:{word} end:accepted") for word in ("marigold", "poppy")]
    other = await service.session("work:secretgarden end:accepted")
    for session in (first, second):
        await wrote(database, session)
    await wrote(database, other, flow=OTHER_FLOW, name="Other")
    async with service.client() as http:
        unknown = await http.post("/shares", json={"subject": "flow", "id": str(uuid4())})
        assert (unknown.status_code, unknown.json()["code"]) == (422, "invalid_input")
        for days in (0, 91):
            too_long = await http.post("/shares", json={"subject": "flow", "id": FLOW, "days": days})
            assert too_long.status_code == 422, days
    made = await service.share("flow", FLOW)
    assert made["title"] == "Merry"
    async with service.visitor(made) as visitor:
        shown = await visitor.get("/shared")
        view = shown.json()
        assert [one["thread_id"] for one in view["sessions"]] == [first, second]
        assert (await visitor.get("/shared/versions/v1")).status_code == 200
    async with service.client() as http:
        (listed,) = (await http.get("/shares", params={"flow": FLOW})).json()["shares"]
        assert listed["opened_on"] is not None
    for hidden in ("secretgarden", other, OTHER_FLOW, "AGENT_API_KEY"):
        assert hidden not in shown.text, hidden


async def test_a_session_that_waits_for_an_answer_is_shown_without_its_actions(service: Service) -> None:
    made = await service.share("session", await service.session("ask:marigold?"))
    async with service.visitor(made) as visitor:
        (session,) = (await visitor.get("/shared")).json()["sessions"]
    assert (session["status"], session["interrupt"]) == ("pending_interrupt", None)
    assert [one["words"] for one in session["turns"]] == ["ask:marigold?", "marigold?"]


async def test_a_link_opens_nothing_but_what_it_shows(
    service: Service, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each refusal is slower than the one before; tests/unit/api/test_access.py looks after that.
    monkeypatch.setattr(middleware, "SLOWEST_SECS", 0.0)
    session = await service.session("work:marigold end:accepted")
    await wrote(database, session)
    made = await service.share("session", session)
    values = {"session_id": session, "chatflow_id": FLOW, "label": "v1.0", "version": "v1", "share_id": made["id"]}
    tried = 0
    async with service.visitor(made) as visitor:
        for route, needed in ROUTES.items():
            method, _, path = route.partition(" ")
            address = path.format_map({**{name: str(uuid4()) for name in _names(path)}, **values})
            response = await visitor.request(method, address)
            if needed == SHARED:
                assert response.status_code == 200, (route, response.text)
            elif needed:
                assert response.status_code == 401, (route, response.text)
                tried += 1
        assert (await visitor.get("/openapi.json")).status_code == 401
        assert (await visitor.post("/mcp", json={})).status_code == 401
        # Nor for another owner.
        assert (await visitor.get("/shared", headers={"X-Owner": "legal"})).status_code == 403
    assert tried > 80
    # A key is no link.
    async with service.client() as http:
        refused = await http.get("/shared")
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


async def test_a_link_ends_by_date_by_revocation_with_its_session_and_with_its_key(
    service: Service, database: Database, database_dsn: str
) -> None:
    session = await service.session("work:marigold end:accepted")
    ended, revoked, deleted = [await service.share("session", session) for _ in range(3)]
    async with superuser(database) as connection:
        await connection.execute("UPDATE shares SET ends_at = now() WHERE id = %s", (ended["id"],))
    async with service.client() as http:
        for _ in range(2):
            assert (await http.delete(f"/shares/{revoked['id']}")).status_code == 204
        assert (await http.delete(f"/shares/{uuid4()}")).json()["code"] == "share_not_found"
        states = {one["id"]: one["active"] for one in (await http.get("/shares")).json()["shares"]}
        assert states == {ended["id"]: False, revoked["id"]: False, deleted["id"]: True}
        async with service.visitor(deleted) as visitor:
            assert (await visitor.get("/shared")).status_code == 200
        assert (await http.delete(f"/sessions/{session}")).status_code == 204
    for made in (ended, revoked, deleted):
        async with service.visitor(made) as visitor:
            gone = await visitor.get("/shared")
            assert (gone.status_code, gone.json()["code"]) == (410, "share_ended")
    async with service.client(f"Share {ended['link'].rpartition('/')[2].rpartition('.')[0]}.{'A' * 43}") as visitor:
        assert (await visitor.get("/shared")).status_code == 401
    # Nothing that opens anything is kept.
    kept = await stored_text(database_dsn)
    assert revoked["id"] in kept
    assert "eyJ" not in kept


async def test_making_revoking_and_the_first_opening_of_a_day_are_in_the_ledger(
    service: Service, database: Database
) -> None:
    session = await service.session("work:marigold end:accepted")
    made = await service.share("session", session)
    async with service.visitor(made) as visitor:
        for _ in range(3):
            assert (await visitor.get("/shared")).status_code == 200
    async with superuser(database) as connection:
        await connection.execute("UPDATE shares SET opened_on = opened_on - 1")
    async with service.visitor(made) as visitor:
        await visitor.get("/shared")
    async with service.client() as http:
        await http.delete(f"/shares/{made['id']}")
        rows = (await http.get("/audit", params={"session": session})).json()["rows"]
        assert (await http.get("/audit/verify")).json()["findings"] == []
    told = [(one["action"], one["actor"], one["key_id"]) for one in rows if one["action"].startswith("share.")]
    by_link = ("share.open", "share link", f"share:{made['id']}")
    assert told == [("share.revoke", "AGENT_API_KEY", None), by_link, by_link, ("share.create", "AGENT_API_KEY", None)]


async def test_a_link_is_never_answered_twice_and_needs_a_key_to_sign_with(service: Service, database_dsn: str) -> None:
    session = await service.session("work:marigold end:accepted")
    async with service.client() as http:
        body, header = {"subject": "session", "id": session}, {"Idempotency-Key": "once"}
        assert (await http.post("/shares", json=body, headers=header)).status_code == 201
        again = await http.post("/shares", json=body, headers=header)
        assert (again.status_code, again.json()["code"]) == (409, "answer_not_kept")
        assert len((await http.get("/shares", params={"session": session})).json()["shares"]) == 1
    server = ServerSettings(api_key=SecretStr(KEY))
    async with running_engine(database_dsn) as engine:
        unsigned = Service(create_app(load_settings(server=server), engine))
        async with unsigned.client() as http:
            refused = await http.post("/shares", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "share_not_signable")
    assert "SECRETS_KEY" in refused.json()["hint"]
