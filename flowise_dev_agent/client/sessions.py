"""Calls about sessions: start, answer, list and show them, with their files and webhooks."""

from uuid import UUID

from flowise_dev_agent.client.transport import Http, given, if_still, read_answer
from flowise_dev_agent.schemas.attachments import AttachmentList, AttachmentView
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.change import SessionChange
from flowise_dev_agent.schemas.designs import SessionPlan
from flowise_dev_agent.schemas.flows import Preview
from flowise_dev_agent.schemas.requests import RenameSession, ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionPage, SessionSummary, SessionView
from flowise_dev_agent.schemas.turns import TurnList
from flowise_dev_agent.schemas.usage import ExpectedCost
from flowise_dev_agent.schemas.verdict import Trace
from flowise_dev_agent.schemas.webhooks import DeliveryList, DeliveryPage, DeliveryView, StartedView


class SessionCalls(Http):
    """Calls about sessions. With `if_match`, the `etag` of a view, a session is changed only if it is unchanged."""

    async def start(self, request: StartSession, *, wait: float = 0, idempotency_key: str | None = None) -> StartedView:
        """Start a session; wait up to `wait` seconds for its first question or its end."""
        body = request.model_dump(mode="json", exclude_unset=True)
        return read_answer(StartedView, await self._post("/sessions", body, wait, idempotency_key))

    async def resume(
        self,
        session_id: UUID,
        answer: ResumeSession,
        *,
        wait: float = 0,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> SessionView:
        """Answer the open question; wait up to `wait` seconds for the next one or the end."""
        body = answer.model_dump(mode="json", exclude_unset=True)
        path = f"/sessions/{session_id}/resume"
        view = await self._post(path, body, wait, idempotency_key, if_match=if_match)
        return read_answer(SessionView, view)

    async def cancel(self, session_id: UUID, *, if_match: str | None = None) -> SessionView:
        """Stop a session."""
        headers = if_still(if_match)
        return read_answer(SessionView, await self._call("POST", f"/sessions/{session_id}/cancel", headers=headers))

    async def retry(self, session_id: UUID, *, if_match: str | None = None) -> SessionView:
        """Go on with a session that ended in an error."""
        headers = if_still(if_match)
        return read_answer(SessionView, await self._call("POST", f"/sessions/{session_id}/retry", headers=headers))

    async def get(self, session_id: UUID) -> SessionView:
        """Read a session."""
        return await self._get(SessionView, f"/sessions/{session_id}")

    async def list(
        self,
        *,
        status: str | None = None,
        instance: str | None = None,
        chatflow: str | None = None,
        text: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SessionPage:
        """Read a page of the sessions that match all filters, newest first.

        Each word of `text` must begin one of a session's name or requirement; `cursor` is `next_cursor` of the page
        before.
        """
        which = {"status": status, "instance": instance, "chatflow": chatflow, "query": text}
        return await self._get(SessionPage, "/sessions", **which, limit=limit, cursor=cursor)

    async def expected_cost(self, *, kind: str | None = None, model: str | None = None) -> ExpectedCost:
        """Estimate the cost of a new session: the average of the newest similar ones."""
        return await self._get(ExpectedCost, "/sessions/expected-cost", kind=kind, model=model)

    async def rename(self, session_id: UUID, name: str, *, if_match: str | None = None) -> SessionView:
        """Rename a session."""
        body = RenameSession(session_name=name).model_dump(mode="json")
        path = f"/sessions/{session_id}/name"
        return read_answer(SessionView, await self._call("PATCH", path, json=body, headers=if_still(if_match)))

    async def delete(self, session_id: UUID, *, purge: bool = False, if_match: str | None = None) -> None:
        """Delete a session; with `purge` also the stored texts of its flows. Its chatflow in Flowise stays."""
        params = {"purge": "true"} if purge else {}
        await self._call("DELETE", f"/sessions/{session_id}", params=params, headers=if_still(if_match))

    async def summary(self, session_id: UUID) -> SessionSummary:
        """Read a summary of the session, one page of Markdown."""
        return await self._get(SessionSummary, f"/sessions/{session_id}/summary")

    async def summary_page(self, session_id: UUID) -> str:
        """Read the summary as a page of HTML."""
        path = f"/sessions/{session_id}/summary"
        return (await self._send("GET", path, headers={"Accept": "text/html"})).text

    async def turns(self, session_id: UUID) -> TurnList:
        """Read the conversation of a session, oldest turn first."""
        return await self._get(TurnList, f"/sessions/{session_id}/turns")

    async def change(self, session_id: UUID) -> SessionChange | None:
        """Read the session's change to its flow; None if there is none yet."""
        change = await self._call("GET", f"/sessions/{session_id}/change")
        return read_answer(SessionChange, change) if change else None

    async def preview(self, session_id: UUID) -> Preview:
        """Read a picture of the session's flow: from the plan, the ops or the written flow."""
        return await self._get(Preview, f"/sessions/{session_id}/preview")

    async def design(self, session_id: UUID) -> SessionPlan:
        """Read the design of the flow that a session builds, part by part."""
        return await self._get(SessionPlan, f"/sessions/{session_id}/design")

    async def design_schema(self) -> JsonObject:
        """Read the JSON Schema of `design` in `StartSession`."""
        return await self._call("GET", "/designs/schema")

    async def trace(self, session_id: UUID, sha256: str) -> Trace:
        """Read the trace of one test (`trace_sha256` of a trial)."""
        return await self._get(Trace, f"/sessions/{session_id}/traces/{sha256}")

    # --- files and webhooks ------------------------------------------------------------------------------------------

    async def attach(self, name: str, content: bytes) -> AttachmentView:
        """Store a file; its id goes into `attachments` of a start or an answer."""
        return read_answer(AttachmentView, await self._call("POST", "/attachments", files={"file": (name, content)}))

    async def attachments(self, session_id: UUID) -> AttachmentList:
        """List the files of a session."""
        return await self._get(AttachmentList, "/attachments", session_id=str(session_id))

    async def attachment(self, attachment_id: UUID, *, text: bool = False) -> AttachmentView:
        """Read a file's metadata; with `text` also its whole extracted text."""
        return await self._get(AttachmentView, f"/attachments/{attachment_id}", text=text)

    async def delete_attachment(self, attachment_id: UUID) -> None:
        """Delete a file that no session uses."""
        await self._call("DELETE", f"/attachments/{attachment_id}")

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """List the session's webhook deliveries, newest first."""
        return await self._get(DeliveryList, f"/sessions/{session_id}/deliveries")

    async def all_deliveries(
        self, *, status: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> DeliveryPage:
        """Read a page of the webhook deliveries of all sessions."""
        return await self._get(DeliveryPage, "/deliveries", **given({"status": status}), limit=limit, cursor=cursor)

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        """Send a webhook delivery again."""
        path = f"/sessions/{session_id}/deliveries/{delivery_id}/replay"
        return read_answer(DeliveryView, await self._call("POST", path))
