"""The plan: what the person wants, part by part, and what they approve."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints
from typing_extensions import TypeAliasType

from flowise_dev_agent.contracts.base import Contract, JsonObject, Versioned
from flowise_dev_agent.patch import PatchOp

Operation = Literal["create", "update", "copy", "question"]
FlowKind = Literal["CHATFLOW", "AGENTFLOW"]


class Intent(Contract):
    """What the person wants. `ambiguity` runs from 0 (clear) to 10 (anyone's guess); 5 and more asks `questions`."""

    operation: Operation
    ambiguity: int = Field(ge=0, le=10)
    questions: list[str] = Field(default_factory=list, max_length=3)
    title: str = Field(min_length=1, max_length=120, description="four to six words for the session list")
    target_hint: str | None = Field(default=None, description="the existing flow that the person means, in their words")
    language: str = Field(default="en", description="ISO 639-1 code of the person's language")


class Part(Contract):
    """One thing that the person asked for, in their own words, and what the plan does about it."""

    id: str = Field(pattern=r"^p\d+$")
    quote: str = Field(min_length=1, description="Verbatim text of its source.")
    source: str = Field(default="requirement", pattern=r"^(requirement|(answer|feedback):\d+)$")
    state: Literal["covered", "assumed", "asked", "not_possible", "not_understood"] = "not_understood"
    nodes: list[str] = Field(default_factory=list, description="Ids of the nodes that cover it.")
    values: list[str] = Field(default_factory=list, description="Fields that cover it, as `node_id.param`.")
    reason: str = ""


class PlannedNode(Contract):
    """One node of the flow to be. `node_id` is what the ops will use, for example `chatOpenAI_0`."""

    node_id: str = Field(pattern=r"^[A-Za-z0-9_]{1,100}$")
    node_name: str
    purpose: str
    existing: bool = Field(default=False, description="already in the flow that is being changed")


class Approach(Contract):
    """One of several ways to do it, when they differ in a way that matters to the person."""

    label: str = Field(min_length=1, max_length=80)
    description: str


class PlannedValue(Contract):
    """A field that the plan sets. `param` is a name or a path, as in the op `SetParam`; never a secret."""

    node_id: str
    param: str
    value: JsonValue
    mode: Literal["set", "append"] = Field(default="set", description="append: the text is added to what is there")
    part: str | None = Field(default=None, description="The part that asks for it.")


class Expectation(Contract):
    """What a test wants to see in an answer and in its trace."""

    tools: list[str] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)
    branch: list[str] = Field(default_factory=list, description="Ids of the nodes that must run.")
    fields: list[str] = Field(default_factory=list)
    contains: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)
    language: str | None = None


class TestCase(Contract):
    """One conversation with the flow, of one to four turns."""

    __test__ = False  # not a pytest class

    id: str = Field(pattern=r"^t\d+$")
    turns: list[str] = Field(min_length=1, max_length=4)
    input: Literal["chat", "form", "webhook", "schedule"] = "chat"
    payload: JsonObject | None = None
    human: Literal["proceed", "reject"] | None = Field(default=None, description="The answer to a human-input node.")
    human_feedback: str = ""
    expect: Expectation = Expectation()


class Criterion(Contract):
    """One condition of success, and the tests that show it."""

    id: str = Field(pattern=r"^c\d+$")
    text: str
    part: str | None = None
    tests: list[str] = Field(default_factory=list, description="Ids of test cases.")
    not_tested: str | None = Field(default=None, description="Why no test shows it.")


class NodeCapability(Contract):
    """What may be done to one node. `all` is for added nodes only; `settings` are sampling and limits."""

    node_name: str
    action: Literal["add", "change", "remove", "replace"]
    params: Literal["all"] | list[str] = Field(default_factory=list, description="`all`, or names and `settings`.")


class CredentialBinding(Contract):
    """A node that gets a credential of a type."""

    node_id: str
    type: str


class ToolBinding(Contract):
    """A node that gets a tool."""

    node_id: str
    name: str


class Capability(Contract):
    """Everything that an approved plan may touch; made by code and shown with the plan."""

    nodes: dict[str, NodeCapability] = Field(default_factory=dict, description="By node id.")
    hosts: list[str] = Field(default_factory=list)
    credentials: list[CredentialBinding] = Field(default_factory=list)
    code: list[str] = Field(default_factory=list, description="Ids of nodes that run code.")
    tools: list[ToolBinding] = Field(default_factory=list)
    effects: list[Annotated[str, StringConstraints(pattern=r"^(document_store|credential|upsert:.+)$")]] = Field(
        default_factory=list
    )


class PlanProposal(Contract):
    """The approved agreement: drives the scope, the tests and the judgement. `declined` says why it cannot be done."""

    goal: str
    operation: Operation
    flow_kind: FlowKind = "CHATFLOW"
    flow_name: str = Field(min_length=1, max_length=120)
    nodes: list[PlannedNode] = Field(default_factory=list)
    removals: list[str] = Field(
        default_factory=list, description="ids of nodes of the existing flow that are removed or replaced"
    )
    kept: list[str] = Field(
        default_factory=list, description="ids of nodes of the existing flow that the person wants unchanged"
    )
    values: list[PlannedValue] = Field(
        default_factory=list,
        max_length=100,
        description="what the person named or will notice: model, temperature, prompt in full, addresses, limits",
    )
    steps: list[str] = Field(default_factory=list, description="what will be done, in order, in plain words")
    domain_targets: list[str] = Field(default_factory=lambda: ["flowise"])
    credential_requirements: list[str] = Field(default_factory=list, description="Flowise credential types needed")
    data_fields: list[str] = Field(default_factory=list)
    pii_fields: list[str] = Field(default_factory=list)
    success_criteria: list[str] = Field(default_factory=list)
    test_questions: list[str] = Field(default_factory=list, max_length=10)
    approaches: list[Approach] = Field(default_factory=list, max_length=4)
    placeholders: list[str] = Field(default_factory=list, description="text that the person promised and is not there")
    declined: str | None = Field(default=None, description="why this cannot be built, and what could be instead")
    answer: str | None = Field(default=None, description="for a question about a flow: the answer")


class PlanContract(PlanProposal, Versioned):
    """The plan that a person approves: a proposal, with what code adds to it."""

    parts: list[Part] = Field(default_factory=list, max_length=40)
    criteria: list[Criterion] = Field(default_factory=list, max_length=20)
    tests: list[TestCase] = Field(default_factory=list, max_length=10)
    capability: Capability | None = None

    def to_markdown(self) -> str:
        """The plan as a person reads it."""
        if self.declined:
            return f"# This cannot be built\n\n{self.declined}\n"
        if self.answer is not None:
            return f"{self.answer}\n"
        parts = [f"# {self.flow_name}", "", self.goal]
        parts += _section("Nodes", [f"**{n.node_name}** (`{n.node_id}`): {n.purpose}" for n in self.nodes])
        parts += _section("Removed or replaced", [f"`{node_id}`" for node_id in self.removals])
        parts += _section("Steps", self.steps)
        parts += _section("Approaches", [f"**{a.label}**: {a.description}" for a in self.approaches])
        parts += _section("Credentials", [f"`{name}`" for name in self.credential_requirements])
        parts += _section("Personal data", [f"`{name}`" for name in self.pii_fields])
        parts += _section("Placeholders to fill in", self.placeholders)
        parts += _section("Success criteria", self.success_criteria)
        parts += _section("Test questions", self.test_questions)
        return "\n".join(parts) + "\n"


class DesignConnection(Contract):
    """A connection by names, as in the ops `Connect` and `Disconnect`."""

    source: str
    output: str = ""
    target: str
    input: str = ""


class Design(PlanContract):
    """A plan with everything that its ops follow from. Texts are `values`."""

    connections: list[DesignConnection] = Field(default_factory=list)
    disconnections: list[DesignConnection] = Field(default_factory=list)
    questions: list[str] = Field(default_factory=list)
    base_sha256: str | None = Field(default=None, description="Of the flow that it was made for.")


class OpsAnswer(Contract):
    """The ops for an approved plan."""

    kind: Literal["ops"] = "ops"
    ops: list[PatchOp] = Field(default_factory=list)


class AmendAnswer(Contract):
    """The plan needs more than it says."""

    kind: Literal["amend"] = "amend"
    nodes: list[PlannedNode] = Field(default_factory=list)
    removals: list[str] = Field(default_factory=list)
    values: list[PlannedValue] = Field(default_factory=list)
    reason: str


class NothingToChange(Contract):
    """The flow already is as the plan wants it."""

    kind: Literal["nothing_to_change"] = "nothing_to_change"
    reason: str


#: What the phase `patch` answers.
PatchAnswer = TypeAliasType(
    "PatchAnswer", Annotated[OpsAnswer | AmendAnswer | NothingToChange, Field(discriminator="kind")]
)


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", *(f"- {item}" for item in items)] if items else []
