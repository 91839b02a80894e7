"""The stand-in through the real SDKs: both dialects, plain and streamed, tools, structured output, failures."""

import json
import math
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn, RecordedRequest, StandInFailure
from flowise_dev_agent.errors import ConfigurationError

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


# The SDKs have thousands of modules: they are loaded by the tests that use them.
def openai_client(standin: ModelStandIn, **options: object) -> Any:
    import openai

    return openai.OpenAI(base_url=standin.base_url_openai, api_key="key-1", max_retries=0, **options)


def claude_client(standin: ModelStandIn, **options: object) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=standin.base_url_anthropic, api_key="key-2", max_retries=0, **options)


def test_openai_structured_output_fits_the_schema_without_a_script(standin: ModelStandIn) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
    with openai_client(standin) as client:
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Maria is 31"}], response_format=form
        )
    assert json.loads(answer.choices[0].message.content) == {"name": "Maria", "age": 31}


def test_anthropic_tool_results_and_forced_tools(standin: ModelStandIn) -> None:
    tools = [{"name": "record", "description": "r", "input_schema": SCHEMA}]
    first = [{"role": "user", "content": [{"type": "text", "text": "Maria is 31"}]}]
    with claude_client(standin) as client:
        forced = client.messages.create(
            model="c", max_tokens=9, messages=first, tools=tools, tool_choice={"type": "tool", "name": "record"}
        )
        call = forced.content[0]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "saved as 7"}]}
        then = [*first, {"role": "assistant", "content": [call.model_dump()]}, {"role": "user", "content": [result]}]
        answer = client.messages.create(model="c", max_tokens=9, messages=then, tools=tools)
    assert call.input == {"name": "Maria", "age": 31}
    assert "saved as 7" in answer.content[0].text


def test_anthropic_refuses_a_request_without_a_message(standin: ModelStandIn) -> None:
    import anthropic

    with claude_client(standin) as client, pytest.raises(anthropic.BadRequestError, match="at least one message"):
        client.messages.create(model="c", max_tokens=9, system="Write a letter.", messages=[])


def test_anthropic_structured_output_fits_the_schema_without_a_script(standin: ModelStandIn) -> None:
    with claude_client(standin) as client:
        answer = client.messages.create(
            model="c",
            max_tokens=50,
            messages=[{"role": "user", "content": "Maria is 31"}],
            output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
        )
    assert json.loads(answer.content[0].text) == {"name": "Maria", "age": 31}


@pytest.mark.parametrize("encoding", [{"encoding_format": "float"}, {}], ids=["float", "base64 by default"])
def test_similar_texts_have_near_embeddings(standin: ModelStandIn, encoding: dict[str, str]) -> None:
    texts = ["How many days to return a product?", "Products can be returned within 30 days.", "The cat sleeps."]
    with openai_client(standin) as client:
        answer = client.embeddings.create(model="e", input=texts, dimensions=512, **encoding)
    vectors = [item.embedding for item in answer.data]
    assert standin.requests[0].body["encoding_format"] == encoding.get("encoding_format", "base64")
    assert all(len(vector) == 512 and math.isclose(math.hypot(*vector), 1, abs_tol=1e-4) for vector in vectors)

    def near(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert near(vectors[0], vectors[1]) > near(vectors[0], vectors[2]) + 0.2


@pytest.mark.parametrize("stream", [True, False])
def test_scripted_failures_look_like_the_providers_own(standin: ModelStandIn, stream: bool) -> None:
    import anthropic
    import openai

    message = {"role": "user", "content": "x"}
    with openai_client(standin, timeout=0.3) as gpt, claude_client(standin, timeout=0.3) as claude:

        def ask_gpt() -> None:
            answer = gpt.chat.completions.create(model="m", messages=[message], stream=stream)
            list(answer)

        def ask_claude() -> None:
            answer = claude.messages.create(model="m", max_tokens=9, messages=[message], stream=stream)
            list(answer)

        standin.script("x", StandInFailure.http(401, "bad key"))
        with pytest.raises(openai.AuthenticationError, match="bad key"):
            ask_gpt()
        with pytest.raises(anthropic.AuthenticationError, match="bad key"):
            ask_claude()
        standin.reset()
        standin.script("x", StandInFailure.http(529, "overloaded", retry_after=3))
        with pytest.raises(anthropic.InternalServerError) as caught:
            ask_claude()
        assert caught.value.response.headers["retry-after"] == "3"
        assert caught.value.body["error"]["type"] == "overloaded_error"
        standin.reset()
        standin.script("x", StandInFailure.hang())
        with pytest.raises(openai.APITimeoutError):
            ask_gpt()
        with pytest.raises(anthropic.APITimeoutError):
            ask_claude()


@pytest.mark.parametrize("failure", [StandInFailure.drop(), StandInFailure.malformed()])
def test_broken_answers_end_in_an_error_at_once(standin: ModelStandIn, failure: StandInFailure) -> None:
    standin.script("x", failure)
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with httpx2.Client(timeout=5) as http, pytest.raises((httpx2.RemoteProtocolError, ValueError)):
        http.post(f"{standin.base_url_openai}/chat/completions", json=body).json()


def test_scripts_answer_in_order_and_run_out(standin: ModelStandIn) -> None:
    first = standin.script(lambda request: request.model == "m", "first", times=1)
    standin.script("hello", lambda request: f"I heard {request.last_user}")
    with openai_client(standin) as client:

        def ask() -> str | None:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello you"}])
            return answer.choices[0].message.content

        assert [ask(), ask()] == ["first", "I heard hello you"]
    assert first.calls == 1
    standin.reset()
    assert standin.requests == []


def test_it_says_what_it_is(standin: ModelStandIn) -> None:
    with httpx2.Client() as http:
        home = http.get(standin.endpoint)
        models = http.get(f"{standin.base_url_openai}/models")
        unknown = http.post(f"{standin.endpoint}/v1/images", json={})
    assert home.json()["service"] == "model stand-in"
    assert home.json()["model"] is False
    assert {response.headers["x-model-stand-in"] for response in (home, models, unknown)} == {"1"}
    assert (models.status_code, unknown.status_code) == (200, 404)


def test_groq_path_reaches_the_same_stand_in(standin: ModelStandIn) -> None:
    with openai_client(standin) as client:
        groq = client.with_options(base_url=f"{standin.flowise_env()['GROQ_BASE_URL']}/openai/v1")
        answer = groq.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    assert "stand-in" in answer.choices[0].message.content


def test_port_in_use_is_said(standin: ModelStandIn) -> None:
    port = int(standin.endpoint.rsplit(":", 1)[1])
    with pytest.raises(ConfigurationError, match="in use"):
        ModelStandIn(port).start()


def test_stop_ends_what_hangs_and_frees_the_port() -> None:
    import openai

    server = ModelStandIn().start()
    server.script("x", StandInFailure.hang())
    with openai_client(server, timeout=0.1) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    server.stop()
    with ModelStandIn(int(server.endpoint.rsplit(":", 1)[1])) as again:
        assert isinstance(again.requests, list)


def test_log_of_requests_is_bounded(standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    from flowise_dev_agent.devkit.standin import server

    request = RecordedRequest("openai", "chat", "/", "m", {})
    for _ in range(server._MAX_REQUESTS + 5):
        standin._answer(request)
    assert len(standin.requests) == server._MAX_REQUESTS
