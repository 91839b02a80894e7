"""Calls for operators: keys, the audit log, the state of the service."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

from flowise_dev_agent.client.transport import Http, given, if_still, problem_of, read_answer
from flowise_dev_agent.schemas.audit import AuditPage, AuditReport, ErasedWords
from flowise_dev_agent.schemas.keys import CallerView, KeyList, MadeKey, NewKey, OwnerList
from flowise_dev_agent.schemas.service import HealthView, InfoView, PublicSettings, ReadyView


class AdminCalls(Http):
    """Calls about keys, the audit log and the service."""

    async def keys(self) -> KeyList:
        """List all keys of people and programs, newest first."""
        return await self._get(KeyList, "/keys")

    async def owners(self) -> OwnerList:
        """List the teams and persons that keys act for."""
        return await self._get(OwnerList, "/owners")

    async def current_key(self) -> CallerView:
        """Read the owner and the scopes of this client's key."""
        return await self._get(CallerView, "/keys/current")

    async def create_key(self, new: NewKey) -> MadeKey:
        """Create a key; only this answer contains it."""
        return read_answer(MadeKey, await self._call("POST", "/keys", json=new.model_dump(mode="json")))

    async def rotate_key(self, key_id: UUID, *, keep_old_secs: int = 0, if_match: str | None = None) -> MadeKey:
        """Replace a key by a new one; with `if_match` (`KeyView.etag`) only if it is unchanged."""
        body = {"keep_old_secs": keep_old_secs}
        path = f"/keys/{key_id}/rotate"
        return read_answer(MadeKey, await self._call("POST", path, json=body, headers=if_still(if_match)))

    async def revoke_key(self, key_id: UUID, *, if_match: str | None = None) -> None:
        """Revoke a key at once; with `if_match` only if it is unchanged."""
        await self._call("DELETE", f"/keys/{key_id}", headers=if_still(if_match))

    # --- the audit log ------------------------------------------------------------------------------------------------

    async def audit(self, *, limit: int = 100, cursor: int | None = None, **which: Any) -> AuditPage:
        """List answers and writes, newest first; filters: `session`, `flow`, `person`, `action`, `since`, `until`."""
        return await self._get(AuditPage, "/audit", limit=limit, cursor=cursor, **which)

    async def audit_export(self, format_: str = "jsonl", **which: Any) -> AsyncGenerator[str]:
        """Stream all rows that match the filters, oldest first, as pieces of a JSON Lines or CSV file."""
        params = given({"format": format_, **which})
        with self._in_words():
            async with self._http.stream("GET", "/audit/export", params=params) as response:
                if response.is_error:
                    await response.aread()
                    raise problem_of(response)
                async for text in response.aiter_text():
                    yield text

    async def audit_verify(self, session_id: UUID | None = None) -> AuditReport:
        """Check that every row of the audit log exists and is unchanged."""
        return await self._get(AuditReport, "/audit/verify", session=str(session_id) if session_id else None)

    async def erase_audit_words(self, *, session_id: UUID | None = None, person: str | None = None) -> ErasedWords:
        """Erase the texts of a session, of a person, or of both."""
        params = given({"session": str(session_id) if session_id else None, "person": person})
        return read_answer(ErasedWords, await self._call("DELETE", "/audit/words", params=params))

    # --- the service -------------------------------------------------------------------------------------------------

    async def health(self) -> HealthView:
        """Read the state of each part that the service depends on."""
        return await self._get(HealthView, "/health")

    async def info(self) -> InfoView:
        """Read the version, the planning model, and a model that the service could use."""
        return await self._get(InfoView, "/info")

    async def service_settings(self) -> PublicSettings:
        """Read the settings of the service, without secrets."""
        return await self._get(PublicSettings, "/settings")

    async def ready(self) -> ReadyView:
        """Check that the service takes new work; raises `ServiceError` if it does not."""
        return await self._get(ReadyView, "/ready")

    async def live(self) -> None:
        """Check that the process answers."""
        await self._call("GET", "/live")

    async def metrics(self) -> str:
        """Read the metrics in the Prometheus text format."""
        return (await self._send("GET", "/metrics")).text
