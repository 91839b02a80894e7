"""What people said to a session, in words: for the ledger and the summary."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.contracts.audit import AuditRow
from flowise_dev_agent.contracts.interrupts import Interrupt

_SKIPPED: Final = "(left open)"
#: How a line of the summary calls what was done; other actions are called by their name.
_IN_WORDS: Final[Mapping[str, str]] = {
    "start": "started the session",
    "import": "wrote a new flow",
    "apply": "changed a flow",
    "promote": "copied a flow to another instance",
    "rename": "gave it another title",
    "retry": "had it try again",
    "cancel": "cancelled the session",
    "rollback": "put a version back",
    "clarification.answer": "answered",
    "clarification.go_on": "let it go on with what is known",
    "select_target.select": "chose the flow",
    "clarification.cancel": "cancelled the session",
    "select_target.cancel": "cancelled the session",
    "plan_approval.cancel": "cancelled the session",
    "credential_check.cancel": "cancelled the session",
    "patch_review.cancel": "cancelled the session",
    "select_target.create_new": "wanted a new flow",
    "plan_approval.approve": "approved the plan",
    "plan_approval.request_changes": "asked for another plan",
    "credential_check.choose": "chose credentials",
    "credential_check.retry": "had the credentials read again",
    "credential_check.skip": "went on without a credential",
    "patch_review.continue": "had the change written",
    "patch_review.replan": "asked for another plan",
    "patch_review.rebase": "had the change made on the flow as it is now",
    "patch_review.overwrite": "had the flow on the server overwritten",
    "patch_review.raise_budget": "raised the budget",
    "result_review.accept": "accepted the result",
    "result_review.iterate": "asked for changes",
    "result_review.rollback": "had it undone",
    "plan_approval.approve.first": "approved the plan, as the first of two",
    "result_review.accept.first": "accepted the result, as the first of two",
    "write.create": "Flowise: created",
    "write.update": "Flowise: changed",
    "write.delete": "Flowise: deleted",
    "write.deploy": "Flowise: accepted",
    "write.store_create": "Flowise: created a document store",
    "write.store_fill": "Flowise: read a file into a document store",
    "write.store_embed": "Flowise: wrote a document store to its vector store",
    "write.store_take": "Flowise: accepted a document store",
    "write.store_remove": "Flowise: removed a file from a document store",
    "write.store_delete": "Flowise: deleted a document store",
    "write.upsert": "Flowise: wrote documents to a vector store",
}


def words_of(interrupt: Interrupt, answer: Mapping[str, Any]) -> str | None:
    """What an answer says besides its action; None when that is all. Questions of a clarification come with it."""
    said = {name: value for name, value in answer.items() if name != "action" and value is not None}
    if interrupt.type == "clarification" and isinstance(said.get("answers"), list):
        asked: list[str] = interrupt.data.questions
        given: Sequence[Any] = said["answers"]
        return "\n".join(
            f"{question}\n-> {str(reply).strip() or _SKIPPED}" for question, reply in zip(asked, given, strict=False)
        )
    if set(said) == {"feedback"}:
        return str(said["feedback"])
    return json.dumps(said, ensure_ascii=False) if said else None


def told(rows: Sequence[AuditRow]) -> Iterator[str]:
    """The rows as a list in Markdown, with what was said quoted below."""
    for row in rows:
        what = _IN_WORDS.get(row.action, row.action.replace("_", " ").replace(".", ": "))
        where = f" `{row.chatflow_id}`" if row.action.startswith("write.") and row.chatflow_id else ""
        version = f" ({row.version})" if row.version else ""
        yield f"- {row.ts:%Y-%m-%d %H:%M:%S} **{_plain(row.actor)}** ({row.door}) {what}{where}{version}"
        if row.words_sha256 is not None and row.action != "start":
            yield ""
            yield from (f"  > {line}" for line in (row.words or "(erased)").splitlines())
            yield ""


def _plain(name: str) -> str:
    return name.replace("*", "").replace("`", "")
