"""The page's translations are keyed by the page's own English, and by codes for what the service says."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowise_dev_agent
from flowise_dev_agent.texts import LANGUAGES

PACKAGE = Path(flowise_dev_agent.__file__).parent
PAGE = PACKAGE / "web" / "app" / "src"
_HOLE = "{}"
_PLURAL = re.compile(r"_(one|many|other)$")
#: A value of a field, such as a status, which the page names in the person's language.
_VALUE = re.compile(r"[a-z]+")
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def bare(key: str) -> str:
    return re.sub(r"\{\{\w+\}\}", _HOLE, _PLURAL.sub("", key))


def sentences_of(source: str) -> Iterator[str]:
    """Each string of Python code and each sentence in it, with holes for what an f-string fills in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            said = "".join(str(one.value) if isinstance(one, ast.Constant) else _HOLE for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        yield said
        yield from re.split(r"(?<=[.!?:;])\s+|\n", said)


@pytest.fixture(scope="module")
def python_texts() -> set[str]:
    return {text for path in PACKAGE.rglob("*.py") for text in sentences_of(path.read_text("utf-8"))}


@pytest.fixture(scope="module")
def page_texts() -> set[str]:
    """Return the texts of the page's own sources."""
    paths = [one for one in PAGE.rglob("*.ts*") if ".test." not in one.name and one.name != "schema.d.ts"]
    found = (json.loads(one) for path in paths for one in _LITERAL.findall(path.read_text("utf-8")) if _is_json(one))
    return {bare(text) for text in found}


def _is_json(literal: str) -> bool:
    try:
        return bool(json.loads(literal))
    except ValueError:
        return False


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_no_key_of_a_translation_is_a_sentence_of_python_code(
    language: str, python_texts: set[str], page_texts: set[str]
) -> None:
    keys = json.loads((PAGE / "i18n" / f"{language}.json").read_text("utf-8"))
    said = python_texts - page_texts
    assert [key for key in keys if bare(key) in said and not _VALUE.fullmatch(key)] == []


def test_a_sentence_of_python_code_is_found_whole_in_part_and_with_its_values() -> None:
    found = set(sentences_of('raise Gone(f"There is no version {x!r}. " "Read it again.", hint="Wait.")'))
    assert {"There is no version {}.", "Read it again.", "Wait."} <= found
