"""A session as a chat: one message in, a stream of four kinds of frames out."""

from typing import Annotated, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator

from flowise_dev_agent.schemas.base import Contract, Outcome
from flowise_dev_agent.schemas.requests import Line, LongText, RequestBody

ChatStage: TypeAlias = Literal["clarification", "workflow_generation", "conversion_generation", "completed", "failed"]


class ProcessConversation(RequestBody):
    """The body of `POST /process-conversation`."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"source_workflow_id": {"type": "null"}}},
                {"required": ["origin"], "properties": {"origin": {"enum": ["edit", "copy"]}}},
            ]
        }
    )

    message: LongText = Field(
        description="What to build or change; in a session that asks, the answer in words. Only a plain yes approves."
    )
    session_id: UUID | None = Field(
        default=None, description="Id of the session; an unknown or missing id starts a new one."
    )
    origin: Literal["create", "edit", "copy"] = Field(default="create", description="Of a new session.")
    source_workflow_id: Line | None = Field(
        default=None, description="Id or exact name of the chatflow to edit or copy; asked for when left out."
    )

    @model_validator(mode="after")
    def _names_a_source_for_what_has_one(self) -> Self:
        if self.origin == "create" and self.source_workflow_id is not None:
            raise ValueError("`source_workflow_id` needs the `origin` edit or copy")
        return self


class ChatPair(Contract):
    """A message of the person and the reply of the session."""

    user: str
    agent: str


class StageState(Contract):
    """Position of the session."""

    phase: str | None = Field(description="Of the session's steps.")
    iteration: int = 0
    outcome: Outcome | None = Field(default=None, description="Outcome of an ended session.")
    chatflow_id: str | None = None
    history: list[ChatPair] = Field(
        default_factory=list, description="On the first frame of a turn: the last ten pairs, each text shortened."
    )


class StatusChange(Contract):
    """A stage and the one before it."""

    previous_stage: ChatStage | None
    current_stage: ChatStage
    stage_state: StageState
    node_name: str | None = Field(description="The step that begins.")


class ChatError(Contract):
    """Error that ended the handling of a message."""

    error_code: str
    message: str
    details: str = Field(default="", description="What to do.")
    is_recoverable: bool = Field(description="The session goes on with another message.")


class _ChatFrame(Contract):
    session_id: str
    is_final: bool = Field(default=False, description="Nothing follows before the next message.")


class StatusFrame(_ChatFrame):
    """The session has entered a stage."""

    response_type: Literal["STATUS_CHANGE"] = "STATUS_CHANGE"
    status_change: StatusChange


class MessageFrame(_ChatFrame):
    """The session says or asks something."""

    response_type: Literal["MESSAGE"] = "MESSAGE"
    message: str


class WorkflowFrame(_ChatFrame):
    """The finished chatflow."""

    response_type: Literal["WORKFLOW"] = "WORKFLOW"
    workflow: str = Field(description="JSON: `{id, name, type, flowData}`, secrets masked.")


class ErrorFrame(_ChatFrame):
    """The message could not be handled further."""

    response_type: Literal["ERROR"] = "ERROR"
    error: ChatError


ChatFrame: TypeAlias = Annotated[
    StatusFrame | MessageFrame | WorkflowFrame | ErrorFrame, Field(discriminator="response_type")
]
