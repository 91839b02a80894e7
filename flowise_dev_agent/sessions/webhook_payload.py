"""The content of a webhook. The shape follows Standard Webhooks: `{type, timestamp, data}`.

It has what a receiver needs to decide whom to ask and how to answer, and nothing confidential: plans, tests and other
large parts are read from the session, with the service's key.
"""

import json
from collections.abc import Mapping
from typing import Final

from flowise_dev_agent.caller import current_request
from flowise_dev_agent.flows.views import ChatflowLink
from flowise_dev_agent.persistence import SessionRow
from flowise_dev_agent.persistence.deliveries import WebhookMessage
from flowise_dev_agent.sanitize import clean_json, shortened
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.webhooks import (
    WebhookFailure,
    WebhookInterrupt,
    WebhookLinks,
    WebhookPayload,
    WebhookSession,
    WebhookTotals,
    WebhookType,
)
from flowise_dev_agent.sessions.views import session_view

#: Bounds of a payload's parts; the whole stays below 20 KB, as the specification asks.
_MAX_TEXT_CHARS: Final = 2_000
_MAX_INTERRUPT_BYTES: Final = 12_000
_MAX_ERROR_BYTES: Final = 2_000
_MAX_TOTALS_BYTES: Final = 2_000

_TYPES: Final[Mapping[str, WebhookType]] = {
    "waiting": "session.waiting",
    "completed": "session.completed",
    # Clients that wait for the end need this one too; `status` and `outcome` say how it ended.
    "cancelled": "session.completed",
    "failed": "session.failed",
}


def render(row: SessionRow, link: ChatflowLink, base_url: str) -> WebhookMessage:
    """Make the message about a session that waits or has ended. `base_url` prefixes links; "" gives plain paths."""
    view = session_view(row, link)
    path = f"{base_url}/sessions/{row.id}"
    data = WebhookSession(
        session_id=row.id,
        session_name=row.name,
        status=view.status,
        outcome=view.outcome,
        phase=row.phase,
        operation_mode=row.operation_mode,
        instance=row.instance_id,
        iteration=row.iteration,
        chatflow_id=row.chatflow_id,
        chatflow_url=view.chatflow_url,
        interrupt=_interrupt(view.interrupt) if view.interrupt else None,
        error=WebhookFailure(**vars(view.error)).fitted(_MAX_ERROR_BYTES) if view.error else None,
        totals=WebhookTotals(**vars(view.totals)).fitted(_MAX_TOTALS_BYTES),
        event_seq=row.event_seq,
        links=WebhookLinks(
            session=path, resume=f"{path}/resume" if view.interrupt else None, page=f"{base_url}/#/s/{row.id}"
        ),
        request_id=current_request().id,
        traceparent=current_request().traceparent,
    )
    payload = WebhookPayload(type=_TYPES[row.status], timestamp=row.updated_at, data=data)
    text = json.dumps(clean_json(payload.model_dump(mode="json")), ensure_ascii=False, separators=(",", ":"))
    return WebhookMessage(payload.type, text)


def _interrupt(interrupt: Interrupt) -> WebhookInterrupt:
    message = shortened(interrupt.message, _MAX_TEXT_CHARS)
    return view_of(WebhookInterrupt, interrupt, message=message).fitted(_MAX_INTERRUPT_BYTES)
