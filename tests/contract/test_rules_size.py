"""The engine without a model stays small: what it would take more code to understand it asks about or declines."""

import ast
import io
import tokenize
from pathlib import Path

from flowise_dev_agent.reasoning import rules

ROOT = Path(rules.__path__[0])
#: Lines of code: without blank lines, comments and docstrings.
MOST_LINES, MOST_LINES_OF_A_MODULE = 4_546, 440
#: Lines of the words of one language.
MOST_LINES_OF_A_LANGUAGE = 240
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(path: Path) -> int:
    source = path.read_text("utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            first = node.body[0]
            texts.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - texts)


def test_the_rules_stay_small() -> None:
    sizes = {path: lines_of_code(path) for path in ROOT.rglob("*.py")}
    assert sum(sizes.values()) <= MOST_LINES
    assert {path.name: size for path, size in sizes.items() if size > MOST_LINES_OF_A_MODULE} == {}


def test_the_words_of_each_language_stay_few() -> None:
    sizes = {path.stem: len(path.read_text("utf-8").splitlines()) for path in ROOT.rglob("??.toml")}
    assert {"en", "de", "es", "fr", "pt"} <= set(sizes)
    assert {name: size for name, size in sizes.items() if size > MOST_LINES_OF_A_LANGUAGE} == {}
