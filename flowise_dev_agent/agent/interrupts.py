"""The questions that the graph asks a person, and the answers it takes.

An interrupt is JSON: `{type, reason, message, options, data, response_schema}`. `options` are the actions offered
now (`{value, label, description}`); an answer naming another one is refused, so only what fits the reason can happen.
`check_answer` turns what arrived over HTTP, typed or as free text, into the one normalised form that nodes read:
`{"type", "action", ...}`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from flowise_dev_agent.errors import InvalidAnswerError

InterruptType = Literal[
    "clarification", "select_target", "plan_approval", "credential_check", "patch_review", "result_review"
]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=32_000)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ClarificationAnswers(_Answer):
    """One answer per question, in order; an empty string skips a question."""

    action: Literal["answer"] = "answer"
    answers: list[Annotated[str, StringConstraints(max_length=8_000)]] = Field(min_length=1, max_length=3)


class GoOn(_Answer):
    """Go on with what is known."""

    action: Literal["go_on"]


class SelectTarget(_Answer):
    """The flow to change."""

    action: Literal["select"] = "select"
    chatflow_id: Text


class TargetAction(_Answer):
    """Create a new flow instead, or stop."""

    action: Literal["create_new", "cancel"]


class ApprovePlan(_Answer):
    """Approve the plan, with one of its approaches where it has several, and with other test questions if wanted."""

    action: Literal["approve"]
    approach: Text | None = None
    test_questions: list[Annotated[Text, StringConstraints(max_length=4_000)]] | None = Field(
        default=None, min_length=1, max_length=10
    )


class RequestChanges(_Answer):
    """Ask for another plan."""

    action: Literal["request_changes"]
    feedback: Text


class CancelSession(_Answer):
    """Stop; nothing more is written."""

    action: Literal["cancel"]


class RetryCredentials(_Answer):
    """Read the instance's credentials anew, or go on without with a warning."""

    action: Literal["retry", "skip"]


class ChooseCredentials(_Answer):
    """Credential type -> id of the credential to use."""

    action: Literal["choose"] = "choose"
    choose: dict[str, Text] = Field(min_length=1)


class PatchReviewAction(_Answer):
    """What to do with a patch that stopped before the write."""

    action: Literal["continue", "replan", "rebase", "overwrite", "cancel"]
    feedback: Text | None = None


class RaiseBudget(_Answer):
    """New ceilings for this session; one that is left out stays."""

    action: Literal["raise_budget"]
    budget: dict[Literal["tokens", "usd"], Annotated[float, Field(gt=0)]] = Field(min_length=1)


class AcceptResult(_Answer):
    """Take the flow; `deploy` as Flowise's own switch."""

    action: Literal["accept"]
    deploy: bool = True


class IterateResult(_Answer):
    """Change the flow that was just made."""

    action: Literal["iterate"]
    feedback: Text


class RollbackResult(_Answer):
    """Undo: what the session created is deleted, what it changed is put back."""

    action: Literal["rollback"]


_BY_ACTION = Field(discriminator="action")
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "clarification": TypeAdapter(Annotated[ClarificationAnswers | GoOn | CancelSession, _BY_ACTION]),
    "select_target": TypeAdapter(Annotated[SelectTarget | TargetAction, _BY_ACTION]),
    "plan_approval": TypeAdapter(Annotated[ApprovePlan | RequestChanges | CancelSession, _BY_ACTION]),
    "credential_check": TypeAdapter(Annotated[RetryCredentials | ChooseCredentials | CancelSession, _BY_ACTION]),
    "patch_review": TypeAdapter(Annotated[PatchReviewAction | RaiseBudget, _BY_ACTION]),
    "result_review": TypeAdapter(Annotated[AcceptResult | IterateResult | RollbackResult, _BY_ACTION]),
}
#: Fields that say by themselves which action is meant.
_TELLING = {"answers": "answer", "chatflow_id": "select", "choose": "choose"}

_YES = frozenset({"approved", "approve", "yes", "accept", "accepted", "ok"})
_APPROACH_PREFIX = "approved - approach:"


def option(value: str, label: str, description: str = "") -> dict[str, str]:
    """One offered action."""
    return {"value": value, "label": label, "description": description}


def build_interrupt(
    type_: InterruptType, *, reason: str, message: str, options: list[dict[str, str]], data: dict[str, Any]
) -> dict[str, Any]:
    """The value handed to LangGraph's `interrupt`."""
    return {
        "type": type_,
        "reason": reason,
        "message": message,
        "options": options,
        "data": data,
        "response_schema": _ADAPTERS[type_].json_schema(),
    }


def check_answer(
    interrupt: Mapping[str, Any], *, answer: Mapping[str, Any] | None, response: str | None
) -> dict[str, Any]:
    """Normalise and check an answer to `interrupt`: exactly one of a typed `answer` and a free-text `response`.

    Raises:
        InvalidAnswerError: it is empty, does not fit the schema, or names something that was not offered.
    """
    type_: str = interrupt["type"]
    if (answer is None) == (response is None):
        raise InvalidAnswerError(
            "Send either `answer` (an object) or `response` (a text).", hint=_offer(interrupt), details={"type": type_}
        )
    raw = dict(answer) if answer is not None else _from_text(interrupt, response or "")
    if "action" not in raw:
        meant = next((action for field, action in _TELLING.items() if field in raw), None)
        raw |= {"action": meant} if meant else {}
    try:
        parsed: BaseModel = _ADAPTERS[type_].validate_python(raw)
    except ValidationError as error:
        problems = sorted({_in_words(item) for item in error.errors(include_input=False, include_url=False)})
        raise InvalidAnswerError(
            f"The answer does not fit this {type_}: {'; '.join(problems[:4])}.",
            hint=_offer(interrupt),
            details={"type": type_, "response_schema": interrupt.get("response_schema")},
        ) from None
    normal = {"type": type_, **parsed.model_dump()}
    _check_offered(interrupt, normal)
    return normal


def _check_offered(interrupt: Mapping[str, Any], answer: dict[str, Any]) -> None:
    offered = {item["value"] for item in interrupt["options"]}
    if answer["action"] not in offered:
        raise InvalidAnswerError(f"'{answer['action']}' is not offered here.", hint=_offer(interrupt))
    data: Mapping[str, Any] = interrupt["data"]
    approach = answer.get("approach")
    if approach is not None:
        labels: list[str] = [item["label"] for item in data.get("approaches", [])]
        match = next((label for label in labels if label.casefold() == approach.casefold()), None)
        if match is None:
            raise InvalidAnswerError(
                f"The plan has no approach called '{approach}'.",
                hint=f"It has: {', '.join(labels)}." if labels else "It has only one way; approve without an approach.",
            )
        answer["approach"] = match
    for type_, id_ in (answer.get("choose") or {}).items():
        candidates: list[dict[str, str]] = next(
            (item["candidates"] for item in data.get("credentials", []) if item["type"] == type_), []
        )
        if id_ not in {item["id"] for item in candidates}:
            raise InvalidAnswerError(
                f"Credential '{id_}' is not one of the {type_} credentials of this instance.",
                hint="Choose one of: "
                + (", ".join(f"{c['name']} ({c['id']})" for c in candidates) or "(none; create one and retry)"),
            )
    chatflow_id = answer.get("chatflow_id")
    if chatflow_id is not None and chatflow_id not in {item["id"] for item in data.get("candidates", [])}:
        raise InvalidAnswerError(f"Chatflow '{chatflow_id}' is not among the candidates.", hint=_offer(interrupt))


def _from_text(interrupt: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Plain yes-words approve, a few commands act, everything else is feedback (never an approval by accident)."""
    words = text.strip()
    plain = words.casefold().rstrip(".! ")
    if not words:
        raise InvalidAnswerError("The answer is empty.", hint=_offer(interrupt))
    match interrupt["type"]:
        case "clarification":
            return {"action": "go_on"} if plain in {"go on", "go_on", "skip"} else {"answers": [words]}
        case "select_target":
            if plain in {"cancel", "create new", "create_new"}:
                return {"action": plain.replace(" ", "_")}
            by_name = {item["name"].casefold(): item["id"] for item in interrupt["data"].get("candidates", [])}
            return {"chatflow_id": by_name.get(words.casefold(), words)}
        case "plan_approval":
            if plain == "cancel":
                return {"action": "cancel"}
            if plain in _YES:
                return {"action": "approve"}
            if words.casefold().startswith(_APPROACH_PREFIX):
                return {"action": "approve", "approach": words[len(_APPROACH_PREFIX) :]}
            return {"action": "request_changes", "feedback": words}
        case "credential_check":
            return {"action": plain}
        case "patch_review":
            if plain in {"continue", "replan", "rebase", "overwrite", "cancel"}:
                return {"action": plain}
            return {"action": "continue"} if plain in _YES else {"action": "replan", "feedback": words}
        case _:
            if plain in {"rollback", "revert"}:
                return {"action": "rollback"}
            return {"action": "accept"} if plain in _YES else {"action": "iterate", "feedback": words}


def _offer(interrupt: Mapping[str, Any]) -> str:
    return "Possible actions: " + ", ".join(item["value"] for item in interrupt["options"]) + "."


def _in_words(item: Any) -> str:
    if item["type"].startswith("union_tag"):
        return "it names no action, or one that does not exist here"
    where = ".".join(str(part) for part in item["loc"][1:])  # the first part is the action
    return f"{where}: {item['msg']}" if where else str(item["msg"])
