"""Every error is a problem document with a stable code, and tells nothing from inside."""

import json
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent import errors
from flowise_dev_agent.api.problems import MAX_BODY_BYTES
from tests.unit.api.service_double import EngineDouble

SECRET = "sk-proj-4f9Kq2LmX7vR1tYb8NcE3wHs6JzA0dPu"


def problem(response: httpx2.Response, status: int, code: str) -> dict[str, object]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["title"]
    assert body["detail"]
    return body


async def test_unknown_paths_and_methods(http: httpx2.AsyncClient) -> None:
    body = problem(await http.get("/nowhere"), 404, "not_found")
    assert body["instance"] == "/nowhere"
    response = await http.put("/sessions", json={})
    problem(response, 405, "method_not_allowed")
    assert "POST" in response.headers["allow"]
    problem(await http.get("/sessions/"), 404, "not_found")


async def test_p64_unknown_fields_are_named(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    response = await http.post("/sessions", json={"requirement": "x", "requirment": "y", "budget": {"eur": 1}})
    body = problem(response, 422, "invalid_request")
    assert [(item["source"], item["pointer"], item["code"]) for item in body["errors"]] == [  # type: ignore[attr-defined]
        ("body", "/budget/eur", "extra_forbidden"),
        ("body", "/requirment", "extra_forbidden"),
    ]
    assert engine.service.calls == []


@pytest.mark.parametrize("requirement", ["", "   ", "x" * 32_001, None, 7])
async def test_p28_the_requirement_has_bounds(http: httpx2.AsyncClient, requirement: object) -> None:
    problem(await http.post("/sessions", json={"requirement": requirement}), 422, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        '{"requirement": "a\\u0000b"}',
        '{"requirement": "a\\ud800b"}',
        '{"requirement": "x", "a\\ud800": 1}',
        '{"requirement": "x", "a\\u0000": 1}',
        '{"requirement": "x", "test_questions": ["\\udfff"]}',
        '{"requirement": "x", "budget": {"usd": NaN}}',
        '{"requirement": "x"',
        "[]",
        '"text"',
        "null",
    ],
)
async def test_p62_text_that_cannot_be_stored_is_refused(
    http: httpx2.AsyncClient, engine: EngineDouble, body: str
) -> None:
    response = await http.post("/sessions", content=body, headers={"Content-Type": "application/json"})
    problem(response, 422, "invalid_request")
    assert engine.service.calls == []


@pytest.mark.parametrize("value", ['"\\u0000"', '"\\ud800"', '{"a\\u0000": 1}', '{"a\\udc00": 1}', "NaN", "[1e999]"])
async def test_p62_answers_that_cannot_be_stored_are_refused(
    http: httpx2.AsyncClient, engine: EngineDouble, value: str
) -> None:
    body = f'{{"interrupt_id": "i1", "answer": {{"feedback": {value}}}}}'
    path = f"/sessions/{uuid4()}/resume"
    response = await http.post(path, content=body, headers={"Content-Type": "application/json"})
    problem(response, 422, "invalid_request")
    assert engine.service.calls == []


@pytest.mark.parametrize("depth", [300, 900, 5_000, 100_000])
async def test_p62_deep_nesting_is_a_client_error(http: httpx2.AsyncClient, engine: EngineDouble, depth: int) -> None:
    body = '{"interrupt_id": "i1", "answer": {"a": ' + "[" * depth + "]" * depth + "}}"
    path = f"/sessions/{uuid4()}/resume"
    response = await http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in {400, 404, 422}, response.text
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_body_that_is_not_utf8_is_a_bad_request(http: httpx2.AsyncClient) -> None:
    response = await http.post(
        "/sessions", content=b'{"requirement": "\xff"}', headers={"Content-Type": "application/json"}
    )
    problem(response, 400, "bad_request")


async def test_a_form_is_not_taken_for_json(http: httpx2.AsyncClient) -> None:
    """A cross-site form can send text/plain without a preflight."""
    body = json.dumps({"requirement": "x"})
    problem(await http.post("/sessions", content=body, headers={"Content-Type": "text/plain"}), 422, "invalid_request")


@pytest.mark.parametrize("id_", ["x" * 10_000, "not-a-uuid", "%00", "1", "..%5c", "\N{SNOWMAN}"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_p68_odd_ids_are_refused(http: httpx2.AsyncClient, method: str, id_: str) -> None:
    body = problem(await http.request(method, f"/sessions/{id_}"), 422, "invalid_request")
    assert body["errors"][0]["source"] == "path"  # type: ignore[index]


async def test_p68_an_id_with_a_slash_is_no_route(http: httpx2.AsyncClient) -> None:
    problem(await http.delete("/sessions/a%2Fb"), 404, "not_found")


@pytest.mark.parametrize("after", ["-1", "x", str(2**63)])
async def test_a_cursor_beyond_bigint_is_refused(http: httpx2.AsyncClient, after: str) -> None:
    problem(await http.get(f"/sessions/{uuid4()}/stream?after_seq={after}"), 422, "invalid_request")
    headers = {"Last-Event-ID": after}
    problem(await http.get(f"/sessions/{uuid4()}/stream", headers=headers), 422, "invalid_request")


async def test_a_large_body_is_413_by_its_declared_length(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    body = json.dumps({"requirement": "x", "pad": "p" * MAX_BODY_BYTES})
    response = await http.post("/sessions", content=body, headers={"Content-Type": "application/json"})
    problem(response, 413, "body_too_large")
    assert engine.service.calls == []


async def test_a_large_body_is_413_as_it_arrives(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    async def chunks():
        for _ in range(80):
            yield b"p" * 4096

    response = await http.post("/sessions", content=chunks(), headers={"Content-Type": "application/json"})
    problem(response, 413, "body_too_large")
    assert engine.service.calls == []


async def test_p62_an_unexpected_error_tells_nothing(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.service.failure = RuntimeError("SELECT secret FROM internals")
    response = await http.get(f"/sessions/{uuid4()}")
    problem(response, 500, "internal_error")
    assert "SELECT" not in response.text


async def test_p62_an_error_not_meant_for_people_tells_nothing(
    http: httpx2.AsyncClient, engine: EngineDouble, caplog: pytest.LogCaptureFixture
) -> None:
    engine.service.failure = errors.LeaseLostError("epoch 3 of run 7")
    response = await http.get(f"/sessions/{uuid4()}")
    problem(response, 500, "internal_error")
    assert "epoch" not in response.text
    assert "lease_lost" in caplog.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidInputError, 422),
        (errors.InvalidAnswerError, 422),
        (errors.SessionNotFoundError, 404),
        (errors.SessionExistsError, 409),
        (errors.SessionConflictError, 409),
        (errors.DatabaseUnavailableError, 503),
        (errors.FlowiseUnreachableError, 502),
        (errors.FlowiseTimeoutError, 504),
        (errors.FlowiseServerError, 502),
        (errors.ModelUnavailableError, 502),
        (errors.AgentError, 500),
    ],
)
def test_each_error_has_its_status(error: type[errors.AgentError], status: int) -> None:
    assert error.http_status == status


async def test_openapi_declares_problems_once_and_refers_to_them(http: httpx2.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    shared = document["components"]["responses"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path == "/live":
                assert operation["security"] == []
                continue
            for status, declared in operation["responses"].items():
                if int(status) >= 400:
                    name = declared["$ref"].removeprefix("#/components/responses/")
                    assert "application/problem+json" in shared[name]["content"], (method, path, status)
            assert {"401", "422", "500", "503"} <= set(operation["responses"]), (method, path)
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert set(document["components"]["schemas"]["Problem"]["required"]) >= {"status", "code", "detail"}
    assert document["security"] == [{"key": []}]


@pytest.mark.parametrize(
    "body",
    [
        {"requirement": "x", "openai_key": SECRET},
        {"requirement": {"key": SECRET}},
        {"requirement": "x", "operation": SECRET},
        {"requirement": "x", "thread_id": SECRET},
        {"requirement": "x", "budget": {"usd": SECRET}},
        {"requirement": "x", SECRET: 1},
    ],
)
async def test_p102_a_secret_in_a_wrong_field_is_not_in_the_answer(http: httpx2.AsyncClient, body: object) -> None:
    response = await http.post("/sessions", json=body)
    problem(response, 422, "invalid_request")
    assert SECRET[8:] not in response.text
