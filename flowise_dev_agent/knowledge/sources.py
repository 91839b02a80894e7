"""What the stores need of a Flowise client and of the database; `flowise` and `persistence` have it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from flowise_dev_agent.contracts.base import JsonMapping, JsonObject
from flowise_dev_agent.flowise.models import NodeList, TemplateRow
from flowise_dev_agent.patch import NodeType
from flowise_dev_agent.persistence import CatalogueHead


class CredentialRow(Protocol):
    """A credential as listed, without its secret."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def credential_name(self) -> str: ...
    @property
    def created_date(self) -> str | None: ...
    @property
    def updated_date(self) -> str | None: ...


class NodeSource(Protocol):
    """Reads node types; raises `FlowiseError`."""

    @property
    def endpoint(self) -> str: ...
    async def list_nodes(self, etag: str | None = None) -> NodeList: ...
    async def get_node(self, name: str) -> NodeType: ...
    async def version(self) -> str: ...


class CredentialSource(Protocol):
    """Reads the list of credentials; raises `FlowiseError`."""

    @property
    def endpoint(self) -> str: ...
    async def list_credentials(self) -> Sequence[CredentialRow]: ...


class TemplateSource(Protocol):
    """Reads the marketplace; raises `FlowiseError`."""

    @property
    def endpoint(self) -> str: ...
    async def list_templates(self) -> list[TemplateRow]: ...


class NodeCache(Protocol):
    """Where the node lists of instances are kept; see `persistence.InstanceNodes`."""

    async def head(self, instance_id: str, endpoint: str) -> CatalogueHead | None: ...
    async def load(self, instance_id: str, fingerprint: str) -> tuple[str, str] | None: ...
    async def save(
        self,
        instance_id: str,
        endpoint: str,
        *,
        fingerprint: str,
        flowise_version: str,
        etag: str | None,
        nodes: str,
        names: Sequence[str],
    ) -> None: ...
    async def confirm(self, instance_id: str, endpoint: str) -> None: ...
    async def repaired(self, instance_id: str) -> dict[str, str]: ...
    async def save_repaired(
        self, instance_id: str, endpoint: str, name: str, node: str, decision: Mapping[str, str]
    ) -> None: ...


class TemplateCache(Protocol):
    """Where templates are kept; see `persistence.InstanceTemplates`."""

    async def read_at(self, instance_id: str, endpoint: str) -> tuple[datetime, float] | None: ...
    async def listed(self, instance_id: str, endpoint: str) -> tuple[list[JsonObject], float] | None: ...
    async def save(
        self, instance_id: str, endpoint: str, entries: Sequence[JsonMapping], contents: Mapping[str, str]
    ) -> None: ...
    async def content(self, sha256: str) -> str | None: ...
