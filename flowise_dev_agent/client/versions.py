"""Calls about versions of flows, and about links that show them to people without a key."""

from uuid import UUID

from pydantic import TypeAdapter

from flowise_dev_agent.client.transport import Http, if_still, read_answer
from flowise_dev_agent.patch import CanvasView
from flowise_dev_agent.schemas.certificates import CertificateKeys, SignedCertificate
from flowise_dev_agent.schemas.change import FlowChange
from flowise_dev_agent.schemas.shares import MadeShare, NewShare, SharedView, ShareList
from flowise_dev_agent.schemas.versions import NumberedVersions, RolledBack, TakenBack, VersionDiff, VersionList


class VersionCalls(Http):
    """Calls about versions and share links. A label such as `v1.0` is a session's, a number such as `v4` a flow's."""

    async def versions(self, session_id: UUID) -> VersionList:
        """List the versions of a session's flow before and after each of its writes, oldest first."""
        return await self._get(VersionList, f"/sessions/{session_id}/versions")

    async def version_graph(self, session_id: UUID, label: str) -> CanvasView:
        """Read a version of a session for drawing."""
        graph = await self._call("GET", f"/sessions/{session_id}/versions/{label}/graph")
        return TypeAdapter(CanvasView).validate_python(graph, extra="ignore")

    async def version_diff(
        self, session_id: UUID, *, before: str | None = None, after: str | None = None
    ) -> VersionDiff:
        """Compare two versions of a session by their labels; by default the first and the last."""
        return await self._get(VersionDiff, f"/sessions/{session_id}/diff", **{"from": before, "to": after})

    async def certificate(self, session_id: UUID) -> SignedCertificate:
        """Read the signed certificate of the version that was accepted in a session."""
        return await self._get(SignedCertificate, f"/sessions/{session_id}/certificate")

    async def certificate_keys(self) -> CertificateKeys:
        """List the public keys that certificates are checked with."""
        return await self._get(CertificateKeys, "/certificates/keys")

    async def rollback(
        self,
        session_id: UUID,
        *,
        version: str | None = None,
        created: TakenBack | None = None,
        if_match: str | None = None,
    ) -> RolledBack:
        """Write a version of a session back to its flow, by default the first one.

        `created` deletes or undeploys the flow that the session made instead. `if_match` is the session's `etag`.
        """
        given = {"version": version, "created": created}
        params = {name: value for name, value in given.items() if value}
        path = f"/sessions/{session_id}/rollback"
        return read_answer(RolledBack, await self._call("POST", path, params=params, headers=if_still(if_match)))

    async def flow_versions(self, chatflow_id: str, *, limit: int = 20, before: int | None = None) -> NumberedVersions:
        """List the versions of a flow (v1, v2, ...), newest first."""
        return await self._get(NumberedVersions, f"/flows/{chatflow_id}/versions", limit=limit, before=before)

    async def flow_history(self, chatflow_id: str, *, limit: int = 50) -> VersionList:
        """List the versions of a flow from all sessions, with their hashes, newest first."""
        return await self._get(VersionList, f"/flows/{chatflow_id}/history", limit=limit)

    async def compare_flow(self, chatflow_id: str, before: str, after: str = "live") -> FlowChange:
        """Compare two versions of a flow, or one with the current flow: `v4`, `<session id>:<label>` or `live`."""
        return await self._get(FlowChange, f"/flows/{chatflow_id}/compare", before=before, after=after)

    async def bookmark(self, chatflow_id: str, version: str, note: str = "") -> None:
        """Bookmark a version, such as `v4`."""
        await self._call("PUT", f"/flows/{chatflow_id}/versions/{version}/bookmark", json={"note": note})

    async def remove_bookmark(self, chatflow_id: str, version: str) -> None:
        """Remove the bookmark of a version."""
        await self._call("DELETE", f"/flows/{chatflow_id}/versions/{version}/bookmark")

    # --- share links --------------------------------------------------------------------------------------------------

    async def shares(self, *, session_id: UUID | None = None, chatflow_id: UUID | None = None) -> ShareList:
        """List the newest links of a session, of a flow, or of all."""
        return await self._get(ShareList, "/shares", session=session_id, flow=chatflow_id)

    async def create_share(self, new: NewShare) -> MadeShare:
        """Create a link; only this answer contains it. A link that begins with `/` gets this service's address."""
        made = read_answer(MadeShare, await self._call("POST", "/shares", json=new.model_dump(mode="json")))
        return made.model_copy(update={"link": self.base_url + made.link}) if made.link.startswith("/") else made

    async def revoke_share(self, share_id: UUID) -> None:
        """Revoke a link at once."""
        await self._call("DELETE", f"/shares/{share_id}")

    async def shared(self, link: str) -> SharedView:
        """Read the content of a link; no key is needed."""
        return read_answer(SharedView, await self._call("GET", "/shared", headers=_with(link)))

    async def shared_version(self, link: str, version: str) -> CanvasView:
        """Read a version of a shared flow."""
        found = await self._call("GET", f"/shared/versions/{version}", headers=_with(link))
        return TypeAdapter(CanvasView).validate_python(found, extra="ignore")


def _with(link: str) -> dict[str, str]:
    return {"Authorization": f"Share {link.rpartition('/')[2]}"}
