"""The graph's state: small JSON only.

Whole flows and full test answers are content-addressed blobs; the state carries their hash. Session
facts that a person may edit at any time (name, labels) live in the `sessions` row, never here.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from flowise_dev_agent.reasoning.contracts import Degraded, Usage

#: Rounds of clarifying questions in one session.
MAX_CLARIFICATION_ROUNDS = 2


def append(left: list[Any], right: list[Any]) -> list[Any]:
    """Reducer: a transcript only grows."""
    return [*left, *right]


def merge_domains(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Reducer: `{domain: {key: value}}` merged per domain and per key; the last writer of a key wins."""
    merged = dict(left)
    for domain, entries in right.items():
        merged[domain] = {**merged.get(domain, {}), **entries}
    return merged


def add_usage(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Reducer: sum of `Usage` dumps."""
    return (Usage(**left) + Usage(**right)).model_dump()


class AgentState(TypedDict):
    """See the groups. All keys are there from the start, all values are JSON."""

    # What was asked for (written once, by `initial_state`; `budget` grows when the person raises it)
    session_id: str
    requirement: str
    request: dict[str, Any]
    budget: dict[str, Any]

    # Across phases
    messages: Annotated[list[dict[str, str]], append]
    artifacts: Annotated[dict[str, Any], merge_domains]
    facts: Annotated[dict[str, Any], merge_domains]
    usage: Annotated[dict[str, Any], add_usage]
    degraded: Annotated[list[dict[str, Any]], append]
    #: The last answer of the person, normalised: {"type", "action", ...}. Routers read it.
    answer: dict[str, Any] | None
    iteration: int
    outcome: str | None

    # A intent
    intent: dict[str, Any] | None
    operation_mode: str | None
    open_questions: list[str]
    clarifications: list[list[str]]
    clarification_rounds: int

    # B target, C baseline
    target_chatflow_id: str | None
    target_candidates: list[dict[str, Any]]
    #: What the search for the target came to: {fits, named, total, wanted}.
    target_search: dict[str, Any] | None
    #: The flow to change or copy: {id, name, type, deployed}.
    target: dict[str, Any] | None
    #: What the flow in use was when it was last read: {sha256, updated_date}.
    live_base: dict[str, str] | None
    #: The same of what ops are written to: the draft, or the flow itself.
    base: dict[str, str] | None
    write_mode: str | None
    #: What the person must know beside the plan.
    notes: list[str]

    # D plan, patch
    plan: dict[str, Any] | None
    #: The person approved a plan, and no later one went beyond it.
    approved: bool
    approach: str | None
    feedback: str | None
    missing_credentials: list[dict[str, Any]]
    credential_choices: dict[str, str]
    #: The accepted flow that a new one starts from, and the ops that were taken over from it.
    pattern_used: bool
    pattern_id: int | None
    ops_in_base: int
    seed_ops: list[dict[str, Any]]
    scope: dict[str, Any] | None
    ops: list[dict[str, Any]]
    #: The ops that were written already, for another base.
    applied_ops: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    unknown_types: list[str]
    flow_sha: str | None
    change: dict[str, Any] | None

    # E check
    validated_sha: str | None
    retries: int
    repairs: int
    error_keys: list[str]
    #: Why the next node must ask before a write: {reason, message, ...}.
    stop: dict[str, Any] | None

    # F apply, test
    #: What `apply_patch` does next: baseline, apply, promote, accept, rollback or discard.
    stage: str
    draft_id: str | None
    reviewed_sha: str | None
    chatflow_id: str | None
    chatflow_name: str | None
    tests: list[dict[str, Any]]
    #: The same questions asked before the change; None as long as they were not.
    baseline_tests: list[dict[str, Any]] | None
    #: Hash of the very bytes that were tested: what may be promoted.
    tested_sha: str | None
    verdict: dict[str, Any] | None
    next_step: str | None


def initial_state(request: Mapping[str, Any]) -> AgentState:
    """The state of a new session from its start request (`StartSession` as JSON, with `thread_id` set)."""
    return AgentState(
        session_id=str(request["thread_id"]),
        requirement=request["requirement"],
        request={
            key: request.get(key)
            for key in (
                "operation",
                "target",
                "write_mode",
                "review_patch",
                "skip_clarification",
                "test_trials",
                "test_questions",
                "model",
                "session_name",
            )
        },
        budget=dict(request.get("budget") or {}),
        messages=[],
        artifacts={},
        facts={},
        usage=Usage().model_dump(),
        degraded=[],
        answer=None,
        iteration=0,
        outcome=None,
        intent=None,
        operation_mode=None,
        open_questions=[],
        clarifications=[],
        clarification_rounds=0,
        target_chatflow_id=None,
        target_candidates=[],
        target_search=None,
        target=None,
        live_base=None,
        base=None,
        write_mode=None,
        notes=[],
        plan=None,
        approved=False,
        approach=None,
        feedback=None,
        missing_credentials=[],
        credential_choices={},
        pattern_used=False,
        pattern_id=None,
        ops_in_base=0,
        seed_ops=[],
        scope=None,
        ops=[],
        applied_ops=[],
        findings=[],
        unknown_types=[],
        flow_sha=None,
        change=None,
        validated_sha=None,
        retries=0,
        repairs=0,
        error_keys=[],
        stop=None,
        stage="apply",
        draft_id=None,
        reviewed_sha=None,
        chatflow_id=None,
        chatflow_name=None,
        tests=[],
        baseline_tests=None,
        tested_sha=None,
        verdict=None,
        next_step=None,
    )


def project(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the session's row that follow from the state; what the state does not know yet is None."""
    usage = Usage(**(values.get("usage") or {}))
    intent: Mapping[str, Any] = values.get("intent") or {}
    return {
        "session_name": intent.get("title"),
        "operation_mode": values.get("operation_mode"),
        "iteration": values.get("iteration", 0),
        "chatflow_id": values.get("chatflow_id"),
        "outcome": values.get("outcome"),
        "answer": (values.get("plan") or {}).get("answer") if values.get("outcome") == "answered" else None,
        "change": _change(values),
        "degraded": values.get("degraded") or [],
        "totals": usage.model_dump(),
    }


def _change(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is done to the flow, by hashes: what it was, what it is or would become, and what someone else made of it.

    `ops` are those between the first two.
    """
    artifacts: Mapping[str, str] = (values.get("artifacts") or {}).get("flowise", {})
    before, after = artifacts.get("original_flow"), values.get("flow_sha") or artifacts.get("current_flow")
    if before is None and after is None:
        return None
    applied: list[dict[str, Any]] = values.get("applied_ops") or []
    ops: list[dict[str, Any]] = values.get("ops") or []
    written = applied[len(applied) - len(ops) :] == ops
    found = (values.get("stop") or {}).get("found_flow")
    return {
        "before": before,
        "after": after,
        "found": found,
        "draft_id": values.get("draft_id"),
        "ops": applied if written else [*applied, *ops],
    }


def degraded_marker(phase: str, degraded: Degraded | None) -> list[dict[str, Any]]:
    """What `degraded` gains from one phase: nothing, or one marker."""
    if degraded is None:
        return []
    return [
        {
            "phase": phase,
            "failed_mode": degraded.failed_mode,
            "fallback_mode": degraded.fallback_mode,
            "fallback_reason": degraded.reason,
        }
    ]
