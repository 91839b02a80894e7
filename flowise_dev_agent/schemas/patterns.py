"""Patterns as clients see them: accepted flows that new ones may start from."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.requests import Whole

Category = Literal["rag", "tool_agent", "conversational", "custom"]


class PatternData(BaseModel):
    """A pattern for export: ops without credentials, secrets and documents."""

    model_config = ConfigDict(extra="forbid")

    requirement: str = Field(min_length=1, max_length=32_000)
    name: str = Field(default="", max_length=120)
    flow_kind: Literal["CHATFLOW", "AGENTFLOW"] = "CHATFLOW"
    ops: list[dict[str, Any]] = Field(min_length=1, max_length=500)
    schema_fingerprint: str = Field(default="", max_length=64)
    success_count: Whole = Field(default=0, ge=0, le=1_000_000)
    failure_count: Whole = Field(default=0, ge=0, le=1_000_000)


class PatternView(BaseModel):
    """A pattern in the list."""

    id: int
    instance: str
    name: str
    requirement: str
    category: Category
    flow_kind: str
    node_types: list[str]
    ops: int = Field(description="how many ops it holds")
    schema_fingerprint: str
    success_count: int
    failure_count: int
    created_at: datetime | None
    last_used_at: datetime | None
    etag: str = Field(default="", description=ETAG)


class PatternList(BaseModel):
    """Patterns, the most successful first."""

    patterns: list[PatternView]


class PatternFile(BaseModel):
    """File format of `export` and `import`."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["flowise-dev-agent/patterns"] = "flowise-dev-agent/patterns"
    version: Literal[1] = 1
    patterns: list[PatternData] = Field(max_length=500)


class Skipped(BaseModel):
    """A pattern that was not imported."""

    index: int
    reason: str


class ImportResult(BaseModel):
    """Result of an import."""

    imported: list[int] = Field(description="ids of the new patterns")
    skipped: list[Skipped]
