"""`AgentClient`: sessions over HTTP as typed calls, events as an async iterator."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx2
from pydantic import BaseModel, SecretStr

from flowise_dev_agent.caller import Door, RequestIds
from flowise_dev_agent.client.errors import ServiceError, ServiceUnreachableError
from flowise_dev_agent.contracts.events import SessionEvent, session_event_from_json
from flowise_dev_agent.contracts.plan import Design
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.contracts.session import SessionPage, SessionView
from flowise_dev_agent.contracts.webhooks import DeliveryList, DeliveryView, StartedView

if TYPE_CHECKING:
    from flowise_dev_agent.contracts.attachments import AttachmentView

    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.contracts.audit import AuditPage, AuditReport, ErasedWords
    from flowise_dev_agent.contracts.change import SessionChange
    from flowise_dev_agent.contracts.flow_tests import FlowTestView, TestFlow, ValidatedFlow, ValidateFlow
    from flowise_dev_agent.contracts.flow_writes import (
        ApplyToFlow,
        FlowDocument,
        FlowOps,
        FlowWriteResult,
        ImportFlow,
        PromoteFlow,
    )
    from flowise_dev_agent.contracts.keys import KeyList, MadeKey, NewKey
    from flowise_dev_agent.contracts.node_artifacts import ArtifactDetail, ArtifactPage, Memory
    from flowise_dev_agent.contracts.nodes import NodeOptions, NodeTypeDetails, NodeTypePage
    from flowise_dev_agent.contracts.verdict import Trace
    from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits
    from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary

M = TypeVar("M", bound=BaseModel)
_CONNECT_SECS = 5.0
#: Events come at least as keep-alive comments; so much silence is a dead connection.
_STREAM_SILENCE_SECS = 90.0
_RECONNECT_SECS = 1.0
_POLL_SECS = 1.0
#: Types of the events that end a run: the session asks, has ended or has failed.
RUN_END_EVENTS: Final = frozenset({"interrupt", "done", "error"})


class AgentClient:
    """Use it as an async context manager.

    Every call raises `ServiceError` with the service's own words when it answers with a problem, and
    `ServiceUnreachableError` when nothing answers at `base_url`. `timeout` (seconds) is for the answer of a call, on
    top of the time that the call itself waits. `reconnects` is how often in a row `events` reopens a stream that broke;
    with 0 it ends with its first stream. `door` is what the service records as the way by which its callers came,
    `request` the one that its calls belong to, `owner` the one for whom a key with the scope `admin` acts.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        api_key: SecretStr | None = None,
        *,
        timeout: float = 30.0,
        reconnects: int = 30,
        transport: httpx2.AsyncBaseTransport | None = None,
        door: Door = "rest",
        request: RequestIds | None = None,
        owner: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._reconnects = reconnects
        self._timeout = timeout
        headers = {"X-Door": door}
        if request and request.id and request.traceparent:
            headers |= {"X-Request-Id": request.id, "traceparent": request.traceparent}
        if owner:
            headers["X-Owner"] = owner
        if api_key:
            headers["Authorization"] = f"Bearer {api_key.get_secret_value()}"
        self._http = httpx2.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECS),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def start(self, request: StartSession, *, wait: float = 0, idempotency_key: str | None = None) -> StartedView:
        """Start a session; wait up to `wait` seconds for its first question or its end."""
        body = request.model_dump(mode="json", exclude_unset=True)
        return _read(StartedView, await self._post("/sessions", body, wait, idempotency_key))

    async def resume(
        self, session_id: UUID, answer: ResumeSession, *, wait: float = 0, idempotency_key: str | None = None
    ) -> SessionView:
        """Answer the open question; wait up to `wait` seconds for the next one or the end."""
        body = answer.model_dump(mode="json", exclude_unset=True)
        view = await self._post(f"/sessions/{session_id}/resume", body, wait, idempotency_key)
        return _read(SessionView, view)

    async def cancel(self, session_id: UUID) -> SessionView:
        """Stop a session."""
        return _read(SessionView, await self._call("POST", f"/sessions/{session_id}/cancel"))

    async def retry(self, session_id: UUID) -> SessionView:
        """Go on with a session that ended in an error."""
        return _read(SessionView, await self._call("POST", f"/sessions/{session_id}/retry"))

    async def get(self, session_id: UUID) -> SessionView:
        """Read a session."""
        return _read(SessionView, await self._call("GET", f"/sessions/{session_id}"))

    async def design(self, session_id: UUID) -> Design:
        """The flow that a session builds, part by part."""
        return _read(Design, await self._call("GET", f"/sessions/{session_id}/design"))

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
        """A page of sessions, newest first, of those that all filters let through.

        Each word of `text` must begin one of a session's name or requirement; `cursor` is `next_cursor` of the page
        before.
        """
        given = {
            "status": status,
            "instance": instance,
            "chatflow": chatflow,
            "text": text,
            "limit": limit,
            "cursor": cursor,
        }
        params = {name: value for name, value in given.items() if value is not None}
        return _read(SessionPage, await self._call("GET", "/sessions", params=params))

    async def delete(self, session_id: UUID) -> None:
        """Remove a session. Its chatflow in Flowise stays."""
        await self._call("DELETE", f"/sessions/{session_id}")

    async def change(self, session_id: UUID) -> "SessionChange | None":
        """What the session does to its flow; None before there is anything to see."""
        from flowise_dev_agent.contracts.change import SessionChange

        change = await self._call("GET", f"/sessions/{session_id}/change")
        return _read(SessionChange, change) if change else None

    async def find_flows(self, query: str = "", *, instance: str | None = None, limit: int = 20) -> "FlowPage":
        """Flows of a server by words; without any those changed last."""
        from flowise_dev_agent.runtime.flows.views import FlowPage

        return _read(FlowPage, await self._find("/flows", query, instance, limit))

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> "FlowSummary":
        """A flow in words. `chatflow_id` is a UUID."""
        from flowise_dev_agent.runtime.flows.views import FlowSummary

        params = {"instance": instance} if instance else {}
        return _read(FlowSummary, await self._call("GET", f"/flows/{chatflow_id}/summary", params=params))

    async def export_flow(self, chatflow_id: str, *, instance: str | None = None) -> "FlowDocument":
        """A flow with everything in it. `chatflow_id` is a UUID, here and below."""
        from flowise_dev_agent.contracts.flow_writes import FlowDocument

        params = {"instance": instance} if instance else {}
        return FlowDocument.model_validate(await self._call("GET", f"/flows/{chatflow_id}/export", params=params))

    async def flow_ops(self, chatflow_id: str, *, instance: str | None = None) -> "FlowOps":
        """The ops that build a flow."""
        from flowise_dev_agent.contracts.flow_writes import FlowOps

        params = {"instance": instance} if instance else {}
        return FlowOps.model_validate(await self._call("GET", f"/flows/{chatflow_id}/ops", params=params))

    async def import_flow(
        self, flow: "ImportFlow", *, instance: str | None = None, wait: float = 0, idempotency_key: str | None = None
    ) -> "FlowWriteResult":
        """Make a new flow; wait up to `wait` seconds until it is written, here and below."""
        return await self._write("/flows/import", flow, wait, idempotency_key, instance)

    async def apply_to_flow(
        self,
        chatflow_id: str,
        change: "ApplyToFlow",
        *,
        instance: str | None = None,
        wait: float = 0,
        idempotency_key: str | None = None,
    ) -> "FlowWriteResult":
        """Change a flow by ops, or replace it."""
        return await self._write(f"/flows/{chatflow_id}/apply", change, wait, idempotency_key, instance)

    async def promote_flow(
        self, chatflow_id: str, promotion: "PromoteFlow", *, wait: float = 0, idempotency_key: str | None = None
    ) -> "FlowWriteResult":
        """Copy a flow to another server, or over a flow there."""
        return await self._write(f"/flows/{chatflow_id}/promote", promotion, wait, idempotency_key)

    async def validate_flow(self, flow: "ValidateFlow", *, instance: str | None = None) -> "ValidatedFlow":
        """What the service finds wrong with a flow."""
        from flowise_dev_agent.contracts.flow_tests import ValidatedFlow

        params = {"instance": instance} if instance else {}
        body = flow.model_dump(mode="json", exclude_unset=True)
        return _read(ValidatedFlow, await self._call("POST", "/flows/validate", params=params, json=body))

    async def test_flow(
        self, test: "TestFlow", chatflow_id: str | None = None, *, instance: str | None = None, wait: float = 0
    ) -> "FlowTestView":
        """Test a flow on the server, or with a `TestFlowText` the one in it; wait up to `wait` seconds for the end."""
        from flowise_dev_agent.contracts.flow_tests import FlowTestView

        path = f"/flows/{chatflow_id}/test" if chatflow_id else "/flows/test"
        params = {"instance": instance} if instance else {}
        body = test.model_dump(mode="json", exclude_unset=True)
        view = _read(FlowTestView, await self._call("POST", path, params=params, json=body))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not view.is_over:
                    await asyncio.sleep(_POLL_SECS)
                    view = await self.flow_test(view.id)
        return view

    async def flow_test(self, test_id: UUID) -> "FlowTestView":
        """A test of a flow."""
        from flowise_dev_agent.contracts.flow_tests import FlowTestView

        return _read(FlowTestView, await self._call("GET", f"/tests/{test_id}"))

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> "CatalogueHits":
        """Node types and templates of a server by words."""
        from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits

        return _read(CatalogueHits, await self._find("/knowledge/search", query, instance, limit))

    async def node_types(
        self,
        query: str = "",
        *,
        category: str | None = None,
        instance: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> "NodeTypePage":
        """Node types of a server, a page of them."""
        from flowise_dev_agent.contracts.nodes import NodeTypePage

        given = {"q": query, "category": category, "instance": instance, "limit": limit, "cursor": cursor}
        params = {name: value for name, value in given.items() if value is not None}
        return _read(NodeTypePage, await self._call("GET", "/nodes", params=params))

    async def node_type(self, name: str, *, instance: str | None = None) -> "NodeTypeDetails":
        """A node type with its inputs."""
        from flowise_dev_agent.contracts.nodes import NodeTypeDetails

        params = {"instance": instance} if instance else {}
        return _read(NodeTypeDetails, await self._call("GET", f"/nodes/{quote(name, safe='')}", params=params))

    async def node_options(self, name: str, param: str, *, instance: str | None = None) -> "NodeOptions":
        """What a param of a node type may be set to."""
        from flowise_dev_agent.contracts.nodes import NodeOptions

        params = {"instance": instance} if instance else {}
        path = f"/nodes/{quote(name, safe='')}/options"
        return _read(NodeOptions, await self._call("POST", path, params=params, json={"param": param}))

    async def trace(self, session_id: UUID, sha256: str) -> "Trace":
        """What happened inside the flow during one test (`trace_sha256` of a trial)."""
        from flowise_dev_agent.contracts.verdict import Trace

        return _read(Trace, await self._call("GET", f"/sessions/{session_id}/traces/{sha256}"))

    async def attach(self, name: str, content: bytes) -> "AttachmentView":
        """Store a file; its id goes into `attachments` of a start or an answer."""
        from flowise_dev_agent.contracts.attachments import AttachmentView

        return _read(AttachmentView, await self._call("POST", "/attachments", files={"file": (name, content)}))

    async def artifacts(
        self, session_id: UUID, *, kind: str | None = None, node: str | None = None, limit: int = 50, offset: int = 0
    ) -> "ArtifactPage":
        """What the steps of a session left, newest first."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactPage

        given = {"kind": kind, "flowchart_node_id": node, "limit": limit, "offset": offset}
        params = {name: value for name, value in given.items() if value is not None}
        return _read(ArtifactPage, await self._call("GET", f"/sessions/{session_id}/artifacts", params=params))

    async def artifact(self, session_id: UUID, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactDetail

        return _read(ArtifactDetail, await self._call("GET", f"/sessions/{session_id}/artifacts/{artifact_id}"))

    async def memory_artifacts(self, memory_id: int, *, limit: int = 50, offset: int = 0) -> "ArtifactPage":
        """When a pattern was kept and used."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactPage

        params = {"limit": limit, "offset": offset}
        return _read(ArtifactPage, await self._call("GET", f"/memories/{memory_id}/artifacts", params=params))

    async def memories(self, query: str = "", *, memory_id: int | None = None, limit: int = 50) -> "Sequence[Memory]":
        """Patterns: one, those that fit words, or the most successful ones."""
        from flowise_dev_agent.contracts.node_artifacts import Memory

        given = {"q": query or None, "id": memory_id, "limit": limit}
        params = {name: value for name, value in given.items() if value is not None}
        found = await self._call("GET", "/patterns", params=params)
        return [
            Memory(
                memory_id=row["id"],
                text=row["requirement"],
                **{name: row[name] for name in ("name", "instance", "success_count", "failure_count")},
            )
            for row in found["patterns"]
        ]

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """The session's webhooks, newest first."""
        return _read(DeliveryList, await self._call("GET", f"/sessions/{session_id}/deliveries"))

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        """Have one of them sent again."""
        path = f"/sessions/{session_id}/deliveries/{delivery_id}/replay"
        return _read(DeliveryView, await self._call("POST", path))

    async def keys(self) -> "KeyList":
        """All keys of people and programs, newest first."""
        from flowise_dev_agent.contracts.keys import KeyList

        return _read(KeyList, await self._call("GET", "/keys"))

    async def create_key(self, new: "NewKey") -> "MadeKey":
        """Make a key; the answer is the only one that has it."""
        from flowise_dev_agent.contracts.keys import MadeKey

        return _read(MadeKey, await self._call("POST", "/keys", json=new.model_dump(mode="json")))

    async def rotate_key(self, key_id: UUID, *, keep_old_secs: int = 0) -> "MadeKey":
        """Make another key in the place of this one."""
        from flowise_dev_agent.contracts.keys import MadeKey

        body = {"keep_old_secs": keep_old_secs}
        return _read(MadeKey, await self._call("POST", f"/keys/{key_id}/rotate", json=body))

    async def revoke_key(self, key_id: UUID) -> None:
        """End a key at once."""
        await self._call("DELETE", f"/keys/{key_id}")

    async def audit(self, *, limit: int = 100, cursor: int | None = None, **which: Any) -> "AuditPage":
        """Answers and writes, newest first; filters are `session`, `flow`, `person`, `action`, `since`, `until`."""
        from flowise_dev_agent.contracts.audit import AuditPage

        params = {"limit": limit, "cursor": cursor, **which}
        given = {name: value for name, value in params.items() if value is not None}
        return _read(AuditPage, await self._call("GET", "/audit", params=given))

    async def audit_export(self, format_: str = "jsonl", **which: Any) -> AsyncGenerator[str]:
        """All rows that the filters let through, oldest first, as pieces of a JSON Lines or CSV file."""
        params = {name: value for name, value in {"format": format_, **which}.items() if value is not None}
        with self._in_words():
            async with self._http.stream("GET", "/audit/export", params=params) as response:
                if response.is_error:
                    await response.aread()
                    raise _problem(response)
                async for text in response.aiter_text():
                    yield text

    async def audit_verify(self, session_id: UUID | None = None) -> "AuditReport":
        """Check that every row of the ledger is there as it was written."""
        from flowise_dev_agent.contracts.audit import AuditReport

        params = {"session": str(session_id)} if session_id else {}
        return _read(AuditReport, await self._call("GET", "/audit/verify", params=params))

    async def erase_audit_words(self, *, session_id: UUID | None = None, person: str | None = None) -> "ErasedWords":
        """Erase what was said in a session, by a person, or both."""
        from flowise_dev_agent.contracts.audit import ErasedWords

        given = {"session": str(session_id) if session_id else None, "person": person}
        params = {name: value for name, value in given.items() if value is not None}
        return _read(ErasedWords, await self._call("DELETE", "/audit/words", params=params))

    async def health(self) -> dict[str, Any]:
        """What the service runs on."""
        return await self._call("GET", "/health")

    async def wait(self, session_id: UUID, timeout: float) -> SessionView:  # noqa: ASYNC109 - ends with a view, not an error
        """The session once it asks, ends or fails; as it is when `timeout` seconds are over."""
        view = await self.get(session_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while view.status == "in_progress":
                    async for event in self.events(session_id, after_seq=view.last_event_seq):
                        if event.type in RUN_END_EVENTS:
                            break
                    view = await self.get(session_id)
        return view

    async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        """Events after `after_seq`, those of the past first, through `done`.

        A stream that ends early is reopened where it ended (see `reconnects`); `ServiceUnreachableError` when that
        keeps failing.
        """
        failures = 0
        while True:
            try:
                async with self._stream(session_id, after_seq) as events:
                    async for event in events:
                        failures = 0
                        after_seq = event.seq or after_seq
                        yield event
                        if event.type == "done":
                            return
            except ServiceUnreachableError:
                failures += 1
                if failures > self._reconnects:
                    raise
            if not self._reconnects:
                return
            await asyncio.sleep(_RECONNECT_SECS)

    @asynccontextmanager
    async def _stream(self, session_id: UUID, after_seq: int) -> AsyncGenerator[AsyncIterator[SessionEvent]]:
        timeout = httpx2.Timeout(_STREAM_SILENCE_SECS, connect=_CONNECT_SECS)
        path = f"/sessions/{session_id}/stream"
        with self._in_words():
            async with self._http.stream("GET", path, params={"after_seq": after_seq}, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise _problem(response)

                async def events() -> AsyncIterator[SessionEvent]:
                    async for frame in httpx2.EventSource(response):
                        if frame.data:
                            yield session_event_from_json(frame.data)

                yield events()

    async def _write(
        self, path: str, body: BaseModel, wait: float, idempotency_key: str | None, instance: str | None = None
    ) -> "FlowWriteResult":
        from flowise_dev_agent.contracts.flow_writes import FlowWriteResult

        # Whole, since an op says by a default which one it is.
        sent = body.model_dump(mode="json")
        return FlowWriteResult.model_validate(await self._post(path, sent, wait, idempotency_key, instance))

    async def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        wait: float,
        idempotency_key: str | None,
        instance: str | None = None,
    ) -> Any:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        params = {"wait": wait} | ({"instance": instance} if instance else {})
        timeout = httpx2.Timeout(self._timeout + wait, connect=_CONNECT_SECS)
        return await self._call("POST", path, json=body, params=params, headers=headers, timeout=timeout)

    async def _find(self, path: str, query: str, instance: str | None, limit: int) -> Any:
        given = {"query": query, "instance": instance, "limit": limit}
        return await self._call("GET", path, params={name: value for name, value in given.items() if value is not None})

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        with self._in_words():
            response = await self._http.request(method, path, **options)
        if response.is_error:
            raise _problem(response)
        return response.json() if response.content else None

    def _in_words(self) -> "_InWords":
        return _InWords(self.base_url)


class _InWords:
    """Turns transport errors into `ServiceUnreachableError`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, httpx2.TransportError | httpx2.InvalidURL):
            raise ServiceUnreachableError(
                f"No service answers at {self._base_url} ({type(error).__name__}).",
                hint="Start it with `flowise-dev-agent serve`, or name another address with --url.",
            ) from error


def _read(model: type[M], body: Any) -> M:
    """An answer of the service, which may be newer than this client: fields that it does not know are left out."""
    return model.model_validate(body, extra="ignore")


def _problem(response: httpx2.Response) -> ServiceError:
    try:
        body: Any = response.json()
    except ValueError:
        body = {}
    return ServiceError(response.status_code, body if isinstance(body, dict) else {})
