"""The content of a webhook. The shape follows Standard Webhooks: `{type, timestamp, data}`.

It has what a receiver needs to decide whom to ask and how to answer, and nothing confidential: plans, tests and other
large parts are read from the session, with the service's key.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from flowise_dev_agent.persistence import SessionRow
from flowise_dev_agent.persistence.deliveries import Message
from flowise_dev_agent.persistence.sanitize import bounded, clean_json, shortened
from flowise_dev_agent.runtime.sessions.views import ChatflowLink, public_status, session_view

#: Bounds of a payload's parts; the whole stays below 20 KB, as the specification asks.
_MAX_TEXT_CHARS: Final = 2_000
_MAX_INTERRUPT_BYTES: Final = 12_000
_MAX_ERROR_BYTES: Final = 2_000
_MAX_TOTALS_BYTES: Final = 2_000

_TYPES: Final = {
    "waiting": "session.waiting",
    "completed": "session.completed",
    # Clients that wait for the end need this one too; `status` and `outcome` say how it ended.
    "cancelled": "session.completed",
    "failed": "session.failed",
}


def render(row: SessionRow, link: ChatflowLink, base_url: str) -> Message:
    """The message about a session that waits or has ended. `base_url` prefixes every link; "" leaves them as paths."""
    view = session_view(row, link)
    path = f"{base_url}/sessions/{row.id}"
    data = {
        "session_id": str(row.id),
        "session_name": row.name,
        "status": public_status(row.status),
        "outcome": row.outcome,
        "phase": row.phase,
        "operation_mode": row.operation_mode,
        "instance": row.instance_id,
        "iteration": row.iteration,
        "chatflow_id": row.chatflow_id,
        "chatflow_url": view.chatflow_url,
        "interrupt": _interrupt(row.interrupt) if row.interrupt else None,
        "error": bounded(row.error, _MAX_ERROR_BYTES) if row.error else None,
        "totals": bounded(view.totals.model_dump(), _MAX_TOTALS_BYTES),
        #: Number of the reported event. Orders the webhooks of a session, which may arrive in any order.
        "event_seq": row.event_seq,
        "links": {
            "session": path,
            "resume": f"{path}/resume" if row.interrupt else None,
            "page": f"{base_url}/#/s/{row.id}",
        },
    }
    type_ = _TYPES[row.status]
    payload = {"type": type_, "timestamp": row.updated_at.isoformat(), "data": data}
    return Message(type_, json.dumps(clean_json(payload), ensure_ascii=False, separators=(",", ":")))


def _interrupt(interrupt: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: interrupt.get(name) for name in ("id", "type", "reason", "options", "response_schema")}
    message = shortened(str(interrupt.get("message", "")), _MAX_TEXT_CHARS)
    return bounded(shown | {"message": message}, _MAX_INTERRUPT_BYTES)
