"""Every command of the README and of the pages in docs/, run as it is written, on a real Flowise."""

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from tests.e2e.documented import Command, Reader, Staying, commands, fences
from tests.e2e.service import OWN_VARIABLES, free_port, until_it_answers

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Why a fence of a page is not run here.
NOT_RUN = {
    "demo": "installs and starts all of a stack: test_demo.py runs what it does",
    "docker": "needs Docker; test_compose.py reads the file",
    "checkout": "runs the tests that this one is among, or the checks of the sources",
    "approve": "each line is for another moment: test_approval_from_ci.py runs them",
    "certificate": "needs a session that was accepted: test_certificate.py runs them",
    "domain": "a part of a package: test_example_domain.py runs such a one",
    "rehearsal": "needs two servers: test_rehearsal.py runs them",
    "restore": "needs a second server: test_restore.py runs them",
    "desktop": "configures a program of somebody else",
}
#: Run in this order, by one reader: the later ones go on with the flow that the README has built.
FOLLOWED = [
    ROOT / "README.md",
    *(ROOT / "docs" / "tasks" / f"{name}.md" for name in ("session", "approval", "people", "flows", "restore")),
    *(ROOT / "docs" / name for name in ("api.md", "ci.md", "client.md", "flows-as-code.md")),
]
#: Fences without a language are commands as well.
RUN = {"", "bash", "python", "javascript"}
#: What runs a fence of another language than bash.
PROGRAMS = {"python": "python -", "javascript": "node --input-type=module -"}
OPS = [{"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.3}]
TESTS = [{"turns": ["My name is Ada.", "What is my name?"], "expect": {"excludes": ["Bob"]}}]


def test_every_fence_of_commands_is_run_or_says_why_not() -> None:
    found = [(page, reason) for page in PAGES for reason, language, _ in fences(page) if language in RUN]
    left_out = {reason for _, reason in found if reason}
    assert left_out == set(NOT_RUN)
    assert {page for page, reason in found if reason is None} == set(FOLLOWED)


@pytest.fixture
async def reader(database_dsn: str, flowise: FlowiseAccess, built_page: Path, tmp_path: Path) -> AsyncIterator[Reader]:
    """Somebody in a fresh copy of the repository, with an account on a Flowise."""
    for name in ("Makefile", "scripts", "flowise_dev_agent", "schemas", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".env.example").write_bytes((ROOT / ".env.example").read_bytes())
    environment = tmp_path / ".venv"
    environment.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (environment / name).symlink_to(Path(sys.prefix) / name)
    (environment / ".ready").touch()
    port = free_port()
    servers = [
        {"id": name, "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}
        for name in ("dev", "prod")
    ]
    inherited = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES | {"MAKEFLAGS"}}
    reader = Reader(
        tmp_path,
        inherited | {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "COLUMNS": "120"},
        here={"localhost:8000": f"127.0.0.1:{port}", "http://localhost:3000": flowise.endpoint}
        | {"localhost:3000": flowise.endpoint},
    )
    # What the comments beside the commands tell to set; a busy machine gets more time.
    (tmp_path / "own").write_text(
        f"FLOWISE_INSTANCES='{json.dumps(servers)}'\nPOSTGRES_DSN={database_dsn}\nAGENT_API_PORT={port}\n"
        "AGENT_WAIT_SECS=200\nREASONING_ENGINE=deterministic\n"
    )
    (tmp_path / "ops.json").write_text(json.dumps(OPS))
    (tmp_path / "tests.json").write_text(json.dumps(TESTS))
    return reader


@pytest.mark.nightly
@pytest.mark.timeout(900)
async def test_the_commands_of_the_readme_and_the_pages_do_what_they_say(
    reader: Reader, flowise: FlowiseAccess, flowise_client: FlowiseClient
) -> None:
    service: Staying | None = None
    try:
        for page in FOLLOWED:
            for command in runnable(page):
                if command.text.startswith("make run"):
                    assert service is None, "a page starts a second service"
                    service = await reader.start(command)
                    async with AgentClient(f"http://{reader.here['localhost:8000']}") as client:
                        await until_it_answers(client, service, service.log)
                    continue
                if "ExportData.json" in command.text:
                    exported = await export_of(reader.ids["4953..."], flowise_client)
                    (reader.folder / "ExportData.json").write_text(exported)
                    reader.ids.setdefault("5b7d...", flowise.credentials["openAIApi"])
                if "restore" in command.text:
                    await edit_in_flowise(reader.ids["4953..."], flowise_client)
                if "8c1e..." in command.text:
                    reader.ids.setdefault("8c1e...", await copy_of(reader.ids["4953..."], flowise_client))
                # Whoever is asked takes what is offered first: approve, accept.
                output = await reader.run(command, typed="\n" * 6)
                if command.text.startswith("cp .env.example"):
                    with (reader.folder / ".env").open("a") as file:
                        file.write((reader.folder / "own").read_text())
                if " build " in command.text:
                    # Without a model nobody judges what the answers say.
                    assert "It answers 2 of 2 test questions." in output, output
                    assert "Chatflow " in output.partition(" accepted ")[2], output
    finally:
        if service is not None:
            await service.stop()
    assert {"3a01...", "9f3c...", "c771...", "4953...", "77b0...", "8c1e..."} <= set(reader.ids)
    assert (reader.folder / "bot.json").is_file()


def runnable(page: Path) -> list[Command]:
    """The commands of a page that are run."""
    found: list[Command] = []
    for reason, language, text in fences(page):
        if reason is None and language in RUN:
            program = PROGRAMS.get(language)
            found += [Command(f"{program} <<'END'\n{text}END")] if program else commands(text)
    return found


async def export_of(chatflow_id: str, flowise_client: FlowiseClient) -> str:
    """Flowise's own export of a workspace with this flow."""
    flow = await flowise_client.get_chatflow(chatflow_id)
    row = {"id": flow.id, "name": "Sales", "type": "CHATFLOW", "flowData": flow.flow_data}
    return json.dumps({"ChatFlow": [row]})


async def edit_in_flowise(chatflow_id: str, flowise_client: FlowiseClient) -> None:
    """Change a flow as somebody does in the canvas."""
    flow = await flowise_client.get_chatflow(chatflow_id)
    graph = json.loads(flow.flow_data)
    graph["nodes"][0]["data"]["label"] = f"Edited {len(flow.flow_data)}"
    await flowise_client.update_chatflow(chatflow_id, flow_data=json.dumps(graph))


async def copy_of(chatflow_id: str, flowise_client: FlowiseClient) -> str:
    """Another flow with the same nodes."""
    flow = await flowise_client.get_chatflow(chatflow_id)
    made = await flowise_client.create_chatflow(ChatflowCreate(name="Prod bot", flow_data=flow.flow_data))
    return made.id
