"""The values of a new node: what was asked for, what it needs besides, and stand-ins for what is missing."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from flowise_dev_agent.forms.offer import DeclinedError
from flowise_dev_agent.forms.providers import BY_CHAT, MODEL_PARAMS
from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.patch.model.placeholders import MARK, placeholder_file
from flowise_dev_agent.patch.model.visibility import is_visible

#: What a chain answers a message by, where the person says nothing of it.
PLAIN_TASK: Final = "Answer the following message."
#: What a new node of these types needs besides; a name of a tool is one word.
_NEEDED: Final[Mapping[str, Mapping[str, Any]]] = {
    "plainText": {"text": f"{MARK}: paste the text here] This stands in for a text that was not given yet."},
    "promptTemplate": {"template": f"{PLAIN_TASK}\n\n{{text}}"},
    "chatPromptTemplate": {"systemMessagePrompt": PLAIN_TASK, "humanMessagePrompt": "{text}"},
    "retrieverTool": {
        "name": "search_text",
        "description": "Searches the text. Use it for every question about the text.",
    },
    "chainTool": {"name": "run_chain", "description": PLAIN_TASK},
}
#: What an MCP server of the catalogue offers; the editor would ask the running server for it.
_MCP_ACTIONS: Final[Mapping[str, list[str]]] = {
    "sequentialThinkingMCP": ["sequentialthinking"],
    "braveSearchMCP": ["brave_web_search", "brave_local_search"],
    "postgreSQLMCP": ["query"],
    "slackMCP": ["slack_list_channels", "slack_post_message", "slack_get_channel_history"],
    "githubMCP": ["search_repositories", "get_file_contents", "list_issues", "create_issue"],
}
#: What a tool is not given without a person naming it.
_TAKES_AWAY: Final = re.compile(r"delete|clear|remove|trash", re.IGNORECASE)


def parameters(schema: NodeSchema, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new node that differ from what a fresh one has: those `asked` for, and what it needs besides."""
    names = {param.name for param in schema.params}
    values = {name: value for name, value in {**_needed(schema), **asked}.items() if name in names}
    return values | _filled(schema, values)


def without_braces(text: str) -> str:
    """The text with other brackets: braces are variables in Flowise's templates."""
    return text.replace("{", "(").replace("}", ")")


def check_filled(nodes: Iterable[tuple[NodeSchema, Mapping[str, Any]]]) -> None:
    """Raises DeclinedError when a node needs something that only the person knows and nothing can stand in for."""
    for schema, values in nodes:
        if lacking := _open_params(schema, values):
            fields = ", ".join(param.label for param in lacking)
            raise DeclinedError(f"{schema.label} needs {fields}, which a form cannot give. Leave it out of the form.")


def _needed(schema: NodeSchema) -> Mapping[str, Any]:
    if needed := _NEEDED.get(schema.name):
        return needed
    # A model for nodes that come without one and would not run.
    lacking = (one for one in schema.params if one.name in MODEL_PARAMS and not one.optional)
    provider = BY_CHAT.get(schema.name)
    empty = [one.name for one in lacking if one.default in (None, "")]
    return dict.fromkeys(empty, provider.model) if provider else {}


def _open_params(schema: NodeSchema, values: Mapping[str, Any]) -> list[InputParam]:
    """Required fields that are shown and that neither `values` nor a default fills."""
    given = {**{param.name: param.default for param in schema.params}, **values}
    needed = (one for one in schema.params if not one.optional and one.type not in ("boolean", "tabs"))
    empty = (one for one in needed if given.get(one.name) in (None, ""))
    return [one for one in empty if is_visible({"show": one.show, "hide": one.hide}, given)]


def _filled(schema: NodeSchema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the open fields of a new node; what only the person can know gets a stand-in that says so.

    What cannot be stood in for (a choice that only the running server knows, a number) stays open.
    """
    found: dict[str, Any] = {}
    # A value may bring further fields into view.
    while param := next(iter(_open_params(schema, {**values, **found})), None):
        if (value := _fill(schema, param)) is None:
            break
        found[param.name] = value
    return found


def _fill(schema: NodeSchema, param: InputParam) -> Any:
    marked = " ".join(f"{MARK}: {schema.label}: {param.label}]".split())
    if param.type == "file":
        raw = next(entry for entry in schema.input_definitions if entry["name"] == param.name)
        # The compiler makes a file of the text, where it can make one of the type.
        return marked if placeholder_file(str(raw.get("fileType") or ""), marked) else None
    if param.name == "mcpActions" and (actions := _MCP_ACTIONS.get(schema.name)):
        return actions
    if param.type == "options":
        # The first is what the editor offers first.
        return param.options[0] if param.options else None
    if param.type == "multiOptions":
        return [option for option in param.options if not _TAKES_AWAY.match(option)] or None
    if (param.type in ("string", "folder") or param.name == "selectedStore") and schema.category != "Prompts":
        return marked
    return None
