"""What several tools take."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

SessionId = Annotated[UUID, Field(description="The session's id.")]
ChatflowId = Annotated[UUID, Field(description="The chatflow's id (see list_chatflows).")]
Instance = Annotated[str | None, Field(max_length=200, description="Flowise instance; the default one when left out.")]
WaitSecs = Annotated[
    float,
    Field(
        ge=0,
        le=300,
        description="Seconds to wait for the next question or the end; keep it below your client's own time limit.",
    ),
]
