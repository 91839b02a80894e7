"""Flows as code: files of a directory, the lock file, and the report of `sync`."""

import hashlib
import json
from typing import Final, Literal, Self
from uuid import UUID

from pydantic import AliasChoices, Field, model_validator

from flowise_dev_agent.patch import PatchOp
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.flow_tests import GivenTests
from flowise_dev_agent.schemas.flow_writes import MAX_OPS, FlowSettings, FlowType
from flowise_dev_agent.schemas.requests import Line, LongText, RequestBody

#: The name of the lock file in a directory of flows.
LOCK_FILE: Final = "flows.lock.json"
#: State of a file, and the resulting action.
SyncState = Literal["new", "changed", "same", "drifted", "conflict", "missing", "removed"]
SyncAction = Literal["create", "update", "keep", "none"]
SyncResult = Literal["planned", "done", "waiting", "tests_failed", "failed", "left"]


class FlowFile(RequestBody):
    """A flow as a YAML file: made from words by a session, from ops, or from its data."""

    name: Line = Field(description="Title of a new flow.")
    requirement: LongText | None = Field(default=None, description="Words; a session plans, builds and tests.")
    ops: list[PatchOp] | None = Field(default=None, min_length=1, max_length=MAX_OPS)
    flow_data: JsonObject | None = Field(
        default=None,
        validation_alias=AliasChoices("flow_data", "flowData"),
        description="As `export` writes it.",
    )
    type: FlowType | None = Field(default=None, description="Flowise's type; found from the nodes when left out.")
    settings: FlowSettings = Field(default_factory=FlowSettings, description="Of a new flow of `flow_data`.")
    flow: UUID | None = Field(default=None, description="A flow on the server that this file takes over.")
    tests: GivenTests = Field(default_factory=list, max_length=10)
    trials: int = Field(default=1, ge=1, le=10, description="Number of times that each conversation has to pass.")

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if sum(one is not None for one in (self.requirement, self.ops, self.flow_data)) != 1:
            raise ValueError("a file has one of `requirement`, `ops` and `flow_data`")
        return self

    @property
    def sha256(self) -> str:
        """SHA-256 of the parts that define the flow; a change of tests or names causes no write."""
        content = self.model_dump(mode="json", include={"requirement", "ops", "flow_data", "type"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class AppliedFlow(Contract):
    """State that was last written from a file."""

    chatflow_id: str
    content_sha256: str = Field(description="Of the file's content then.")
    flow_sha256: str = Field(description="Of the flow on the server after the write.")


class AppliedFlows(Contract):
    """The lock file: by instance and file name."""

    version: Literal[1] = 1
    instances: dict[str, dict[str, AppliedFlow]] = Field(default_factory=dict)


class SyncItem(Contract):
    """A file in a run of `sync`."""

    file: str
    name: str
    state: SyncState
    action: SyncAction
    result: SyncResult = "planned"
    chatflow_id: str | None = None
    session_id: UUID | None = None
    tests_passed: int | None = None
    tests: int | None = None
    note: str = ""


class SyncReport(Contract):
    """A run of `sync`."""

    instance: str
    items: list[SyncItem]


#: States that a person has to resolve if `sync` does not.
OPEN: Final[frozenset[SyncState]] = frozenset({"drifted", "conflict", "missing"})
