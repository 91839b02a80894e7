"""What the stores need of a Flowise client; `flowise.FlowiseClient` has it."""

from collections.abc import Sequence
from typing import Any, Protocol


class CredentialRow(Protocol):
    """A credential as listed, without its secret."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def credential_name(self) -> str: ...


class NodeSource(Protocol):
    """Reads node types; raises `FlowiseError`."""

    async def list_nodes(self) -> list[dict[str, Any]]: ...
    async def get_node(self, name: str) -> dict[str, Any]: ...
    async def version(self) -> str: ...


class CredentialSource(Protocol):
    """Reads the list of credentials; raises `FlowiseError`."""

    async def list_credentials(self) -> Sequence[CredentialRow]: ...
