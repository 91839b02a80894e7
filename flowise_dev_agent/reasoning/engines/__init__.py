"""Model providers behind one interface."""

from flowise_dev_agent.reasoning.engines.base import ReasoningEngine
from flowise_dev_agent.reasoning.engines.claude import ClaudeEngine
from flowise_dev_agent.reasoning.engines.openai import OpenAIEngine

__all__ = ["ClaudeEngine", "OpenAIEngine", "ReasoningEngine"]
