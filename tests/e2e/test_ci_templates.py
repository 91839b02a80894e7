"""The templates for GitHub and GitLab: their schemas, and their scripts on the real service.

Only the comments of GitHub and GitLab are a stand-in's.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, SharedService
from tests.e2e.service import OWN_VARIABLES, ServiceProcess
from tests.e2e.test_sync import OPS

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
ACTION = TEMPLATES / "github" / "action.yml"
GITLAB = TEMPLATES / "gitlab" / "flows.gitlab-ci.yml"
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


@pytest.mark.parametrize(
    ("schema", "file"),
    [("github-actions", ACTION), ("github-workflows", ACTION.with_name("flows.yml")), ("gitlab-ci", GITLAB)],
    ids=["action", "workflow", "gitlab"],
)
def test_a_template_fits_its_schema(schema: str, file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


class Comments:
    """A server that keeps the comments of a pull request."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.requests: list[tuple[str, str]] = []
        comments = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                comments.requests.append((self.command, self.path))
                if self.command != "GET":
                    length = int(self.headers["content-length"])
                    body: str = json.loads(self.rfile.read(length))["body"]
                    comments.bodies = [body]
                said = json.dumps([{"id": 7, "body": one} for one in comments.bodies]).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815 - names of the base class

            def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - as the base class has it

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def comments() -> Iterator[Comments]:
    made = Comments()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


class Runner:
    """Runs scripts as a runner does, with the command of this checkout and without installing anything."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        for name, script in {
            "flowise-dev-agent": f'exec "{sys.executable}" -m flowise_dev_agent "$@"',
            "python": f'exec "{sys.executable}" "$@"',
            "pip": "",
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
        self.environment = {
            **inherited,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "RUNNER_TEMP": str(folder),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            **environment,
        }

    async def script(self, text: str, environment: dict[str, str]) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text),
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=PIPE,
            stderr=STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 250)
        return process.returncode or 0, output.decode()

    async def action(self, **inputs: str) -> tuple[int, str]:
        """Run the action with these inputs (`-` as `_`); the code of its last step and all output."""
        action = yaml.safe_load(ACTION.read_text())
        values = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        context = {f"inputs.{name}": value for name, value in values.items()}
        context |= {"github.event.pull_request.number": "12"}
        (self.folder / "output").write_text("")
        code, said = 0, ""
        for step in action["runs"]["steps"]:
            # An expression inside a script would be a hole: whoever writes the value writes the script.
            assert not _EXPRESSION.search(step["run"])
            given = step.get("env", {})
            environment = {
                name: _EXPRESSION.sub(lambda found: context[found[1]], value) for name, value in given.items()
            }
            code, output = await self.script(step["run"], environment)
            said += output
            if code:
                break
            for line in (self.folder / "output").read_text().splitlines():
                name, _, value = line.partition("=")
                context[f"steps.sync.outputs.{name}"] = value
        return code, said


@pytest.fixture
async def service(shared_service: SharedService) -> ServiceProcess:
    return await shared_service(**LOCKED)


def flows_of(folder: Path, name: str, expected: str) -> Path:
    (folder / "flows").mkdir(exist_ok=True)
    file = folder / "flows" / "bot.yaml"
    tests = [{"turns": ["Where is my parcel?"], "expect": {"contains": [expected]}}]
    file.write_text(yaml.safe_dump({"name": name, "ops": OPS, "tests": tests}))
    return file


@pytest.mark.nightly
async def test_the_github_action_tests_comments_and_applies(
    service: ServiceProcess, comments: Comments, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    runner = Runner(tmp_path, GITHUB_API_URL=comments.url, GITHUB_REPOSITORY="acme/bots")
    own = {"url": service.url, "api_key": KEY, "token": "gh-token"}
    flows_of(tmp_path, "Action bot", "no such words")
    code, said = await runner.action(**own)
    assert code == 3, said
    assert "tests failed" in comments.bodies[0]
    assert '["OpenAI"]' in comments.bodies[0]

    flows_of(tmp_path, "Action bot", "parcel")
    code, said = await runner.action(**own)
    assert code == 0, said
    assert [method for method, _ in comments.requests] == ["GET", "POST", "GET", "PATCH"]
    assert comments.requests[-1][1] == "/repos/acme/bots/issues/comments/7"
    assert "1 of 1" in comments.bodies[0]
    assert "Action bot" not in {row.name async for row in flowise_client.iter_chatflows()}

    assert (await runner.action(**own, mode="plan", comment="false"))[0] == 0
    code, said = await runner.action(**own, mode="apply", comment="false")
    assert code == 0, said
    lock = json.loads((tmp_path / "flows" / "flows.lock.json").read_text())
    flow_id = lock["instances"]["default"]["bot.yaml"]["chatflow_id"]
    assert (await flowise_client.get_chatflow(flow_id)).name == "Action bot"
    assert KEY not in said
    assert (await runner.action(**own, mode="destroy"))[0] == 2


@pytest.mark.nightly
async def test_the_gitlab_template_tests_comments_and_applies(
    service: ServiceProcess, comments: Comments, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    template = yaml.safe_load(GITLAB.read_text())
    runner = Runner(
        tmp_path,
        **{name: str(value) for name, value in template["variables"].items()},
        AGENT_URL=service.url,
        AGENT_API_KEY=KEY,
        GITLAB_TOKEN="gl-token",
        CI_API_V4_URL=comments.url,
        CI_PROJECT_ID="5",
        CI_MERGE_REQUEST_IID="3",
    )
    flows_of(tmp_path, "GitLab bot", "parcel")
    for _ in range(2):
        code, said = await runner.script("\n".join(template["flows:test"]["script"]), {})
        assert code == 0, said
    assert comments.requests == [
        (method, f"/projects/5/merge_requests/3/notes{more}")
        for method, more in (("GET", "?per_page=100"), ("POST", ""), ("GET", "?per_page=100"), ("PUT", "/7"))
    ]
    assert "1 of 1" in comments.bodies[0]
    repository = "git init -q -b main; git add flows; git commit -q -m Flows; git remote add origin ."
    person = {f"GIT_{role}_{what}": "ada@acme.test" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    assert await runner.script(repository, person) == (0, "")
    # Where the lock file goes: test_ci_lock_file.py.
    branch = {"CI_COMMIT_BRANCH": "main", "GITLAB_TOKEN": ""}
    code, said = await runner.script("\n".join(template["flows:apply"]["script"]), branch)
    assert code == 0, said
    assert "GitLab bot" in {row.name async for row in flowise_client.iter_chatflows()}
