"""What a person does with the service over HTTP, and the flows that they have."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from tests.e2e.service import ServiceProcess
from tests.support.sessions import ASSISTANT

_ROOT = str(Path(__file__).resolve().parents[2])
MakeService = Callable[..., ServiceProcess]
SharedService = Callable[..., Awaitable[ServiceProcess]]
#: The key of a service with `LOCKED`: one that asks for it, and that sends signed webhooks to this machine.
KEY = "e2e-key"
LOCKED = {
    "AGENT_API_KEY": KEY,
    "WEBHOOK_SECRET": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
    "WEBHOOK_ALLOW": "127.0.0.0/8",
}
KINDS = {"Chatflow": "CHATFLOW", "AgentflowV2": "AGENTFLOW"}

# --- sessions --------------------------------------------------------------------------------------------------------


def http_of(service: ServiceProcess, key: str | None = None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=90)


async def ok(response: httpx2.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return response.json()


async def start(http: httpx2.AsyncClient, said: str | Mapping[str, Any] = ASSISTANT, **request: Any) -> dict[str, Any]:
    """Start a session with a form, or with words that the service's model reads."""
    first = {"requirement": said} if isinstance(said, str) else {"design": said}
    return await ok(await http.post("/sessions?wait=60", json={**first, **request}))


async def answer(http: httpx2.AsyncClient, view: dict[str, Any], **given: Any) -> dict[str, Any]:
    body = {"interrupt_id": view["interrupt"]["id"], "answer": given}
    return await ok(await http.post(f"/sessions/{view['thread_id']}/resume?wait=60", json=body))


async def events_of(http: httpx2.AsyncClient, view: dict[str, Any]) -> list[dict[str, Any]]:
    """The stored events of a session that has ended."""
    async with http.stream("GET", f"/sessions/{view['thread_id']}/stream") as response:
        return [json.loads(line[6:]) async for line in response.aiter_lines() if line.startswith("data: ")]


async def run_command(service: ServiceProcess, folder: Path, *arguments: str, code: int = 0) -> str:
    """A command line of the product, for this service, that ends with `code`; what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "flowise_dev_agent",
        *arguments,
        "--url",
        service.url,
        cwd=folder,
        env={"PYTHONPATH": _ROOT, "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    assert process.returncode == code, output.decode()
    return output.decode()


# --- flows -----------------------------------------------------------------------------------------------------------


async def make_flow(
    client: FlowiseClient, template: str = "Conversation Chain", *, bind: tuple[str, ...] | None = None, **columns: Any
) -> Chatflow:
    """A flow in use: a template of the marketplace with a viewport, a sticky note and a key that nobody knows.

    The credentials that the server has are bound, or only those of the types in `bind`.
    """
    templates = await client.list_templates()
    found = next(item for item in templates if item["templateName"] == template and item["type"] in KINDS)
    flow: dict[str, Any] = json.loads(found["flowData"])
    ids = {
        item.credential_name: item.id
        for item in await client.list_credentials()
        if bind is None or item.credential_name in bind
    }
    kind = KINDS[found["type"]]
    for node in flow["nodes"]:
        names = [name for param in node["data"].get("inputParams", []) for name in param.get("credentialNames") or []]
        node["data"]["credential"] = next((ids[name] for name in names if name in ids), "")
        for name, config in node["data"]["inputs"].items():
            if name.endswith("ModelConfig") and node["data"]["inputs"].get(name.removesuffix("Config")) == "chatOpenAI":
                config["FLOWISE_CREDENTIAL_ID"] = ids["openAIApi"]
    flow |= {"viewport": {"x": 11, "y": 22, "zoom": 0.5}, "aKeyOfTheirs": {"kept": [1, "ü"]}}
    flow["nodes"].append(_note("stickyNoteAgentflow" if kind == "AGENTFLOW" else "stickyNote"))
    made = await client.create_chatflow(
        ChatflowCreate(
            **{
                "name": f"{template} {uuid4().hex[:6]}",
                "flow_data": json.dumps(flow),
                "type": kind,
                "category": "mine",
                **columns,
            }
        )
    )
    return await client.get_chatflow(made.id)


def _note(name: str) -> dict[str, Any]:
    data = {
        "id": f"{name}_9",
        "name": name,
        "label": "Sticky Note",
        "type": "StickyNote",
        "version": 2,
        "category": "Utilities",
        "baseClasses": ["StickyNote"],
        "inputs": {"note": "mine"},
        "inputAnchors": [],
        "inputParams": [{"label": "", "name": "note", "type": "string", "id": f"{name}_9-input-note-string"}],
        "outputAnchors": [],
        "outputs": {},
    }
    return {"id": f"{name}_9", "type": "stickyNote", "position": {"x": 5, "y": 6}, "data": data}


def nodes_of(row: Chatflow) -> dict[str, dict[str, Any]]:
    """The nodes of a flow by their ids."""
    return {node["id"]: node for node in json.loads(row.flow_data)["nodes"]}


async def history_of(access: FlowiseAccess, chatflow_id: str) -> list[dict[str, Any]]:
    """The stored chat messages of a flow."""
    headers = {"Authorization": f"Bearer {access.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{access.endpoint}/api/v1", headers=headers, trust_env=False) as http:
        return (await http.get(f"/chatmessage/{chatflow_id}")).raise_for_status().json()


@asynccontextmanager
async def visitors(client: FlowiseClient, chatflow_id: str, count: int = 1) -> AsyncIterator[list[str]]:
    """People who talk to the flow all the time; the answers they got. A single failure fails the test."""
    answers: list[str] = []

    async def talk() -> None:
        while True:
            prediction = await client.predict(chatflow_id, "Hello there", session_id=f"visitor-{uuid4().hex}")
            answers.append(prediction.answer)

    tasks = [asyncio.create_task(talk()) for _ in range(count)]
    try:
        yield answers
        failures = [task.exception() for task in tasks if task.done()]
        assert not failures, failures
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
