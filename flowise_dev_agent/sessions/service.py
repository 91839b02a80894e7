"""The session service: every operation of clients on sessions, for HTTP, MCP and the terminal."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any, cast
from uuid import UUID, uuid4

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.cursors import decode_cursor, encode_cursor
from flowise_dev_agent.errors import (
    DatabaseUnavailableError,
    IdempotencyKeyReusedError,
    InvalidInputError,
    NoPlanError,
    SecretInTextError,
    SessionConflictError,
    SessionExistsError,
    SessionNotFoundError,
    TraceNotFoundError,
)
from flowise_dev_agent.forms.form_of import form_of
from flowise_dev_agent.persistence import Blobs, Database, Events, SessionFilter, SessionRow, Sessions
from flowise_dev_agent.persistence.database import translated_errors
from flowise_dev_agent.persistence.read_model import AVERAGE_COST, public_status, row_statuses
from flowise_dev_agent.persistence.sessions import Answer, NewSession
from flowise_dev_agent.redaction import holds_secret, redacted
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.designs import SessionPlan, stored_form
from flowise_dev_agent.schemas.etags import Expected, session_etag
from flowise_dev_agent.schemas.events import EventPage, SessionEvent
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.requests import RequestBody, ResumeSession, StartSession
from flowise_dev_agent.schemas.session import ListTotals, SessionPage, SessionView
from flowise_dev_agent.schemas.usage import ExpectedCost, SessionKind
from flowise_dev_agent.schemas.verdict import Trace
from flowise_dev_agent.schemas.webhooks import DeliveryList, DeliveryPage, DeliveryView, StartedView
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.answer_words import words_of
from flowise_dev_agent.sessions.approvals import ApprovalRules, Approvals
from flowise_dev_agent.sessions.feed import Feed, set_within
from flowise_dev_agent.sessions.manual_edits import OwnHand
from flowise_dev_agent.sessions.views import event_view, listed_session, open_interrupt, session_view
from flowise_dev_agent.texts import text
from flowise_dev_agent.webhooks.service import WebhookService, started_view

_MAX_KEY_CHARS = 255
_MAX_PAGE = 200
_MAX_PLAN_BYTES = 32_000


class SessionService:
    """Starts, answers, watches and ends sessions. Workers execute them; no method waits for a model.

    Every method raises DatabaseUnavailableError while Postgres is away, and SessionNotFoundError for an unknown id. A
    change raises PreconditionFailedError if `expected` does not match the session's state.
    """

    def __init__(
        self,
        *,
        database: Database,
        sessions: Sessions,
        events: Events,
        feed: Feed,
        agent: Agent,
        webhooks: WebhookService,
        approvals: ApprovalRules,
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._events = events
        self._feed = feed
        self._agent = agent
        self._own_hand = OwnHand(sessions=sessions, blobs=Blobs(database), agent=agent)
        self._webhooks = webhooks
        self._approvals = Approvals(approvals, sessions)

    async def start(
        self, request: StartSession, *, idempotency_key: str | None = None, new_id: UUID | None = None
    ) -> StartedView:
        """Store the session and queue its first run. The same key with the same body returns the same session.

        `new_id` is the id of a new session whose request names none.

        The session's own webhook secret is only in the response to the call that made the session.

        Raises:
            InvalidInputError: the instance is not known, the model or the budget not allowed; SecretInTextError,
                WebhookUrlError and WebhookSecretError are subclasses. So are `ops` that make a flow that cannot run.
            StaleBaseError: the flow is not the one that the `ops` are for.
            FlowiseError: the flow cannot be read.
            SessionExistsError: `thread_id` is taken; nothing was changed.
            SessionConflictError: the key was used for another body.
        """
        check_key(idempotency_key)
        fingerprint = request.fingerprint()
        request = request.model_copy(
            update=without_secrets(request, "requirement", "session_name", "test_questions", "design", "ops")
        )
        self._agent.check_start(request)
        instance_id = self._agent.instances.resolve(request.flowise_instance_id)
        if request.ops and not (idempotency_key and await self._sessions.by_idempotency_key(idempotency_key)):
            await self._own_hand.check_start(instance_id, request.ops, request.target, request.base_sha256)
        session_id = request.thread_id or new_id or uuid4()
        webhook = await self._webhooks.endpoint_for(request)
        stored = request.model_dump(mode="json", exclude={"webhook_url", "webhook_own_secret"})
        stored |= {"thread_id": str(session_id), "flowise_instance_id": instance_id}
        new = NewSession(
            id=session_id,
            name=request.session_name,
            requirement=request.requirement,
            request=stored,
            instance_id=instance_id,
            endpoint=self._agent.instances.endpoint(instance_id),
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            webhook=webhook,
            planned_with=self._agent.planned_with(request.model),
            attachments=request.attachments,
        )
        if (row := await self._sessions.start(new)) is not None:
            return started_view(self._view(row), webhook.secret if webhook else None)
        if idempotency_key is not None:
            earlier = await self._sessions.by_idempotency_key(idempotency_key)
            if earlier is not None:
                if earlier.fingerprint != new.fingerprint:
                    raise key_reused()
                return started_view(self._view(earlier), None)
        raise SessionExistsError(
            text("error.session_there", session=str(session_id)),
            hint=text("error.session_there_hint"),
            details={"thread_id": str(session_id)},
        )

    async def resume(
        self,
        session_id: UUID,
        body: ResumeSession,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> SessionView:
        """Answer the open interrupt; of several concurrent answers one wins.

        A repeat with the same key and body is safe.

        Raises:
            SessionConflictError: nothing is open, or not this interrupt; `details` has `status` and `interrupt_id`.
            InvalidAnswerError: the answer does not fit; the interrupt stays open, as after SecretInTextError.
            ScopeMissingError, ApprovalNeededError: the answer decides what is written, and the caller may not.
        """
        check_key(idempotency_key)
        fingerprint = body.fingerprint()
        body = body.model_copy(update=without_secrets(body, "answer", "response"))
        row = await self._sessions.get(session_id)
        if await self._answered_before(session_id, idempotency_key, fingerprint):
            return self._view(row)
        version = _as_expected(row, expected)
        interrupt = open_interrupt(row)
        if row.status != "waiting" or interrupt is None or row.interrupt_id is None:
            raise _nothing_open(row)
        if body.interrupt_id is not None and body.interrupt_id != row.interrupt_id:
            raise _nothing_open(row, asked=body.interrupt_id)
        answer = self._agent.check_answer(interrupt, body)
        told = await self._own_hand.checked(row, interrupt, answer)
        plan = self._agent.approved_plan(interrupt, answer)
        given = Answer(
            row.interrupt_id,
            told,
            action=f"{interrupt.type}.{answer.get('action', 'answer')}",
            words=words_of(interrupt, answer),
            plan=None if plan is None else plan.fitted_json(_MAX_PLAN_BYTES),
            attachments=body.attachments,
        )
        if (first := await self._approvals.first_of_two(row, interrupt, given)) is not None:
            return self._view(first)
        answered = await self._sessions.resume(
            session_id, given, idempotency_key=idempotency_key, fingerprint=fingerprint, version=version
        )
        if answered is None:
            answered = await self._sessions.get(session_id)
            if not await self._answered_before(session_id, idempotency_key, fingerprint):
                _as_expected(answered, expected)
                raise _nothing_open(answered)
        return self._view(answered)

    async def resume_events(
        self,
        session_id: UUID,
        body: ResumeSession,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> AsyncGenerator[SessionEvent]:
        """Answer as `resume` does, and stream the events that follow; a repeated call streams the same events."""
        before = await self._sessions.get(session_id)
        await self.resume(session_id, body, idempotency_key=idempotency_key, expected=expected)
        earlier = await self._sessions.earlier_answer(session_id, idempotency_key) if idempotency_key else None
        return self.events(session_id, earlier.after_seq if earlier else before.event_seq)

    async def cancel(self, session_id: UUID, *, expected: Expected | None = None) -> SessionView:
        """End the session, also while a step is running. Cancelling twice is fine.

        Raises SessionConflictError when it has ended otherwise.
        """
        before = await self._sessions.cancel(session_id, await self._expected_version(session_id, expected))
        row = await self._sessions.get(session_id)
        if before in {"completed", "failed"}:
            raise SessionConflictError(
                text("error.not_cancellable", before=public_status(before)),
                details={"status": public_status(before), "interrupt_id": None},
            )
        if before != "cancelled":
            await self._prune(session_id)
        return self._view(row)

    async def retry(self, session_id: UUID, *, expected: Expected | None = None) -> SessionView:
        """Resume a failed session from its last checkpoint. Raises SessionConflictError when it has not failed."""
        retried = await self._sessions.retry(session_id, await self._expected_version(session_id, expected))
        if retried is None:
            row = await self._sessions.get(session_id)
            _as_expected(row, expected)
            raise SessionConflictError(
                text("error.not_retried", status=public_status(row.status)),
                details={"status": public_status(row.status), "interrupt_id": row.interrupt_id},
            )
        return self._view(retried)

    async def get(self, session_id: UUID) -> SessionView:
        """Current state of a session."""
        return self._view(await self._sessions.get(session_id))

    async def list(
        self,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        *,
        instance: str | None = None,
        chatflow: str | None = None,
        text: str | None = None,
    ) -> SessionPage:
        """A page of sessions, newest first; `status` is a public one, each word of `text` begins one of the name or
        the requirement. Raises InvalidInputError."""
        if not 1 <= limit <= _MAX_PAGE:
            raise _wrong_limit()
        which = SessionFilter(
            statuses=row_statuses(status) if status else None,
            instance_id=instance,
            chatflow_id=chatflow,
            text=clean_text(text) if text and text.strip() else None,
        )
        which = await self._sessions.looked_up(which)
        rows = await self._sessions.page(which, limit=limit + 1, before=decode_cursor(cursor) if cursor else None)
        shown = rows[:limit]
        return SessionPage(
            sessions=[listed_session(row, self._agent.chatflow_link) for row in shown],
            next_cursor=encode_cursor(shown[-1]) if len(rows) > limit else None,
            totals=None if cursor else ListTotals(**vars(await self._sessions.sums(which))),
        )

    async def rename(self, session_id: UUID, name: str, *, expected: Expected | None = None) -> SessionView:
        """Give the session another title (1 to 120 characters)."""
        if holds_secret(name):
            raise SecretInTextError(text("error.secret_in_name"), details={"field": "session_name"})
        if not name.strip() or len(name) > 120 or clean_text(name) != name:
            raise InvalidInputError(text("error.session_name"))
        await self._sessions.rename(session_id, name, await self._expected_version(session_id, expected))
        return await self.get(session_id)

    async def delete(self, session_id: UUID, *, purge: bool = False, expected: Expected | None = None) -> None:
        """Remove everything of the session. A running run ends without a trace; flows on the server stay.

        The texts of flows that it found and wrote stay as well, to restore a chatflow from, unless `purge` is set.
        """
        version = await self._expected_version(session_id, expected)
        await self._sessions.delete(session_id, purge=purge, version=version)

    def watch(self, session_id: UUID) -> AbstractContextManager[asyncio.Event]:
        """Start watching for `wait`. Begin this before the action whose end the caller waits for."""
        return self._feed.watch_idle(session_id)

    async def wait(
        self,
        session_id: UUID,
        timeout: float,  # noqa: ASYNC109 - its expiry is no error
        watched: asyncio.Event | None = None,
    ) -> SessionView:
        """Wait until nothing is in progress, for at most `timeout` seconds, and return the session.

        `watched` is the event of a `watch` that began while the session was in progress; the row is not read before it
        is set.
        """
        deadline = time.monotonic() + timeout
        with nullcontext(watched) if watched else self.watch(session_id) as settled:
            if watched:
                await set_within(settled, timeout)
            while True:
                settled.clear()
                row = await self._sessions.get(session_id)
                left = deadline - time.monotonic()
                if public_status(row.status) != "in_progress" or left <= 0 or self._feed.closed:
                    return self._view(row)
                await set_within(settled, left)

    async def event_page(
        self, session_id: UUID, *, after_seq: int = 0, limit: int = 100, types: Sequence[str] | None = None
    ) -> EventPage:
        """Stored events after a sequence number, optionally only of some `types`."""
        await self._sessions.get(session_id)
        found = await self._events.read(session_id, after=after_seq, limit=limit + 1, types=types)
        shown = [event_view(event) for event in found[:limit]]
        return EventPage(events=shown, next_after_seq=shown[-1].seq if len(found) > limit else None)

    async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        """Events after a sequence number, then live ones; ends after `done`, on deletion, and at shutdown."""
        async with aclosing(self._feed.stream(session_id, after_seq=after_seq)) as stream:
            async for event in stream:
                yield event_view(event)

    async def design(self, session_id: UUID) -> SessionPlan:
        """The session's flow as a design, from its approved plan, else from the plan that waits for approval.

        A new flow that was declined has a form with the person's text.

        Raises NoPlanError: the session has no plan yet.
        """
        row = await self._sessions.get(session_id)
        waiting: Any = (row.interrupt or {}).get("data") or {}
        shown: Any = row.plan or waiting
        plan = shown.get("contract")
        made = Plan.model_validate(without_computed(plan)) if plan else None
        if made is None or (made.declined and made.operation != "create"):
            raise NoPlanError(text("error.no_plan_yet"), hint=text("error.read_what_it_waits_for"))
        asked: Any = row.request.get("design")
        form = stored_form(shown.get("form")) or stored_form(asked) or form_of(made, row.requirement)
        return SessionPlan.model_validate({**without_computed(made.model_dump()), "form": form})

    async def trace(self, session_id: UUID, sha256: str) -> Trace:
        """Steps inside the flow during one of the session's tests. Raises TraceNotFoundError."""
        await self._sessions.get(session_id)
        stored = await Blobs(self._database).of_session(session_id, sha256)
        try:
            return Trace.model_validate_json(stored or "")
        except ValidationError:  # the session has other texts, too
            raise TraceNotFoundError(text("error.no_such_trace"), hint=text("error.no_such_trace_hint")) from None

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """The session's webhooks, newest first."""
        await self._sessions.get(session_id)
        return await self._webhooks.deliveries(session_id)

    async def all_deliveries(
        self, status: str | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> DeliveryPage:
        """Webhooks of all sessions, newest first. Raises InvalidInputError for a foreign cursor."""
        return await self._webhooks.page(status, limit, cursor)

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        """Send one of the session's webhooks again, under its old id. Raises DeliveryNotFoundError."""
        await self._sessions.get(session_id)
        return await self._webhooks.replay(session_id, delivery_id)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _view(self, row: SessionRow) -> SessionView:
        return session_view(row, self._agent.chatflow_link)

    async def _expected_version(self, session_id: UUID, expected: Expected | None) -> str | None:
        return None if expected is None else _as_expected(await self._sessions.get(session_id), expected)

    async def _answered_before(self, session_id: UUID, key: str | None, fingerprint: str) -> bool:
        if key is None:
            return False
        earlier = await self._sessions.earlier_answer(session_id, key)
        if earlier is not None and earlier.fingerprint != fingerprint:
            raise key_reused()
        return earlier is not None

    async def _prune(self, session_id: UUID) -> None:
        # Safe beside a run that does not know yet: its epoch is over.
        try:
            with translated_errors():
                await AsyncPostgresSaver(self._database.pool).aprune([str(session_id)])
        except (DatabaseUnavailableError, SessionNotFoundError):
            return


def without_computed(plan: dict[str, Any]) -> dict[str, Any]:
    """Remove the computed fields of a stored plan."""
    return {name: value for name, value in plan.items() if name in Plan.model_fields}


def without_secrets(body: RequestBody, *fields: str) -> dict[str, Any]:
    """Values of the given fields, with strings that look like secrets masked.

    Raises SecretInTextError when a value holds a known form of a secret.
    """
    kept: dict[str, Any] = {}
    for name in fields:
        sent: Any = getattr(body, name)
        value: Any = body.model_dump(mode="json", include={name})[name]
        if holds_secret(value):
            raise SecretInTextError(
                text("error.secret_in_field", name=name),
                hint=text("error.secret_in_field_hint"),
                details={"field": name},
            )
        kept[name] = _like(sent, redacted(value))
    return kept


def _like(sent: Any, value: Any) -> Any:
    """JSON as the models that were sent, if they were any."""
    if isinstance(sent, list):
        return [_like(one, new) for one, new in zip(cast("list[Any]", sent), value, strict=True)]
    return type(sent).model_validate(value) if isinstance(sent, BaseModel) else value


def _wrong_limit() -> InvalidInputError:
    return InvalidInputError(text("error.page_limit", limit=_MAX_PAGE))


def check_key(key: str | None) -> None:
    """Raise InvalidInputError for an Idempotency-Key that cannot be stored."""
    if key is not None and (not key or len(key) > _MAX_KEY_CHARS or clean_text(key) != key):
        raise InvalidInputError(text("error.idempotency_key", limit=_MAX_KEY_CHARS))


def key_reused() -> IdempotencyKeyReusedError:
    """Error for an Idempotency-Key that was used for another request."""
    return IdempotencyKeyReusedError(
        "This Idempotency-Key was used for another request.", hint="Send the same body, or use a new key."
    )


def _as_expected(row: SessionRow, expected: Expected | None) -> str | None:
    """Check the caller's entity tag. Returns the row's version; None if the caller expects none.

    Raises PreconditionFailedError.
    """
    if expected is None or expected.tags is None:
        return None
    expected.check(session_etag(row.id, row.version), status=public_status(row.status), interrupt_id=row.interrupt_id)
    return row.version


def _nothing_open(row: SessionRow, asked: str | None = None) -> SessionConflictError:
    status = public_status(row.status)
    if row.status == "waiting":
        said, hint = text("error.another_question"), text("error.read_open_question")
    else:
        said, hint = text("error.nothing_waits", status=status), text("error.maybe_answered")
    return SessionConflictError(said, hint=hint, details={"status": status, "interrupt_id": row.interrupt_id})


class ExpectedCosts:
    """Average costs of sessions of the caller's owner."""

    def __init__(self, database: Database, agent: Agent) -> None:
        self._database = database
        self._agent = agent

    async def of(self, kind: SessionKind | None, model: str | None) -> ExpectedCost:
        """Expected cost of a session of this kind (None: any) with this model (None: the one of the settings)."""
        planned_with = self._agent.planned_with(model)
        if planned_with is None:
            return ExpectedCost(free=True, sessions=0)
        row = await self._database.fetch_one(AVERAGE_COST, {"planned_with": planned_with, "mode": kind})
        return ExpectedCost(free=False, **row or {"sessions": 0})
