"""Field values of new nodes: requested values, required ones, and placeholders for missing input."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from flowise_dev_agent.forms.offer import DeclinedError
from flowise_dev_agent.forms.providers import BY_CHAT
from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.patch.model.model_uses import MODEL_FIELDS
from flowise_dev_agent.patch.model.placeholders import MARK, placeholder_file
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.texts import text

#: Prompt of a chain if the person gives none.
PLAIN_TASK: Final = "Answer the following message."
#: Required values of new nodes of these types; the name of a tool is one word.
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
#: Actions of the catalogue's MCP servers; the editor would ask the running server for them.
_MCP_ACTIONS: Final[Mapping[str, list[str]]] = {
    "sequentialThinkingMCP": ["sequentialthinking"],
    "braveSearchMCP": ["brave_web_search", "brave_local_search"],
    "postgreSQLMCP": ["query"],
    "slackMCP": ["slack_list_channels", "slack_post_message", "slack_get_channel_history"],
    "githubMCP": ["search_repositories", "get_file_contents", "list_issues", "create_issue"],
}
#: Actions that no tool gets unless a person names them.
_TAKES_AWAY: Final = re.compile(r"delete|clear|remove|trash", re.IGNORECASE)


def parameters(schema: NodeSchema, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a new node that differ from the defaults: the requested ones (`asked`) and further required ones."""
    names = {param.name for param in schema.params}
    values = {name: value for name, value in {**_needed(schema), **asked}.items() if name in names}
    return values | _fill_open_params(schema, values)


def without_braces(text: str) -> str:
    """Replace braces by parentheses: braces are variables in Flowise's templates."""
    return text.replace("{", "(").replace("}", ")")


def check_filled(nodes: Iterable[tuple[NodeSchema, Mapping[str, Any]]]) -> None:
    """Raise DeclinedError if a node needs a value that only the person knows and that has no placeholder."""
    for schema, values in nodes:
        if lacking := _open_params(schema, values):
            fields = [param.label for param in lacking]
            raise DeclinedError(text("declined.needs_fields", node=schema.label, fields=fields))


def _needed(schema: NodeSchema) -> Mapping[str, Any]:
    if needed := _NEEDED.get(schema.name):
        return needed
    # A model for node types that have none by default and would not run.
    lacking = (one for one in schema.params if one.name in MODEL_FIELDS and not one.optional)
    provider = BY_CHAT.get(schema.name)
    empty = [one.name for one in lacking if one.default in (None, "")]
    return dict.fromkeys(empty, provider.model) if provider else {}


def _open_params(schema: NodeSchema, values: Mapping[str, Any]) -> list[InputParam]:
    """Visible required fields without a value or a default."""
    given = {**{param.name: param.default for param in schema.params}, **values}
    visible = (one for one in schema.params if not one.hidden)
    needed = (one for one in visible if not one.optional and one.type not in ("boolean", "tabs"))
    empty = (one for one in needed if given.get(one.name) in (None, ""))
    return [one for one in empty if is_visible({"show": one.show, "hide": one.hide}, given)]


def _fill_open_params(schema: NodeSchema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the open fields of a new node; unknown input gets a visible placeholder.

    Fields that cannot have one (a choice that only the running server knows, a number) stay open.
    """
    found: dict[str, Any] = {}
    # A value may make further fields visible.
    while param := next(iter(_open_params(schema, {**values, **found})), None):
        if (value := _fill(schema, param)) is None:
            break
        found[param.name] = value
    return found


def _fill(schema: NodeSchema, param: InputParam) -> Any:
    marked = " ".join(f"{MARK}: {schema.label}: {param.label}]".split())
    if param.type == "file":
        raw = next(entry for entry in schema.input_definitions if entry["name"] == param.name)
        # The compiler makes a file of the text, if it supports the file type.
        return marked if placeholder_file(str(raw.get("fileType") or ""), marked) else None
    if param.name == "mcpActions" and (actions := _MCP_ACTIONS.get(schema.name)):
        return actions
    if param.type == "options":
        # The editor preselects the first one.
        return param.options[0] if param.options else None
    if param.type == "multiOptions":
        return [option for option in param.options if not _TAKES_AWAY.match(option)] or None
    if (param.type in ("string", "folder") or param.name == "selectedStore") and schema.category != "Prompts":
        return marked
    return None
