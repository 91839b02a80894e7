"""Access to Flowise servers: a typed client, and the instances of the settings."""
# pyright: reportUnusedImport=false

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
