"""The domains that the agent can work in."""

from collections.abc import Iterable

from flowise_dev_agent.agent.domain import DomainCapability
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.reasoning.contracts import PlanContract


class Domains:
    """The capabilities given to the graph, by name; the first is the one that owns the flow."""

    def __init__(self, capabilities: Iterable[DomainCapability]) -> None:
        self._by_name = {capability.name: capability for capability in capabilities}
        if not self._by_name:
            raise ConfigurationError(
                "The agent has no domain to work in.", hint="Give build_graph at least one capability."
            )

    @property
    def primary(self) -> DomainCapability:
        """Discovers, validates, tests and evaluates."""
        return next(iter(self._by_name.values()))

    def of(self, plan: PlanContract) -> list[DomainCapability]:
        """The domains that a plan names and that exist here; the primary one when it names none of them."""
        named = [self._by_name[name] for name in plan.domain_targets if name in self._by_name]
        return named or [self.primary]
