"""Credentials of a Flowise instance: ids, names and types, never anything secret."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.knowledge.sources import CredentialRow, CredentialSource


class Credential(BaseModel):
    """All that may be known about a credential; other fields are refused, not dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    type: str


class CredentialStore:
    """The credentials of one instance at one time."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._credentials = tuple(credentials)

    @classmethod
    def from_rows(cls, rows: Sequence[CredentialRow]) -> "CredentialStore":
        """Take id, name and type of each listed credential and nothing else."""
        return cls(Credential(id=row.id, name=row.name, type=row.credential_name) for row in rows)

    def __len__(self) -> int:
        return len(self._credentials)

    def all(self) -> tuple[Credential, ...]:
        """In the server's order."""
        return self._credentials

    def by_type(self, credential_type: str) -> list[Credential]:
        """Those of a type such as ``openAIApi``."""
        return [credential for credential in self._credentials if credential.type == credential_type]

    def types(self) -> dict[str, str]:
        """Credential id to type, as the validator takes it."""
        return {credential.id: credential.type for credential in self._credentials}

    def resolve(self, query: str) -> Credential | None:
        """By id, then by name, then by type; None when nothing fits or a name or type fits several."""
        for field in ("id", "name", "type"):
            found = [credential for credential in self._credentials if getattr(credential, field) == query]
            if found:
                return found[0] if len(found) == 1 else None
        return None


class CredentialKnowledge:
    """One store per instance, read from its server at most once per ``ttl`` seconds (0: at each request)."""

    def __init__(self, ttl: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._stores: dict[str, tuple[float, CredentialStore]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def store(self, instance_id: str, client: CredentialSource, *, refresh: bool = False) -> CredentialStore:
        """The instance's credentials; ``refresh`` reads them anew. Raises FlowiseError when they cannot be read."""
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            until, store = self._stores.get(instance_id, (0.0, None))
            if store is None or refresh or self._clock() >= until:
                store = CredentialStore.from_rows(await client.list_credentials())
                self._stores[instance_id] = (self._clock() + self._ttl, store)
            return store
