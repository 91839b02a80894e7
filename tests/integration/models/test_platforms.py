"""Azure, Bedrock and Vertex through their clients in the real SDKs, against the model stand-in."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from flowise_dev_agent.cli.doctor import examine
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInFailure, StandInToolCall
from flowise_dev_agent.errors import ConfigurationError, ModelAuthError
from flowise_dev_agent.models import ReasoningEngine, engine_for
from flowise_dev_agent.models.messages import Message, ToolDef
from flowise_dev_agent.models.providers import connect, server_of
from flowise_dev_agent.settings import DatabaseSettings, FlowiseSettings, ReasoningSettings, Settings

KEY = "platform-key-123456"
HELLO = [Message(role="user", content="Hello")]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
GET_NODE = ToolDef(name="flowise.get_node", description="One node.", parameters={"type": "object", "properties": {}})
MODELS = {"azure": "gpt-4o", "bedrock": "eu.anthropic.claude-sonnet-4-6", "vertex": "claude-sonnet-4-6"}


def settings_for(name: str, standin: ModelStandIn, **changes: Any) -> ReasoningSettings:
    own: dict[str, Any] = {
        "REASONING_ENGINE": name,
        "REASONING_MODEL": MODELS[name],
        "REASONING_MAX_RETRIES": 0,
        "AZURE_OPENAI_ENDPOINT": standin.endpoint,
        "AZURE_OPENAI_API_KEY": KEY,
        "AWS_REGION": "eu-central-1",
        "AWS_BEARER_TOKEN_BEDROCK": KEY,
        "ANTHROPIC_BEDROCK_BASE_URL": standin.endpoint,
        "ANTHROPIC_VERTEX_PROJECT_ID": "a-project",
        "CLOUD_ML_REGION": "europe-west1",
        "ANTHROPIC_VERTEX_BASE_URL": f"{standin.endpoint}/v1",
    }
    return ReasoningSettings(**own | changes)


class GoogleCredentials:
    """What google-auth finds on a machine that has credentials."""

    expired = False
    token = KEY


@pytest.fixture(params=["azure", "bedrock", "vertex"])
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    import google.auth

    for variable in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(google.auth, "default", lambda **_: (GoogleCredentials(), "other"))
    monkeypatch.setattr("anthropic.lib.vertex._client.load_auth", lambda **_: (GoogleCredentials(), "other"))
    return request.param


@pytest.fixture
async def engine(name: str, standin: ModelStandIn) -> AsyncIterator[ReasoningEngine]:
    made = engine_for(settings_for(name, standin))
    yield made
    await made.aclose()


ON_VERTEX = "/v1/projects/a-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-6"
PATHS = {
    ("azure", False): "/openai/deployments/gpt-4o/chat/completions",
    ("azure", True): "/openai/deployments/gpt-4o/chat/completions",
    ("bedrock", False): "/model/eu.anthropic.claude-sonnet-4-6/invoke",
    ("bedrock", True): "/model/eu.anthropic.claude-sonnet-4-6/invoke-with-response-stream",
    (
        "vertex",
        False,
    ): "/v1/projects/a-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-6:rawPredict",
    (
        "vertex",
        True,
    ): "/v1/projects/a-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-6:streamRawPredict",
}


@pytest.mark.parametrize("streamed", [False, True])
async def test_answer_comes_from_the_platform_with_usage_and_price(
    streamed: bool, name: str, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    text = "One two three four five six seven eight nine ten. Grüße 😀"
    standin.script("Hello", Reply(text, tokens=(120, 7)))
    pieces: list[str] = []
    response = await engine.complete(HELLO, "You are polite.", on_delta=pieces.append if streamed else None)
    assert response.text == text
    assert not response.truncated
    assert (len(pieces) > 1) is streamed
    assert (response.usage.input_tokens, response.usage.output_tokens) == (120, 7)
    assert response.usage.usd > 0
    (request,) = standin.requests
    assert (request.path.removesuffix("/messages"), request.api_key) == (PATHS[name, streamed], KEY)
    assert "You are polite." in request.prompt


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_and_structured_answers_work_on_every_platform(
    streamed: bool, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    def answer(request: Any) -> Reply:
        by_tool = any(tool.name == "give_answer" for tool in request.tools)
        return (
            Reply(tool_calls=(StandInToolCall("give_answer", {"name": "x"}),)) if by_tool else Reply(json={"name": "x"})
        )

    standin.script("Hello", Reply(tool_calls=(StandInToolCall("flowise__get_node", {"name": "x"}, "c1"),)), times=1)
    standin.script("Hello", answer)
    on_delta = [].append if streamed else None
    asked = await engine.complete(HELLO, "s", (GET_NODE,), output_schema=SCHEMA, on_delta=on_delta)
    assert [(call.name, call.arguments) for call in asked.tool_calls] == [("flowise.get_node", {"name": "x"})]
    turns = [
        *HELLO,
        Message(role="assistant", tool_calls=asked.tool_calls),
        Message(role="tool", content="It is a node.", tool_call_id="c1"),
    ]
    answered = await engine.complete(turns, "s", (GET_NODE,), output_schema=SCHEMA, on_delta=on_delta)
    assert json.loads(answered.text) == {"name": "x"}


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_name_the_platform_and_not_the_key(
    status: int, engine: ReasoningEngine, standin: ModelStandIn
) -> None:
    standin.script("Hello", StandInFailure.http(status, f"no access with {KEY}"))
    with pytest.raises(ModelAuthError, match="no access with") as caught:
        await engine.complete(HELLO, "s")
    assert KEY not in str(caught.value)
    assert any(word in str(caught.value) for word in ("AZURE_OPENAI_API_KEY", "AWS credentials", "Google credentials"))


async def test_bedrock_without_credentials_says_so(standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    for changes in ({}, {"AWS_PROFILE": "nobody"}):
        engine = engine_for(settings_for("bedrock", standin, AWS_BEARER_TOKEN_BEDROCK=None, **changes))
        with pytest.raises(ModelAuthError, match="there are no credentials"):
            await engine.complete(HELLO, "s")
        await engine.aclose()
    assert standin.requests == []


async def test_bedrock_signs_with_aws_credentials(standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "an-example")
    engine = engine_for(settings_for("bedrock", standin, AWS_BEARER_TOKEN_BEDROCK=None))
    assert (await engine.complete(HELLO, "s")).text
    assert standin.requests[0].api_key.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    await engine.aclose()


async def test_vertex_without_credentials_says_so(standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    def nothing_found(**_: Any) -> Any:
        raise DefaultCredentialsError("File /home/somebody/key.json was not found.")

    monkeypatch.setattr(google.auth, "default", nothing_found)
    engine = engine_for(settings_for("vertex", standin))
    with pytest.raises(ModelAuthError, match="there are no credentials") as caught:
        await engine.complete(HELLO, "s")
    assert "/home" not in str(caught.value)
    await engine.aclose()


async def test_azure_without_a_key_asks_entra_for_a_token(
    standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure import identity
    from azure.core.credentials import AccessToken
    from azure.core.exceptions import ClientAuthenticationError

    class Machine:
        scopes: tuple[str, ...] = ()
        broken = False

        def get_token(self, *scopes: str, **_: Any) -> AccessToken:
            Machine.scopes = scopes
            if Machine.broken:
                raise ClientAuthenticationError("no identity on host-17")
            return AccessToken("an-entra-token", 4_000_000_000)

    monkeypatch.setattr(identity, "DefaultAzureCredential", Machine)
    engine = engine_for(settings_for("azure", standin, AZURE_OPENAI_API_KEY=None))
    await engine.complete(HELLO, "s")
    assert standin.requests[0].api_key == "an-entra-token"
    assert Machine.scopes == ("https://cognitiveservices.azure.com/.default",)
    await engine.aclose()
    Machine.broken = True
    engine = engine_for(settings_for("azure", standin, AZURE_OPENAI_API_KEY=None))
    with pytest.raises(ModelAuthError, match="there are no credentials") as caught:
        await engine.complete(HELLO, "s")
    assert "host-17" not in str(caught.value)
    await engine.aclose()


@pytest.mark.parametrize(
    ("name", "changes"), [("azure", {"AZURE_OPENAI_API_KEY": None}), ("bedrock", {}), ("vertex", {})]
)
def test_a_missing_extra_is_named(
    name: str, changes: dict[str, Any], standin: ModelStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowise_dev_agent.models.providers.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="not installed") as caught:
        engine_for(settings_for(name, standin, **changes))
    assert caught.value.hint == f'Install it: pip install "flowise-dev-agent[{name}]".'


async def test_doctor_shows_whether_the_model_of_a_platform_answers(
    name: str, standin: ModelStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = {"FLOWISE_API_ENDPOINT": "http://127.0.0.1:9", "FLOWISE_CONNECT_TIMEOUT": 0.2}
    settings = Settings(
        reasoning=settings_for(name, standin), flowise=FlowiseSettings(**nowhere), database=DatabaseSettings()
    )
    assert not await examine(settings)
    said = " ".join(capsys.readouterr().out.split())
    assert f"✓ Reasoning: {name} answers with {MODELS[name]}" in said
    assert re.search(r"Checked at \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", said)
    standin.script("Answer with", StandInFailure.http(403, "no access"))
    await examine(settings)
    assert "✗ Reasoning:" in capsys.readouterr().out


async def test_the_key_of_one_provider_is_never_sent_to_another() -> None:
    own: dict[str, Any] = {"OPENAI_API_KEY": "sk-of-openai-1234567", "DEEPSEEK_API_KEY": "sk-of-deepseek-1234"}
    settings = ReasoningSettings(**own)
    only_openai = ReasoningSettings(**own | {"DEEPSEEK_API_KEY": None})
    behind = ReasoningSettings(**own | {"OPENAI_BASE_URL": "https://name:pass@api.deepseek.com/beta"})

    async def observe(response: Any) -> None:
        del response

    opened = [connect("deepseek", one, observe) for one in (settings, only_openai)]
    assert [one.key for one in opened] == [SecretStr(own["DEEPSEEK_API_KEY"]), None]
    found = connect("openai", behind, observe)
    assert (found.engine, found.key, server_of("openai", behind)) == (
        "deepseek",
        SecretStr(own["OPENAI_API_KEY"]),
        "https://api.deepseek.com/beta",
    )
    for one in (*opened, found):
        await one.close()
