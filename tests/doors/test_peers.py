"""The peers refuse and accept as their rules say, in the error bodies of their providers."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import reduce
from typing import Any, NamedTuple

import httpx2
import pytest

from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from tests.doors.model import Script, fitted
from tests.doors.peer import KEY, Door, Peer
from tests.doors.peers import DOORS
from tests.doors.subsets import anthropic_violations, openai_violations

LOOK_UP: dict[str, Any] = {"name": "flowise__get_node", "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": LOOK_UP}]
CALL = {"id": "call00001", "type": "function", "function": {"name": "flowise__get_node", "arguments": "{}"}}
OPEN: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
STRICT_TOOL = {"type": "function", "function": {"name": "answer", "strict": True, "parameters": OPEN}}
CLAUDE_TOOL = {"name": "answer", "input_schema": OPEN}
SCRIPT = Script({"Build": {"plan": {"name": "x", "more": 1}}})
SIGNED = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261128/eu-central-1/bedrock/aws4_request"
LONG = "word " * 1_000_000


def asked(schema: Any = CLOSED, *, strict: bool = True) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}


def chat(*turns: dict[str, Any], text: str = "Build", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}, *turns], **fields}


def turn(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **fields}


def input_of(*items: Any, text: str = "Build", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": [{"role": "user", "content": text}, *items], **fields}


def contents(*items: Any, text: str = "Build", **fields: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}, *items], **fields}


class Row(NamedTuple):
    """A request that a rule of a door refuses, and the place of the message in the error body."""

    door: str
    rule: str
    body: dict[str, Any]
    place: tuple[str | int, ...] = ("error", "message")
    status: int = 400
    key: str = KEY


_FORM = {"type": "json_schema", "name": "a", "strict": True, "schema": OPEN}
_CALLED = turn(tool_calls=[CALL])
_USE = {"type": "tool_use", "id": "t", "name": "flowise__get_node", "input": {}}
_NESTED = {"type": "object", "properties": {"a": OPEN}, "required": ["a"], "additionalProperties": False}
ROWS = [
    Row("openai", "wrong_key", chat(), status=401, key="other"),
    Row("openai", "option_temperature", chat(temperature=0.2)),
    Row("openai", "option_max_tokens", chat(max_tokens=10)),
    Row("openai", "window", chat(text=LONG)),
    Row("openai", "longest_answer", chat(max_completion_tokens=200_000)),
    Row("openai", "strict_format", chat(response_format=asked(_NESTED))),
    Row("openai", "strict_tools", chat(tools=[STRICT_TOOL], reasoning_effort="none")),
    Row("openai", "_reasons_with_tools", chat(tools=TOOLS)),
    Row("openai", "as_the_stand_in", chat(turn(role="human"))),
    Row("azure", "_reasons_with_tools", chat(tools=TOOLS, reasoning_effort="low")),
    Row("openai responses", "_strict_text", {**input_of(), "text": {"format": _FORM}}),
    Row(
        "openai responses",
        "_lacks_reasoning",
        input_of(
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "flowise__get_node", "arguments": "{}"}
        ),
    ),
    Row("anthropic", "wrong_key", chat(), status=401, key="other"),
    Row("anthropic", "no_forced_tool", chat(tools=[CLAUDE_TOOL], tool_choice={"type": "tool", "name": "answer"})),
    Row("anthropic", "_no_sampling", chat(temperature=0.2)),
    Row("anthropic", "_thinking_stays_on", chat(thinking={"type": "disabled"})),
    Row("anthropic", "_signed_thinking", chat({"role": "assistant", "content": [_USE]})),
    Row("anthropic", "_blank_text", chat({"role": "assistant", "content": ""})),
    Row("anthropic", "_closed_format", chat(output_config={"format": {"type": "json_schema", "schema": OPEN}})),
    Row("anthropic", "strict_tools", chat(tools=[{**CLAUDE_TOOL, "strict": True}])),
    Row("anthropic", "window", chat(text=LONG)),
    Row("anthropic", "longest_answer", chat(max_tokens=200_000)),
    Row("anthropic", "as_the_stand_in", chat(turn(role="system", content="Be kind"))),
    Row("bedrock", "wrong_key", chat(), ("message",), 403, "other"),
    Row("bedrock", "no_forced_tool", chat(tools=[CLAUDE_TOOL], tool_choice={"type": "any"}), ("message",)),
    Row(
        "bedrock converse",
        "longest_answer",
        {"messages": [], "inferenceConfig": {"maxTokens": 20_000}},
        ("message",),
        key=SIGNED,
    ),
    Row(
        "bedrock converse",
        "window",
        {"messages": [{"role": "user", "content": [{"text": LONG}]}]},
        ("message",),
        key=SIGNED,
    ),
    Row("gemini", "wrong_key", contents(), key="other"),
    Row(
        "gemini",
        "_signed_calls",
        contents({"role": "model", "parts": [{"functionCall": {"name": "flowise__get_node", "args": {}}}]}),
    ),
    Row("gemini", "window", contents(text=LONG)),
    Row("gemini compatible", "_signed_tool_calls", chat(_CALLED), (0, "error", "message")),
    Row("gemini compatible", "window", chat(text=LONG), (0, "error", "message")),
    Row("deepseek", "reasoning_returned", chat(_CALLED)),
    Row("deepseek", "response_types", chat(response_format=asked())),
    Row("deepseek", "_json_named", chat(response_format={"type": "json_object"})),
    Row("deepseek", "no_forced_tool", chat(tools=TOOLS, tool_choice="required")),
    Row("groq", "tools_with_schema", chat(tools=TOOLS, response_format=asked())),
    Row("groq", "_unstreamed_schema", chat(response_format=asked(), stream=True)),
    Row("groq", "strict_format", chat(response_format=asked(OPEN))),
    Row("groq", "_no_reasoning_back", chat(turn(reasoning_content="x"))),
    Row("bedrock converse", "_wrong_signer", {"messages": []}, ("message",), 403, "other"),
    Row("mistral", "empty_turn", chat(turn()), ("message",)),
    Row("mistral", "_short_ids", chat(turn(tool_calls=[{**CALL, "id": "call_long_id"}])), ("message",)),
    Row("mistral", "option_max_completion_tokens", chat(max_completion_tokens=9), ("message",), 422),
    Row("mistral", "option_stream_options", chat(stream_options={}), ("message",), 422),
    Row("openrouter", "reasoning_returned", chat(_CALLED)),
    Row("ollama", "_no_thinking", chat(reasoning_effort="high")),
    Row("lm studio", "response_types", chat(response_format={"type": "json_object"}), ("error",)),
    Row("lm studio", "window", chat(text=LONG), ("error",)),
    Row("vllm", "_vllm_window", chat(max_tokens=8_200)),
    Row("llama.cpp", "_llama_window", chat(text=LONG)),
]
PATHS = {
    "openai responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/claude/invoke",
    "bedrock converse": "/model/nova/converse",
    "azure": "/openai/deployments/m/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
    "gemini compatible": "/v1beta/openai/chat/completions",
    "openrouter": "/api/v1/chat/completions",
}


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, Peer]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Peer(door, SCRIPT)) for name, door in DOORS.items()}


@pytest.fixture(scope="module")
def direct() -> Iterator[httpx2.Client]:
    with httpx2.Client(trust_env=False, timeout=20) as client:
        yield client


def post(direct: httpx2.Client, peer: Peer, body: Any, key: str = KEY) -> httpx2.Response:
    url = peer.endpoint + PATHS.get(peer.door.name, "/v1/chat/completions")
    return direct.post(url, json=body, headers={"Authorization": key if key == SIGNED else f"Bearer {key}"})


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.door}-{row.rule}" for row in ROWS])
def test_a_rule_refuses_in_the_words_and_the_body_of_its_door(
    row: Row, peers: dict[str, Peer], direct: httpx2.Client
) -> None:
    peer = peers[row.door]
    answer = post(direct, peer, row.body, row.key)
    refused = peer.log[-1]
    assert (answer.status_code, refused.rule) == (row.status, row.rule), answer.text
    assert refused.refusal is not None
    said: Any = reduce(lambda found, step: found[step], row.place, answer.json())
    assert said == refused.refusal.message


def test_each_rule_has_a_request_that_it_refuses() -> None:
    tried = {(row.door, row.rule) for row in ROWS}
    # Rules that several doors share are tried at one of them.
    shared = {rule for _, rule in tried}
    untried = [
        (door.name, rule.__name__)
        for door in DOORS.values()
        for rule in door.rules
        if (door.name, rule.__name__) not in tried and rule.__name__ not in shared
    ]
    assert untried == []


def request(door: Door, **body: Any) -> RecordedRequest:
    return door.wire.parse_chat("/", {"model": "m", "messages": [], **body}, KEY)


def test_servers_that_hold_to_a_schema_leave_the_tools_out_without_a_word() -> None:
    for name in ("ollama", "lm studio", "vllm", "llama.cpp"):
        door = DOORS[name]
        assert door.ignores_tools(request(door, tools=TOOLS, response_format=asked()))
        assert not door.ignores_tools(request(door, tools=TOOLS))


def test_a_long_prompt_is_cut_at_ollama_and_only_the_usage_tells(peers: dict[str, Peer], direct: httpx2.Client) -> None:
    answer = post(direct, peers["ollama"], chat(text=LONG)).json()
    assert answer["usage"]["prompt_tokens"] == DOORS["ollama"].reads
    assert peers["ollama"].log[-1].cut


def test_own_routes_tell_the_window(peers: dict[str, Peer], direct: httpx2.Client) -> None:
    def got(name: str, path: str) -> Any:
        return direct.get(peers[name].endpoint + path).json()

    assert got("ollama", "/api/ps")["models"][0]["context_length"] == 8_192
    assert "tools" in direct.post(f"{peers['ollama'].endpoint}/api/show", json={"model": "x"}).json()["capabilities"]
    assert got("ollama", "/api/tags")["models"][0]["name"] == DOORS["ollama"].model
    assert got("vllm", "/v1/models")["data"][0]["max_model_len"] == 8_192
    assert got("llama.cpp", "/props")["default_generation_settings"]["n_ctx"] == 8_192
    assert got("lm studio", "/api/v0/models")["data"][0]["loaded_context_length"] == 8_192


@pytest.mark.parametrize(
    ("schema", "openai", "anthropic"),
    [
        (CLOSED, 0, 0),
        (OPEN, 3, 2),
        ({**CLOSED, "properties": {"name": {}}}, 1, 0),
        ({**CLOSED, "properties": {"name": {"type": "array"}}}, 1, 0),
        ({**CLOSED, "properties": {"name": {"enum": ["a"]}}}, 1, 0),
    ],
)
def test_strict_subsets(schema: Any, openai: int, anthropic: int) -> None:
    assert (len(openai_violations(schema)), len(anthropic_violations(schema))) == (openai, anthropic)


def test_anthropic_counts_optional_fields_and_unions_of_all_objects() -> None:
    optional = {
        "type": "object",
        "additionalProperties": False,
        "properties": {f"f{n}": {"type": "string"} for n in range(25)},
    }
    unions = {f"f{n}": {"type": ["string", "null"]} for n in range(17)}
    many = {"type": "object", "additionalProperties": False, "properties": unions, "required": [*unions]}
    assert [len(anthropic_violations(schema)) for schema in (optional, many)] == [1, 1]


OPS: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "op_type": {"const": "AddNode"},
                "params": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "value": {"type": ["string", "number", "null"]}},
                        "required": ["name", "value"],
                    },
                },
                "label": {"type": ["string", "null"]},
            },
            "required": ["op_type", "params", "label"],
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"op_type": {"const": "Connect"}}, "required": ["op_type"]},
    ]
}


def test_an_answer_takes_the_form_of_its_schema() -> None:
    op = {"op_type": "AddNode", "params": {"temperature": 0.2}, "other": 1}
    assert fitted(op, OPS) == {
        "op_type": "AddNode",
        "params": [{"name": "temperature", "value": 0.2}],
        "label": None,
    }


def test_a_grammar_that_closes_objects_drops_what_the_schema_does_not_name() -> None:
    bare = {"type": "object", "properties": {"op_type": {"enum": ["AddNode"]}}, "required": ["op_type"]}
    op = {"op_type": "AddNode", "node_id": "x"}
    assert fitted(op, bare, closed=True) == {"op_type": "AddNode"}
    assert json.loads(json.dumps(fitted(op, bare))) == op
