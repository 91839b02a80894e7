"""Phase E: validate the compiled flow, and decide if the session may go on."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.budget import over_budget, waits_for_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import SAMPLE_FAILS, Domains, WrittenCode
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.nodes.target import settings_before
from flowise_dev_agent.agent.state import AgentState, BudgetQuestion, BudgetState, CheckState, Update
from flowise_dev_agent.approval.ops import UNUSABLE, decided, files_not_taken, for_the_model
from flowise_dev_agent.flowise.uploads import UNREADABLE, is_readable, takes_files
from flowise_dev_agent.patch import AddNode, Finding, GraphIR, errors, payload_sha256
from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.planning.remarks import is_remark
from flowise_dev_agent.schemas.base import kept
from flowise_dev_agent.schemas.event_data import ArtifactData, DecisionData, DriftData, RepairNote
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.settings import LimitSettings
from flowise_dev_agent.texts import sentences, text


async def validate(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> Update:
    """Check the exact bytes to be written; only if they pass is their hash stored as validated."""
    if waits_for_budget(state, "compile_patch_ir"):
        return {"check": CheckState(validated_sha=None)}
    context = runtime.context
    flow_sha, findings = state.check.flow_sha, state.check.findings
    settings = await settings_before(state, context)
    validated: str | None = None
    if flow_sha:
        flow_data = await context.blobs.get(flow_sha)
        kind = state.plan.current.flow_kind
        base = await _flow_before(state, context)
        found = await domains.primary.validate(context, flow_data, kind, base)
        theirs = [
            await domain.validate(context, flow_data, kind, base) for domain in domains.besides(state.plan.current)
        ]
        before = (await domains.primary.validate(context, base, kind)).findings if base else []
        own = found.findings
        if not _takes_files(state, settings):
            own = [*own, *files_not_taken(GraphIR.from_flow_data(flow_data))]
            before = [*before, *(files_not_taken(GraphIR.from_flow_data(base)) if base else [])]
        findings = findings + decided(
            [*own, *(one for report in theirs for one in report.findings)],
            before,
            ops=state.patch.ops,
            seeded=[op.node_id for op in state.pattern.ops if isinstance(op, AddNode)],
            kind=kind,
            without_credentials=bool(state.credentials.skipped),
            by_hand=state.patch.own,
        )
        by_model = not (state.patch.own or state.plan.by_form)
        if by_model and state.check.retries < context.limits.max_total_retries_per_iter:
            schemas = (await context.knowledge.nodes()).schemas
            findings = for_the_model(findings, state.check.error_keys, state.plan.current, schemas)
        if not errors(findings) and state.plan.approved:
            code = WrittenCode(state.plan.current, flow_data, state.patch.ops, state.patch.samples)
            tried = await domains.primary.try_code(context, code)
            # A sample may be wrong too: after the op writer's retry the person decides.
            findings += [
                finding.model_copy(update={"severity": "warning"})
                if finding.code == SAMPLE_FAILS and finding.key in state.check.error_keys
                else finding
                for finding in tried
            ]
        findings += _settings_to_lose(state, settings)
        validated = None if errors(findings) else payload_sha256(flow_data)
    keys = sorted({finding.key for finding in errors(findings)})
    codes = sorted({finding.code for finding in findings})
    emit = Emitter(runtime, "validate")
    if keys:
        emit.put(DecisionData(codes=codes), text("event.findings", count=len(keys)))
    else:
        emit.put(ArtifactData(codes=codes), text("event.valid"))
    over = over_budget(state, context.limits)
    # Warnings that went back once stay warnings: the same flow has the same problem.
    told = sorted({finding.key for finding in findings if finding.severity == "error" or is_remark(finding)})
    is_same = state.check.error_keys in (keys, told)
    given_up = None if over else _why_given_up(state, keys, settings, context.limits, is_same=is_same)
    if given_up and UNUSABLE in codes:
        given_up = sentences(given_up, text("interrupt.no_usable_answer"))
    stops = kept(given_up) if given_up else None
    update: Update = {"check": CheckState(findings=findings, error_keys=keys, validated_sha=validated, given_up=stops)}
    if over:
        question = BudgetQuestion(node="validate", message=text("error.budget_used", reached=over))
        update["budget"] = BudgetState(question=question)
    return update


async def repair_schema(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Ask the server for node types that no snapshot knows; the same ops are then compiled again."""
    context, check = runtime.context, state.check
    names = check.unknown_types[: context.limits.max_schema_repairs_per_iter - check.repairs]
    repairs = [await context.knowledge.repair(name) for name in names]
    found = sum(repair.schema is not None for repair in repairs)
    notes = [RepairNote(**vars(repair.decision)) for repair in repairs]
    data = DriftData(asked=len(names), found=found, names=names, decisions=notes)
    Emitter(runtime, "repair_schema").put(data, text("event.types_found", found=found, total=len(names)))
    return {"check": CheckState(repairs=check.repairs + len(names), findings=[])}


def _why_given_up(
    state: AgentState, keys: Sequence[str], settings: FlowSettings | None, limits: LimitSettings, *, is_same: bool
) -> str | None:
    """Reason to ask the person instead of the op writer; None while tries are left or nothing is wrong."""
    check = state.check
    if not keys:
        return None
    if _settings_to_lose(state, settings):
        return text(f"finding.{UNREADABLE}")
    if state.patch.own:
        return text("interrupt.own_change_refused")
    if is_same and check.retries > 0:
        return text("interrupt.same_problem_twice")
    if check.retries >= limits.max_total_retries_per_iter:
        return text("interrupt.tries_used", count=check.retries + 1)
    return None


async def _flow_before(state: AgentState, context: AgentContext) -> str | None:
    """Flow before the change. Its existing problems are reported and do not block a change elsewhere."""
    original = state.write.original_sha
    return await context.blobs.get(original) if original else None


def _takes_files(state: AgentState, before: FlowSettings | None) -> bool:
    """True if people can upload files in the flow after the plan."""
    uploads = state.plan.current.uploads
    return takes_files(before and before.chatbot_config) if uploads is None else bool(uploads)


def _settings_to_lose(state: AgentState, before: FlowSettings | None) -> list[Finding]:
    """Error for settings that the plan changes and that cannot be read: writing would replace them all."""
    if not state.plan.current.set_beside or is_readable(before and before.chatbot_config):
        return []
    return [error(UNREADABLE, "The flow's `chatbotConfig` is no JSON object.", field="chatbotConfig")]
