"""Sessions: start, answer, cancel, read, list, delete; the same two starts as event streams; webhooks and forms."""

from typing import Annotated, Any, cast
from uuid import UUID, uuid4

from fastapi import Header, Path, Query, Request, Response
from sse_starlette import EventSourceResponse
from starlette.responses import HTMLResponse, JSONResponse

from flowise_dev_agent.api.deps import (
    MAX_SEQ,
    TAGGED,
    AfterSeq,
    IdempotencyKey,
    IfMatch,
    Service,
    SessionId,
    WaitSecs,
    engine,
    settle,
    tagged,
    words,
)
from flowise_dev_agent.api.limits import count_session_start
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.api.sse import STREAM_ENDS, event_stream
from flowise_dev_agent.errors import WebhookSecretError
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.designs import DesignForm, SessionPlan
from flowise_dev_agent.schemas.events import EventPage
from flowise_dev_agent.schemas.flows import Preview
from flowise_dev_agent.schemas.requests import RenameSession, ResumeSession, StartSession
from flowise_dev_agent.schemas.session import PublicStatus, SessionPage, SessionSummary, SessionView
from flowise_dev_agent.schemas.turns import TurnList
from flowise_dev_agent.schemas.usage import ExpectedCost, SessionKind
from flowise_dev_agent.schemas.verdict import Trace
from flowise_dev_agent.schemas.webhooks import DeliveryList, DeliveryPage, DeliveryStatus, DeliveryView, StartedView
from flowise_dev_agent.sessions.summary import as_html
from flowise_dev_agent.texts import Language, Text, text
from flowise_dev_agent.webhooks.service import started_view

_LATER = "Still working; come back by GET or the stream."
_RUNNING = {202: {"model": SessionView, "description": _LATER}}
_STARTED = {202: {"model": StartedView, "description": _LATER}}
_STARTING = (
    *("session_exists", "idempotency_key_reused", "secret_in_text", "attachment_not_found", "rate_limited"),
    *("webhook_url_refused", "webhook_secret_unavailable", "connection_unreadable"),
)
_ANSWERING = (
    *("session_not_found", "session_conflict", "idempotency_key_reused", "approval_needed", "invalid_answer"),
    *("secret_in_text", "attachment_not_found"),
)
#: Each frame's `data` is a session event as JSON.
_EVENTS = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/SessionEvent"}}},
        "description": "A stream of frames: `id` is the event's `seq`, `event` its `type`, `data` the event as JSON.",
    }
}


router = Routes(prefix="/sessions", tags=["sessions"], route_class=OnceRoute)
designs_router = Routes(prefix="/designs", tags=["sessions"])
deliveries_router = Routes(tags=["webhooks"])


@router.post("", responses=TAGGED | _STARTED | declared(*_STARTING))
async def start_session(
    request: Request,
    response: Response,
    body: StartSession,
    service: Service,
    wait_secs: WaitSecs,
    idempotency_key: IdempotencyKey = None,
) -> StartedView:
    """Start a session and wait for its first question or its end."""
    count_session_start(request)
    new_id = body.thread_id or uuid4()
    with service.watch(new_id) as watched:
        started = await service.start(body, idempotency_key=idempotency_key, new_id=new_id)
        ours = watched if started.thread_id == new_id else None
        view = await settle(response, service, started, wait_secs, ours)
    return started_view(view, started.webhook_secret)


@router.post("/stream", response_class=EventSourceResponse, responses=_EVENTS | declared(*_STARTING))
async def start_session_stream(
    request: Request, body: StartSession, service: Service, idempotency_key: IdempotencyKey = None
) -> EventSourceResponse:
    """Start a session and stream its events through the first question, the end or an error."""
    if body.webhook_own_secret:
        raise WebhookSecretError(text("webhook.no_place"), hint=text("webhook.start_then_follow"))
    count_session_start(request)
    view = await service.start(body, idempotency_key=idempotency_key)
    headers = {"Location": f"/sessions/{view.thread_id}"}
    return event_stream(request, service.events(view.thread_id, 0), until=STREAM_ENDS, headers=headers)


@router.get("", responses=declared())
async def list_sessions(
    service: Service,
    query: Annotated[str, words("text")],
    status: Annotated[PublicStatus | None, Query(description="Only sessions in this state.")] = None,
    instance: Annotated[str | None, Query(max_length=64, description="Only those on this Flowise.")] = None,
    chatflow: Annotated[str | None, Query(max_length=200, description="Only those of this chatflow id.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> SessionPage:
    """Sessions, newest first, a page at a time; the first page also says how many there are and what they cost."""
    return await service.list(status, limit, cursor, instance=instance, chatflow=chatflow, text=query or None)


@router.get("/expected-cost", responses=declared())
async def get_expected_cost(
    request: Request,
    kind: Annotated[SessionKind | None, Query(description="What it does; any when left out.")] = None,
    model: Annotated[str | None, Query(max_length=200, description="The model that it asks for.")] = None,
) -> ExpectedCost:
    """The expected cost of a new session: the average of the newest similar ones."""
    return await engine(request).expected_costs.of(kind, model)


@router.get("/{session_id}", responses=TAGGED | declared("session_not_found"))
async def get_session(response: Response, session_id: SessionId, service: Service) -> SessionView:
    """One session with its open question, if any."""
    return tagged(response, await service.get(session_id))


@router.patch("/{session_id}/name", responses=TAGGED | declared("session_not_found", "secret_in_text"))
async def rename_session(
    response: Response, session_id: SessionId, body: RenameSession, service: Service, if_match: IfMatch
) -> SessionView:
    """Give the session another title."""
    return tagged(response, await service.rename(session_id, body.session_name, expected=if_match))


@router.get(
    "/{session_id}/summary",
    response_model=SessionSummary,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}} | declared("session_not_found"),
)
async def get_session_summary(
    request: Request,
    session_id: SessionId,
    language: Annotated[Language, Query(description="Of headings and of the service's own sentences.")] = "en",
    accept: Annotated[str, Header(max_length=1_000, description="With `text/html` in it: as a page.")] = "",
) -> Response:
    """The session on one page of Markdown: requirement, change, questions, writes, tests, cost. A browser, and
    whoever accepts `text/html`, gets it as HTML."""
    summary = await engine(request).summaries.of(session_id, language)
    headers = {"Vary": "Accept"}
    if "text/html" in accept.lower():
        return HTMLResponse(as_html(summary), headers=headers)
    return JSONResponse(summary.model_dump(mode="json"), headers=headers)


@router.delete("/{session_id}", status_code=204, responses=declared("session_not_found"))
async def delete_session(
    session_id: SessionId,
    service: Service,
    if_match: IfMatch,
    purge: Annotated[
        bool, Query(description="Also remove the kept texts of flows that it found and wrote, now or later.")
    ] = False,
) -> None:
    """Remove a session and everything that belongs to it. The chatflow in Flowise stays, and so do the texts of
    flows from which it can be restored."""
    await service.delete(session_id, purge=purge, expected=if_match)


@router.post("/{session_id}/resume", responses=TAGGED | _RUNNING | declared(*_ANSWERING))
async def resume_session(
    response: Response,
    session_id: SessionId,
    body: ResumeSession,
    service: Service,
    wait_secs: WaitSecs,
    if_match: IfMatch,
    idempotency_key: IdempotencyKey = None,
) -> SessionView:
    """Answer the open question and wait for the next one or the end. One answer wins; any other gets 409."""
    with service.watch(session_id) as watched:
        view = await service.resume(session_id, body, idempotency_key=idempotency_key, expected=if_match)
        return await settle(response, service, view, wait_secs, watched)


@router.post(
    "/{session_id}/cancel",
    dependencies=[ONCE],
    responses=TAGGED | declared("session_not_found", "session_conflict", *REPEATED),
)
async def cancel_session(response: Response, session_id: SessionId, service: Service, if_match: IfMatch) -> SessionView:
    """Stop a session, running or waiting. What was written to Flowise stays."""
    return tagged(response, await service.cancel(session_id, expected=if_match))


@router.post(
    "/{session_id}/retry",
    dependencies=[ONCE],
    responses=TAGGED | _RUNNING | declared("session_not_found", "session_conflict", *REPEATED),
)
async def retry_session(
    response: Response, session_id: SessionId, service: Service, wait_secs: WaitSecs, if_match: IfMatch
) -> SessionView:
    """Go on with a session that ended in an error, from the last step that worked."""
    return await settle(response, service, await service.retry(session_id, expected=if_match), wait_secs)


@router.get("/{session_id}/events", responses=declared("session_not_found"))
async def list_session_events(
    session_id: SessionId,
    service: Service,
    after_seq: Annotated[int, Query(ge=0, le=MAX_SEQ, description="`next_after_seq` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    type: Annotated[list[str] | None, Query(description="Only these types; may be given several times.")] = None,  # noqa: A002 - the parameter's name
) -> EventPage:
    """The stored events of a session in order, a page at a time."""
    return await service.event_page(session_id, after_seq=after_seq, limit=limit, types=type)


@router.get("/{session_id}/decisions", responses=declared("session_not_found"))
async def list_session_decisions(
    session_id: SessionId,
    service: Service,
    after_seq: Annotated[int, Query(ge=0, le=MAX_SEQ, description="`next_after_seq` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> EventPage:
    """The routing decisions of the session: each fork with the branch taken and the others."""
    return await service.event_page(session_id, after_seq=after_seq, limit=limit, types=["decision"])


@router.get(
    "/{session_id}/stream", response_class=EventSourceResponse, responses=_EVENTS | declared("session_not_found")
)
async def stream_session(
    request: Request, session_id: SessionId, service: Service, after_seq: AfterSeq
) -> EventSourceResponse:
    """All events of a session, past ones first, over all its questions until it is done."""
    await service.get(session_id)
    return event_stream(request, service.events(session_id, after_seq))


@router.post("/{session_id}/stream", response_class=EventSourceResponse, responses=_EVENTS | declared(*_ANSWERING))
async def resume_session_stream(
    request: Request,
    session_id: SessionId,
    body: ResumeSession,
    service: Service,
    if_match: IfMatch,
    idempotency_key: IdempotencyKey = None,
) -> EventSourceResponse:
    """Answer the open question and stream what follows through the next question, the end or an error."""
    events = await service.resume_events(session_id, body, idempotency_key=idempotency_key, expected=if_match)
    return event_stream(request, events, until=STREAM_ENDS)


@router.get("/{session_id}/design", responses=declared("session_not_found", "design_not_found"))
async def get_session_design(session_id: SessionId, service: Service) -> SessionPlan:
    """The flow that the session builds, part by part: nodes, values, connections and what becomes of each part of it.
    `form` is what `POST /sessions` takes as `design` to build it again, null where a form cannot say it."""
    return await service.design(session_id)


@router.get("/{session_id}/turns", responses=declared("session_not_found"))
async def list_session_turns(request: Request, session_id: SessionId) -> TurnList:
    """The conversation of the session, oldest first: the requirement, the questions, the person's answers, remarks and
    edits. Secrets are masked.
    """
    return await engine(request).conversations.of_session(session_id)


@router.get("/{session_id}/preview", responses=declared("session_not_found", "design_not_found"))
async def get_session_preview(request: Request, session_id: SessionId) -> Preview:
    """The session's flow as a picture: from the plan while that waits for approval, then from the ops, then from
    the flow that was written. Nodes and connections say whether they are new, changed or removed; connections that
    the plan does not name and code expects are marked. Nothing is written, and no model is asked."""
    return await engine(request).previews.of(session_id)


@router.get("/{session_id}/traces/{sha256}", responses=declared("session_not_found", "trace_not_found"))
async def get_session_trace(
    session_id: SessionId,
    sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="`trace_sha256` of a test.")],
    service: Service,
) -> Trace:
    """The trace of one test: steps, tools, sources and state inside the flow. Secrets are masked."""
    return await service.trace(session_id, sha256)


@router.get("/{session_id}/deliveries", responses=declared("session_not_found"))
async def list_session_deliveries(session_id: SessionId, service: Service) -> DeliveryList:
    """The session's webhooks, newest first, with the result of each."""
    return await service.deliveries(session_id)


@router.post(
    "/{session_id}/deliveries/{delivery_id}/replay",
    dependencies=[ONCE],
    status_code=202,
    responses=declared("session_not_found", "delivery_not_found", *REPEATED),
)
async def replay_delivery(
    session_id: SessionId,
    delivery_id: Annotated[UUID, Path(description="The `webhook-id` of the delivery.")],
    service: Service,
) -> DeliveryView:
    """Send a webhook again, with its old id, also after a 410. It gets a new series of attempts."""
    return await service.replay(session_id, delivery_id)


@deliveries_router.get("/deliveries", responses=declared())
async def list_deliveries(
    service: Service,
    status: Annotated[DeliveryStatus | None, Query(description="Only deliveries in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> DeliveryPage:
    """Webhooks of all sessions with their results, newest first; replay one by its session's route."""
    return await service.all_deliveries(status, limit=limit, cursor=cursor)


@designs_router.get("/schema", responses=declared())
async def get_design_schema() -> JsonObject:
    """The JSON Schema of `design` in `POST /sessions`, for forms. `x-texts`: the codes of its texts."""
    return _with_codes(DesignForm.model_json_schema())


def _with_codes(schema: Any) -> Any:
    """A schema with the codes of its texts beside them."""
    if isinstance(schema, list):
        return [_with_codes(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    named = cast("dict[str, Any]", schema)
    codes = {name: value.code for name, value in named.items() if isinstance(value, Text)}
    return {name: _with_codes(value) for name, value in named.items()} | ({"x-texts": codes} if codes else {})
