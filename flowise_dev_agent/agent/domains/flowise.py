"""The Flowise domain: retrieval over node schemas, ops, validation, predictions, verdicts."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import by_type
from flowise_dev_agent.agent.domain import (
    DiscoverRequest,
    DomainDiscoveryResult,
    DomainPatchResult,
    EvaluateRequest,
    FlowDomain,
    TestSuite,
    ToolScope,
    ValidationReport,
    WrittenCode,
)
from flowise_dev_agent.agent.domains.candidates import candidates
from flowise_dev_agent.agent.domains.flowise_checks import CHECK_CHARS, RUN_CHARS, FlowiseChecks
from flowise_dev_agent.agent.domains.flowise_tools import CARD_CHARS, LIST_CHARS, FlowiseTools
from flowise_dev_agent.agent.domains.function_trials import failing_functions
from flowise_dev_agent.agent.server_names import server_names
from flowise_dev_agent.agent.targets import FoundTargets, find_targets, flow_id, of_id
from flowise_dev_agent.agent.tool_definition import as_tool
from flowise_dev_agent.agent.tools import DomainTools, execute_tool
from flowise_dev_agent.errors import FlowiseError, FlowiseNotFoundError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.document_stores import read_stores
from flowise_dev_agent.knowledge.flow_check import check_flow
from flowise_dev_agent.knowledge.model_ends import UsedModel, used_models
from flowise_dev_agent.patch import Finding, GraphIR, summarize
from flowise_dev_agent.planning.passes.document_stores import measured
from flowise_dev_agent.planning.passes.feasibility import reviewed
from flowise_dev_agent.planning.passes.model_ends import models_after
from flowise_dev_agent.planning.requests import JudgeRequest, PatchRequest, Reasoned, ServerNames
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import Expectation, Plan, TestCase
from flowise_dev_agent.schemas.verdict import NOT_THE_FLOW, Verdict
from flowise_dev_agent.testing.cases import cases_for, why_not_testable
from flowise_dev_agent.testing.checks import TestedFlow, checked, keep_from_running, remarks_on, uses_models
from flowise_dev_agent.testing.judging import judged, to_judge
from flowise_dev_agent.testing.simulation import Simulation, simulated
from flowise_dev_agent.testing.tool_names import custom_tools
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation, TrialRun
from flowise_dev_agent.testing.verdicts import beside_blocked, failed_verdict, with_pass_k
from flowise_dev_agent.testing.ways import answered_branches, more_ways, told_ways
from flowise_dev_agent.texts import Text, text

#: Tools by phase; those that need an approved plan are in patch and test.
_DISCOVER: Final = (
    *("search_nodes", "get_node", "list_options", "search_templates", "get_template"),
    *("read_flow", "list_flows", "list_credentials", "search_patterns", "use_pattern"),
)
_PATCH: Final = ("get_node", "list_options", "get_template", "read_flow", "check_ops", "run_function")
_TEST: Final = ("ask_flow", "read_trace")


class FlowiseCapability(FlowDomain):
    """See `FlowDomain`. Holds no state: one object serves all sessions and instances."""

    name = "flowise"
    about = "Chatflows and AgentFlows of a Flowise server."

    def domain_tools(self, scope: ToolScope) -> DomainTools:
        lookups, checks = FlowiseTools(scope), FlowiseChecks(scope)
        tools = [
            as_tool(lookups.search_nodes, limit=LIST_CHARS),
            as_tool(lookups.get_node, limit=CARD_CHARS),
            as_tool(lookups.list_options, limit=CARD_CHARS),
            as_tool(lookups.search_templates, limit=LIST_CHARS),
            as_tool(lookups.get_template, limit=CARD_CHARS),
            as_tool(lookups.read_flow, limit=CARD_CHARS),
            as_tool(lookups.list_flows, limit=LIST_CHARS),
            as_tool(lookups.list_credentials, limit=1_000),
            as_tool(lookups.search_patterns, limit=1_500),
            as_tool(lookups.use_pattern, limit=LIST_CHARS),
            as_tool(checks.check_ops, limit=CHECK_CHARS, answered_once=False),
            as_tool(checks.run_function, limit=RUN_CHARS, answered_once=False),
            as_tool(checks.ask_flow, limit=RUN_CHARS, answered_once=False),
            as_tool(checks.read_trace, limit=CHECK_CHARS),
        ]
        definitions = {definition.name: definition for definition, _ in tools}
        return DomainTools(
            name=self.name,
            discover=[definitions[name] for name in _DISCOVER],
            patch=[definitions[name] for name in _PATCH],
            test=[definitions[name] for name in _TEST],
            executor={definition.name: function for definition, function in tools},
        )

    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        store = await context.knowledge.nodes()
        tools = self.domain_tools(ToolScope(flowise=context.flowise, knowledge=context.knowledge))
        listed = await execute_tool("list_credentials", {}, tools.executor)
        if isinstance(listed.data, FlowiseError):
            raise listed.data
        credentials = by_type(listed.data)
        text = f"{request.requirement}\n{request.feedback or ''}"
        shown = ()
        if context.reasoner.reads_candidates:
            # The first search builds an index, which would block the worker's heartbeat on a busy machine.
            shown = await asyncio.to_thread(candidates, store, text, similar=request.similar, kind=request.kind)
        known = f"{len(shown)} candidate node types of {len(store.schemas)} (Flowise {store.flowise_version})"
        return DomainDiscoveryResult(
            summary=f"{known}. {listed.summary}",
            facts=listed.facts,
            tool_results=(listed,),
            candidates=shown,
            credentials=credentials,
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

    async def find_flows(
        self, context: AgentContext, *, target: str | None, hint: str | None, text: str
    ) -> FoundTargets:
        if id_ := flow_id(target):
            with suppress(FlowiseNotFoundError):
                if named := of_id(await context.publisher.read(id_)):
                    return named
        return await find_targets(context.flows, context.flowise, target=target, hint=hint, text=text)

    async def read_flow(self, context: AgentContext, chatflow_id: str) -> Chatflow:
        return await context.publisher.current(chatflow_id)

    async def forget(self, context: AgentContext, chatflow_id: str, session: str) -> None:
        await context.flowise.delete_messages(chatflow_id, session)

    async def review_plan(self, context: AgentContext, plan: Plan, base: GraphIR) -> list[Finding]:
        store = await context.knowledge.nodes()
        return await reviewed(plan, base=base, schemas=store.schemas, flowise=context.flowise)

    async def document_stores(self, context: AgentContext) -> list[DocumentStoreView]:
        try:
            return await read_stores(context.flowise)
        except FlowiseError:
            # The key may lack the permission: a plan without stores is still one.
            return []

    async def names(self, context: AgentContext, with_models: Sequence[str]) -> ServerNames:
        return await server_names(context.flowise, with_models)

    async def measure_stores(self, context: AgentContext, plan: Plan) -> Plan:
        return await measured(plan, context.files, context.flowise)

    async def planned_models(
        self, context: AgentContext, plan: Plan, base: GraphIR, *, ending_only: bool
    ) -> list[UsedModel]:
        schemas = (await context.knowledge.nodes()).schemas
        uses = await asyncio.to_thread(models_after, plan, base, schemas)
        return await used_models(uses, context.flowise, ending_only=ending_only)

    async def try_code(self, context: AgentContext, code: WrittenCode) -> list[Finding]:
        scope = ToolScope(flowise=context.flowise, knowledge=context.knowledge, plan=code.plan)
        return await failing_functions(scope, code.flow_data, code.ops, code.samples)

    def generate_tests(self, plan: Plan, flow_data: str, *, trials: int) -> TestSuite:
        graph = GraphIR.from_flow_data(flow_data)
        cases = cases_for(plan.tests, graph)
        cases = (*cases, *answered_branches(graph, cases))
        reasons = {case.id: why for case in cases if (why := why_not_testable(case, graph, in_copy=True))}
        return TestSuite(cases, trials, reasons)

    def more_tests(self, flow_data: str, runs: Sequence[TrialRun], simulation: Simulation) -> list[TestCase]:
        return more_ways(runs, GraphIR.from_flow_data(flow_data), simulation)

    def told_ways(self, flow_data: str, runs: Sequence[TrialRun], simulation: Simulation) -> list[Text]:
        return told_ways(runs, GraphIR.from_flow_data(flow_data), simulation)

    async def simulate(
        self,
        context: AgentContext,
        flow_data: str,
        tests: Sequence[TestCase],
        real: Collection[str] | None = None,
        harmless: Collection[str] = (),
    ) -> Simulation:
        schemas = (await context.knowledge.nodes()).schemas
        graph = GraphIR.from_flow_data(flow_data)
        return await asyncio.to_thread(
            lambda: simulated(graph, schemas, tests, real, limits=real is None, harmless=harmless)
        )

    async def run_trial(self, context: AgentContext, conversation: TrialConversation) -> TrialRun:
        asked = conversation.simulation.flow_data or conversation.flow_data
        if missing := keep_from_running(GraphIR.from_flow_data(asked)):
            why_not = text("interrupt.to_be_filled_in", placeholders="; ".join(missing))
            run = await ConversationRunner(context.flowise, replace(conversation, not_testable=why_not)).run()
            return replace(run, trial=run.trial.model_copy(update={"category": "CONFIG"}))
        run = await ConversationRunner(context.flowise, conversation).run()
        variables = None
        if run.trial.category and "$vars." in conversation.flow_data:
            with suppress(FlowiseError):
                variables = {str(one.get("name")) for one in await context.flowise.list_variables()}
        trial = checked(
            run.trial,
            run.trace,
            conversation.case,
            conversation.flow_data,
            stand_in=context.model_stand_in,
            variables=variables,
            asked=asked,
            tools=await custom_tools(context.flowise, conversation.flow_data) if conversation.case.expect.tools else {},
        )
        return replace(run, trial=trial)

    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        tools = await custom_tools(context.flowise, request.flow_data)
        result = await self._verdict(context, request, tools)
        by_model = result.mode == "llm_guided"
        verdict = judged(
            result.value,
            request.plan,
            request.results,
            request.traces,
            request.flow_data,
            beside=request.beside,
            by_model=by_model,
            original=request.original,
            tools=tools,
        )
        return replace(result, value=with_pass_k(verdict, request.results))

    async def _verdict(
        self, context: AgentContext, request: EvaluateRequest, tools: Mapping[str, str]
    ) -> Reasoned[Verdict]:
        failed = failed_verdict(request.results)
        held = any(result.passed for result in request.results)
        if failed and not (held and all(result.category in {None, *NOT_THE_FLOW} for result in request.results)):
            return Reasoned(value=failed, mode="deterministic")
        if not held:
            return Reasoned(value=Verdict(done=True, reason=request.results[0].error), mode="deterministic")
        expects = {case.id: case.expect for case in request.plan.tests}
        graph = GraphIR.from_flow_data(request.flow_data)
        flow = TestedFlow.of(graph, tools)
        stand_in = context.model_stand_in and uses_models(graph)
        remarks = [
            remarks_on(trial, trace, expects.get(trial.test or "", Expectation()), flow, stand_in=stand_in)
            if trial.passed
            else []
            for trial, trace in zip(request.results, request.traces, strict=True)
        ]
        judged = await context.reasoner.judge(
            JudgeRequest(
                requirement=request.requirement,
                clarifications=request.clarifications,
                later=request.later,
                plan=to_judge(request.plan),
                trials=request.results,
                traces=request.traces,
                remarks=tuple(remarks),
                flow_summary=summarize(graph),
                stand_in=stand_in,
                model=request.model,
                on_delta=request.on_delta,
                budget=request.budget,
                tools=request.tools,
            )
        )
        return replace(judged, value=beside_blocked(judged.value, failed)) if failed else judged
