"""Model providers behind one interface.

Each engine imports its provider's SDK, which has thousands of modules: use `engine_for`, which imports only one.
"""

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.reasoning.engines.base import ReasoningEngine
from flowise_dev_agent.settings import ReasoningSettings

__all__ = ["ReasoningEngine", "engine_for"]


def engine_for(settings: ReasoningSettings) -> ReasoningEngine:
    """The engine of the settings. Raises ConfigurationError for `deterministic`, which uses no model."""
    match settings.engine:
        case "claude":
            from flowise_dev_agent.reasoning.engines.claude import ClaudeEngine

            return ClaudeEngine(settings)
        case "openai":
            from flowise_dev_agent.reasoning.engines.openai import OpenAIEngine

            return OpenAIEngine(settings)
        case "deterministic":
            raise ConfigurationError(
                "The rules need no model engine.", hint="Set REASONING_ENGINE to claude or openai."
            )
