"""The first word of a docstring is a verb or a noun."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("flowise_dev_agent", "scripts")
QUESTIONS = {"What", "Whether", "Which", "Who", "Whom", "Whose", "Where", "How", "Why"}


def test_no_docstring_begins_with_a_question_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.body[0].lineno}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).parts[1] != "web"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (ast.get_docstring(node) or "-").split()[0].rstrip(",:;.") in QUESTIONS
    ]
    assert found == []
