"""From settings to a reasoner."""

from flowise_dev_agent.reasoning.deterministic import DeterministicReasoner
from flowise_dev_agent.reasoning.engines import engine_for
from flowise_dev_agent.reasoning.llm import LlmReasoner
from flowise_dev_agent.reasoning.phased import PhasedReasoner
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.settings import DEFAULT_MODELS, ReasoningSettings


def make_reasoner(settings: ReasoningSettings) -> Reasoner:
    """The reasoner that the settings name. It holds connections: close it with `aclose`."""
    rules = DeterministicReasoner()
    if settings.engine == "deterministic":
        return rules
    return PhasedReasoner(LlmReasoner(engine_for(settings), settings), rules, settings)


def describe(settings: ReasoningSettings) -> dict[str, str]:
    """`{engine, model}` for `/health` and for people."""
    return {"engine": settings.engine, "model": settings.model_choice or DEFAULT_MODELS[settings.engine]}
