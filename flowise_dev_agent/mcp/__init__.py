"""The service for other agents, by the Model Context Protocol: the same sessions, answers and views as over REST."""

from flowise_dev_agent.mcp.backend import Backend
from flowise_dev_agent.mcp.host import Approval, Host
from flowise_dev_agent.mcp.server import AgentMcpServer

__all__ = ["AgentMcpServer", "Approval", "Backend", "Host"]
