"""Versions of a flow, numbered across all sessions."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.schemas.base import Contract, Worded
from flowise_dev_agent.schemas.requests import RequestBody

#: What a rollback does with a flow that the session made.
TakenBack = Literal["delete", "undeploy"]


class NumberedVersion(Worded):
    """One state of a flow. `session_id` and `label` name it in routes of sessions."""

    name: str = Field(description="`v1`, `v2`, ... over all sessions of the flow; never a label of a session.")
    title: str = Field(
        description="Title of the session that wrote it; for other versions a description of their origin."
    )
    origin: Literal["session", "restored", "elsewhere"] = Field(
        description="Written by a session, put back from an earlier version, or saved by somebody else."
    )
    flow_name: str = Field(default="", description="Name of the flow.")
    renamed_from: str | None = Field(default=None, description="Previous name of the flow, if it was another one.")
    by: str | None = Field(
        default=None, description="Person who wrote it, as in the audit log; None: somebody in Flowise."
    )
    restores: str | None = Field(default=None, description="The earlier version with the same text and name.")
    session_id: UUID | None = Field(description="None for a version that only the watch saw.")
    label: str = Field(description="`v1.0`, `v2.0`, ... within that session; empty without one.")
    instance: str
    sha256: str
    created_at: datetime
    current: bool = Field(description="The newest that is kept.")
    moved: bool = Field(default=False, description="Edited in Flowise, where nodes were only moved.")
    bookmark: str | None = Field(default=None, description="The note of a bookmark, null without one.")


class NumberedVersions(Contract):
    """Versions, newest first. `next_before` gets the page of older ones as `before`; null on the last one."""

    versions: list[NumberedVersion]
    next_before: int | None


class Bookmark(RequestBody):
    """Bookmark of a version."""

    note: str = Field(default="", max_length=200)


class VersionView(BaseModel):
    """A version of a chatflow. `current`: the session's last write left the flow in this version."""

    model_config = ConfigDict(frozen=True)

    label: str = Field(description="`v1.0`, `v2.0`, ... counted within the session; empty without one.")
    session_id: UUID | None = Field(description="None for a version that the watch saw.")
    instance: str
    chatflow_id: str
    name: str
    reason: str = Field(
        description="The write that came next (`before_update`, ...), or that made it (`update`, ...); `flowise`: seen "
        "by the watch."
    )
    source: Literal["session", "flowise"] = Field(
        default="session", description="Written by a session, or saved by somebody in Flowise."
    )
    by: str | None = Field(default=None, description="Who wrote it, as in the audit log; None where it is not known.")
    iteration: int
    sha256: str
    created_at: datetime
    current: bool = False


class VersionList(BaseModel):
    """Versions, oldest first for a session and newest first for a chatflow."""

    versions: list[VersionView]


class VersionDiff(BaseModel):
    """Difference between two versions, as text and as data."""

    from_label: str
    to_label: str
    text: str
    change: dict[str, Any]


class RolledBack(BaseModel):
    """A rollback as read back from the server."""

    label: str = Field(description="The version that the flow holds now.")
    chatflow_id: str
    sha256: str
    updated_date: str
    already_there: bool = Field(description="The flow held this version already; nothing was written.")
    left_out: list[str] = Field(
        default_factory=list,
        description="Settings that the flow keeps, since the version is of a release that did not record them.",
    )
    created: TakenBack | None = Field(default=None, description="What was done with the flow that the session made.")
