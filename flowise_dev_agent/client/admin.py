"""Calls for whoever runs the service: keys, the ledger, patterns, what is known of servers."""

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from flowise_dev_agent.client.transport import Http, problem_of, read_answer

if TYPE_CHECKING:
    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.contracts.audit import AuditPage, AuditReport, ErasedWords
    from flowise_dev_agent.contracts.keys import KeyList, MadeKey, NewKey
    from flowise_dev_agent.contracts.node_artifacts import ArtifactPage, Memory
    from flowise_dev_agent.runtime.admin.knowledge import KnowledgeList, RefreshView


class AdminCalls(Http):
    """What a client can do besides sessions and flows."""

    async def memory_artifacts(self, memory_id: int, *, limit: int = 50, offset: int = 0) -> "ArtifactPage":
        """When a pattern was kept and used."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactPage

        params = {"limit": limit, "offset": offset}
        return read_answer(ArtifactPage, await self._call("GET", f"/memories/{memory_id}/artifacts", params=params))

    async def memories(self, query: str = "", *, memory_id: int | None = None, limit: int = 50) -> "Sequence[Memory]":
        """Patterns: one, those that fit words, or the most successful ones."""
        from flowise_dev_agent.contracts.node_artifacts import Memory

        given = {"q": query or None, "id": memory_id, "limit": limit}
        params = {name: value for name, value in given.items() if value is not None}
        found = await self._call("GET", "/patterns", params=params)
        return [
            Memory(
                memory_id=row["id"],
                text=row["requirement"],
                **{name: row[name] for name in ("name", "instance", "success_count", "failure_count")},
            )
            for row in found["patterns"]
        ]

    async def keys(self) -> "KeyList":
        """All keys of people and programs, newest first."""
        from flowise_dev_agent.contracts.keys import KeyList

        return read_answer(KeyList, await self._call("GET", "/keys"))

    async def create_key(self, new: "NewKey") -> "MadeKey":
        """Make a key; the answer is the only one that has it."""
        from flowise_dev_agent.contracts.keys import MadeKey

        return read_answer(MadeKey, await self._call("POST", "/keys", json=new.model_dump(mode="json")))

    async def rotate_key(self, key_id: UUID, *, keep_old_secs: int = 0) -> "MadeKey":
        """Make another key in the place of this one."""
        from flowise_dev_agent.contracts.keys import MadeKey

        body = {"keep_old_secs": keep_old_secs}
        return read_answer(MadeKey, await self._call("POST", f"/keys/{key_id}/rotate", json=body))

    async def revoke_key(self, key_id: UUID) -> None:
        """End a key at once."""
        await self._call("DELETE", f"/keys/{key_id}")

    async def audit(self, *, limit: int = 100, cursor: int | None = None, **which: Any) -> "AuditPage":
        """Answers and writes, newest first; filters are `session`, `flow`, `person`, `action`, `since`, `until`."""
        from flowise_dev_agent.contracts.audit import AuditPage

        params = {"limit": limit, "cursor": cursor, **which}
        given = {name: value for name, value in params.items() if value is not None}
        return read_answer(AuditPage, await self._call("GET", "/audit", params=given))

    async def audit_export(self, format_: str = "jsonl", **which: Any) -> AsyncGenerator[str]:
        """All rows that the filters let through, oldest first, as pieces of a JSON Lines or CSV file."""
        params = {name: value for name, value in {"format": format_, **which}.items() if value is not None}
        with self._in_words():
            async with self._http.stream("GET", "/audit/export", params=params) as response:
                if response.is_error:
                    await response.aread()
                    raise problem_of(response)
                async for text in response.aiter_text():
                    yield text

    async def audit_verify(self, session_id: UUID | None = None) -> "AuditReport":
        """Check that every row of the ledger is there as it was written."""
        from flowise_dev_agent.contracts.audit import AuditReport

        params = {"session": str(session_id)} if session_id else {}
        return read_answer(AuditReport, await self._call("GET", "/audit/verify", params=params))

    async def erase_audit_words(self, *, session_id: UUID | None = None, person: str | None = None) -> "ErasedWords":
        """Erase what was said in a session, by a person, or both."""
        from flowise_dev_agent.contracts.audit import ErasedWords

        given = {"session": str(session_id) if session_id else None, "person": person}
        params = {name: value for name, value in given.items() if value is not None}
        return read_answer(ErasedWords, await self._call("DELETE", "/audit/words", params=params))

    async def health(self) -> dict[str, Any]:
        """What the service runs on."""
        return await self._call("GET", "/health")

    async def knowledge(self) -> "KnowledgeList":
        """What is known of each Flowise server, and the last refresh."""
        from flowise_dev_agent.runtime.admin.knowledge import KnowledgeList

        return read_answer(KnowledgeList, await self._call("GET", "/knowledge"))

    async def refresh(self, instance: str) -> "RefreshView":
        """Have the service read a Flowise server again; `knowledge` shows how far it is."""
        from flowise_dev_agent.runtime.admin.knowledge import RefreshView

        return read_answer(RefreshView, await self._call("POST", f"/knowledge/{quote(instance, safe='')}/refresh"))
