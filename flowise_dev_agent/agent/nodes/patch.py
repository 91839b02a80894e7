"""Phase D, second half: scope, ops, flow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.budget import asks_for_budget, budget_of, waits_for_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import (
    available_credentials,
    credential_question,
    match_credentials,
    settle_credentials,
)
from flowise_dev_agent.agent.domain import Domains
from flowise_dev_agent.agent.drift import check_drift
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.failed_trials import failed_trials
from flowise_dev_agent.agent.state import (
    AgentState,
    CheckState,
    PatchState,
    PlanState,
    Update,
)
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.approval.agreed_values import changed_values
from flowise_dev_agent.approval.amending import amended
from flowise_dev_agent.approval.binding import beyond_approval, capability_of, with_agreed
from flowise_dev_agent.approval.ops import UNUSABLE, PatchScope, compiled, completed, findings_of
from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.knowledge.credential_requirements import required_types
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Finding, GraphIR, NodeSchema, PatchOp
from flowise_dev_agent.patch.validate.models import MODEL_END_CODES
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.made_with_flow import made_ids
from flowise_dev_agent.planning.passes.attached import contents
from flowise_dev_agent.planning.passes.custom_tools import with_tools
from flowise_dev_agent.planning.passes.ready_tools import merged
from flowise_dev_agent.planning.permissions import starters_text, uploads_text
from flowise_dev_agent.planning.planned_lines import with_following_lines
from flowise_dev_agent.planning.prompt_context import (
    focused_summary,
    like_flows,
)
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.publish import changes
from flowise_dev_agent.schemas.change import Difference
from flowise_dev_agent.schemas.event_data import ArtifactData, RetryData
from flowise_dev_agent.schemas.plan import AmendAnswer, FunctionSample, NothingToChange, OpsAnswer, PatchAnswer, Plan
from flowise_dev_agent.texts import text

#: Similarity (difflib ratio) from which an unknown node type counts as a known one misspelt.
MISSPELT = 0.85
#: Most consecutive amendments that the approval covers.
_MAX_AMENDMENTS = 2


async def define_patch_scope(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Clarify the credentials with the person, then limit what the op writer may do."""
    missing = state.credentials.missing
    if missing:
        answer: dict[str, Any] = interrupt(credential_question(missing).in_language(state.language).as_value())
        return await settle_credentials(state, runtime.context, answer)
    limits = runtime.context.limits
    scope = PatchScope(
        nodes=[node.node_id for node in state.plan.current.nodes],
        max_ops=limits.max_patch_ops_per_iter,
        max_new_nodes=limits.max_workflow_nodes,
    )
    return {"patch": PatchState(scope=scope), "answer": None}


@asks_for_budget
async def compile_patch_ir(
    state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains, tools: SessionToolbox
) -> Update:
    """Have the ops written; a retry includes the findings and the last ops."""
    emit = Emitter(runtime, "compile_patch_ir")
    context = runtime.context
    plan, scope = state.plan.current, state.patch.scope
    if unknown := domains.unknown(plan):
        retries = state.check.retries + (1 if state.check.findings else 0)
        return {
            "patch": PatchState(ops=[], own=False),
            "check": CheckState(findings=unknown, flow_sha=None, validated_sha=None, retries=retries),
        }
    # The plan decides on the models, whose ends the person knows.
    findings = [
        finding for finding in state.check.findings if finding.origin == "new" and finding.code not in MODEL_END_CODES
    ]
    if scope is None:
        raise LookupError("The scope of the patch is not defined.")
    if plan.leaves_nodes:
        return {
            "patch": PatchState(ops=[], nothing_to_change=None, own=False),
            "check": CheckState(findings=[], flow_sha=None, validated_sha=None),
        }
    graph = await base_graph(state, context)
    nodes = await context.knowledge.nodes()
    request = PatchRequest(
        requirement=state.request.requirement,
        clarifications=tuple(state.intent.clarifications),
        later=state.later_words,
        model=state.request.model,
        on_delta=emit.delta,
        budget=budget_of(state, context.limits),
        plan=plan,
        by_form=state.plan.by_form,
        nodes=nodes,
        target=state.target.flow.name if state.target.flow else None,
        approach=state.plan.approach,
        flow_summary=focused_summary(graph, plan.goal, scope.nodes) if graph.nodes else None,
        flow=GraphView(graph, (*scope.nodes, *plan.removals)),
        feedback=state.plan.feedback,
        verdict=state.review.verdict,
        failed=await failed_trials(state, context),
        findings=tuple(findings),
        previous_ops=tuple(state.patch.ops),
        max_ops=scope.max_ops,
        tools=tools,
        like_flows=() if graph.nodes else await like_flows(context.knowledge, plan, nodes),
        seed=tuple(state.pattern.ops) if state.write.current_sha is None else (),
    )
    if findings:
        codes = sorted({item.code for item in findings})
        emit.put(RetryData(codes=codes), text("event.ops_go_back", count=len(findings)))
    ops: list[PatchOp] = []
    samples: list[FunctionSample] = []
    problems: list[Finding] = []
    usage = state.usage
    reasons: list[str] = []
    shares: dict[str, list[PatchOp]] = {}
    for domain in domains.besides(plan):
        # No model: the plan already contains the contributions of these domains.
        given = (await domain.compile_ops(context, request)).value
        if isinstance(given, OpsAnswer) and given.ops:
            shares[domain.name] = given.ops
    answer: PatchAnswer | None = None
    by_model = False
    for _ in range(_MAX_AMENDMENTS + 1):
        try:
            result = await domains.primary.compile_ops(context, request)
        except (PatchError, ModelOutputError) as error:
            problems += findings_of(error)
            if isinstance(error, ModelOutputError):
                # There are no new findings on the ops of the last readable round.
                problems += [one for one in request.findings if one.code != UNUSABLE]
                ops += request.previous_ops if request.findings else ()
            usage = usage.spent_on(error)
            answer = None
            break
        emit.reasoned("patch", result)
        usage = usage.plus("patch", result)
        answer, by_model = result.value, result.mode == "llm_guided"
        if not isinstance(answer, AmendAnswer):
            break
        takes_back = not plan.new_nodes.isdisjoint(answer.removals) or any(one.value is None for one in answer.values)
        plan = _amended(plan, answer, request.nodes, graph)
        if takes_back or changed_values(plan, state.plan.agreed_values, graph) or _needs_approval(plan, state):
            return {**await _back_to_the_person(plan, answer.reason, state, context), "usage": usage}
        # Findings on ops of the old plan do not apply to the amended one.
        request = replace(request, plan=plan, findings=(), previous_ops=())
    if shares and isinstance(answer, NothingToChange):
        answer = OpsAnswer()
    match answer:
        case OpsAnswer():
            given = merged(answer.ops, shares)
            ops, found = completed(given, plan, graph, request.nodes.schemas, scope=scope, by_model=by_model)
            samples += answer.samples
            problems += found
        case NothingToChange() if findings:
            ops += request.previous_ops  # the findings are no reason to change them
        case NothingToChange():
            reasons.append(answer.reason)
        case AmendAnswer():
            detail = f"The plan was amended {_MAX_AMENDMENTS + 1} times without any ops."
            problems.append(Finding(code="NO_OPS", severity="error", detail=detail, hint="Answer with the ops now."))
        case None:
            pass
    nothing = " ".join(reasons) if reasons and not ops and not problems else None
    if nothing and plan.operation == "copy" and state.write.chatflow_id is None:
        nothing = None  # the copy itself is still to be made
    return {
        "plan": PlanState(contract=plan),
        "patch": PatchState(ops=ops, samples=samples, nothing_to_change=nothing, own=False),
        "check": CheckState(
            findings=problems,
            flow_sha=None,
            validated_sha=None,
            retries=state.check.retries + (1 if findings else 0),
        ),
        "usage": usage,
    }


def _amended(plan: Plan, answer: AmendAnswer, nodes: NodeStore, base: GraphIR) -> Plan:
    """Plan with the amendment and the resulting capability."""
    new = [schema for node in answer.nodes if not node.existing and (schema := nodes.get(node.node_name))]
    wider = with_tools(amended(plan, answer, required_types(new, {}), nodes.schemas), {})
    wider = with_following_lines(wider, base, nodes.schemas)
    made = capability_of(wider, nodes.schemas, base)
    return wider.model_copy(update={"capability": with_agreed(made, plan.capability)})


def _needs_approval(plan: Plan, state: AgentState) -> bool:
    agreed = state.plan.agreed
    return agreed is None or plan.capability is None or beyond_approval(plan.capability, agreed) is not None


async def _back_to_the_person(plan: Plan, reason: str, state: AgentState, context: AgentContext) -> Update:
    """Return the amended plan to the person before anything is written; `define_patch_scope` then asks for new
    credentials.
    """
    available = await available_credentials(context)
    return {
        "plan": PlanState(contract=plan, approved=False, amended=reason),
        "patch": PatchState(ops=[], own=False),
        "check": CheckState(findings=[], flow_sha=None, validated_sha=None),
        "credentials": match_credentials(plan.credential_requirements, available, state.credentials.chosen),
    }


async def compile_flow_data(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Compile the ops onto the base. Findings on ops stand beside those of the flow, so that all go back at once."""
    context, ops, found = runtime.context, state.patch.ops, state.check.findings
    unreadable = found and (not ops or any(one.code == UNUSABLE for one in found))
    if unreadable or waits_for_budget(state, "compile_patch_ir"):
        return {"check": CheckState(flow_sha=None, unknown_types=[])}
    drift = await check_drift(state, runtime, "compile_flow_data")
    if drift.finding:
        check = CheckState(flow_sha=None, findings=[*found, drift.finding], unknown_types=[])
        return {"check": check, "catalogue": drift.catalogue}
    plan = state.plan.current
    if not ops and (plan.leaves_nodes or (plan.operation == "copy" and not plan.changes)):
        # A copy as it is, a flow with another name or settings, and one whose document store grows: the very bytes of
        # the original.
        if plan.only_fills:
            words = text("change.more_files", stores=[one.name for one in plan.document_stores])
        elif plan.new_name:
            words = text("change.renamed", name=plan.new_name)
        elif plan.uploads is not None and plan.operation == "update":
            words = uploads_text(plan.uploads)
        elif plan.starter_questions is not None and plan.operation == "update":
            words = starters_text(plan.starter_questions)
        else:
            words = text("change.unchanged_copy")
        change = Difference(text=words)
        check = CheckState(flow_sha=state.write.current_sha, change=change, unknown_types=[])
        return {"check": check, "catalogue": drift.catalogue}
    graph = await base_graph(state, context)
    schemas = drift.store.schemas
    try:
        files = await contents(ops, context.files)
        made = await compiled(
            ops,
            state.plan.current,
            graph,
            schemas,
            credentials=state.credentials.chosen,
            unbound=seeded_ids(state),
            files=files,
            made=made_ids(plan, state.write.stores, state.write.tools),
            original=await _original(state, context),
            by_model=not state.patch.own,
        )
    except PatchError as error:
        findings = findings_of(error)
        # Ops that go back anyway are not worth a look-up, which compiles them again.
        unknown = [] if found else _unknown_types(findings, ops, schemas)
        return {
            "check": CheckState(flow_sha=None, findings=[*found, *findings], unknown_types=unknown),
            "catalogue": drift.catalogue,
        }
    result = made.result
    await context.blobs.put(result.flow_data, at_once=True)
    change = changes(graph, result.graph)
    data = ArtifactData(flow=result.sha256, ops=len(ops))
    Emitter(runtime, "compile_flow_data").put(data, text("event.compiled", count=len(ops)))
    check = CheckState(
        flow_sha=result.sha256, change=change, findings=[*found, *made.lacking, *made.left_out], unknown_types=[]
    )
    return {"check": check, "patch": PatchState(ops=made.ops), "catalogue": drift.catalogue}


async def _original(state: AgentState, context: AgentContext) -> GraphIR | None:
    """Flow before the session; None if the session made it."""
    sha256 = state.write.original_sha
    return GraphIR.from_flow_data(await context.blobs.get(sha256)) if sha256 else None


async def flow_so_far(state: AgentState, context: AgentContext) -> GraphIR:
    """Flow as last read or written; empty before that."""
    sha256 = state.write.current_sha
    return GraphIR.from_flow_data(await context.blobs.get(sha256)) if sha256 else GraphIR.empty()


async def base_graph(state: AgentState, context: AgentContext) -> GraphIR:
    """Flow that the ops apply to: the flow so far, else the nodes taken from a pattern."""
    seed = state.pattern.flow_sha if state.pattern.ops and state.write.current_sha is None else None
    return GraphIR.from_flow_data(await context.blobs.get(seed)) if seed else await flow_so_far(state, context)


def seeded_ids(state: AgentState) -> list[str]:
    """Ids of the base's nodes that come from a pattern, which has no credentials."""
    return [op.node_id for op in state.pattern.ops if isinstance(op, AddNode)] if not state.write.current_sha else []


def _unknown_types(findings: Sequence[Finding], ops: Sequence[PatchOp], schemas: Mapping[str, NodeSchema]) -> list[str]:
    """Node types to ask the server for: unknown here, and not a misspelling of a known one."""
    named = [ops[item.op_index] for item in findings if item.code == "UNKNOWN_NODE_NAME" and item.op_index is not None]
    names = dict.fromkeys(op.node_name for op in named if isinstance(op, AddNode))
    return [name for name in names if not get_close_matches(name, schemas, n=1, cutoff=MISSPELT)]
