"""The Flowise domain: retrieval over node schemas, ops, validation, predictions, verdicts."""

from dataclasses import replace
from functools import partial

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import available_credentials
from flowise_dev_agent.agent.domain import (
    DiscoverRequest,
    DomainCapability,
    DomainDiscoveryResult,
    DomainPatchResult,
    EvaluateRequest,
    TestSuite,
    ValidationReport,
)
from flowise_dev_agent.agent.domains.candidates import candidates
from flowise_dev_agent.agent.domains.verdicts import failed_verdict, with_pass_k
from flowise_dev_agent.agent.test_cases import cases_for, why_not_testable
from flowise_dev_agent.agent.tools import DomainTools, ToolResult, execute_tool, shorten
from flowise_dev_agent.agent.trials import Conversation, ConversationRunner, TrialRun
from flowise_dev_agent.contracts.base import JsonObject
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.knowledge.flow_check import check_flow
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.reasoning.contracts import (
    JudgeRequest,
    PatchRequest,
    PlanContract,
    Reasoned,
    ToolDef,
    Verdict,
)

_NODE_NAME: JsonObject = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
_NOTHING: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


class FlowiseCapability(DomainCapability):
    """See `DomainCapability`. Holds no state: one object serves all sessions and instances."""

    name = "flowise"

    @property
    def domain_tools(self) -> DomainTools:
        get_node = ToolDef(
            name="get_node", description="One node type: inputs, anchors, outputs.", parameters=_NODE_NAME
        )
        credentials = ToolDef(
            name="list_credentials",
            description="Credential types of the instance, with counts.",
            parameters=_NOTHING,
        )
        return DomainTools(name=self.name, discover=(get_node, credentials), patch=(get_node,))

    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        store = await context.knowledge.nodes()
        listed = await execute_tool("list_credentials", {}, {"list_credentials": partial(_list_credentials, context)})
        if isinstance(listed.data, FlowiseError):
            raise listed.data
        text = f"{request.requirement}\n{request.feedback or ''}"
        counts = {type_: len(items) for type_, items in listed.data.items()}
        suggested = context.reasoner.suggest_node_types(text, store, counts)
        shown = candidates(store, text, similar=[*suggested, *request.similar], kind=request.kind)
        known = f"{len(shown)} candidate node types of {len(store.schemas)} (Flowise {store.flowise_version})"
        templates = (await context.knowledge.templates()).find_flows(text, store.schemas)
        return DomainDiscoveryResult(
            summary=f"{known}. {listed.summary}",
            facts=listed.facts,
            tool_results=(listed,),
            candidates=shown,
            credentials=listed.data,
            templates=tuple(templates),
        )

    async def compile_ops(self, context: AgentContext, request: PatchRequest) -> DomainPatchResult:
        return await context.reasoner.patch(request)

    async def validate(
        self, context: AgentContext, flow_data: str, kind: str, base_flow_data: str | None = None
    ) -> ValidationReport:
        store = await context.knowledge.nodes()
        credentials = await context.knowledge.credentials()
        findings = await check_flow(
            context.flowise,
            flow_data,
            kind=kind,
            schemas=store.schemas,
            credentials=credentials.types(),
            base_flow_data=base_flow_data,
        )
        return ValidationReport(findings)

    def generate_tests(
        self, plan: PlanContract, flow_data: str, *, questions: list[str] | None, trials: int
    ) -> TestSuite:
        graph = GraphIR.from_flow_data(flow_data)
        cases = cases_for(plan, graph, questions)
        reasons = {case.id: why for case in cases if (why := why_not_testable(case, graph))}
        return TestSuite(cases, trials, reasons)

    async def run_trial(self, context: AgentContext, conversation: Conversation) -> TrialRun:
        return await ConversationRunner(context.flowise, conversation).run()

    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        failed = [result for result in request.results if result.category]
        if failed:
            numbers = [number for number, result in enumerate(request.results, start=1) if result.category]
            verdict = failed_verdict(failed, len(request.results)).model_copy(update={"failed_trials": numbers})
            return Reasoned(value=with_pass_k(verdict, request.results), mode="deterministic")
        judged = await context.reasoner.judge(
            JudgeRequest(
                requirement=request.requirement,
                plan=request.plan,
                trials=request.results,
                model=request.model,
                on_delta=request.on_delta,
                budget=request.budget,
            )
        )
        return replace(judged, value=with_pass_k(judged.value, request.results))


async def _list_credentials(context: AgentContext) -> ToolResult:
    by_type = await available_credentials(context)
    counts: JsonObject = {type_: len(items) for type_, items in sorted(by_type.items())}
    text = ", ".join(f"{type_} ({count})" for type_, count in counts.items()) or "none"
    return ToolResult(
        True, f"Credential types of the instance: {shorten(text)}.", facts={"credentials": counts}, data=by_type
    )
