"""The engine through each door: a look-up, then an answer held to its schema, whole and streamed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.errors import ConfigurationError, ModelAuthError, ModelOutputError
from flowise_dev_agent.models import engine_for
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.models.messages import DeltaSink, Prompt, ToolDef
from flowise_dev_agent.models.tool_loop import ToolLoop
from flowise_dev_agent.planning.prompt_room import room_in
from flowise_dev_agent.settings import ReasoningSettings
from tests.doors.model import LOOK_UP, Script
from tests.doors.peer import KEY, Door, Peer, Refusal
from tests.doors.peers import DOORS
from tests.doors.rules import answer_limit
from tests.doors.sessions import own_variables
from tests.e2e.scripted import REQUIREMENT, SUPPORT

SCRIPT = Script({REQUIREMENT: SUPPORT})
PROMPT = Prompt(system="You plan.\n\n# Plan\nPlan it.", user=f"<requirement>{REQUIREMENT}</requirement>")
#: What Google's error bodies have for a wrong key.
GOOGLE = {"details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}
#: Doors without a way to hold the model to a schema, for what the model layer can ask them.
LOOSE = {"deepseek", "mistral"}
#: Doors that do not stream an answer held to a schema.
WHOLE = {"groq"}
#: Doors that check a key.
KEYED = [name for name, door in DOORS.items() if KEY in door.settings("").values()]


class Shelf:
    """A toolbox with one tool."""

    definitions = (
        ToolDef(
            name="flowise.get_node",
            description="One node type.",
            parameters={
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
    )

    def __init__(self, result: str = "It is a chat model.") -> None:
        self.asked: list[Any] = []
        self._result = result

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        self.asked.append((name, arguments))
        return self._result


class Greedy(Script):
    """Model that looks up two things as long as it may."""

    def reply(self, request: RecordedRequest, phase: str, *, tools: bool, held: bool, closed: bool) -> Reply:
        if tools and any(tool.name == LOOK_UP for tool in request.tools):
            calls = [StandInToolCall(LOOK_UP, {"name": name}, f"call{name:>05}") for name in ("a", "b")]
            return Reply(tool_calls=tuple(calls))
        return super().reply(request, phase, tools=tools, held=held, closed=closed)


@pytest.fixture(autouse=True)
def _no_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in own_variables():
        monkeypatch.delenv(variable)


@asynccontextmanager
async def loop_through(
    name: str | Door,
    monkeypatch: pytest.MonkeyPatch,
    script: Script = SCRIPT,
    on_delta: DeltaSink | None = None,
    prompt: Prompt = PROMPT,
    result: str = "It is a chat model.",
    **changes: str,
) -> AsyncIterator[tuple[ToolLoop, Shelf, Peer]]:
    """A tool loop in the phase of planning, through a door."""
    door = DOORS[name] if isinstance(name, str) else name
    for variable, value in door.credentials.items():
        monkeypatch.setenv(variable, value)
    with Peer(door, script) as peer:
        variables: dict[str, Any] = {**door.settings(peer.endpoint), "REASONING_MAX_RETRIES": 0, **changes}
        settings = ReasoningSettings(**variables)
        engine = engine_for(settings)
        shelf = Shelf(result)
        yield (
            ToolLoop(
                engine,
                settings,
                prompt,
                window=await engine.window(),
                model=settings.general_model,
                phase="plan",
                output_schema=answer_schema("plan"),
                tools=shelf,
                on_delta=on_delta,
            ),
            shelf,
            peer,
        )
        await engine.aclose()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", DOORS)
async def test_a_look_up_and_then_an_answer_held_to_its_schema(
    name: str, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []
    async with loop_through(name, monkeypatch, on_delta=pieces.append if streamed else None) as (loop, shelf, peer):
        response = await loop.answer()
    assert json.loads(response.text)["flow_name"] == "Support bot"
    assert shelf.asked == [("flowise.get_node", {"name": "chatOpenAI"})]
    assert peer.log[-1].held is (name not in LOOSE)
    assert loop.usage.input_tokens > 0
    assert loop.usage.output_tokens > 0
    assert bool(pieces) is (streamed and name not in WHOLE)
    # The first request learns what the door does not take: at most one refusal for each kind of request.
    kinds = [exchange.kind for exchange in peer.refusals]
    assert len(kinds) == len({*kinds}), [exchange.rule for exchange in peer.refusals]


@pytest.mark.parametrize("name", ["ollama", "vllm", "llama.cpp"])
async def test_look_ups_leave_room_for_the_answer_in_a_small_window(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "Say what each part is for. " * (room_in(8_192) * 4 // 27)
    prompt = Prompt(system=f"# Plan\n{long}", user=PROMPT.user)
    result = "temperature: a number. " * 1_000
    greedy = Greedy(SCRIPT.answers)
    async with loop_through(name, monkeypatch, greedy, prompt=prompt, result=result) as (loop, shelf, peer):
        assert json.loads((await loop.answer()).text)["flow_name"] == "Support bot"
    assert shelf.asked
    assert peer.log[-1].held
    assert not any(exchange.cut for exchange in peer.log)
    assert answer_limit(peer.log[-1].asked) >= 1_500


@pytest.mark.parametrize("name", [name for name in DOORS if DOORS[name].closes_objects])
async def test_an_unusable_answer_beside_look_ups_is_asked_for_again_under_its_schema(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(SCRIPT.answers, beside='{"flow_name": "Written at once"}')
    async with loop_through(name, monkeypatch, script) as (loop, _, peer):
        response = await loop.answer()
        loop.hand_back(response.text, ["There are no nodes."])
        assert json.loads((await loop.answer()).text)["flow_name"] == "Support bot"
    assert peer.log[-1].held


@pytest.mark.parametrize("name", KEYED)
async def test_a_refused_key_is_told_and_not_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "sk-doors-9876543210"
    keys = {variable: wrong for variable, value in DOORS[name].settings("").items() if value == KEY}
    async with loop_through(name, monkeypatch, **keys) as (loop, _, peer):
        with pytest.raises(ModelAuthError) as caught:
            await loop.answer()
    assert wrong not in str(caught.value)
    assert [exchange.rule for exchange in peer.log] == ["wrong_key"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        # continue 10778: xAI.
        ("vllm", Refusal("Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai.")),
        ("lm studio", Refusal("Invalid API Key")),
        # openai-scala-client 109: Google, in another language.
        ("gemini", Refusal("Der Schlüssel ist ungültig.", more=GOOGLE)),
        ("gemini compatible", Refusal("Der Schlüssel ist ungültig.", more=GOOGLE)),
        # continue 10290: what the provider said, as a text.
        ("openrouter", Refusal("Provider returned error", more={"metadata": {"raw": json.dumps({"error": GOOGLE})}})),
        ("anthropic", Refusal("Refused.", type="authentication_error")),
        ("bedrock converse", Refusal("The security token included in the request is expired")),
        ("bedrock converse", Refusal("The security token included in the request is invalid.", 403)),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
async def test_a_wrong_key_has_one_error_in_whatever_words(
    name: str, refusal: Refusal, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = replace(DOORS[name], rules=(lambda _: refusal,))
    async with loop_through(door, monkeypatch, on_delta=(lambda _: None) if streamed else None) as (loop, _, _):
        with pytest.raises(ModelAuthError, match="refuses the key") as caught:
            await loop.answer()
    assert (caught.value.details["refused"], refusal.message in str(caught.value)) == ("key", True)


async def test_a_request_that_names_a_key_is_not_taken_for_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [{"loc": ["body", "messages"], "input": "Answer with: invalid api key", "type": "missing"}]
    door = replace(DOORS["azure"], rules=(lambda _: Refusal("Unprocessable", 422, more={"details": said}),))
    async with loop_through(door, monkeypatch) as (loop, _, _):
        with pytest.raises(ModelOutputError):
            await loop.answer()


async def test_the_longest_answer_that_converse_names_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"REASONING_MAX_OUTPUT_TOKENS": "20000"}
    async with loop_through("bedrock converse", monkeypatch, **more) as (loop, _, peer):
        assert json.loads((await loop.answer()).text)["flow_name"] == "Support bot"
    assert [exchange.rule for exchange in peer.log] == ["longest_answer", "", ""]


async def test_a_profile_that_aws_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(ConfigurationError, match="nobody"):
        async with loop_through("bedrock converse", monkeypatch, AWS_PROFILE="nobody"):
            pass
