"""Test sets as files: YAML and JSON hold everything, a row of CSV a question and what its answer contains."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import yaml

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.texts import text as said

Format = Literal["json", "yaml", "csv"]
_COLUMNS: Final = ("question", "contains", "excludes", "more")
_TURNS, _TEXTS = " / ", " | "
#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read")
        return super().compose_node(parent, index)


def plain_yaml(text: str, what: str) -> Any:
    """Value of a YAML text without aliases. Raises InvalidInputError, which names `what` it is."""
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a safe loader
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())[:300]
        raise InvalidInputError(said("error.no_yaml", what=what, problem=problem)) from None


def read_tests(text: str, form: Format) -> list[Any]:
    """The tests of a file: a list, or `{"tests": [...]}`. Raises InvalidInputError.

    A row of CSV has a `question` (turns with ` / ` between them), what the answer `contains` and `excludes` (texts with
    ` | ` between them), and `more`: the rest of the test as JSON.
    """
    if form == "csv":
        return [_row_test(row) for row in csv.DictReader(io.StringIO(text))]
    try:
        document = plain_yaml(text, "The file") if form == "yaml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(said("error.no_json", problem=str(error))) from None
    tests = document.get("tests") if isinstance(document, dict) else document
    if not isinstance(tests, list):
        raise InvalidInputError(said("error.no_tests_in_file"), hint=said("error.tests_hint"))
    return tests


def write_tests(tests: Iterable[TestCase], form: Format) -> str:
    """The tests as a file that `read_tests` reads."""
    rows = [test.model_dump(mode="json", exclude_defaults=True) for test in tests]
    if form == "json":
        return json.dumps({"tests": rows}, ensure_ascii=False, indent=2) + "\n"
    if form == "yaml":
        return yaml.safe_dump({"tests": rows}, allow_unicode=True, sort_keys=False)
    buffer = io.StringIO()
    out = csv.writer(buffer)
    out.writerow(_COLUMNS)
    out.writerows([_cell(cell) for cell in _cells(row)] for row in rows)
    return buffer.getvalue()


def _cells(row: dict[str, Any]) -> Sequence[str]:
    """Cells of a test. What its columns cannot hold stands in `more`."""
    more = {name: value for name, value in row.items() if name not in {"id", "turns", "expect"}}
    expect: dict[str, Any] = dict(row.get("expect", {}))
    texts: dict[str, str] = {}
    for name in ("contains", "excludes"):
        values = expect.pop(name, [])
        texts[name] = _TEXTS.join(values)
        if [one.strip() for one in texts[name].split(_TEXTS)] != (values or [""]):
            texts[name], expect[name] = "", values
    question = _TURNS.join(row["turns"])
    if question.strip().split(_TURNS) != row["turns"]:
        more["turns"] = row["turns"]
    if expect:
        more["expect"] = expect
    return question, texts["contains"], texts["excludes"], json.dumps(more, ensure_ascii=False) if more else ""


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith((*_FORMULA, "'")) else text


def _row_test(row: Mapping[str | None, Any]) -> dict[str, Any]:
    cells = {name: str(row.get(name) or "").removeprefix("'") for name in _COLUMNS}
    if not (question := cells["question"].strip()):
        raise InvalidInputError(said("error.row_without_question"), hint=said("error.tests_hint"))
    try:
        more = json.loads(cells["more"] or "{}")
        expect = {
            **{name: [one.strip() for one in cells[name].split(_TEXTS)] for name in ("contains", "excludes")},
            **more.get("expect", {}),
        }
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise InvalidInputError(said("error.row_more"), hint=said("error.tests_hint")) from None
    return {"turns": question.split(_TURNS), **more, "expect": expect}
