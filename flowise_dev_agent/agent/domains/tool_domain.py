"""Domain whose systems are reached by agent tools: code adds them to the plan, without a model."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import (
    DiscoverRequest,
    DomainCapability,
    DomainDiscoveryResult,
    DomainPatchResult,
    EvaluateRequest,
    TestSuite,
    ToolScope,
    ValidationReport,
)
from flowise_dev_agent.agent.tools import DomainTools, shorten
from flowise_dev_agent.patch import Finding, GraphIR
from flowise_dev_agent.planning.passes.ready_tools import ops_of, owned, owner_of
from flowise_dev_agent.planning.requests import PatchRequest, ReadyTool, Reasoned
from flowise_dev_agent.schemas.plan import OpsAnswer, Plan
from flowise_dev_agent.schemas.verdict import TracedTool, Verdict, VerdictCategory

#: Code of a finding on a tool that no agent has.
NOT_CONNECTED: Final = "TOOL_NOT_CONNECTED"
#: Texts by which Flowise reports a failed request.
_FAILED: Final = re.compile(r"(?:Failed to make \w+ request|HTTP Error|MCP error|^Error:)\W*(.{0,200})", re.DOTALL)
_REFUSED: Final = re.compile(r"\b(?:401|403)\b|unauthori[sz]ed|forbidden", re.IGNORECASE)


class ToolDomain(DomainCapability):
    """Base of domains with ready tools. Subclasses implement `tools_for`; everything else follows from it."""

    #: Instructions for a planner that uses the tools.
    skill: str = ""

    @abstractmethod
    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        """Tools that the requirement asks for, best first; empty if it does not concern this domain."""

    def domain_tools(self, scope: ToolScope) -> DomainTools:
        del scope
        return DomainTools(name=self.name)

    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        tools = tuple(await self.tools_for(context, request))
        names = ", ".join(tool.title for tool in tools)
        return DomainDiscoveryResult(
            summary=f"{self.name}: {names or 'nothing'} for this requirement.",
            facts={"tools": [tool.node_id for tool in tools]} if tools else {},
            ready_tools=tools,
            skill=self.skill if tools else "",
        )

    async def compile_ops(self, context: AgentContext, request: PatchRequest) -> DomainPatchResult:
        ops = ops_of(request.plan, self.name, request.flow.graph, request.nodes.schemas)
        return Reasoned(OpsAnswer(ops=ops), mode="deterministic")

    async def validate(
        self, context: AgentContext, flow_data: str, kind: str, base_flow_data: str | None = None
    ) -> ValidationReport:
        graph = GraphIR.from_flow_data(flow_data)
        connected = {edge.source for edge in graph.edges}
        return ValidationReport(
            [
                Finding(
                    code=NOT_CONNECTED,
                    severity="error",
                    detail=f"No agent has the tool {node.id}.",
                    where=node.id,
                    hint="Connect it to the `tools` of an agent.",
                )
                for node in graph.nodes
                if owner_of(node.id) == self.name and node.id not in connected
            ]
        )

    def generate_tests(self, plan: Plan, flow_data: str, *, trials: int) -> TestSuite:
        names = {node.node_id for node in owned(plan, self.name)}
        names |= {node.id for node in GraphIR.from_flow_data(flow_data).nodes if owner_of(node.id) == self.name}
        cases = tuple(case for case in plan.tests if names & {*case.expect.tools})
        return TestSuite(cases, trials, domain_scopes=(self.name,))

    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        """Fail the verdict if the system behind a tool did not answer: a model may hide that in its reply."""
        for number, trace in enumerate(request.traces, start=1):
            for tool in trace.used_tools:
                if failure := _failure(tool):
                    category: VerdictCategory = "CREDENTIAL" if _REFUSED.search(failure) else "EXTERNAL"
                    reason = f"The tool {tool.tool} failed: {shorten(failure, 200)}"
                    fix = "Check its address and the variable that holds its token in Flowise, then iterate."
                    found = Verdict(done=False, category=category, reason=reason, fix=fix, failed_trials=[number])
                    return Reasoned(found, mode="deterministic")
        return Reasoned(Verdict(done=True), mode="deterministic")


def _failure(tool: TracedTool) -> str:
    if tool.error:
        return tool.error
    found = _FAILED.search(tool.output) if isinstance(tool.output, str) else None
    return found.group() if found else ""
