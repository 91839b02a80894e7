"""The fleet view: all flows of an instance with their states."""

from typing import Final

from flowise_dev_agent.cursors import decode_key, encode_key
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.views import ChatflowLink
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.persistence import Database, Versions
from flowise_dev_agent.persistence.fleet import Fleet, FleetFilter, FleetKey
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import csv_line
from flowise_dev_agent.schemas.fleet import FleetFlow, FleetPage, GoneFlowView

_KEPT_SECS: Final = 10.0
_MOST_GONE: Final = 100
_COLUMNS: Final = tuple(FleetFlow.model_fields)


class FleetService:
    """Shows the fleet. Raises InvalidInputError, and FlowiseError for a server that cannot be read."""

    def __init__(
        self, database: Database, *, index: FlowIndex, instances: Instances, versions: Versions, link: ChatflowLink
    ) -> None:
        self._database = database
        self._index = index
        self._instances = instances
        self._versions = versions
        self._link = link

    async def page(
        self, instance: str | None, wanted: FleetFilter | None = None, *, limit: int, cursor: str | None
    ) -> FleetPage:
        """A page of the flows that fit the filter, or of all."""
        known = instance or self._instances.default_id
        client = self._instances.client(known)
        after = decode_key(FleetKey, cursor) if cursor else None
        await self._index.current(known, client, fresh_secs=_KEPT_SECS)
        fleet = Fleet(self._database, known, client.endpoint)
        rows = await fleet.page(wanted or FleetFilter(), limit=limit + 1, after=after)
        shown = rows[:limit]
        writes = await self._versions.last_writes(known, [row.id for row in shown])
        flows: list[FleetFlow] = []
        for row in shown:
            write = writes.get(row.id)
            ours = write if write is not None and write.updated_date == row.updated_date else None
            flows.append(
                FleetFlow.model_validate(
                    {
                        **{name: value for name, value in vars(row).items() if name != "updated_date"},
                        "url": self._link(known, row.id),
                        "updated": row.updated_date,
                        "changed_by": ours and ours.actor,
                    }
                )
            )
        gone = await fleet.gone(_MOST_GONE)
        return FleetPage(
            instance=known,
            flows=flows,
            next_cursor=encode_key(FleetKey(shown[-1].updated_date, shown[-1].id)) if len(rows) > limit else None,
            deleted=[GoneFlowView.model_validate(vars(one) | {"name": masked(one.name)}) for one in gone],
        )


def as_csv(page: FleetPage) -> str:
    """The flows of a page as CSV, with a line of titles."""
    lines = [csv_line(_COLUMNS)]
    for flow in page.flows:
        values = flow.model_dump(mode="json")
        lines.append(csv_line(" ".join(v) if isinstance(v := values[name], list) else v for name in _COLUMNS))
    return "".join(lines)
