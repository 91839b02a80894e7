"""`mcp`: the tools over standard input and output, for desktop clients; the sessions are those of a running service."""

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.mcp import AgentMcpServer, Approval, Host


async def serve_stdio(client: AgentClient, approval: Approval) -> None:
    """Serve until standard input ends. The service need not run yet: a call that cannot reach it says so."""
    await AgentMcpServer(Host(lambda _: client, approval, lambda _: client.base_url)).run_stdio_async()
