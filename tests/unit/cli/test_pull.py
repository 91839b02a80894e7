"""`sync --pull`: files of a server's flows, and in git a commit for each change."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flowise_dev_agent.cli.pull import pull
from flowise_dev_agent.cli.sync import read_lock
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.schemas.flow_writes import FlowDocument

BOT = "aaaaaaaa-0000-4000-8000-000000000001"


def text(number: int) -> str:
    return json.dumps({"nodes": [], "edges": [], "viewport": {"x": number}})


class Server:
    """The calls of the client that a pull makes, over states of one flow: (number, author), the newest last."""

    def __init__(self) -> None:
        self.states: list[tuple[int, str | None]] = [(1, None)]
        self.exported = 0

    async def instances(self) -> Any:
        return SimpleNamespace(instances=[SimpleNamespace(id="main", default=True)])

    async def find_flows(self, **_: Any) -> Any:
        flows = [SimpleNamespace(id=BOT, name="Front / Desk")] if self.states else []
        return SimpleNamespace(flows=flows, next_cursor=None)

    def document(self, number: int) -> FlowDocument:
        data = text(number)
        return FlowDocument(
            id=BOT, name="Front / Desk", type="CHATFLOW", flow_data=data, sha256=payload_sha256(data), updated=""
        )

    async def export_flow(self, *_: Any, **__: Any) -> FlowDocument:
        return self.document(self.states[-1][0])

    async def export_version(self, _: str, version: str) -> FlowDocument:
        self.exported += 1
        return self.document(self.states[int(version[1:]) - 1][0])

    async def flow_versions(self, *_: Any, **__: Any) -> Any:
        versions = [
            SimpleNamespace(
                name=f"v{place}",
                title="Changed in Flowise",
                sha256=payload_sha256(text(number)),
                created_at=datetime(2026, 5, place, tzinfo=UTC),
                by=by,
            )
            for place, (number, by) in enumerate(self.states, 1)
        ]
        return SimpleNamespace(versions=versions[::-1])


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout  # noqa: S607


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "mine.txt").write_text("staged, and nobody else's")
    git(tmp_path, "add", "mine.txt")
    return folder


async def test_each_version_is_a_commit_with_its_author_and_date(repository: Path) -> None:
    server = Server()
    server.states += [(2, "Ada <script>"), (3, None)]
    client = cast(Any, server)
    await pull(client, repository, None)
    log = git(repository, "log", "--reverse", "--format=%an|%ad|%s", "--date=short")
    assert log.splitlines() == [
        "Flowise|2026-05-01|Front / Desk: Changed in Flowise",
        "Ada script|2026-05-02|Front / Desk: Changed in Flowise",
        "Flowise|2026-05-03|Front / Desk: Changed in Flowise",
    ]
    assert git(repository, "diff", "--cached", "--name-only") == "mine.txt\n"
    shown = json.loads((repository / "front-desk.json").read_text())
    assert (shown["name"], shown["flowData"]["viewport"]) == ("Front / Desk", {"x": 3})
    assert read_lock(repository).instances["main"]["front-desk.json"].flow_sha256 == payload_sha256(text(3))

    server.states.append((4, None))
    server.exported = 0
    await pull(client, repository, None)
    await pull(client, repository, None)
    assert (server.exported, len(git(repository, "log", "--format=%h").splitlines())) == (1, 4)

    server.states = []
    await pull(client, repository, None)
    assert git(repository, "log", "-1", "--format=%s").strip() == "front-desk.json: deleted in Flowise"
    assert not (repository / "front-desk.json").exists()


async def test_without_git_the_files_hold_what_is_there_now_and_no_other_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    (tmp_path / "front-desk.json").write_text("somebody's")
    server = Server()
    server.states += [(2, None)]
    await pull(cast(Any, server), tmp_path, None)
    assert (tmp_path / "front-desk.json").read_text() == "somebody's"
    assert json.loads((tmp_path / f"front-desk-{BOT[:8]}.json").read_text())["flowData"]["viewport"] == {"x": 2}
    assert server.exported == 0
