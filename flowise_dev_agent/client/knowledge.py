"""Calls about knowledge of Flowise servers: connections, node types, credentials, document stores, patterns."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from flowise_dev_agent.client.transport import Http, given, if_still, read_answer, with_secrets
from flowise_dev_agent.schemas.connections import ConnectFlowise, ConnectionsView, ConnectModel
from flowise_dev_agent.schemas.credentials import CreatedCredential, CredentialList, CredentialTypeList, NewCredential
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore
from flowise_dev_agent.schemas.knowledge import KnowledgeList, RefreshView
from flowise_dev_agent.schemas.node_artifacts import Memory, MemoryDetail, MemoryKind, MemoryPage, NewMemory
from flowise_dev_agent.schemas.nodes import CatalogueHits, NodeOptions, NodeTypeDetails, NodeTypePage, VariableList
from flowise_dev_agent.schemas.patterns import ImportResult, PatternFile, PatternList
from flowise_dev_agent.schemas.service import InstanceList


class KnowledgeCalls(Http):
    """Calls about knowledge; `instance` is the service's name of a Flowise server."""

    async def connections(self) -> ConnectionsView:
        """Read the default Flowise server and the planning model, and the origin of each setting."""
        return await self._get(ConnectionsView, "/connections")

    async def connect_flowise(self, server: ConnectFlowise, *, if_match: str | None = None) -> ConnectionsView:
        """Test a Flowise server and use it from now on."""
        return await self._change_connection("PUT", "flowise", if_match, json=with_secrets(server))

    async def connect_model(self, model: ConnectModel, *, if_match: str | None = None) -> ConnectionsView:
        """Test a model and plan with it from now on."""
        return await self._change_connection("PUT", "model", if_match, json=with_secrets(model))

    async def disconnect_flowise(self, *, force: bool = False, if_match: str | None = None) -> ConnectionsView:
        """Forget the stored Flowise server; with `force` even if sessions on it are open."""
        return await self._change_connection("DELETE", "flowise", if_match, params={"force": "true"} if force else None)

    async def disconnect_model(self, *, if_match: str | None = None) -> ConnectionsView:
        """Forget the stored model."""
        return await self._change_connection("DELETE", "model", if_match)

    async def _change_connection(self, method: str, kind: str, if_match: str | None, **options: Any) -> ConnectionsView:
        path = f"/connections/{kind}"
        return read_answer(ConnectionsView, await self._call(method, path, headers=if_still(if_match), **options))

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> CatalogueHits:
        """Search node types and templates of a server by words."""
        return await self._get(CatalogueHits, "/knowledge/search", query=query, instance=instance, limit=limit)

    async def node_types(
        self,
        query: str = "",
        *,
        category: str | None = None,
        instance: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> NodeTypePage:
        """Read a page of a server's node types."""
        which = {"query": query, "category": category, "instance": instance}
        return await self._get(NodeTypePage, "/nodes", **which, limit=limit, cursor=cursor)

    async def node_type(self, name: str, *, instance: str | None = None, examples: bool = False) -> NodeTypeDetails:
        """Read a node type with its inputs, optionally with examples of its use."""
        shown = "true" if examples else None
        return await self._get(NodeTypeDetails, f"/nodes/{quote(name, safe='')}", instance=instance, examples=shown)

    async def node_options(self, name: str, param: str, *, instance: str | None = None) -> NodeOptions:
        """List the allowed values of a param of a node type."""
        path = f"/nodes/{quote(name, safe='')}/options"
        answer = await self._call("POST", path, params=given({"instance": instance}), json={"param": param})
        return read_answer(NodeOptions, answer)

    async def credentials(self, *, instance: str | None = None) -> CredentialList:
        """List the credentials of a server with name and type."""
        return await self._get(CredentialList, "/credentials", instance=instance)

    async def credential_types(self, *, instance: str | None = None) -> CredentialTypeList:
        """List the credential types of a server with their fields."""
        return await self._get(CredentialTypeList, "/credentials/types", instance=instance)

    async def create_credential(self, credential: NewCredential) -> CreatedCredential:
        """Create a credential on a Flowise server; the service stores nothing of it."""
        return read_answer(CreatedCredential, await self._call("POST", "/credentials", json=with_secrets(credential)))

    async def instances(self) -> InstanceList:
        """List the Flowise servers."""
        return await self._get(InstanceList, "/instances")

    async def knowledge(self) -> KnowledgeList:
        """Read the state of the knowledge of each Flowise server, and its last refresh."""
        return await self._get(KnowledgeList, "/knowledge")

    async def variables(self, instance: str | None = None) -> VariableList:
        """List the variables of a Flowise server by name, without values."""
        return await self._get(VariableList, "/variables", instance=instance)

    async def document_stores(self, instance: str | None = None) -> DocumentStoreList:
        """List the document stores of a Flowise server."""
        params = given({"instance": instance})
        return read_answer(DocumentStoreList, await self._call("GET", "/document-stores", params=params))

    async def refresh_document_store(self, store_id: str, instance: str | None = None) -> RefreshedStore:
        """Have every source of a document store read again; this may take minutes."""
        path = f"/document-stores/{quote(store_id, safe='')}/refresh"
        return read_answer(RefreshedStore, await self._call("POST", path, params=given({"instance": instance})))

    async def refresh(self, instance: str) -> RefreshView:
        """Start to read a Flowise server again; `knowledge` shows the progress."""
        return read_answer(RefreshView, await self._call("POST", f"/knowledge/{quote(instance, safe='')}/refresh"))

    # --- patterns ----------------------------------------------------------------------------------------------------

    async def memories(
        self,
        query: str = "",
        *,
        memory_id: int | None = None,
        kind: MemoryKind | None = None,
        instance: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Memory]:
        """Search notes and patterns: one by id, by words, or the newest and most successful ones."""
        page = await self._get(
            MemoryPage,
            "/memories",
            query=query or None,
            memory_id=memory_id,
            kind=kind,
            instance=instance,
            limit=limit,
            offset=offset,
        )
        return page.items

    async def add_memory(self, memory: NewMemory) -> Memory:
        """Store a note, or replace one."""
        answer = await self._call("POST", "/memories", json=memory.model_dump(mode="json"), repeatable=True)
        return read_answer(MemoryDetail, answer).item

    async def delete_memory(self, memory_id: int) -> None:
        """Delete a note."""
        await self._call("DELETE", f"/memories/{memory_id}")

    async def patterns(self, query: str = "", *, instance: str | None = None, limit: int = 100) -> PatternList:
        """List accepted flows that new ones may start from, the most successful first."""
        return await self._get(PatternList, "/patterns", q=query or None, instance=instance, limit=limit)

    async def export_patterns(self, *, instance: str | None = None) -> PatternFile:
        """Read all patterns, in the format of `import_patterns`."""
        return await self._get(PatternFile, "/patterns/export", instance=instance)

    async def import_patterns(self, patterns: PatternFile, *, instance: str | None = None) -> ImportResult:
        """Import patterns; an existing pattern for the same words stays unchanged."""
        body: dict[str, Any] = patterns.model_dump(mode="json")
        answer = await self._call(
            "POST", "/patterns/import", params=given({"instance": instance}), json=body, repeatable=True
        )
        return read_answer(ImportResult, answer)

    async def delete_pattern(self, pattern_id: int, *, if_match: str | None = None) -> None:
        """Delete a pattern. Flows made from it stay."""
        await self._call("DELETE", f"/patterns/{pattern_id}", headers=if_still(if_match))
