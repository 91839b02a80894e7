"""Drafts: copies on which a flow is tried out."""

import json
from collections.abc import Collection
from typing import Any

from flowise_dev_agent.errors import FlowiseNotFoundError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.publish.outcomes import authorize
from flowise_dev_agent.texts import text


def draft_columns(row: Chatflow) -> dict[str, str | None]:
    """Columns that a draft copies: the key that protects predictions, and the settings that shape answers.

    Left out is what would only stand in the way of tests: the rate limit and the list of allowed web pages.
    """
    return {
        "apikeyid": row.apikeyid or None,
        "chatbot_config": _without(row.chatbot_config, "allowedOrigins"),
        "api_config": _without(row.api_config, "rateLimit"),
    }


def why_not_staged(graph: GraphIR) -> str | None:
    """Reason why a copy of this flow would behave differently, None if it would not.

    Flowise 3.1.4 keeps uploaded files under the id of the flow that they were uploaded to, and looks them up under the
    id of the flow that runs (measured: a copy answers ENOENT, the original goes on).
    """
    if stored := uploaded_file(graph):
        return text("note.uploaded_file_elsewhere", stored=stored)
    for node in graph.nodes:
        if node.inputs.get("startInputType") in {"scheduleInput", "webhookTrigger"}:
            return text("note.started_twice", node=node.label)
    return None


def uploaded_file(graph: GraphIR) -> str | None:
    """The node and field that hold a file uploaded to the server, in words; None without one."""
    for node in graph.nodes:
        for name, value in node.inputs.items():
            if "FILE-STORAGE::" in json.dumps(value):
                return text("note.uploaded_file", node=node.label, field=name)
    return None


async def create_draft(
    client: FlowiseClient, *, tag: str, name: str, kind: str, flow_data: str, validated_sha256: str
) -> Chatflow:
    """Make a draft that lasts for one test, outside any session; private, undeployed, and tagged.

    The caller has stored its tag, name and hash before, so that `find_tagged` and `remove_unclaimed` can remove it also
    when the answer is lost. Raises FlowiseError, and HashMismatchError as `guard.authorize` does.
    """
    authorize(flow_data, validated_sha256)
    return await client.create_chatflow(ChatflowCreate(name=name, flow_data=flow_data, type=kind, category=tag))


async def find_tagged(client: FlowiseClient, tags: Collection[str]) -> dict[str, list[str]]:
    """Ids of the chatflows that carry one of these tags, by tag. Raises FlowiseError."""
    found: dict[str, list[str]] = {}
    async for row in client.iter_chatflows(None):
        for tag in row.tags:
            if tag in tags:
                found.setdefault(tag, []).append(row.id)
    return found


async def remove_unclaimed(
    client: FlowiseClient, chatflow_id: str, *, tag: str, names: Collection[str], texts: Collection[str]
) -> bool:
    """Delete a chatflow that a session left; False when it is gone or may be a person's.

    It is the session's when it is as the session announced it: nothing but its tag in the category, one of `names`, a
    text with one of the hashes `texts`, not deployed, not public. Raises FlowiseError; safe to repeat.
    """
    try:
        current = await client.get_chatflow(chatflow_id)
        if current.deployed or current.is_public or current.tags != (tag,) or current.name not in names:
            return False
        if payload_sha256(current.flow_data) not in texts:
            return False
        await client.delete_chatflow(chatflow_id)
    except FlowiseNotFoundError:
        return False
    return True


def _without(text: str | None, key: str) -> str | None:
    if not text:
        return None
    try:
        config: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(config, dict):
        return None
    return json.dumps({name: value for name, value in config.items() if name != key})
