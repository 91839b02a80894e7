"""Fields that a new node cannot do without and the text does not fill: a value that follows, or a marked stand-in."""

import re
from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.reasoning.rules.design.placeholders import MARK, placeholder_file
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.language.text import squeeze

_ADDRESS = re.compile(r"url|uri|host|endpoint|link|webpath|address", re.IGNORECASE)
_NAME = re.compile(r"index|collection|table|database|bucket|namespace|store|key$", re.IGNORECASE)
_PATH = re.compile(r"path|folder|directory", re.IGNORECASE)
#: What an MCP server of the catalogue offers; the editor would ask the running server for it.
_MCP_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "sequentialThinkingMCP": ("sequentialthinking",),
    "braveSearchMCP": ("brave_web_search", "brave_local_search"),
    "postgreSQLMCP": ("query",),
    "slackMCP": ("slack_list_channels", "slack_post_message", "slack_get_channel_history"),
    "githubMCP": ("search_repositories", "get_file_contents", "list_issues", "create_issue"),
}


def open_params(schema: NodeSchema, values: Mapping[str, Any] | None = None) -> list[InputParam]:
    """Required fields that are shown and that neither `values` nor a default fills."""
    given = {**{param.name: param.default for param in schema.params}, **(values or {})}
    return [
        param
        for param in schema.params
        if not param.optional
        and param.type not in ("boolean", "tabs")
        and given.get(param.name) in (None, "")
        and is_visible({"show": param.show, "hide": param.hide}, given)
    ]


def fill_in(schema: NodeSchema, values: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Values for the open fields of a new node; those that only the person can know get a stand-in that says so.

    What cannot be stood in for (a choice that only the running server knows, a number) stays open.
    """
    found: dict[str, Any] = {}
    names = [name for name in (reading.index_name,) if name]
    for _ in range(len(schema.params)):
        # A value may bring further fields into view.
        param = next(iter(open_params(schema, {**values, **found})), None)
        if param is None:
            break
        value = _value(schema, param, reading, names)
        if value is None:
            break
        found[param.name] = value
    return found


def _value(schema: NodeSchema, param: InputParam, reading: Reading, names: list[str]) -> Any:
    if param.type == "file":
        raw = next(entry for entry in schema.input_definitions if entry["name"] == param.name)
        text = _marked(f"{schema.label}: {param.label}")
        return placeholder_file(str(raw.get("fileType") or ""), text)
    if param.name == "mcpActions" and schema.name in _MCP_ACTIONS:
        return list(_MCP_ACTIONS[schema.name])
    if param.type == "options":
        # The first is what the editor offers first.
        return param.options[0] if param.options else None
    if param.type not in ("string", "code", "folder"):
        return None
    if reading.address and _ADDRESS.search(param.name):
        return reading.address
    if reading.path and _PATH.search(param.name):
        return reading.path
    if names and _NAME.search(param.name):
        return names.pop()
    return _marked(f"{schema.label}: {param.label}")


def _marked(what: str) -> str:
    return squeeze(f"{MARK}: {what}]")
