"""Settings of the models that the agent itself thinks with."""

from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from pydantic import Field, SecretStr, model_validator

from flowise_dev_agent.phases import Mode, Phase
from flowise_dev_agent.settings.base import Group, items

EngineName = Literal[
    "claude",
    "openai",
    "azure",
    "bedrock",
    "vertex",
    "google",
    "deepseek",
    "groq",
    "mistral",
    "openrouter",
    "ollama",
    "deterministic",
]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Thinking = Literal["adaptive", "disabled"]
#: Names of providers in `provider:model`, with the API of OpenAI where the name says it.
PROVIDERS: Final[dict[str, EngineName]] = {
    "anthropic": "claude",
    "claude": "claude",
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "azure",
    "bedrock": "bedrock",
    "vertex": "vertex",
    "google": "google",
    "gemini": "google",
    "deepseek": "deepseek",
    "groq": "groq",
    "mistral": "mistral",
    "openrouter": "openrouter",
    "ollama": "ollama",
}
_APIS: Final[dict[str, Literal["chat", "responses"]]] = {"openai-chat": "chat", "openai-responses": "responses"}
#: Azure calls deployments, Bedrock and Vertex models by names of their own: those have no default.
DEFAULT_MODELS: dict[str, str] = {"claude": "claude-sonnet-5-5", "openai": "gpt-5.4", "deterministic": "none"}


class Route(NamedTuple):
    """A model and the provider that serves it."""

    engine: EngineName
    model: str
    #: The API of OpenAI, where the name of the model says it.
    api: Literal["chat", "responses"] | None = None


class ReasoningSettings(Group):
    """Models for the agent's own reasoning. The models inside the flows that it builds belong to Flowise."""

    engine_choice: EngineName | None = Field(default=None, alias="REASONING_ENGINE")
    model_choice: str | None = Field(default=None, alias="REASONING_MODEL")
    model_classify: str | None = Field(default=None, alias="REASONING_MODEL_CLASSIFY")
    model_plan: str | None = Field(default=None, alias="REASONING_MODEL_PLAN")
    model_patch: str | None = Field(default=None, alias="REASONING_MODEL_PATCH")
    model_judge: str | None = Field(default=None, alias="REASONING_MODEL_JUDGE")
    mode_classify: Mode = Field(default="llm_guided", alias="REASONING_MODE_CLASSIFY")
    mode_plan: Mode = Field(default="llm_guided", alias="REASONING_MODE_PLAN")
    mode_patch: Mode = Field(default="llm_guided", alias="REASONING_MODE_PATCH")
    mode_judge: Mode = Field(default="llm_guided", alias="REASONING_MODE_JUDGE")
    fallback_enabled: bool = Field(default=True, alias="REASONING_FALLBACK_ENABLED")
    allowed_models: str = Field(default="", alias="REASONING_ALLOWED_MODELS")
    temperature: float = Field(default=0.2, ge=0, le=2, alias="REASONING_TEMPERATURE")
    #: How much work a model puts into an answer, and whether Claude thinks before it; unset: as the model has it.
    effort: Effort | None = Field(default=None, alias="REASONING_EFFORT")
    thinking: Thinking | None = Field(default=None, alias="REASONING_THINKING")
    #: Of one answer, thinking included. The default is enough for sixty ops with their prompt texts.
    max_output_tokens: int = Field(default=8_000, ge=256, le=128_000, alias="REASONING_MAX_OUTPUT_TOKENS")
    retry_count: int = Field(default=1, ge=0, le=5, alias="REASONING_RETRY_COUNT")
    #: Rounds of tool calls in one phase; 0 offers no tools.
    max_tool_iterations: int = Field(default=5, ge=0, le=20, alias="MAX_TOOL_ITERATIONS")
    #: Tokens that the smallest model in use reads at once, answer included; unset: the server is asked.
    context_tokens: int | None = Field(default=None, ge=4_000, alias="REASONING_CONTEXT_TOKENS")
    #: Sections of the skill files there replace ours.
    skills_dir: Path | None = Field(default=None, alias="SKILLS_DIR")
    #: The most; how many the provider takes is found out.
    max_parallel_calls: int = Field(default=1_000, ge=1, alias="REASONING_MAX_PARALLEL_CALLS")
    connect_timeout_secs: float = Field(default=10, gt=0, alias="REASONING_CONNECT_TIMEOUT_SECS")
    timeout_secs: float = Field(default=180, gt=0, alias="REASONING_TIMEOUT_SECS")
    first_token_timeout_secs: float = Field(default=120, gt=0, alias="REASONING_FIRST_TOKEN_TIMEOUT_SECS")
    max_retries: int = Field(default=2, ge=0, le=5, alias="REASONING_MAX_RETRIES")
    anthropic_api_key: SecretStr | None = Field(default=None, alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, alias="ANTHROPIC_BASE_URL")
    openai_api_key: SecretStr | None = Field(default=None, alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, alias="OPENAI_BASE_URL")
    azure_endpoint: str | None = Field(default=None, alias="AZURE_OPENAI_ENDPOINT")
    #: Without it an Entra token is asked for, with what azure-identity finds.
    azure_api_key: SecretStr | None = Field(default=None, alias="AZURE_OPENAI_API_KEY")
    azure_api_version: str = Field(default="2024-10-21", alias="OPENAI_API_VERSION")
    aws_region: str | None = Field(default=None, alias="AWS_REGION")
    aws_profile: str | None = Field(default=None, alias="AWS_PROFILE")
    bedrock_api_key: SecretStr | None = Field(default=None, alias="AWS_BEARER_TOKEN_BEDROCK")
    bedrock_base_url: str | None = Field(default=None, alias="ANTHROPIC_BEDROCK_BASE_URL")
    vertex_project: str | None = Field(default=None, alias="ANTHROPIC_VERTEX_PROJECT_ID")
    vertex_region: str | None = Field(default=None, alias="CLOUD_ML_REGION")
    vertex_base_url: str | None = Field(default=None, alias="ANTHROPIC_VERTEX_BASE_URL")
    google_api_key: SecretStr | None = Field(default=None, alias="GOOGLE_API_KEY")
    google_base_url: str | None = Field(default=None, alias="GOOGLE_GEMINI_BASE_URL")
    deepseek_api_key: SecretStr | None = Field(default=None, alias="DEEPSEEK_API_KEY")
    deepseek_base_url: str = Field(default="https://api.deepseek.com", alias="DEEPSEEK_BASE_URL")
    groq_api_key: SecretStr | None = Field(default=None, alias="GROQ_API_KEY")
    groq_base_url: str | None = Field(default=None, alias="GROQ_BASE_URL")
    mistral_api_key: SecretStr | None = Field(default=None, alias="MISTRAL_API_KEY")
    mistral_base_url: str | None = Field(default=None, alias="MISTRAL_BASE_URL")
    openrouter_api_key: SecretStr | None = Field(default=None, alias="OPENROUTER_API_KEY")
    openrouter_base_url: str = Field(default="https://openrouter.ai/api/v1", alias="OPENROUTER_BASE_URL")
    ollama_api_key: SecretStr | None = Field(default=None, alias="OLLAMA_API_KEY")
    ollama_base_url: str = Field(default="http://127.0.0.1:11434/v1", alias="OLLAMA_BASE_URL")

    @cached_property
    def engine(self) -> EngineName:
        """The engine in use: the chosen one, that of REASONING_MODEL's provider, the first that has a key, or none."""
        if self.engine_choice:
            return self.engine_choice
        named = self._named(self.model_choice) if self.model_choice else None
        if named:
            return named.engine
        if self.anthropic_api_key:
            return "claude"
        if self.openai_api_key or self.openai_base_url:
            return "openai"
        return "deterministic"

    def route(self, model: str) -> Route:
        """Provider and model that a name means: `groq:llama-4`, or a name of a model of the engine in use."""
        return self._named(model) or Route(self.engine, model)

    def _named(self, model: str) -> Route | None:
        """Provider and model of `provider:model`; None for other names with a colon, such as Ollama's tags."""
        prefix, colon, name = model.partition(":")
        engine = PROVIDERS.get(prefix) if colon and name else None
        served_elsewhere = self.openai_base_url if self.engine_choice is None else self.engine_choice != engine
        if engine is None or (served_elsewhere and self._lacking(engine)):
            return None
        if engine == "openai":
            return Route(engine, name, _APIS.get(prefix))
        return Route(engine, name)

    def model_for(self, phase: Phase, session_model: str | None = None) -> str:
        """The model of a phase: the phase's own setting, then the session's, then the general one, then the default."""
        own: str | None = getattr(self, f"model_{phase}")
        return own or session_model or self.general_model

    @property
    def general_model(self) -> str:
        """The model of phases and sessions that name none."""
        return self.model_choice or DEFAULT_MODELS[self.engine]

    @cached_property
    def models(self) -> frozenset[str]:
        """Models that a session may choose: those of REASONING_ALLOWED_MODELS and the configured ones."""
        phases: tuple[Phase, ...] = ("classify", "plan", "patch", "judge")
        return frozenset({*items(self.allowed_models), *(self.model_for(phase) for phase in phases)})

    def mode_of(self, phase: Phase) -> Mode:
        """The mode that answers a phase; without a model it is always `deterministic`."""
        chosen: Mode = getattr(self, f"mode_{phase}")
        return "deterministic" if self.engine == "deterministic" else chosen

    def _lacking(self, engine: EngineName) -> list[str]:
        """Names of the settings that the engine needs and that are not set."""
        model = self.model_choice
        needs: dict[EngineName, dict[str, object]] = {
            "claude": {"ANTHROPIC_API_KEY": self.anthropic_api_key},
            "openai": {"OPENAI_API_KEY or OPENAI_BASE_URL": self.openai_api_key or self.openai_base_url},
            "azure": {"AZURE_OPENAI_ENDPOINT": self.azure_endpoint, "REASONING_MODEL": model},
            "bedrock": {"AWS_REGION": self.aws_region, "REASONING_MODEL": model},
            "vertex": {
                "ANTHROPIC_VERTEX_PROJECT_ID": self.vertex_project,
                "CLOUD_ML_REGION": self.vertex_region,
                "REASONING_MODEL": model,
            },
            "google": {"GOOGLE_API_KEY": self.google_api_key, "REASONING_MODEL": model},
            "deepseek": {"DEEPSEEK_API_KEY": self.deepseek_api_key, "REASONING_MODEL": model},
            "groq": {"GROQ_API_KEY": self.groq_api_key, "REASONING_MODEL": model},
            "mistral": {"MISTRAL_API_KEY": self.mistral_api_key, "REASONING_MODEL": model},
            "openrouter": {"OPENROUTER_API_KEY": self.openrouter_api_key, "REASONING_MODEL": model},
            "ollama": {"REASONING_MODEL": model},
            "deterministic": {},
        }
        return [name for name, value in needs[engine].items() if not value]

    @model_validator(mode="after")
    def _named_engine_has_what_it_needs(self) -> Self:
        engine = self.engine_choice or self.engine
        if missing := self._lacking(engine):
            raise ValueError(
                f"REASONING_ENGINE={engine} needs {' and '.join(missing)}. "
                "Set what is missing, or choose another engine."
            )
        return self
