"""The ticket system of Acme: one tool for flows, one for planning, a store with its refresh, and a skill."""

import json
from collections.abc import Sequence

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest, ToolScope
from flowise_dev_agent.agent.domains.tool_domain import ToolDomain
from flowise_dev_agent.agent.tool_definition import as_tool
from flowise_dev_agent.agent.tools import DomainTools, ToolResult
from flowise_dev_agent.planning.requests import ReadyTool


class TicketsCapability(ToolDomain):
    """Brings its tool where a requirement names tickets."""

    name = "tickets"
    about = "Tickets of Acme."
    skill = "Tickets are looked up by their number: the agent asks for it when it is not said."

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        if "ticket" not in request.requirement.casefold():
            return ()
        return [
            ReadyTool(
                domain=self.name,
                name="status",
                title="Acme tickets",
                about="Tells the status of a ticket.",
                node_name="requestsGet",
                values={
                    "requestsGetUrl": "https://tickets.acme.example/:number",
                    "requestsGetName": "ticket_status",
                    "requestsGetQueryParamsSchema": json.dumps(
                        {"number": {"type": "number", "in": "path", "required": True, "description": "its number"}}
                    ),
                },
                question="What is the status of ticket 7?",
                data_fields=("ticket.number", "ticket.reporter"),
                pii_fields=("ticket.reporter",),
            )
        ]

    def domain_tools(self, scope: ToolScope) -> DomainTools:
        async def list_queues() -> ToolResult:
            """The queues that tickets can be in."""
            return ToolResult(True, ", ".join(json.loads((self.folder / "queues.json").read_text())))

        definition, function = as_tool(list_queues)
        return DomainTools(name=self.name, discover=[definition], executor={definition.name: function})

    async def refresh(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "queues.json").write_text('["support", "billing"]')
        return "2 queues."
