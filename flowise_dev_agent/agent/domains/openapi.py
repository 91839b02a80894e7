"""APIs that a person describes: each operation that the requirement needs becomes a tool with typed inputs."""

import re
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.domains.tool_domain import ToolDomain
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.openapi import ApiDescription, ApiOperation, read_openapi
from flowise_dev_agent.knowledge.vocabulary import words
from flowise_dev_agent.planning.requests import ReadyTool, ToolField

#: Most operations of one API: an agent with more tools chooses badly.
MOST_TOOLS: Final = 10
#: Words that people use for operations that change data.
_SAID: Final = {
    "post": re.compile(r"create|open|add|submit|file|new|post|send|raise|report|erstell|anleg|crea|cré", re.IGNORECASE),
    "put": re.compile(r"update|change|edit|modif|replace|änder|cambia|modific", re.IGNORECASE),
    "delete": re.compile(r"delete|remove|cancel|close|lösch|borra|elimina|supprim", re.IGNORECASE),
}


class OpenApiCapability(ToolDomain):
    """Domain of described APIs. Its knowledge is the attached descriptions; it holds no state."""

    name = "openapi"
    about = "APIs by the descriptions that go with a requirement: their operations become tools of an agent."

    async def tools_for(self, context: AgentContext, request: DiscoverRequest) -> Sequence[ReadyTool]:
        found: list[ReadyTool] = []
        for one in request.attachments:
            if one.kind == "openapi" and context.files and (content := await context.files.content(one.name)):
                api = _read(content[1])
                found += api_tools(self.name, api, chosen(api, request.requirement)) if api else []
        return found[:MOST_TOOLS]


def chosen(api: ApiDescription, text: str) -> list[ApiOperation]:
    """Operations of an API that a requirement asks for: those that its words single out, else all that only read.

    An operation that changes data needs a word for it: "look up tickets" selects no delete operation.
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
    """Agent tools for the operations."""
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
    """Parse the stored description, which was checked when it was stored."""
    try:
        return read_openapi(content.decode("utf-8-sig"))
    except (InvalidInputError, UnicodeDecodeError):
        return None
