"""Versions of the nodes of a flow against those of a server."""

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.ops import UpgradeNode
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.patch.views.flow_diff import diff

_MOST_CHANGES = 20


class OtherVersion(BaseModel):
    """A node whose type has another version on the server."""

    model_config = ConfigDict(frozen=True)

    node_id: str
    node_type: str
    stored: float = Field(description="Version that the flow holds.")
    offered: float = Field(description="Version of the server.")
    changes: list[str] = Field(description="Lines of what an upgrade of the node would change in the flow.")


def other_versions(flow: GraphIR, schemas: Schemas) -> list[OtherVersion]:
    """Nodes of the flow whose types have another version on the server; types that it lacks are findings."""
    found: list[OtherVersion] = []
    for node in flow.nodes:
        schema, stored = schemas.get(node.name), node.data.get("version")
        if schema is None or not isinstance(stored, int | float) or stored == schema.version:
            continue
        try:
            after = compile_ops(flow, [UpgradeNode(node_id=node.id)], schemas).graph
            lines = diff(flow, after).text.splitlines()
            changes = [line for line in lines if line.startswith(" ") and not line.startswith("    version: ")]
        except PatchError as error:
            changes = [error.message]
        found.append(
            OtherVersion(
                node_id=node.id,
                node_type=node.name,
                stored=stored,
                offered=schema.version,
                changes=[line.strip() for line in changes[:_MOST_CHANGES]],
            )
        )
    return found
