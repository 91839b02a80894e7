"""Providers: how their models are reached through pydantic-ai, and how they are known to behave.

A provider's SDK has thousands of modules: each is imported by the function that needs it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast
from urllib.parse import urlsplit, urlunsplit

import httpx2
from pydantic import SecretStr

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.models.capabilities import Capabilities, Way
from flowise_dev_agent.models.servers import ServerKind
from flowise_dev_agent.observability.tracing import trace_headers
from flowise_dev_agent.settings import Effort, EngineName, ReasoningSettings, Thinking

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile

_ENTRA_SCOPE: Final = "https://cognitiveservices.azure.com/.default"
#: Hosts behind `OPENAI_BASE_URL` that are providers of their own.
_HOSTS: Final[dict[str, EngineName]] = {
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
}
#: Families whose newest models take tools and a schema in one request, wherever OpenRouter sends them.
_TOGETHER_AT_OPENROUTER: Final = ("openai/", "anthropic/", "google/gemini-3")


@dataclass(frozen=True)
class Provider:
    """Facts about a provider. `prices` is its id in price lists; `extra` names what is to be installed for it.

    `traced_as` is its name in OpenTelemetry's conventions, where that is not the engine's.
    """

    title: str
    key_variable: str
    prices: str | None
    extra: str | None = None
    package: str | None = None
    #: The package that looks for credentials on the machine, where the SDK leaves that to one.
    credentials_package: str | None = None
    traced_as: str | None = None


PROVIDERS: Final[dict[EngineName, Provider]] = {
    "claude": Provider("Anthropic", "ANTHROPIC_API_KEY", "anthropic", traced_as="anthropic"),
    "openai": Provider("OpenAI", "OPENAI_API_KEY", "openai"),
    "azure": Provider(
        "Azure OpenAI",
        "AZURE_OPENAI_API_KEY, or the Entra identity of this machine and its role",
        "azure",
        credentials_package="azure",
        traced_as="azure.ai.openai",
    ),
    "bedrock": Provider(
        "Amazon Bedrock",
        "AWS_BEARER_TOKEN_BEDROCK or the AWS credentials, and their access to the model",
        "aws",
        # With a key, too: it reads the streams.
        extra="bedrock",
        package="botocore",
        credentials_package="botocore",
        traced_as="aws.bedrock",
    ),
    "vertex": Provider(
        "Google Vertex AI",
        "the Google credentials of this machine, and their access to the model",
        "google",
        extra="vertex",
        package="google.auth",
        credentials_package="google.auth",
        traced_as="gcp.vertex_ai",
    ),
    "google": Provider(
        "Google Gemini",
        "GOOGLE_API_KEY",
        "google",
        extra="google",
        package="google.genai",
        traced_as="gcp.gemini",
    ),
    "deepseek": Provider("DeepSeek", "DEEPSEEK_API_KEY", "deepseek"),
    "groq": Provider("Groq", "GROQ_API_KEY", "groq", extra="groq", package="groq"),
    "mistral": Provider(
        "Mistral", "MISTRAL_API_KEY", "mistral", extra="mistral", package="mistralai", traced_as="mistral_ai"
    ),
    "openrouter": Provider("OpenRouter", "OPENROUTER_API_KEY", "openrouter"),
    "ollama": Provider("Ollama", "OLLAMA_API_KEY", None),
}


class Observer(Protocol):
    """Hook of an HTTP client, called with each response."""

    async def __call__(self, response: Any) -> None: ...


@dataclass
class Connection:
    """An open connection to a provider: it makes the models of its server.

    `address` is a custom address, None for the provider's own.
    """

    engine: EngineName
    address: str | None
    key: SecretStr | None
    #: Makes a model, as its capabilities want it to be asked.
    make: "Callable[[str, Capabilities, ServerKind], Model[Any]]"
    close: Callable[[], Awaitable[None]]
    #: Timeout of a streamed request, where the SDK takes one per request.
    stream_timeout: httpx2.Timeout | None = None
    extra_settings: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def provider(self) -> Provider:
        """Facts about the provider."""
        return PROVIDERS[self.engine]

    @property
    def is_compatible(self) -> bool:
        """True for a server that is not the provider's own: a model server or a proxy."""
        return self.engine == "ollama" or (self.engine == "openai" and self.address is not None)

    def effort_settings(self, effort: Effort | None, thinking: Thinking | None) -> dict[str, Any]:
        """Settings of the model layer for how much a model thinks."""
        found: dict[str, Any] = {}
        if self.engine in ("claude", "vertex", "bedrock"):
            found |= {"anthropic_effort": effort} if effort else {}
            return found | ({"anthropic_thinking": {"type": thinking}} if thinking else {})
        if self.engine in ("openai", "azure", "deepseek", "ollama"):
            return {"openai_reasoning_effort": effort} if effort else {}
        if effort or thinking:
            found["thinking"] = effort or thinking == "adaptive"
        return found

    def takes_both(self, model: str, known: Capabilities, kind: ServerKind) -> bool:
        """True if a request may hold tools and a schema; else look-ups and answer are two kinds of request."""
        if known.together is not None:
            return known.together
        if self.engine in ("groq", "mistral", "ollama") or kind != "other":
            return False
        if self.engine == "google":
            return model.startswith("gemini-3")
        return self.engine != "openrouter" or model.startswith(_TOGETHER_AT_OPENROUTER)

    def ways(self, profile: "ModelProfile", kind: ServerKind) -> tuple[Way, ...]:
        """Ways to ask a model for an object, best first."""
        enforced = profile.get("supports_json_schema_output", False)
        if self.engine in ("claude", "bedrock", "vertex"):
            if not profile.get("supports_forced_tool_choice", True):
                return ("strict", "prompt") if enforced else ("prompt",)
            if enforced and profile.get("thinking_enabled_by_default", False):
                # A tool that must be called would be called without thinking.
                return ("strict", "tool", "prompt")
            return ("tool", "strict", "prompt") if enforced else ("tool", "prompt")
        ways: list[Way] = []
        if enforced:
            # Model servers take no `strict`, or ignore it.
            if kind == "other" and self.engine not in ("google", "ollama"):
                ways.append("strict")
            ways.append("schema")
        if profile.get("supports_json_object_output", False):
            ways.append("object")
        return (*ways, "prompt")


def server_of(engine: EngineName, settings: ReasoningSettings) -> str:
    """Name that tells the server of an engine apart from others, without the name and password of its address."""
    owner, address = _reached(engine, settings)
    if owner == "azure":
        address = settings.azure_endpoint
    if owner == "bedrock" and not address:
        return f"bedrock {settings.aws_region}"
    parts = urlsplit(address or owner)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def price_list(engine: EngineName, settings: ReasoningSettings) -> str | None:
    """Provider whose prices apply to an engine; None where prices are looked up by model name only."""
    owner, address = _reached(engine, settings)
    return None if address and owner in ("openai", "claude") else PROVIDERS[owner].prices


def connect(engine: EngineName, settings: ReasoningSettings, observe: Observer) -> Connection:
    """Open the clients of a provider. Raises ConfigurationError if a package for it is not installed."""
    if engine == "deterministic":
        raise ConfigurationError(
            "The mode without a model needs no engine.", hint="Set REASONING_ENGINE to claude or openai."
        )
    provider = PROVIDERS[engine]
    if provider.extra and provider.package:
        _require(provider.package, extra=provider.extra)
    owner, address = _reached(engine, settings)
    match engine:
        case "claude" | "vertex":
            return _claude(engine, settings, observe, address)
        case "bedrock":
            return _bedrock(settings, observe, address)
        case "google":
            return _google(settings, observe, address)
        case "groq":
            return _groq(settings, observe, address)
        case "mistral":
            return _mistral(settings, observe, address)
        case "openai" | "azure" | "deepseek" | "openrouter" | "ollama":
            # With another owner the key is that of OPENAI_*, whoever answers there.
            return _openai(owner, settings, observe, getattr(settings, f"{engine}_api_key"), address)


def _reached(engine: EngineName, settings: ReasoningSettings) -> tuple[EngineName, str | None]:
    """Provider that answers for an engine, and its address in the settings; None for the provider's own."""
    settings_of = "anthropic" if engine == "claude" else engine
    address: str | None = getattr(settings, f"{settings_of}_base_url", None) or None
    host = (engine == "openai" and urlsplit(address or "").hostname) or ""
    for end, owner in _HOSTS.items():
        if host == end or host.endswith(f".{end}"):
            return owner, address
    return engine, address


# --- OpenAI and servers with its API -------------------------------------------------------------------------------


def _openai(
    engine: EngineName, settings: ReasoningSettings, observe: Observer, key: SecretStr | None, address: str | None
) -> Connection:
    import openai

    http = openai.DefaultAioHttpClient(**_http_options(settings, observe))
    client: AsyncOpenAI
    if engine == "azure":
        if key is None:
            _require("azure.identity", extra="azure")
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=settings.azure_endpoint or "",
            api_version=settings.azure_api_version,
            api_key=key.get_secret_value() if key else None,
            azure_ad_token_provider=None if key else _entra_tokens(),
            timeout=_timeout(settings),
            max_retries=settings.max_retries,
            http_client=http,
        )
    else:
        client = openai.AsyncOpenAI(
            # An explicit key keeps the SDK from looking for one; local servers need none, but the SDK requires one.
            api_key=key.get_secret_value() if key else "not-needed",
            base_url=address,
            timeout=_timeout(settings),
            max_retries=settings.max_retries,
            http_client=http,
        )

    def make(model: str, known: Capabilities, kind: ServerKind) -> "Model[Any]":
        return _openai_model(engine, client, model, known, kind, own=engine == "openai" and address is None)

    return Connection(
        engine,
        address,
        key,
        make,
        client.close,
        _stream_timeout(settings),
        # A backend that would ignore the schema or the tools is not asked.
        {"openrouter_provider": {"require_parameters": True}} if engine == "openrouter" else {},
    )


def _openai_model(
    engine: EngineName, client: "AsyncOpenAI", model: str, known: Capabilities, kind: ServerKind, *, own: bool
) -> "Model[Any]":
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    provider = _openai_provider(engine, client, kind, own=own)
    profile = provider.model_profile(model) or {}
    changes = OpenAIModelProfile()
    if kind != "other" or engine == "ollama":
        # The prompt says what the schema says, and these servers obey bounds that OpenAI's dialect lacks.
        changes["native_output_requires_schema_in_instructions"] = False
        changes["json_schema_transformer"] = None
    newer = profile.get("openai_chat_supports_max_completion_tokens", True)
    if engine == "openai" and not own:
        # A proxy in front of OpenAI's reasoning models; other servers have the old name.
        newer = bool(profile.get("openai_supports_reasoning"))
    changes["openai_chat_supports_max_completion_tokens"] = newer is not known.other_limit_name
    if engine == "openrouter":
        from pydantic_ai.models.openrouter import OpenRouterModel

        return OpenRouterModel(model, provider=provider, profile=cast("Any", changes))
    responses = known.api == "responses" or (own and known.api is None)
    chosen = OpenAIResponsesModel if responses else OpenAIChatModel
    return chosen(model, provider=provider, profile=cast("Any", changes))


def _openai_provider(engine: EngineName, client: "AsyncOpenAI", kind: ServerKind, *, own: bool) -> Any:
    match engine:
        case "azure":
            from pydantic_ai.providers.azure import AzureProvider

            return AzureProvider(openai_client=cast("Any", client))
        case "deepseek":
            from pydantic_ai.providers.deepseek import DeepSeekProvider

            return DeepSeekProvider(openai_client=client)
        case "openrouter":
            from pydantic_ai.providers.openrouter import OpenRouterProvider

            return OpenRouterProvider(openai_client=client)
        case _:
            pass
    if own:
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIProvider(openai_client=client)
    if engine == "ollama" or kind == "ollama":
        from pydantic_ai.providers.ollama import OllamaProvider

        return OllamaProvider(openai_client=client)
    if kind == "vllm":
        from pydantic_ai.providers.vllm import VLLMProvider

        return VLLMProvider(openai_client=client)
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(client.base_url.host, openai_client=client)


def _entra_tokens() -> Callable[[], Awaitable[str]]:
    """Provider of tokens for the identity found by azure-identity: environment, workload, managed identity, CLI."""
    identity: Any = import_module("azure.identity")
    token: Callable[[], str] = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _ENTRA_SCOPE)
    # It blocks while it asks for a token, and keeps it as long as it is valid.
    return lambda: asyncio.to_thread(token)


# --- Claude, on Anthropic's own servers and on Bedrock and Vertex ---------------------------------------------------


def _claude(
    engine: Literal["claude", "vertex"], settings: ReasoningSettings, observe: Observer, address: str | None
) -> Connection:
    import anthropic

    http = anthropic.DefaultAioHttpClient(**_http_options(settings, observe))
    client: Any
    if engine == "vertex":
        from anthropic.lib.vertex import AsyncAnthropicVertex

        key = None
        client = AsyncAnthropicVertex(
            region=settings.vertex_region or "",
            project_id=settings.vertex_project or "",
            base_url=address,
            timeout=_timeout(settings),
            max_retries=settings.max_retries,
            http_client=http,
        )
    else:
        key = settings.anthropic_api_key
        client = anthropic.AsyncAnthropic(
            api_key=key.get_secret_value() if key else "not-needed",
            base_url=address,
            timeout=_timeout(settings),
            max_retries=settings.max_retries,
            http_client=http,
        )
    return _claude_connection(engine, client, settings, key, address)


def _bedrock(settings: ReasoningSettings, observe: Observer, address: str | None) -> Connection:
    key = settings.bedrock_api_key
    if "claude" in settings.general_model or "anthropic" in settings.general_model:
        import anthropic
        from anthropic.lib.bedrock import AsyncAnthropicBedrock

        client = AsyncAnthropicBedrock(
            aws_region=settings.aws_region,
            aws_profile=None if key else settings.aws_profile,
            api_key=key.get_secret_value() if key else None,
            base_url=address,
            timeout=_timeout(settings),
            max_retries=settings.max_retries,
            http_client=anthropic.DefaultAioHttpClient(**_http_options(settings, observe)),
        )
        return _claude_connection("bedrock", client, settings, key, address)

    from botocore.exceptions import ProfileNotFound
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    account: dict[str, Any] = {"api_key": key.get_secret_value()} if key else {"profile_name": settings.aws_profile}
    try:
        provider = BedrockProvider(
            region_name=settings.aws_region,
            base_url=address,
            aws_read_timeout=settings.timeout_secs,
            aws_connect_timeout=settings.connect_timeout_secs,
            **account,
        )
    except ProfileNotFound as error:
        raise ConfigurationError(f"{error}.", hint="Check AWS_PROFILE.") from None

    def make(model: str, *_: object) -> "Model[Any]":
        return BedrockConverseModel(cast("Any", model), provider=provider)

    return Connection("bedrock", address, key, make, _nothing_to_close)


def _claude_connection(
    engine: EngineName, client: Any, settings: ReasoningSettings, key: SecretStr | None, address: str | None
) -> Connection:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(anthropic_client=client)

    def make(model: str, *_: object) -> "Model[Any]":
        return AnthropicModel(cast("Any", model), provider=provider)

    return Connection(engine, address, key, make, client.close, _stream_timeout(settings))


# --- Others ----------------------------------------------------------------------------------------------------------


def _google(settings: ReasoningSettings, observe: Observer, address: str | None) -> Connection:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    key = settings.google_api_key
    http = httpx2.AsyncClient(timeout=_timeout(settings), **_http_options(settings, observe))
    provider = GoogleProvider(api_key=key.get_secret_value() if key else None, http_client=http, base_url=address)

    def make(model: str, *_: object) -> "Model[Any]":
        return GoogleModel(cast("Any", model), provider=provider)

    return Connection("google", address, key, make, http.aclose)


def _groq(settings: ReasoningSettings, observe: Observer, address: str | None) -> Connection:
    # Its SDK is on the first httpx.
    import groq
    import httpx
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    key = settings.groq_api_key
    http = httpx.AsyncClient(event_hooks={"request": [_trace], "response": [observe]})
    client = groq.AsyncGroq(
        api_key=key.get_secret_value() if key else "",
        base_url=address,
        timeout=httpx.Timeout(settings.timeout_secs, connect=settings.connect_timeout_secs),
        max_retries=settings.max_retries,
        http_client=http,
    )
    provider = GroqProvider(groq_client=client)

    def make(model: str, *_: object) -> "Model[Any]":
        return GroqModel(cast("Any", model), provider=provider)

    return Connection("groq", address, key, make, client.close)


def _mistral(settings: ReasoningSettings, observe: Observer, address: str | None) -> Connection:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    key = settings.mistral_api_key
    http = httpx2.AsyncClient(timeout=_timeout(settings), **_http_options(settings, observe))
    provider = MistralProvider(api_key=key.get_secret_value() if key else None, base_url=address, http_client=http)

    def make(model: str, *_: object) -> "Model[Any]":
        return MistralModel(cast("Any", model), provider=provider)

    return Connection("mistral", address, key, make, http.aclose)


def _http_options(settings: ReasoningSettings, observe: Observer) -> dict[str, Any]:
    return {
        "limits": httpx2.Limits(max_connections=settings.max_parallel_calls, max_keepalive_connections=100),
        "event_hooks": {"request": [_trace], "response": [observe]},
    }


async def _trace(request: Any) -> None:
    """Hook of an HTTP client: the provider goes on with the trace."""
    request.headers.update(trace_headers())


def _timeout(settings: ReasoningSettings) -> httpx2.Timeout:
    return httpx2.Timeout(settings.timeout_secs, connect=settings.connect_timeout_secs)


def _stream_timeout(settings: ReasoningSettings) -> httpx2.Timeout:
    """Timeout of a streamed request: it ends if no data arrives for the time of the first token."""
    silence = min(settings.first_token_timeout_secs, settings.timeout_secs)
    return httpx2.Timeout(settings.timeout_secs, connect=settings.connect_timeout_secs, read=silence)


async def _nothing_to_close() -> None:
    """The SDK closes its connections by itself."""


def _require(package: str, *, extra: str) -> None:
    try:
        found = find_spec(package) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise ConfigurationError(
            f"REASONING_ENGINE={extra} needs the package '{package}', which is not installed.",
            hint=f'Install it: pip install "flowise-dev-agent[{extra}]".',
        )
