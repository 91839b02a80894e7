"""Flows from one server to another, kept like any other write: with an intent, a version before and one after."""

from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.errors import AgentError, WriteFailedError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.persistence import OutOfBandWrites, PromotionRecord, Versions, WriteIntents
from flowise_dev_agent.publish import Base, Publisher, Stale, Written
from flowise_dev_agent.runtime.flows.transfer import MappedCredential, Prepared, prepare


class Promoted(BaseModel):
    """A flow as read back from the instance that it was promoted to."""

    model_config = ConfigDict(frozen=True)

    session_id: UUID = Field(description="The promotion among the sessions: its versions, differences and rollback.")
    instance: str
    chatflow_id: str
    name: str
    sha256: str
    created: bool = Field(description="False when it took the place of what a flow held, which is kept as a version.")
    credentials: list[MappedCredential]


class Promotions:
    """Brings flows to other instances."""

    def __init__(
        self, *, out_of_band: OutOfBandWrites, versions: Versions, intents: WriteIntents, instances: Instances
    ) -> None:
        self._out_of_band = out_of_band
        self._versions = versions
        self._intents = intents
        self._instances = instances

    async def promote(
        self,
        chatflow_id: str,
        *,
        source: str | None,
        target: str,
        name: str | None = None,
        target_chatflow_id: str | None = None,
    ) -> Promoted:
        """Copy a flow to another instance, or over a flow there; checked before and read back after.

        Raises InvalidInputError as `transfer.prepare` does, and FlowiseError or WriteFailedError as for any write.
        """
        ready = await prepare(
            self._instances, chatflow_id, source=source, target=target, target_chatflow_id=target_chatflow_id
        )
        origin = source or self._instances.default_id
        record = PromotionRecord(
            session_id=uuid4(),
            title=f"Promote '{ready.row.name}' from {origin} to {target}",
            instance_id=target,
            request={"operation": "promote", "source": origin, "target": chatflow_id},
        )
        await self._out_of_band.begin(record)
        publisher = Publisher(
            session_id=record.session_id,
            instance_id=target,
            client=self._instances.client(target),
            intents=self._intents,
            lease=None,
            versions=self._versions,
        )
        try:
            written = await _write(publisher, ready, name or ready.row.name)
        except AgentError as error:
            await self._out_of_band.failed(record.session_id, problem=error.as_problem())
            raise
        await self._out_of_band.arrived(
            record.session_id,
            chatflow_id=written.chatflow_id,
            summary=f"Promoted '{ready.row.name}' from {origin} to '{written.name}' on {target}",
            data={"chatflow_id": written.chatflow_id, "flow": written.sha256, "from": chatflow_id},
        )
        return Promoted(
            session_id=record.session_id,
            instance=target,
            chatflow_id=written.chatflow_id,
            name=written.name,
            sha256=written.sha256,
            created=ready.base is None,
            credentials=ready.credentials,
        )


async def _write(publisher: Publisher, ready: Prepared, name: str) -> Written:
    if ready.base is None:
        made = await publisher.create(
            name=name, flow_data=ready.flow_data, kind=ready.kind, validated_sha256=ready.sha256, iteration=0
        )
        return await publisher.accept(chatflow_id=made.chatflow_id, deploy=False, iteration=0)
    result = await publisher.update(
        chatflow_id=ready.base.id,
        flow_data=ready.flow_data,
        validated_sha256=ready.sha256,
        base=Base(payload_sha256(ready.base.flow_data), ready.base.updated_date),
        iteration=0,
        reason="promotion",
    )
    if isinstance(result, Stale):
        raise WriteFailedError(
            f"'{ready.base.name}' was changed on Flowise meanwhile; nothing was written.",
            hint="Look at it and promote again.",
            details={"chatflow_id": ready.base.id},
        )
    return result
