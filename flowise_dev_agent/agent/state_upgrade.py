"""Upgrade checkpoints of earlier versions: a session may wait for a person while the service is upgraded."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from flowise_dev_agent.agent.state import STATE_VERSION, AgentState, RequestState
from flowise_dev_agent.errors import CheckpointVersionError
from flowise_dev_agent.texts import text


def upgrade_state(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert the channels of an earlier version or release; None if they are of this one.

    Fields that this release does not have are dropped: a waiting session may have those of the release before, and
    during an upgrade those of the next.

    Raises:
        CheckpointVersionError: a newer version of the service wrote them.
    """
    version: int = values.get("version", 1)
    if version > STATE_VERSION:
        raise CheckpointVersionError(
            text("error.newer_session"),
            hint=text("error.newer_session_hint"),
            details={"version": version, "known": STATE_VERSION},
        )
    if version < STATE_VERSION:
        values = _from_version_1(values)
    else:
        values = {name: values[name] for name in AgentState.model_fields if name in values}
        with suppress(ValidationError):
            AgentState.model_validate(values)
            return None
    return AgentState.model_validate(values, extra="ignore").model_dump(mode="json")


def _from_version_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 had one channel per value, and facts and artifacts by domain."""
    request: Mapping[str, Any] = old["request"]
    facts: Mapping[str, Any] = old["facts"].get("flowise", {})
    artifacts: Mapping[str, Any] = old["artifacts"].get("flowise", {})
    stop: Mapping[str, Any] = old["stop"] or {}
    return {
        "request": {
            "requirement": old["requirement"],
            **{name: request[name] for name in RequestState.model_fields if request.get(name) is not None},
        },
        "intent": {
            "classified": old["intent"],
            "operation": old["operation_mode"],
            "questions": old["open_questions"],
            "clarifications": old["clarifications"],
            "rounds": old["clarification_rounds"],
        },
        "target": {
            "candidates": old["target_candidates"],
            "search": old["target_search"],
            "chatflow_id": old["target_chatflow_id"],
            "flow": old["target"],
        },
        "plan": {
            "contract": old["plan"],
            "approved": old["approved"],
            "approach": old["approach"],
            "feedback": old["feedback"],
            "notes": old["notes"],
        },
        "credentials": {
            "missing": old["missing_credentials"],
            "chosen": old["credential_choices"],
            "skipped": facts.get("skipped_credentials", []),
        },
        "pattern": {"id": old["pattern_id"], "ops": old["seed_ops"], "flow_sha": artifacts.get("seed_flow")},
        "patch": {"scope": old["scope"], "ops": old["ops"]},
        "check": {
            **{name: old[name] for name in ("flow_sha", "change", "findings", "error_keys", "unknown_types")},
            **{name: old[name] for name in ("validated_sha", "retries", "repairs")},
            "given_up": stop["message"] if stop.get("reason") == "repeated_finding" else None,
        },
        "write": {
            **{name: old[name] for name in ("stage", "live_base", "base", "draft_id", "chatflow_id", "chatflow_name")},
            **{name: old[name] for name in ("applied_ops", "reviewed_sha")},
            "mode": old["write_mode"],
            "original_sha": artifacts.get("original_flow"),
            "current_sha": artifacts.get("current_flow"),
            "stale": _stale_base(stop),
        },
        "tests": {
            "questions": request.get("test_questions"),
            "results": old["tests"],
            "answers_sha": artifacts.get("tests"),
            "baseline": old["baseline_tests"],
            "tested_sha": old["tested_sha"],
        },
        "review": {"verdict": old["verdict"], "next_step": old["next_step"]},
        "budget": {"ceilings": old["budget"], "question": _budget_question(stop)},
        "usage": {"spent": old["usage"], "degraded": old["degraded"]},
        "catalogue": {"fingerprints": facts.get("schema_fingerprints", {})},
        **{name: old[name] for name in ("answer", "iteration", "outcome")},
    }


def _stale_base(stop: Mapping[str, Any]) -> dict[str, Any] | None:
    if stop.get("reason") != "stale_base":
        return None
    kept = {name: stop[name] for name in ("where", "message", "found", "meanwhile")}
    return {**kept, "found_sha": stop["found_flow"]}


def _budget_question(stop: Mapping[str, Any]) -> dict[str, Any] | None:
    if stop.get("reason") != "budget":
        return None
    return {"node": stop.get("then") or "validate", "message": stop["message"]}
