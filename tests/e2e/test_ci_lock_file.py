"""The lock file in the templates for GitHub and GitLab: each run has that of the run before, and pushes its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.e2e.test_ci_templates import ACTION, GITLAB, Runner

pytestmark = pytest.mark.nightly

LOCK = "flows/flows.lock.json"
_PEOPLE = {f"GIT_{role}_{what}": "dev@acme.test" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(where: Path, *command: str) -> str:
    environment = {**os.environ, **_PEOPLE}
    run = [shutil.which("git") or "git", *command]
    done = subprocess.run(run, cwd=where, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


class Origin:
    """A repository with a branch `main` that people push to."""

    def __init__(self, folder: Path) -> None:
        self.bare = folder / "origin.git"
        self._theirs = folder / "theirs"
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.bare))
        git(folder, "clone", "--quiet", str(self.bare), str(self._theirs))
        self.first = self.push("flows/bot.yaml", "name: Bot")

    def push(self, file: str, text: str) -> str:
        """Somebody's commit of a file; its id."""
        if file != "flows/bot.yaml":
            git(self._theirs, "pull", "--quiet", "--rebase", "origin", "main")
        (self._theirs / file).parent.mkdir(exist_ok=True)
        (self._theirs / file).write_text(text)
        git(self._theirs, "add", file)
        git(self._theirs, "commit", "--quiet", "-m", f"Change {file}")
        git(self._theirs, "push", "--quiet", "origin", "HEAD:main")
        return git(self._theirs, "rev-parse", "HEAD").strip()

    def check_out(self, folder: Path, what: str, *to: str) -> None:
        """As the runners do: a commit without its past."""
        git(folder, "init", "--quiet", "--initial-branch=other")
        git(folder, "remote", "add", "origin", self.bare.as_uri())
        git(folder, "fetch", "--quiet", "--depth=1", "origin", what)
        git(folder, "checkout", "--quiet", *to, "FETCH_HEAD")

    def shows(self, file: str) -> str:
        return git(self.bare, "show", f"main:{file}")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def runner(tmp_path: Path, origin: Origin) -> Runner:
    folder = tmp_path / "job"
    folder.mkdir()
    (tmp_path / "gitconfig").write_text(
        f'[url "{origin.bare.as_uri()}"]\n  insteadOf = https://oauth2:gl-token@gitlab.test/acme/bots.git\n'
    )
    runner = Runner(folder, GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
    # The pauses between attempts.
    (folder / "bin" / "sleep").write_text("#!/bin/sh\n")
    (folder / "bin" / "sleep").chmod(0o755)
    return runner


async def keep_on_github(runner: Runner) -> tuple[int, str]:
    steps = yaml.safe_load(ACTION.with_name("flows.yml").read_text())["jobs"]["apply"]["steps"]
    assert steps[0]["with"] == {"ref": "${{ github.ref_name }}"}
    return await runner.script(steps[-1]["run"], {"GITHUB_REF_NAME": "main"})


async def apply_on_gitlab(runner: Runner, sync: str, *, can_push: bool = True) -> tuple[int, str]:
    template = yaml.safe_load(GITLAB.read_text())
    (runner.folder / "bin" / "flowise-dev-agent").write_text(f"#!/bin/sh\n{sync}\n")
    variables = {name: str(value) for name, value in template["variables"].items()} | {
        "AGENT_URL": "http://agent.test",
        "CI_COMMIT_BRANCH": "main",
        "CI_PROJECT_PATH": "acme/bots",
        "CI_SERVER_HOST": "gitlab.test",
        "CI_SERVER_URL": "https://gitlab.test",
        "GITLAB_TOKEN": "gl-token" if can_push else "",
    }
    return await runner.script("\n".join(template["flows:apply"]["script"]), variables)


async def test_github_pushes_the_lock_file_onto_what_others_pushed_meanwhile(runner: Runner, origin: Origin) -> None:
    origin.check_out(runner.folder, "main", "-B", "main")
    (runner.folder / LOCK).write_text("ours")
    origin.push("README.md", "theirs")
    code, said = await keep_on_github(runner)
    assert code == 0, said
    assert (origin.shows(LOCK), origin.shows("README.md")) == ("ours", "theirs")
    # Nothing has changed since: no second commit.
    before = git(origin.bare, "rev-parse", "main")
    assert (await keep_on_github(runner))[0] == 0
    assert git(origin.bare, "rev-parse", "main") == before


async def test_github_shows_a_lock_file_that_cannot_be_pushed(runner: Runner, origin: Origin) -> None:
    origin.check_out(runner.folder, "main", "-B", "main")
    (runner.folder / LOCK).write_text("ours")
    origin.push(LOCK, "theirs")
    code, said = await keep_on_github(runner)
    assert (code, origin.shows(LOCK)) == (1, "theirs")
    assert said.endswith("Commit it by hand:\nours")


async def test_github_has_nothing_to_push_after_a_run_that_wrote_nothing(runner: Runner, origin: Origin) -> None:
    origin.check_out(runner.folder, "main", "-B", "main")
    assert await keep_on_github(runner) == (0, "")


async def test_gitlab_starts_from_the_lock_file_of_the_run_before_and_pushes_its_own(
    runner: Runner, origin: Origin
) -> None:
    origin.check_out(runner.folder, origin.first)
    origin.push(LOCK, "of the run before")
    origin.push("README.md", "theirs")
    code, said = await apply_on_gitlab(runner, f"cat {LOCK}; printf ours > {LOCK}; exit 4")
    assert code == 4, said
    assert "of the run before" in said
    assert (origin.shows(LOCK), origin.shows("README.md")) == ("ours", "theirs")


async def test_gitlab_without_a_token_leaves_the_lock_file_to_the_artifacts(runner: Runner, origin: Origin) -> None:
    origin.check_out(runner.folder, origin.first)
    code, said = await apply_on_gitlab(runner, f"printf ours > {LOCK}", can_push=False)
    assert code == 0, said
    assert (runner.folder / LOCK).read_text() == "ours"
    with pytest.raises(subprocess.CalledProcessError):
        origin.shows(LOCK)
