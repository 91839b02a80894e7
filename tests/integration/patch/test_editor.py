"""Compiled flows in Flowise's own editor, in a real browser: drawn whole, without a warning, and saved as they were."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import Chatflow, ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, compile_ops, errors, validate_flow
from tests.fixtures.browser import complaints
from tests.fixtures.editor_flows import AGENTFLOWS, CHATFLOWS
from tests.fixtures.golden_flows import agentflow, chat_with_window_memory, rag, tool_agent

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

Build = Callable[[Mapping[str, str]], list[PatchOp]]
FLOWS: dict[str, Build] = {
    **{flow.__name__: flow for flow in (chat_with_window_memory, tool_agent, rag, agentflow)},
    **CHATFLOWS,
    **AGENTFLOWS,
}
#: What the editor measures or remembers by itself.
_OWN = frozenset({"width", "height", "viewport", "selected", "dragging", "style"})
#: The orange triangle on a node: outdated or deprecated.
_WARNING = ".react-flow__node svg.tabler-icon-alert-triangle"


@dataclass(frozen=True)
class Editor:
    """One signed-in page, what it complains about, and the API client beside it."""

    page: Page
    heard: list[str]
    client: FlowiseClient
    schemas: Schemas
    bind: Mapping[str, str]

    async def open(self, name: str, flow_data: str, kind: str) -> Chatflow:
        """Store the flow and go to its canvas."""
        flow = await self.client.create_chatflow(ChatflowCreate(name=name, flow_data=flow_data, type=kind))
        self.heard.clear()
        canvas = "v2/agentcanvas" if kind == "AGENTFLOW" else "canvas"
        await self.page.goto(f"/{canvas}/{flow.id}", wait_until="commit")
        return flow


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def editor(browser: Browser, flowise: FlowiseAccess) -> AsyncIterator[Editor]:
    """Signed in as the person that the devkit registered."""
    window = await browser.new_context(base_url=flowise.endpoint)
    page = await window.new_page()
    heard = complaints(page)
    await page.goto("/signin")
    await page.fill("input[name=username]", flowise.email)
    await page.fill("input[name=password]", flowise.password.get_secret_value())
    await page.click("button[type=submit]")
    await page.wait_for_url(lambda url: not url.endswith("/signin"))
    async with FlowiseClient(flowise.endpoint, flowise.api_key) as client:
        tool = await _tool(window)
        schemas = (await NodeStore.from_server(client)).schemas
        before = {row.id async for row in client.iter_chatflows()}
        yield Editor(page, heard, client, schemas, {**flowise.credentials, "tool": tool})
        for row in [row async for row in client.iter_chatflows() if row.id not in before]:
            await client.delete_chatflow(row.id)
    await window.close()


async def _tool(window: BrowserContext) -> str:
    """A custom tool of the person's own, made as the editor makes it."""
    body = {"name": "weather", "description": "Tells the weather", "color": "#000", "schema": "[]", "func": "return 1"}
    answer = await window.request.post("/api/v1/tools", data=body, headers={"x-request-from": "internal"})
    return str((await answer.json())["id"])


@pytest.mark.parametrize("name", FLOWS)
async def test_a_compiled_flow_opens_whole_in_the_editor_and_is_saved_as_it_was(editor: Editor, name: str) -> None:
    result = compile_ops(GraphIR.empty(), FLOWS[name](editor.bind), editor.schemas)
    kind = result.graph.kind
    assert errors(validate_flow(result.flow_data, schemas=editor.schemas, credentials=None, kind=kind)) == []
    page = editor.page

    flow = await editor.open(f"editor {name}", result.flow_data, kind)
    await _drawn(page, result.graph)
    assert await page.locator(_WARNING).count() == 0
    for node in result.graph.nodes:
        box = page.locator(f'.react-flow__node[data-id="{node.id}"]')
        # A note's text is a field's value, an iteration's title is drawn outside of its box.
        drawn = await box.inner_html() if node.is_note else await box.inner_text() or await page.inner_text("body")
        assert (node.inputs["note"] if node.is_note else node.label) in drawn, node.id
    async with page.expect_response(lambda response: response.request.method == "PUT") as saving:
        await page.locator('button[title^="Save"]').click()
    assert (await saving.value).ok

    # Fonts and a tracker from elsewhere, which no test reaches.
    own = [line for line in editor.heard if editor.client.endpoint in line or "ERR_NAME_NOT_RESOLVED" not in line]
    assert own == []
    stored = await editor.client.get_chatflow(flow.id)
    assert stored.flow_data != result.flow_data
    assert _lasting(json.loads(stored.flow_data)) == _lasting(json.loads(result.flow_data))


async def test_the_check_sees_what_the_editor_dislikes(editor: Editor) -> None:
    """So that the test above is known to be able to fail: an old version, a lost handle, a lost list of anchors."""
    result = compile_ops(GraphIR.empty(), chat_with_window_memory(editor.bind), editor.schemas)
    old = json.loads(result.flow_data)
    old["nodes"][0]["data"]["version"] = 0.1
    old["edges"][0]["targetHandle"] += "x"
    await editor.open("old", json.dumps(old), "CHATFLOW")
    await editor.page.locator(_WARNING).wait_for()
    assert await editor.page.locator(".react-flow__edge").count() == len(old["edges"]) - 1

    blank = json.loads(result.flow_data)
    del blank["nodes"][0]["data"]["inputAnchors"]
    async with editor.page.expect_event("pageerror") as thrown:
        await editor.open("blank", json.dumps(blank), "CHATFLOW")
    assert "reading 'length'" in str(await thrown.value)


async def _drawn(page: Page, graph: GraphIR) -> None:
    """Wait until all nodes and edges are on the canvas. An edge whose handles do not fit never is."""
    await page.wait_for_function(
        """([nodes, edges]) => document.querySelectorAll('.react-flow__node').length === nodes
            && document.querySelectorAll('.react-flow__edge path').length >= edges
            && document.querySelectorAll('.react-flow__edge').length === edges""",
        arg=[len(graph.nodes), len(graph.edges)],
    )


def _lasting(value: Any) -> Any:
    """A flow without what the editor measures or remembers by itself."""
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _OWN}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return value
