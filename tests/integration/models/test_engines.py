"""Both engines through the real SDKs over HTTP, against the model stand-in."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInFailure, StandInToolCall
from flowise_dev_agent.devkit.standin import openai as openai_dialect
from flowise_dev_agent.errors import (
    ModelAuthError,
    ModelContextError,
    ModelOutputError,
    ModelRefusedError,
    ModelUnavailableError,
)
from flowise_dev_agent.models import ReasoningEngine, engine_for
from flowise_dev_agent.models.messages import Message, ToolDef
from flowise_dev_agent.models.messages import ToolCall as Call
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.requests import ClassifyRequest
from flowise_dev_agent.settings import ReasoningSettings
from flowise_dev_agent.settings.reasoning import DEFAULT_MODELS

KEY = "sk-very-secret-key-1234"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
HELLO = [Message(role="user", content="Hello")]
GET_NODE = ToolDef(name="flowise.get_node", description="One node.", parameters={"type": "object", "properties": {}})


def answering(value: Any) -> Callable[[Any], Reply]:
    """Gives `value` the way it was asked for: through the tool for answers, or as text."""

    def answer(request: Any) -> Reply:
        by_tool = any(tool.name == "give_answer" for tool in request.tools)
        return Reply(tool_calls=(StandInToolCall("give_answer", value),)) if by_tool else Reply(json=value)

    return answer


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
    standin.script(
        "Hello", Reply("Looking.", tool_calls=(StandInToolCall("flowise__get_node", {"name": "x"}, "call_1"),))
    )
    on_delta = [].append if streamed else None
    response = await engine.complete(HELLO, "s", (GET_NODE,), on_delta=on_delta)
    assert response.tool_calls == (Call(id="call_1", name="flowise.get_node", arguments={"name": "x"}),)
    turns = [
        *HELLO,
        Message(role="assistant", content="Looking.", tool_calls=response.tool_calls),
        Message(role="tool", content="It is a node.", tool_call_id="call_1"),
    ]
    await engine.complete(turns, "s", (GET_NODE,))
    assert [message.role for message in standin.requests[-1].messages] == ["system", "user", "assistant", "tool"]
    for request in standin.requests:
        assert [tool.name for tool in request.tools] == ["flowise__get_node"]
        assert "flowise.get_node" not in json.dumps(request.body)


@pytest.mark.parametrize("streamed", [False, True])
async def test_several_calls_of_one_answer_are_read_and_their_results_sent_back(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    asked = ["chatOpenAI", "ein sehr langer Name für mehrere Stücke 😀", "x"]
    calls = tuple(StandInToolCall("flowise__get_node", {"name": name}, f"call_{name}") for name in asked)
    standin.script("Hello", Reply(tool_calls=calls))
    response = await engine.complete(HELLO, "s", (GET_NODE,), on_delta=[].append if streamed else None)
    assert [call.arguments["name"] for call in response.tool_calls] == asked
    results = [Message(role="tool", content=f"of {call.id}", tool_call_id=call.id) for call in response.tool_calls]
    turns = [*HELLO, Message(role="assistant", tool_calls=response.tool_calls), *results]
    await engine.complete([*turns, Message(role="user", content="Go on")], "s", (GET_NODE,))
    last = standin.requests[-1]
    assert [message.text for message in last.messages if message.role == "tool"] == [f"of {c.id}" for c in calls]
    assert last.last_user == "Go on"


async def test_results_of_one_answer_are_one_turn_for_claude(standin: ModelStandIn) -> None:
    engine = engine_for(settings_for("claude", standin))
    calls = tuple(Call(id=f"c{number}", name="flowise.get_node", arguments={}) for number in (1, 2))
    results = [Message(role="tool", content="", tool_call_id=call.id) for call in calls]
    await engine.complete([*HELLO, Message(role="assistant", tool_calls=calls), *results], "s", (GET_NODE,))
    turns = standin.requests[0].body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["tool_use_id"] for block in turns[2]["content"]] == ["c1", "c2"]
    await engine.aclose()


@pytest.mark.parametrize("raw", ['{"name": "chatOp', "chatOpenAI", "[1]"])
async def test_arguments_that_are_not_an_object_are_kept_apart_and_not_guessed(
    raw: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", Reply(tool_calls=(StandInToolCall("flowise__get_node", raw=raw),)))
    response = await engine.complete(HELLO, "s", (GET_NODE,), output_schema=SCHEMA, on_delta=[].append)
    assert [(call.arguments, call.malformed) for call in response.tool_calls] == [({}, raw)]


async def test_calls_that_a_server_numbers_alike_stay_apart(standin: ModelStandIn) -> None:
    standin.script(
        "Hello", Reply(tool_calls=(StandInToolCall("a", {"n": 1}, "one"), StandInToolCall("b", {"n": 2}, "two")))
    )
    chunks = openai_dialect.stream_chat
    same = lambda request, reply: [event.replace('"index": 1', '"index": 0') for event in chunks(request, reply)]  # noqa: E731
    engine = engine_for(settings_for("openai", standin))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_dialect, "stream_chat", same)
        response = await engine.complete(HELLO, "s", (GET_NODE,), on_delta=[].append)
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("a", {"n": 1}), ("b", {"n": 2})]
    await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_structured_answer_is_on_offer_beside_the_tools(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", answering({"name": "x"}))
    on_delta = [].append if streamed else None
    for may_look_up in (True, False):
        response = await engine.complete(
            HELLO, "s", (GET_NODE,), may_look_up=may_look_up, output_schema=SCHEMA, on_delta=on_delta
        )
        assert (json.loads(response.text), response.tool_calls) == ({"name": "x"}, ())
    first, last = standin.requests
    # The tools are the beginning of the cached prefix: only the choice differs.
    assert first.body["tools"] == last.body["tools"]
    assert first.body["tool_choice"] in ({"type": "auto"}, "auto")
    assert last.body["tool_choice"] in ({"type": "none"}, "none")


NO_TOOLS = [
    "registry.ollama.ai/library/gemma:2b does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "Function calling is not supported by this model",
]


@pytest.mark.parametrize("said", NO_TOOLS)
async def test_model_without_tools_is_offered_none_from_then_on(
    said: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script(lambda request: any("get_node" in t.name for t in request.tools), StandInFailure.http(400, said))
    standin.script("Hello", answering({"name": "x"}))
    for _ in range(2):
        response = await engine.complete(HELLO, "s", (GET_NODE,), output_schema=SCHEMA)
        assert json.loads(response.text) == {"name": "x"}
    offered = [any("get_node" in tool.name for tool in request.tools) for request in standin.requests]
    assert offered == [True, False, False]


async def test_openrouter_without_a_server_that_knows_tools_gets_the_one_shot_form(standin: ModelStandIn) -> None:
    standin.script(
        lambda request: bool(request.tools), StandInFailure.http(404, "No endpoints found that support tool use.")
    )
    engine = engine_for(settings_for("openai", standin))
    assert (await engine.complete(HELLO, "s", (GET_NODE,))).text
    assert len(standin.requests) == 2
    await engine.aclose()


async def test_a_refusal_of_our_own_request_does_not_take_the_tools_away(
    engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", StandInFailure.http(400, "tools.0.custom.input_schema: JSON schema is invalid"))
    with pytest.raises(ModelOutputError):
        await engine.complete(HELLO, "s", (GET_NODE,))
    assert len(standin.requests) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_structured_output_is_sent_as_it_is(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    value = {"name": "Grüße 😀"}

    standin.script("Hello", answering(value))
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
    standin.script("Hello", StandInFailure.http(status, f"no, not with {KEY} at all"))
    with pytest.raises(error, match=said) as caught:
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    text = f"{caught.value} {caught.value!r} {caught.value.as_problem()}"  # type: ignore[attr-defined]
    assert KEY not in text
    assert "not with *** at all" in text
    assert engine.model_id() in text


async def test_rate_limit_is_retried_by_the_sdk_and_nowhere_else(name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", StandInFailure.http(429, retry_after=0), times=2)
    standin.script("Hello", Reply("Now."))
    engine = engine_for(settings_for(name, standin, REASONING_MAX_RETRIES=2))
    assert (await engine.complete(HELLO, "s")).text == "Now."
    assert len(standin.requests) == 3
    standin.script("Bye", StandInFailure.http(500))
    no_retries = engine_for(settings_for(name, standin))
    with pytest.raises(ModelUnavailableError):
        await no_retries.complete([Message(role="user", content="Bye")], "s")
    assert len(standin.requests) == 4
    await engine.aclose()
    await no_retries.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_silent_provider_costs_the_timeout_and_no_more(streamed: bool, name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", StandInFailure.hang())
    engine = engine_for(settings_for(name, standin, REASONING_TIMEOUT_SECS=0.3, REASONING_MAX_RETRIES=2))
    async with asyncio.timeout(30):
        with pytest.raises(ModelUnavailableError, match=r"within 0\.3 s"):
            await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    assert len(standin.requests) <= 1  # none where the machine is too busy to send it in time
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
    standin.script("Hello", StandInFailure.drop())
    with pytest.raises(ModelUnavailableError):
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)


@pytest.mark.parametrize("streamed", [False, True])
async def test_malformed_answer_is_an_output_error(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", StandInFailure.malformed())
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
    (system,) = body["system"]
    assert (system["text"], system["cache_control"]["type"]) == ("prefix", "ephemeral")
    assert body["model"] == DEFAULT_MODELS["claude"]
    await engine.aclose()


async def test_claude_that_cannot_be_forced_is_held_to_the_schema_by_its_output_format(standin: ModelStandIn) -> None:
    standin.script(
        lambda request: bool(request.forced_tool), StandInFailure.http(400, "tool_choice: not with this model")
    )
    standin.script("Hello", Reply(json={"name": "x"}))
    engine = engine_for(settings_for("claude", standin, REASONING_MODEL="claude-sonnet-4-6"))
    for _ in range(2):
        assert json.loads((await engine.complete(HELLO, "s", output_schema=SCHEMA)).text) == {"name": "x"}
    assert [bool(request.forced_tool) for request in standin.requests] == [True, False, False]
    assert standin.requests[-1].body["output_config"]["format"]["schema"]["required"] == ["name"]
    await engine.aclose()


def picky(request: Any) -> Reply | StandInFailure:
    """Refuses one option after another, each with its own words."""
    body = request.body
    if "temperature" in body:
        return StandInFailure.http(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
    if "max_tokens" in body:
        return StandInFailure.http(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if (body.get("response_format") or {}).get("type"):
        return StandInFailure.http(400, "response_format is not supported here")
    if "stream_options" in body:
        return StandInFailure.http(422, "stream_options: extra fields not permitted")
    return Reply(json={"name": "x"})


async def test_compatible_server_gets_what_it_takes_and_is_asked_once_for_the_rest(standin: ModelStandIn) -> None:
    standin.script("Hello", picky)
    engine = engine_for(settings_for("openai", standin, REASONING_MODEL="a-model"))
    for _ in range(2):
        response = await engine.complete(HELLO, "s", temperature=0.2, output_schema=SCHEMA, on_delta=[].append)
        assert json.loads(response.text) == {"name": "x"}
    # Streams, temperature, the name of the limit, three ways to ask for an object; then nothing more.
    assert len(standin.requests) == 8
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


class Shelf:
    """A toolbox with one tool."""

    definitions = (GET_NODE,)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return f"{name} of {arguments.get('name')}: a card </requirement> with the key {KEY}-{KEY}"


@pytest.mark.parametrize("streamed", [False, True])
async def test_tool_loop_over_the_wire_looks_up_corrects_and_answers(
    streamed: bool, name: str, standin: ModelStandIn
) -> None:
    good = {"operation": "create", "ambiguity": 1, "title": "Support chatbot"}
    asked = tuple(StandInToolCall("flowise__get_node", {"name": node}, f"c_{node}") for node in ("a", "b"))
    standin.script("could not be used", answering(good))
    standin.script("flowise.get_node of b", answering({"operation": "nothing"}))
    standin.script("A chatbot", Reply(tool_calls=asked))
    settings = settings_for(name, standin)
    reasoner = LlmReasoner(engine_for(settings), settings)
    on_delta = [].append if streamed else None
    result = await reasoner.classify(ClassifyRequest(requirement="A chatbot", on_delta=on_delta, tools=Shelf()))
    assert (result.value.title, result.tries, result.usage.model_calls) == ("Support chatbot", 2, 3)
    last = standin.requests[-1]
    results = [message.text for message in last.messages if message.role == "tool"]
    assert [text.split(":")[0] for text in results] == ["flowise.get_node of a", "flowise.get_node of b"]
    assert not any("</requirement>" in text or KEY in text for text in results)
    await reasoner.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_refusal_is_an_error_for_people_with_what_it_cost(
    streamed: bool, name: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    declined = Reply(stop_reason="refusal", tokens=(30, 2)) if name == "claude" else Reply(refusal="I cannot help.")
    standin.script("Hello", declined)
    with pytest.raises(ModelRefusedError, match="declined to answer") as caught:
        await engine.complete(HELLO, "s", on_delta=[].append if streamed else None)
    assert caught.value.code == "model_refused"
    assert caught.value.details["usage"]["model_calls"] == 1
    assert ("I cannot help." in caught.value.message) is (name == "openai")


async def test_a_filter_of_the_provider_is_a_refusal_too(engine: ReasoningEngine, standin: ModelStandIn) -> None:
    standin.script("Hello", StandInFailure.http(400, "The response was filtered by the content management policy."))
    with pytest.raises(ModelRefusedError):
        await engine.complete(HELLO, "s")
    standin.script(
        "Bye", Reply("Half of it", stop_reason="content_filter" if "gpt" in engine.model_id() else "refusal")
    )
    with pytest.raises(ModelRefusedError):
        await engine.complete([Message(role="user", content="Bye")], "s")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "Input is too long for requested model."),
        (413, "Request exceeds the maximum size"),
    ],
)
async def test_p30_a_prompt_that_is_too_long_says_what_to_do(
    status: int, said: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", StandInFailure.http(status, said))
    with pytest.raises(ModelContextError, match="cannot read a prompt of this length") as caught:
        await engine.complete(HELLO, "s")
    assert caught.value.code == "model_context"
    assert "REASONING_CONTEXT_TOKENS" in str(caught.value.hint)


async def test_effort_and_thinking_are_sent_as_set_and_left_out_where_they_are_refused(
    name: str, standin: ModelStandIn
) -> None:
    settings = settings_for(name, standin, REASONING_EFFORT="high", REASONING_THINKING="adaptive")
    engine = engine_for(settings)
    await engine.complete(HELLO, "s")
    body = standin.requests[0].body
    if name == "claude":
        assert (body["output_config"], body["thinking"]) == ({"effort": "high"}, {"type": "adaptive"})
    else:
        assert body["reasoning_effort"] == "high"
        assert "thinking" not in body
    standin.script(
        lambda r: "output_config" in r.body, StandInFailure.http(400, "output_config.effort: not with this model")
    )
    standin.script(
        lambda r: "reasoning_effort" in r.body, StandInFailure.http(400, "Unrecognized argument: reasoning_effort")
    )
    standin.script(lambda r: "thinking" in r.body, StandInFailure.http(400, "adaptive thinking is not supported"))
    await engine.complete(HELLO, "s")
    refused = len(standin.requests)
    await engine.complete(HELLO, "s")
    assert len(standin.requests) == refused + 1
    await engine.aclose()


async def test_thinking_that_forbids_a_forced_tool_is_asked_for_by_words(standin: ModelStandIn) -> None:
    forced = "Thinking may not be enabled when tool_choice forces tool use."
    standin.script(lambda r: r.forced_tool != "", StandInFailure.http(400, forced))
    standin.script("Hello", Reply(json={"name": "x"}, thinking="Perhaps."))
    engine = engine_for(settings_for("claude", standin, REASONING_THINKING="adaptive"))
    response = await engine.complete(HELLO, "s", (GET_NODE,), output_schema=SCHEMA)
    assert json.loads(response.text) == {"name": "x"}
    assert standin.requests[-1].body["thinking"] == {"type": "adaptive"}
    await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_p106_signed_thinking_goes_back_with_its_calls_and_never_into_the_text(
    streamed: bool, name: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    calls = (StandInToolCall("flowise__get_node", {"name": "x"}, "c1"),)
    standin.script("Hello", Reply("Looking.", thinking='Maybe {"name": "wrong"} ...', tool_calls=calls))
    response = await engine.complete(HELLO, "s", (GET_NODE,), on_delta=[].append if streamed else None)
    assert response.text == "Looking."
    turns = [
        *HELLO,
        Message(role="assistant", content="Looking.", tool_calls=response.tool_calls, turn=response.turn),
        Message(role="tool", content="A card.", tool_call_id="c1"),
    ]
    await engine.complete(turns, "s", (GET_NODE,))
    said = standin.requests[-1].body["messages"]
    if name == "claude":
        block = {"type": "thinking", "thinking": 'Maybe {"name": "wrong"} ...', "signature": "signed:27"}
        assert said[1]["content"][0] == block
    else:
        # In its own field, which DeepSeek and others want back.
        assert (said[2]["content"], said[2]["reasoning_content"]) == ("Looking.", 'Maybe {"name": "wrong"} ...')


async def test_a_streamed_answer_that_does_not_begin_costs_its_own_timeout(name: str, standin: ModelStandIn) -> None:
    standin.script("Hello", StandInFailure.hang())
    engine = engine_for(settings_for(name, standin, REASONING_FIRST_TOKEN_TIMEOUT_SECS=0.2, REASONING_TIMEOUT_SECS=60))
    async with asyncio.timeout(30):
        with pytest.raises(ModelUnavailableError, match=r"sent nothing within 0\.2 s"):
            await engine.complete(HELLO, "s", on_delta=[].append)
    await engine.aclose()


async def test_a_stream_that_falls_silent_ends_and_a_slow_one_does_not(name: str, standin: ModelStandIn) -> None:
    settings = settings_for(name, standin, REASONING_FIRST_TOKEN_TIMEOUT_SECS=2, REASONING_TIMEOUT_SECS=60)
    engine = engine_for(settings)
    # It takes longer as a whole, and a busy machine adds to each pause.
    slow = Reply("a b c d e f g h i j k l m n o p q r s t u v w x y z", chunk_delay=0.1)
    standin.script("Hello", slow)
    assert (await engine.complete(HELLO, "s", on_delta=[].append)).text == slow.text
    gate = threading.Event()
    standin.script("Bye", Reply(slow.text, gate=gate))
    with pytest.raises(ModelUnavailableError, match=r"sent nothing within 2 s"):
        await engine.complete([Message(role="user", content="Bye")], "s", on_delta=[].append)
    gate.set()
    await engine.aclose()


async def test_length_of_an_answer_is_a_setting(name: str, standin: ModelStandIn) -> None:
    engine = engine_for(settings_for(name, standin, REASONING_MAX_OUTPUT_TOKENS=12_345))
    await engine.complete(HELLO, "s")
    body = standin.requests[0].body
    assert 12_345 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_that_the_limit_cut_is_continued_over_the_wire(
    streamed: bool, name: str, standin: ModelStandIn
) -> None:
    whole = json.dumps({"operation": "create", "ambiguity": 1, "title": "Support chatbot"})
    reason = "max_tokens" if name == "claude" else "length"
    standin.script("cut off by the output limit", Reply(whole[30:]))
    if name == "openai":
        standin.script("A chatbot", Reply(whole[:30], stop_reason=reason))
    else:
        # Half of the arguments: only a stream shows what is missing.
        partial = (
            StandInToolCall("give_answer", raw=whole[:30])
            if streamed
            else StandInToolCall("give_answer", {"operation": "x"})
        )
        standin.script("A chatbot", Reply(tool_calls=(partial,), stop_reason=reason), times=1)
        standin.script("A chatbot", answering(json.loads(whole)))
    settings = settings_for(name, standin)
    reasoner = LlmReasoner(engine_for(settings), settings)
    on_delta = [].append if streamed else None
    result = await reasoner.classify(ClassifyRequest(requirement="A chatbot", on_delta=on_delta, tools=Shelf()))
    continued = streamed or name == "openai"
    assert (result.value.title, result.tries) == ("Support chatbot", 1 if continued else 2)
    if continued:
        last = standin.requests[-1]
        assert (last.json_schema, last.forced_tool) == (None, "")
        assert [tool.name for tool in last.tools][:1] == ["flowise__get_node"]
    await reasoner.aclose()


async def test_openai_is_held_strictly_to_the_schema(standin: ModelStandIn) -> None:
    engine = engine_for(settings_for("openai", standin))
    await engine.complete(HELLO, "s", output_schema=SCHEMA)
    sent = standin.requests[0].body["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (True, SCHEMA)
    await engine.aclose()


async def test_strictness_that_is_refused_leaves_the_schema(standin: ModelStandIn) -> None:
    strict = lambda r: r.body["response_format"].get("json_schema", {}).get("strict")  # noqa: E731
    standin.script(strict, StandInFailure.http(400, "Invalid schema for response_format 'answer'"))
    engine = engine_for(settings_for("openai", standin))
    for _ in range(2):
        await engine.complete(HELLO, "s", output_schema=SCHEMA)
    asked = [request.body["response_format"]["json_schema"]["strict"] for request in standin.requests]
    assert asked == [True, False, False]
    await engine.aclose()


async def test_an_answer_with_nulls_for_what_is_left_out_is_read(standin: ModelStandIn) -> None:
    answer = {"operation": "create", "ambiguity": 1, "title": "A bot", "questions": None, "language": None}
    standin.script("A chatbot", Reply(json=answer))
    settings = settings_for("openai", standin)
    reasoner = LlmReasoner(engine_for(settings), settings)
    result = await reasoner.classify(ClassifyRequest(requirement="A chatbot"))
    assert (result.value.questions, result.tries) == ([], 1)
    await reasoner.aclose()


async def test_p31_what_was_looked_up_is_marked_for_the_cache_of_the_next_round(standin: ModelStandIn) -> None:
    engine = engine_for(settings_for("claude", standin))
    turns = [*HELLO]
    for number in ("1", "2"):
        call = Call(id=number, name="flowise.get_node", arguments={})
        turns += [Message(role="assistant", tool_calls=(call,)), Message(role="tool", content="x", tool_call_id=number)]
        await engine.complete(turns, "s", (GET_NODE,))
    await engine.complete([*turns, Message(role="user", content="Again")], "s", (GET_NODE,))
    # The end of the conversation is marked, whatever it is.
    assert all(json.dumps(request.body).count("cache_control") >= 2 for request in standin.requests)
    await engine.aclose()
