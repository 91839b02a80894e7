"""Calls about share links and their content."""

from uuid import UUID

from pydantic import TypeAdapter

from flowise_dev_agent.client.transport import Http, read_answer
from flowise_dev_agent.patch import CanvasView
from flowise_dev_agent.schemas.shares import MadeShare, NewShare, SharedView, ShareList


class ShareCalls(Http):
    """Calls about links that show a session, or the history of a flow, to people without a key."""

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
