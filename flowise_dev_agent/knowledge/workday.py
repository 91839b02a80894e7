"""Workday through Flowise's custom MCP node: blueprints in a data file, with their ops and their check.

The node of Flowise 3.1.4 takes no credential: the token comes from a variable of Flowise, named in the server config.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from flowise_dev_agent.errors import ConfigurationError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.openapi import ApiDescription
from flowise_dev_agent.knowledge.snapshot import lines_text, schemas_dir, sha256_of, write_text
from flowise_dev_agent.patch import AddNode, Connect, PatchOp
from flowise_dev_agent.patch.model.references import variables
from flowise_dev_agent.texts import text

MCP_FILE: Final = "workday_mcp.snapshot.json"
API_FILE: Final = "workday_api.snapshot.json"
DEFAULT_BLUEPRINT: Final = "workday_default"
_VARIABLE: Final = "$vars."


class McpConfig(BaseModel):
    """Inputs of the node. ``mcpServerConfig`` is JSON as text, as Flowise stores and reads it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mcpServerConfig: str  # noqa: N815 - Flowise's name
    mcpActions: tuple[str, ...] = Field(min_length=1)  # noqa: N815

    @field_validator("mcpServerConfig")
    @classmethod
    def _names_a_server(cls, value: str) -> str:
        config: Any = json.loads(value)
        if not isinstance(config, dict) or not config.get("url") or "Authorization" not in config.get("headers", {}):
            raise ValueError("must be the text of a JSON object with url and headers.Authorization")
        return value

    @property
    def server_url(self) -> str:
        """Address of the MCP server; may contain a Flowise variable."""
        return str(json.loads(self.mcpServerConfig)["url"])

    @property
    def variables(self) -> list[str]:
        """Names of the Flowise variables in the config."""
        return [name.removeprefix(_VARIABLE) for name in variables(self.mcpServerConfig) if name.startswith(_VARIABLE)]


class WorkdayBlueprint(BaseModel):
    """One way to reach Workday from a chatflow.

    ``selectedTool`` is the MCP node type; ``auth_var`` is the Flowise variable with the token. ``credential_type`` is
    the type that a Workday node of Flowise would need; 3.1.4 has neither, and nothing is bound.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    blueprint_id: str
    label: str
    selectedTool: Literal["customMCP"]  # noqa: N815 - Flowise's name
    selectedToolConfig: McpConfig  # noqa: N815
    auth_var: str
    credential_type: str
    chatflow_only: bool
    #: Data that passes from Workday into the flow, and the personal part of it.
    data_fields: tuple[str, ...] = ()
    pii_fields: tuple[str, ...] = ()

    def ops(self, agent_id: str) -> list[PatchOp]:
        """Ops that add the MCP node with its server and tools, and connect it to the ``tools`` of an agent."""
        node = AddNode(
            node_name=self.selectedTool,
            node_id=f"{self.blueprint_id}_mcp",
            label=self.label,
            params=self.selectedToolConfig.model_dump(mode="json"),
        )
        return [node, Connect(source_node_id=node.node_id, target_node_id=agent_id, target_anchor="tools")]


class WorkdayMcpStore:
    """MCP blueprints by id."""

    def __init__(self, blueprints: dict[str, WorkdayBlueprint]) -> None:
        self._blueprints = blueprints

    @classmethod
    def from_snapshot(cls, folder: Path | None = None) -> "WorkdayMcpStore":
        """Read the blueprints of the data file."""
        entries = json.loads(((folder or schemas_dir()) / MCP_FILE).read_bytes())
        blueprints = [WorkdayBlueprint.model_validate(entry) for entry in entries]
        return cls({one.blueprint_id: one for one in blueprints})

    @property
    def ids(self) -> tuple[str, ...]:
        """All blueprint ids."""
        return tuple(self._blueprints)

    def get(self, blueprint_id: str = DEFAULT_BLUEPRINT) -> WorkdayBlueprint:
        """The blueprint with this id. Raises InvalidInputError with the known ids."""
        if blueprint_id not in self._blueprints:
            raise InvalidInputError(
                text("error.no_blueprint", name=repr(blueprint_id[:64])), hint=text("error.known", names=[*self.ids])
            )
        return self._blueprints[blueprint_id]


class WorkdayApiStore:
    """APIs from imported OpenAPI descriptions of Workday; empty until one is imported."""

    def __init__(self, apis: Sequence[ApiDescription] = ()) -> None:
        self.apis = tuple(apis)

    @classmethod
    def from_snapshot(cls, folder: Path | None = None) -> "WorkdayApiStore":
        """Read the APIs of the data file."""
        entries = json.loads(((folder or schemas_dir()) / API_FILE).read_bytes())
        return cls([ApiDescription.model_validate(entry) for entry in entries])

    def with_api(self, api: ApiDescription) -> "WorkdayApiStore":
        """A store with this API, replacing an older description of it."""
        return WorkdayApiStore([*(one for one in self.apis if one.title != api.title), api])

    def text(self) -> str:
        """Content of the data file, one API per line."""
        return lines_text(api.model_dump(mode="json") for api in self.apis) if self.apis else "[]\n"


class WorkdayKnowledgeProvider:
    """Knowledge of Workday that is available offline."""

    def __init__(self, mcp: WorkdayMcpStore, api: WorkdayApiStore) -> None:
        self.mcp = mcp
        self.api = api

    @classmethod
    def from_snapshot(cls, folder: Path | None = None) -> "WorkdayKnowledgeProvider":
        """Read both data files."""
        return cls(WorkdayMcpStore.from_snapshot(folder), WorkdayApiStore.from_snapshot(folder))


async def check_tools(blueprint: WorkdayBlueprint, client: FlowiseClient) -> list[str]:
    """List all tools of the blueprint's MCP server, as Flowise shows them for the node.

    Raises ConfigurationError if Flowise cannot reach the server, or the server lacks one of ``mcpActions``: a flow
    would run without that tool and report nothing. Raises FlowiseError if Flowise cannot be asked.
    """
    config = blueprint.selectedToolConfig
    rows = await client.node_options(
        blueprint.selectedTool, "listActions", inputs={"mcpServerConfig": config.mcpServerConfig}
    )
    offered = [str(row.get("name")) for row in rows]
    if offered in ([], ["error"]):
        raise ConfigurationError(
            f"{blueprint.blueprint_id}: Flowise at {client.endpoint} gets no tools from {config.server_url}.",
            hint=f"Set the variables {', '.join(config.variables)} in Flowise and see that the server answers. Flowise "
            "refuses private addresses unless it runs with HTTP_SECURITY_CHECK=false.",
        )
    if lacking := [name for name in config.mcpActions if name not in offered]:
        raise ConfigurationError(
            f"{blueprint.blueprint_id}: the MCP server has no tool {', '.join(lacking)}.",
            hint=f"It offers {', '.join(offered)}: correct mcpActions in {MCP_FILE}.",
        )
    return offered


class WorkdayMeta(BaseModel):
    """The status of a Workday file: `ok`, or `stub` while it has no content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Literal["ok", "stub"]
    count: int
    sha256: str
    generated_at: datetime


def meta_file(file: str) -> str:
    """The meta file of a data file: ``workday_api.snapshot.json`` -> ``workday_api.meta.json``."""
    return file.replace(".snapshot.", ".meta.")


def write_meta(folder: Path, file: str, status: Literal["ok", "stub"], count: int, at: datetime) -> None:
    """Write the meta file of a data file; an unchanged one keeps its date."""
    sha256 = sha256_of((folder / file).read_text(encoding="utf-8"))
    path = folder / meta_file(file)
    meta = WorkdayMeta(status=status, count=count, sha256=sha256, generated_at=at)
    if path.is_file():
        former = WorkdayMeta.model_validate_json(path.read_bytes())
        if former.sha256 == sha256:
            return
    write_text(path, meta.model_dump_json(indent=2) + "\n")
