"""`sync --pull`: the flows of a server as files; in a git repository, a commit for each change."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from flowise_dev_agent.cli.console import say
from flowise_dev_agent.cli.files import flow_file
from flowise_dev_agent.cli.sync import flows_of_file, read_lock, write_lock
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_files import LOCK_FILE, AppliedFlow
from flowise_dev_agent.schemas.flow_writes import FlowDocument
from flowise_dev_agent.schemas.flows import FlowFacts
from flowise_dev_agent.texts import counted

_PAGE: Final = 100
#: Changes of one flow in one pull; of more, the earliest are left out.
_MOST_CHANGES: Final = 100
_GIT_SECS: Final = 60.0
_NOBODY: Final = "Flowise"
_SERVICE: Final = {"GIT_COMMITTER_NAME": "flowise-dev-agent", "GIT_COMMITTER_EMAIL": ""}


@dataclass(frozen=True)
class _Change:
    """A state of a flow that the directory does not have yet; None: it was deleted."""

    at: datetime | None
    file: str
    document: FlowDocument | None
    message: str
    author: str


async def pull(client: AgentClient, folder: Path, instance: str | None) -> None:
    """Write each flow that is another one than at the last pull, and remove the files of deleted ones.

    Raises InvalidInputError for files that cannot be written, and when git refuses a commit.
    """
    git = _git_of(folder)
    lock = read_lock(folder)
    name = instance or next(one.id for one in (await client.instances()).instances if one.default)
    known = lock.instances.setdefault(name, {})
    flows = await _flows(client, instance)
    files = {applied.chatflow_id: file for file, applied in known.items()}
    changes: list[_Change] = []
    for flow in flows:
        file = files.setdefault(flow.id, _new_file(folder, flow, set(files.values())))
        changes += await _changes(client, instance, flow.id, file, known.get(file), every=git is not None)
    there = {flow.id for flow in flows}
    changes += [
        _Change(None, file, None, f"{file}: deleted in Flowise", _NOBODY)
        for file, applied in known.items()
        if applied.chatflow_id not in there
    ]
    changes.sort(key=lambda change: (change.at is None, change.at.timestamp() if change.at else 0.0))
    for change in changes:
        path = folder / change.file
        if change.document is None:
            path.unlink(missing_ok=True)
            del known[change.file]
        else:
            path.write_text(flow_file(change.document), encoding="utf-8")
            content = next(iter(flows_of_file(path).values())).sha256
            known[change.file] = AppliedFlow(
                chatflow_id=change.document.id, content_sha256=content, flow_sha256=change.document.sha256
            )
        write_lock(folder, lock)
        if git is not None:
            _commit(git, folder, change)
        say(change.message)
    say(f"{counted('changes', len(changes))}{'' if git is None else ', each a commit'}.")


async def _flows(client: AgentClient, instance: str | None) -> list[FlowFacts]:
    flows: list[FlowFacts] = []
    cursor: str | None = None
    while True:
        page = await client.find_flows(instance=instance, limit=_PAGE, cursor=cursor)
        flows += page.flows
        if (cursor := page.next_cursor) is None:
            return flows


async def _changes(
    client: AgentClient, instance: str | None, chatflow_id: str, file: str, last: AppliedFlow | None, *, every: bool
) -> list[_Change]:
    """Changes of a flow since the last pull, oldest first; without `every` only what it is now."""
    live = await client.export_flow(chatflow_id, instance=instance)
    if last is not None and last.flow_sha256 == live.sha256:
        return []
    found: list[_Change] = []
    if every:
        versions = (await client.flow_versions(chatflow_id, limit=_MOST_CHANGES)).versions
        for one in versions:
            if last is not None and one.sha256 == last.flow_sha256:
                break
            kept = await client.export_version(chatflow_id, one.name)
            document = live.model_copy(update={"name": kept.name, "flow_data": kept.flow_data, "sha256": kept.sha256})
            message = f"{kept.name}: {one.title}\n\n{one.name} of {chatflow_id}."
            found.insert(0, _Change(one.created_at, file, document, message, one.by or _NOBODY))
    if not found or found[-1].document is None or found[-1].document.sha256 != live.sha256:
        found.append(_Change(None, file, live, f"{live.name}: as it is on the server", _NOBODY))
    return found


def _new_file(folder: Path, flow: FlowFacts, taken: set[str]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", flow.name.lower()).strip("-")[:60] or "flow"
    file = f"{stem}.json"
    return f"{stem}-{flow.id[:8]}.json" if file in taken or file == LOCK_FILE or (folder / file).exists() else file


def _git_of(folder: Path) -> str | None:
    """Make the directory; return the program git if it is in a repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git = shutil.which("git")
    if git is None or _run(git, folder, "rev-parse", "--is-inside-work-tree").returncode:
        return None
    return git


def _commit(git: str, folder: Path, change: _Change) -> None:
    """Commit this file and the lock file alone, whatever else is staged."""
    author = re.sub(r"[<>\s]+", " ", change.author).strip() or _NOBODY
    date = {"GIT_AUTHOR_DATE": f"{change.at.timestamp():.0f} +0000"} if change.at else {}
    paths = ("--", change.file, LOCK_FILE)
    commit = ("commit", "--quiet", f"--author={author} <>", f"--message={change.message}", *paths)
    for call in (("add", "--all", *paths), commit):
        done = _run(git, folder, *call, environment=date)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[:300]
            raise InvalidInputError(f"git refuses the commit of {change.file}: {said}")


def _run(
    git: str, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - git with our own arguments, without a shell
        [git, "-C", str(folder), *arguments],
        env={**os.environ, **_SERVICE, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=_GIT_SECS,
        check=False,
    )
