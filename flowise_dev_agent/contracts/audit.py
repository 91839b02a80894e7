"""The ledger: who answered what, and what was written."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.contracts.base import Contract


class AuditEntry(Contract):
    """One row of `audit_log`: an answer or a write. Rows of a chain are linked by their hashes."""

    owner: str
    chain: UUID = Field(description="The session's id.")
    seq: int
    ts: datetime
    actor: str | None = None
    key_id: str | None = None
    door: Literal["rest", "page", "cli", "mcp", "webhook", "service"]
    action: str
    session_id: UUID | None = None
    instance_id: str | None = None
    chatflow_id: str | None = None
    version: str | None = Field(default=None, description="Label of the flow's version, for a write.")
    words_sha256: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    request_id: str | None = None
    prev_hash: str | None = None
    hash: str
