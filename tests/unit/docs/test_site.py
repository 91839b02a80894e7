"""The site of the documents: it builds, and each of its links leads somewhere."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.nightly
def test_the_site_builds_and_each_link_of_it_leads_somewhere(tmp_path: Path) -> None:
    """`MKDOCS` names the command of an environment with mkdocs, which the lock does not have."""
    command = os.environ.get("MKDOCS") or shutil.which("mkdocs")
    if command is None:
        pytest.skip("mkdocs is not installed")
    build = [command, "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "operations/index.html", "decisions/index.html", "CHANGELOG/index.html"):
        assert (tmp_path / page).is_file()
    assert (tmp_path / "tasks" / "people" / "index.html").read_text().count('<div class="beside">') == 2
    assert '"flow_data"' in (tmp_path / "reference" / "flows" / "index.html").read_text().replace("&quot;", '"')
