"""Runs the jobs of a documented GitHub workflow as its runner would: scripts as they stand, expressions filled in."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_EXPRESSION = re.compile(r"\$\{\{ *([\w.]+) *\}\}")
_JOB_SECS = 90


@dataclass(frozen=True)
class JobResult:
    """How a job ended, what it printed, and what it added to the summary that reviewers see."""

    code: int
    output: str
    summary: str


class Workflow:
    """`context` is what expressions may name: vars, secrets, inputs. `pip install` is the checkout under test."""

    def __init__(self, path: Path, folder: Path, **context: Mapping[str, Any]) -> None:
        self._document: dict[str, Any] = yaml.safe_load(path.read_text())
        self._folder = folder
        self._context: dict[str, Any] = {**context, "needs": {}}
        self._tools = folder / "bin"
        self._tools.mkdir()
        tool = self._tools / "flowise-dev-agent"
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flowise_dev_agent "$@"\n')
        tool.chmod(0o755)

    @property
    def jobs(self) -> list[str]:
        """The jobs in the order in which they need each other."""
        return list(self._document["jobs"])

    async def run(self, job: str, event: Mapping[str, Any] | None = None) -> JobResult:
        """Run the steps of a job up to the first that fails."""
        spec = self._document["jobs"][job]
        needs = spec.get("needs", [])
        for needed in [needs] if isinstance(needs, str) else needs:
            assert needed in self._context["needs"], f"{job} needs {needed}"
        self._context |= {"github": {"event": event or {}}, "steps": {}}
        install, *steps = spec["steps"]
        assert install == {"run": 'pip install "$AGENT_PACKAGE"'}
        summary, text, code = self._folder / "summary.md", "", 0
        summary.write_text("")
        for step in steps:
            code, output, outputs = await self._step(step, event or {}, summary)
            self._context["steps"][step.get("id")] = {"outputs": outputs}
            text += output
            if code:
                break
        outputs = {name: self._filled(value) for name, value in spec.get("outputs", {}).items()}
        self._context["needs"][job] = {"outputs": outputs}
        return JobResult(code, text, summary.read_text())

    async def _step(
        self, step: Mapping[str, Any], event: Mapping[str, Any], summary: Path
    ) -> tuple[int, str, dict[str, str]]:
        # An expression inside a script would be a hole: whoever writes the value writes the script.
        assert not _EXPRESSION.search(step["run"])
        event_file, output_file = self._folder / "event.json", self._folder / "output"
        event_file.write_text(json.dumps(event))
        output_file.write_text("")
        given = {**self._document.get("env", {}), **step.get("env", {})}
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            step["run"],
            cwd=self._folder,
            env={
                **os.environ,
                "PATH": f"{self._tools}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "GITHUB_EVENT_PATH": str(event_file),
                "GITHUB_OUTPUT": str(output_file),
                "GITHUB_RUN_ID": "4711",
                "GITHUB_STEP_SUMMARY": str(summary),
                **{name: self._filled(value) for name, value in given.items()},
            },
            stdout=PIPE,
            stderr=STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), _JOB_SECS)
        lines = [line.partition("=") for line in output_file.read_text().splitlines()]
        return process.returncode or 0, output.decode(), {name: value for name, _, value in lines}

    def _filled(self, text: str) -> str:
        """`text` with its expressions replaced; one that names nothing is a mistake of the document."""
        return _EXPRESSION.sub(lambda found: self._value(found[1]), text)

    def _value(self, path: str) -> str:
        value: Any = self._context
        for name in path.split("."):
            assert name in value, f"nothing is called {path}"
            value = value[name]
        return str(value)
