"""Calls about what flows can be made of: node types, credentials, patterns, and what is known of each server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flowise_dev_agent.client.transport import Http, given, if_still, read_answer, with_secrets

if TYPE_CHECKING:
    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.schemas.connections import ConnectFlowise, ConnectionsView, ConnectModel
    from flowise_dev_agent.schemas.credentials import CreatedCredential, CredentialTypeList, NewCredential
    from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore
    from flowise_dev_agent.schemas.knowledge import KnowledgeList, RefreshView
    from flowise_dev_agent.schemas.node_artifacts import Memory, MemoryKind, NewMemory
    from flowise_dev_agent.schemas.nodes import CatalogueHits, NodeOptions, NodeTypeDetails, NodeTypePage
    from flowise_dev_agent.schemas.patterns import ImportResult, PatternFile, PatternList
    from flowise_dev_agent.schemas.service import InstanceList


class KnowledgeCalls(Http):
    """What a client can learn; `instance` is a Flowise server by its name in the service."""

    async def connections(self) -> "ConnectionsView":
        """The default Flowise server and the model that plans, and where each was set."""
        from flowise_dev_agent.schemas.connections import ConnectionsView

        return await self._get(ConnectionsView, "/connections")

    async def connect_flowise(self, server: "ConnectFlowise", *, if_match: str | None = None) -> "ConnectionsView":
        """Have the service try a Flowise server, and use it from now on."""
        return await self._connected("PUT", "flowise", if_match, json=with_secrets(server))

    async def connect_model(self, model: "ConnectModel", *, if_match: str | None = None) -> "ConnectionsView":
        """Have the service try a model, and plan with it from now on."""
        return await self._connected("PUT", "model", if_match, json=with_secrets(model))

    async def disconnect_flowise(self, *, force: bool = False, if_match: str | None = None) -> "ConnectionsView":
        """Have the service forget the Flowise server that was stored; with `force` although sessions are open on it."""
        return await self._connected("DELETE", "flowise", if_match, params={"force": "true"} if force else None)

    async def disconnect_model(self, *, if_match: str | None = None) -> "ConnectionsView":
        """Have the service forget the model that was stored."""
        return await self._connected("DELETE", "model", if_match)

    async def _connected(self, method: str, kind: str, if_match: str | None, **options: Any) -> "ConnectionsView":
        from flowise_dev_agent.schemas.connections import ConnectionsView

        path = f"/connections/{kind}"
        return read_answer(ConnectionsView, await self._call(method, path, headers=if_still(if_match), **options))

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> "CatalogueHits":
        """Node types and templates of a server by words."""
        from flowise_dev_agent.schemas.nodes import CatalogueHits

        return await self._get(CatalogueHits, "/knowledge/search", query=query, instance=instance, limit=limit)

    async def node_types(
        self,
        query: str = "",
        *,
        category: str | None = None,
        instance: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> "NodeTypePage":
        """Node types of a server, a page of them."""
        from flowise_dev_agent.schemas.nodes import NodeTypePage

        which = {"q": query, "category": category, "instance": instance}
        return await self._get(NodeTypePage, "/nodes", **which, limit=limit, cursor=cursor)

    async def node_type(self, name: str, *, instance: str | None = None, examples: bool = False) -> "NodeTypeDetails":
        """A node type with its inputs, and with examples of its use if wanted."""
        from flowise_dev_agent.schemas.nodes import NodeTypeDetails

        shown = "true" if examples else None
        return await self._get(NodeTypeDetails, f"/nodes/{quote(name, safe='')}", instance=instance, examples=shown)

    async def node_options(self, name: str, param: str, *, instance: str | None = None) -> "NodeOptions":
        """What a param of a node type may be set to."""
        from flowise_dev_agent.schemas.nodes import NodeOptions

        path = f"/nodes/{quote(name, safe='')}/options"
        answer = await self._call("POST", path, params=given({"instance": instance}), json={"param": param})
        return read_answer(NodeOptions, answer)

    async def credential_types(self, *, instance: str | None = None) -> "CredentialTypeList":
        """The credential types of a server with their fields."""
        from flowise_dev_agent.schemas.credentials import CredentialTypeList

        return await self._get(CredentialTypeList, "/credentials/types", instance=instance)

    async def create_credential(self, credential: "NewCredential") -> "CreatedCredential":
        """Make a credential on a Flowise server: it goes there, and nothing of it is stored here."""
        from flowise_dev_agent.schemas.credentials import CreatedCredential

        return read_answer(CreatedCredential, await self._call("POST", "/credentials", json=with_secrets(credential)))

    async def instances(self) -> "InstanceList":
        """The Flowise servers."""
        from flowise_dev_agent.schemas.service import InstanceList

        return await self._get(InstanceList, "/instances")

    async def knowledge(self) -> "KnowledgeList":
        """What is known of each Flowise server, and the last refresh."""
        from flowise_dev_agent.schemas.knowledge import KnowledgeList

        return await self._get(KnowledgeList, "/knowledge")

    async def document_stores(self, instance: str | None = None) -> "DocumentStoreList":
        """The document stores of a Flowise server."""
        from flowise_dev_agent.schemas.document_stores import DocumentStoreList

        params = given({"instance": instance})
        return read_answer(DocumentStoreList, await self._call("GET", "/document-stores", params=params))

    async def refresh_document_store(self, store_id: str, instance: str | None = None) -> "RefreshedStore":
        """Have every source of a document store read again; this may take minutes."""
        from flowise_dev_agent.schemas.document_stores import RefreshedStore

        path = f"/document-stores/{quote(store_id, safe='')}/refresh"
        return read_answer(RefreshedStore, await self._call("POST", path, params=given({"instance": instance})))

    async def refresh(self, instance: str) -> "RefreshView":
        """Have the service read a Flowise server again; `knowledge` shows how far it is."""
        from flowise_dev_agent.schemas.knowledge import RefreshView

        return read_answer(RefreshView, await self._call("POST", f"/knowledge/{quote(instance, safe='')}/refresh"))

    # --- patterns ----------------------------------------------------------------------------------------------------

    async def memories(
        self,
        query: str = "",
        *,
        memory_id: int | None = None,
        kind: "MemoryKind | None" = None,
        instance: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> "Sequence[Memory]":
        """Notes and patterns: one, those that fit words, or the newest and most successful ones."""
        from flowise_dev_agent.schemas.node_artifacts import MemoryPage

        page = await self._get(
            MemoryPage,
            "/memories",
            query_text=query or None,
            memory_id=memory_id,
            kind=kind,
            instance=instance,
            limit=limit,
            offset=offset,
        )
        return page.items

    async def add_memory(self, memory: "NewMemory") -> "Memory":
        """Have a note remembered, or put it in the place of one."""
        from flowise_dev_agent.schemas.node_artifacts import MemoryDetail

        answer = await self._call("POST", "/memories", json=memory.model_dump(mode="json"), repeatable=True)
        return read_answer(MemoryDetail, answer).item

    async def delete_memory(self, memory_id: int) -> None:
        """Forget a note."""
        await self._call("DELETE", f"/memories/{memory_id}")

    async def patterns(self, query: str = "", *, instance: str | None = None, limit: int = 100) -> "PatternList":
        """Accepted flows that new ones may start from, the most successful first."""
        from flowise_dev_agent.schemas.patterns import PatternList

        return await self._get(PatternList, "/patterns", q=query or None, instance=instance, limit=limit)

    async def export_patterns(self, *, instance: str | None = None) -> "PatternFile":
        """All patterns, in a form that `import_patterns` takes."""
        from flowise_dev_agent.schemas.patterns import PatternFile

        return await self._get(PatternFile, "/patterns/export", instance=instance)

    async def import_patterns(self, patterns: "PatternFile", *, instance: str | None = None) -> "ImportResult":
        """Bring patterns in; what is there already for the same words stays as it is."""
        from flowise_dev_agent.schemas.patterns import ImportResult

        body: dict[str, Any] = patterns.model_dump(mode="json")
        answer = await self._call(
            "POST", "/patterns/import", params=given({"instance": instance}), json=body, repeatable=True
        )
        return read_answer(ImportResult, answer)

    async def delete_pattern(self, pattern_id: int, *, if_match: str | None = None) -> None:
        """Remove a pattern. Flows that were made from it stay."""
        await self._call("DELETE", f"/patterns/{pattern_id}", headers=if_still(if_match))
