"""The write path to Flowise: guard, intent rows, adoption, read-back, acceptance, rollback."""

from flowise_dev_agent.publish.guard import authorize
from flowise_dev_agent.publish.publisher import Base, Publisher, Stale, Written
from flowise_dev_agent.publish.tags import flow_tag, without_tag

__all__ = ["Base", "Publisher", "Stale", "Written", "authorize", "flow_tag", "without_tag"]
