"""Access to Flowise servers: a typed client, and the instances of the settings."""

from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import (
    Chatflow,
    ChatflowCreate,
    ChatflowPage,
    ChatflowUpdate,
    Credential,
    NodeList,
    Prediction,
)

__all__ = [
    "Chatflow",
    "ChatflowCreate",
    "ChatflowPage",
    "ChatflowUpdate",
    "Credential",
    "FlowiseClient",
    "Instances",
    "NodeList",
    "Prediction",
]
