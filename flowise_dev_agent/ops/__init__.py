"""The assembled service and its operation: worker, health, connections, catalogue of each Flowise instance."""

from flowise_dev_agent.ops.runtime import Runtime

__all__ = ["Runtime"]
