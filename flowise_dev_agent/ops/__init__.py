"""The assembled service and its operation: worker, health, connections, and what each Flowise instance offers."""

from flowise_dev_agent.ops.runtime import Runtime

__all__ = ["Runtime"]
