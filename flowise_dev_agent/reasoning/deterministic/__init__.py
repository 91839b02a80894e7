"""Reasoning by rules: see `DeterministicReasoner`."""

from flowise_dev_agent.reasoning.deterministic.reasoner import DeterministicReasoner

__all__ = ["DeterministicReasoner"]
