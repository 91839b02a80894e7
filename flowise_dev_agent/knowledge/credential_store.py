"""Credentials of a Flowise instance: ids, names and types, never secrets."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flowise_dev_agent.errors import ConfigurationError, FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Credential
from flowise_dev_agent.knowledge.snapshot import lines_text, schemas_dir, sha256_of, write_text

CREDENTIALS_FILE: Final = "flowise_credentials.snapshot.json"
CREDENTIALS_META_FILE: Final = "flowise_credentials.meta.json"

#: Fields of a credential that may be read and stored.
CREDENTIAL_ALLOWLIST: Final = frozenset({"credential_id", "name", "type", "tags", "created_at", "updated_at"})

_log = logging.getLogger(__name__)


class KnownCredential(BaseModel):
    """The allowed fields of a credential; other fields are rejected, not dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    id: str = Field(validation_alias="credential_id", serialization_alias="credential_id")
    name: str
    type: str
    tags: tuple[str, ...] = ()
    created_at: str | None = None
    updated_at: str | None = None


class CredentialsMeta(BaseModel):
    """Origin of the snapshot: it is valid only for this server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: str
    credential_count: int
    sha256: str
    generated_at: datetime


class CredentialStore:
    """The credentials of one instance at one point in time."""

    def __init__(self, credentials: Iterable[KnownCredential]) -> None:
        self._credentials = tuple(credentials)
        self._by: dict[str, dict[str, list[KnownCredential]]] = {"id": {}, "name": {}, "type": {}}
        for credential in self._credentials:
            for field, entries in self._by.items():
                entries.setdefault(getattr(credential, field), []).append(credential)

    @classmethod
    def from_rows(cls, rows: Sequence[Credential]) -> "CredentialStore":
        """Copy the allowed fields of each listed credential, and nothing else."""
        return cls(
            KnownCredential(
                id=row.id,
                name=row.name,
                type=row.credential_name,
                created_at=row.created_date,
                updated_at=row.updated_date,
            )
            for row in rows
        )

    @classmethod
    def from_snapshot(cls, folder: Path, endpoint: str) -> "CredentialStore | None":
        """The snapshot that `refresh --credentials` wrote for this server; None if there is none.

        A file with fields beyond the allowlist is not used; the log names the fields, never the values.
        """
        path = folder / CREDENTIALS_FILE
        try:
            meta = CredentialsMeta.model_validate_json((folder / CREDENTIALS_META_FILE).read_bytes())
            entries = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        if problems := allowlist_problems(entries):
            _log.error("%s is not used: %s", path, "; ".join(problems))
            return None
        return cls(KnownCredential.model_validate(entry) for entry in entries) if meta.endpoint == endpoint else None

    def __len__(self) -> int:
        return len(self._credentials)

    def all(self) -> tuple[KnownCredential, ...]:
        """All credentials in the server's order."""
        return self._credentials

    def by_type(self, credential_type: str) -> list[KnownCredential]:
        """Credentials of a type such as ``openAIApi``."""
        return list(self._by["type"].get(credential_type, ()))

    def types(self) -> dict[str, str]:
        """Credential id -> type, as the validator takes it."""
        return {credential.id: credential.type for credential in self._credentials}

    def resolve(self, query: str) -> KnownCredential | None:
        """Find a credential by id, then by name, then by type; None if none or several match."""
        for entries in self._by.values():
            if found := entries.get(query):
                return found[0] if len(found) == 1 else None
        return None


class CredentialKnowledge:
    """One store per instance, read from its server at most once per ``ttl`` seconds (0: at each request).

    ``folder`` holds the snapshot of `refresh --credentials`, used if the server cannot be read and never was.
    """

    def __init__(
        self, ttl: float, *, clock: Callable[[], float] = time.monotonic, folder: Callable[[], Path] = schemas_dir
    ) -> None:
        self._ttl = ttl
        self._clock = clock
        self._folder = folder
        #: By instance and address.
        self._stores: dict[tuple[str, str], tuple[float, CredentialStore]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def store(self, instance_id: str, client: FlowiseClient, *, refresh: bool = False) -> CredentialStore:
        """The instance's credentials; ``refresh`` reads them again.

        Raises FlowiseError if they cannot be read and nothing older is known, or with ``refresh``.
        """
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            at = (instance_id, client.endpoint)
            until, store = self._stores.get(at, (0.0, None))
            if store is not None and not refresh and self._clock() < until:
                return store
            try:
                store = CredentialStore.from_rows(await client.list_credentials())
            except FlowiseError as error:
                store = store or CredentialStore.from_snapshot(self._folder(), client.endpoint)
                if refresh or store is None:
                    raise
                _log.warning("credentials of instance %s cannot be read, using what is known: %s", instance_id, error)
                return store
            self._stores[at] = (self._clock() + self._ttl, store)
            return store


def allowlist_problems(entries: Any) -> list[str]:
    """Reasons why a snapshot cannot be used: the forbidden fields by entry, without values."""
    if not isinstance(entries, list):
        return ["it is not a list"]
    problems: list[str] = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            problems.append(f"entry {number} is not an object")
        elif banned := sorted(set(entry) - CREDENTIAL_ALLOWLIST):
            problems.append(f"entry {number} holds {', '.join(banned)}")
        else:
            try:
                KnownCredential.model_validate(entry)
            except ValidationError as error:
                where = ", ".join(sorted({str(item["loc"][0]) for item in error.errors(include_input=False)}))
                problems.append(f"entry {number} is wrong in {where}")
    return problems


def write_credentials(store: CredentialStore, endpoint: str, at: datetime, folder: Path) -> None:
    """Write the snapshot, which git ignores. Raises ConfigurationError if it contains more than the allowlist."""
    entries = [one.model_dump(mode="json", by_alias=True) for one in store.all()]
    if problems := allowlist_problems(entries):
        raise ConfigurationError(f"The credential snapshot is not written: {'; '.join(problems)}.")
    text = lines_text(entries)
    meta = CredentialsMeta(endpoint=endpoint, credential_count=len(entries), sha256=sha256_of(text), generated_at=at)
    write_text(folder / CREDENTIALS_FILE, text)
    write_text(folder / CREDENTIALS_META_FILE, meta.model_dump_json(indent=2) + "\n")
