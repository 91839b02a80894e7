"""The part of the Flowise REST API that this product uses. Every method has a time limit and raises `FlowiseError`s."""

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any, Self, cast

from pydantic import JsonValue, TypeAdapter

from flowise_dev_agent.flowise.calls import segment
from flowise_dev_agent.flowise.document_stores import DocumentStoreCalls
from flowise_dev_agent.flowise.models import (
    Chatflow,
    ChatflowCreate,
    ChatflowPage,
    ChatflowUpdate,
    Credential,
    CredentialType,
    HumanAnswer,
    ImageUpload,
    MadeRow,
    NodeList,
    Prediction,
    TemplateRow,
    ToolRow,
)
from flowise_dev_agent.flowise.responses import read_json
from flowise_dev_agent.patch import Inputs, NodeType, OptionEntry, Values
from flowise_dev_agent.schemas.base import JsonMapping, JsonObject

_SCAN_PAGE = 50
_CREDENTIALS = TypeAdapter(list[Credential])
_CREDENTIAL_TYPES = TypeAdapter(list[CredentialType])


class FlowiseClient(DocumentStoreCalls):
    """One Flowise server. Share one object per server: it pools connections.

    Timeouts are seconds for a whole call; `prediction_timeout` is for `predict`. Reads are tried up to three times,
    writes and predictions once. `on_call` receives the method and route of every request sent ("GET /chatflows/:id").
    """

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"FlowiseClient({self.endpoint!r})"

    # --- the server ---------------------------------------------------------------------------------------------

    async def version(self) -> str:
        """Flowise's version, e.g. "3.1.4"; needs no API key."""
        body = await self._get("/version")
        if not isinstance(body, dict) or not isinstance(body.get("version"), str):
            raise self._odd("GET /version", "no version")
        return body["version"]

    # --- chatflows ----------------------------------------------------------------------------------------------

    async def list_chatflows(self, page: int = 1, limit: int = 20) -> ChatflowPage:
        """One page (from 1) of all chatflows, last updated first, with their flow data."""
        return self._parse(
            ChatflowPage, await self._get("/chatflows", params={"page": page, "limit": limit}), "GET /chatflows"
        )

    async def iter_chatflows(self, max_pages: int | None = 50) -> AsyncIterator[Chatflow]:
        """All chatflows, last updated first, 50 a page; each id once even when rows move between pages."""
        seen: set[str] = set()
        for page in count(1) if max_pages is None else range(1, max_pages + 1):
            rows = await self.list_chatflows(page, _SCAN_PAGE)
            for row in rows.data:
                if row.id not in seen:
                    seen.add(row.id)
                    yield row
            if page * _SCAN_PAGE >= rows.total or not rows.data:
                return

    async def flows_with(self, text: str) -> list[str]:
        """The names of the chatflows whose nodes hold this text, such as the id of a document store: Flowise itself
        counts only the flows that read a store without searching it."""
        return [row.name async for row in self.iter_chatflows(None) if text in row.flow_data]

    async def find_chatflow_by_category_tag(self, tag: str) -> list[Chatflow]:
        """The chatflows that carry exactly this tag in `category`, last updated first."""
        return [row async for row in self.iter_chatflows(None) if tag in row.tags]

    async def get_chatflow(self, chatflow_id: str) -> Chatflow:
        """One chatflow; FlowiseNotFoundError when there is none, FlowiseRejectedError when the id is not a UUID."""
        path = f"/chatflows/{segment(chatflow_id)}"
        return self._parse(Chatflow, await self._get(path, route="/chatflows/:id"), f"GET {path}")

    async def create_chatflow(self, chatflow: ChatflowCreate) -> Chatflow:
        """Create a chatflow and return the row. Sent once: after an error look for the tag, the row may exist."""
        body = chatflow.model_dump(by_alias=True, exclude_none=True)
        answer = await self._transport.call("POST", "/chatflows", total_secs=self._timeout, body=body)
        return self._parse(Chatflow, answer, "POST /chatflows")

    async def update_chatflow(self, chatflow_id: str, **fields: Any) -> Chatflow:
        """Change the given columns (names of `ChatflowUpdate`) and return the whole row. Sent once."""
        body = ChatflowUpdate(**fields).model_dump(by_alias=True, exclude_unset=True)
        path = f"/chatflows/{segment(chatflow_id)}"
        answer = await self._transport.call("PUT", path, total_secs=self._timeout, route="/chatflows/:id", body=body)
        return self._parse(Chatflow, answer, f"PUT {path}")

    async def delete_chatflow(self, chatflow_id: str) -> None:
        """Delete a chatflow; FlowiseNotFoundError when there is none. Sent once."""
        path = f"/chatflows/{segment(chatflow_id)}"
        await self._transport.call("DELETE", path, total_secs=self._timeout, route="/chatflows/:id")

    # --- predictions --------------------------------------------------------------------------------------------

    async def predict(
        self,
        chatflow_id: str,
        question: str | None = None,
        *,
        session_id: str,
        form: JsonObject | None = None,
        human: HumanAnswer | None = None,
        files: Mapping[str, str] | None = None,
        images: Sequence[ImageUpload] = (),
        timeout: float | None = None,  # noqa: ASYNC109 - expiry becomes an error that says it is ambiguous
    ) -> Prediction:
        """Ask the flow: a question, the fields of its form, or a person's decision about a step that waits for one.

        `session_id` identifies its memory; `files` are texts by their file names, read with the question, and `images`
        what the flow's models see of it. Sent once; FlowiseTimeoutError after `timeout` seconds (default and most:
        the client's `prediction_timeout`), while the flow may still be running.
        """
        body: JsonObject = {"chatId": session_id, "overrideConfig": {"sessionId": session_id}, "streaming": False}
        if question is not None:
            body["question"] = question
        if form is not None:
            body["form"] = form
        sent: list[JsonValue] = [
            {"type": "file:full", "name": name, "mime": "text/plain", "data": text}
            for name, text in (files or {}).items()
        ]
        for one in images:
            url = f"data:{one.media_type};base64,{base64.b64encode(one.content).decode()}"
            sent.append({"type": "file", "name": one.name, "mime": one.media_type, "data": url})
        if sent:
            body["uploads"] = sent
        return await self._ask(f"/prediction/{segment(chatflow_id)}", "/prediction/:id", body, human, timeout)

    async def call_webhook(
        self,
        chatflow_id: str,
        payload: JsonObject,
        *,
        session_id: str,
        query: Mapping[str, str | int] | None = None,
        human: HumanAnswer | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - see `predict`
    ) -> Prediction:
        """Start a flow by its webhook (POST, JSON), or go on with it after a person's decision. See `predict`."""
        path, body = f"/webhook/{segment(chatflow_id)}", {**payload, "chatId": session_id}
        return await self._ask(path, "/webhook/:id", body, human, timeout, query)

    async def executed_steps(self, chatflow_id: str, session_id: str) -> list[JsonObject]:
        """The steps of the last run of an agentflow in this session: a run that failed has them nowhere else.

        The API key needs `executions:view`.
        """
        found = await self._get("/executions", params={"agentflowId": chatflow_id, "sessionId": session_id, "limit": 1})
        rows = found.get("data") if isinstance(found, dict) else None
        if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
            return []
        steps = rows[0].get("executionData")
        try:
            steps = json.loads(steps) if isinstance(steps, str) else steps
        except ValueError:
            return []
        return [item for item in steps if isinstance(item, dict)] if isinstance(steps, list) else []

    async def _ask(
        self,
        path: str,
        route: str,
        body: JsonObject,
        human: HumanAnswer | None,
        timeout: float | None,  # noqa: ASYNC109 - see `predict`
        params: Mapping[str, str | int] | None = None,
    ) -> Prediction:
        if human is not None:
            body = {**body, "humanInput": human.model_dump(by_alias=True)}
        seconds = min(timeout or self._prediction_timeout, self._prediction_timeout)
        answer = await self._transport.call("POST", path, total_secs=seconds, route=route, body=body, params=params)
        return self._parse(Prediction, answer, f"POST {path}")

    async def delete_messages(self, chatflow_id: str, session_id: str) -> None:
        """Forget the conversation of this session: the stored messages and the flow's own memory of it."""
        await self._transport.call(
            "DELETE",
            f"/chatmessage/{segment(chatflow_id)}",
            total_secs=self._timeout,
            route="/chatmessage/:id",
            params={"sessionId": session_id},
        )

    # --- what flows are made of ---------------------------------------------------------------------------------

    async def list_nodes(self, etag: str | None = None) -> NodeList:
        """The raw schemas of all node types (about 300, 700 kB), or `unchanged` since the list with this ETag."""
        response, content = await self._transport.send(
            "GET", "/nodes", total_secs=self._timeout, headers={"If-None-Match": etag} if etag else None
        )
        if response.status_code == 304:
            return NodeList((), etag, unchanged=True)
        body = read_json(response, content, call="GET /nodes", endpoint=self.endpoint)
        return NodeList(tuple(self._rows(body, "GET /nodes")), response.headers.get("etag"))

    async def get_node(self, name: str) -> NodeType:
        """The raw schema of one node type; FlowiseNotFoundError when there is none of this name (case matters)."""
        path = f"/nodes/{segment(name)}"
        body = await self._get(path, route="/nodes/:name")
        if not isinstance(body, dict):
            raise self._odd(f"GET {path}", "no node")
        return cast("NodeType", body)

    async def node_icon(self, name: str) -> tuple[str, bytes]:
        """Media type and content of a node type's icon; FlowiseServerError for a type without one."""
        path, route = f"/node-icon/{segment(name)}", "/node-icon/:name"
        response, content = await self._transport.send("GET", path, total_secs=self._timeout, route=route)
        return response.headers.get("content-type", "").partition(";")[0].strip(), content

    async def node_options(
        self,
        name: str,
        method: str,
        *,
        credential_id: str | None = None,
        inputs: Values | None = None,
    ) -> list[OptionEntry]:
        """The options that a parameter of type asyncOptions loads by `method`; empty when the method is unknown."""
        body: Inputs = {"loadMethod": method, "inputs": dict(inputs or {})}
        if credential_id:
            body["credential"] = credential_id
        path = f"/node-load-method/{segment(name)}"
        answer = await self._transport.call(
            "POST", path, total_secs=self._timeout, route="/node-load-method/:name", body=body
        )
        return self._rows(answer, f"POST {path}")

    async def run_function(self, code: str, variables: JsonMapping) -> JsonValue:
        """Run JavaScript in Flowise's sandbox and return what it returns; `variables` are `$name` in the code.

        FlowiseServerError with the message of the code when it throws. Sent once.
        """
        body = {"javascriptFunction": code, "functionInputVariables": dict(variables)}
        return await self._transport.call("POST", "/node-custom-function", total_secs=self._timeout, body=body)

    async def list_credentials(self) -> list[Credential]:
        """All credentials: id, name and type, never a secret."""
        return self._parse(_CREDENTIALS, await self._get("/credentials"), "GET /credentials")

    async def list_credential_types(self) -> list[CredentialType]:
        """All credential types that the server knows."""
        path = "/components-credentials"
        return self._parse(_CREDENTIAL_TYPES, await self._get(path), f"GET {path}")

    async def create_credential(self, *, name: str, type_: str, fields: Mapping[str, str]) -> Credential:
        """Create a credential; the server encrypts it. Sent once: after an error it may exist."""
        body = {"name": name, "credentialName": type_, "plainDataObj": dict(fields)}
        answer = await self._transport.call("POST", "/credentials", total_secs=self._timeout, body=body)
        return self._parse(Credential, answer, "POST /credentials")

    async def list_templates(self) -> list[TemplateRow]:
        """The marketplace templates, raw. Their ids change with every call."""
        return self._rows(await self._get("/marketplaces/templates"), "GET /marketplaces/templates")

    async def list_tools(self) -> list[ToolRow]:
        """The custom tools, raw."""
        return self._rows(await self._get("/tools"), "GET /tools")

    async def create_tool(self, name: str, columns: Mapping[str, str]) -> str:
        """Create a custom tool; its id. Sent once. Names need not be unique, and an id of the client's is ignored."""
        body = {
            "description": "",
            "color": "#7e57c2",
            "iconSrc": "",
            "schema": "[]",
            "func": "",
            **columns,
            "name": name,
        }
        return await self._made("/tools", body)

    async def delete_tool(self, tool_id: str) -> None:
        """Delete a custom tool, also while flows use it; one that is gone is no error. Sent once."""
        path = f"/tools/{segment(tool_id)}"
        await self._transport.call("DELETE", path, total_secs=self._timeout, route="/tools/:id")

    async def create_variable(self, name: str, columns: Mapping[str, str]) -> str:
        """Create a variable, which flows call by its name; its id. Sent once."""
        return await self._made("/variables", {"value": "", "type": "static", **columns, "name": name})

    async def _made(self, path: str, body: JsonMapping) -> str:
        answer = await self._transport.call("POST", path, total_secs=self._timeout, body=dict(body))
        return self._parse(MadeRow, answer, f"POST {path}").id

    async def list_variables(self) -> list[JsonObject]:
        """The variables, raw."""
        return self._rows(await self._get("/variables"), "GET /variables")
