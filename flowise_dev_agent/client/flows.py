"""Calls about flows: find, read, write, check, test and ask them."""

import asyncio
from contextlib import suppress
from typing import Final
from uuid import UUID

from pydantic import BaseModel

from flowise_dev_agent.client.transport import Http, given, read_answer
from flowise_dev_agent.schemas.chat import ChatAnswer, ChatQuestion
from flowise_dev_agent.schemas.fleet import FleetPage, FleetState
from flowise_dev_agent.schemas.flow_tests import (
    FlowTestView,
    PutTestSet,
    TestFlow,
    TestMark,
    TestSetView,
    ValidatedFlow,
    ValidateFlow,
)
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowDocument,
    FlowOps,
    FlowWriteResult,
    ImportFlow,
    PromoteFlow,
    ReadExport,
    ReadFlows,
    RestoreVersion,
)
from flowise_dev_agent.schemas.flows import FlowPage, FlowPreview, FlowSummary, FlowView, PreviewFlow
from flowise_dev_agent.schemas.guards import GuardSettings, GuardView
from flowise_dev_agent.schemas.reach import FlowReach
from flowise_dev_agent.schemas.turns import Conversation
from flowise_dev_agent.schemas.verdict import Trace, Trial

_POLL_SECS: Final = 1.0


class FlowCalls(Http):
    """Calls about flows.

    `chatflow_id` is a UUID, `instance` the service's name of a Flowise server; None is the default one.
    """

    async def find_flows(
        self,
        query: str = "",
        *,
        instance: str | None = None,
        drafts: bool = False,
        limit: int = 20,
        cursor: str | None = None,
    ) -> FlowPage:
        """Search the flows of a server by words; without any, list the last changed ones."""
        params = {"query": query, "instance": instance, "drafts": "true" if drafts else None}
        return await self._get(FlowPage, "/flows", **params, limit=limit, cursor=cursor)

    async def flow_reach(self, chatflow_id: str, *, instance: str | None = None) -> FlowReach:
        """The ways by which people reach a flow; `apply_to_flow` with `reach` changes it."""
        return await self._get(FlowReach, f"/flows/{chatflow_id}/reach", instance=instance)

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> FlowSummary:
        """Read a flow in words."""
        return await self._get(FlowSummary, f"/flows/{chatflow_id}/summary", instance=instance)

    async def flow_graph(self, chatflow_id: str, *, instance: str | None = None) -> FlowView:
        """Read a flow for drawing."""
        return await self._get(FlowView, f"/flows/{chatflow_id}/graph", instance=instance)

    async def flow_conversation(
        self, chatflow_id: str, *, instance: str | None = None, limit: int = 10, cursor: str | None = None
    ) -> Conversation:
        """Read the sessions on a flow as one conversation, newest last."""
        path = f"/flows/{chatflow_id}/conversation"
        return await self._get(Conversation, path, instance=instance, limit=limit, cursor=cursor)

    async def export_flow(self, chatflow_id: str, *, instance: str | None = None) -> FlowDocument:
        """Read the complete flow."""
        return await self._get(FlowDocument, f"/flows/{chatflow_id}/export", instance=instance)

    async def flow_ops(self, chatflow_id: str, *, instance: str | None = None) -> FlowOps:
        """Read the ops that build a flow."""
        return await self._get(FlowOps, f"/flows/{chatflow_id}/ops", instance=instance)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def read_flows(self, file: ReadExport) -> ReadFlows:
        """Read the flows of a file that Flowise wrote, as bodies of `import_flow`; nothing is written."""
        body = file.model_dump(mode="json")
        return read_answer(ReadFlows, await self._call("POST", "/flows/import/read", json=body, repeatable=True))

    async def import_flow(
        self, flow: ImportFlow, *, instance: str | None = None, wait: float = 0, idempotency_key: str | None = None
    ) -> FlowWriteResult:
        """Create a flow; wait up to `wait` seconds for the write, as do the calls below."""
        return await self._write("/flows/import", flow, wait, idempotency_key, instance)

    async def apply_to_flow(
        self,
        chatflow_id: str,
        change: ApplyToFlow,
        *,
        instance: str | None = None,
        wait: float = 0,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> FlowWriteResult:
        """Change a flow by ops, or replace it; with `if_match` (`FlowDocument.etag`) only if it is unchanged."""
        return await self._write(f"/flows/{chatflow_id}/apply", change, wait, idempotency_key, instance, if_match)

    async def promote_flow(
        self,
        chatflow_id: str,
        promotion: PromoteFlow,
        *,
        wait: float = 0,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> FlowWriteResult:
        """Copy a flow to another server, or over a flow there; with `if_match` only if that is unchanged."""
        return await self._write(f"/flows/{chatflow_id}/promote", promotion, wait, idempotency_key, if_match=if_match)

    async def export_version(self, chatflow_id: str, version: str) -> FlowDocument:
        """Get a version of a flow, such as `v4`, with its text byte for byte."""
        return await self._get(FlowDocument, f"/flows/{chatflow_id}/versions/{version}/export")

    async def fleet(
        self,
        *,
        instance: str | None = None,
        state: FleetState | None = None,
        owner: str | None = None,
        query: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> FleetPage:
        """List the flows of a server with their states, changed last first."""
        given = {"instance": instance, "state": state, "owner": owner, "query": query, "limit": limit, "cursor": cursor}
        return await self._get(FleetPage, "/fleet", **{name: value for name, value in given.items() if value})

    async def fleet_export(
        self,
        *,
        instance: str | None = None,
        state: FleetState | None = None,
        owner: str | None = None,
        query: str | None = None,
    ) -> str:
        """Read the same as CSV, of at most 20 000 flows."""
        asked = given({"instance": instance, "state": state, "owner": owner, "query": query})
        return (await self._send("GET", "/fleet/export", params=asked)).text

    async def restore_version(
        self,
        chatflow_id: str,
        version: str,
        *,
        wait: float = 0,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> FlowWriteResult:
        """Write a version back, such as `v4`, also one that no session wrote; a deleted flow gets a new id.

        With `if_match` only if the flow is unchanged.
        """
        path = f"/flows/{chatflow_id}/versions/{version}/restore"
        return await self._write(path, RestoreVersion(), wait, idempotency_key, if_match=if_match)

    async def _write(
        self,
        path: str,
        body: BaseModel,
        wait: float,
        idempotency_key: str | None,
        instance: str | None = None,
        if_match: str | None = None,
    ) -> FlowWriteResult:
        # With defaults: the type of an op is one.
        sent = body.model_dump(mode="json")
        return read_answer(FlowWriteResult, await self._post(path, sent, wait, idempotency_key, instance, if_match))

    # --- checks, tests and conversations -----------------------------------------------------------------------------

    async def preview_flow(self, flow: PreviewFlow) -> FlowPreview:
        """Draw a flow as ops make it; nothing is stored."""
        body = flow.model_dump(mode="json", exclude_unset=True)
        return read_answer(FlowPreview, await self._call("POST", "/flows/preview", json=body, repeatable=True))

    async def validate_flow(self, flow: ValidateFlow, *, instance: str | None = None) -> ValidatedFlow:
        """Validate a flow; nothing is written."""
        body = flow.model_dump(mode="json", exclude_unset=True)
        # A repetition changes nothing.
        found = await self._call(
            "POST", "/flows/validate", params=given({"instance": instance}), json=body, repeatable=True
        )
        return read_answer(ValidatedFlow, found)

    async def test_flow(
        self, test: TestFlow, chatflow_id: str | None = None, *, instance: str | None = None, wait: float = 0
    ) -> FlowTestView:
        """Test a flow on the server, or the flow in a `TestFlowText`; wait up to `wait` seconds for the end."""
        path = f"/flows/{chatflow_id}/test" if chatflow_id else "/flows/test"
        body = test.model_dump(mode="json", exclude_unset=True)
        answer = await self._call("POST", path, params=given({"instance": instance}), json=body)
        view = read_answer(FlowTestView, answer)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not view.is_over:
                    await asyncio.sleep(_POLL_SECS)
                    view = await self.flow_test(view.id)
        return view

    async def guard(self, chatflow_id: str, *, instance: str | None = None) -> GuardView:
        """Read the state and the results of a guarded flow."""
        return await self._get(GuardView, f"/flows/{chatflow_id}/guard", instance=instance)

    async def put_guard(self, chatflow_id: str, settings: GuardSettings, *, instance: str | None = None) -> GuardView:
        """Guard a flow, or change how."""
        body = settings.model_dump(mode="json", exclude_unset=True)
        path = f"/flows/{chatflow_id}/guard"
        return read_answer(GuardView, await self._call("PUT", path, params=given({"instance": instance}), json=body))

    async def delete_guard(self, chatflow_id: str, *, instance: str | None = None) -> None:
        """Stop guarding a flow."""
        await self._call("DELETE", f"/flows/{chatflow_id}/guard", params=given({"instance": instance}))

    async def test_set(self, chatflow_id: str, *, form: str = "json", instance: str | None = None) -> TestSetView:
        """Read the test set of a flow, also as a file in the format `form`: json, yaml or csv."""
        return await self._get(TestSetView, f"/flows/{chatflow_id}/tests", format=form, instance=instance)

    async def put_test_set(self, chatflow_id: str, tests: PutTestSet, *, instance: str | None = None) -> TestSetView:
        """Replace the test set of a flow."""
        body = tests.model_dump(mode="json", exclude_unset=True)
        path = f"/flows/{chatflow_id}/tests"
        return read_answer(TestSetView, await self._call("PUT", path, params=given({"instance": instance}), json=body))

    async def mark_test(self, session_id: UUID, number: int, mark: TestMark) -> Trial:
        """Judge a test of a session (`result.tests`, from 1), and take it into the flow's test set."""
        body = mark.model_dump(mode="json", exclude_unset=True)
        return read_answer(Trial, await self._call("POST", f"/sessions/{session_id}/tests/{number}/verdict", json=body))

    async def flow_test(self, test_id: UUID) -> FlowTestView:
        """Read a test of a flow."""
        return await self._get(FlowTestView, f"/tests/{test_id}")

    async def test_trace(self, test_id: UUID, sha256: str) -> Trace:
        """Read the trace of a trial of such a test (`trace_sha256`)."""
        return await self._get(Trace, f"/tests/{test_id}/traces/{sha256}")

    async def ask_flow(self, chatflow_id: str, question: ChatQuestion, *, instance: str | None = None) -> ChatAnswer:
        """Ask a flow, fill in its form, or answer its human input step."""
        body = question.model_dump(mode="json", exclude_unset=True)
        params = given({"instance": instance})
        return read_answer(ChatAnswer, await self._call("POST", f"/flows/{chatflow_id}/chat", params=params, json=body))

    async def forget_chat(self, chatflow_id: str, chat_id: str, *, instance: str | None = None) -> None:
        """Delete such a conversation from Flowise."""
        await self._call("DELETE", f"/flows/{chatflow_id}/chat/{chat_id}", params=given({"instance": instance}))
