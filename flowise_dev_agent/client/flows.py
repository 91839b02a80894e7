"""Calls about flows: read, write, check and test them, their versions, and what they can be made of."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from uuid import UUID

from pydantic import BaseModel

from flowise_dev_agent.client.transport import Http, read_answer

if TYPE_CHECKING:
    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.contracts.change import FlowChange, SessionChange
    from flowise_dev_agent.contracts.flow_tests import FlowTestView, TestFlow, ValidatedFlow, ValidateFlow
    from flowise_dev_agent.contracts.flow_writes import (
        ApplyToFlow,
        FlowDocument,
        FlowOps,
        FlowWriteResult,
        ImportFlow,
        PromoteFlow,
    )
    from flowise_dev_agent.contracts.nodes import NodeOptions, NodeTypeDetails, NodeTypePage
    from flowise_dev_agent.contracts.versions import NumberedVersions
    from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits
    from flowise_dev_agent.runtime.flows.version_history import RolledBack, VersionDiff, VersionList
    from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary

_POLL_SECS: Final = 1.0


class FlowCalls(Http):
    """What a client can do with flows."""

    async def change(self, session_id: UUID) -> "SessionChange | None":
        """What the session does to its flow; None before there is anything to see."""
        from flowise_dev_agent.contracts.change import SessionChange

        change = await self._call("GET", f"/sessions/{session_id}/change")
        return read_answer(SessionChange, change) if change else None

    async def find_flows(self, query: str = "", *, instance: str | None = None, limit: int = 20) -> "FlowPage":
        """Flows of a server by words; without any those changed last."""
        from flowise_dev_agent.runtime.flows.views import FlowPage

        return read_answer(FlowPage, await self._find("/flows", query, instance, limit))

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> "FlowSummary":
        """A flow in words. `chatflow_id` is a UUID."""
        from flowise_dev_agent.runtime.flows.views import FlowSummary

        params = {"instance": instance} if instance else {}
        return read_answer(FlowSummary, await self._call("GET", f"/flows/{chatflow_id}/summary", params=params))

    async def export_flow(self, chatflow_id: str, *, instance: str | None = None) -> "FlowDocument":
        """A flow with everything in it. `chatflow_id` is a UUID, here and below."""
        from flowise_dev_agent.contracts.flow_writes import FlowDocument

        params = {"instance": instance} if instance else {}
        return FlowDocument.model_validate(await self._call("GET", f"/flows/{chatflow_id}/export", params=params))

    async def flow_ops(self, chatflow_id: str, *, instance: str | None = None) -> "FlowOps":
        """The ops that build a flow."""
        from flowise_dev_agent.contracts.flow_writes import FlowOps

        params = {"instance": instance} if instance else {}
        return FlowOps.model_validate(await self._call("GET", f"/flows/{chatflow_id}/ops", params=params))

    async def import_flow(
        self, flow: "ImportFlow", *, instance: str | None = None, wait: float = 0, idempotency_key: str | None = None
    ) -> "FlowWriteResult":
        """Make a new flow; wait up to `wait` seconds until it is written, here and below."""
        return await self._write("/flows/import", flow, wait, idempotency_key, instance)

    async def apply_to_flow(
        self,
        chatflow_id: str,
        change: "ApplyToFlow",
        *,
        instance: str | None = None,
        wait: float = 0,
        idempotency_key: str | None = None,
    ) -> "FlowWriteResult":
        """Change a flow by ops, or replace it."""
        return await self._write(f"/flows/{chatflow_id}/apply", change, wait, idempotency_key, instance)

    async def promote_flow(
        self, chatflow_id: str, promotion: "PromoteFlow", *, wait: float = 0, idempotency_key: str | None = None
    ) -> "FlowWriteResult":
        """Copy a flow to another server, or over a flow there."""
        return await self._write(f"/flows/{chatflow_id}/promote", promotion, wait, idempotency_key)

    async def validate_flow(self, flow: "ValidateFlow", *, instance: str | None = None) -> "ValidatedFlow":
        """What the service finds wrong with a flow."""
        from flowise_dev_agent.contracts.flow_tests import ValidatedFlow

        params = {"instance": instance} if instance else {}
        body = flow.model_dump(mode="json", exclude_unset=True)
        return read_answer(ValidatedFlow, await self._call("POST", "/flows/validate", params=params, json=body))

    async def test_flow(
        self, test: "TestFlow", chatflow_id: str | None = None, *, instance: str | None = None, wait: float = 0
    ) -> "FlowTestView":
        """Test a flow on the server, or with a `TestFlowText` the one in it; wait up to `wait` seconds for the end."""
        from flowise_dev_agent.contracts.flow_tests import FlowTestView

        path = f"/flows/{chatflow_id}/test" if chatflow_id else "/flows/test"
        params = {"instance": instance} if instance else {}
        body = test.model_dump(mode="json", exclude_unset=True)
        view = read_answer(FlowTestView, await self._call("POST", path, params=params, json=body))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not view.is_over:
                    await asyncio.sleep(_POLL_SECS)
                    view = await self.flow_test(view.id)
        return view

    async def flow_test(self, test_id: UUID) -> "FlowTestView":
        """A test of a flow."""
        from flowise_dev_agent.contracts.flow_tests import FlowTestView

        return read_answer(FlowTestView, await self._call("GET", f"/tests/{test_id}"))

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> "CatalogueHits":
        """Node types and templates of a server by words."""
        from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits

        return read_answer(CatalogueHits, await self._find("/knowledge/search", query, instance, limit))

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
        from flowise_dev_agent.contracts.nodes import NodeTypePage

        given = {"q": query, "category": category, "instance": instance, "limit": limit, "cursor": cursor}
        params = {name: value for name, value in given.items() if value is not None}
        return read_answer(NodeTypePage, await self._call("GET", "/nodes", params=params))

    async def node_type(self, name: str, *, instance: str | None = None, examples: bool = False) -> "NodeTypeDetails":
        """A node type with its inputs, and with examples of its use if wanted."""
        from flowise_dev_agent.contracts.nodes import NodeTypeDetails

        params = ({"instance": instance} if instance else {}) | ({"examples": True} if examples else {})
        return read_answer(NodeTypeDetails, await self._call("GET", f"/nodes/{quote(name, safe='')}", params=params))

    async def node_options(self, name: str, param: str, *, instance: str | None = None) -> "NodeOptions":
        """What a param of a node type may be set to."""
        from flowise_dev_agent.contracts.nodes import NodeOptions

        params = {"instance": instance} if instance else {}
        path = f"/nodes/{quote(name, safe='')}/options"
        return read_answer(NodeOptions, await self._call("POST", path, params=params, json={"param": param}))

    async def _write(
        self, path: str, body: BaseModel, wait: float, idempotency_key: str | None, instance: str | None = None
    ) -> "FlowWriteResult":
        from flowise_dev_agent.contracts.flow_writes import FlowWriteResult

        # Whole, since an op says by a default which one it is.
        sent = body.model_dump(mode="json")
        return FlowWriteResult.model_validate(await self._post(path, sent, wait, idempotency_key, instance))

    async def flow_versions(
        self, chatflow_id: str, *, limit: int = 20, before: int | None = None
    ) -> "NumberedVersions":
        """The versions of a flow, v1, v2, ..., newest first."""
        from flowise_dev_agent.contracts.versions import NumberedVersions

        params = {"limit": limit} | ({"before": before} if before else {})
        return read_answer(NumberedVersions, await self._call("GET", f"/flows/{chatflow_id}/versions", params=params))

    async def compare_flow(self, chatflow_id: str, before: str, after: str = "live") -> "FlowChange":
        """Two versions of a flow, or one and the flow as it is now."""
        from flowise_dev_agent.contracts.change import FlowChange

        params = {"before": before, "after": after}
        return read_answer(FlowChange, await self._call("GET", f"/flows/{chatflow_id}/compare", params=params))

    async def versions(self, session_id: UUID) -> "VersionList":
        """What a session's flow held before and after each of its writes, oldest first."""
        from flowise_dev_agent.runtime.flows.version_history import VersionList

        return read_answer(VersionList, await self._call("GET", f"/sessions/{session_id}/versions"))

    async def version_diff(
        self, session_id: UUID, *, before: str | None = None, after: str | None = None
    ) -> "VersionDiff":
        """What differs between two versions of a session, by their labels; the first and the last when left out."""
        from flowise_dev_agent.runtime.flows.version_history import VersionDiff

        params = {name: label for name, label in {"from": before, "to": after}.items() if label is not None}
        return read_answer(VersionDiff, await self._call("GET", f"/sessions/{session_id}/diff", params=params))

    async def rollback(self, session_id: UUID, *, version: str | None = None) -> "RolledBack":
        """Write a version of a session back to its flow; the first one when none is named."""
        from flowise_dev_agent.runtime.flows.version_history import RolledBack

        params = {"version": version} if version else {}
        return read_answer(RolledBack, await self._call("POST", f"/sessions/{session_id}/rollback", params=params))
