"""MCP server: the service for other agents, as tools over the client of the REST API."""

from flowise_dev_agent.mcp.host import Approval, Host
from flowise_dev_agent.mcp.server import AgentMcpServer, McpEndpoint

__all__ = ["AgentMcpServer", "Approval", "Host", "McpEndpoint"]
