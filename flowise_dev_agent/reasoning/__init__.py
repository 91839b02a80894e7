"""Reasoning: typed questions, answered by a model or by code."""

from flowise_dev_agent.reasoning import contracts
from flowise_dev_agent.reasoning.engines import ReasoningEngine, engine_for
from flowise_dev_agent.reasoning.llm import LlmReasoner
from flowise_dev_agent.reasoning.phased import PhasedReasoner, make_reasoner
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.settings import ReasoningSettings

__all__ = [
    "LlmReasoner",
    "PhasedReasoner",
    "Reasoner",
    "ReasoningEngine",
    "ReasoningSettings",
    "contracts",
    "engine_for",
    "make_reasoner",
]
