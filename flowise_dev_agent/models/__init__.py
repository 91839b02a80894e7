"""Models of all providers behind one interface, `ReasoningEngine`."""

from flowise_dev_agent.models.base import ReasoningEngine
from flowise_dev_agent.models.capabilities import CapabilityStore, StoredCapabilities
from flowise_dev_agent.settings import ReasoningSettings

__all__ = ["CapabilityStore", "ReasoningEngine", "StoredCapabilities", "engine_for"]


def engine_for(settings: ReasoningSettings, store: CapabilityStore | None = None) -> ReasoningEngine:
    """Create the engine of the settings. Raises ConfigurationError for `deterministic`, which uses no model."""
    # The model layer takes half a second to import; without a model nothing needs it.
    from flowise_dev_agent.models.engine import ModelEngine

    return ModelEngine(settings, store)
