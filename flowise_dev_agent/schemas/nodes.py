"""Node types of a Flowise server as clients see them."""

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.patch import PatchOp
from flowise_dev_agent.schemas.base import Contract, JsonObject, JsonValue
from flowise_dev_agent.schemas.requests import RequestBody


class NodeTypeView(Contract):
    """A node type."""

    name: str
    label: str
    category: str
    kind: str = Field(description="Flows that it runs in: CHATFLOW, AGENTFLOW or MULTIAGENT.")
    version: float
    description: str
    credentials: list[str] = Field(description="Credential types, one of which it takes.")
    deprecated: bool


class NodeTypePage(Contract):
    """Node types, best first; without words by name. `next_cursor` gets the next page; None on the last one."""

    nodes: list[NodeTypeView]
    total: int
    next_cursor: str | None


class NodeInputView(Contract):
    """A param of a node type, or an input that another node is connected to."""

    name: str
    label: str
    description: str = ""
    type: str = Field(description="Of an input for a connection: the classes that it takes, separated by `|`.")
    required: bool = Field(description="False for a field that only some settings of others show.")
    default: JsonValue = None
    options: list[str] = Field(default_factory=list)
    lists_options: bool = Field(default=False, description="The server lists its options.")


class NodeExample(Contract):
    """Example of a node type from a marketplace flow."""

    template: str = Field(description="Name of the template.")
    type: str = Field(description="Chatflow or AgentflowV2.")
    ops: list[PatchOp] = Field(description="The ops that add the node, set it and connect it.")


class NodeTypeDetails(Contract):
    """A node type with its inputs. `card` is the text that a model reads."""

    node: NodeTypeView
    inputs: list[NodeInputView]
    outputs: list[str]
    card: str
    form: JsonObject = Field(
        description="JSON Schema of its fields, without connections and credential. Keys with `x-` say what a form "
        "needs beside it: `x-show`, `x-hide`, `x-options`, `x-lists-options`, `x-from-flow`, `x-config`, "
        "`x-variables`, `x-additional`"
    )
    examples: list[NodeExample] = Field(default_factory=list, description="With `examples=true`.")


class VariableView(Contract):
    """A variable of a Flowise server, without its value: flows read it as `$vars.name`."""

    name: str
    type: str = Field(description="`static`, or `runtime` for one of the server's environment.")


class VariableList(Contract):
    """The variables of a Flowise server."""

    instance: str
    variables: list[VariableView]


class OptionsRequest(RequestBody):
    """Request for the options of a param, by its name or path.

    `credential_id` is for options that need a credential; the default is the only one of its type.
    """

    param: str = Field(min_length=1, max_length=120)
    credential_id: str | None = Field(default=None, max_length=100)


class OptionView(Contract):
    """A value that a param may be set to."""

    name: str
    label: str


class NodeIcons(Contract):
    """Icons of node types."""

    icons: dict[str, str] = Field(description="`data:` address of an image by the node type's name; '' for none.")


class NodeOptions(Contract):
    """Options of a param. `source` is `node type` or `server`."""

    node: str
    param: str
    source: str
    options: list[OptionView]


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class TemplateHit(_View):
    """A flow or tool of the server's marketplace."""

    name: str
    type: str = Field(description="Chatflow, AgentflowV2 or Tool.")
    description: str
    usecases: list[str]
    nodes: list[str] = Field(description="The node types that it is made of.")


class CatalogueHits(_View):
    """Search results, best first."""

    instance: str
    flowise_version: str
    nodes: list[NodeTypeView]
    templates: list[TemplateHit]
