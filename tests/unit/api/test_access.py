"""Keys and their scopes, the headers of the browser, the rate limit."""

import asyncio
import re
from pathlib import Path
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message

from flowise_dev_agent.api import access, limits, middleware
from flowise_dev_agent.api.routes import page
from flowise_dev_agent.caller import ALL_SCOPES, Caller, Scope, with_implied
from flowise_dev_agent.errors import DatabaseUnavailableError
from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble

KEY = {"Authorization": "Bearer s3cret"}
#: All that may be seen without a key. A new public path must be added here on purpose.
PUBLIC = {
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/live"),
    ("GET", "/ready"),
    ("GET", "/assets"),
    ("GET", "/auth/sign-in"),
    ("GET", "/auth/callback"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
}
STARTS = ["/sessions", "/sessions/stream"]


def routes(app: FastAPI) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for context in iter_route_contexts(app.routes):
        path = getattr(context, "path", None) or vars(context.route)["path"]
        methods = getattr(context, "methods", None) or getattr(context.route, "methods", None) or {"GET"}
        found |= {(method, path) for method in methods if method != "HEAD"}
    return found


@pytest.mark.usefixtures("built_page")
async def test_p66_every_route_asks_for_the_key(make_app: MakeApp, engine: EngineDouble) -> None:
    app = make_app(api_key="s3cret")
    walked = routes(app)
    assert {("POST", "/sessions"), ("GET", "/openapi.json"), ("GET", "/health"), ("GET", "/ready")} <= walked
    assert ("GET", "/sessions/{session_id}/stream") in walked
    assert walked >= PUBLIC
    async with client_of(app) as http:
        for method, path in sorted(walked - PUBLIC):
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Bearer s3cretive"},
                {"Authorization": "Basic s3cret"},
            ):
                address = path.replace("{session_id}", str(uuid4())).replace("{delivery_id}", str(uuid4()))
                response = await http.request(method, address, headers=headers)
                assert response.status_code == 401, (method, path, headers)
                assert response.json()["code"] == "unauthorized"
                assert response.headers["www-authenticate"].startswith("Bearer")
    assert engine.service.calls == []


@pytest.mark.usefixtures("built_page")
async def test_p66_paths_that_do_not_exist_ask_for_the_key_too(make_app: MakeApp) -> None:
    async with client_of(make_app(api_key="s3cret")) as http:
        for path in ("/nowhere", "/assetsx", "/live/", "/ASSETS/app.js"):
            assert (await http.get(path)).status_code == 401, path
        assert (await http.post("/")).status_code == 401
        assert (await http.get("/assets/..%2f..%2f__init__.py")).status_code == 404


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "])
async def test_the_right_key_opens(make_app: MakeApp, header: str) -> None:
    async with client_of(make_app(api_key="s3cret")) as http:
        assert (await http.get("/sessions", headers={"Authorization": header})).status_code == 200


async def test_the_public_paths_need_no_key(make_app: MakeApp, built_page: Path) -> None:
    asset = next((built_page / "assets").iterdir()).name
    async with client_of(make_app(api_key="s3cret")) as http:
        for path in ("/", "/live", f"/assets/{asset}"):
            assert (await http.get(path)).status_code == 200, path
        assert (await http.get("/docs")).headers["location"] == "./#/api"


@pytest.mark.usefixtures("built_page")
async def test_p70_the_page_loads_nothing_from_elsewhere(make_app: MakeApp) -> None:
    async with client_of(make_app()) as http:
        response = await http.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "//" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_files_of_the_page_are_kept_and_the_page_itself_is_asked_for_anew(
    make_app: MakeApp, built_page: Path
) -> None:
    asset = next((built_page / "assets").iterdir()).name
    async with client_of(make_app()) as http:
        assert (await http.get("/")).headers["cache-control"] == "no-cache"
        assert "immutable" in (await http.get(f"/assets/{asset}")).headers["cache-control"]


async def test_files_of_the_page_travel_compressed(make_app: MakeApp, built_page: Path) -> None:
    script = max((built_page / "assets").glob("*.js"), key=lambda path: path.stat().st_size)
    async with client_of(make_app()) as http:
        for path in (f"/assets/{script.name}", "/"):
            sizes: list[int] = []
            for asked, coding in (("br, gzip", "br"), ("gzip, br;q=0", "gzip"), ("identity", None)):
                response = await http.get(path, headers={"Accept-Encoding": asked})
                assert response.headers.get("content-encoding") == coding
                assert response.headers["vary"] == "Accept-Encoding"
                assert response.headers["content-type"].startswith("text/")
                sizes.append(int(response.headers["content-length"]))
            assert sizes == sorted(sizes)
            kept = {"Accept-Encoding": "identity", "If-None-Match": response.headers["etag"]}
            again = await http.get(path, headers=kept)
            assert (again.status_code, again.content) == (304, b"")


async def test_without_a_build_the_page_says_how_to_make_one(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "STATIC_DIR", tmp_path / "static")
    async with client_of(make_app()) as http:
        response = await http.get("/")
        assert (response.status_code, "make web" in response.text) == (503, True)
        assert (await http.get("/assets/app.js")).status_code == 404
        assert (await http.get("/openapi.json")).status_code == 200


async def test_answers_of_the_api_are_not_kept_by_caches(make_app: MakeApp) -> None:
    async with client_of(make_app()) as http:
        assert (await http.get("/sessions")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", STARTS)
async def test_p65_starts_are_limited_and_both_ways_share_one_count(
    make_app: MakeApp, engine: EngineDouble, path: str
) -> None:
    engine.service.ended.set()
    async with client_of(make_app(rate_limit_sessions_per_min=2)) as http:
        for allowed in STARTS:
            assert (await http.post(allowed, json={"requirement": "x"})).status_code in {200, 202}
        response = await http.post(path, json={"requirement": "x"})
    assert (response.status_code, response.json()["code"]) == (429, "rate_limited")
    assert 0 < int(response.headers["retry-after"]) <= 60


async def test_p65_zero_is_off(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.service.ended.set()
    async with client_of(make_app(rate_limit_sessions_per_min=0)) as http:
        responses = await asyncio.gather(*(http.post(STARTS[i % 2], json={"requirement": "x"}) for i in range(30)))
    assert {response.status_code for response in responses} == {200, 202}


async def test_p65_nothing_else_is_limited(make_app: MakeApp, engine: EngineDouble) -> None:
    session_id = uuid4()
    engine.service.settle(session_id)
    async with client_of(make_app(rate_limit_sessions_per_min=1)) as http:
        for _ in range(3):
            assert (await http.get("/sessions")).status_code == 200
            assert (await http.post(f"/sessions/{session_id}/resume", json={"response": "x"})).status_code == 202
            assert (await http.post("/sessions", json={})).status_code == 422


async def test_p65_with_a_key_the_count_is_the_keys(make_app: MakeApp) -> None:
    app = make_app(rate_limit_sessions_per_min=1, api_key="s3cret")
    async with client_of(app, headers=KEY) as http:
        assert (await http.post("/sessions", json={"requirement": "x"})).status_code == 202
        assert (await http.post("/sessions", json={"requirement": "x"})).status_code == 429
        other_spelling = {"Authorization": "bearer  s3cret"}
        assert (await http.post("/sessions", json={"requirement": "x"}, headers=other_spelling)).status_code == 429


async def test_wrong_keys_are_logged_and_wait_longer_each_time(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []

    async def sleep(secs: float) -> None:
        waits.append(secs)

    monkeypatch.setattr(middleware, "SLOWEST_SECS", 2.0)
    monkeypatch.setattr(middleware, "sleep", sleep)
    async with client_of(make_app(api_key="s3cret")) as http:
        for _ in range(101):
            assert (await http.get("/sessions", headers={"Authorization": "Bearer guess"})).status_code == 401
    assert waits[:5] == [0] * 5
    assert waits[5:] == sorted(waits[5:])
    assert (waits[5], waits[-1]) == (0.1, 2.0)
    logged = [record.getMessage() for record in caplog.records if "wrong key" in record.getMessage()]
    assert [line.split()[0] for line in logged] == ["1", "101"]
    assert "guess" not in caplog.text


async def test_p65_questions_to_flows_are_limited(make_app: MakeApp) -> None:
    path = f"/flows/{uuid4()}/chat"
    async with client_of(make_app(rate_limit_chat_per_min=2)) as http:
        responses = [await http.post(path, json={"question": "hi"}) for _ in range(3)]
    assert [response.status_code == 429 for response in responses] == [False, False, True]
    assert (responses[2].json()["code"], responses[2].headers["retry-after"]) == ("rate_limited", "60")


@pytest.mark.parametrize("depth", [33, 300, 3_000, 100_000])
async def test_an_answer_nested_too_deeply_is_a_clear_422(make_app: MakeApp, engine: EngineDouble, depth: int) -> None:
    engine.service.settle(session := uuid4())
    body = '{"interrupt_id": "i", "answer": {"a": ' + "[" * depth + "]" * depth + "}}"
    async with client_of(make_app()) as http:
        response = await http.post(
            f"/sessions/{session}/resume", content=body, headers={"Content-Type": "application/json"}
        )
    assert response.status_code in ({422} if depth < 1_000 else {400, 422})
    assert len(response.text) < 2_000
    if response.status_code == 422:
        assert "nested deeper than 32 levels" in response.json()["detail"]


async def test_a_body_that_never_arrives_is_given_up(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECS", 0.05)
    sent: list[Message] = []
    messages: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/sessions",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "scheme": "http",
        "http_version": "1.1",
    }
    await make_app()(scope, receive, send)
    assert sent[0]["status"] == 408


def test_every_route_declares_its_scope(make_app: MakeApp) -> None:
    # The document of the API and `/mcp` need a key of any kind; each call of a tool is a request to a route.
    walked = routes(make_app()) - {("GET", "/openapi.json"), ("POST", "/mcp"), ("GET", "/assets")}
    assert {f"{method} {path}" for method, path in walked} == set(access.ROUTES)
    free = {f"{method} {path}" for method, path in PUBLIC} - {"GET /assets"}
    assert {route for route, needed in access.ROUTES.items() if not needed} == free | {"POST /auth/sign-out"}


def caller_with(*scopes: Scope) -> Caller:
    return Caller(f"with {scopes}", with_implied(scopes), key_id="1")


@pytest.mark.parametrize("scope", ["read", "build", "approve", "admin"])
async def test_each_route_opens_for_its_scopes_and_answers_403_to_others(
    make_app: MakeApp, engine: EngineDouble, scope: Scope
) -> None:
    engine.keys.callers["fda_one"] = caller_with(scope)
    may = with_implied([scope])
    async with client_of(make_app(api_key="s3cret"), headers={"Authorization": "Bearer fda_one"}) as http:
        for route, needed in access.ROUTES.items():
            method, path = route.split()
            if method == "GET" and "/stream" in path:
                continue  # answers as long as the session runs
            address = re.sub(r"\{[a-z_]*id\}", str(uuid4()), path).replace("{sha256}", "0" * 64)
            response = await http.request(method, re.sub(r"\{[a-z_]+\}", "v1.0", address))
            refused = response.status_code == 403 and response.json()["code"] == "scope_missing"
            assert refused == (bool(needed) and not may & set(needed)), (route, response.text)


async def test_a_key_that_may_not_is_told_what_it_needs(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.keys.callers["fda_one"] = Caller("ci", with_implied(["read"]), key_id="1")
    async with client_of(make_app(api_key="s3cret"), headers={"Authorization": "Bearer fda_one"}) as http:
        assert (await http.get("/sessions")).status_code == 200
        problem = (await http.post("/sessions", json={"requirement": "x"})).json()
    assert problem["code"] == "scope_missing"
    assert problem["detail"] == "The key 'ci' may not do this: it needs the scope 'build'."
    assert problem["details"] == {"needs": ["build"], "has": ["read"]}
    assert engine.service.calls[-1][0] == "list"


async def test_without_a_service_key_a_named_key_says_who_and_what_it_may(
    make_app: MakeApp, engine: EngineDouble
) -> None:
    engine.keys.callers["fda_one"] = Caller("ci", with_implied(["read"]), key_id="1")
    async with client_of(make_app()) as http:
        everyone = (await http.get("/keys/current")).json()
        named = (await http.get("/keys/current", headers={"Authorization": "Bearer fda_one"})).json()
        unknown = (await http.get("/keys/current", headers={"Authorization": "Bearer other"})).json()
    assert (
        everyone
        == unknown
        == {"name": "local", "key_id": None, "signed_in": False, "owner": "default", "scopes": sorted(ALL_SCOPES)}
    )
    assert named == {"name": "ci", "key_id": "1", "signed_in": False, "owner": "default", "scopes": ["read"]}


async def test_a_method_that_a_path_lacks_is_not_taken_for_another_route(make_app: MakeApp) -> None:
    async with client_of(make_app(api_key="s3cret")) as http:
        refused = await http.delete("/keys/current", headers=KEY)
    assert refused.status_code == 405


async def test_keys_cannot_be_looked_up_while_the_database_is_away(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.keys.failure = DatabaseUnavailableError("The database does not answer.")
    async with client_of(make_app(api_key="s3cret")) as http:
        response = await http.get("/keys/current", headers={"Authorization": "Bearer fda_one"})
        assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
        assert (await http.get("/keys/current", headers=KEY)).json()["name"] == "AGENT_API_KEY"


@pytest.mark.parametrize(
    ("headers", "door"),
    [
        ({}, "rest"),
        ({"X-Door": "cli"}, "cli"),
        ({"X-Door": "mcp"}, "mcp"),
        ({"X-Door": "webhook"}, "webhook"),
        ({"X-Door": "service"}, "rest"),
        ({"X-Door": "page"}, "rest"),
        ({"Sec-Fetch-Site": "same-origin"}, "page"),
        ({"Origin": "http://localhost"}, "page"),
    ],
)
def test_the_door_of_a_request(headers: dict[str, str], door: str) -> None:
    assert access.door_of(Headers(headers)) == door


def test_requests_are_counted_by_their_key_and_the_count_does_not_name_it(make_app: MakeApp) -> None:
    app = make_app(api_key="k")

    def counted(key: str) -> str:
        headers = [(b"authorization", f"Bearer {key}".encode())]
        return vars(limits)["_caller"](
            Request({"type": "http", "app": app, "headers": headers, "client": ("10.0.0.1", 1)})
        )

    assert counted("first-key") == counted("first-key")
    assert counted("first-key") != counted("second-key")
    assert "first-key" not in counted("first-key")


async def test_two_keys_open_while_one_replaces_the_other(make_app: MakeApp) -> None:
    async with client_of(make_app(api_key="new-key, old-key")) as http:
        for key, status in (("new-key", 200), ("old-key", 200), ("new-key, old-key", 401), ("new", 401), ("", 401)):
            assert (await http.get("/settings", headers={"Authorization": f"Bearer {key}"})).status_code == status, key


async def test_a_key_for_metrics_opens_nothing_else(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_METRICS_KEY", "gauge")
    async with client_of(make_app(api_key="s3cret")) as http:
        http.headers["Authorization"] = "Bearer gauge"
        assert (await http.get("/metrics")).status_code == 200
        for path in ("/settings", "/sessions", "/health", "/keys/current"):
            assert (await http.get(path)).status_code == 401, path
