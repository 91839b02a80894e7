"""Write the last column of `tests/PITFALLS.md`: which test files cover which row.

    python scripts/pitfalls.py            write it
    python scripts/pitfalls.py P07        print the tests of a row

A test covers a row when its name (or the first line of its docstring) has the row's number: `test_p07_...`.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PAGE_TESTS = ROOT / "flowise_dev_agent" / "web" / "app" / "src"
CATALOGUE = TESTS / "PITFALLS.md"
OPEN = "open"

_ROW = re.compile(r"^\| (P\d+) \|(.*)\| ([^|]*) \|$", re.MULTILINE)


def rows() -> dict[str, list[str]]:
    """Row -> the files that the catalogue lists for it, relative to the repository; none when it is open."""
    return {
        row: [] if files == OPEN else re.findall(r"`([^`]+)`", files)
        for row, _, files in _ROW.findall(CATALOGUE.read_text())
    }


def tagged_tests() -> dict[str, list[tuple[str, str]]]:
    """Row -> (file, test) of each test that names it, in the order of their files."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, name, tags in (*_python_tests(), *_page_tests()):
        for tag in tags:
            found[tag].append((file, name))
    return found


def _python_tests() -> Iterator[tuple[str, str, set[str]]]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                in_name = re.findall(r"(?<=_)p\d{2,3}(?=_)", node.name)
                in_docstring = re.findall(r"\bP\d{2,3}\b", (ast.get_docstring(node) or "").partition("\n")[0])
                yield _relative(path), node.name, {tag.upper() for tag in in_name} | set(in_docstring)


def _page_tests() -> Iterator[tuple[str, str, set[str]]]:
    for path in sorted(PAGE_TESTS.rglob("*.test.ts*")):
        for name in re.findall(r"""\b(?:test|it)\(\s*["'`]([^"'`]+)""", path.read_text()):
            yield _relative(path), name, set(re.findall(r"\bP\d{2,3}\b", name))


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main(arguments: list[str]) -> int:
    """The exit code: 1 for a row that does not exist."""
    tests = tagged_tests()
    for row in arguments:
        if row not in rows():
            print(f"{row} is not a row of {_relative(CATALOGUE)}.", file=sys.stderr)
            return 1
        print("\n".join(f"{file}::{name}" for file, name in tests[row]) or f"{row} is open.")
    if not arguments:

        def with_files(match: re.Match[str]) -> str:
            files = dict.fromkeys(file for file, _ in tests[match[1]])
            return f"| {match[1]} |{match[2]}| {', '.join(f'`{file}`' for file in files) or OPEN} |"

        CATALOGUE.write_text(_ROW.sub(with_files, CATALOGUE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
