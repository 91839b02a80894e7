"""Calls for whoever runs the service: keys, the audit log, how the service is."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flowise_dev_agent.client.transport import Http, given, if_still, problem_of, read_answer

if TYPE_CHECKING:
    # Loaded by the methods that read them.
    from flowise_dev_agent.schemas.audit import AuditPage, AuditReport, ErasedWords
    from flowise_dev_agent.schemas.keys import CallerView, KeyList, MadeKey, NewKey, OwnerList
    from flowise_dev_agent.schemas.service import HealthView, InfoView, PublicSettings, ReadyView


class AdminCalls(Http):
    """What a client can do besides sessions and flows."""

    async def keys(self) -> "KeyList":
        """All keys of people and programs, newest first."""
        from flowise_dev_agent.schemas.keys import KeyList

        return await self._get(KeyList, "/keys")

    async def owners(self) -> "OwnerList":
        """The teams and persons that keys act for."""
        from flowise_dev_agent.schemas.keys import OwnerList

        return await self._get(OwnerList, "/owners")

    async def current_key(self) -> "CallerView":
        """Whose key the calls of this client come with, and what it may do."""
        from flowise_dev_agent.schemas.keys import CallerView

        return await self._get(CallerView, "/keys/current")

    async def create_key(self, new: "NewKey") -> "MadeKey":
        """Make a key; the answer is the only one that has it."""
        from flowise_dev_agent.schemas.keys import MadeKey

        return read_answer(MadeKey, await self._call("POST", "/keys", json=new.model_dump(mode="json")))

    async def rotate_key(self, key_id: UUID, *, keep_old_secs: int = 0, if_match: str | None = None) -> "MadeKey":
        """Make another key in the place of this one; with `if_match` (`KeyView.etag`) only as it was read."""
        from flowise_dev_agent.schemas.keys import MadeKey

        body = {"keep_old_secs": keep_old_secs}
        path = f"/keys/{key_id}/rotate"
        return read_answer(MadeKey, await self._call("POST", path, json=body, headers=if_still(if_match)))

    async def revoke_key(self, key_id: UUID, *, if_match: str | None = None) -> None:
        """End a key at once; with `if_match` only as it was read."""
        await self._call("DELETE", f"/keys/{key_id}", headers=if_still(if_match))

    # --- the audit log ------------------------------------------------------------------------------------------------

    async def audit(self, *, limit: int = 100, cursor: int | None = None, **which: Any) -> "AuditPage":
        """Answers and writes, newest first; filters are `session`, `flow`, `person`, `action`, `since`, `until`."""
        from flowise_dev_agent.schemas.audit import AuditPage

        return await self._get(AuditPage, "/audit", limit=limit, cursor=cursor, **which)

    async def audit_export(self, format_: str = "jsonl", **which: Any) -> AsyncGenerator[str]:
        """All rows that the filters let through, oldest first, as pieces of a JSON Lines or CSV file."""
        params = given({"format": format_, **which})
        with self._in_words():
            async with self._http.stream("GET", "/audit/export", params=params) as response:
                if response.is_error:
                    await response.aread()
                    raise problem_of(response)
                async for text in response.aiter_text():
                    yield text

    async def audit_verify(self, session_id: UUID | None = None) -> "AuditReport":
        """Check that every row of the audit log is there as it was written."""
        from flowise_dev_agent.schemas.audit import AuditReport

        return await self._get(AuditReport, "/audit/verify", session=str(session_id) if session_id else None)

    async def erase_audit_words(self, *, session_id: UUID | None = None, person: str | None = None) -> "ErasedWords":
        """Erase what was said in a session, by a person, or both."""
        from flowise_dev_agent.schemas.audit import ErasedWords

        params = given({"session": str(session_id) if session_id else None, "person": person})
        return read_answer(ErasedWords, await self._call("DELETE", "/audit/words", params=params))

    # --- the service -------------------------------------------------------------------------------------------------

    async def health(self) -> "HealthView":
        """What the service runs on, and whether each part answers."""
        from flowise_dev_agent.schemas.service import HealthView

        return await self._get(HealthView, "/health")

    async def info(self) -> "InfoView":
        """The version, the model that plans, and a model in reach of the service."""
        from flowise_dev_agent.schemas.service import InfoView

        return await self._get(InfoView, "/info")

    async def service_settings(self) -> "PublicSettings":
        """How the service is set up, without secrets."""
        from flowise_dev_agent.schemas.service import PublicSettings

        return await self._get(PublicSettings, "/settings")

    async def ready(self) -> "ReadyView":
        """Whether the service takes new work; a `ServiceError` when it does not."""
        from flowise_dev_agent.schemas.service import ReadyView

        return await self._get(ReadyView, "/ready")

    async def live(self) -> None:
        """Return when the process answers."""
        await self._call("GET", "/live")

    async def metrics(self) -> str:
        """What the service counts, in the format of Prometheus."""
        return (await self._answered("GET", "/metrics")).text
