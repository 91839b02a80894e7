"""Flows of all instances with their sessions and stored versions, as pictures and differences."""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar
from uuid import UUID

from flowise_dev_agent.errors import InvalidInputError, PatchError, VersionNotFoundError
from flowise_dev_agent.flowise.flow_settings import settings_of, with_settings
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.reach import reach_of
from flowise_dev_agent.flows.chat import ChatInput, TryOut
from flowise_dev_agent.flows.proposals import Proposals, row_etag
from flowise_dev_agent.flows.search import FlowSearch, facts_of
from flowise_dev_agent.flows.views import ChatflowLink, change_of, server_of, start_form, starts_by
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.patch import CanvasView, GraphIR, canvas_view, decompile, payload_sha256, summarize
from flowise_dev_agent.patch.model.json_text import as_dict, inner_json
from flowise_dev_agent.persistence import AuditLog, Blobs, Fact, FlowVersion, Sessions, Versions
from flowise_dev_agent.persistence.flow_versions import KeptVersion, LastWrite
from flowise_dev_agent.persistence.read_model import FlowSessionRow, public_status
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.change import FlowChange, SessionChange
from flowise_dev_agent.schemas.chat import ChatAnswer
from flowise_dev_agent.schemas.flow_writes import FlowDocument, FlowOps, FlowSettings
from flowise_dev_agent.schemas.flows import FlowFacts, FlowPage, FlowSession, FlowSummary, FlowView
from flowise_dev_agent.schemas.reach import FlowReach
from flowise_dev_agent.texts import text

_Kept = TypeVar("_Kept", bound=KeptVersion)

#: Name of the server's current flow in a comparison of versions.
LIVE: Final = "live"
_SUMMARY_CHARS: Final = 12_000


class FlowService:
    """Reads flows. Only trial conversations write.

    Unknown sessions raise SessionNotFoundError, unknown instances and versions InvalidInputError, servers FlowiseError.
    """

    def __init__(
        self,
        *,
        instances: Instances,
        sessions: Sessions,
        versions: Versions,
        blobs: Blobs,
        proposals: Proposals,
        index: FlowIndex,
        link: ChatflowLink,
        audit_log: AuditLog,
    ) -> None:
        self._instances = instances
        self._sessions = sessions
        self._versions = versions
        self._blobs = blobs
        self._proposals = proposals
        self._link = link
        self._audit_log = audit_log
        self._search = FlowSearch(index, link)
        self._tries = TryOut()

    async def find(
        self,
        instance_id: str | None,
        query: str,
        *,
        limit: int,
        drafts: bool = False,
        cursor: str | None = None,
        pictures: bool = False,
    ) -> FlowPage:
        """A page of the flows of an instance that match the words of `query`, each with its newest session.

        Drafts of sessions, and pictures, are included only on request. Raises InvalidInputError for a foreign cursor.
        """
        known = instance_id or self._instances.default_id
        client = self._instances.client(known)
        found = await self._search.find(
            known, client, query, limit=limit, drafts=drafts, cursor=cursor, pictures=pictures
        )
        ids = [flow.id for flow in found.flows]
        sessions = await self._sessions.newest_of_flows(known, ids)
        writes = await self._versions.last_writes(known, ids)
        flows = [_known_of(flow, sessions.get(flow.id), writes.get(flow.id)) for flow in found.flows]
        return found.model_copy(update={"flows": flows})

    async def live(self, chatflow_id: str, instance_id: str | None, *, params: bool = True) -> FlowView:
        """A flow as the server has it now."""
        known = instance_id or self._instances.default_id
        row = await self._instances.client(known).get_chatflow(chatflow_id)
        graph = _read(row.flow_data)
        return FlowView(
            flow=facts_of(row, known, self._link),
            etag=row_etag(row),
            graph=canvas_view(graph, params=params),
            form=start_form(graph),
        )

    async def reach(self, chatflow_id: str, instance_id: str | None) -> FlowReach:
        """The reach of a flow, with its addresses."""
        known = instance_id or self._instances.default_id
        row = await self._instances.client(known).get_chatflow(chatflow_id)
        server = server_of(self._link(known, row.id))
        return FlowReach(
            **reach_of(row).model_dump(),
            needs_key=bool(row.apikeyid),
            mcp=as_dict(inner_json(str((row.model_extra or {}).get("mcpServerConfig") or ""))).get("enabled") is True,
            starts=starts_by(_read(row.flow_data)),
            chat_url=server and f"{server}/chatbot/{row.id}",
            api_url=server and f"{server}/api/v1/prediction/{row.id}",
            etag=row_etag(row),
        )

    async def summary(self, chatflow_id: str, instance_id: str | None) -> FlowSummary:
        """A flow as text of at most 12 000 characters."""
        known = instance_id or self._instances.default_id
        row = await self._instances.client(known).get_chatflow(chatflow_id)
        return FlowSummary(
            flow=facts_of(row, known, self._link),
            etag=row_etag(row),
            summary=summarize(_read(row.flow_data), _SUMMARY_CHARS),
        )

    async def document(self, chatflow_id: str, instance_id: str | None) -> FlowDocument:
        """A complete flow, including credential ids, so that it can be written again."""
        row = await self._instances.client(instance_id).get_chatflow(chatflow_id)
        return FlowDocument(
            id=row.id,
            name=row.name,
            type=row.type or "CHATFLOW",
            flow_data=row.flow_data,
            sha256=payload_sha256(row.flow_data),
            settings=settings_of(row),
            updated=row.updated_date,
            etag=row_etag(row),
        )

    async def version_document(self, chatflow_id: str, number: int) -> FlowDocument:
        """A complete version, by its number. Raises VersionNotFoundError."""
        version = await self._versions.with_number(chatflow_id, number) or _referenced([], f"v{number}")
        flow_data = await self._versions.text(version)
        return FlowDocument(
            id=chatflow_id,
            name=version.name,
            type=_read(flow_data).kind,
            flow_data=flow_data,
            sha256=version.sha256,
            settings=version.flow_settings or FlowSettings(),
            updated=version.updated_date,
        )

    async def ops(self, chatflow_id: str, instance_id: str | None) -> FlowOps:
        """The ops that build a flow. Raises PatchError for a flow that cannot be read."""
        known = instance_id or self._instances.default_id
        row = await self._instances.client(known).get_chatflow(chatflow_id)
        schemas = await self._proposals.schemas(known)
        return FlowOps(ops=await asyncio.to_thread(decompile, row.flow_data, schemas))

    async def version(self, session_id: UUID, label: str) -> CanvasView:
        """A stored version."""
        await self._sessions.get(session_id)
        return await self.drawn(await self._versioned(session_id, label))

    async def drawn(self, version: KeptVersion) -> CanvasView:
        """A stored version."""
        return canvas_view(await self._graph_of(version))

    async def compare(self, chatflow_id: str, before: str, after: str) -> FlowChange:
        """Compare two states of a chatflow, each `v<number>`, `<session id>:<label>` or `live`, across sessions."""
        rows = await self._versions.of_chatflow(chatflow_id, limit=1_000)
        if not rows:
            raise VersionNotFoundError(text("error.no_version_kept"), hint=text("error.versions_come_with_writes"))
        instance_id = rows[0].instance_id
        graphs: list[GraphIR] = []
        names: list[str] = []
        settings: list[FlowSettings | None] = []
        for reference in (before, after):
            if reference == LIVE:
                row = await self._instances.client(instance_id).get_chatflow(chatflow_id)
                graphs.append(_read(row.flow_data))
                names.append(row.name)
                settings.append(settings_of(row))
                continue
            if ":" in reference:
                version: KeptVersion = _referenced(rows, reference)
            else:
                numbered = await self._versions.with_number(chatflow_id, int(reference.removeprefix("v")))
                version = numbered or _referenced([], reference)
            graphs.append(await self._graph_of(version))
            names.append(version.name)
            settings.append(version.flow_settings)
        labels = tuple(text("side.now") if name == LIVE else name.rpartition(":")[2] for name in (before, after))
        shown = await asyncio.to_thread(change_of, graphs[0], graphs[1], labels=(labels[0], labels[1]))
        found = with_settings(shown.diff, *settings)
        return shown.model_copy(update={"diff": found, "before_name": masked(names[0]), "after_name": masked(names[1])})

    async def session_change(self, session_id: UUID) -> SessionChange | None:
        """Change of a session to its flow, as of its last question or its end; None if there is no change yet."""
        row = await self._sessions.get(session_id)
        change = await self._sessions.change(session_id)
        if change is None or not (change["before"] or change["after"]):
            return None
        before, after, found = [
            _read(await self._blobs.get(change[key])) if change.get(key) else None
            for key in ("before", "after", "found")
        ]
        sides = ("side.nothing", "side.new") if before is None else ("side.before", "side.with_change")
        if row.operation_mode == "copy":
            sides = ("side.original", "side.copy")
        labels = (text(sides[0]), text(sides[1]))
        # Large flows take a tenth of a second to compare.
        shown = await asyncio.to_thread(change_of, before, after, labels=labels, ops=change.get("ops") or ())
        meanwhile = None
        if found is not None:
            meanwhile = await asyncio.to_thread(change_of, before, found, labels=(text("side.read"), text("side.now")))
        return SessionChange(
            **dict(shown), chatflow_id=row.chatflow_id, draft_id=change.get("draft_id"), meanwhile=meanwhile
        )

    async def ask(self, chatflow_id: str, instance_id: str | None, said: ChatInput, chat_id: str | None) -> ChatAnswer:
        """Take one turn of a trial conversation. Before the call an audit row is written, without the texts."""
        known = instance_id or self._instances.default_id
        client = self._instances.client(known)
        await self._audit_log.add(Fact("try", instance_id=known, chatflow_id=chatflow_id))
        return await self._tries.ask(client, chatflow_id, said, chat_id)

    async def forget(self, chatflow_id: str, instance_id: str | None, chat_id: str) -> None:
        """Remove a trial conversation."""
        await self._tries.forget(self._instances.client(instance_id), chatflow_id, chat_id)

    async def _versioned(self, session_id: UUID, label: str) -> FlowVersion:
        rows = await self._versions.of_session(session_id)
        return _referenced(rows, f"{session_id}:{label}")

    async def _graph_of(self, version: KeptVersion) -> GraphIR:
        return _read(await self._versions.text(version))


def _known_of(flow: FlowFacts, session: FlowSessionRow | None, write: LastWrite | None) -> FlowFacts:
    """Add the newest session and the author of the last change, if a session's write has the same date."""
    ours = write if write is not None and write.updated_date == flow.updated else None
    last = None if session is None else _session(session)
    return flow.model_copy(update={"last_session": last, "changed_by": None if ours is None else ours.actor})


def _session(row: FlowSessionRow) -> FlowSession:
    return FlowSession(
        thread_id=row.id,
        session_name=row.name,
        status=public_status(row.status),
        outcome=row.outcome,
        updated_at=row.updated_at,
    )


def _read(flow_data: str) -> GraphIR:
    try:
        return GraphIR.from_flow_data(flow_data)
    except PatchError as error:
        raise InvalidInputError(
            text("error.not_drawn", problem=error.message), hint=text("error.open_and_save")
        ) from None


def _referenced(rows: Sequence[_Kept], reference: str) -> _Kept:
    session, _, label = reference.rpartition(":")
    for row in rows:
        if str(row.session_id) == session and row.label == label:
            return row
    raise VersionNotFoundError(
        text("error.no_version", version=reference[:80]),
        hint=text("error.history_hint"),
    )
