"""Map graph state to the columns of the `sessions` row."""

from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.approval.manual_edits import ops_of, with_ops
from flowise_dev_agent.patch import GraphIR, PatchOp, SetParam
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.interrupts import Interrupt, PlanApprovalInterrupt, ResultReviewInterrupt
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from flowise_dev_agent.schemas.shown_plan import NamedNode, ShownPlan, ShownValue

_MAX_CHANGE_CHARS = 8_000
_MAX_PLAN_CHARS = 16_000


def project(values: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of the session's row, from the state's channels; None for values not known yet."""
    state = AgentState.model_validate(values)
    intent, plan = state.intent, state.plan.contract
    return {
        "session_name": intent.classified and intent.classified.title,
        "operation_mode": intent.operation,
        "iteration": state.iteration,
        "chatflow_id": state.write.chatflow_id,
        "outcome": state.outcome,
        "answer": plan.answer if plan and state.outcome == "answered" else None,
        "change": _change(state),
        "conflicts": [conflict.model_dump() for conflict in state.write.conflicts] or None,
        "degraded": [phase.model_dump() for phase in state.usage.degraded],
        "totals": {**state.usage.spent.model_dump(), **_measures(state)},
    }


def _measures(state: AgentState) -> dict[str, Any]:
    """Measurements of phases and tool calls, of all domains."""
    phases = [item for domain in state.debug.values() for item in _listed(domain.get("phase_metrics"))]
    calls = {
        name: count
        for domain in state.debug.values()
        if isinstance(counts := domain.get("tool_calls"), dict)
        for name, count in counts.items()
    }
    return {"phase_metrics": phases, "tool_calls": calls, "get_node_calls_total": calls.get("flowise.get_node", 0)}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _change(state: AgentState) -> dict[str, Any] | None:
    """Change of the flow as blob hashes: `before`, `after`, `base` of the next ops, and `found` after a concurrent
    edit.

    `ops` are those between the first two. `base` is the flow that the next ops are for.
    """
    write, ops = state.write, state.patch.ops
    before, after = write.original_sha, state.check.flow_sha or write.current_sha
    base = write.current_sha or (state.pattern.flow_sha if state.pattern.ops else None)
    if before is None and after is None and base is None:
        return None
    applied = write.applied_ops
    is_written = applied[len(applied) - len(ops) :] == ops
    return {
        "before": before,
        "after": after,
        "base": base,
        "found": write.stale and write.stale.found_sha,
        "draft_id": write.draft_id,
        "ops": [op.model_dump(mode="json") for op in (applied if is_written else [*applied, *ops])],
    }


def result_of(interrupt: Interrupt) -> ResultView | None:
    """Tests and verdict of a `result_review`; None for every other interrupt."""
    if not isinstance(interrupt, ResultReviewInterrupt):
        return None
    data = interrupt.data
    return ResultView(
        summary=interrupt.message,
        verdict=data.verdict,
        tests=data.tests,
        regressions=data.regressions,
        change=data.change.text[:_MAX_CHANGE_CHARS] if data.change else "",
        warnings=data.warnings,
        placeholders=data.placeholders,
    )


def approved_plan(interrupt: Interrupt, answer: JsonMapping) -> ApprovedPlan | None:
    """Text, contract and approach of the plan that a checked `answer` approves; None if it does not approve.

    Secrets that the person typed into a request are masked.
    """
    if not isinstance(interrupt, PlanApprovalInterrupt) or answer["action"] != "approve":
        return None
    contract = interrupt.data.contract
    if isinstance(questions := answer.get("test_questions"), list) and questions:
        contract = contract.with_questions([str(question) for question in questions])
    details = interrupt.data.details
    if details and (real := answer.get("real")):
        details = details.model_copy(update={"called": real})
    if ops := ops_of(answer):
        contract = with_ops(contract, ops, GraphIR.empty(), {}).model_copy(update={"capability": contract.capability})
        details = details and _edited(details, contract, ops)
    shown = Plan(**redacted(contract.model_dump()))
    details = details and ShownPlan(**redacted(details.model_dump()))
    approach = answer.get("approach")
    return ApprovedPlan(
        text=plan_markdown(shown, details, interrupt.data.language, full=True)[:_MAX_PLAN_CHARS],
        contract=shown,
        approach=str(approach) if approach is not None else None,
        form=interrupt.data.form,
    )


def _edited(details: ShownPlan, plan: Plan, ops: Sequence[PatchOp]) -> ShownPlan:
    """Plan details with the person's manual changes."""
    titles = {value.node_id: value.node for value in details.values}
    old = {(value.node_id, value.param): value.old for value in details.values}
    named = {(value.node_id, value.param) for value in plan.values}
    gone = {node.node_id for node in details.removed}
    set_ = [
        ShownValue(
            node_id=op.node_id,
            node=titles.get(op.node_id, op.node_id),
            param=op.param_name,
            old=old.get((op.node_id, op.param_name)),
            new=op.value,
        )
        for op in ops
        if isinstance(op, SetParam)
    ]
    by_hand = {(value.node_id, value.param) for value in set_}
    kept = [one for one in details.values if (place := (one.node_id, one.param)) in named and place not in by_hand]
    more = [NamedNode(node_id=id_, node_name="", label="") for id_ in plan.removals if id_ not in gone]
    return details.model_copy(update={"values": [*kept, *set_], "removed": [*details.removed, *more]})
