"""Hooks of `mkdocs.yml`: the README as the first page, the files that documents link to, and the reference by resource.

pip install mkdocs && mkdocs build --strict
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

ROOT: Final = Path(__file__).resolve().parents[1]
#: A link to a file of the repository beside `docs/`.
_OUTSIDE: Final = re.compile(r"\]\(\.\./([\w./-]+)(#[\w-]*)?\)")
_BESIDE: Final = ("CHANGELOG.md", "CONTRIBUTING.md")
_CODE: Final = re.compile(r"\[([^\]]+)\]\((?:tests|scripts)/[^)]*\)")
#: One snippet after the other, each in another language.
_SNIPPETS: Final = re.compile(r"(?:<pre><code class=\"language-\w+\">.*?</pre>\s*){2,}", re.DOTALL)
_BESIDE_EACH_OTHER: Final = (
    "<style>.beside {display: grid; gap: 1em; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26em), 1fr))}"
    ".beside > * {min-width: 0}</style>"
)
_LONGEST_EXAMPLE: Final = 4_000


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that no file of `docs/` holds, and each file of the repository that one links to."""
    pages = {"index.md": (ROOT / "README.md").read_text().replace("](docs/", "](")} | _reference()
    linked = {found[0] for page in (ROOT / "docs").glob("*.md") for found in _OUTSIDE.findall(page.read_text())}
    linked |= set(re.findall(r"\]\((?!https?:|docs/|#)([\w./-]+)", pages["index.md"]))
    added = Files([*files])
    for name, text in pages.items():
        added.append(File.generated(config, name, content=text))
    for name in sorted(linked - {"README.md"}):
        if (ROOT / name).is_file() and not (ROOT / "docs" / name).is_file():
            added.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return added


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files beside `docs/` to their copies; those from such a file to code are words."""
    if page.file.src_uri in _BESIDE:
        return _CODE.sub(r"\1", markdown.replace("](docs/", "]("))
    if "/" in page.file.src_uri:
        return markdown
    return _OUTSIDE.sub(lambda found: f"]({found[1].replace('README.md', 'index.md')}{found[2] or ''})", markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put the snippets of a task side by side."""
    if not page.file.src_uri.startswith("tasks/"):
        return html
    return _BESIDE_EACH_OTHER + _SNIPPETS.sub(lambda found: f'<div class="beside">{found[0]}</div>', html)


def _reference() -> dict[str, str]:
    """A page for each resource, from the OpenAPI document and the recorded examples."""
    paths: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    examples: dict[str, Any] = json.loads((ROOT / "flowise_dev_agent" / "api" / "examples.json").read_text())
    pages: dict[str, list[str]] = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            page = pages.setdefault(operation["tags"][0], [f"# {operation['tags'][0].capitalize()}"])
            page += ["", f"## {method.upper()} {path}", "", operation.get("description") or operation["summary"]]
            example = examples.get(operation["operationId"], {})
            page += _shown("Request", example.get("body")) + _shown("Answer", example.get("response"))
    return {f"reference/{tag}.md": "\n".join(lines) + "\n" for tag, lines in pages.items()}


def _shown(title: str, value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return ["", f"{title}:", "", "```json", text[:_LONGEST_EXAMPLE].replace("```", "\u02cb\u02cb\u02cb"), "```"]
