"""Flowise Dev Agent: a sentence becomes a tested chatflow on your Flowise server."""

from pathlib import Path

_RELEASE = "0.2.0"
# Written by the build.
_COMMIT = Path(__file__).with_name("commit")

#: With the commit that it was built of, such as 0.2.0+7e752011d3aa; a checkout has the release alone.
__version__ = f"{_RELEASE}+{_COMMIT.read_text().strip()}" if _COMMIT.is_file() else _RELEASE
