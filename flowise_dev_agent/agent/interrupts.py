"""Check a person's answer against the open interrupt.

`check_answer` turns what arrived over HTTP, typed or as free text, into the one normalised form that nodes read:
`{"type", "action", ...}`. Actions that the interrupt does not offer are refused: only what fits its reason can happen.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from flowise_dev_agent.errors import InvalidAnswerError, PatchError
from flowise_dev_agent.patch import ops_from_list
from flowise_dev_agent.schemas.answers import (
    ANSWERS,
    AcceptResult,
    Action,
    Answer,
    ApprovePlan,
    ChooseCredentials,
    IterateResult,
    RequestChanges,
)
from flowise_dev_agent.schemas.answers import SelectTarget as SelectedTarget
from flowise_dev_agent.schemas.base import JsonMapping, JsonObject
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.interrupts import (
    CredentialCheckInterrupt,
    Interrupt,
    Option,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
    SelectTargetInterrupt,
)
from flowise_dev_agent.texts import has, text

#: Fields from which the action follows.
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ACTION_OF_FIELD: Final[Mapping[str, Action]] = {"answers": "answer", "chatflow_id": "select", "choose": "choose"}
_YES: Final = frozenset({"approved", "approve", "yes", "accept", "accepted", "ok"})
_APPROACH_PREFIX: Final = "approved - approach:"


def option(value: Action, code: str = "") -> Option:
    """Offered action; `code` names its texts if the action alone does not: the description, and another label."""
    key = f"option.{code or value}"
    label = f"{key}.label" if has(f"{key}.label") else f"option.{value}.label"
    return Option(value=value, label=text(label), description=text(f"{key}.description"))


def check_answer(interrupt: Interrupt, *, answer: JsonMapping | None, response: str | None) -> JsonObject:
    """Normalise and check an answer to `interrupt`: exactly one of a typed `answer` and a free-text `response`.

    Raises:
        InvalidAnswerError: it is empty, does not fit the schema, or names something that was not offered.
    """
    if (answer is None) == (response is None):
        raise InvalidAnswerError(
            text("error.answer_or_response"),
            hint=_offer(interrupt),
            details={"type": interrupt.type},
        )
    raw = dict(answer) if answer is not None else _from_text(interrupt, response or "")
    if "action" not in raw:
        meant = next((action for field, action in _ACTION_OF_FIELD.items() if field in raw), None)
        raw |= {"action": meant} if meant else {}
    try:
        parsed = ANSWERS[interrupt.type].validate_python(raw)
    except ValidationError as error:
        problems = sorted({_in_words(item) for item in error.errors(include_input=False, include_url=False)})
        raise InvalidAnswerError(
            text("error.answer_does_not_fit", type=interrupt.type, problems="; ".join(problems[:4])),
            hint=_offer(interrupt),
            details={"type": interrupt.type, "response_schema": interrupt.response_schema},
        ) from None
    if parsed.action not in {item.value for item in interrupt.options}:
        raise InvalidAnswerError(text("error.action_not_offered", action=parsed.action), hint=_offer(interrupt))
    return {"type": interrupt.type, **_as_offered(interrupt, parsed).model_dump(mode="json")}


def _addresses(interrupt: PlanApprovalInterrupt) -> set[str]:
    """Addresses that the tests of the plan may be told to call."""
    return set(interrupt.data.details.addresses) if interrupt.data.details else set()


def _as_offered(interrupt: Interrupt, answer: Answer) -> Answer:
    """Answer with names spelled as the interrupt spells them, where they match."""
    match interrupt, answer:
        case PlanApprovalInterrupt(), ApprovePlan(real=list(real)) if unknown := sorted(
            {*real} - _addresses(interrupt)
        ):
            known = sorted(_addresses(interrupt))
            raise InvalidAnswerError(
                text("error.address_not_called", addresses=unknown),
                hint=text("error.addresses_called", addresses=known) if known else _offer(interrupt),
            )
        case PlanApprovalInterrupt(), ApprovePlan(approach=str(approach)):
            labels = [item.label for item in interrupt.data.approaches]
            match = next((label for label in labels if label.casefold() == approach.casefold()), None)
            if match is None:
                has = text("error.approaches", names=labels) if labels else text("error.one_approach")
                raise InvalidAnswerError(text("error.no_approach", approach=approach), hint=has)
            return answer.model_copy(update={"approach": match})
        case PlanApprovalInterrupt(), RequestChanges(design=DesignForm()) if (
            interrupt.data.contract.operation != "create"
        ):
            raise InvalidAnswerError(text("error.form_for_new_flow"), hint=_offer(interrupt))
        case CredentialCheckInterrupt(), ChooseCredentials():
            by_type = {item.type: item.candidates for item in interrupt.data.credentials}
            for type_, id_ in answer.choose.items():
                candidates = by_type.get(type_, [])
                if id_ not in {item.id for item in candidates}:
                    listed = ", ".join(f"{item.name} ({item.id})" for item in candidates)
                    raise InvalidAnswerError(
                        text("error.not_a_candidate", id=id_, type=type_),
                        hint=text("error.choose_one_of", names=listed) if listed else text("error.create_and_retry"),
                    )
        case SelectTargetInterrupt(), SelectedTarget():
            # The candidates are some of the flows; the id of any other is as clear.
            known = answer.chatflow_id in {item.id for item in interrupt.data.candidates}
            if not known and not _ID.fullmatch(answer.chatflow_id):
                raise InvalidAnswerError(
                    text("error.target_unknown", chatflow_id=answer.chatflow_id),
                    hint=_offer(interrupt),
                )
        case ResultReviewInterrupt(), AcceptResult(iteration=int(iteration)):
            offered = [item.iteration for item in interrupt.data.iterations]
            if iteration not in offered:
                has = (
                    text("error.iterations", numbers=[*map(str, offered)])
                    if offered
                    else text("error.only_this_iteration")
                )
                raise InvalidAnswerError(text("error.iteration_not_accepted", iteration=iteration), hint=has)
        case ResultReviewInterrupt(), IterateResult(ops=list(ops)):
            try:
                ops_from_list(ops)
            except PatchError as error:
                raise InvalidAnswerError(
                    text("error.ops_unreadable", problem=error.message), hint=error.hint, details=error.details
                ) from None
        case _:
            pass
    return answer


def _from_text(interrupt: Interrupt, typed: str) -> JsonObject:
    """Parse a free-text answer: yes-words approve, a few commands act, the rest is feedback (never an accidental
    approval).
    """
    words = typed.strip()
    plain = words.casefold().rstrip(".! ")
    if not words:
        raise InvalidAnswerError(text("error.answer_empty"), hint=_offer(interrupt))
    match interrupt.type:
        case "clarification":
            return {"action": "go_on"} if plain in {"go on", "go_on", "skip"} else {"answers": [words]}
        case "select_target":
            if plain in {"cancel", "create new", "create_new"}:
                return {"action": plain.replace(" ", "_")}
            by_name = {item.name.casefold(): item.id for item in interrupt.data.candidates}
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
        case "result_review":
            if plain in {"rollback", "revert"}:
                return {"action": "rollback"}
            return {"action": "accept"} if plain in _YES else {"action": "iterate", "feedback": words}


def _offer(interrupt: Interrupt) -> str:
    return text("error.possible_actions", actions=[item.value for item in interrupt.options])


def _in_words(item: Any) -> str:
    if item["type"].startswith("union_tag"):
        return "it names no action, or one that does not exist here"
    where = ".".join(str(part) for part in item["loc"][1:])  # the first part is the action
    return f"{where}: {item['msg']}" if where else str(item["msg"])
