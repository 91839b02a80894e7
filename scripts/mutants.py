"""Take safeguards out one by one, and run the tests nearest to them: `python scripts/mutants.py --count 50 --seed 1`.

A mutant is one condition of a safeguard that no longer holds anything back: a branch that is never taken, a filter that
lets all pass, an operand that is left out, row security that is not forced. It is made in a copy of the checkout. What
no test notices is printed at the end; it needs a test, or a reason why it changes nothing.
"""

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = "flowise_dev_agent"
#: What a run of tests may take; a mutant that never ends is noticed.
_SECS: Final = 240


@dataclass(frozen=True)
class Target:
    """Files with safeguards, the tests that hold them, their share of the mutants in percent, and further tests, which
    are run where the first ones notice nothing.
    """

    files: str
    tests: tuple[str, ...]
    share: int
    more: tuple[str, ...] = ()


_WRITES: Final = ("tests/unit/agent/test_update.py", "tests/integration/sessions/test_flow_writes.py")
TARGETS: Final = (
    Target(
        "approval/*.py",
        (
            "tests/unit/approval",
            "tests/unit/agent/test_plan_binding.py",
            "tests/unit/agent/test_reach.py",
            "tests/unit/agent/test_plan_values.py",
            "tests/unit/agent/test_agreed_values.py",
            "tests/unit/agent/test_own_hand.py",
        ),
        32,
        ("tests/unit/agent", "tests/unit/planning", "tests/unit/forms"),
    ),
    Target("publish/*.py", ("tests/unit/publish", "tests/unit/agent/test_document_stores.py"), 24, _WRITES),
    Target("api/access.py", ("tests/unit/api/test_access.py",), 4),
    Target("api/origin.py", ("tests/unit/api/test_origin.py", "tests/integration/api/test_sign_in.py"), 12),
    Target(
        "persistence/migrations/*.sql",
        (
            "tests/integration/api/test_owners.py",
            "tests/integration/persistence/test_roles.py",
            "tests/integration/sessions/test_audit.py",
        ),
        12,
    ),
    Target(
        "sessions/{executor,recovery}.py persistence/runs.py",
        ("tests/unit/sessions", "tests/integration/persistence/test_lost_runs.py"),
        16,
        ("tests/integration/sessions/test_sessions.py", "tests/integration/sessions/test_faults.py"),
    ),
)
#: Safeguards of the database, and what is left without them.
_SQL: Final = (
    (r", FORCE ROW LEVEL SECURITY", ""),
    (r"USING \(owner = (?:%s|NULLIF\(.*\))\)", "USING (true)"),
    (r"CREATE TRIGGER [^;]*;", ""),
    (r"EXECUTE format\('REVOKE [^;]*;", ""),
)


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a file."""

    path: str
    start: int
    end: int
    text: str
    line: int

    def applied(self, source: str) -> str:
        """The source with the change."""
        raw = source.encode()
        return (raw[: self.start] + self.text.encode() + raw[self.end :]).decode()

    def shown(self, source: str) -> str:
        """The place and the change in one line."""
        was = " ".join(source.encode()[self.start : self.end].decode().split())
        return f"{self.path}:{self.line}  {was[:90]}  ->  {self.text[:60] or '(nothing)'}"


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Every safeguard of a file that can be taken out."""
    if path.endswith(".sql"):
        for pattern, text in _SQL:
            for found in re.finditer(pattern, source):
                start, end = (len(source[:at].encode()) for at in found.span())
                yield Mutant(path, start, end, text, source.count("\n", 0, found.start()) + 1)
        return
    begins = [0]
    for line in source.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def at(node: ast.expr, text: str) -> Mutant:
        start, end = begins[node.lineno - 1] + node.col_offset, begins[(node.end_lineno or 1) - 1]
        return Mutant(path, start, end + (node.end_col_offset or 0), text, node.lineno)

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If(test=test) if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
                yield at(test, "False")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield at(test, "True")
            case ast.BoolOp(op=op, values=values) if not any(isinstance(one, ast.Constant) for one in values):
                word = " and " if isinstance(op, ast.And) else " or "
                for value in values:
                    yield at(node, f"({word.join(ast.unparse(one) for one in values if one is not value)})")
            case _:
                pass


def files_of(pattern: str) -> list[str]:
    """Paths of the files of a target, with `{a,b}` for several names."""
    found: list[str] = []
    for one in pattern.split():
        names = re.search(r"\{(.*)\}", one)
        each = [one.replace(names[0], name) for name in names[1].split(",")] if names else [one]
        found += [str(path.relative_to(ROOT)) for glob in each for path in sorted((ROOT / PRODUCT).glob(glob))]
    return found


def chosen(count: int, seed: int) -> list[tuple[Target, Mutant]]:
    """A sample of all mutants, by the share of their target; the same for the same seed."""
    picked: list[tuple[Target, Mutant]] = []
    for target in TARGETS:
        every = [one for path in files_of(target.files) for one in mutants_of(path, (ROOT / path).read_text("utf-8"))]
        most = min(len(every), round(count * target.share / 100))
        some = random.Random(f"{seed} {target.files}").sample(every, most)  # noqa: S311
        picked += [(target, one) for one in sorted(some, key=lambda one: (one.path, one.start))]
    return picked


def survives(copy: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """True if the tests pass with the mutant."""
    file = copy / mutant.path
    source = file.read_text("utf-8")
    file.write_text(mutant.applied(source), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, cwd=copy, capture_output=True, timeout=_SECS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(source, "utf-8")


def main() -> None:
    """Print what no test notices."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="paths that begin so")
    parser.add_argument("--near", action="store_true", help="run the nearest tests only")
    given = parser.parse_args()
    left: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
        for number, (target, mutant) in enumerate(chosen(given.count, given.seed), 1):
            if not mutant.path.startswith(f"{PRODUCT}/{given.only}"):
                continue
            line = mutant.shown((copy / mutant.path).read_text("utf-8"))
            rounds = [target.tests] if given.near or not target.more else [target.tests, target.more]
            alive = all(survives(copy, mutant, tests) for tests in rounds)
            left += [line] if alive else []
            print(f"{number:3} {'SURVIVED' if alive else 'noticed '} {line}", flush=True)
    print(f"\n{len(left)} not noticed", *left, sep="\n")


if __name__ == "__main__":
    main()
