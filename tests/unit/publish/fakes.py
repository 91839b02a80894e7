"""A Flowise and an intent log in memory, with the failures that matter for writing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

from flowise_dev_agent.errors import FlowiseError, FlowiseNotFoundError
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate, ChatflowPage, Credential, NodeList
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import OptionEntry
from flowise_dev_agent.persistence.intents import WriteIntent


class FakeFlowise:
    """`fail[method]` is called before ("before") or after ("after") the effect and may raise."""

    def __init__(self) -> None:
        self.flows: dict[str, Chatflow] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.calls: list[str] = []
        self._clock = 0

    def _tick(self) -> str:
        self._clock += 1
        return f"2026-01-01T00:00:{self._clock:02d}.000Z"

    def later(self, seconds: int) -> None:
        """Let time pass."""
        self._clock += seconds

    def _run(self, name: str, table: dict[str, Callable[[], None]]) -> None:
        hook = table.pop(name, None)
        if hook:
            hook()

    async def create_chatflow(self, chatflow: ChatflowCreate) -> Chatflow:
        self.calls.append("create")
        self._run("create", self.before)
        row = self.add(chatflow)
        self._run("create", self.after)
        return row

    def add(self, chatflow: ChatflowCreate) -> Chatflow:
        """A new row, made by whomever."""
        now = self._tick()
        row = Chatflow(id=str(uuid4()), created_date=now, updated_date=now, **chatflow.model_dump())
        self.flows[row.id] = row
        return row

    async def update_chatflow(self, chatflow_id: str, **fields: Any) -> Chatflow:
        self.calls.append("update")
        self._run("update", self.before)
        row = await self.get_chatflow(chatflow_id)
        self.flows[chatflow_id] = row.model_copy(update={**fields, "updated_date": self._tick()})
        self._run("update", self.after)
        return self.flows[chatflow_id]

    async def delete_chatflow(self, chatflow_id: str) -> None:
        self.calls.append("delete")
        self._run("delete", self.before)
        if self.flows.pop(chatflow_id, None) is None:
            raise FlowiseNotFoundError("no such flow")
        self._run("delete", self.after)

    async def get_chatflow(self, chatflow_id: str) -> Chatflow:
        self._run("get", self.before)
        if chatflow_id not in self.flows:
            raise FlowiseNotFoundError("no such flow")
        return self.flows[chatflow_id]

    async def list_chatflows(self, page: int = 1, limit: int = 20) -> ChatflowPage:
        rows = sorted(self.flows.values(), key=lambda row: row.updated_date, reverse=True)
        return ChatflowPage(data=rows[(page - 1) * limit : page * limit], total=len(rows))

    async def find_chatflow_by_category_tag(self, tag: str) -> list[Chatflow]:
        rows = [row for row in self.flows.values() if tag in row.tags]
        return sorted(rows, key=lambda row: row.updated_date, reverse=True)

    def lose(self, error: type[FlowiseError]) -> Callable[[], None]:
        """A hook that raises: the answer is lost."""

        def hook() -> None:
            raise error("lost")

        return hook


class FakeServer(FakeFlowise):
    """A Flowise with the committed node types and one credential, called `main`."""

    def __init__(self, catalogue: NodeStore, credential_id: str, endpoint: str = "http://flowise.test") -> None:
        super().__init__()
        self.endpoint = endpoint
        self._catalogue = catalogue
        self._credential = Credential(id=credential_id, name="main", credential_name="openAIApi")

    async def version(self) -> str:
        return "3.1.4"

    async def list_nodes(self, etag: str | None = None) -> NodeList:
        if etag:
            return NodeList((), etag, unchanged=True)
        return NodeList(tuple(cast(Any, dict(schema.raw)) for schema in self._catalogue.schemas.values()), "committed")

    async def list_variables(self) -> list[dict[str, Any]]:
        return []

    async def list_document_stores(self) -> list[Any]:
        return []

    async def list_tools(self) -> list[dict[str, Any]]:
        return []

    async def node_options(self, name: str, method: str) -> list[OptionEntry]:
        return []

    async def list_credentials(self) -> list[Credential]:
        return [self._credential]


class FakeVersions:
    """What would be kept, newest last, as (chatflow id, reason, text); the same text twice in a row counts once."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []

    async def record(self, session_id: UUID, *, chatflow_id: str, flow_data: str, reason: str, **_: Any) -> None:
        last = next((text for id_, _, text in reversed(self.rows) if id_ == chatflow_id), None)
        if last != flow_data:
            self.rows.append((chatflow_id, reason, flow_data))


class FakeIntents:
    """Rows by key, as the table keeps them."""

    def __init__(self) -> None:
        self.rows: dict[UUID, WriteIntent] = {}

    async def open(self, lease: Any, *, key: UUID, **values: Any) -> WriteIntent:
        earlier = self.rows.get(key)
        creates = [row for row in self.rows.values() if (row.op, row.tag) == ("create", values["tag"])]
        if earlier is None:
            self.rows[key] = WriteIntent(key=key, status="open", result=None, created_at=datetime.now(UTC), **values)
        elif earlier.status != "done":
            self.rows[key] = replace(earlier, status="open", result=None, unsure=True)
        is_new = earlier is None or not earlier.may_have_landed
        return replace(self.rows[key], is_new=is_new, creates=creates)

    async def finish(self, lease: Any, key: UUID, *, status: Any, result: dict[str, Any]) -> None:
        write = self.rows[key]
        if write.status != "done":
            self.rows[key] = replace(write, status=status, result=result)
        for row in list(self.rows.values()):
            same = (row.op, row.target_id, row.payload_sha256) == (write.op, write.target_id, write.payload_sha256)
            if status == "done" and row.status == "open" and write.target_id and same:
                self.rows[row.key] = replace(row, status=status, result=result)

    async def list_for(self, session_id: UUID) -> list[WriteIntent]:
        return [row for row in self.rows.values() if row.session_id == session_id]
