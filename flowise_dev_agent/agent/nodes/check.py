"""Phase E: is the compiled flow right, and may the session go on?"""

from collections.abc import Collection, Mapping
from typing import Any

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.budget import budget_of, waits_for_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domains import Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.patch.model.findings import Finding, errors
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.reasoning.contracts import Usage
from flowise_dev_agent.settings import LimitSettings

#: The person decided to go on without a credential: what follows from that is not an error any more.
_CREDENTIAL_CODES = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})
#: Legal in a flow that a person keeps half-built; in what the agent itself adds, a connection was forgotten.
_LOOSE_CODES = frozenset({"ISOLATED_NODE", "DEAD_END"})


async def validate(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> dict[str, Any]:
    """Check the exact bytes that would be written; only if they pass is their hash stored as validated."""
    if waits_for_budget(state, "compile_patch_ir"):
        return {"validated_sha": None}
    emit = Emitter(runtime, "validate")
    context = runtime.context
    flow_sha = state["flow_sha"]
    findings = [Finding(**item) for item in state["findings"]]
    validated: str | None = None
    if flow_sha and not errors(findings):
        flow_data = await context.blobs.get(flow_sha)
        kind: str = (state["plan"] or {})["flow_kind"]
        base = await _flow_before(state, context)
        found = await domains.primary.validate(context, flow_data, kind, base)
        known = {finding.key for finding in errors(await domains.primary.validate(context, base, kind))} if base else ()
        findings = [_as_decided(finding, state, known) for finding in found]
        validated = None if errors(findings) else payload_sha256(flow_data)
    keys = sorted({finding.key for finding in errors(findings)})
    repeated = bool(keys) and keys == state["error_keys"] and state["retries"] > 0
    emit.event(
        "decision" if keys else "artifact",
        f"{len(keys)} findings" if keys else "Flow passed validation",
        codes=sorted({finding.code for finding in findings}),
    )
    return {
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "error_keys": keys,
        "validated_sha": validated,
        "stop": _stop(state, context.limits, errors(findings), repeated),
    }


async def repair_schema(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Ask the server for node types that no snapshot knows; the same ops are then compiled again."""
    context = runtime.context
    names = state["unknown_types"][: context.limits.max_schema_repairs_per_iter - state["repairs"]]
    repairs = [await context.knowledge.repair(name) for name in names]
    found = sum(repair.schema is not None for repair in repairs)
    Emitter(runtime, "repair_schema").event(
        "drift",
        f"{found} of {len(names)} unknown node types found",
        asked=len(names),
        found=found,
        names=names,
        decisions=[repair.decision.as_dict() for repair in repairs],
    )
    return {"repairs": state["repairs"] + len(names), "findings": []}


def over_budget(state: Mapping[str, Any], limits: LimitSettings) -> str | None:
    """Which ceiling the session has reached, in words; None while there is room."""
    return budget_of(state, limits).exceeded_by(Usage())


def _stop(state: AgentState, limits: LimitSettings, problems: list[Finding], repeated: bool) -> dict[str, Any] | None:
    """Why the next node must ask the person before anything is written."""
    over = over_budget(state, limits)
    if over:
        return {"reason": "budget", "message": f"The session's budget is used up: {over}."}
    if problems and (repeated or state["retries"] >= limits.max_total_retries_per_iter):
        cause = (
            "The same problem came up twice" if repeated else f"{state['retries'] + 1} tries did not give a valid flow"
        )
        return {"reason": "repeated_finding", "message": f"{cause}. Nothing was written."}
    return None


async def _flow_before(state: AgentState, context: AgentContext) -> str | None:
    """The flow that a person has. What is wrong with it already is said, and no reason to refuse a change elsewhere."""
    original: str | None = state["artifacts"].get("flowise", {}).get("original_flow")
    return await context.blobs.get(original) if original else None


def _as_decided(finding: Finding, state: AgentState, known: Collection[str]) -> Finding:
    if finding.severity == "error" and finding.key in known:
        return finding.model_copy(
            update={"severity": "warning", "message": f"{finding.message} (It was so before the change.)"}
        )
    skipped = state["facts"].get("flowise", {}).get("skipped_credentials")
    if skipped and finding.code in _CREDENTIAL_CODES:
        return finding.model_copy(update={"severity": "warning"})
    if finding.code in _LOOSE_CODES and finding.where in _added(state):
        return finding.model_copy(update={"severity": "error"})
    return finding


def _added(state: AgentState) -> set[str]:
    ops = [*state["ops"], *state["seed_ops"]]
    return {op["node_id"] for op in ops if op["op_type"] == "AddNode"}
