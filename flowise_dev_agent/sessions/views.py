"""Views of rows for clients."""

from typing import TYPE_CHECKING, Any

from flowise_dev_agent.flows.views import ChatflowLink
from flowise_dev_agent.persistence.read_model import public_status
from flowise_dev_agent.schemas.base import Failure, read, read_as
from flowise_dev_agent.schemas.etags import session_etag
from flowise_dev_agent.schemas.events import SessionEvent, session_event
from flowise_dev_agent.schemas.interrupts import INTERRUPT, Interrupt, ListedInterrupt
from flowise_dev_agent.schemas.session import ApprovedPlan, ListedSession, ResultView, SessionView
from flowise_dev_agent.schemas.usage import DegradedPhase, PhaseMetrics, Totals

if TYPE_CHECKING:
    from flowise_dev_agent.persistence import SessionRow, StoredEvent


def session_view(row: "SessionRow", link: ChatflowLink) -> SessionView:
    """The view of a row."""
    return SessionView(
        **_common(row, link),
        etag=session_etag(row.id, row.version),
        interrupt=open_interrupt(row),
        plan=read(ApprovedPlan, row.plan) if row.plan else None,
        result=read(ResultView, row.result) if row.result else None,
        phase_metrics=[read(PhaseMetrics, item) for item in row.totals.get("phase_metrics", [])],
    )


def listed_session(row: "SessionRow", link: ChatflowLink) -> ListedSession:
    """Row of a session list as clients see it."""
    return ListedSession(
        **_common(row, link),
        interrupt=read(ListedInterrupt, row.interrupt) if row.interrupt else None,
        started_by=row.started_by,
    )


def open_interrupt(row: "SessionRow") -> Interrupt | None:
    """Open interrupt of a session, None without one."""
    return read_as(INTERRUPT, row.interrupt) if row.interrupt else None


def event_view(event: "StoredEvent") -> SessionEvent:
    """The view of an event."""
    fields: dict[str, Any] = vars(event)
    if event.type == "node_artifact:persisted":
        of_event = {
            "flowchart_id": event.session_id,
            "flowchart_run_id": event.run_id,
            "flowchart_node_id": event.node,
            "reference": f"/sessions/{event.session_id}/artifacts/{event.data.get('artifact_id')}",
        }
        fields = {**fields, "data": {**of_event, **event.data}}
    return session_event(fields)


def _common(row: "SessionRow", link: ChatflowLink) -> dict[str, Any]:
    return {
        "thread_id": row.id,
        "session_id": row.id,
        "session_name": row.name,
        "status": public_status(row.status),
        "outcome": row.outcome,
        "answer": row.answer,
        "phase": row.phase,
        "operation_mode": row.operation_mode,
        "instance": row.instance_id,
        "chatflow_id": row.chatflow_id,
        "chatflow_url": link(row.instance_id, row.chatflow_id) if row.chatflow_id else None,
        "iteration": row.iteration,
        "totals": read(Totals, row.totals),
        "degraded": [read(DegradedPhase, item) for item in row.degraded],
        "error": read(Failure, row.error) if row.error else None,
        "requirement": row.requirement,
        "last_event_seq": row.event_seq,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
