"""Tools, resources and prompts over `/mcp` of the app on a real Postgres, by the SDK's client, with keys of scopes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.integration.api.test_keys import SHARED, Keys

SECRET = "ghp_Kq2LmP4vT7wRb1NcY5sHd8JfGzX9aE3uQo01"


@asynccontextmanager
async def agent(keys: Keys, *scopes: str) -> AsyncIterator[Client]:
    made = await keys.make(f"agent {uuid4().hex[:6]}", *scopes)
    async with (
        keys.client(made["key"]) as http,
        Client(streamable_http_client("http://localhost/mcp", http_client=http), read_timeout_seconds=30) as client,
    ):
        yield client


async def code_of(client: Client, tool: str, **arguments: Any) -> str | None:
    """The code of the tool's error, None without one."""
    result = await client.call_tool(tool, arguments)
    return json.loads(result.content[0].text)["code"] if result.is_error else None


async def read(client: Client, address: str) -> str:
    (content,) = (await client.read_resource(f"flowise-dev-agent://{address}")).contents
    assert content.mime_type == "text/markdown"
    return content.text


async def asked(keys: Keys, *words: str) -> dict[str, Any]:
    response = await keys.client(SHARED).post("/sessions", json={"requirement": " ".join(words)})
    assert response.status_code == 200, response.text
    return response.json()


async def test_plan_difference_and_summary_of_a_session_are_resources(keys: Keys) -> None:
    view = await asked(keys, "ask:plan", "ask:more")
    session = f"sessions/{view['thread_id']}"
    async with agent(keys, "read") as client:
        templates = {one.uri_template: one for one in (await client.list_resource_templates()).resource_templates}
        assert sorted(templates) == [
            "flowise-dev-agent://chatflows/{chatflow_id}",
            *(f"flowise-dev-agent://sessions/{{session_id}}/{name}" for name in ("difference", "plan", "summary")),
        ]
        assert all(one.title and one.description for one in templates.values())
        assert "no plan yet" in await read(client, f"{session}/plan")
        answer = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": "approve"}}
        resumed = await keys.client(SHARED).post(f"/sessions/{view['thread_id']}/resume", json=answer)
        assert resumed.status_code == 200, resumed.text
        assert (await read(client, f"{session}/plan")).startswith("plan")
        assert await read(client, f"{session}/difference") == "Nothing has changed yet."
        assert "ask:plan ask:more" in await read(client, f"{session}/summary")


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (f"sessions/{uuid4()}/plan", "session_not_found"),
        (f"sessions/{uuid4()}/summary", "session_not_found"),
        ("sessions/1/summary", "invalid_input"),
        ("nothing", "tool_error"),
    ],
    ids=["plan", "summary", "no uuid", "unknown"],
)
async def test_a_resource_that_cannot_be_read_is_an_error_with_its_code(keys: Keys, address: str, code: str) -> None:
    async with agent(keys, "read") as client:
        with pytest.raises(MCPError) as raised:
            await read(client, address)
    assert raised.value.error.data["code"] == code


async def test_a_key_of_another_owner_reads_no_resource_and_no_tool_of_the_session(keys: Keys) -> None:
    view = await asked(keys, "ask:q")
    made = await keys.make("Ada", "build", "approve", owner="sales")
    async with (
        keys.client(made["key"]) as http,
        Client(streamable_http_client("http://localhost/mcp", http_client=http), read_timeout_seconds=30) as client,
    ):
        for name in ("plan", "difference", "summary"):
            with pytest.raises(MCPError) as raised:
                await read(client, f"sessions/{view['thread_id']}/{name}")
            assert raised.value.error.data["code"] == "session_not_found"
        for tool in ("get_session", "list_versions", "compare_versions", "cancel_session", "get_plan"):
            assert await code_of(client, tool, session_id=view["thread_id"]) == "session_not_found"


async def test_what_a_key_may_do_over_mcp_is_what_its_scopes_say(keys: Keys) -> None:
    session = (await asked(keys, "ask:q"))["thread_id"]
    flow = str(uuid4())
    #: By tool: arguments and the scopes of which one opens it.
    needs: dict[str, tuple[dict[str, Any], set[str]]] = {
        "start_session": ({"requirement": "ask:q"}, {"build"}),
        "cancel_session": ({"session_id": str(uuid4())}, {"build", "approve"}),
        "export_chatflow": ({"chatflow_id": flow}, {"build"}),
        "check_flow": ({"flow_data": "{}"}, {"build"}),
        "test_flow": ({"chatflow_id": flow}, {"build"}),
        "get_session": ({"session_id": session}, {"read", "build", "approve"}),
        "list_versions": ({"session_id": session}, {"read", "build", "approve"}),
        "list_chatflow_versions": ({"chatflow_id": flow}, {"read", "build", "approve"}),
        "get_memory": ({}, {"read", "build", "approve"}),
        "add_memory": ({"text": "Answers are short"}, {"build"}),
        "delete_memory": ({"memory_id": 1}, {"build"}),
    }
    for scope in ("read", "build", "approve"):
        async with agent(keys, scope) as client:
            for tool, (arguments, scopes) in needs.items():
                refused = await code_of(client, tool, **arguments) == "scope_missing"
                assert refused == (scope not in scopes), (scope, tool)


async def test_a_rollback_over_mcp_needs_the_scope_and_a_person(keys: Keys) -> None:
    session = (await asked(keys, "end:accepted"))["thread_id"]
    async with agent(keys, "approve") as client:
        assert await code_of(client, "rollback", session_id=session) == "needs_person"
    async with agent(keys, "read") as client:
        assert await code_of(client, "rollback", session_id=session) == "needs_person"


async def test_prompts_name_tools_that_exist_and_hold_what_the_person_said(keys: Keys) -> None:
    async with agent(keys, "read") as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = (await client.list_prompts()).prompts
        assert {prompt.name for prompt in prompts} == {
            *("build_chatflow", "change_chatflow", "explain_chatflow"),
            *("test_chatflow", "review_session", "undo_change"),
        }
        for prompt in prompts:
            given = {argument.name: f"<{argument.name} of mine>" for argument in prompt.arguments or []}
            (message,) = (await client.get_prompt(prompt.name, given)).messages
            assert all(value in message.content.text for value in given.values())
            named = {word.strip(".,;:()") for word in message.content.text.split() if "_" in word}
            assert named, prompt.name
            assert named <= tools | set(given), named - tools
            assert prompt.title
            assert prompt.description


@pytest.mark.parametrize(
    ("prompt", "given", "code"),
    [
        ("build_chatflow", {"requirement": f"A bot with the key {SECRET}"}, "secret_in_text"),
        # Too long for an id.
        ("review_session", {"session": "a word of mine " * 5}, "invalid_request"),
        ("review_session", {}, "invalid_request"),
    ],
)
async def test_a_refused_prompt_repeats_nothing_to_client_or_log(
    keys: Keys, caplog: pytest.LogCaptureFixture, prompt: str, given: dict[str, str], code: str
) -> None:
    async with agent(keys, "read") as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(prompt, given)
    assert refused.value.error.data["code"] == code
    for told in (repr(refused.value.error), caplog.text):
        assert SECRET not in told
        assert "a word of mine" not in told


async def test_a_call_without_a_key_reaches_neither_tools_nor_resources(keys: Keys) -> None:
    http = keys.client("wrong")
    for method in ("tools/list", "resources/templates/list", "prompts/list"):
        body = {"jsonrpc": "2.0", "id": 1, "method": method}
        response: httpx2.Response = await http.post("/mcp", json=body)
        assert response.status_code == 401
