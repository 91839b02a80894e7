"""The floors of the package: each imports only from those below it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_import_goes_down() -> None:
    # In a process of its own: import-linter configures logging and with that silences every logger there is.
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
