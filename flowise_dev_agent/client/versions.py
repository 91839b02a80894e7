"""Calls about versions: what flows held before and after each write, and the way back."""

from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import TypeAdapter

from flowise_dev_agent.client.transport import Http, if_still, read_answer

if TYPE_CHECKING:
    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.patch import CanvasView
    from flowise_dev_agent.schemas.change import FlowChange
    from flowise_dev_agent.schemas.versions import NumberedVersions, RolledBack, VersionDiff, VersionList


class VersionCalls(Http):
    """What a client can do with versions. A label such as `v1.0` is a session's, a number such as `v4` a flow's."""

    async def versions(self, session_id: UUID) -> "VersionList":
        """What a session's flow held before and after each of its writes, oldest first."""
        from flowise_dev_agent.schemas.versions import VersionList

        return await self._get(VersionList, f"/sessions/{session_id}/versions")

    async def version_graph(self, session_id: UUID, label: str) -> "CanvasView":
        """A version of a session to be drawn."""
        from flowise_dev_agent.patch import CanvasView

        graph = await self._call("GET", f"/sessions/{session_id}/versions/{label}/graph")
        return TypeAdapter(CanvasView).validate_python(graph, extra="ignore")

    async def version_diff(
        self, session_id: UUID, *, before: str | None = None, after: str | None = None
    ) -> "VersionDiff":
        """What differs between two versions of a session, by their labels; the first and the last when left out."""
        from flowise_dev_agent.schemas.versions import VersionDiff

        return await self._get(VersionDiff, f"/sessions/{session_id}/diff", **{"from": before, "to": after})

    async def rollback(
        self, session_id: UUID, *, version: str | None = None, if_match: str | None = None
    ) -> "RolledBack":
        """Write a version of a session back to its flow; the first one when none is named. `if_match` is the `etag` of
        the session."""
        from flowise_dev_agent.schemas.versions import RolledBack

        params = {"version": version} if version else {}
        path = f"/sessions/{session_id}/rollback"
        return read_answer(RolledBack, await self._call("POST", path, params=params, headers=if_still(if_match)))

    async def flow_versions(
        self, chatflow_id: str, *, limit: int = 20, before: int | None = None
    ) -> "NumberedVersions":
        """The versions of a flow, v1, v2, ..., newest first."""
        from flowise_dev_agent.schemas.versions import NumberedVersions

        return await self._get(NumberedVersions, f"/flows/{chatflow_id}/versions", limit=limit, before=before)

    async def flow_history(self, chatflow_id: str, *, limit: int = 50) -> "VersionList":
        """The versions that all sessions kept of a flow, with their hashes, newest first."""
        from flowise_dev_agent.schemas.versions import VersionList

        return await self._get(VersionList, f"/flows/{chatflow_id}/history", limit=limit)

    async def compare_flow(self, chatflow_id: str, before: str, after: str = "live") -> "FlowChange":
        """Two versions of a flow, or one and the flow as it is now: `v4`, `<session id>:<label>` or `live`."""
        from flowise_dev_agent.schemas.change import FlowChange

        return await self._get(FlowChange, f"/flows/{chatflow_id}/compare", before=before, after=after)

    async def bookmark(self, chatflow_id: str, version: str, note: str = "") -> None:
        """Mark a version, such as `v4`, to be found again."""
        await self._call("PUT", f"/flows/{chatflow_id}/versions/{version}/bookmark", json={"note": note})

    async def remove_bookmark(self, chatflow_id: str, version: str) -> None:
        """Take the mark of a version away."""
        await self._call("DELETE", f"/flows/{chatflow_id}/versions/{version}/bookmark")
