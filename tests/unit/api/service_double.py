"""A session service in memory with the runtime's signatures, for tests of the HTTP floor alone."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID, uuid4

from fastapi import FastAPI
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.caller import Caller, Door
from flowise_dev_agent.errors import (
    DeliveryNotFoundError,
    NodeTypeNotFoundError,
    SessionExistsError,
    SessionNotFoundError,
)
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.views import change_of
from flowise_dev_agent.observability.metrics import exposition
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.persistence import Fact
from flowise_dev_agent.schemas.change import SessionChange
from flowise_dev_agent.schemas.etags import Expected
from flowise_dev_agent.schemas.events import SessionEvent, session_event
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowDocument,
    FlowWriteResult,
    ImportFlow,
    PromoteFlow,
)
from flowise_dev_agent.schemas.flows import FlowPage
from flowise_dev_agent.schemas.nodes import (
    CatalogueHits,
    NodeOptions,
    NodeTypeDetails,
    NodeTypePage,
    NodeTypeView,
    OptionView,
)
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.service import DatabaseState, ProcessHealth, QueueState, Readiness
from flowise_dev_agent.schemas.session import ListedSession, SessionPage, SessionView
from flowise_dev_agent.schemas.usage import Totals
from flowise_dev_agent.schemas.versions import RolledBack, VersionDiff, VersionList, VersionView
from flowise_dev_agent.schemas.webhooks import DeliveryList, DeliveryPage, DeliveryView, StartedView
from flowise_dev_agent.settings import (
    DatabaseSettings,
    FlowiseSettings,
    LimitSettings,
    ReasoningSettings,
    RetentionSettings,
    ServerSettings,
    Settings,
    TracingSettings,
)
from flowise_dev_agent.webhooks.service import started_view
from tests.fixtures.interrupts import interrupt_of

#: The session of every write.
WRITE = UUID(int=7)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "whsec_shown-once"
QUESTION = interrupt_of("plan_approval")


def view(session_id: UUID, status: str = "in_progress", **fields: Any) -> SessionView:
    defaults: dict[str, Any] = {
        "thread_id": session_id,
        "session_id": session_id,
        "session_name": None,
        "status": status,
        "outcome": None,
        "phase": None,
        "operation_mode": None,
        "instance": "default",
        "chatflow_id": None,
        "chatflow_url": None,
        "iteration": 0,
        "totals": Totals(),
        "degraded": [],
        "interrupt": QUESTION if status == "pending_interrupt" else None,
        "error": None,
        "requirement": "r",
        "last_event_seq": 0,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return SessionView(**{**defaults, **fields})


def listed(view: SessionView) -> ListedSession:
    """The session as a list shows it."""
    shown = {
        name: value
        for name, value in vars(view).items()
        if name not in {"etag", "interrupt", "plan", "result", "phase_metrics"}
    }
    asked = view.interrupt.model_dump(exclude={"data", "response_schema"}) if view.interrupt else None
    return ListedSession(**shown, interrupt=asked)


def event(session_id: UUID, seq: int | None, type_: str, **data: Any) -> SessionEvent:
    return session_event(
        {
            "seq": seq,
            "ts": NOW.isoformat(),
            "session_id": str(session_id),
            "run_id": None,
            "type": type_,
            "node": "plan_v2",
            "phase": "plan",
            "status": None,
            "duration_ms": None,
            "summary": "two\nlines",
            "data": data,
        }
    )


class ServiceDouble:
    """Sessions settle only when a test says so by `settle`; `failure` is raised by every call while it is set."""

    def __init__(self) -> None:
        self.views: dict[UUID, SessionView] = {}
        self.log: list[SessionEvent] = []
        self.calls: list[tuple[str, Any]] = []
        self.failure: Exception | None = None
        self.ended = asyncio.Event()
        self.streams_closed = 0
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._changed = asyncio.Event()

    def _called(self, name: str, *details: Any) -> None:
        self.calls.append((name, details))
        self._reached[name].set()
        if self.failure:
            raise self.failure

    async def until(self, name: str) -> None:
        """Return once the method has been called."""
        await self._reached[name].wait()

    def settle(self, session_id: UUID, status: str = "pending_interrupt", **fields: Any) -> None:
        self.views[session_id] = view(session_id, status, **fields)
        self._changed.set()

    async def start(
        self, request: StartSession, *, idempotency_key: str | None = None, new_id: UUID | None = None
    ) -> StartedView:
        self._called("start", request, idempotency_key)
        session_id = request.thread_id or new_id or uuid4()
        if session_id in self.views:
            raise SessionExistsError("exists", details={"thread_id": str(session_id)})
        self.views[session_id] = view(session_id, requirement=request.requirement)
        return started_view(self.views[session_id], SECRET if request.webhook_own_secret else None)

    async def resume(
        self,
        session_id: UUID,
        body: ResumeSession,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> SessionView:
        self._called("resume", session_id, body, idempotency_key)
        await self.get(session_id)
        self.views[session_id] = view(session_id)
        return self.views[session_id]

    async def resume_events(
        self,
        session_id: UUID,
        body: ResumeSession,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> AsyncGenerator[SessionEvent]:
        before = (await self.get(session_id)).last_event_seq
        await self.resume(session_id, body, idempotency_key=idempotency_key)
        return self.events(session_id, before)

    async def cancel(self, session_id: UUID, *, expected: Expected | None = None) -> SessionView:
        self._called("cancel", session_id)
        await self.get(session_id)
        self.views[session_id] = view(session_id, "cancelled", outcome="cancelled")
        return self.views[session_id]

    async def retry(self, session_id: UUID, *, expected: Expected | None = None) -> SessionView:
        self._called("retry", session_id)
        return await self.get(session_id)

    async def get(self, session_id: UUID) -> SessionView:
        if self.failure:
            raise self.failure
        if session_id not in self.views:
            raise SessionNotFoundError(f"There is no session {session_id}.")
        return self.views[session_id]

    async def list(
        self, status: str | None = None, limit: int = 50, cursor: str | None = None, **filters: str | None
    ) -> SessionPage:
        self._called("list", status, limit, cursor, filters)
        return SessionPage(sessions=[listed(view) for view in list(self.views.values())[:limit]], next_cursor=None)

    async def rename(self, session_id: UUID, name: str, *, expected: Expected | None = None) -> SessionView:
        self._called("rename", session_id, name)
        self.views[session_id] = (await self.get(session_id)).model_copy(update={"session_name": name})
        return self.views[session_id]

    async def delete(self, session_id: UUID, *, purge: bool = False, expected: Expected | None = None) -> None:
        self._called("delete", session_id, purge)
        await self.get(session_id)
        del self.views[session_id]

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        self._called("deliveries", session_id)
        await self.get(session_id)
        return DeliveryList(endpoint=None, deliveries=[])

    async def all_deliveries(
        self, status: str | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> DeliveryPage:
        self._called("all_deliveries", status, limit, cursor)
        return DeliveryPage(deliveries=[], next_cursor=None)

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        self._called("replay", session_id, delivery_id)
        await self.get(session_id)
        raise DeliveryNotFoundError(f"There is no delivery {delivery_id}.")

    def watch(self, session_id: UUID) -> AbstractContextManager[asyncio.Event]:
        return nullcontext(asyncio.Event())

    async def wait(
        self,
        session_id: UUID,
        timeout: float,  # noqa: ASYNC109 - as the service has it
        watched: asyncio.Event | None = None,
    ) -> SessionView:
        self._called("wait", timeout)
        try:
            async with asyncio.timeout(timeout):
                while self.views[session_id].in_progress and not self.ended.is_set():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self.views[session_id]

    async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        self._called("events", after_seq)
        try:
            for item in self.log:
                if item.seq is None or item.seq > after_seq:
                    yield item
                    if item.type == "done":
                        return
            await self.ended.wait()
        finally:
            self.streams_closed += 1


class DatabaseDouble:
    def __init__(self) -> None:
        self.failure: Exception | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator["DatabaseDouble"]:
        if self.failure:
            raise self.failure
        yield self

    async def execute(self, _: str) -> None:
        return None


def version(label: str, session_id: UUID, **fields: Any) -> VersionView:
    defaults: dict[str, Any] = {
        "label": label,
        "session_id": session_id,
        "instance": "default",
        "chatflow_id": "c1",
        "name": "Sales bot",
        "reason": "update",
        "iteration": 0,
        "sha256": "ab" * 32,
        "created_at": NOW,
    }
    return VersionView(**{**defaults, **fields})


class VersionsDouble:
    """Two versions of every session; `failure` is raised by every call while it is set."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        if self.failure:
            raise self.failure

    async def of_session(self, session_id: UUID) -> VersionList:
        self._called("of_session", session_id)
        return VersionList(versions=[version("v1.0", session_id), version("v2.0", session_id, current=True)])

    async def of_chatflow(self, chatflow_id: str, *, limit: int) -> VersionList:
        self._called("of_chatflow", chatflow_id, limit)
        return VersionList(versions=[version("v2.0", UUID(int=1), chatflow_id=chatflow_id, current=True)])

    async def diff(self, session_id: UUID, from_label: str | None, to_label: str | None) -> VersionDiff:
        self._called("diff", session_id, from_label, to_label)
        return VersionDiff(from_label="v1.0", to_label="v2.0", text="temperature", change={"changed": []})

    async def rollback(self, session_id: UUID, label: str | None, **_: Any) -> RolledBack:
        self._called("rollback", session_id, label)
        return RolledBack(label=label or "v1.0", chatflow_id="c1", sha256="ab", updated_date="d", already_there=False)


class FlowWriterDouble:
    """Every write is taken and goes on until `ends` says how it ended; `failure` is raised instead while it is set."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.ends: FlowWriteResult | Exception | None = None

    def _take(self, *call: Any, body: Any) -> FlowWriteResult:
        self.calls.append((*call, body))
        if self.failure:
            raise self.failure
        return written("checked", session_id=None) if body.dry_run else written("in_progress")

    async def import_flow(self, body: ImportFlow, *, instance: str | None, idempotency_key: str | None) -> Any:
        return self._take("import", instance, idempotency_key, body=body)

    async def apply(
        self,
        chatflow_id: str,
        body: ApplyToFlow,
        *,
        instance: str | None,
        idempotency_key: str | None,
        expected: Expected | None = None,
    ) -> Any:
        return self._take("apply", chatflow_id, instance, idempotency_key, body=body)

    async def promote(
        self, chatflow_id: str, body: PromoteFlow, *, idempotency_key: str | None, expected: Expected | None = None
    ) -> Any:
        return self._take("promote", chatflow_id, idempotency_key, body=body)

    async def result(self, session_id: UUID) -> FlowWriteResult:
        if isinstance(self.ends, Exception):
            raise self.ends
        return self.ends or written("in_progress")


def written(status: Any, session_id: UUID | None = WRITE, **fields: Any) -> FlowWriteResult:
    defaults: dict[str, Any] = {
        "instance": "prod",
        "chatflow_id": "c2",
        "name": "Sales bot",
        "type": "CHATFLOW",
        "sha256": "ab" * 32,
        "created": True,
        "credentials": [],
        "findings": [],
    }
    return FlowWriteResult(status=status, session_id=session_id, **{**defaults, **fields})


class FlowsDouble:
    """An empty server. Every session that waits or has ended has changed nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def session_change(self, session_id: UUID) -> SessionChange:
        empty = change_of(None, GraphIR.empty(), labels=("nothing", "the new flow"))
        return SessionChange(**dict(empty), chatflow_id=None, draft_id=None, meanwhile=None)

    async def find(
        self,
        instance: str | None,
        query: str,
        *,
        limit: int,
        drafts: bool = False,
        cursor: str | None = None,
        pictures: bool = False,
    ) -> FlowPage:
        self.calls.append((instance, query, limit, drafts))
        return FlowPage(flows=[], total=0, searched=0)

    async def document(self, chatflow_id: str, instance: str | None) -> FlowDocument:
        flow_data = '{"nodes":[],"edges":[]}'
        return FlowDocument(
            id=chatflow_id, name=instance or "Bot", type="CHATFLOW", flow_data=flow_data, sha256="ab" * 32, updated="d"
        )


class CatalogueDouble:
    """A catalogue without node types and templates."""

    async def search(self, query: str, *, instance: str | None, limit: int) -> CatalogueHits:
        return CatalogueHits(instance=instance or "default", flowise_version="3", nodes=[], templates=[])


class NodeTypesDouble:
    """One node type, chatOpenAI."""

    node = NodeTypeView(
        name="chatOpenAI",
        label="OpenAI",
        category="Chat Models",
        kind="CHATFLOW",
        version=8,
        description="",
        credentials=["openAIApi"],
        deprecated=False,
    )

    async def list(
        self, instance: str | None, *, query: str, category: str | None, limit: int, cursor: str | None
    ) -> NodeTypePage:
        return NodeTypePage(nodes=[self.node][:limit], total=1, next_cursor=None)

    async def details(self, instance: str | None, name: str, *, with_options: bool = False) -> NodeTypeDetails:
        if name != self.node.name:
            raise NodeTypeNotFoundError(f"There is no node type {name!r}.", hint="Close names: chatOpenAI.")
        return NodeTypeDetails(node=self.node, inputs=[], outputs=["chatOpenAI"], card="### chatOpenAI", form={})

    async def options(
        self, instance: str | None, name: str, param: str, *, credential_id: str | None = None
    ) -> NodeOptions:
        model = OptionView(name="gpt-4o", label=credential_id or "GPT-4o")
        return NodeOptions(node=name, param=param, source="server", options=[model])


class KeysDouble:
    def __init__(self) -> None:
        #: By key.
        self.callers: dict[str, Caller] = {}
        self.failure: Exception | None = None

    async def caller(self, key: str, door: Door) -> Caller | None:
        if self.failure:
            raise self.failure
        found = self.callers.get(key)
        return found and replace(found, door=door)


class LedgerDouble:
    def __init__(self) -> None:
        self.facts: list[Fact] = []

    async def add(self, fact: Fact) -> None:
        self.facts.append(fact)


class HealthDouble:
    def __init__(self, db: DatabaseDouble) -> None:
        self._db = db
        self.status: Literal["ok", "degraded", "unavailable"] = "ok"
        self.missing: list[str] = []

    async def health(self) -> ProcessHealth:
        database = DatabaseState(state="ok", latency_ms=0.5)
        return ProcessHealth(status=self.status, feed="listening", worker=None, database=database)

    async def readiness(self) -> Readiness:
        async with self._db.connection():
            return Readiness(
                database=DatabaseState(state="ok", latency_ms=0.5, pending_migrations=self.missing),
                queue=QueueState(name="runs", queued=1, oldest_secs=0.5, workers=2),
            )

    async def metrics(self) -> bytes:
        return exposition([])


class FeedDouble:
    def __init__(self, service: ServiceDouble) -> None:
        self._service = service

    def end_streams(self) -> None:
        self._service.ended.set()
        self._service._changed.set()


class EngineDouble:
    def __init__(self) -> None:
        self.audit_log = LedgerDouble()
        self.keys = KeysDouble()
        self.service = ServiceDouble()
        self.flows = FlowsDouble()
        self.catalogue = CatalogueDouble()
        self.node_types = NodeTypesDouble()
        self.versions = VersionsDouble()
        self.flow_writer = FlowWriterDouble()
        # Ports where nothing listens: reachability fails at once.
        self.instances = Instances(
            FlowiseSettings(
                FLOWISE_INSTANCES=json.dumps(
                    [{"id": id_, "endpoint": "http://127.0.0.1:1", "api_key": "s3cret"} for id_ in ("dev", "prod")]
                )
            )
        )
        self.db = DatabaseDouble()
        self.connections: Connections | None = None
        self.health = HealthDouble(self.db)
        self.feed = FeedDouble(self.service)


def app_of(engine: EngineDouble, *, model_stand_in: bool = False, **server: Any) -> FastAPI:
    """The app over the double; keyword arguments are server settings by field name."""
    if "api_key" in server:
        server["api_key"] = SecretStr(server["api_key"])
    settings = Settings.model_construct(
        reasoning=ReasoningSettings(engine_choice="deterministic"),
        # A port where nothing listens: reachability fails at once.
        flowise=FlowiseSettings(api_endpoint="http://127.0.0.1:1", instances_json=None, model_stand_in=model_stand_in),
        database=DatabaseSettings(),
        limits=LimitSettings(),
        retention=RetentionSettings(),
        tracing=TracingSettings(),
        server=ServerSettings(**{"wait_secs": 0, "api_key": None} | server),
    )
    engine.connections = Connections(settings, cast(Any, engine.db))
    return create_app(settings, engine)
