"""Custom tools that a session makes: each once, whatever is lost on the way.

Flowise takes no id and no tag for a tool, so one is known again by its name and content, which a person's may have,
too. Only one whose id answered a call of the session is the session's to remove: what was found is used and stays.
"""

from collections.abc import Collection, Mapping

from flowise_dev_agent.errors import FlowiseNotFoundError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_tags import tool_tag
from flowise_dev_agent.flowise.models import ToolRow
from flowise_dev_agent.persistence.intents import WriteIntent
from flowise_dev_agent.publish.outcomes import stated
from flowise_dev_agent.publish.steps import WriteSteps
from flowise_dev_agent.schemas.custom_tools import PlannedTool, tool_sha256


class ToolSteps(WriteSteps):
    """Making, taking and removing custom tools."""

    async def make_tool(self, tool: PlannedTool) -> str:
        """Create a custom tool, or find the one that is the same; its id.

        Raises FlowiseError: the server refused, or the outcome is unknown.
        """
        tag = tool_tag(str(self._session_id), tool.sha256)
        announced = any(item.tag == tag for item in await self._intents.list_for(self._session_id))
        if not announced and (same := await _same_tools(self._client, tool.name, [tool.sha256])):
            return same[0]
        intent = await self._open("tool_create", iteration=0, sha256=tool.sha256, tag=tag, name=tool.name)
        if intent.status == "done" and intent.result:
            return str(intent.result["tool_id"])

        async def landed() -> str | None:
            return next(iter(await _same_tools(self._client, tool.name, [tool.sha256])), None)

        with stated(intent) as attempt:
            made, adopted = None if intent.is_new else await landed(), True
            if made is None:
                made, adopted = await self._send(
                    intent, attempt, lambda: self._client.create_tool(tool.name, tool.columns), landed=landed
                )
            attempt.written = "yes"
            result = {"tool_id": made} | ({"adopted": True} if adopted else {})
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return made

    async def settle_tools(self) -> list[str]:
        """Delete the session's tools that no flow names, and leave the others to the person; the names of the deleted.

        Safe to repeat. One that somebody has changed is left, too, and so is one that may be somebody's.
        """
        intents = await self._intents.list_for(self._session_id)
        settled = {item.target_id for item in intents if item.op in ("tool_take", "tool_delete")}
        deleted: list[str] = []
        for item in intents:
            tool_id = str((item.result or {}).get("tool_id"))
            if (item.op, item.status) == ("tool_create", "done") and tool_id not in settled:
                deleted += [item.name or ""] if await self._settle(item, tool_id) else []
        return deleted

    async def _settle(self, made: WriteIntent, tool_id: str) -> bool:
        same = await _same_tools(self._client, made.name or "", [made.payload_sha256 or ""])
        is_own = tool_id in same and not (made.result or {}).get("adopted")
        goes = is_own and not await self._client.flows_with(tool_id)
        intent = await self._open("tool_delete" if goes else "tool_take", iteration=0, target_id=tool_id)
        with stated(intent) as attempt:
            if goes and intent.status != "done":
                attempt.written = "unknown"
                await _delete_unused(self._client, tool_id)
            await self._intents.finish(self._lease, intent.key, status="done", result={"tool_id": tool_id})
        return goes


async def remove_unclaimed_tools(client: FlowiseClient, ids: Collection[str], texts: Collection[str]) -> list[str]:
    """Delete the tools with these ids and one of these hashes that no flow names; their names. Raises FlowiseError."""
    rows = [row for row in await client.list_tools() if row.get("id") in ids and _sha256(row) in texts] if ids else []
    return [str(row.get("name")) for row in rows if await _delete_unused(client, str(row.get("id")))]


async def _same_tools(client: FlowiseClient, name: str, hashes: Collection[str]) -> list[str]:
    """Ids of the tools with this name and one of the hashes, oldest first."""
    rows = [row for row in await client.list_tools() if row.get("name") == name and _sha256(row) in hashes]
    return [str(row.get("id")) for row in sorted(rows, key=lambda row: str(row.get("createdDate")))]


async def _delete_unused(client: FlowiseClient, tool_id: str) -> bool:
    if await client.flows_with(tool_id):
        return False
    try:
        await client.delete_tool(tool_id)
    except FlowiseNotFoundError:
        return False
    return True


def _sha256(row: ToolRow) -> str:
    columns: Mapping[str, str] = {
        "description": row.get("description") or "",
        "schema": row.get("schema") or "",
        "func": row.get("func") or "",
    }
    return tool_sha256(row.get("name") or "", columns)
