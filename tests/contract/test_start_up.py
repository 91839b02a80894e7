"""What a process loads at its start: every second of it is paid by each replica, and by each command of a CI job."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROVIDERS = {"anthropic", "openai"}
#: What only those need that run sessions, serve requests or hold a database.
SERVICE = {"fastapi", "uvicorn", "langgraph", "langchain_core", "langsmith", "psycopg", "procrastinate"}
#: A little above what is loaded now: what exceeds them was either forgotten or is worth its time.
HELP_MODULES = 185
#: Those of Python and of libraries. 22 are those of the extra `tracing`, which langsmith loads where it is there.
SERVICE_MODULES = 1_525


def loaded(code: str) -> set[str]:
    """The modules that Python holds after `code`, which may end the process."""
    code = f"import atexit, sys; atexit.register(lambda: print('', *sys.modules, sep='\\0')); {code}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=60)
    return set(done.stdout.rstrip().split("\0")[1:])


def test_help_loads_no_part_of_the_service() -> None:
    modules = loaded("sys.argv[1:] = ['--help']; from flowise_dev_agent.cli.main import app; app()")
    assert "flowise_dev_agent.cli.main" in modules
    assert not (SERVICE | PROVIDERS | {"asyncio", "rich", "pydantic", "httpx2", "flowise_dev_agent.settings"}) & modules
    assert len(modules) <= HELP_MODULES


def test_commands_that_ask_a_service_load_its_client_only() -> None:
    cli = "flowise_dev_agent.cli"
    modules = loaded(
        f"import {cli}.main, {cli}.build, {cli}.sessions, flowise_dev_agent.client,"
        " flowise_dev_agent.settings, flowise_dev_agent.observability"
    )
    assert "httpx2" in modules
    assert not (SERVICE | PROVIDERS | {"markdown_it", "flowise_dev_agent.agent"}) & modules


def test_p80_clients_need_only_what_their_lock_has() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "locks" / "client.lock").read_text("utf-8"), re.MULTILINE))
    lacking = {
        module
        for module, made_of in packages_distributions().items()
        if not locked & {name.lower().replace("_", "-") for name in made_of}
    }
    assert {"fastapi", "ada_url"} <= lacking
    cli = "flowise_dev_agent.cli"
    modules = loaded(
        # Python refuses to import what is None there.
        f"sys.modules.update(dict.fromkeys({sorted(lacking)})); import {cli}.main, {cli}.answers, {cli}.build,"
        f" {cli}.files, {cli}.flow_tests, {cli}.imports, {cli}.pull, {cli}.sessions, {cli}.sync;"
        " from flowise_dev_agent.schemas.answers import ApprovePlan; ApprovePlan(action='approve', real=['https://a.example'])"
    )
    assert "flowise_dev_agent.client" in modules


def test_commands_for_files_load_what_reads_flows_and_nothing_that_writes_them() -> None:
    modules = loaded(
        "import flowise_dev_agent.cli.files, flowise_dev_agent.cli.imports, flowise_dev_agent.cli.flow_tests"
    )
    assert "flowise_dev_agent.patch.views.flow_diff" in modules
    assert not (SERVICE | PROVIDERS | {"flowise_dev_agent.flowise", "flowise_dev_agent.publish"}) & modules


def test_a_worker_loads_no_web_framework() -> None:
    modules = loaded("import flowise_dev_agent.cli.serve, flowise_dev_agent.ops.dependencies")
    assert "langgraph.graph" in modules
    assert not {"fastapi", "uvicorn", "limits", "sse_starlette", "flowise_dev_agent.api"} & modules


def test_a_service_loads_at_its_first_use_what_not_every_service_uses() -> None:
    package = "flowise_dev_agent"
    modules = loaded(f"import {package}.cli.serve, {package}.api, {package}.ops.dependencies")
    assert "fastapi" in modules
    assert not (PROVIDERS | {"mcp", "genai_prices", "flowise_dev_agent.mcp", "rich", "pygments"}) & modules
    assert len([one for one in modules if not one.startswith(package)]) <= SERVICE_MODULES


def test_no_pattern_bounds_a_class_of_all_scripts() -> None:
    r"""Such as `\w{0,59}`: a table of 6 MB, for each model that has the field."""
    described = (ROOT / "docs" / "openapi.json").read_text("utf-8")
    assert not re.findall(r'"pattern": "[^"]*\\\\[wd]\{\d[^"]*"', described)
