"""What a session keeps of its plan and of its last review, for whoever looks at it after the answer."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.patch.model.secrecy import masked
from flowise_dev_agent.reasoning.contracts import PlanContract

_MAX_CHANGE_CHARS = 8_000
_MAX_PLAN_CHARS = 16_000


def result_of(interrupt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Tests, verdict and what else is worth keeping of a `result_review`; None for every other question."""
    if interrupt.get("type") != "result_review":
        return None
    data: Mapping[str, Any] = interrupt["data"]
    return {
        "summary": interrupt["message"],
        "verdict": data["verdict"],
        "tests": data["tests"],
        "regressions": data["regressions"],
        "change": (data["change"] or {}).get("text", "")[:_MAX_CHANGE_CHARS],
        "warnings": data["warnings"],
        "placeholders": data["placeholders"],
    }


def approved_plan(interrupt: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Text, contract and chosen approach of the plan that `answer` (a checked one) approves; None when it does not.

    Secrets that the person typed into a wish are masked.
    """
    if interrupt.get("type") != "plan_approval" or answer["action"] != "approve":
        return None
    contract = PlanContract(**_masked(interrupt["data"]["contract"]))
    if questions := answer.get("test_questions"):
        contract = contract.model_copy(update={"test_questions": _masked(questions)})
    return {
        "text": contract.to_markdown()[:_MAX_PLAN_CHARS],
        "contract": contract.model_dump(),
        "approach": answer.get("approach"),
    }


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return masked(value) if isinstance(value, str) else value
