"""Make a release: `dist/` with sdist, wheel, what the service is made of (CycloneDX), and the hashes of all.

    python scripts/release.py [FOLDER]

The wheel is made of the sdist. The same sources give the same bytes.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flowise_dev_agent import __version__

_ROOT = Path(__file__).resolve().parents[1]
_RELEASE = __version__.partition("+")[0]
_PIN = re.compile(r"^([\w.-]+)(?:\[.*?\])?==([^\s;]+)(?: ; ([^\\\n]*?))? \\\n((?:    --hash=\S+.*\n)+)", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Write the files; the exit code. Raises CalledProcessError when the build failed."""
    folder = Path(arguments[0] if arguments else _ROOT / "dist").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t"]
    subprocess.run([*build, "sdist"], cwd=_ROOT, check=True)
    (sdist,) = folder.glob(f"*-{_RELEASE}.tar.gz")
    with TemporaryDirectory() as unpacked, tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        subprocess.run([*build, "wheel"], cwd=source, check=True)
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom(), indent=2) + "\n")
    files = sorted(file for file in folder.iterdir() if file.name != "SHA256SUMS")
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text("".join(sums))
    return 0


def sbom() -> dict[str, Any]:
    """Bill of materials (CycloneDX) of the runtime lock, with the licences of what is installed here."""
    lock = (_ROOT / "locks" / "runtime.lock").read_text()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "flowise-dev-agent", "version": _RELEASE}},
        "components": [_component(*found.group(1, 2)) for found in _PIN.finditer(lock)],
    }


def _component(name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if licence := _licence(name):
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def _licence(name: str) -> str | None:
    """As the package names it, in one line; None where it is not installed."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    classified = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if one.startswith("License ::")
    ]
    named = about["License-Expression"] or ", ".join(classified) or about["License"] or ""
    return named.strip().partition("\n")[0][:100] or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
