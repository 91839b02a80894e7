"""The audit log: answers of people, and writes."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from pydantic import Field, field_serializer

from flowise_dev_agent.caller import Door
from flowise_dev_agent.schemas.base import Contract


class AuditEntry(Contract):
    """One row of the audit log: an answer or a write. Rows of a chain are linked by their hashes."""

    owner: str
    chain: UUID = Field(description="The session's id; 0 for what belongs to no session.")
    seq: int = Field(description="Counts from 1 within the chain.")
    ts: datetime
    actor: str = Field(description="Name of the key; `AGENT_API_KEY`, `local` (no key is asked for) or `service`.")
    key_id: str | None = None
    door: Door
    action: str = Field(description="Such as `start`, `plan_approval.approve`, `write.update`.")
    session_id: UUID | None = None
    instance_id: str | None = None
    chatflow_id: str | None = None
    version: str | None = Field(default=None, description="Label of the flow's version, for a write.")
    words_sha256: str | None = Field(default=None, description="Of a salt and the words.")
    before_sha256: str | None = Field(default=None, description="Of the flow before a write.")
    after_sha256: str | None = Field(default=None, description="Of the flow after a write.")
    request_id: str | None = None
    prev_hash: str | None = Field(default=None, description="`hash` of the row before; None for the first one.")
    hash: str

    @field_serializer("ts")
    def _in_utc(self, value: datetime) -> str:
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def computed_hash(self) -> str:
        """SHA-256 of the JSON list of the fields from `owner` to `prev_hash`, as the database made it (`audit_add`)."""
        values = self.model_dump(mode="json", include=_HASHED)
        text = json.dumps([values[name] for name in AuditEntry.model_fields if name in _HASHED], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


_HASHED = set(AuditEntry.model_fields) - {"hash"}


class AuditRow(AuditEntry):
    """An audit row with the person's text."""

    words: str | None = Field(
        default=None, description="The requirement, the answer, the feedback. None with a `words_sha256`: erased."
    )


class AuditPage(Contract):
    """Rows of the audit log, newest first."""

    rows: list[AuditRow]
    next_cursor: int | None = Field(description="`cursor` of the next page.")


class AuditFinding(Contract):
    """A row or chain of the audit log that was changed or removed."""

    chain: UUID
    seq: int | None = Field(description="None: the whole chain is missing.")
    problem: Literal["missing", "changed", "words_changed"]


class AuditReport(Contract):
    """Result of a check of the audit log."""

    rows: int = Field(description="Rows that were checked.")
    chains: int
    findings: list[AuditFinding] = Field(description="At most 100; none: every row is there as it was written.")


class ErasedWords(Contract):
    """Number of rows whose texts were erased."""

    erased: int
