"""Runs the commands of a documented page as its reader would, and compares what they print with what the page says.

A fence of bash is run from its first command to its last. Lines of comments after a command are its answer as JSON:
`...` leaves out what follows, and a text such as "3a01..." is the beginning of an id that later commands name.
`<!-- not run: NAME -->` before a fence leaves it out; readers of the page do not see it.
"""

import asyncio
import json
import os
import pty
import re
import signal
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>\w+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_HEREDOC = re.compile(r"<<'(\w+)'$")
#: The beginning of an id in a page, as in "3a01...".
_ID = re.compile(r"\b[0-9a-f]{4}\.\.\.")
_COMMAND_SECS = 240


@dataclass(frozen=True)
class Command:
    """A command of a page, and the answer that the page shows for it."""

    text: str
    answer: str = ""


def fences(page: Path) -> Iterator[tuple[str | None, str, str]]:
    """(why it is not run, language, text) of each fence of a page."""
    for found in _FENCE.finditer(page.read_text()):
        yield found["reason"], found["language"], found["text"]


def commands(text: str) -> Iterator[Command]:
    """The commands of a fence."""
    lines: list[str] = []
    answer: list[str] = []
    end: str | None = None
    for line in text.splitlines():
        if end is not None:
            # The text of a file, up to the word that ends it.
            lines.append(line)
            end = None if line == end else end
            continue
        if line.startswith("# "):
            answer.append(line[2:])
            continue
        # A line that is indented, or after a backslash, goes on with the command.
        if lines and not line.startswith(" "):
            yield Command("\n".join(lines), "\n".join(answer))
            lines = []
        if line.strip():
            lines.append(line)
        if found := _HEREDOC.search(line):
            end = found[1]
        answer = []
    if lines:
        yield Command("\n".join(lines), "\n".join(answer))


@dataclass
class Staying:
    """A command that runs until it is stopped, with all that it started."""

    process: asyncio.subprocess.Process
    file: Path

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def log(self) -> str:
        return self.file.read_text()

    async def stop(self) -> None:
        """As Ctrl-C does, which goes to all processes of a terminal."""
        if self.running:
            os.killpg(self.process.pid, signal.SIGINT)
            async with asyncio.timeout(60):
                await self.process.wait()


@dataclass
class Reader:
    """Somebody who follows pages in `folder`. `environment` is theirs; `ids` are those they have met so far."""

    folder: Path
    environment: Mapping[str, str]
    ids: dict[str, str] = field(default_factory=dict)
    #: What stays the same on the page and differs here, as the address of the service.
    here: Mapping[str, str] = field(default_factory=dict)

    async def run(self, command: Command, *, typed: str = "") -> str:
        """Run a command to its end, at a terminal where `typed` was entered before; what it printed."""
        code, output = await self._finished(self.filled(command.text), typed)
        assert code == 0, f"{command.text}\n{output}"
        if command.answer.startswith("{"):
            differences = list(self._compared(_pattern(command.answer), json.loads(output), "answer"))
            assert not differences, f"{command.text}\n{differences}\n{output[:3000]}"
        return output

    def filled(self, text: str) -> str:
        """A command with the ids and addresses of here."""
        for there, here in self.here.items():
            text = text.replace(there, here)
        return _ID.sub(lambda found: self.ids[found[0]], text)

    async def start(self, command: Command) -> "Staying":
        """Start a command that stays, as in a terminal of its own."""
        log = self.folder / "service.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                "bash",
                "-c",
                self.filled(command.text),
                cwd=self.folder,
                env=dict(self.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=STDOUT,
                start_new_session=True,
            )
        return Staying(process, log)

    async def _finished(self, text: str, typed: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        try:
            process = await asyncio.create_subprocess_exec(
                "bash",
                "-euo",
                "pipefail",
                "-c",
                text,
                cwd=self.folder,
                env=dict(self.environment),
                stdin=theirs,
                stdout=PIPE,
                stderr=PIPE,
            )
            output, errors = await asyncio.wait_for(process.communicate(), _COMMAND_SECS)
        finally:
            os.close(theirs)
            os.close(ours)
        failed = process.returncode or 0
        return failed, output.decode() + (errors.decode() if failed else "")

    def _compared(self, said: Any, found: Any, where: str) -> Iterator[str]:
        """Where an answer is not as the page says."""
        match said:
            case "...":
                return
            case dict():
                for name, value in said.items():
                    if not isinstance(found, dict) or name not in found:
                        yield f"{where} has no {name}"
                    else:
                        yield from self._compared(value, found[name], f"{where}.{name}")
            case list():
                if not isinstance(found, list) or not found:
                    yield f"{where} is not a list with something in it"
                    return
                for item in said:
                    yield from self._compared(item, found[0], f"{where}[0]")
            case str() if _ID.fullmatch(said):
                if self.ids.setdefault(said, found) != found:
                    yield f"{where} is another id than {said} was"
            case str() if said.endswith("..."):
                if not str(found).startswith(said.removesuffix("...")):
                    yield f"{where} is {str(found)[:80]!r}, not {said!r}"
            case _:
                if said != found:
                    yield f"{where} is {found!r}, not {said!r}"


def _pattern(text: str) -> Any:
    """The JSON of an answer in a page, with "..." for what it leaves out."""
    whole = re.sub(r"([\[{])\.\.\.[\]}]", '"..."', text)
    return json.loads(re.sub(r",\s*\.\.\.\s*([\]}])", r"\1", whole))
