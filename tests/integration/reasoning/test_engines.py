"""Both engines through the real SDKs over HTTP, against the model stand-in."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flowise_dev_agent.devkit.standin import Failure, ModelStandIn, Reply, ToolCall
from flowise_dev_agent.errors import ModelAuthError, ModelOutputError, ModelUnavailableError
from flowise_dev_agent.reasoning import LlmReasoner, ReasoningEngine, ReasoningSettings
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Message, ToolDef
from flowise_dev_agent.reasoning.contracts import ToolCall as Call
from flowise_dev_agent.reasoning.engines import engine_for

KEY = "sk-very-secret-key-1234"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "params": {"type": "object", "additionalProperties": True}},
    "required": ["name"],
}
HELLO = [Message(role="user", content="Hello")]


def settings_for(engine: str, standin: ModelStandIn, **changes: Any) -> ReasoningSettings:
    own: dict[str, Any] = {
        "REASONING_ENGINE": engine,
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": standin.base_url_anthropic,
        "OPENAI_BASE_URL": standin.base_url_openai,
        "REASONING_MAX_RETRIES": 0,
    }
    return ReasoningSettings(**own | changes)


@pytest.fixture(params=["claude", "openai"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def engine(name: str, standin: ModelStandIn) -> AsyncIterator[ReasoningEngine]:
    made = engine_for(settings_for(name, standin))
    yield made
    await made.aclose()
    await made.aclose()


async def test_plain_answer_with_usage(engine: ReasoningEngine, standin: ModelStandIn) -> None:
    standin.script("Hello", Reply("Good day.", tokens=(120, 7)))
    response = await engine.complete(HELLO, "You are polite.")
    assert (response.text, response.truncated) == ("Good day.", False)
    assert (response.usage.model_calls, response.usage.input_tokens, response.usage.output_tokens) == (1, 120, 7)
    assert response.usage.usd > 0
    assert standin.requests[0].api_key == KEY
    assert "You are polite." in standin.requests[0].prompt


async def test_streamed_answer_is_the_same_and_comes_in_pieces(engine: ReasoningEngine, standin: ModelStandIn) -> None:
    text = "One two three four five six seven eight nine ten."
    standin.script("Hello", Reply(text, tokens=(50, 12)))
    pieces: list[str] = []
    response = await engine.complete(HELLO, "s", on_delta=pieces.append)
    assert "".join(pieces) == response.text == text
    assert len(pieces) > 1
    assert (response.usage.input_tokens, response.usage.output_tokens) == (50, 12)
    assert response.stop_reason
    assert standin.requests[0].stream


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_are_offered_and_called(streamed: bool, engine: ReasoningEngine, standin: ModelStandIn) -> None:
    standin.script("Hello", Reply("Looking.", tool_calls=(ToolCall("flowise__get_node", {"name": "x"}, "call_1"),)))
    tool = ToolDef(name="flowise__get_node", description="One node.", parameters={"type": "object", "properties": {}})
    on_delta = [].append if streamed else None
    response = await engine.complete(HELLO, "s", (tool,), on_delta=on_delta)
    assert response.tool_calls == (Call(id="call_1", name="flowise__get_node", arguments={"name": "x"}),)
    turns = [
        *HELLO,
        Message(role="assistant", content="Looking.", tool_calls=response.tool_calls),
        Message(role="tool", content="It is a node.", tool_call_id="call_1"),
    ]
    await engine.complete(turns, "s", (tool,))
    assert [message.role for message in standin.requests[-1].messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_structured_output_keeps_open_objects(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    value = {"name": "chatOpenAI", "params": {"temperature": 0.2, "text": "Grüße 😀"}}

    def answer(request: Any) -> Reply:
        return Reply(tool_calls=(ToolCall(request.forced_tool, value),)) if request.forced_tool else Reply(json=value)

    standin.script("Hello", answer)
    pieces: list[str] = []
    response = await engine.complete(HELLO, "s", output_schema=SCHEMA, on_delta=pieces.append if streamed else None)
    assert json.loads(response.text) == value
    assert response.tool_calls == ()
    assert ("".join(pieces) != "") is streamed
    sent = standin.requests[0]
    schema = sent.tools[0].schema if sent.forced_tool else sent.json_schema
    assert schema == SCHEMA


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, ModelAuthError, "refuses the key"),
        (404, ModelAuthError, "does not know this model"),
        (400, ModelOutputError, "refuses the request"),
        (429, ModelUnavailableError, "limits the rate"),
        (500, ModelUnavailableError, "HTTP 500"),
        (529, ModelUnavailableError, "HTTP 529"),
    ],
)
async def test_refusals_become_errors_without_the_key(
    status: int, error: type[Exception], said: str, streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", Failure.http(status, f"no, not with {KEY} at all"))
    with pytest.raises(error, match=said) as caught:
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    text = f"{caught.value} {caught.value!r} {caught.value.as_problem()}"  # type: ignore[attr-defined]
    assert KEY not in text
    assert "not with *** at all" in text
    assert engine.model_id() in text


async def test_rate_limit_is_retried_by_the_sdk_and_nowhere_else(name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", Failure.http(429, retry_after=0), times=2)
    standin.script("Hello", Reply("Now."))
    engine = engine_for(settings_for(name, standin, REASONING_MAX_RETRIES=2))
    assert (await engine.complete(HELLO, "s")).text == "Now."
    assert len(standin.requests) == 3
    standin.script("Bye", Failure.http(500))
    no_retries = engine_for(settings_for(name, standin))
    with pytest.raises(ModelUnavailableError):
        await no_retries.complete([Message(role="user", content="Bye")], "s")
    assert len(standin.requests) == 4
    await engine.aclose()
    await no_retries.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_silent_provider_costs_the_timeout_and_no_more(streamed: bool, name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", Failure.hang())
    engine = engine_for(settings_for(name, standin, REASONING_TIMEOUT_SECS=0.3, REASONING_MAX_RETRIES=2))
    async with asyncio.timeout(3):
        with pytest.raises(ModelUnavailableError, match=r"within 0\.3 s"):
            await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    await engine.aclose()


async def test_unreachable_provider_is_named(name: str, standin: ModelStandIn) -> None:
    closed = "http://127.0.0.1:9"
    engine = engine_for(settings_for(name, standin, ANTHROPIC_BASE_URL=closed, OPENAI_BASE_URL=closed))
    with pytest.raises(ModelUnavailableError, match="cannot be reached"):
        await engine.complete(HELLO, "s")
    await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_connection_that_breaks_is_unavailable(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", Failure.drop())
    with pytest.raises(ModelUnavailableError):
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)


@pytest.mark.parametrize("streamed", [False, True])
async def test_malformed_answer_is_an_output_error(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", Failure.malformed())
    with pytest.raises(ModelOutputError, match="not an answer of its API"):
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)


@pytest.mark.parametrize("streamed", [False, True])
async def test_p05_answer_cut_by_the_limit_says_so(
    streamed: bool, name: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    reason = "max_tokens" if name == "claude" else "length"
    standin.script("Hello", Reply('{"ops": [', stop_reason=reason))
    response = await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    assert response.truncated


async def test_p62_surrogates_and_nul_do_not_reach_the_wire_or_us(
    engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", Reply("a\x00b"))
    response = await engine.complete([Message(role="user", content="Hello \ud800\x00")], "s\udfff")
    assert response.text == "a\ufffdb"
    assert "\x00" not in standin.requests[0].prompt


async def test_calls_in_parallel_are_bounded(name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", Reply("ok", delay=0.2))
    engine = engine_for(settings_for(name, standin, REASONING_MAX_PARALLEL_CALLS=2))
    running = [asyncio.create_task(engine.complete(HELLO, "s")) for _ in range(4)]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    assert len(standin.requests) <= 3
    await asyncio.gather(*running)
    assert len(standin.requests) == 4
    await engine.aclose()


async def test_p80_claude_gets_no_temperature_and_a_cached_prefix(standin: ModelStandIn) -> None:
    engine = engine_for(settings_for("claude", standin))
    await engine.complete(HELLO, "prefix", temperature=0.2)
    body = standin.requests[0].body
    assert "temperature" not in body
    assert body["system"] == [{"type": "text", "text": "prefix", "cache_control": {"type": "ephemeral"}}]
    assert body["model"] == "claude-sonnet-4-6"
    await engine.aclose()


async def test_claude_that_cannot_be_forced_is_asked_in_words_from_then_on(standin: ModelStandIn) -> None:
    standin.script(lambda request: bool(request.forced_tool), Failure.http(400, "tool_choice: not with this model"))
    standin.script("Hello", Reply(json={"name": "x"}))
    engine = engine_for(settings_for("claude", standin))
    for _ in range(2):
        assert json.loads((await engine.complete(HELLO, "s", output_schema=SCHEMA)).text) == {"name": "x"}
    assert [bool(request.forced_tool) for request in standin.requests] == [True, False, False]
    assert '"required":["name"]' in standin.requests[-1].prompt
    await engine.aclose()


def picky(request: Any) -> Reply | Failure:
    """Refuses one option after another, each with its own words."""
    body = request.body
    if "temperature" in body:
        return Failure.http(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
    if "max_tokens" in body:
        return Failure.http(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if (body.get("response_format") or {}).get("type"):
        return Failure.http(400, "response_format is not supported here")
    if "stream_options" in body:
        return Failure.http(422, "stream_options: extra fields not permitted")
    return Reply(json={"name": "x"})


async def test_compatible_server_gets_what_it_takes_and_is_asked_once_for_the_rest(standin: ModelStandIn) -> None:
    standin.script("Hello", picky)
    engine = engine_for(settings_for("openai", standin))
    for _ in range(2):
        response = await engine.complete(HELLO, "s", temperature=0.2, output_schema=SCHEMA, on_delta=[].append)
        assert json.loads(response.text) == {"name": "x"}
    assert len(standin.requests) == 7
    assert '"required":["name"]' in standin.requests[-1].prompt
    await engine.aclose()


async def test_a_refusal_that_a_parallel_call_has_met_too_costs_neither_of_them_its_answer(
    standin: ModelStandIn,
) -> None:
    standin.script("Hello", picky)
    engine = engine_for(settings_for("openai", standin))
    calls = [engine.complete(HELLO, "s", temperature=0.2, output_schema=SCHEMA) for _ in range(3)]
    assert [json.loads(response.text) for response in await asyncio.gather(*calls)] == [{"name": "x"}] * 3
    await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_reasoner_recovers_from_a_bad_first_answer_over_the_wire(
    streamed: bool, name: str, standin: ModelStandIn
) -> None:
    good = {"operation": "create", "ambiguity": 1, "title": "Support chatbot"}
    standin.script("A chatbot", Reply("Sure, I can do that!"), times=1)
    standin.script("could not be used", Reply(json=good))
    settings = settings_for(name, standin)
    reasoner = LlmReasoner(engine_for(settings), settings)
    pieces: list[str] = []
    request = ClassifyRequest(requirement="A chatbot", on_delta=pieces.append if streamed else None)
    result = await reasoner.classify(request)
    assert (result.value.title, result.tries, result.usage.model_calls) == ("Support chatbot", 2, 2)
    assert bool(pieces) is streamed
    await reasoner.aclose()
