"""Cases of right and broken flows: how they are written down, and the model that answers inside the flows.

A case is a requirement with the criteria and tests that a plan would have, a right flow, and the same flow with a
mistake in it. The flow's model is scripted by what it sees: the first rule answers whose words are all in the prompt.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin.behaviour import default_reply
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, PatchOp, SetOutput, SetParent
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.plan import Criterion, Plan, PlannedNode, TestCase, numbered

MODEL: Final = {"modelName": "gpt-4o-mini", "streaming": False}
#: Steps with a model of their own, by the field that names it.
_MODEL_FIELDS: Final = {
    "llmAgentflow": "llmModel",
    "agentAgentflow": "agentModel",
    "conditionAgentAgentflow": "conditionAgentModel",
    "humanInputAgentflow": "humanInputModel",
}
#: `source[/branch or output] -> target[.input]`
_EDGE: Final = re.compile(r"^(\w+)(?:/(\w+))? -> (\w+)(?:\.(\w+))?$")
_SCENARIOS: Final = '"scenarios":'
#: In texts of a flow: where the pages of the case are served, and the id of a custom tool.
WORLD: Final = "WORLD"
TOOL: Final = "TOOL:"


class Rule(Contract):
    """Rule for the flow's model with a prompt. One of `say`, `fields`, `call`, `scenario`."""

    sees: list[str] = Field(default_factory=list, description="Texts that are all in the prompt.")
    lacks: list[str] = Field(default_factory=list, description="Texts of which none is in the prompt.")
    result: str | None = Field(default=None, description="A text in the result of a tool that has just been given.")
    asked: str = Field(default="", description="A text in the last message of a user.")
    offered: str = Field(default="", description="A tool that the model has.")
    say: str | list[str] | None = Field(default=None, description="The answer; of a list one after the other.")
    fields: JsonObject | None = Field(default=None, description="The answer where fields are asked for.")
    call: dict[str, JsonObject] | None = Field(default=None, description="Tools that it calls, with arguments.")
    scenario: str | None = Field(default=None, description="The branch that it takes where it sorts.")

    def takes(self, request: RecordedRequest) -> bool:
        """True if this rule answers the request."""
        prompt, last = request.prompt, request.messages[-1]
        wants_fields = bool(request.forced_tool) or request.json_schema is not None
        sorts = _SCENARIOS in request.last_user
        fits = sorts == (self.scenario is not None) and (sorts or wants_fields == (self.fields is not None))
        names = {tool.name for tool in request.tools}
        return (
            fits
            and all(text in prompt for text in self.sees)
            and not any(text in prompt for text in self.lacks)
            and (last.role == "tool" and self.result in last.text if self.result else last.role != "tool")
            and self.asked in request.last_user
            and (not self.offered or self.offered in names)
            and names.issuperset(self.call or ())
        )

    def reply(self, request: RecordedRequest) -> Reply:
        """The answer."""
        if self.scenario is not None:
            return Reply(json={"output": self.scenario})
        if self.fields is not None and request.forced_tool:
            return Reply(tool_calls=(StandInToolCall(_forced(request), self.fields),))
        if self.fields is not None:
            return Reply(json=self.fields)
        if self.call is not None:
            return Reply(tool_calls=tuple(StandInToolCall(name, given) for name, given in self.call.items()))
        if isinstance(self.say, list):
            self.say.append(self.say.pop(0))
            return Reply(self.say[-1])
        return Reply(self.say or "")


def _forced(request: RecordedRequest) -> str:
    return request.tools[0].name if request.forced_tool == "*" else request.forced_tool


class CustomTool(Contract):
    """A tool that the server has; `TOOL:name` in a field of a flow is its id."""

    name: str
    description: str
    arguments: dict[str, str] = Field(description="Name -> what it is; required texts.")
    code: str

    def row(self) -> JsonObject:
        """As Flowise wants it."""
        schema: list[JsonObject] = [
            {"id": number, "property": name, "type": "string", "description": text, "required": True}
            for number, (name, text) in enumerate(self.arguments.items())
        ]
        return {
            "name": self.name,
            "description": self.description,
            "color": "#000000",
            "iconSrc": "",
            "schema": json.dumps(schema),
            "func": self.code,
        }


class FlowSpec(Contract):
    """A flow: nodes by id (`name_number`) with their fields, and connections as text.

    `label` and `output` among the fields are the node's own. Steps without a model have gpt-4o-mini.
    """

    nodes: dict[str, JsonObject] = Field(default_factory=dict)
    edges: list[str] = Field(default_factory=list)
    inside: dict[str, list[str]] = Field(default_factory=dict, description="Iteration -> steps in it.")

    def ops(self, world: str, tools: Mapping[str, str]) -> list[PatchOp]:
        """The flow as ops on an empty one; `world` is the address of the case's pages, `tools` name -> id."""
        ops: list[PatchOp] = []
        for node_id, written in self.nodes.items():
            name = node_id.rpartition("_")[0]
            text = json.dumps(written).replace(WORLD, world)
            for tool, identity in tools.items():
                text = text.replace(f"{TOOL}{tool}", identity)
            params: dict[str, Any] = json.loads(text)
            label, output = params.pop("label", None), params.pop("output", None)
            field = _MODEL_FIELDS.get(name)
            if field and (name != "humanInputAgentflow" or params.get("humanInputDescriptionType") == "dynamic"):
                params = {field: "chatOpenAI", f"{field}Config": MODEL, **params}
                ops.append(AddNode(node_name=name, node_id=node_id, label=label, params=params))
                if params[field] == "chatOpenAI":
                    ops.append(_bound(node_id, f"{field}Config"))
            elif name in ("chatOpenAI", "openAIEmbeddings"):
                params = {**(MODEL if name == "chatOpenAI" else {}), **params}
                ops += [AddNode(node_name=name, node_id=node_id, label=label, params=params), _bound(node_id, "")]
            else:
                ops.append(AddNode(node_name=name, node_id=node_id, label=label, params=params))
            if output is not None:
                ops.append(SetOutput(node_id=node_id, output=output))
        ops += [
            SetParent(node_id=step, parent_id=iteration) for iteration, steps in self.inside.items() for step in steps
        ]
        return [*ops, *(_connection(edge) for edge in self.edges)]


def _bound(node_id: str, path: str) -> BindCredential:
    return BindCredential(node_id=node_id, credential_type="openAIApi", path=path)


def _connection(edge: str) -> Connect:
    found = _EDGE.match(edge)
    if found is None:
        raise ValueError(f"{edge!r} is not a connection; write `source/branch -> target.input`.")
    source, anchor, target, into = found.groups()
    return Connect(source_node_id=source, source_anchor=anchor, target_node_id=target, target_anchor=into or "")


class Mistake(Contract):
    """Differences of the broken flow; fields of nodes are merged, null removes a node."""

    what: str = Field(description="In words, for the report.")
    nodes: dict[str, JsonObject | None] = Field(default_factory=dict)
    cut: list[str] = Field(default_factory=list, description="Connections that are not there.")
    more: list[str] = Field(default_factory=list, description="Connections that are there instead.")
    inside: dict[str, list[str]] | None = None
    tools: list[CustomTool] | None = Field(default=None, description="In place of those of the case.")
    model: list[Rule] = Field(default_factory=list, description="Rules before those of the case.")

    def applied_to(self, right: FlowSpec) -> FlowSpec:
        """The broken flow."""
        nodes = dict(right.nodes)
        for node_id, fields in self.nodes.items():
            if fields is None:
                del nodes[node_id]
            else:
                nodes[node_id] = {**nodes.get(node_id, {}), **fields}
        unknown = set(self.cut) - set(right.edges)
        if unknown:
            raise ValueError(f"The right flow has no {sorted(unknown)}.")
        gone = {node_id for node_id, fields in self.nodes.items() if fields is None}
        kept = [edge for edge in right.edges if edge not in self.cut and not gone & set(re.split(r" -> |/|\.", edge))]
        inside = right.inside if self.inside is None else self.inside
        return FlowSpec(nodes=nodes, edges=[*kept, *self.more], inside=inside)


class Case(Contract):
    """A requirement, its plan, a right flow and a broken one."""

    id: str
    author: str = Field(description="`outside`: the mistake is by somebody who had not seen the tests.")
    requirement: str
    criteria: Annotated[list[Criterion], numbered("c")]
    tests: Annotated[list[TestCase], numbered("t")]
    world: dict[str, Any] = Field(default_factory=dict, description="Path -> JSON or text that is served there.")
    tools: list[CustomTool] = Field(default_factory=list)
    model: list[Rule] = Field(default_factory=list)
    right: FlowSpec
    broken: Mistake

    @property
    def is_agentflow(self) -> bool:
        """Of steps."""
        return any(node_id.startswith("startAgentflow") for node_id in self.right.nodes)

    def flow(self, side: str) -> FlowSpec:
        """`right` or `broken`."""
        return self.right if side == "right" else self.broken.applied_to(self.right)

    def tools_of(self, side: str) -> list[CustomTool]:
        """The custom tools that the server has for that flow."""
        return self.tools if side == "right" or self.broken.tools is None else self.broken.tools

    def rules(self, side: str) -> list[Rule]:
        """The model inside that flow."""
        return self.model if side == "right" else [*self.broken.model, *self.model]

    def plan(self) -> Plan:
        """Plan that the person approved: the nodes of the right flow."""
        nodes = [
            PlannedNode(
                node_id=node_id,
                node_name=node_id.rpartition("_")[0],
                purpose=str(fields.get("label") or node_id.rpartition("_")[0]),
            )
            for node_id, fields in self.right.nodes.items()
        ]
        plan = Plan(
            operation="create",
            goal=self.requirement,
            flow_name=self.id,
            flow_kind="AGENTFLOW" if self.is_agentflow else "CHATFLOW",
            nodes=nodes,
            criteria=self.criteria,
            tests=self.tests,
        )
        return plan.linked()


class ScriptedModel:
    """Answers by rules; what no rule takes gets the stand-in's default and is kept in `unscripted`."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self.unscripted: list[str] = []

    def __call__(self, request: RecordedRequest) -> Reply:
        rule = next((rule for rule in self._rules if rule.takes(request)), None)
        if rule is not None:
            return rule.reply(request)
        self.unscripted.append(" | ".join(f"{turn.role}: {turn.text[-200:]}" for turn in request.messages[-2:]))
        return default_reply(request)


class World(BackgroundServer):
    """The pages that the flows of a case ask for; everything else is 404."""

    def __init__(self) -> None:
        super().__init__("world of a case")
        self.pages: Mapping[str, Any] = {}
        self.called: list[str] = []

    def app(self) -> Starlette:
        """All paths in one handler."""
        return Starlette(routes=[Route("/{path:path}", self._page, methods=["GET", "POST", "PUT", "DELETE"])])

    async def _page(self, request: Request) -> Response:
        self.called.append(f"{request.method} {request.url.path}")
        page = self.pages.get(request.url.path)
        if page is None:
            return JSONResponse({"error": "not found"}, 404)
        return PlainTextResponse(page) if isinstance(page, str) else JSONResponse(page)
