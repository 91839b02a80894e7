"""Building without a model: a requirement is read once into a design, which is rendered as a plan and as ops."""

from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

__all__ = ["DeterministicReasoner"]
