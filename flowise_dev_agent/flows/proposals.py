"""Proposed writes: the flow text, its target, and the findings of the check."""

import asyncio
from dataclasses import dataclass, field, replace

from pydantic.alias_generators import to_camel

from flowise_dev_agent.errors import FlowiseNotFoundError, InvalidInputError, StaleBaseError
from flowise_dev_agent.flowise.flow_settings import (
    beside_uploads,
    columns_for,
    differing,
    recorded_before,
    settings_of,
)
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.reach import columns_of
from flowise_dev_agent.flows.credential_mapping import (
    bind,
    lacking,
    map_credentials,
    map_references,
    refuse_missing_files,
    with_credentials,
    with_ids,
)
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.flow_check import check_flow, excused, server_things
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from flowise_dev_agent.patch import TOOL, Finding, GraphIR, PatchOp, Schemas, compile_ops, payload_sha256
from flowise_dev_agent.persistence.flow_versions import KeptVersion
from flowise_dev_agent.schemas.etags import Expected, etag_of
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowSettings,
    ImportFlow,
    MappedCredential,
    MappedReference,
    MissingThing,
    PromoteFlow,
    WriteOperation,
)
from flowise_dev_agent.texts import text


@dataclass(frozen=True)
class Proposal:
    """A flow to be written, not checked yet. `base` is the flow it replaces, `source` the id of the flow it copies."""

    operation: WriteOperation
    title: str
    instance_id: str
    name: str
    type: str
    flow_data: str = field(repr=False)
    base: Chatflow | None = None
    source: str | None = None
    ops: list[PatchOp] | None = None
    credentials: list[MappedCredential] = field(default_factory=list)
    references: list[MappedReference] = field(default_factory=list)
    missing: list[MissingThing] = field(default_factory=list)
    settings: FlowSettings = field(default_factory=FlowSettings)
    left_out: list[str] = field(default_factory=list)
    #: Of `base`, beside its text.
    columns: dict[str, str | bool] = field(default_factory=dict[str, str | bool])


def row_etag(row: Chatflow) -> str:
    """Entity tag of a flow on a server, from its text, name, type and time of change."""
    return etag_of(row.id, row.name, row.type, payload_sha256(row.flow_data), row.updated_date)


class Proposals:
    """Makes proposals. Reads servers and writes nothing.

    Raises:
        InvalidInputError: an unknown instance, a missing credential or file, a flow of another type.
        PatchError: `ops` that cannot be compiled, a text that is not a flow.
        StaleBaseError: the flow is not the one that the body names.
        PreconditionFailedError: the flow in the path is not in an expected state.
        FlowiseError: a server cannot be read.
    """

    def __init__(self, instances: Instances, nodes: NodeKnowledge) -> None:
        self._instances = instances
        self._nodes = nodes

    async def import_flow(self, body: ImportFlow, instance: str | None) -> Proposal:
        """Propose a new flow."""
        instance_id = self._known(instance)
        client, settings = self._instances.client(instance_id), body.settings
        references: list[MappedReference] = []
        missing: list[MissingThing] = []
        credentials: list[MappedCredential] = []
        if body.flow_data is None:
            flow_data = await self._compiled(instance_id, GraphIR.empty(), body.ops or [])
        else:
            schemas, available = await self.schemas(instance_id), await client.list_credentials()
            things = await server_things(client, body.flow_data) if body.named or body.missing else {}
            flow_data, references = map_references(body.flow_data, body.named, things)
            missing = lacking(flow_data, body.missing, things)
            references += [MappedReference(kind=one.kind, name=one.name, target_id="", created=True) for one in missing]
            chosen = {name: str(id_) for name, id_ in body.credentials.items()}
            flow_data, credentials = await asyncio.to_thread(bind, flow_data, schemas, available, chosen)
            settings = with_credentials(settings, chosen)
        refuse_missing_files(flow_data, None)
        return Proposal(
            operation="import",
            title=f"Import '{body.name}'",
            instance_id=instance_id,
            name=body.name,
            type=body.type or GraphIR.from_flow_data(flow_data).kind,
            flow_data=flow_data,
            ops=body.ops,
            credentials=credentials,
            references=references,
            missing=missing,
            settings=settings,
        )

    async def with_made(self, proposal: Proposal) -> Proposal:
        """Make what the server lacks for the flow, and name it there. What a former attempt has made is found."""
        client = self._instances.client(proposal.instance_id)
        ids: dict[str, str] = {}
        references = [one for one in proposal.references if not one.created]
        for one in proposal.missing:
            id_ = await (client.create_tool if one.kind == TOOL else client.create_variable)(one.name, one.columns)
            ids[one.id or one.name] = id_
            references.append(MappedReference(kind=one.kind, name=one.name, target_id=id_, created=True))
        return replace(proposal, flow_data=with_ids(proposal.flow_data, ids), references=references)

    async def apply(
        self, chatflow_id: str, body: ApplyToFlow, instance: str | None, expected: Expected | None = None
    ) -> Proposal:
        """Propose the result of `ops` on a flow, a flow that replaces it, or another reach."""
        instance_id = self._known(instance)
        base = await self._as_expected(instance_id, chatflow_id, expected)
        if body.base_sha256 not in {None, payload_sha256(base.flow_data)}:
            raise StaleBaseError(
                text("error.other_base", name=base.name),
                hint=text("error.other_base_hint"),
                details={"chatflow_id": base.id, "sha256": payload_sha256(base.flow_data), "written": "no"},
            )
        credentials: list[MappedCredential] = []
        if body.reach is not None:
            flow_data = base.flow_data
        elif body.flow_data is not None:
            schemas = await self.schemas(instance_id)
            available = await self._instances.client(instance_id).list_credentials()
            flow_data, credentials = await asyncio.to_thread(
                bind, body.flow_data, schemas, available, {}, base.flow_data
            )
            refuse_missing_files(flow_data, base)
        else:
            flow_data = await self._compiled(instance_id, GraphIR.from_flow_data(base.flow_data), body.ops or [])
        return Proposal(
            operation="apply",
            title=f"Change '{base.name}'",
            instance_id=instance_id,
            name=base.name,
            type=base.type or "CHATFLOW",
            flow_data=flow_data,
            base=base,
            ops=body.ops,
            credentials=credentials,
            columns=columns_of(base, body.reach) if body.reach else {},
        )

    async def promote(self, chatflow_id: str, body: PromoteFlow, expected: Expected | None = None) -> Proposal:
        """Propose a copy for another instance or over a flow there; credentials are mapped by name and type."""
        source, target = self._known(body.source), self._known(body.target)
        here, there = self._instances.client(source), self._instances.client(target)
        row = await self._as_expected(source, chatflow_id, expected)
        type_ = row.type or "CHATFLOW"
        base = await there.get_chatflow(str(body.target_chatflow_id)) if body.target_chatflow_id else None
        base_type = (base and base.type) or "CHATFLOW"
        if base is not None and base_type != type_:
            raise InvalidInputError(
                text("error.other_type", name=row.name, type=type_, base=base.name, base_type=base_type),
                hint=text("error.choose_same_type"),
            )
        refuse_missing_files(row.flow_data, base)
        settings = settings_of(row) if base is None else FlowSettings()
        flow_data, settings, credentials = map_credentials(
            row.flow_data, settings, await here.list_credentials(), await there.list_credentials(), where=target
        )
        return Proposal(
            operation="promote",
            title=f"Promote '{row.name}' from {source} to {target}",
            instance_id=target,
            name=base.name if base else body.name or row.name,
            type=type_,
            flow_data=flow_data,
            base=base,
            source=row.id,
            credentials=credentials,
            settings=settings,
            left_out=differing(settings_of(row), settings_of(base)) if base else [],
        )

    async def restore(self, version: KeptVersion, flow_data: str, expected: Expected | None = None) -> Proposal:
        """Propose a version as it was kept; of a flow that is gone, a new flow."""
        try:
            base = await self._as_expected(version.instance_id, version.chatflow_id, expected)
        except FlowiseNotFoundError:
            base = None
        now = settings_of(base) if base else FlowSettings()
        wanted = version.flow_settings or recorded_before(now, version.settings)
        unknown = beside_uploads(now) if base else [to_camel(name) for name in FlowSettings.model_fields]
        return Proposal(
            operation="restore",
            title=f"Restore v{version.version} of '{version.name}'",
            instance_id=version.instance_id,
            name=version.name,
            type=base.type or "CHATFLOW" if base else GraphIR.from_flow_data(flow_data).kind,
            flow_data=flow_data,
            base=base,
            settings=FlowSettings() if base else wanted,
            columns=columns_for(base, wanted) if base else {},
            left_out=[] if version.flow_settings else unknown,
        )

    async def check(self, proposal: Proposal) -> list[Finding]:
        """Findings of the validator on the target server. Findings that a changed flow had before are warnings."""
        client = self._instances.client(proposal.instance_id)
        schemas = await self.schemas(proposal.instance_id)
        credentials = CredentialStore.from_rows(await client.list_credentials()).types()

        async def check(flow_data: str, before: str | None = None) -> list[Finding]:
            return await check_flow(
                client,
                flow_data,
                kind=proposal.type,
                schemas=schemas,
                credentials=credentials,
                base_flow_data=before,
                coming=proposal.missing,
            )

        if proposal.operation != "apply" or proposal.base is None:
            return await check(proposal.flow_data)
        before = proposal.base.flow_data
        return excused(await check(proposal.flow_data, before), await check(before))

    async def schemas(self, instance_id: str) -> Schemas:
        """Current node types of the server."""
        client = self._instances.client(instance_id)
        return (await self._nodes.store(instance_id, client, refresh=True)).schemas

    async def _compiled(self, instance_id: str, base: GraphIR, ops: list[PatchOp]) -> str:
        schemas = await self.schemas(instance_id)
        return await asyncio.to_thread(lambda: compile_ops(base, ops, schemas).flow_data)

    async def _as_expected(self, instance_id: str, chatflow_id: str, expected: Expected | None) -> Chatflow:
        row = await self._instances.client(instance_id).get_chatflow(chatflow_id)
        if expected is not None:
            expected.check(row_etag(row), chatflow_id=row.id, sha256=payload_sha256(row.flow_data))
        return row

    def _known(self, instance: str | None) -> str:
        instance_id = instance or self._instances.default_id
        self._instances.client(instance_id)
        return instance_id
