"""The ids of a request: taken over within bounds, else made, and in every response."""

import re

import pytest

from flowise_dev_agent.observability.logs import ContextFilter
from tests.unit.api.conftest import MakeApp, client_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


async def test_every_response_has_an_id_and_a_trace_of_its_own(make_app: MakeApp) -> None:
    async with client_of(make_app(api_key="s3cret")) as http:
        responses = [await http.get(path) for path in ("/live", "/live", "/sessions", "/nowhere")]
    ids = [response.headers["x-request-id"] for response in responses]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert all(re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", one.headers["traceparent"]) for one in responses)
    assert [response.json().get("request_id") for response in responses[2:]] == ids[2:]


async def test_a_given_id_and_trace_are_taken_over(make_app: MakeApp) -> None:
    headers = {"X-Request-Id": "shop-7:a.b_c", "traceparent": TRACEPARENT}
    async with client_of(make_app()) as http:
        response = await http.get("/sessions/nonsense", headers=headers)
    assert response.headers["x-request-id"] == response.json()["request_id"] == "shop-7:a.b_c"
    version, trace, span, flags = response.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    assert span != "00f067aa0ba902b7"


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "é", "<script>", "a,b"])
async def test_an_id_that_does_not_fit_is_replaced(make_app: MakeApp, given: str) -> None:
    async with client_of(make_app()) as http:
        response = await http.get("/live", headers={"X-Request-Id": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])


@pytest.mark.parametrize(
    "given",
    ["", "00", f"ff-{TRACE}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{TRACE}-{'0' * 16}-01"],
)
async def test_a_trace_that_does_not_fit_is_replaced(make_app: MakeApp, given: str) -> None:
    async with client_of(make_app()) as http:
        response = await http.get("/live", headers={"traceparent": given})
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", response.headers["traceparent"])
    assert TRACE not in response.headers["traceparent"]


async def test_the_log_names_the_request(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(ContextFilter())
    async with client_of(make_app(api_key="s3cret"), headers={"X-Request-Id": "find-me"}) as http:
        assert (await http.get("/sessions", headers={"Authorization": "Bearer guess"})).status_code == 401
    record = next(record for record in caplog.records if "wrong key" in record.getMessage())
    assert " request=find-me" in record.context  # type: ignore[attr-defined]


async def test_a_problem_and_the_log_name_the_trace(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(ContextFilter())
    async with client_of(make_app(api_key="s3cret"), headers={"traceparent": TRACEPARENT}) as http:
        refused = await http.get("/sessions", headers={"Authorization": "Bearer guess"})
    assert refused.json()["trace_id"] == TRACE
    record = next(record for record in caplog.records if "wrong key" in record.getMessage())
    assert f" trace={TRACE}" in record.context  # type: ignore[attr-defined]
