"""The service for other agents, by the Model Context Protocol: tools over the client of the REST API."""

from flowise_dev_agent.mcp.host import Approval, Host
from flowise_dev_agent.mcp.server import AgentMcpServer, McpEndpoint

__all__ = ["AgentMcpServer", "Approval", "Host", "McpEndpoint"]
