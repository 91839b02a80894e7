"""The parts of Flowise's requests and responses that this product uses (Flowise 3.1.4)."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal, Required, TypedDict

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from flowise_dev_agent.patch import NodeType
from flowise_dev_agent.schemas.base import JsonObject

_WIRE = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Chatflow(BaseModel):
    """A row of `/chatflows`. Columns that are not named here are kept as extra attributes under Flowise's names.

    `flow_data` is the stored text, byte for byte. `category` is free text, by convention tags separated by `;`.
    """

    model_config = _WIRE | ConfigDict(extra="allow")

    id: str
    name: str
    flow_data: str
    type: str | None = None
    category: str | None = None
    deployed: bool | None = None
    is_public: bool | None = None
    apikeyid: str | None = Field(default=None, alias="apikeyid")
    chatbot_config: str | None = None
    api_config: str | None = None
    analytic: str | None = None
    speech_to_text: str | None = None
    text_to_speech: str | None = None
    follow_up_prompts: str | None = None
    created_date: str = ""
    updated_date: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in `category`."""
        return tuple(tag for part in (self.category or "").split(";") if (tag := part.strip()))


class ChatflowPage(BaseModel):
    """One page of chatflows, last updated first; `total` counts all pages."""

    data: list[Chatflow]
    total: int


class ChatflowCreate(BaseModel):
    """A new chatflow. Flowise ignores an id given by the client; put a unique tag in `category` to find it again."""

    model_config = _WIRE | ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    flow_data: str
    type: str = "CHATFLOW"
    category: str | None = None
    deployed: bool = False
    is_public: bool = False
    apikeyid: str | None = Field(default=None, alias="apikeyid")
    chatbot_config: str | None = None
    api_config: str | None = None
    analytic: str | None = None
    speech_to_text: str | None = None
    text_to_speech: str | None = None
    follow_up_prompts: str | None = None


class ChatflowUpdate(BaseModel):
    """Columns to change; columns that are not set keep their value."""

    model_config = _WIRE | ConfigDict(extra="forbid")

    name: str = Field(default="", min_length=1)
    flow_data: str = ""
    type: str = ""
    category: str | None = None
    deployed: bool = False
    is_public: bool = False
    chatbot_config: str | None = None
    api_config: str | None = None
    analytic: str | None = None
    speech_to_text: str | None = None
    text_to_speech: str | None = None
    follow_up_prompts: str | None = None


class TemplateRow(TypedDict, total=False):
    """A marketplace template. Lists are lists or texts with commas; a tool has its definition beside these keys."""

    templateName: Required[str]
    type: Required[str]
    flowData: str
    description: str
    categories: list[str] | str
    usecases: list[str] | str
    framework: list[str] | str


class MadeRow(BaseModel):
    """Something that was created."""

    id: str


class ToolRow(TypedDict, total=False):
    """A custom tool."""

    id: str
    name: str
    description: str
    #: JSON text: rows with `property`, `description`, `type` and `required`.
    schema: str
    #: JavaScript: the body of a function that reads each input as `$property`.
    func: str
    createdDate: str


@dataclass(frozen=True)
class NodeList:
    """The raw node types of a server and the ETag of this answer; `unchanged` lists come without their nodes."""

    nodes: tuple[NodeType, ...]
    etag: str | None
    unchanged: bool = False


class Credential(BaseModel):
    """A credential's public side; Flowise's list carries no secrets, and anything else is dropped here."""

    model_config = _WIRE | ConfigDict(extra="ignore")

    id: str
    name: str
    credential_name: str
    created_date: str | None = None
    updated_date: str | None = None


class CredentialChoice(BaseModel):
    """A value that a field may have."""

    name: str
    label: str = ""


class CredentialField(BaseModel):
    """A field of a credential type. `type` is `password`, `string`, `url`, `options`, `number` or `boolean`."""

    name: str
    label: str = ""
    type: str = "string"
    optional: bool = False
    default: str | float | bool | None = None
    rows: int = 1
    options: list[CredentialChoice] = Field(default_factory=list[CredentialChoice])

    @property
    def required(self) -> bool:
        return not self.optional and self.default is None


class CredentialType(BaseModel):
    """A credential type of the server."""

    name: str
    label: str = ""
    inputs: list[CredentialField] = Field(default_factory=list[CredentialField])


class Prediction(BaseModel):
    """The answer of a flow. A 200 does not prove success: look at the text and at `used_tools[].error`."""

    model_config = _WIRE | ConfigDict(extra="ignore")

    text: str | None = None
    json_: Any = Field(default=None, alias="json")
    chat_id: str | None = None
    session_id: str | None = None
    used_tools: list[JsonObject] = Field(default_factory=list)
    source_documents: list[JsonObject] = Field(default_factory=list)
    #: The steps of an agentflow that ran, in order; after a person's answer the earlier ones are among them.
    agent_flow_executed_data: list[JsonObject] = Field(default_factory=list)
    #: The steps of a sequence and the members of a team that ran, in order.
    agent_reasoning: list[JsonObject] = Field(default_factory=list)
    #: What the flow waits for a person to decide; its `data.nodeId` is the step that asks.
    action: JsonObject | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, body: Any) -> Any:
        """Null lists are empty, and what a function returned is text, be it a number."""
        if not isinstance(body, dict):
            return body
        lists = "usedTools", "sourceDocuments", "agentFlowExecutedData", "agentReasoning"
        text, action = body.get("text"), body.get("action")
        return {
            **body,
            "text": text if text is None or isinstance(text, str) else json.dumps(text, ensure_ascii=False),
            "action": action if isinstance(action, dict) else None,
            **{name: [item for item in body.get(name) or [] if isinstance(item, dict)] for name in lists},
        }

    @property
    def answer(self) -> str:
        """The answer as text; structured output as JSON."""
        if self.text is not None:
            return self.text
        return "" if self.json_ is None else json.dumps(self.json_, ensure_ascii=False)

    @property
    def waits_at(self) -> str | None:
        """Id of the node that waits for a person; None when the flow ran to its end."""
        data = self.action.get("data") if self.action else None
        node = data.get("nodeId") if isinstance(data, dict) else None
        return str(node) if node else None


@dataclass(frozen=True)
class ImageUpload:
    """An image that is sent with a question."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


class HumanAnswer(BaseModel):
    """A person's decision at a step that waits for one."""

    model_config = _WIRE

    type: Literal["proceed", "reject"]
    start_node_id: str
    feedback: str = ""
