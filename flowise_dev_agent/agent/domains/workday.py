"""Workday: its MCP server by a blueprint, and API operations from the last refresh."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest, DomainDiscoveryResult
from flowise_dev_agent.agent.domains.openapi import MOST_TOOLS, api_tools, chosen
from flowise_dev_agent.agent.domains.tool_domain import ToolDomain
from flowise_dev_agent.knowledge.workday import WorkdayBlueprint, WorkdayKnowledgeProvider
from flowise_dev_agent.planning.requests import ReadyTool
from flowise_dev_agent.planning.skills import PACKAGED

_NAMED: Final = "workday"


class WorkdayCapability(ToolDomain):
    """Workday domain: adds its tools if a requirement names Workday. Workday itself is not called before a test."""

    name = "workday"
    about = "Workday: its lookups become tools of an agent when a requirement names it."
    skill = PACKAGED.section("Plan", "workday_extend")

    def __init__(self, knowledge: WorkdayKnowledgeProvider | None = None) -> None:
        self._given = knowledge

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        if _NAMED not in f"{request.requirement} {request.feedback or ''}".casefold():
            return ()
        knowledge = self._knowledge
        found = [
            tool for api in knowledge.api.apis for tool in api_tools(self.name, api, chosen(api, request.requirement))
        ]
        return [_tool(self.name, knowledge.mcp.get()), *found][:MOST_TOOLS]

    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        found = await super().discover(context, request)
        if not found.ready_tools:
            return found
        blueprint = self._knowledge.mcp.get()
        config = blueprint.selectedToolConfig
        facts = {
            "mcp_mode": blueprint.selectedTool,
            "mcp_actions": list(config.mcpActions),
            "mcp_server_url": config.server_url,
            "auth_var": blueprint.auth_var,
            "credential_type": blueprint.credential_type,
            # The node takes the token from a variable of Flowise.
            "oauth_credential_id": None,
        }
        return replace(found, facts={**found.facts, **facts})

    @property
    def _knowledge(self) -> WorkdayKnowledgeProvider:
        return self._given or _snapshot()


def _tool(domain: str, blueprint: WorkdayBlueprint) -> ReadyTool:
    actions = ", ".join(blueprint.selectedToolConfig.mcpActions)
    variables = " and ".join(blueprint.selectedToolConfig.variables)
    return ReadyTool(
        domain=domain,
        name=blueprint.blueprint_id,
        title=blueprint.label,
        about=f"Looks things up in {blueprint.label} ({actions}); Flowise needs the variables {variables}.",
        node_name=blueprint.selectedTool,
        values=blueprint.selectedToolConfig.model_dump(mode="json"),
        data_fields=blueprint.data_fields,
        pii_fields=blueprint.pii_fields,
    )


#: Parsed once: the files are part of the package.
_snapshot = cache(WorkdayKnowledgeProvider.from_snapshot)
