"""APIs that a person describes: each operation that the requirement asks for becomes a tool with typed inputs."""

import re
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.domains.tool_domain import ToolDomain
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.openapi import ApiDescription, ApiOperation, read_openapi
from flowise_dev_agent.knowledge.vocabulary import words
from flowise_dev_agent.reasoning.contracts import ReadyTool, ToolField

#: Of one API: an agent with more of them chooses badly.
MOST_TOOLS: Final = 10
#: What people say for an operation that changes something.
_SAID: Final = {
    "post": re.compile(r"create|open|add|submit|file|new|post|send|raise|report|erstell|anleg|crea|cré", re.IGNORECASE),
    "put": re.compile(r"update|change|edit|modif|replace|änder|cambia|modific", re.IGNORECASE),
    "delete": re.compile(r"delete|remove|cancel|close|lösch|borra|elimina|supprim", re.IGNORECASE),
}


class OpenApiCapability(ToolDomain):
    """Its knowledge are the descriptions that go with a requirement; it holds no state."""

    name = "openapi"

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        found: list[ReadyTool] = []
        for one in request.attachments:
            if one.kind == "openapi" and context.files and (content := await context.files.content(one.name)):
                api = _read(content[1])
                found += api_tools(self.name, api, chosen(api, request.requirement)) if api else []
        return found[:MOST_TOOLS]


def chosen(api: ApiDescription, text: str) -> list[ApiOperation]:
    """The operations of an API that a requirement asks for: those that its words tell apart, else all that only read.

    One that changes something needs a word for it: "look up tickets" does not delete any.
    """
    said = {*words(text)}
    about = {one.operation_id: {*words(f"{one.operation_id} {one.summary} {one.path}")} for one in api.tools}
    common = set.intersection(*about.values()) if about else set[str]()
    reading = [one for one in api.tools if one.method == "get"]
    writing = [one for one in api.tools if one.method != "get" and _SAID[one.method].search(text)]
    fitting = [one for one in reading if said & (about[one.operation_id] - common)] or reading
    best = sorted([*fitting, *writing], key=lambda one: -len(said & about[one.operation_id]))
    return best[:MOST_TOOLS]


def api_tools(domain: str, api: ApiDescription, operations: Sequence[ApiOperation]) -> list[ReadyTool]:
    """These operations as tools of an agent."""
    found: list[ReadyTool] = []
    for one in operations:
        node_name, values = api.node(one)
        found.append(
            ReadyTool(
                domain=domain,
                name=one.operation_id,
                title=f"{api.title}: {one.title}"[:200],
                about=one.summary or one.title,
                node_name=node_name,
                values=values,
                data_fields=tuple(param.name for param in one.params),
                takes=tuple(ToolField(param.name, param.type, param.required) for param in one.params),
            )
        )
    return found


def _read(content: bytes) -> ApiDescription | None:
    """The description as it was checked when it was stored."""
    try:
        return read_openapi(content.decode("utf-8-sig"))
    except (InvalidInputError, UnicodeDecodeError):
        return None
