"""Confirmation by a person of answers that let something be written or undone."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from pydantic import BaseModel, Field

from flowise_dev_agent.errors import AgentError, InvalidInputError, NeedsPersonError
from flowise_dev_agent.mcp.host import Approval, ToolContext, client_of, host_of, page_of
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.answers import decides
from flowise_dev_agent.schemas.attachments import AttachmentView
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.question_text import question_text
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.versions import TakenBack

#: A form shows everything that a person agrees to; if it does not fit, there is no form.
_MESSAGE_CHARS: Final = 12_000
_ANSWER_CHARS: Final = 4_000
_NAME_CHARS: Final = 120


class PersonDeclinedError(AgentError, code="person_declined"):
    """The person was asked to confirm the answer and declined; the question stays open."""


class Confirmation(BaseModel):
    """The form that a client shows to a person."""

    confirm: bool = Field(title="Give this answer", description="Yes lets the session go on with it.")


def action_lines(interrupt: Interrupt, approval: Approval) -> list[str]:
    """Lines of the possible actions, with a mark on decisions of a person."""
    lines: list[str] = []
    for option in interrupt.options:
        mark = " [a person decides]" if approval == "person" and decides(interrupt.type, option.value) else ""
        lines.append(f"- {option.value}: {option.label}. {option.description}{mark}")
    return lines


async def confirmation(
    ctx: ToolContext,
    session_id: UUID,
    interrupt_id: str,
    answer: dict[str, Any],
    attachments: list[UUID] | None = None,
) -> Confirmation | Elicit[Confirmation]:
    """Resolver of an answer: confirms at once if no person is needed, else has the client show a form.

    Raises:
        SessionConflictError: this is not the open question.
        InvalidAnswerError: the answer does not fit it; no person is asked then.
        NeedsPersonError: a person is needed, and the client has no way to ask one, or what they would agree to is too
            long for a form.
    """
    if host_of(ctx).approval == "agent":
        return Confirmation(confirm=True)
    view = await client_of(ctx).get(session_id)
    if view.interrupt is None or view.interrupt.id != interrupt_id:
        # The service rejects it with its own error, or it repeats an answer, which is allowed.
        return Confirmation(confirm=True)
    # Importing the package of the graph takes a second, and a stdio server needs it only here.
    from flowise_dev_agent.agent.interrupts import check_answer

    action = str(check_answer(view.interrupt, answer=answer, response=None)["action"])
    if not decides(view.interrupt.type, action):
        return Confirmation(confirm=True)
    files = [await client_of(ctx).attachment(id_) for id_ in attachments or []]
    return _ask_person(ctx, session_id, action, _form_text(view, view.interrupt, answer, files))


async def rollback_confirmation(
    ctx: ToolContext, session_id: UUID, version: str | None = None, created: TakenBack | None = None
) -> Confirmation | Elicit[Confirmation]:
    """Resolver of a rollback, as `confirmation`."""
    if host_of(ctx).approval == "agent":
        return Confirmation(confirm=True)
    view = await client_of(ctx).get(session_id)
    what = f"the version {version}" if version else "the first version"
    action = f"put {what} of the session '{_name(view)}' back into its chatflow {view.chatflow_id}"
    if created:
        action = f"{created} the chatflow {view.chatflow_id} that the session '{_name(view)}' made"
    text = f"An agent wants to {action}."
    return _ask_person(ctx, session_id, "rollback", text)


async def refresh_confirmation(
    ctx: ToolContext, store_id: UUID, instance: str | None = None
) -> Confirmation | Elicit[Confirmation]:
    """Resolver of a document store's refresh, as `confirmation`. Raises InvalidInputError for an unknown store."""
    if host_of(ctx).approval == "agent":
        return Confirmation(confirm=True)
    of_instance = f"{instance} " if instance else ""
    _needs_a_form(ctx, "refresh a document store", f"document-stores {of_instance}--refresh {store_id}")
    stores = (await client_of(ctx).document_stores(instance)).stores
    name = next((store.name for store in stores if store.id == str(store_id)), None)
    if name is None:
        raise InvalidInputError(f"There is no document store {store_id}.", hint="list_document_stores lists them.")
    return Elicit(
        f"An agent wants to read the sources of the document store '{shortened(name, _NAME_CHARS)}' again, and to write"
        " what has changed to its vector store.",
        Confirmation,
    )


async def restore_confirmation(
    ctx: ToolContext, chatflow_id: UUID, version: str
) -> Confirmation | Elicit[Confirmation]:
    """Resolver of the restoring of a version, as `confirmation`."""
    if host_of(ctx).approval == "agent":
        return Confirmation(confirm=True)
    _needs_a_form(ctx, "restore a version", f"flows restore {chatflow_id} {version}")
    return Elicit(f"An agent wants to write the version {version} back into the chatflow {chatflow_id}.", Confirmation)


def _needs_a_form(ctx: ToolContext, decision: str, command: str) -> None:
    """Raise NeedsPersonError if the client cannot ask a person; the command does the same."""
    if not _can_ask(ctx):
        raise NeedsPersonError(
            f"To {decision} is a person's decision, and this client cannot ask one.",
            hint=f"Ask the person to run `flowise-dev-agent {command}`.",
        )


def check_confirmed(outcome: ElicitationResult[Confirmation]) -> None:
    """Raise PersonDeclinedError unless the person confirmed."""
    if isinstance(outcome, AcceptedElicitation) and outcome.data.confirm:
        return
    raise PersonDeclinedError(
        "The person did not confirm this answer; the question stays open.",
        hint="Ask them for another answer.",
    )


def _ask_person(ctx: ToolContext, session_id: UUID, action: str, text: str | None) -> Elicit[Confirmation]:
    page = page_of(ctx, session_id)
    if text is None:
        why = "it is too long to be shown whole in a form"
    elif not _can_ask(ctx):
        why = "this client cannot ask one"
    else:
        return Elicit(f"{text}\n\nMore about it: {page}", Confirmation)
    raise NeedsPersonError(
        f"'{action}' is a person's decision, and {why}.",
        hint=f"Ask the person to decide at {page}, then call get_session.",
        details={"page": page},
    )


def _can_ask(ctx: ToolContext) -> bool:
    """True if the client can show a form.

    Over stateless HTTP only clients of protocol 2026-07-28 announce their capabilities.
    """
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _form_text(
    view: SessionView, interrupt: Interrupt, answer: Mapping[str, Any], files: Sequence[AttachmentView]
) -> str | None:
    """The text of the form with everything that a person agrees to; None if it is too long."""
    given = json.dumps(answer, ensure_ascii=False)
    asked = question_text(interrupt, plan_chars=None)
    if len(given) > _ANSWER_CHARS or len(asked) > _MESSAGE_CHARS:
        return None
    lines = [f"An agent wants to answer a question of the session '{_name(view)}'.", "", asked, ""]
    lines.append(f"Its answer: {given}")
    if files:
        lines += ["With the files:", *(f"- {shortened(file.facts.name, _NAME_CHARS)}" for file in files)]
    return "\n".join(lines)


def _name(view: SessionView) -> str:
    return view.session_name or shortened(view.requirement, _NAME_CHARS)
