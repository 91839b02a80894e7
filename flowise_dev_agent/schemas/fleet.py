"""The fleet: flows with their states, for people and for spreadsheets."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract

FleetState = Literal[
    "healthy",
    "changed_outside",
    "failing",
    "broken",
    "ending_model",
    "outdated_nodes",
    "missing_credential",
    "never_tested",
    "not_checked",
]


class FleetFlow(Contract):
    """A flow of the fleet."""

    id: str
    name: str
    type: str
    url: str | None = Field(description="URL in the Flowise editor.")
    states: list[FleetState] = Field(
        description="`changed_outside`: saved in Flowise since the last write of a session. `failing`: its last test "
        "failed. `broken`: the check finds errors. `ending_model`: a model has ended or ends within 180 days. "
        "`outdated_nodes`: the server has another version of a node. `healthy`: none of these."
    )
    codes: list[str] = Field(description="Codes of the findings of the check.")
    deployed: bool
    nodes: int
    updated: str
    changed_by: str | None = Field(description="Person who changed it last through this service; null: in Flowise.")
    owner: str | None = Field(description="Person whose session wrote it last; null: no session has.")
    tested_at: datetime | None = Field(description="Its last test, of a session or without one.")
    checked_at: datetime | None


class GoneFlowView(Contract):
    """A flow that was deleted in Flowise; its versions can be restored."""

    id: str
    name: str
    type: str
    noticed_at: datetime


class FleetPage(Contract):
    """Flows of an instance with their states, changed last first."""

    instance: str
    flows: list[FleetFlow]
    next_cursor: str | None = Field(default=None, description="Gets the next page; null on the last one.")
    deleted: list[GoneFlowView] = Field(description="Deleted in Flowise within 90 days, the latest 100.")
