"""Write `flowise_dev_agent/knowledge/model_ends.json`: the announced ends of models.

    python scripts/model_ends.py            write it
    python scripts/model_ends.py --check    exit with 1 if the file is not up to date

The dates come from the lists in the installed SDKs of OpenAI and Anthropic, and from the rows of `model_ends.toml`.
Other SDKs of the lock have none: google-genai, groq and mistralai learn an end from the answer of the server, and
genai-prices marks models as deprecated without a date.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypedDict

from anthropic.resources.messages.messages import DEPRECATED_MODELS

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "flowise_dev_agent" / "knowledge" / "model_ends.json"
BY_HAND = ROOT / "scripts" / "model_ends.toml"

#: An entry of a docstring of openai's types, on one line.
_OPENAI = re.compile(r'- ((?:"[^"]+",? ?)+): Announced shutdown date: (\d{4}-\d{2}-\d{2})')
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")


class Row(TypedDict):
    """One row: `replacement` is empty if the source names none."""

    provider: str
    model: str
    date: str
    replacement: str
    source: str


def rows() -> list[Row]:
    """All rows, by provider and model. Raises ValueError if two sources give different dates."""
    found: dict[tuple[str, str], Row] = {}
    for row in (*_openai(), *_anthropic(), *_by_hand()):
        key = (row["provider"], row["model"])
        known = found.get(key)
        if known and known["date"] != row["date"]:
            raise ValueError(f"{key}: {known['date']} by {known['source']}, {row['date']} by {row['source']}")
        if known and not row["replacement"]:
            continue
        source = f"{known['source']}; {row['source']}" if known and known["source"] != row["source"] else row["source"]
        found[key] = {**row, "source": source}
    return [found[key] for key in sorted(found)]


def _openai() -> Iterator[Row]:
    source = "openai, docstrings of its types; https://developers.openai.com/api/docs/deprecations"
    for text in _texts(files("openai") / "types"):
        for names, day in _OPENAI.findall(" ".join(text.split())):
            for name in re.findall(r'"([^"]+)"', names):
                yield _row("openai", name, date.fromisoformat(day), "", source)


def _texts(folder: Traversable) -> Iterator[str]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _texts(entry)
        elif entry.name.endswith(".py"):
            yield entry.read_text("utf-8")


def _anthropic() -> Iterator[Row]:
    source = "anthropic, DEPRECATED_MODELS; https://platform.claude.com/docs/en/about-claude/model-deprecations"
    for name, day in DEPRECATED_MODELS.items():
        yield _row("anthropic", name, _day(day), "", source)


def _day(text: str) -> date:
    """Day of a text such as `June 15th, 2026`."""
    return datetime.strptime(_ORDINAL.sub("", text), "%B %d, %Y").replace(tzinfo=UTC).date()


def _by_hand() -> Iterator[Row]:
    for entry in tomllib.loads(BY_HAND.read_text("utf-8"))["end"]:
        for name in entry["models"]:
            yield _row(entry["provider"], name, entry["date"], entry.get("replacement", ""), entry["source"])


def _row(provider: str, model: str, day: date, replacement: str, source: str) -> Row:
    return {
        "provider": provider,
        "model": model,
        "date": day.isoformat(),
        "replacement": replacement,
        "source": source,
    }


def rendered() -> str:
    """Text of the file: one row on each line."""
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows())
    return f"[\n{lines}\n]\n"


def main() -> None:
    """Write or check the file."""
    text = rendered()
    if "--check" not in sys.argv[1:]:
        TABLE.write_text(text, "utf-8")
    elif TABLE.read_text("utf-8") != text:
        sys.exit(f"{TABLE.relative_to(ROOT)} is not up to date: run `python scripts/model_ends.py`.")


if __name__ == "__main__":
    main()
