"""Search for node types and marketplace templates of an instance by words."""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from flowise_dev_agent.knowledge.templates import Template, TemplateKnowledge
from flowise_dev_agent.ops.node_types import node_type_view
from flowise_dev_agent.patch import AddNode, Connect, Disconnect, PatchOp, decompile
from flowise_dev_agent.persistence import Database, InstanceNodes, InstanceTemplates
from flowise_dev_agent.schemas.change import public_ops
from flowise_dev_agent.schemas.nodes import CatalogueHits, NodeExample, TemplateHit

MOST_HITS: Final = 50
_MOST_EXAMPLES: Final = 2


class CatalogueService:
    """Search in the stored catalogue of an instance; a server is asked only when nothing is stored yet.

    An unknown instance raises InvalidInputError.
    """

    def __init__(self, database: Database, instances: Instances) -> None:
        self._instances = instances
        self._nodes = NodeKnowledge(math.inf, InstanceNodes(database))
        self._templates = TemplateKnowledge(math.inf, InstanceTemplates(database))

    async def search(self, query: str, *, instance: str | None, limit: int) -> CatalogueHits:
        """Find at most `limit` node types and as many templates; nothing when no word matches."""
        client = self._instances.client(instance)
        known = instance or self._instances.default_id
        nodes = await self._nodes.store(known, client)
        templates = await self._templates.store(known, client.endpoint)
        # The first search of a process builds the indexes.
        found, fitting = await asyncio.to_thread(lambda: (nodes.search(query, limit), templates.find(query, limit)))
        return CatalogueHits(
            instance=known,
            flowise_version=nodes.flowise_version,
            nodes=[node_type_view(schema) for schema in found],
            templates=[_template(template) for template in fitting],
        )

    async def examples(self, node_type: str, *, instance: str | None) -> list[NodeExample]:
        """Examples of a node type from the smallest marketplace flows that use it.

        Raises FlowiseError when the server has to be asked for them and fails.
        """
        client = self._instances.client(instance)
        known = instance or self._instances.default_id
        schemas = (await self._nodes.store(known, client)).schemas
        templates = (await self._templates.store(known, client.endpoint)).all()
        using = [one for one in templates if node_type in one.nodes and one.graph]
        using.sort(key=lambda one: len(one.nodes))
        found: list[NodeExample] = []
        for one in using[:_MOST_EXAMPLES]:
            text = await self._templates.content(known, client, one.name, one.type)
            ops = await asyncio.to_thread(decompile, text, schemas)
            found.append(NodeExample(template=one.name, type=one.type, ops=public_ops(_about(node_type, ops))))
        return found


def _about(node_type: str, ops: Sequence[PatchOp]) -> list[PatchOp]:
    """Select the ops that add the first node of a type, set its fields and connect it."""
    node_id = next(op.node_id for op in ops if isinstance(op, AddNode) and op.node_name == node_type)
    return [
        op
        for op in ops
        if op.op_type != "SetPosition"
        and (
            node_id in (op.source_node_id, op.target_node_id)
            if isinstance(op, Connect | Disconnect)
            else op.node_id == node_id
        )
    ]


def _template(template: Template) -> TemplateHit:
    return TemplateHit(
        name=template.name,
        type=template.type,
        description=template.description,
        usecases=list(template.usecases),
        nodes=list(template.nodes),
    )
