"""Model providers behind one interface.

Each engine imports its provider's SDK, which has thousands of modules: use `engine_for`, which imports only one.
"""

from importlib.util import find_spec

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.models.base import ReasoningEngine
from flowise_dev_agent.settings import ReasoningSettings

__all__ = ["ReasoningEngine", "engine_for"]


def engine_for(settings: ReasoningSettings) -> ReasoningEngine:
    """Create the engine of the settings. Raises ConfigurationError for `deterministic`, which uses no model."""
    match settings.engine:
        case "claude":
            from flowise_dev_agent.models.claude import ClaudeEngine

            return ClaudeEngine(settings)
        case "openai":
            from flowise_dev_agent.models.openai import OpenAIEngine

            return OpenAIEngine(settings)
        case "azure":
            from flowise_dev_agent.models.openai import AzureEngine

            if settings.azure_api_key is None:
                _require("azure.identity", extra="azure")
            return AzureEngine(settings)
        case "bedrock":
            from flowise_dev_agent.models.claude import BedrockEngine

            # With a key, too: it reads the streams.
            _require("botocore", extra="bedrock")
            return BedrockEngine(settings)
        case "vertex":
            from flowise_dev_agent.models.claude import VertexEngine

            _require("google.auth", extra="vertex")
            return VertexEngine(settings)
        case "deterministic":
            raise ConfigurationError(
                "The mode without a model needs no engine.", hint="Set REASONING_ENGINE to claude or openai."
            )


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
