"""Bodies, stored requests and results of writes without a plan: imports, applied changes, promotions."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator

from flowise_dev_agent.patch import Finding, PatchOp
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.change import Difference
from flowise_dev_agent.schemas.etags import ETAG
from flowise_dev_agent.schemas.reach import ReachChange
from flowise_dev_agent.schemas.requests import MAX_OPS, BaseHash, Line, OneOf, RequestBody, Storable, Truth

MAX_FLOW_CHARS: Final = 8_000_000

FlowType = Literal["CHATFLOW", "AGENTFLOW", "MULTIAGENT", "ASSISTANT"]
#: A column of a thing beside flows. Flowise writes JSON texts of a few kilobytes.
SettingText = Annotated[Storable, Field(max_length=1_000_000)]
FlowText = Annotated[Storable, Field(min_length=1, max_length=MAX_FLOW_CHARS)]
WriteOperation = Literal["import", "apply", "promote", "restore"]
WriteStatus = Literal["checked", "in_progress", "completed", "cancelled"]


class FlowSettings(Contract):
    """Flowise's columns beside a flow, as texts the way it stores them, of any length: some hold pictures."""

    category: Storable | None = Field(default=None, description="Tags, separated by `;`.")
    chatbot_config: Storable | None = Field(default=None, description="Starter prompts, uploads, look of the chat.")
    api_config: Storable | None = Field(default=None, description="What callers may override, rate limits.")
    analytic: Storable | None = None
    speech_to_text: Storable | None = None
    text_to_speech: Storable | None = None
    follow_up_prompts: Storable | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Those that have a value."""
        return self.model_dump(exclude_none=True)


#: Kind of thing -> columns of Flowise that an export has of it and that may be given.
THING_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "custom tool": frozenset({"description", "color", "iconSrc", "schema", "func"}),
    "variable": frozenset({"value", "type"}),
}


class MissingThing(Contract):
    """A custom tool or a variable of an export."""

    kind: Literal["custom tool", "variable"]
    id: Line | None = Field(default=None, description="Of a custom tool: the id by which flows name it.")
    name: Line
    columns: dict[Line, SettingText] = Field(
        default_factory=dict[str, str],
        max_length=10,
        description="Flowise's columns as texts: `description`, `schema`, `func`, `color` and `iconSrc` of a custom "
        "tool, `value` and `type` of a variable.",
    )

    @model_validator(mode="after")
    def _has_its_columns(self) -> Self:
        if unknown := self.columns.keys() - THING_COLUMNS[self.kind]:
            raise ValueError(f"a {self.kind} has no column {', '.join(sorted(unknown))}")
        return self


class ImportFlow(OneOf):
    """The body of `POST /flows/import`. The flow is new; `ops` build it from nothing."""

    choices = (("flow_data",), ("ops",))

    flow_data: FlowText | None = Field(default=None, description="`flowData` as text, as Flowise stores it; or `ops`.")
    ops: list[PatchOp] | None = Field(default=None, min_length=1, max_length=MAX_OPS)
    dry_run: Truth = Field(default=False, description="Check only: findings and difference, nothing is written.")
    name: Line = Field(default="Imported flow", description="Title of the new flow.")
    type: FlowType | None = Field(default=None, description="Flowise's type; found from the nodes when left out.")
    settings: FlowSettings = Field(default_factory=FlowSettings)
    credentials: dict[Line, UUID] = Field(
        default_factory=dict[str, UUID],
        max_length=200,
        description="Credential on this server for the id in the text, a credential type or a node id. Without one, "
        "a node that has none of this server gets the only one of its type.",
    )
    named: dict[Line, Line] = Field(
        default_factory=dict[str, str],
        max_length=2_000,
        description="Names of flows, document stores, custom tools and assistants by their id in the text: what has "
        "the same name on this server takes its place.",
    )
    missing: list[MissingThing] = Field(
        default_factory=list[MissingThing],
        max_length=1_000,
        description="Custom tools and variables. Those that the flow names and this server does not have are made "
        "before the flow is written.",
    )


class ReadExport(RequestBody):
    """The body of `POST /flows/import/read`."""

    text: FlowText = Field(description="A canvas, a row of Flowise's API, or a workspace's ExportData.json.")
    name: Line = Field(default="Imported flow", description="Title of a flow that has none, such as the file's name.")


class ExportedFlowView(Contract):
    """A flow of a file."""

    request: ImportFlow = Field(description="The body of `POST /flows/import`.")
    left_out: list[str] = Field(description="Columns that it has and that are not imported.")


class ReadFlows(Contract):
    """The flows of a file, called flows before those that call them."""

    flows: list[ExportedFlowView]
    others: dict[str, int] = Field(description="Number of things that are not imported, by their list in the file.")


class ApplyToFlow(OneOf):
    """The body of `POST /flows/{id}/apply`. `ops` change the flow, `flow_data` replaces it, `reach` changes how people
    reach it."""

    choices = (("flow_data",), ("ops",), ("reach",))

    flow_data: FlowText | None = Field(default=None, description="`flowData` as text, as Flowise stores it.")
    ops: list[PatchOp] | None = Field(default=None, min_length=1, max_length=MAX_OPS)
    reach: ReachChange | None = Field(default=None, description="See `GET /flows/{id}/reach`.")
    dry_run: Truth = Field(default=False, description="Check only: findings and difference, nothing is written.")
    base_sha256: BaseHash | None = Field(
        default=None,
        description="Refuse (409) when the flow is not this one any more: `sha256` of its export or of a version.",
    )


class RestoreVersion(RequestBody):
    """The body of `POST /flows/{id}/versions/{version}/restore`."""

    dry_run: Truth = Field(default=False, description="Check only: findings and difference, nothing is written.")


class PromoteFlow(RequestBody):
    """The body of `POST /flows/{id}/promote`."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"properties": {name: {"type": "null"}}} for name in ("name", "target_chatflow_id")]
        }
    )

    source: Line | None = Field(default=None, description="Instance of the flow; the default one.")
    target: Line = Field(description="Instance that gets the flow.")
    name: Line | None = Field(default=None, description="Title of a new flow there; the same by default.")
    target_chatflow_id: UUID | None = Field(
        default=None, description="Flow there to replace; a new one is created when left out."
    )
    dry_run: Truth = Field(default=False, description="Check only: findings and difference, nothing is written.")

    @model_validator(mode="after")
    def _names_a_new_flow(self) -> Self:
        if self.name is not None and self.target_chatflow_id is not None:
            raise ValueError("`name` is for a new flow; a flow that is replaced keeps its own")
        return self


class MappedCredential(Contract):
    """A credential and its replacement on the other instance."""

    type: str
    name: str = Field(description="On the other instance; empty for one of a text, which holds no names.")
    target_id: str
    target_name: str
    by: str = Field(
        description="`name` (the same name and type), `type` (the only one of its type), `node` (the replaced flow has "
        "it there) or `request` (as it says)."
    )
    nodes: list[str] = Field(default_factory=list, description="Titles of the nodes of an import that got it.")


class MappedReference(Contract):
    """Something that an imported flow refers to, and what has its name on this server."""

    kind: str
    name: str
    target_id: str = Field(description="Empty while it is not made yet; the name of a variable.")
    created: bool = Field(default=False, description="Made with the flow.")


class BaseFlow(Contract):
    """The flow that is replaced, in the state in which it was read."""

    chatflow_id: str
    sha256: str
    updated_date: str


class FlowWrite(Contract):
    """The request of a write's session: where to write the text with the hash `sha256`, which passed the check. Without
    `base` it becomes a new flow called `name`."""

    operation: WriteOperation
    name: str
    type: str
    sha256: str
    base: BaseFlow | None
    source: str | None = Field(default=None, description="Id of the flow that it is a copy of.")
    ops: list[PatchOp] | None = None
    credentials: list[MappedCredential] = Field(default_factory=list)
    references: list[MappedReference] = Field(default_factory=list)
    settings: FlowSettings = Field(default_factory=FlowSettings, description="Of a new flow.")
    columns: dict[str, str | bool] = Field(
        default_factory=dict[str, str | bool], description="Of a changed flow, beside its text."
    )
    kept: JsonObject | None = Field(default=None, description="Of a restore that the release before took: uploads.")
    left_out: list[str] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list, description="Warnings.")


class FlowWriteResult(Contract):
    """A write as read back from Flowise, one in progress, or for a dry run what would be written."""

    status: WriteStatus = Field(description="`checked` is a dry run. A write that fails is answered with a problem.")
    session_id: UUID | None = Field(
        description="The write among the sessions: its versions, change and rollback. None for a dry run."
    )
    valid: bool = Field(default=True, description="False for a dry run whose findings forbid the write.")
    instance: str
    chatflow_id: str | None = Field(description="None for a new flow that is not there yet.")
    name: str
    type: str
    sha256: str = Field(description="Of the text of `flowData`.")
    created: bool = Field(
        description="A new flow, with an id of its own. False when it replaces what a flow holds, which is kept as a "
        "version."
    )
    credentials: list[MappedCredential]
    references: list[MappedReference] = Field(default_factory=list)
    settings: FlowSettings = Field(default_factory=FlowSettings, description="Of a new flow, as it is written.")
    left_out: list[str] = Field(
        default_factory=list,
        description="Columns beside the flow that are not written. A promotion over a flow names those in which it "
        "differs from its source; a restored version of a release that recorded no more than text, name and uploads "
        "those with a value, which stay, or all if the flow is gone.",
    )
    findings: list[Finding]
    flow_data: str | None = Field(
        default=None, description="Of a dry run of an import or a promotion: what would be written, as text."
    )
    difference: Difference | None = Field(
        default=None, description="Of a dry run; for a write see `GET /sessions/{session_id}/change`."
    )


class FlowDocument(Contract):
    """A complete flow, to be kept in a file."""

    id: str
    name: str
    type: str
    flow_data: str = Field(description="The text, byte for byte.")
    sha256: str
    settings: FlowSettings = Field(default_factory=FlowSettings)
    updated: str
    etag: str = Field(default="", description=ETAG)


class FlowOps(Contract):
    """The ops that build a flow from nothing, in today's version of each node."""

    ops: list[PatchOp]
