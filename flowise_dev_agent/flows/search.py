"""Search for flows by words, in an index of an instance's flows that is at most a few seconds old."""

from typing import Final

from flowise_dev_agent.cursors import decode_key, encode_key
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flows.views import ChatflowLink
from flowise_dev_agent.knowledge.flow_index import FlowIndex, indexed
from flowise_dev_agent.persistence.instance_flows import FlowRow, PageKey
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.flows import FlowFacts, FlowPage

#: Short, because people search for a flow right after they accepted it.
_KEPT_SECS: Final = 2.0


class FlowSearch:
    """Lists and searches the flows of instances."""

    def __init__(self, index: FlowIndex, link: ChatflowLink) -> None:
        self._index = index
        self._link = link

    async def find(
        self,
        instance_id: str,
        client: FlowiseClient,
        query: str,
        *,
        limit: int,
        drafts: bool,
        cursor: str | None,
        pictures: bool = False,
    ) -> FlowPage:
        """A page of the flows that match all words of `query`, or of all flows, last changed first.

        Raises FlowiseError, and InvalidInputError for a foreign cursor.
        """
        after = decode_key(PageKey, cursor) if cursor else None
        rows = await self._index.current(instance_id, client, fresh_secs=_KEPT_SECS)
        found = await rows.page(query, drafts=drafts, limit=limit, after=after)
        drawn = await rows.pictures([row.id for row in found.rows]) if pictures else {}
        return FlowPage(
            flows=[
                _facts(row, instance_id, self._link).model_copy(update={"picture": drawn.get(row.id)})
                for row in found.rows
            ],
            total=found.total,
            searched=found.searched,
            next_cursor=encode_key(found.next) if found.next else None,
        )


def facts_of(row: Chatflow, instance_id: str, link: ChatflowLink) -> FlowFacts:
    """Identifying facts of a flow for lists: id, name, type, instance, dates, link."""
    return _facts(indexed(row).row, instance_id, link)


def _facts(row: FlowRow, instance_id: str, link: ChatflowLink) -> FlowFacts:
    given = {"instance": instance_id, "url": link(instance_id, row.id), "categories": row.tags}
    return view_of(FlowFacts, row, **given, updated=row.updated_date)
